"""Saved states of every learner: one that is refused, for whatever reason, changes nothing."""

import numpy as np
import pytest
from learner_cases import ALL_LEARNERS, N_DIMS, rows

from stillwatch.base import SnapshotError, state_hash
from stillwatch.learn import ComponentExemplars, StreamGreedy

NOT_NEGATIVE = {
    "counts",
    "component_count",
    "component_tried",
    "scale",
    "objective.p",
    "objective.e",
    "objective.drift",
}


def _examples(seed):
    found = ComponentExemplars(N_DIMS, max_components=4, payload_bytes=6)
    X = rows(30, seed)
    ids, typicality = np.arange(30) % 3, -np.abs(X[:, 0])
    found.offer(X, ids, typicality, np.arange(30), [f"{seed} {i}".encode() for i in range(30)])
    return found


def _with_payloads(seed):
    learner = StreamGreedy(k=5, block=30, validation=60, payload_bytes=4)
    return learner.partial_fit(rows(200, seed), payload=[f"{i}".encode() for i in range(200)])


# name -> a learner taught by the rows of a seed, with some waiting in its buffer
MAKERS = {case.name: lambda seed, case=case: case.prepared(rows(215, seed)) for case in ALL_LEARNERS}
MAKERS |= {"ComponentExemplars": _examples, "StreamGreedy-payloads": _with_payloads}


@pytest.fixture(params=MAKERS)
def make(request):
    return MAKERS[request.param]


def assert_refused(target, state, why):
    before = state_hash(target.state())
    with pytest.raises(SnapshotError):
        target.restore(state)
    assert state_hash(target.state()) == before, why


def damaged(good, damage):
    """Yield (name, state) with one array damaged; `damage` returns None where it does not apply."""
    for name, array in good.items():
        changed = damage(name, array.copy())
        if changed is not None:
            yield name, good | {name: changed}


def test_a_round_trip_gives_the_same_bits(make):
    source, target = make(1), make(2)
    target.restore(source.state())
    assert state_hash(target.state()) == state_hash(source.state())


def test_what_is_prepared_is_taken_over_by_its_commit_alone(make):
    source, target = make(1), make(2)
    before = state_hash(target.state())
    commit = target.prepare(source.state())
    assert state_hash(target.state()) == before
    commit()
    assert state_hash(target.state()) == state_hash(source.state())


def test_arrays_given_are_not_held_by_reference(make):
    source, target = make(1), make(2)
    given = {name: array.copy() for name, array in source.state().items()}
    target.restore(given)
    for array in given.values():
        array[...] = np.zeros((), array.dtype)
    assert state_hash(target.state()) == state_hash(source.state())


def test_a_missing_array_is_refused(make):
    target, good = make(2), make(1).state()
    for name in good:
        assert_refused(target, {other: array for other, array in good.items() if other != name}, name)


def test_an_array_too_many_is_refused(make):
    target, good = make(2), make(1).state()
    for name in ("stranger", "objective.stranger", "payloads.stranger"):
        assert_refused(target, good | {name: np.zeros(3)}, name)


def test_an_array_of_another_shape_is_refused(make):
    target = make(2)
    for name, state in damaged(make(1).state(), lambda name, array: array[None]):
        assert_refused(target, state, name)


def test_an_array_of_another_type_is_refused(make):
    target = make(2)
    other = {"f": np.complex128, "i": np.float32, "u": np.int32}
    for name, state in damaged(make(1).state(), lambda name, array: array.astype(other[array.dtype.kind])):
        assert_refused(target, state, name)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_value_that_is_not_finite_is_refused(make, value):
    def spoil(name, array):
        if array.dtype.kind != "f" or not array.size or (name == "free_energy" and np.isnan(value)):
            return None
        array.reshape(-1)[-1] = value
        return array

    target = make(2)
    for name, state in damaged(make(1).state(), spoil):
        assert_refused(target, state, name)


def test_a_count_or_place_below_its_range_is_refused(make):
    def spoil(name, array):
        if array.dtype.kind != "i" or not array.size or name == "codes":  # codes are any byte
            return None
        array.reshape(-1)[-1] = -2
        return array

    target = make(2)
    for name, state in damaged(make(1).state(), spoil):
        assert_refused(target, state, name)


def test_a_negative_mass_scale_or_distance_is_refused(make):
    def spoil(name, array):
        if name not in NOT_NEGATIVE or not array.size:
            return None
        array.reshape(-1)[-1] = -1.0
        return array

    target = make(2)
    for name, state in damaged(make(1).state(), spoil):
        assert_refused(target, state, name)


@pytest.mark.parametrize("case", ALL_LEARNERS, ids=lambda case: case.name)
def test_a_learner_that_has_seen_no_rows_takes_its_width_from_the_state(case):
    source = case.prepared(rows(215))
    target = type(source)(**source.get_params())
    target.restore(source.state())
    assert target.n_features_in_ == N_DIMS
    assert state_hash(target.state()) == state_hash(source.state())


@pytest.mark.parametrize("case", ALL_LEARNERS, ids=lambda case: case.name)
def test_and_stays_as_it_was_where_the_state_is_refused(case):
    source = case.prepared(rows(215))
    target = type(source)(**source.get_params())
    for state in ({}, {"x": np.zeros(3), "exemplars": np.zeros(3)}, source.state() | {"stranger": np.zeros(1)}):
        with pytest.raises(SnapshotError):
            target.restore(state)
        assert vars(target) == target.get_params()


@pytest.mark.parametrize("case", ALL_LEARNERS, ids=lambda case: case.name)
def test_a_state_of_another_width_is_refused(case):
    other = case.make().allocate(N_DIMS)
    wide = type(other)(**other.get_params() | ({"lengthscales": 2.0} if "lengthscales" in vars(other) else {}))
    X = np.hstack([rows(100), rows(100)])
    wide.partial_fit(X, X[:, 0])
    assert_refused(other, wide.state(), "width")
