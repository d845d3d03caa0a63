"""Where something often is, something is little news; where nothing is ever empty, that decides."""

import numpy as np
import pytest

from stillwatch.novelty.places.traffic import Traffic
from stillwatch.novelty.rules import LEAST_WEIGHT

GRID, PLACES, NS = (10, 12), 120, 1_000_000_000


def traffic() -> Traffic:
    made = Traffic(PLACES, halflife_s=3600.0)
    made.reset(GRID)
    return made


def weights(of: Traffic) -> np.ndarray:
    out = np.zeros(PLACES, np.float32)
    of.weights(out)
    return out.reshape(GRID)


def watch(of: Traffic, seconds, there, empty=lambda t: 0.0, begin_s=0.0, rate=5):
    """Watch so many seconds; `there(t)` is where something is, (rows, columns) bool."""
    for i in range(round(seconds * rate)):
        t = begin_s + i / rate
        of.learn(np.where(there(t).ravel(), 2.0, 0.0).astype(np.float32), empty(t), round(t * NS))


def row(k, present=True) -> np.ndarray:
    picture = np.zeros(GRID, bool)
    picture[k] = present
    return picture


def test_a_path_weighs_less_than_the_lawn_beside_it():
    seen = traffic()
    watch(seen, 300, lambda t: row(1, t % 4 < 1))
    found = weights(seen)
    assert found[1].max() < 0.7
    assert found[8].min() == 1.0


def test_who_stays_counts_a_moment_and_who_comes_again_counts_again():
    stays, comes = traffic(), traffic()
    watch(stays, 300, lambda t: row(1, 100 < t < 200))
    watch(comes, 300, lambda t: row(1, 100 < t < 200 and t % 4 < 1))
    assert weights(stays)[1].min() > weights(comes)[1].max()


def test_where_often_nothing_is_every_place_counts_fully():
    seen = traffic()
    watch(seen, 300, lambda t: row(1, t % 4 < 1), empty=lambda t: t % 4 >= 1)
    assert seen.emptiness == 1.0
    np.testing.assert_array_equal(weights(seen), 1.0)


def test_a_place_is_as_empty_as_its_frames_are_on_the_mean():
    seen = traffic()
    watch(seen, 3000, lambda t: row(1), empty=lambda t: 0.15)
    assert seen.emptiness == pytest.approx(0.5, abs=0.02)  # half-way from BUSY_SHARE to EMPTY_SHARE


def test_no_place_loses_its_say():
    seen = traffic()
    watch(seen, 600, lambda t: np.ones(GRID, bool) & (t % 2 < 1))
    assert weights(seen).min() == pytest.approx(LEAST_WEIGHT)


def test_old_traffic_is_forgotten_by_half_lives():
    seen = Traffic(PLACES, halflife_s=60.0)
    seen.reset(GRID)
    watch(seen, 120, lambda t: row(1, t % 4 < 1))
    before = weights(seen)[1].max()
    watch(seen, 600, lambda t: row(8, t % 4 < 1), begin_s=120)
    assert weights(seen)[1].min() > before
