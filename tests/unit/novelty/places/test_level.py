"""What a frame's level usually is: events lift many frames, and must not become the measure."""

import math
from statistics import NormalDist

import numpy as np
import pytest

from stillwatch.novelty.places.level import FrameLevel
from stillwatch.novelty.rules import LEAST_LEVEL, NARROW

NS = 1_000_000_000
TOLD = NormalDist().inv_cdf(1 - 1 / 500)  # deviations at one frame in 500


def watched(levels, in_event=lambda i: False, rate=5) -> FrameLevel:
    made = FrameLevel(halflife_s=3600.0)
    for i, level in enumerate(levels):
        made.learn(float(level), round(i / rate * NS), in_event(i))
    return made


def test_the_level_sums_what_is_unlike_from_one_unit_on():
    assert FrameLevel.level_of(np.array([0.99, 1.0, 3.0, 0.0], np.float32)) == 2.0


def test_in_a_quiet_place_the_least_level_decides():
    quiet = watched(np.zeros(1000))
    assert quiet.standardise(LEAST_LEVEL + 0.5, 1.0) > TOLD
    assert quiet.standardise(LEAST_LEVEL - 0.5, 1.0) < TOLD


def test_events_in_four_frames_of_ten_do_not_hide_the_next():
    rng = np.random.default_rng(1)
    levels = np.abs(rng.normal(1.0, 0.5, 2000))
    levels[rng.random(2000) < 0.4] = 25.0
    assert watched(levels).standardise(25.0, 1.0) > 2 * TOLD


def test_where_nothing_is_ever_empty_the_usual_traffic_is_not_told_and_more_is():
    levels = np.random.default_rng(2).normal(20.0, 4.0, 3000)
    busy = watched(levels)
    mean, deviation = busy.usual(0.0)
    assert mean == pytest.approx(20.0, abs=0.5)
    assert deviation == pytest.approx(4.0, rel=0.15)
    told = 20.0 + NARROW * TOLD * 4.0
    assert busy.standardise(told - 1.5, 0.0) < TOLD < busy.standardise(told + 1.5, 0.0)


def test_the_first_seconds_ask_for_more():
    assert watched(np.zeros(5)).standardise(10.0, 1.0) < watched(np.zeros(500)).standardise(10.0, 1.0)


def test_frames_in_events_weigh_a_fifth():
    levels = np.concatenate([np.zeros(500), np.full(500, 20.0)])
    told, untold = watched(levels, in_event=lambda i: i >= 500), watched(levels)
    assert told.usual(0.0)[0] < untold.usual(0.0)[0]


def test_rarity_is_that_of_a_normal_law_and_bounded():
    assert FrameLevel.rarity(0.0) == pytest.approx(2.0)
    assert FrameLevel.rarity(TOLD) == pytest.approx(500.0)
    assert FrameLevel.rarity(math.inf) == pytest.approx(1e9)
