"""mixture-digits, novelty-digits and bench mixture: binding names, sums that add up, scores that are what they say."""

import argparse

import numpy as np
import pytest
from printed import of_schema

from stillwatch.base.errors import UsageError
from stillwatch.learn.mixture.mixture import MemoryBoundedMixture
from stillwatch.tools.bench import mixture as bench_mixture
from stillwatch.tools.experiments import novelty as experiment_novelty
from stillwatch.tools.experiments.mixture import digits as experiment_mixture_digits

BINDING = {
    "method", "order", "memory", "seed", "log_likelihood", "free_energy", "components", "ari", "accuracy", "seconds",
    "peak_rss_mb", "state_bytes",
}  # fmt: skip

NAMES = {
    experiment_mixture_digits: "experiment mixture-digits",
    experiment_novelty: "experiment novelty-digits",
    bench_mixture: "bench mixture",
}


def run(module, capsys, *options):
    parser = argparse.ArgumentParser()
    module.add_arguments(parser)
    assert module.main(parser.parse_args([*options, "--json"])) == 0
    return of_schema(NAMES[module], capsys.readouterr().out)["rows"]


def table(module, capsys, *options):
    parser = argparse.ArgumentParser()
    module.add_arguments(parser)
    assert module.main(parser.parse_args(list(options))) == 0
    return capsys.readouterr().out.splitlines()


def test_digits_rows_have_the_binding_names_for_every_method(capsys):
    rows = run(
        experiment_mixture_digits,
        capsys,
        "--orders",
        "1",
        "--rows",
        "150",
        "--memory",
        "100",
        "--particles",
        "5",
        "--prior-scale",
        "0.1",
    )
    assert [(row["order"], row["method"]) for row in rows] == [
        (order, name) for order in ("shuffled", "sorted") for name in experiment_mixture_digits.METHODS
    ]
    for row in rows:
        assert set(row) >= BINDING
        assert np.isfinite(row["log_likelihood"])
        assert 0.0 <= row["accuracy"] <= 1.0
        assert row["components"] >= 1


def test_gaps_are_to_the_batch_run_of_the_same_order_and_prior(capsys):
    options = ("--orders", "2", "--rows", "150", "--memory", "100", "--prior-scale", "0.1", "0.3")
    rows = run(experiment_mixture_digits, capsys, *options, "--methods", "stillwatch,batch")
    assert len(rows) == 12  # two random orders and the sorted one
    of = {(r["order"], r["seed"], r["prior_scale"]): r["log_likelihood"] for r in rows if r["method"] == "batch"}
    for row in rows:
        wanted = of[row["order"], row["seed"], row["prior_scale"]] - row["log_likelihood"]
        assert row["gap_to_batch"] == pytest.approx(wanted)


def test_the_digits_table_has_a_line_for_each_setting(capsys):
    options = ("--orders", "2", "--rows", "150", "--memory", "100", "120", "--prior-scale", "0.1", "--methods", "cold")
    lines = table(experiment_mixture_digits, capsys, *options, "--order", "shuffled")
    assert [line.split()[2:4] for line in lines[1:]] == [["stillwatch_cold", "100"], ["stillwatch_cold", "120"]]


def test_the_first_prior_scale_is_the_learners_default_and_the_prior_is_its_too():
    learner = MemoryBoundedMixture()
    assert learner.prior_scale == experiment_mixture_digits.PRIOR_SCALES[0]
    assert learner.prior_strength == experiment_mixture_digits.PRIOR_STRENGTH


@pytest.mark.parametrize("module", [experiment_mixture_digits, experiment_novelty])
@pytest.mark.parametrize("options", [("--methods", "kmeans"), ("--orders", "0")])
def test_what_cannot_be_run_is_named(module, options, capsys):
    with pytest.raises(UsageError, match=options[0]):
        run(module, capsys, *options)


@pytest.mark.slow
def test_novelty_bars_unseen_digits_and_midpoints(capsys):
    rows = run(experiment_novelty, capsys, "--orders", "3", "--methods", "stillwatch,lof")
    ours, peer = rows
    assert set(ours) >= {"method", "auc_unseen", "auc_between"}
    assert ours["auc_unseen"] >= 0.98
    assert ours["auc_between"] >= 0.90
    assert peer["auc_unseen"] == pytest.approx(0.940, abs=0.005)  # as others measured it on the same data
    assert ours["auc_unseen"] > peer["auc_unseen"]


@pytest.mark.parametrize("basis", ["all", "seen"])
def test_digits_eight_and_nine_are_never_learnt(basis):
    task = experiment_novelty.make_task(basis)
    assert len(task.seen) + len(task.unseen) == 360
    assert len(task.between) == 300
    digits = experiment_novelty.digits20()
    assert len(task.train) == np.count_nonzero(digits.train_labels < 8)
    assert len(task.unseen) == np.count_nonzero(digits.test_labels >= 8)


def test_midpoints_join_rows_of_different_classes_only():
    labels = np.array([0, 0, 1, 2])
    found = experiment_novelty.midpoints(np.array([[0.0], [0.0], [10.0], [100.0]]), labels, 50, 5)
    assert set(found.ravel().tolist()) == {5.0, 50.0, 55.0}
    assert len(found) == 50


def test_auc_counts_ties_half():
    assert experiment_novelty.auc(np.array([0.0, 1.0]), np.array([1.0, 2.0])) == pytest.approx(7 / 8)


@pytest.mark.parametrize("method", ["half_space_trees", "loda", "isolation_forest"])
def test_peers_score_rows_by_their_own_rules(method):
    rng = np.random.default_rng(0)
    score, components = experiment_novelty.FIT[method](method, rng.normal(size=(300, 4)), 0)
    assert components is None
    assert score(np.full((1, 4), 30.0))[0] >= score(np.zeros((1, 4)))[0]


@pytest.mark.slow
def test_bench_rows_have_rates_and_ratios_to_peers_of_the_same_run(capsys):
    rows = run(bench_mixture, capsys, "--dims", "16", "--seconds", "0.02")
    ours = [row for row in rows if row["method"] == "stillwatch"]
    peers = {row["method"]: row for row in rows if row["method"] != "stillwatch"}
    assert set(peers) == {"minibatch_kmeans", "sklearn_bgm_diagonal", "sklearn_bgm_full"}
    assert [(row["covariance"], row["memory"]) for row in ours] == [
        (s.covariance, s.memory) for s in bench_mixture.SETTINGS if s.n_dims == 16
    ]
    for row in ours:
        floor = peers["minibatch_kmeans"]["learnt_per_s"]
        assert row["learnt_to_kmeans"] == pytest.approx(row["learnt_per_s"] / floor)
        assert row["scored_per_s"] > 0


def test_the_benchs_stream_repeats_and_its_rows_come_from_twenty_clusters():
    data = bench_mixture.clusters(20, 2000)
    assert data.shape == (2000, 20)
    assert bench_mixture.part(data, 1_000_000, 500).shape == (500, 20)
    assert np.array_equal(bench_mixture.part(data, 0, 500), data[:500])
    assert np.array_equal(data, bench_mixture.clusters(20, 2000))


def test_rates_are_of_processor_time_and_at_least_three_calls():
    calls = []
    assert bench_mixture.rate(calls.append, 10, 0.0) > 0
    assert calls == [0, 1, 2]
