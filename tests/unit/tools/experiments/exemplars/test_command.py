"""The exemplar experiments: binding names, honest scores, peers that do what they are named for."""

import argparse

import numpy as np
import pytest
from data_location import data_dir
from printed import of_schema

from stillwatch.tools.experiments.data import measure
from stillwatch.tools.experiments.exemplars import baselines as baselines
from stillwatch.tools.experiments.exemplars import command as experiment
from stillwatch.tools.experiments.exemplars.frames import clips, covered_targets
from stillwatch.tools.experiments.exemplars.gaussian_process import fit_hyper, negative_log_marginal
from stillwatch.tools.experiments.exemplars.scale import ImageLikeStream

BINDING = {
    "method", "order", "k", "block", "validation", "seen", "utility", "train_loss", "test_loss", "mse", "seconds",
    "peak_rss_mb", "state_bytes",
}  # fmt: skip


def run(name, capsys, *options):
    parser = argparse.ArgumentParser()
    experiment.add_arguments(parser)
    args = parser.parse_args([*options, "--json"])
    args.experiment = name
    assert experiment.main(args) == 0
    rows = of_schema("experiment exemplars-synthetic", capsys.readouterr().out)["rows"]
    assert all(set(row) >= BINDING for row in rows)
    return {row["method"]: row for row in rows}


@pytest.mark.slow
def test_synthetic_rows_have_the_binding_names_and_losses_that_add_up(capsys):
    options = ("--rows", "600", "--order", "shuffled", "--methods", "streamgreedy", "random")
    rows = run("exemplars-synthetic", capsys, *options)
    greedy = rows["streamgreedy"]
    assert greedy["seen"] == 600
    assert greedy["k"] == greedy["held"] == 100
    assert greedy["state_bytes"] > 0
    assert greedy["train_loss"] < rows["random"]["train_loss"]
    assert greedy["utility"] > rows["random"]["utility"]


def test_scale_streams_blocks_that_do_not_depend_on_each_other():
    stream = ImageLikeStream()
    first = stream.block(5, 50)
    stream.block(6, 50)
    assert np.array_equal(stream.block(5, 50), first)
    assert np.linalg.norm(first, axis=1) == pytest.approx(np.ones(50), abs=1e-5)


def test_marginal_likelihood_has_the_gradient_of_its_differences():
    rng = np.random.default_rng(0)
    X, y, theta = rng.normal(size=(40, 3)), rng.normal(size=40), rng.normal(size=5) * 0.3
    gradient = negative_log_marginal(theta, X, y)[1]
    steps = 1e-5 * np.eye(5)
    wanted = [
        (negative_log_marginal(theta + h, X, y)[0] - negative_log_marginal(theta - h, X, y)[0]) / 2e-5 for h in steps
    ]
    np.testing.assert_allclose(gradient, wanted, rtol=1e-5, atol=1e-5)


def test_hyper_parameters_find_the_dimension_that_matters():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 2))
    hyper = fit_hyper(X, np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=120))
    assert hyper.lengthscales[1] > 5 * hyper.lengthscales[0]
    assert hyper.noise_variance == pytest.approx(0.01, rel=0.6)


def test_ground_truth_becomes_targets_that_a_frame_lies_in_or_not():
    found = {path.name: targets for path, targets in clips(data_dir()).items()}
    assert found["habcam_transect.mp4"]["crab"] == [(190, 213), (438, 461)]
    assert found["bottle_table.mp4"]["rest M R"][0] == (222, 328)
    assert covered_targets(np.array([54]), found["car_overhead.mp4"]) == ["event 54"]
    assert covered_targets(np.array([109, 53]), found["car_overhead.mp4"]) == ["quiet"]


def test_losses_are_mean_squared_distances_to_the_nearest():
    rows, exemplars = np.array([[0.0], [1.0], [10.0]]), np.array([[0.0], [8.0]])
    assert baselines.mean_least_distance(rows, exemplars) == pytest.approx((0 + 1 + 4) / 3)
    assert baselines.mean_least_distance(rows, exemplars, np.array([11.0])) == pytest.approx((0 + 1 + 1) / 3)


def test_centres_are_snapped_to_rows_each_once():
    rows = np.array([[0.0], [1.0], [5.0], [6.0]])
    assert baselines.nearest_rows(rows, np.array([[0.4], [0.45], [5.9]])).tolist() == [[0.0], [6.0]]


def test_k_centre_spreads_over_the_extremes_and_keeps_k():
    rows = np.random.default_rng(0).normal(size=(500, 2))
    found = baselines.k_centre(rows, 10, 0)
    assert found.shape == (10, 2)
    assert np.linalg.norm(found, axis=1).mean() > 1.5 * np.linalg.norm(rows, axis=1).mean()


def test_online_k_means_centres_are_running_means():
    online = baselines.OnlineKMeans(np.array([[0.0], [100.0]]))
    online.partial_fit(np.array([[2.0], [4.0], [98.0]]))
    assert online.centres.ravel().tolist() == pytest.approx([2.0, 99.0])


def test_the_cost_of_a_call_is_measured_with_its_own_peak():
    result, cost = measure(lambda: float(np.ones(4_000_000).sum()))
    assert result == 4e6
    assert cost.peak_rss_mb > 30.0
    assert 0.0 < cost.seconds < 60.0
