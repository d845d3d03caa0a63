"""The virtual clock moves only when told; the state hash sees every bit and no order."""

import numpy as np
import pytest

from stillwatch.base.clock import RealClock, VirtualClock
from stillwatch.base.state import StateDigest, split_off, state_hash, with_prefix, without_prefix


def test_a_virtual_sleep_moves_both_times_and_returns_at_once():
    clock = VirtualClock(mono_ns=5, wall_ns=100)
    clock.sleep(2.0)
    assert (clock.monotonic_ns(), clock.wall_ns()) == (2_000_000_005, 2_000_000_100)


def test_a_wall_step_leaves_monotonic_time_alone():
    clock = VirtualClock(wall_ns=10**18)
    clock.step_wall_ns(-864_000 * 10**9)
    assert clock.monotonic_ns() == 0
    assert clock.wall_ns() == 10**18 - 864_000 * 10**9


def test_monotonic_time_cannot_be_moved_back():
    with pytest.raises(ValueError, match="-1 ns is negative"):
        VirtualClock().advance_ns(-1)


def test_real_monotonic_time_does_not_fall():
    clock = RealClock()
    readings = [clock.monotonic_ns() for _ in range(100)]
    assert readings == sorted(readings)


STATE = {"a": np.arange(4.0), "b": np.array(3, np.int64)}


def test_the_order_of_names_does_not_change_the_hash():
    assert state_hash(STATE) == state_hash(dict(reversed(STATE.items())))


@pytest.mark.parametrize(
    "other",
    [
        {**STATE, "a": np.array([0.0, 1.0, 2.0, np.nextafter(3.0, 4.0)])},
        {**STATE, "a": np.arange(4.0, dtype=np.float32)},
        {**STATE, "a": np.arange(4.0).reshape(2, 2)},
        {"c": STATE["a"], "b": STATE["b"]},
        {**STATE, "a": np.array([-0.0, 1.0, 2.0, 3.0])},
    ],
    ids=["one bit", "dtype", "shape", "name", "minus zero"],
)
def test_any_difference_changes_the_hash(other):
    assert state_hash(other) != state_hash(STATE)


def test_a_state_in_pieces_hashes_as_the_whole():
    digest = StateDigest()
    for name, array in sorted(STATE.items()):
        digest.add({name: array})
    assert digest.text == state_hash(STATE)


def test_a_piece_that_comes_too_late_is_refused():
    digest = StateDigest()
    digest.add({"b": STATE["b"]})
    with pytest.raises(ValueError, match="a is hashed after b"):
        digest.add({"a": STATE["a"]})


def test_every_kind_of_array_is_hashed():
    state = {
        "none": np.zeros((0, 3)),
        "text": np.array(["a", "bc"]),
        "true": np.array(True),
        "wide": np.zeros((2, 3), "<i2"),
    }
    hashes = {state_hash({name: array}) for name, array in state.items()}
    assert len(hashes) == len(state)
    assert state_hash({**state, "text": np.array(["a", "bd"])}) != state_hash(state)


def test_a_strided_view_hashes_as_its_copy():
    wide = np.arange(8.0)
    assert state_hash({"a": wide[::2]}) == state_hash({"a": wide[::2].copy()})


def test_prefixes_come_off_as_they_went_on():
    both = {**with_prefix("x", STATE), **with_prefix("xy", STATE)}
    assert without_prefix("x", both).keys() == STATE.keys()
    own, others = split_off("x", both)
    assert own.keys() == STATE.keys()
    assert others.keys() == with_prefix("xy", STATE).keys()
