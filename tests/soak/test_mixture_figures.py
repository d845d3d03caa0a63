"""The learner's figures on the shared data, whole: synth50 in both orders, MNIST in one pass, a million rows."""

import numpy as np
import pytest
from data_location import data_dir
from sklearn.metrics import adjusted_rand_score

from stillwatch.learn.mixture.mixture import MemoryBoundedMixture
from stillwatch.tools.experiments.mixture import data as mixture_data

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def synthetic():
    return mixture_data.synth50()


@pytest.mark.parametrize(("memory", "least"), [(1500, -64.1), (3000, -64.0), (6000, -64.0)])
def test_synth50_in_both_orders(synthetic, memory, least):
    scores = []
    for order in ("shuffled", "sorted"):
        data = synthetic.ordered(order)
        model = MemoryBoundedMixture(covariance="full", memory=memory, max_components=25)
        model.partial_fit(data.train).flush()
        scores.append(float(model.score_samples(data.test).mean()))
        assert model.n_components_ == 20
        assert adjusted_rand_score(data.test_labels, model.predict(data.test)) >= 0.999
        assert scores[-1] >= least
        if memory == 3000:
            assert model.memory_bytes() < 5_000_000
    assert abs(scores[0] - scores[1]) <= 0.05


def test_mnist_in_one_pass_beats_the_plain_reference():
    data = mixture_data.mnist50(data_dir())
    model = MemoryBoundedMixture(covariance="full", memory=6000, horizon=60_000, max_components=150)
    model.partial_fit(data.train).flush()
    trained, tested = model.predict(data.train), model.predict(data.test)
    label_of = {who: np.bincount(data.train_labels[trained == who]).argmax() for who in np.unique(trained)}
    named = np.array([label_of.get(who, -1) for who in tested])
    assert model.score_samples(data.test).mean() > -24.4
    assert (named == data.test_labels).mean() > 0.872


@pytest.mark.parametrize(("memory", "most"), [(200, 0.4), (300, 0.45), (400, 0.45), (600, 0.25)])
def test_digits_in_ten_orders_stay_near_their_batch_run(memory, most):
    digits = mixture_data.digits20()
    settings = {"covariance": "full", "horizon": len(digits.train), "max_components": 50}
    gaps = []
    for seed in range(10):
        data = digits.shuffled(seed)
        n = len(data.train)
        batch = MemoryBoundedMixture(memory=2 * n + 20, epoch_size=n, max_iterations=100, **settings)
        bounded = MemoryBoundedMixture(memory=memory, **settings)
        scores = [m.partial_fit(data.train).flush().score_samples(data.test).mean() for m in (batch, bounded)]
        gaps.append(scores[0] - scores[1])
    assert np.mean(gaps) <= most


def test_a_million_rows_take_the_same_bytes():
    rng = np.random.default_rng(0)
    model = MemoryBoundedMixture(memory=4000).allocate(18)
    means = rng.normal(size=(30, 18)) * 3
    before = model.memory_bytes()
    for _ in range(100):
        model.partial_fit((means[rng.integers(30, size=10_000)] + rng.normal(size=(10_000, 18))).astype(np.float32))
    assert model.n_seen_ == 1_000_000
    assert model.memory_bytes() == before
    assert model.clumps_["count"].sum() == 1_000_000
