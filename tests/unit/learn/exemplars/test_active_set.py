"""Gaussian-process objectives and the regression on them: utilities by definition, predictions, accurate factors."""

import numpy as np
import pytest
from reference_kernels_exemplars import explained_variance, gaussian_covariance, information

from stillwatch.base.errors import NotFittedError
from stillwatch.base.state import state_hash
from stillwatch.learn.exemplars.gaussian_process import GaussianProcessActiveSet
from stillwatch.learn.exemplars.stream_greedy import StreamGreedy

LENGTHS = np.array([1.0, 0.6, 2.0])
HYPER = {"lengthscales": LENGTHS, "signal_variance": 1.3, "noise_variance": 0.05}


def rows(n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 3)).astype(np.float32).astype(np.float64)


def learner(objective, **given):
    settings = {"k": 8, "objective": objective, "block": 15, "validation": 40} | HYPER | given
    return StreamGreedy(**settings).allocate(3)


def test_variance_utility_is_the_mean_variance_that_the_active_set_explains():
    X, found = rows(120), learner("variance")
    for start in range(0, 120, 15):
        found.partial_fit(X[start : start + 15])
        active, points = found.exemplar_rows_, X[found.reservoir_.row_numbers[: found.reservoir_.count]]
        assert found.utility_ == pytest.approx(explained_variance(X, active, points, *HYPER.values()), rel=1e-9)
        assert found.loss_ == pytest.approx(1.3 - found.utility_, rel=1e-9)


def test_entropy_utility_is_half_the_log_determinant_over_the_noise():
    X, found = rows(120), learner("entropy")
    for start in range(0, 120, 15):
        found.partial_fit(X[start : start + 15])
        assert found.utility_ == pytest.approx(information(X, found.exemplar_rows_, *HYPER.values()), rel=1e-9)


@pytest.mark.parametrize("objective", ["variance", "entropy"])
def test_no_swap_of_the_last_block_would_still_gain(objective):
    X = rows(60)
    found = learner(objective, validation=60).partial_fit(X)
    chosen = found.exemplar_rows_.tolist()

    def utility(active):
        if objective == "entropy":
            return information(X, active, *HYPER.values())
        return explained_variance(X, active, X, *HYPER.values())

    swapped = [utility(chosen[:j] + [i] + chosen[j + 1 :]) for i in range(45, 60) if i not in chosen for j in range(8)]
    assert max(swapped) <= utility(chosen) + 1e-6


def test_the_first_row_by_entropy_does_not_matter_and_the_second_is_the_farthest_in_covariance():
    X = rows(15)
    found = learner("entropy", k=2).partial_fit(X)
    first, second = found.exemplar_rows_
    best = max(information(X, [i, j], *HYPER.values()) for i in range(15) for j in range(i))
    assert information(X, [first, second], *HYPER.values()) == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("objective", ["variance", "entropy"])
def test_the_factor_stays_that_of_the_active_set_over_many_swaps(objective):
    found = learner(objective, k=12)
    for seed in range(20):
        found.partial_fit(rows(60, seed) * (1.0 + seed / 5))
    state = found.state()
    factor = state["objective.factor"]
    a = found.exemplars_.astype(np.float64)[state["objective.order"]]
    sigma = gaussian_covariance(a, a, LENGTHS, 1.3) + 0.05 * np.eye(12)
    assert found.n_swaps_ > 30
    np.testing.assert_allclose(factor @ factor.T, sigma, atol=1e-12)
    assert found.process_.drift < 1e-12


def test_a_wrong_factor_is_replaced_by_a_fresh_one_and_the_drift_is_told():
    found = learner("entropy").partial_fit(rows(30))
    state = found.state()
    state["objective.factor"][3, 1] += 0.25
    found.restore(state)
    found.partial_fit(rows(15 * 8, seed=1))
    assert found.process_.drift > 1e-3
    precision = found.process_.precision()
    a = found.exemplars_.astype(np.float64)
    sigma = gaussian_covariance(a, a, LENGTHS, 1.3) + 0.05 * np.eye(8)
    np.testing.assert_allclose(precision @ sigma, np.eye(8), atol=1e-9)


@pytest.mark.parametrize("objective", ["variance", "entropy"])
def test_identical_rows_give_one_active_row_and_no_failure(objective):
    found = learner(objective).partial_fit(np.ones((2000, 3)))
    assert found.n_held_ == 1
    assert np.isfinite(found.utility_)


def test_predictions_are_those_of_the_full_formula():
    X, test = rows(100), rows(20, seed=7)
    y = np.sin(X).sum(axis=1)
    found = GaussianProcessActiveSet(k=20, block=25, validation=50, **HYPER).partial_fit(X, y)
    chosen = found.active_set_.exemplar_rows_
    assert np.array_equal(found.targets_, y[chosen])
    a = X[chosen]
    sigma = gaussian_covariance(a, a, LENGTHS, 1.3) + 0.05 * np.eye(20)
    cross = gaussian_covariance(test, a, LENGTHS, 1.3)
    mean, deviation = found.predict(test, return_std=True)
    np.testing.assert_allclose(mean, cross @ np.linalg.solve(sigma, y[chosen]), atol=1e-6)
    wanted = 1.3 - (cross * np.linalg.solve(sigma, cross.T).T).sum(axis=1)
    np.testing.assert_allclose(deviation**2, wanted, atol=1e-6)


def test_variance_is_never_negative_and_far_rows_have_the_prior_one():
    found = GaussianProcessActiveSet(k=20, block=25, **HYPER).partial_fit(rows(100), np.zeros(100))
    assert (found.predict(rows(500, seed=3), return_std=True)[1] >= 0.0).all()
    mean, deviation = found.predict(np.full((1, 3), 1e6), return_std=True)
    assert mean[0] == 0.0
    assert deviation[0] ** 2 == pytest.approx(1.3)


def test_more_active_rows_predict_better():
    X, test = rows(600), rows(200, seed=9)
    errors = []
    for k in (10, 40, 120):
        found = GaussianProcessActiveSet(k=k, block=60, validation=200, **HYPER)
        found.partial_fit(X, np.sin(2 * X).sum(axis=1))
        errors.append(np.square(found.predict(test) - np.sin(2 * test).sum(axis=1)).mean())
    assert errors[0] > errors[1] > errors[2]


def test_predictions_and_learning_go_on_from_a_restored_state():
    X = rows(100)
    y = X.sum(axis=1)
    first = GaussianProcessActiveSet(k=10, block=20, validation=40, **HYPER).partial_fit(X[:70], y[:70])
    second = GaussianProcessActiveSet(k=10, block=20, validation=40, **HYPER)
    second.restore(first.state())
    first.predict(X)  # must not matter
    for found in (first, second):
        found.partial_fit(X[70:], y[70:]).flush()
    assert state_hash(first.state()) == state_hash(second.state())
    assert np.array_equal(first.predict(X), second.predict(X))
    assert first.memory_bytes() == second.memory_bytes()


def test_bad_targets_and_settings_are_refused():
    found = GaussianProcessActiveSet(k=4, **HYPER).allocate(3)
    with pytest.raises(ValueError, match="y: shape \\(2,\\), must be \\(3,\\)"):
        found.partial_fit(rows(3), np.zeros(2))
    with pytest.raises(ValueError, match="finite"):
        found.partial_fit(rows(3), np.array([0.0, np.nan, 0.0]))
    with pytest.raises(NotFittedError, match="no row yet"):
        found.predict(rows(2))
    with pytest.raises(ValueError, match="none of variance, entropy"):
        GaussianProcessActiveSet(k=4, objective="clustering", **HYPER).allocate(3)
    for wrong in ({"noise_variance": 0.0}, {"signal_variance": -1.0}, {"lengthscales": np.zeros(3)}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            learner("variance", **wrong)
    with pytest.raises(ValueError, match="knows no racing"):
        learner("variance", racing=0.1)
    with pytest.raises(ValueError, match="has no weights"):
        _ = learner("variance").exemplar_weights_
    with pytest.raises(ValueError, match="has no Gaussian process"):
        _ = StreamGreedy(k=2).allocate(3).process_
