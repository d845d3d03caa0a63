"""The words for how rare something was: counts of visits, and nothing extrapolated."""

import math

import pytest
from alerts import alert

from stillwatch.runs import alert_row, how_rare, most_often, span
from stillwatch.runs.rareness import upper_limit
from stillwatch.transport.wire import EventKind

THREE_MINUTES = {"kind": "novel", "rarity": 50_000.0, "watched_s": 180.0, "judged": 1800, "visits": 11}


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        ({"alike": 0, "here": 4}, "never seen before in 3 minutes"),
        ({"alike": 1}, "seen once before in 3 minutes"),
        ({"alike": 2}, "seen twice before in 3 minutes"),
        ({"alike": 3}, "one visit in 3, once in 60 seconds"),
        ({"alike": 11}, "once in 16 seconds"),
        ({"here": 0}, "the first visit to its place in 3 minutes"),
        ({"here": 1}, "1 visit to its place before, in 3 minutes"),
        ({"here": 7}, "7 visits to its place before, in 3 minutes"),
    ],
)
def test_rarity_is_told_by_the_visits_that_were_counted(counts, text):
    assert how_rare(THREE_MINUTES | counts) == text


@pytest.mark.parametrize(
    ("judged", "rarity", "text"),
    [
        (1800, 50_000.0, "never so new before in 3 minutes"),
        (1800, 600.0, "so new once in 60 seconds"),
        (None, 600.0, "never so new before in 3 minutes"),
        (1800, 1.0, ""),
    ],
)
def test_where_nobody_follows_visits_no_rarity_goes_beyond_what_was_watched(judged, rarity, text):
    assert how_rare({"kind": "novel", "rarity": rarity, "watched_s": 180.0, "judged": judged}) == text


def test_a_view_is_rare_among_looks_a_second_apart():
    told = {"kind": "unusual_view", "watched_s": 180.0}
    assert how_rare(told | {"rarity": 100.0}) == "one look in 100"
    assert how_rare(told | {"rarity": 900.0}) == "never so before in 3 minutes"


@pytest.mark.parametrize(
    "kind", [EventKind.NEW_CATEGORY, EventKind.RETURNED, EventKind.VANISHED, EventKind.SCENE_CHANGE]
)
def test_kinds_that_rarity_does_not_raise_have_none(kind):
    assert how_rare(THREE_MINUTES | {"kind": kind, "alike": 0}) == ""


def test_a_sender_that_counts_nothing_is_told_by_its_frames():
    assert how_rare({"kind": "novel", "rarity": 2341.4}) == "one frame in 2 341"
    assert how_rare({"kind": "novel", "rarity": 1e8}) == "rarer than one frame in a million"
    assert how_rare({"kind": "novel", "rarity": None}) == how_rare({}) == ""


@pytest.mark.parametrize(("count", "limit"), [(0, 2.9957), (1, 4.7439), (2, 6.2958), (3, 7.7537), (10, 16.9622)])
def test_upper_limits_are_those_of_the_tables_of_the_poisson_distribution(count, limit):
    assert upper_limit(count) == pytest.approx(limit, abs=1e-4)


@pytest.mark.parametrize("count", [0, 1, 5, 40])
def test_under_the_upper_limit_so_few_are_as_unlikely_as_was_said(count):
    mean = upper_limit(count)
    assert sum(math.exp(-mean) * mean**i / math.factorial(i) for i in range(count + 1)) == pytest.approx(0.05)


def test_what_never_came_comes_once_in_a_third_of_the_time_at_most():
    assert most_often(0, 180.0) == "once in 60 seconds at most, with 95% certainty"
    assert most_often(-1, 180.0) == most_often(0, 0.0) == ""


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.2, "1 second"),
        (89, "89 seconds"),
        (90, "2 minutes"),
        (5399, "90 minutes"),
        (7200, "2 hours"),
        (2e5, "2 days"),
    ],
)
def test_a_span_has_one_unit(seconds, text):
    assert span(seconds) == text


def test_an_alerts_row_has_the_counts_and_the_words():
    row = alert_row(alert(watched_s=180.0, judged=1800, visits=11, alike=0), 1.0)
    assert (row["watched_s"], row["visits"], row["alike"], row["here"], row["visit_kind"]) == (180.0, 11, 0, None, None)
    assert row["how_rare"] == "never seen before in 3 minutes"
