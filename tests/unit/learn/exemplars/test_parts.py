"""Parts of StreamGreedy: a uniform reservoir, payload slots, dissimilarities, and the race of swaps."""

import numpy as np
import pytest
from reference_kernels_exemplars import DISSIMILARITIES

from stillwatch.base.errors import SnapshotError
from stillwatch.learn.exemplars.dissimilarity import Dissimilarity, PreparedRows
from stillwatch.learn.exemplars.payloads import PayloadStore
from stillwatch.learn.exemplars.reservoir import Reservoir
from stillwatch.learn.exemplars.stream_greedy import StreamGreedy

# -- reservoir -------------------------------------------------------------------------------------------------


def test_every_row_of_a_stream_is_sampled_equally_often():
    hits = np.zeros(60)
    X = np.arange(60, dtype=np.float32)[:, None]
    for trial in range(1000):
        reservoir = Reservoir(12, 1)
        rng = np.random.default_rng(trial)
        for start in range(0, 60, 7):
            reservoir.offer(X[start : start + 7], start, rng)
        hits[reservoir.row_numbers] += 1
    assert np.abs(hits / 1000 - 0.2).max() < 5 * np.sqrt(0.2 * 0.8 / 1000)


def test_the_reservoir_reports_the_slots_that_changed_and_their_rows():
    reservoir = Reservoir(10, 2)
    X = np.random.default_rng(0).random((50, 2)).astype(np.float32)
    assert reservoir.offer(X[:6], 0, np.random.default_rng(1)).tolist() == [0, 1, 2, 3, 4, 5]
    before = reservoir.rows.copy()
    changed = reservoir.offer(X[6:], 6, np.random.default_rng(2))
    unchanged = np.setdiff1d(np.arange(10), changed)
    assert np.array_equal(reservoir.rows[unchanged], before[unchanged])
    assert np.array_equal(reservoir.rows, X[reservoir.row_numbers])
    assert reservoir.count == 10


# -- payloads --------------------------------------------------------------------------------------------------


def test_a_payload_slot_forgets_the_longer_payload_before():
    store = PayloadStore(2, 10)
    store.put(0, b"0123456789")
    store.put(0, b"ab")
    assert store.get(0) == b"ab"
    store.put(0, None)
    assert [store.get(0), store.get(1)] == [b"", b""]


def test_a_store_refuses_lengths_that_do_not_add_up():
    store = PayloadStore(3, 4)
    store.put(1, b"abc")
    state = store.state(3)
    store.prepare(state, 3, "here")
    for wrong, count in (
        (state, 2),
        (state | {"payload": state["payload"][:-1]}, 3),
        (state | {"payload_lengths": np.array([0, 5, -2])}, 3),
    ):
        with pytest.raises(SnapshotError, match="here"):
            store.prepare(wrong, count, "here")


# -- dissimilarities -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DISSIMILARITIES)
@pytest.mark.parametrize("n", [1, 9])
def test_named_dissimilarities_are_what_their_formulas_say(name, n):
    X = np.random.default_rng(0).dirichlet(np.ones(5), n + 3).astype(np.float32)
    X[0] = 0.0
    d = Dissimilarity(name, 5)
    d.centre_on(X)
    points, exemplars = PreparedRows(n, 5), PreparedRows(4, 5)
    d.prepare(X[:n], points, slice(n))
    d.prepare(X[-3:], exemplars, slice(3))
    out = np.zeros((3, n), np.float32)
    d.cross(exemplars, slice(3), points, slice(n), out)
    wanted = [[DISSIMILARITIES[name](x, c) for x in X[:n]] for c in X[-3:]]
    np.testing.assert_allclose(out, wanted, atol=1e-3 if name == "hellinger" else 1e-6)


# -- racing ----------------------------------------------------------------------------------------------------


def blobs(n, seed=0):
    """Eight tight corners: with several exemplars in each, the terms of a swap have a small range."""
    rng = np.random.default_rng(seed)
    return (6.0 * np.eye(8)[rng.integers(0, 8, n)] + 0.3 * rng.normal(size=(n, 8))).astype(np.float32)


def raced_and_plain(X, k, validation, delta=0.05, **given):
    made = [StreamGreedy(k=k, block=50, validation=validation, racing=r, **given) for r in (delta, None)]
    return [learner.partial_fit(X) for learner in made]


def asked_of(raced):
    """Dissimilarities computed for candidates, and what scoring on all of W would have computed."""
    state = raced.state()
    return int(state["objective.n_asked"]), int(state["objective.n_possible"])


def test_racing_asks_fewer_points_and_loses_little():
    raced, plain = raced_and_plain(blobs(6000), 32, 4000, minimum_gain=0.6)
    asked, possible = asked_of(raced)
    assert asked < 0.6 * possible
    assert raced.utility_ > 0.98 * plain.utility_


def test_a_race_never_takes_a_swap_that_loses():
    X = blobs(3000, seed=1)
    raced = StreamGreedy(k=8, block=50, validation=1000, racing=0.05).partial_fit(X[:2000])
    raced.fix_validation()
    for start in range(2000, 3000, 50):
        before = raced.utility_
        raced.partial_fit(X[start : start + 50])
        assert raced.utility_ >= before - 1e-9


def test_racing_on_few_points_decides_as_exactly_as_scoring_does():
    X = blobs(400, seed=2)
    raced = StreamGreedy(k=5, block=50, validation=200, racing=0.5).partial_fit(X)
    state = raced.state()
    nearest = np.minimum(state["objective.p"], state["objective.e"].min(axis=1))
    assert raced.loss_ == nearest.mean(dtype=np.float64)
    asked, possible = asked_of(raced)
    assert asked == possible


def test_a_smaller_failure_probability_asks_more():
    X = blobs(4000, seed=3)
    asked = []
    for delta in (0.5, 1e-30):
        raced, _ = raced_and_plain(X, 32, 3000, delta, minimum_gain=0.6)
        asked.append(asked_of(raced)[0])
    assert asked[0] < asked[1]
