"""Whether the agent may be relied on yet: not while it learns, and not for a while after a busy start."""

from types import SimpleNamespace

import numpy as np
import pytest

from stillwatch.base import FIXED, MOVING
from stillwatch.events import Certainty, Unsure
from stillwatch.novelty import Precedents
from stillwatch.novelty.rules import JUDGED

RATE, NS = 10, 10**9


def scored(i, *, learning=False, watched_s=0.0, visits=0, weather=0.0):
    precedents, was_judged = Precedents(watched_s=watched_s, visits=visits), weather < JUDGED
    return SimpleNamespace(t_ns=i * NS // RATE, learning=learning, precedents=precedents, was_judged=was_judged)


def started(moving, rule=FIXED, seconds=4, shape=(120, 160)):
    """Return what stands after learning seconds in which a block of the picture is elsewhere in each frame, or not."""
    certainty = Certainty()
    for i in range(seconds * RATE):
        grey = np.full(shape, 100, np.uint8)
        x = 3 * i % (shape[1] - 24) if moving else 0
        grey[10:40, x : x + 24] = 200
        assert certainty.update(grey, scored(i, learning=True), rule) == ""
    return certainty


def go_on(certainty, watched_s, visits, rule=FIXED):
    return certainty.update(np.zeros((120, 160), np.uint8), scored(1000, watched_s=watched_s, visits=visits), rule)


def test_while_it_learns_it_is_unsure_and_says_so():
    certainty = started(moving=True)
    assert certainty.why is Unsure.LEARNING
    assert certainty.text == "learning: nothing is judged yet"


def test_after_a_quiet_start_it_is_sure_at_once_and_says_nothing():
    certainty = started(moving=False)
    assert go_on(certainty, 0.0, 0) == ""
    assert (certainty.why, certainty.text, certainty.busy) == (Unsure.SURE, "", 0.0)


def test_a_busy_start_is_told_with_how_busy_it_was():
    certainty = started(moving=True)
    assert go_on(certainty, 0.0, 0).startswith("learning, busy start: something moved in 100% of the looks")
    assert certainty.why is Unsure.BUSY_START
    assert go_on(certainty, 1.0, 0) == ""  # once


@pytest.mark.parametrize(
    ("watched_s", "visits", "is_sure"), [(119.0, 30, False), (121.0, 7, False), (121.0, 8, True), (601.0, 0, True)]
)
def test_it_is_sure_after_two_minutes_and_eight_visits_or_ten_minutes(watched_s, visits, is_sure):
    certainty = started(moving=True)
    go_on(certainty, 0.0, 0)
    said = go_on(certainty, watched_s, visits)
    assert (certainty.why is Unsure.SURE) is is_sure
    assert said == (f"sure from here on: {watched_s:.0f} s judged, {visits} visits known" if is_sure else "")


def test_a_camera_that_moves_has_no_busy_start():
    assert go_on(started(moving=True, rule=MOVING), 0.0, -1, MOVING) == ""


def test_pictures_smaller_than_the_cells_are_looked_at_all_the_same():
    assert started(moving=True, shape=(50, 60)).busy > 0.9


def watch_weather(certainty, weather, begin, rule=FIXED):
    """Return why it is not sure after each frame of a weather."""
    found = []
    for i, share in enumerate(weather):
        assert certainty.update(np.zeros((120, 160), np.uint8), scored(begin + i, weather=share), rule) == ""
        found.append(certainty.why)
    return found


def test_weather_is_believed_once_it_lasted_and_its_end_as_well():
    certainty = started(moving=False)
    told = watch_weather(certainty, [0.0] * 20 + [1.0] * 100 + [0.0] * 100, begin=1000)
    assert told == [Unsure.SURE] * 70 + [Unsure.WEATHER] * 100 + [Unsure.SURE] * 50
    assert watch_weather(certainty, [1.0], 1300) == [Unsure.SURE]


@pytest.mark.parametrize("weather", [[0.0, 1.0] * 60, [0.4] * 120])
def test_flashes_and_a_picture_that_is_mostly_judged_are_no_weather(weather):
    assert set(watch_weather(started(moving=False), weather, begin=1000)) == {Unsure.SURE}


def test_in_weather_it_says_what_that_means():
    certainty = started(moving=False)
    watch_weather(certainty, [0.0] + [1.0] * 60, begin=1000)
    assert certainty.text.startswith("weather, light or camera: nearly the whole picture looks otherwise")


def test_a_busy_start_in_weather_is_told_as_what_it_is():
    certainty = started(moving=True)
    go_on(certainty, 0.0, 0)
    assert set(watch_weather(certainty, [1.0] * 60, begin=1000)) == {Unsure.BUSY_START}
