"""What a frame's level usually is: events lift many frames, and must not become the measure."""

import math
from statistics import NormalDist

import numpy as np
import pytest

from stillwatch.novelty.places.level import FrameLevel
from stillwatch.novelty.rules import LEAST_LEVEL, NARROW

NS = 1_000_000_000
TOLD = NormalDist().inv_cdf(1 - 1 / 500)  # deviations at one frame in 500


LATER = 10**6 * NS  # nothing of the last frame is left


def watched(levels, in_event=lambda i: False, rate=5) -> FrameLevel:
    made = FrameLevel(halflife_s=3600.0)
    for i, level in enumerate(levels):
        made.learn(float(level), round(i / rate * NS), in_event(i))
    return made


def test_the_level_sums_what_is_unlike_from_one_unit_on():
    assert FrameLevel.level_of(np.array([0.99, 1.0, 3.0, 0.0], np.float32)) == 2.0


def test_in_a_quiet_place_the_least_level_decides():
    quiet = watched(np.zeros(1000))
    assert quiet.standardise(LEAST_LEVEL + 0.5, 1.0, LATER) > TOLD
    assert quiet.standardise(LEAST_LEVEL - 0.5, 1.0, LATER) < TOLD


def test_events_in_four_frames_of_ten_do_not_hide_the_next():
    rng = np.random.default_rng(1)
    levels = np.abs(rng.normal(1.0, 0.5, 2000))
    levels[rng.random(2000) < 0.4] = 25.0
    assert watched(levels).standardise(25.0, 1.0, LATER) > 2 * TOLD


def test_where_nothing_is_ever_empty_the_usual_traffic_is_not_told_and_more_is():
    levels = np.random.default_rng(2).normal(20.0, 4.0, 3000)
    busy = watched(levels)
    mean, deviation = busy.usual(0.0)
    assert mean == pytest.approx(20.0, abs=0.5)
    assert deviation == pytest.approx(4.0, rel=0.15)
    told = 20.0 + NARROW * TOLD * 4.0
    assert busy.standardise(told - 1.5, 0.0, LATER) < TOLD < busy.standardise(told + 1.5, 0.0, LATER)


def test_the_first_seconds_ask_for_more():
    assert watched(np.zeros(5)).standardise(10.0, 1.0, LATER) < watched(np.zeros(500)).standardise(10.0, 1.0, LATER)


def test_what_both_of_two_frames_reach_is_told_below_what_one_must_reach():
    calm = watched(np.append(np.zeros(1000), 4.8))
    soon = 1000 * NS // 5 + NS // 5
    assert calm.standardise(4.8, 1.0, LATER) < TOLD < calm.standardise(4.8, 1.0, soon)
    assert calm.standardise(4.8, 1.0, soon) == pytest.approx(
        math.sqrt(2.0) * calm.standardise(4.8, 1.0, LATER), rel=0.03
    )


def test_of_two_frames_the_lower_one_counts_and_one_that_is_high_alone_tells_as_much_as_before():
    soon = 1000 * NS // 5 + NS // 5
    after_nothing, after_more, after_alike = (watched(np.append(np.zeros(1000), last)) for last in (0.0, 30.0, 4.8))
    assert after_nothing.standardise(7.0, 1.0, soon) == after_nothing.standardise(7.0, 1.0, LATER)
    assert after_more.standardise(4.8, 1.0, soon) == pytest.approx(after_alike.standardise(4.8, 1.0, soon), abs=0.01)


@pytest.mark.parametrize("rate", [5, 10, 25, 60, 90])
def test_at_any_rate_a_level_lasts_from_three_twentieths_of_a_second_on(rate):
    n = math.ceil(0.15 * rate)  # frames until then
    told = []
    for so_far in range(n + 2):
        calm = watched(np.append(np.zeros(100 * rate), np.full(so_far, 4.8)), rate=rate)
        told.append(calm.standardise(4.8, 1.0, round((100 * rate + so_far) / rate * NS)) > TOLD)
    assert told == [False] * n + [True] * 2


def test_one_frame_that_is_low_in_between_ends_what_lasts():
    levels = np.append(np.zeros(1000), [4.8, 4.8, 0.0, 4.8])
    assert watched(levels, rate=25).standardise(4.8, 1.0, 1004 * NS // 25) < TOLD


def test_what_varies_in_a_busy_place_is_no_less_in_two_frames():
    levels = np.random.default_rng(2).normal(20.0, 8.0, 3000)
    busy = watched(np.append(levels, 40.0))
    alone, both = (busy.standardise(40.0, 0.0, t_ns) for t_ns in (LATER, 3001 * NS // 5))
    assert alone < both < 1.05 * alone


def test_what_is_not_known_of_the_first_seconds_is_the_same_in_two_frames():
    first = watched(np.append(np.zeros(5), 10.0))
    assert first.standardise(10.0, 1.0, 6 * NS // 5) < 1.1 * first.standardise(10.0, 1.0, LATER)


def test_frames_in_events_weigh_a_fifth():
    levels = np.concatenate([np.zeros(500), np.full(500, 20.0)])
    told, untold = watched(levels, in_event=lambda i: i >= 500), watched(levels)
    assert told.usual(0.0)[0] < untold.usual(0.0)[0]


def test_rarity_is_that_of_a_normal_law_and_bounded():
    assert FrameLevel.rarity(0.0) == pytest.approx(2.0)
    assert FrameLevel.rarity(TOLD) == pytest.approx(500.0)
    assert FrameLevel.rarity(math.inf) == pytest.approx(1e9)
