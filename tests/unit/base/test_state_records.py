"""Saved state: records there and back, and a refused state changes nothing."""

import enum
from dataclasses import dataclass

import numpy as np
import pytest

from stillwatch.base.errors import SnapshotError
from stillwatch.base.state import (
    Array,
    Restorable,
    check_arrays,
    prepare_parts,
    prepare_record,
    record_bytes,
    record_state,
    saved,
    saved_array,
    state_of_parts,
)


class Light(enum.Enum):
    RED = "red"
    GREEN = "green"


@dataclass
class Counters:
    frames: int = saved(0, low=0)
    level: float = saved(1.0, low=0.0, high=10.0)
    score: float = saved(float("nan"), nan=True)
    open: bool = saved(False)
    light: Light = saved(Light.RED)
    means: np.ndarray = saved_array((3,), np.float32)


class Part(Restorable):
    def __init__(self, frames=0):
        self.record = Counters(frames=frames)

    def state(self):
        return record_state(self.record)

    def prepare(self, state):
        return prepare_record(self.record, state, "part")

    def memory_bytes(self):
        return {"part": record_bytes(self.record)}


def filled() -> Counters:
    return Counters(7, 2.5, 3.0, True, Light.GREEN, np.array([1, 2, 3], np.float32))


def test_a_record_comes_back_as_it_was():
    state, other = record_state(filled()), Counters()
    held = other.means
    prepare_record(other, state, "counters")()
    assert (other.frames, other.level, other.score, other.open, other.light) == (7, 2.5, 3.0, True, Light.GREEN)
    assert isinstance(other.frames, int)
    assert isinstance(other.open, bool)
    assert other.means is held, "arrays are written into, as they were allocated at start"
    np.testing.assert_array_equal(held, [1, 2, 3])


def test_a_state_is_a_copy():
    record = filled()
    state = record_state(record)
    record.means[:] = 0
    np.testing.assert_array_equal(state["means"], [1, 2, 3])


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("frames", np.array(-1), "frames is -1, must be at least 0"),
        ("frames", np.array(1.0), "frames is float64 of shape (), must be int64 of ()"),
        ("frames", np.array([1]), "frames is int64 of shape (1,), must be int64 of ()"),
        ("level", np.array(11.0), "level is 11.0, must be at most 10"),
        ("level", np.array(np.nan), "level is not finite"),
        ("light", np.array(2), "light is 2, must be at most 1"),
        ("means", np.array([1, np.inf, 0], np.float32), "means is not finite"),
        ("means", np.zeros(4, np.float32), "means is float32 of shape (4,), must be float32 of (3,)"),
    ],
)
def test_a_record_that_does_not_fit_is_refused_with_what_and_how_much(name, value, message):
    record = filled()
    before = record_state(record)
    with pytest.raises(SnapshotError) as error:
        prepare_record(record, record_state(Counters()) | {name: value}, "counters")
    assert str(error.value) == f"counters: {message}"
    for field, array in record_state(record).items():
        np.testing.assert_array_equal(array, before[field])


def test_missing_and_extra_names_are_refused():
    state = {"b": np.zeros(1), "c": np.zeros(1)}
    wanted = {"a": Array(np.float64, (1,)), "b": Array(np.float64, (1,))}
    with pytest.raises(SnapshotError, match="x: the saved state has no a and c too many"):
        check_arrays(state, wanted, "x")


def test_a_length_may_be_any_and_text_of_any_width():
    check_arrays({"a": np.zeros((7, 2)), "b": np.array(["one", "three"])},
                 {"a": Array(np.float64, (None, 2)), "b": Array(np.str_, (None,))}, "x")  # fmt: skip


def test_a_part_that_refuses_leaves_the_parts_before_it_as_they_were():
    parts = {"first": Part(1), "second": Part(2)}
    state = state_of_parts({"first": Part(5), "second": Part(6)})
    state["second.frames"] = np.array(-3)
    with pytest.raises(SnapshotError, match="at least 0"):
        prepare_parts(parts, state, "both")
    assert (parts["first"].record.frames, parts["second"].record.frames) == (1, 2)
    state["second.frames"] = np.array(6)
    prepare_parts(parts, state, "both")()
    assert (parts["first"].record.frames, parts["second"].record.frames) == (5, 6)


@pytest.mark.parametrize("name", ["third.frames", "frames"])
def test_parts_refuse_arrays_of_nobody(name):
    parts = {"first": Part()}
    with pytest.raises(SnapshotError, match=f"both: the saved state has {name} too many"):
        prepare_parts(parts, state_of_parts(parts) | {name: np.zeros(1)}, "both")


def test_restore_is_prepare_and_commit():
    part = Part()
    part.restore(record_state(filled()))
    assert part.record.frames == 7
    assert part.memory_bytes() == {"part": 5 * 8 + 12}
