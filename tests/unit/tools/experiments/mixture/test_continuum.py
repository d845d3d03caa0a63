"""mixture-continuum: binding names, a batch without a gap, one curve in two orders."""

import argparse

import numpy as np
import pytest
from printed import of_schema

from stillwatch.base.errors import UsageError
from stillwatch.learn import MemoryBoundedMixture
from stillwatch.tools.experiments.mixture import continuum
from stillwatch.tools.experiments.mixture.data import DataSet

BINDING = {
    "dims", "covariance", "memory", "order", "method", "gap", "log_likelihood", "components", "clumps", "singlets",
    "seconds",
}  # fmt: skip
SMALL = ("--dims", "2", "--rows", "600", "--memory", "100", "--clips", "no", "--json")


def run(capsys, *options):
    parser = argparse.ArgumentParser()
    continuum.add_arguments(parser)
    assert continuum.main(parser.parse_args([*SMALL, *options])) == 0
    return of_schema("experiment mixture-continuum", capsys.readouterr().out)["rows"]


def test_rows_have_the_binding_names_for_every_covariance_order_and_method(capsys):
    rows = run(capsys)
    assert [(row["covariance"], row["order"], row["method"]) for row in rows] == [
        (covariance, order, method)
        for covariance in ("diagonal", "full")
        for order in ("shuffled", "curve")
        for method in continuum.METHODS
        if (covariance, method) != ("full", "quarters")
    ]
    assert all(set(row) >= BINDING for row in rows)
    assert all(row["clumps"] is None for row in rows if row["method"] == "sklearn_bgm")


def test_gaps_are_to_the_batch(capsys):
    rows = run(capsys, "--covariance", "full", "--methods", "stillwatch", "batch")
    batch = {row["order"]: row for row in rows if row["method"] == "batch"}
    for row in rows:
        assert row["gap"] == pytest.approx(batch[row["order"]]["log_likelihood"] - row["log_likelihood"])
        assert row["data"] == "curve"
        assert row["memory"] == (100 if row["method"] == "stillwatch" else None)
    assert batch["shuffled"]["singlets"] == 600


def test_the_order_along_the_curve_has_the_same_rows_one_after_the_other():
    shuffled, along = (continuum.curve(3, order, n_rows=500) for order in continuum.ORDERS)
    np.testing.assert_array_equal(shuffled.test, along.test)
    np.testing.assert_array_equal(np.sort(shuffled.train, axis=0), np.sort(along.train, axis=0))
    steps = [np.linalg.norm(np.diff(data.train, axis=0), axis=1).mean() for data in (shuffled, along)]
    assert steps[1] < 0.7 * steps[0]


def test_a_box_is_uniform_and_goes_from_one_side_to_the_other(capsys):
    shuffled, along = (continuum.box(2, order, n_rows=500) for order in continuum.ORDERS)
    np.testing.assert_array_equal(shuffled.test, along.test)
    assert (np.diff(along.train[:, 0]) >= 0.0).all()
    assert not (np.diff(shuffled.train[:, 0]) >= 0.0).all()
    assert shuffled.train.min() >= 0.0
    assert shuffled.train.max() < 1.0
    rows = run(capsys, "--covariance", "diagonal", "--methods", "quarters", "--shape", "box", "--order", "shuffled")
    assert [(row["data"], row["method"], row["memory"]) for row in rows] == [("box", "quarters", 100)]


def test_the_gap_of_a_clip_is_to_a_batch_in_the_learners_units(capsys, monkeypatch, tmp_path):
    rows = continuum.curve(3, "curve", n_rows=900).train  # one after the other: the first epoch is narrower than all
    settings = {"max_components": 20, "prior_scale": 0.05}
    monkeypatch.setattr(continuum, "clip_patches", lambda path: (rows, settings))
    options = ("--clips", "only", "--clip", "car_overhead", "--data", str(tmp_path))
    alone = run(capsys, *options, "--methods", "stillwatch")
    assert [(row["data"], row["memory"], row["gap_own_units"]) for row in alone] == [
        ("shared clips: surveillance/car_overhead.mp4", 100, None)
    ]
    both = {row["method"]: row for row in run(capsys, *options, "--methods", "stillwatch", "batch")}
    assert both["stillwatch"]["gap"] == alone[0]["gap"]
    assert both["batch"]["gap"] == 0.0
    held = np.arange(len(rows)) % continuum.HELD_OUT == continuum.HELD_OUT - 1
    data = DataSet(rows[~held], rows[held])
    settings |= {"covariance": "diagonal", "horizon": len(data.train)}
    learner = MemoryBoundedMixture(memory=100, **settings).fit(data.train)
    limit = continuum.batch_in({name: learner.clumps_[name] for name in ("shift", "scale")}, data, settings)
    assert alone[0]["gap"] == pytest.approx(limit - learner.score(data.test))
    assert both["stillwatch"]["gap_own_units"] != pytest.approx(alone[0]["gap"], abs=1e-3)


def test_impossible_sizes_are_refused():
    parser = argparse.ArgumentParser()
    continuum.add_arguments(parser)
    with pytest.raises(UsageError, match="rows"):
        continuum.main(parser.parse_args(["--rows", "1"]))


def test_a_batch_may_be_measured_in_what_the_learner_measured():
    data = continuum.curve(3, "curve", n_rows=900)
    settings = {"covariance": "diagonal", "horizon": 900}
    own = {"shift": data.train.mean(axis=0), "scale": data.train.std(axis=0)}
    batch = MemoryBoundedMixture(memory=1803, epoch_size=900, max_iterations=100, **settings).fit(data.train)
    assert continuum.batch_in(own, data, settings) == pytest.approx(batch.score(data.test), abs=0.02)
    # The same prior, told in units ten times as wide: other ones decide what is tried, so that local optima may differ.
    wide = {"shift": own["shift"], "scale": 10.0 * own["scale"]}
    assert continuum.batch_in(wide, data, settings | {"prior_scale": 0.0005}) == pytest.approx(
        batch.score(data.test), abs=0.05
    )
    assert continuum.batch_in(wide, data, settings) < batch.score(data.test) - 0.1
