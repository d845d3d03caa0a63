"""Visits are followed from frame to frame, described where they are seen whole, and counted once, by their kind."""

from types import SimpleNamespace

import numpy as np
import pytest

from stillwatch.novelty.places.unlikeness import usual_rate
from stillwatch.novelty.visits import Visits, news_of
from stillwatch.settings.config import EventsConfig

GRID, DIMS, NS, RATE = (20, 30), 6, 1_000_000_000, 5
N = GRID[0] * GRID[1]
LOOKS = np.random.default_rng(1).normal(size=(4, DIMS)).astype(np.float32)


class Road:
    """Things of different looks and sizes on an otherwise usual picture, seen by `Visits`."""

    def __init__(self, **events):
        self.visits = Visits(DIMS, 3600.0, usual_rate(EventsConfig(**events)))
        self.i, self.rng = 0, np.random.default_rng(2)
        self.seen = []

    def frame(self, *things):
        """Show things (which, row, column, height, width) for one frame."""
        unlikeness = np.zeros(GRID, np.float32)
        plain = self.rng.normal(0.0, 0.02, (*GRID, DIMS)).astype(np.float32)
        for which, row, column, height, width in things:
            where = np.s_[max(row, 0) : row + height, max(column, 0) : max(column + width, 0)]
            unlikeness[where] = 2.0
            plain[where] += LOOKS[which]
        plain = plain.reshape(N, DIMS)
        rows = SimpleNamespace(plain=plain, colours=np.zeros((N, 3), np.float32), grid_shape=GRID)
        self.seen = self.visits.look(unlikeness.ravel(), rows)
        self.visits.learn(self.seen, GRID, round(self.i / RATE * NS))
        self.i += 1
        return self.seen

    def empty(self, seconds):
        for _ in range(round(seconds * RATE)):
            self.frame()

    def cross(self, which, row=8, height=4, width=5, step=2):
        """Let one thing cross from left to right; return the last sighting of each frame in which it is whole."""
        whole = []
        for column in range(-width + 1, GRID[1], step):
            seen = self.frame((which, row, column, height, width))
            whole += [sighting for sighting in seen if sighting.whole]
        self.empty(1.6)
        return whole

    @property
    def counts(self):
        return [kind.count for kind in self.visits.kinds]


def known_one():
    """Return what is seen when one of a kind that often crosses is half-way."""
    road = Road()
    for _ in range(8):
        road.cross(0)
    for column in range(-4, 11, 2):
        seen = road.frame((0, 8, column, 4, 5))
    return seen


def test_who_crosses_is_one_visit():
    road = Road()
    road.cross(0)
    road.empty(2)
    assert road.counts == [1]


def test_things_that_look_alike_are_one_kind_and_others_another():
    road = Road()
    for which in (0, 0, 1, 0):
        road.cross(which)
    assert road.counts == [3, 1]


def test_two_that_pass_each_other_on_their_ways_are_two_visits():
    road = Road()
    for k in range(-4, 34, 2):
        road.frame((0, 3, k, 4, 5), (1, 12, 26 - k, 4, 5))
    road.empty(2)
    assert sum(road.counts) == 2


def test_a_flicker_and_a_speck_are_no_visits():
    road = Road()
    road.frame((0, 8, 10, 4, 5))
    road.empty(2)
    for _ in range(20):
        road.frame((0, 8, 10, 1, 3))
    road.empty(2)
    assert road.counts == []


def test_what_is_never_seen_whole_has_no_kind():
    road = Road()
    for _ in range(20):
        road.frame((0, 0, 10, 6, 5))
    road.empty(2)
    assert road.counts == []


def test_a_frequent_kind_becomes_known_and_another_on_its_path_is_strange():
    road = Road()
    assert road.cross(0)[-1].known < 0.5
    for _ in range(7):
        last = road.cross(0)
    assert last[-1].known == 1.0
    other = road.cross(1, height=6, width=6)
    assert other[-1].known == 0.0
    assert other[-1].strange == 1.0


def test_with_tell_every_no_kind_becomes_known():
    road = Road(tell="every")
    for _ in range(8):
        last = road.cross(0)
    assert last[-1].known == 0.0


def test_with_tell_first_of_kind_the_second_is_known():
    road = Road(tell="first_of_kind")
    assert road.cross(0)[-1].known == 0.0
    assert road.cross(0)[-1].known == pytest.approx(1.0, abs=0.01)  # half-lives count


def test_looking_teaches_nothing():
    road = Road()
    road.cross(0)
    before = {name: array.tobytes() for name, array in road.visits.state().items()}
    unlikeness = np.full(N, 2.0, np.float32)
    rows = SimpleNamespace(plain=np.zeros((N, DIMS), np.float32), colours=np.zeros((N, 3), np.float32), grid_shape=GRID)
    road.visits.look(unlikeness, rows)
    assert {name: array.tobytes() for name, array in road.visits.state().items()} == before


def test_what_is_known_is_no_news_and_neither_is_its_fringe():
    seen = known_one()
    (sighting,) = seen
    news = news_of(seen, GRID, np.zeros(N, np.float32)).reshape(GRID)
    top, left, bottom, right = (int(edge) for edge in sighting.box)
    assert sighting.known > 0.9
    np.testing.assert_allclose(news[top - 1 : bottom + 1, left - 1 : right + 1], 1.0 - sighting.known)
    news[top - 1 : bottom + 1, left - 1 : right + 1] = 1.0
    np.testing.assert_array_equal(news, 1.0)


def test_a_usual_kind_says_nothing_of_a_stranger_who_is_not_told_apart_from_it():
    seen = known_one()
    (sighting,) = seen
    familiar = np.zeros(N, np.float32)
    stranger, others = sighting.patches[:5], sighting.patches[5:]
    familiar[others] = 1.0
    news = news_of(seen, GRID, familiar)
    mean = len(others) / len(sighting.patches)
    np.testing.assert_allclose(news[stranger], 1.0 - sighting.known * (1.0 - mean), rtol=1e-6)
    np.testing.assert_allclose(news[others], 1.0 - sighting.known, rtol=1e-6)


def test_a_usual_kind_that_is_too_rare_to_be_familiar_is_no_news_as_a_whole():
    seen = known_one()
    (sighting,) = seen
    news = news_of(seen, GRID, np.full(N, 0.1, np.float32))
    np.testing.assert_allclose(news[sighting.patches], 1.0 - sighting.known, rtol=1e-6)


def test_memory_does_not_grow_with_visits():
    road = Road()
    before = road.visits.memory_bytes()
    for which in (0, 1, 2, 3):
        road.cross(which)
    assert road.visits.memory_bytes() == before
    assert before["visits"] < 600_000


@pytest.mark.parametrize("at", [30, 47])
def test_restored_visits_go_on_with_the_same_bits(at):
    def play(road, begin, end):
        told = []
        for i in range(begin, end):
            column = 2 * (i % 18) - 4
            told += [(s.known, s.strange, s.box) for s in road.frame((0, 8, column, 4, 5), (1, 14, 20 - column, 3, 4))]
        return told

    whole, half, resumed = Road(), Road(), Road()
    play(whole, 0, at), play(half, 0, at)
    resumed.visits.restore(half.visits.state())
    resumed.i, resumed.rng = half.i, half.rng
    assert play(resumed, at, 90) == play(whole, at, 90)
