"""Shares of topics are told when they say something else than what was told, and every ten seconds."""

import numpy as np

from stillwatch.contents import Contents
from stillwatch.pipeline.share_news import ShareNews

S = 1_000_000_000


def contents(*shares: float, ids: tuple[int, ...] = (4, 2, 9)) -> Contents:
    return Contents(np.array(ids), np.array(shares), np.zeros((1, 1), np.int64), 0.0, 0.0, 1.0, 4)


def test_a_frame_that_nobody_looked_at_is_told_by_no_shares():
    assert ShareNews().tell(None, 0) == (None, None)


def test_shares_are_told_without_those_of_a_word_or_none():
    ids, shares = ShareNews().tell(contents(0.7, 0.299, 0.001), 0)
    np.testing.assert_array_equal(ids, [4, 2])
    np.testing.assert_array_equal(shares, np.float32([0.7, 0.299]))


def test_a_view_that_stays_is_told_every_ten_seconds():
    news = ShareNews()
    told = [
        s
        for s in range(31)
        if news.tell(contents(0.6 + 0.01 * (s % 2), 0.4 - 0.01 * (s % 2), 0.0), s * S)[0] is not None
    ]
    assert told == [0, 10, 20, 30]


def test_a_view_of_which_a_twentieth_is_another_is_told_at_once():
    news = ShareNews()
    news.tell(contents(0.60, 0.40, 0.0), 0)
    assert news.tell(contents(0.56, 0.40, 0.04), S)[0] is None
    assert news.tell(contents(0.54, 0.40, 0.06), 2 * S)[0] is not None


def test_slow_change_adds_up_against_what_was_told():
    news = ShareNews()
    told = [s for s in range(8) if news.tell(contents(0.6 - 0.02 * s, 0.4 + 0.02 * s, 0.0), s * S)[0] is not None]
    assert told == [0, 3, 6]


def test_a_topic_of_another_number_is_another_topic():
    news = ShareNews()
    news.tell(contents(1.0, ids=(1,)), 0)
    assert news.tell(contents(1.0, ids=(2,)), S)[0] is not None


def test_time_that_begins_anew_and_a_station_that_asks_for_all_are_told_at_once():
    news = ShareNews()
    news.tell(contents(1.0, ids=(1,)), 5 * S)
    assert news.tell(contents(1.0, ids=(1,)), 0)[0] is not None
    news.forget()
    assert news.tell(contents(1.0, ids=(1,)), S)[0] is not None
