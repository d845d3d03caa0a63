"""The words of events: the same in every command and on every page."""

import pytest
from alerts import alert

from stillwatch.tools.shared import words
from stillwatch.transport.wire import EventKind


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.25, "0.2 s"), (42, "42 s"), (61, "1 min 1 s"), (3700, "1 h 1 min"), (200_000, "2 d 7 h")]
)
def test_lengths_of_time_are_words(seconds, text):
    assert words.duration(seconds) == text


@pytest.mark.parametrize(("seconds", "text"), [(-1, "0:00"), (51.7, "0:51.7"), (75, "1:15"), (3725, "1:02:05")])
def test_times_on_an_axis_are_minutes_and_seconds(seconds, text):
    assert words.clock_time(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(-1, "0:00.0"), (51.7, "0:51.7"), (59.97, "1:00.0"), (3725.25, "1:02:05.2")]
)
def test_moments_are_told_to_a_tenth_of_a_second(seconds, text):
    assert words.moment(seconds) == text


def test_the_end_of_what_lasts_no_time_is_no_news():
    assert words.is_over_at_once(alert(phase="end"))
    assert not words.is_over_at_once(alert(phase="end", duration_s=0.1))
    assert not words.is_over_at_once(alert())


@pytest.mark.parametrize(
    ("x", "y", "text"),
    [(0.1, 0.1, "upper left"), (0.5, 0.1, "top"), (1.0, 0.5, "right"), (0.5, 0.5, "centre"), (0.5, 1.0, "bottom")],
)
def test_a_place_is_named_by_thirds(x, y, text):
    assert words.place(x, y) == text


def test_what_fills_the_picture_lies_in_no_third_of_it():
    assert words.where(0.5, 0.5, [(0.0, 0.02, 0.95, 1.0), (0.0, 0.0, 0.1, 0.1)]) == "nearly the whole view"
    assert words.where(0.5, 0.5, [(0.3, 0.3, 0.6, 0.6), (0.0, 0.0, 1.0, 1.0)]) == "centre"  # the main one is small
    assert words.where(0.9, 0.9, None) == "lower right"
    assert words.where(None, 0.5, []) == ""


def test_an_alert_is_one_line_with_time_number_kind_place_and_rarity():
    assert words.alert_line(alert(), 51.7) == (
        "0:51.7  frame 517  14:14:07 UTC  event 3  something new  lower right  one frame in 2 341"
    )


def test_the_end_of_an_event_says_how_long_it_lasted():
    assert words.alert_line(alert(phase="end", duration_s=8.2, frame=-1, rarity=None)) == (
        "14:14:07 UTC  event 3  over: something new  for 8.2 s"
    )


def test_every_kind_has_words_and_a_later_one_its_name():
    assert {words.title_of(kind) for kind in EventKind} == {*words.TITLES.values(), "Other"}
    assert words.title_of("stampede_now") == "Stampede now"
    assert words.title_of("novelty") == "Something new"  # as schema 1 says where a sender leaves it out


def test_one_thing_has_no_plural():
    assert [words.count(n, "alert") for n in (0, 1, 2)] == ["0 alerts", "1 alert", "2 alerts"]
