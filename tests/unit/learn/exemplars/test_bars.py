"""Quality that was promised: the losses of design section 3, in both orders, in one pass."""

import pytest

from stillwatch.learn.exemplars.stream_greedy import StreamGreedy
from stillwatch.tools.experiments.exemplars.baselines import mean_least_distance
from stillwatch.tools.experiments.mixture.data import digits20, synth50


def loss_of_one_pass(data, validation):
    found = StreamGreedy(k=100, block=500, validation=validation).partial_fit(data.train).flush()
    assert found.n_held_ == 100
    return mean_least_distance(data.train, found.exemplars_.astype(float))


@pytest.mark.slow
@pytest.mark.parametrize("order", ["shuffled", "sorted"])
def test_digits_are_represented_within_300(order):
    assert loss_of_one_pass(digits20().ordered(order), 1000) <= 300.0


@pytest.mark.slow
def test_synthetic_rows_are_represented_within_55_2_in_either_order():
    data = synth50()
    for order in ("shuffled", "sorted"):
        assert loss_of_one_pass(data.ordered(order), 2000) <= 55.2
