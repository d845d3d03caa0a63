"""Stream time: what StampRepair makes of good and bad stamps, and which frames a Decimator keeps."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stillwatch.base.frame import FrameFlag
from stillwatch.sources.timestamps import Decimator, StampRepair

MS = 1_000_000
S = 1000 * MS
BAD = FrameFlag.TIME_REPAIRED | FrameFlag.TIME_SYNTHETIC


def repaired(stamps, rate_hz=10.0):
    repair = StampRepair(rate_hz)
    return [repair.repair(stamp) for stamp in stamps]


def times_ms(stamps, rate_hz=10.0):
    return [t_ns / MS for t_ns, _, _ in repaired(stamps, rate_hz)]


def test_good_stamps_keep_their_distances_whatever_the_first_is():
    assert times_ms([5 * S, 5 * S + 40 * MS, 5 * S + 90 * MS]) == [0, 40, 90]


def test_a_gap_stays_a_gap():
    assert times_ms([0, 40 * MS, 30 * S, 30 * S + 40 * MS]) == [0, 40, 30_000, 30_040]


def test_absent_stamps_advance_by_the_fallback_rate_and_are_flagged():
    assert times_ms([None, None, None], 25.0) == [0, 40, 80]
    assert all(flags == FrameFlag.TIME_SYNTHETIC for _, flags, _ in repaired([None, None]))


def test_a_repeated_stamp_is_moved_half_an_interval_and_the_next_finds_its_place():
    results = repaired([0, 40 * MS, 40 * MS, 80 * MS])
    assert [t / MS for t, _, _ in results] == [0, 40, 60, 80]
    assert results[2][1] == FrameFlag.TIME_REPAIRED
    assert results[3][1] == FrameFlag.NONE


def test_a_stream_of_equal_stamps_runs_at_the_fallback_rate():
    assert times_ms([0] * 5, 10.0) == [0, 100, 200, 300, 400]
    assert all(flags & FrameFlag.TIME_SYNTHETIC for _, flags, _ in repaired([0] * 5)[1:])


def test_a_small_step_back_keeps_time_increasing_without_a_new_epoch():
    results = repaired([0, 80 * MS, 40 * MS, 160 * MS])
    assert [t / MS for t, _, _ in results] == [0, 80, 120, 160]
    assert not any(new_epoch for _, _, new_epoch in results)


def test_a_step_back_over_a_second_starts_an_epoch_and_time_goes_on():
    results = repaired([10 * S, 10 * S + 40 * MS, 0, 40 * MS])
    assert [t / MS for t, _, _ in results] == [0, 40, 80, 120]
    assert [new_epoch for _, _, new_epoch in results] == [False, False, True, False]


def test_a_leap_of_years_is_not_believed():
    results = repaired([0, 40 * MS, 10**18, 10**18 + 40 * MS])
    assert [t / MS for t, _, _ in results] == [0, 40, 80, 120]


@settings(max_examples=300)
@given(st.lists(st.one_of(st.none(), st.integers(-(2**62), 2**62), st.integers(0, 10 * S)), max_size=40))
def test_stream_time_always_increases(stamps):
    times = [t_ns for t_ns, _, _ in repaired(stamps)]
    assert all(b > a for a, b in zip(times, times[1:], strict=False))
    assert not times or times[0] == 0


def test_decimation_keeps_the_asked_share_by_time():
    decimator = Decimator(5.0)
    kept = [i for i in range(60) if decimator.keeps(round(i * S / 30))]
    assert kept == list(range(0, 60, 6))


def test_decimation_of_a_slow_stream_keeps_every_frame():
    decimator = Decimator(5.0)
    assert all(decimator.keeps(i * S) for i in range(10))


def test_jitter_does_not_halve_the_rate():
    decimator = Decimator(15.0)
    jitter_ns = [0, 3 * MS, -3 * MS, 2 * MS, -2 * MS]
    kept = sum(decimator.keeps(round(i * S / 15) + jitter_ns[i % 5] + 5 * MS) for i in range(150))
    assert kept == 150


@pytest.mark.parametrize("rate_hz", [0.5, 1.0, 7.0, 12.5])
def test_decimation_approaches_the_rate(rate_hz):
    decimator = Decimator(rate_hz)
    kept = sum(decimator.keeps(i * S // 25) for i in range(2500))
    assert kept == pytest.approx(100 * rate_hz, abs=2)
