"""What went wrong in libraries like this one, where no other test asks for it: one lesson each."""

import time

import numpy as np
import pytest
from learner_cases import rows
from mixture_cases import FAMILIES, clusters

from stillwatch.learn.exemplars.gaussian_process import GaussianProcessActiveSet
from stillwatch.learn.exemplars.stream_greedy import StreamGreedy
from stillwatch.learn.mixture.mixture import MemoryBoundedMixture


def mixture(covariance, n_dims=4, **given):
    settings = {"memory": 200, "horizon": 5000, "max_components": 12} | given
    return MemoryBoundedMixture(covariance=covariance, **settings).allocate(n_dims)


@pytest.mark.parametrize("covariance", FAMILIES)
def test_the_concentration_does_not_decide_how_many_components_there_are_over_ten_decades(covariance):
    X, _ = clusters(5, n_rows=400, n_clusters=4, gap=8.0)
    found = {alpha: mixture(covariance, concentration=alpha).partial_fit(X).n_components_ for alpha in (1e-5, 1, 1e5)}
    assert set(found.values()) == {4}


@pytest.mark.parametrize("covariance", FAMILIES)
def test_the_priors_scale_does(covariance):
    X, _ = clusters(5, n_rows=400, n_clusters=8, gap=5.0)
    fine, coarse = (mixture(covariance, prior_scale=scale).partial_fit(X).n_components_ for scale in (0.03, 3.0))
    assert fine > coarse


def test_a_summary_names_the_epoch_it_is_of_and_an_old_one_keeps_its_name():
    X, _ = clusters(1, n_rows=300)
    model = mixture("full").partial_fit(X[:100])
    old = model.predictive()
    model.partial_fit(X[100:250])
    assert (old.epoch, model.predictive().epoch, int(model.summary()["epoch"])) == (1, 2, 2)
    assert model.epoch_ == model.report_["epoch"] == 2


@pytest.mark.parametrize("covariance", FAMILIES)
def test_bytes_are_linear_in_the_memory_and_know_nothing_of_the_streams_length(covariance):
    sizes = [sum(mixture(covariance, memory=memory).memory_bytes().values()) for memory in (1000, 2000, 4000)]
    assert sizes[2] - sizes[1] == pytest.approx(2 * (sizes[1] - sizes[0]), rel=0.01)
    assert mixture(covariance, horizon=7_000_000).memory_bytes() == mixture(covariance).memory_bytes()


def test_exemplars_bytes_are_linear_in_the_validation_set():
    sizes = [
        sum(StreamGreedy(k=10, block=50, validation=n).allocate(4).memory_bytes().values()) for n in (1000, 2000, 4000)
    ]
    assert sizes[2] - sizes[1] == 2 * (sizes[1] - sizes[0])


@pytest.mark.parametrize("objective", ["variance", "entropy"])
@pytest.mark.parametrize("far", [1e6, 1e12])
def test_one_row_from_far_away_spoils_no_prediction_near_the_others(objective, far):
    X = rows(300)
    y = np.sin(X[:, 0])
    spoiled, targets = np.insert(X, 40, far, axis=0), np.insert(y, 40, 0.5)
    errors = []
    for inputs, outputs in ((X, y), (spoiled, targets)):
        model = GaussianProcessActiveSet(
            k=60, lengthscales=np.full(4, 2.0), objective=objective, block=60, validation=150
        )
        model.partial_fit(inputs.astype(np.float32), outputs).flush()
        errors.append(float(np.abs(model.predict(X) - y).mean()))
        assert model.predict(np.full((1, 4), far), return_std=True)[1][0] <= 1.0
    assert errors[1] <= errors[0] + 0.05


def test_covariances_of_rows_far_from_the_origin_are_those_of_their_differences():
    process = GaussianProcessActiveSet(k=3, lengthscales=np.ones(2)).allocate(2).active_set_.process_
    near = np.array([[0.0, 0.0], [1.0, 0.5]])
    together = process.covariance(near + 1e9, near + 1e9)
    np.testing.assert_allclose(together, process.covariance(near, near), rtol=1e-6)
    np.testing.assert_array_equal(np.diagonal(together), 1.0)
    assert (process.covariance(near, near + 1e9) == 0.0).all()


@pytest.mark.soak
@pytest.mark.parametrize("covariance", FAMILIES)
def test_a_million_rows_are_learnt_as_fast_at_their_end_as_at_their_beginning(covariance):
    """Rows a processor second around row 1e6 within a tenth of those around row 1e4."""
    model = mixture(covariance, n_dims=8, memory=1000, horizon=1_000_000)
    X, _ = clusters(3, n_rows=10_000, n_dims=8, n_clusters=8)
    spent = []
    for _ in range(100):
        begin = time.process_time()
        model.partial_fit(X)
        spent.append(time.process_time() - begin)
    assert np.median(spent[-10:]) <= 1.1 * np.median(spent[1:11])
