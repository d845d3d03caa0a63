"""Kinds are counted where and when they come: frequent ones are known, seldom ones are not, others are strange."""

import numpy as np
import pytest

from stillwatch.base import SnapshotError
from stillwatch.novelty.visits.kinds import Kinds
from stillwatch.novelty.visits.sightings import n_look_dims

NS, N_DIMS = 1_000_000_000, n_look_dims(4)
PATH = np.zeros((12, 16), bool)
PATH[3] = True
ON_PATH, FAR_OFF = (3, 5), (9, 5)
RNG = np.random.default_rng(0)
CAR, PERSON, DOG = RNG.normal(size=(3, N_DIMS))
WITHIN = np.full(N_DIMS, 0.01)  # the variance within a visit: its root, 0.1, is the unit of looks


def made(usual_per_hour=144.0, halflife_s=3600.0) -> Kinds:
    return Kinds(N_DIMS, halflife_s, usual_per_hour)


def watch(kinds: Kinds, visits, seconds: float, begin_s: float = 0.0) -> None:
    """Let time pass at 2 Hz; `visits` are (time, look) and end at that time."""
    for t in np.arange(begin_s, begin_s + seconds, 0.5):
        kinds.watch(round(t * NS))
        for at, look in visits:
            if at == t:
                kinds.spread_by(WITHIN, whole=True)
                kinds.pass_by(PATH, kinds.count(look, None, PATH, round(t * NS)))


def test_visits_that_look_alike_are_one_kind_with_its_times():
    kinds = made()
    watch(kinds, [(10, CAR), (20, CAR + 0.05), (30, PERSON)], 40)
    assert [(kind.count, kind.first_ns / NS, kind.last_ns / NS) for kind in kinds.kinds] == [(2, 10, 20), (1, 30, 30)]


def test_the_first_of_a_kind_is_not_known_and_the_tenth_of_a_frequent_one_is():
    kinds = made()
    watch(kinds, [(10, CAR)], 15)
    assert kinds.judge(CAR, ON_PATH)[0] < 0.5
    watch(kinds, [(15 + 8 * k, CAR) for k in range(1, 10)], 90, begin_s=15)
    assert kinds.judge(CAR, ON_PATH)[0] == 1.0


def test_a_kind_that_comes_as_seldom_as_may_be_told_stays_news():
    kinds = made()
    watch(kinds, [(60 * k, CAR) for k in range(1, 20)], 1200)
    assert kinds.judge(CAR, ON_PATH)[0] == pytest.approx((57 / 144) ** 2, abs=0.02)  # 19 visits in 1205 s


def test_a_usual_kind_where_it_never_went_is_news():
    kinds = made()
    watch(kinds, [(8 * k, CAR) for k in range(1, 12)], 100)
    assert kinds.judge(CAR, ON_PATH)[0] == 1.0
    assert kinds.judge(CAR, FAR_OFF)[0] == 0.0


def test_another_kind_on_the_same_path_is_strange_and_the_usual_one_is_not():
    kinds = made()
    watch(kinds, [(8 * k, CAR) for k in range(1, 12)], 100)
    assert kinds.judge(PERSON, ON_PATH) == (0.0, 1.0)
    assert kinds.judge(CAR + 0.05, ON_PATH) == (1.0, 0.0)


def test_nobody_is_strange_where_everybody_differs():
    kinds = made()
    watch(kinds, [(8 * k, look) for k, look in enumerate(RNG.normal(size=(12, N_DIMS)), start=1)], 120)
    assert kinds.judge(DOG, ON_PATH)[1] == 0.0


def test_who_was_not_seen_whole_is_expected_to_be_as_the_others_unless_they_look_otherwise():
    kinds = made()
    assert kinds.expected(ON_PATH) == 0.0
    for k in range(1, 12):
        kinds.spread_by(WITHIN, whole=False)
        watch(kinds, [(8 * k, CAR)], 8, begin_s=8 * k)
        kinds.count(CAR, CAR + 1.0, PATH, 8 * k * NS)
    assert kinds.expected(ON_PATH) > 0.9
    assert kinds.expected(ON_PATH, CAR + 1.0) == kinds.expected(ON_PATH)
    assert kinds.expected(ON_PATH, PERSON) == 0.0
    assert kinds.expected(FAR_OFF) == 0.0


def test_every_visit_is_told_or_only_the_first_of_a_kind_by_the_rate():
    every, first = made(np.inf), made(0.0)
    for kinds in (every, first):
        watch(kinds, [(8 * k, CAR) for k in range(1, 12)], 100)
        watch(kinds, [(101, PERSON)], 10, begin_s=100)
    assert every.judge(CAR, ON_PATH)[0] == 0.0
    assert first.judge(PERSON, ON_PATH)[0] == pytest.approx(1.0, abs=0.01)  # half-lives count
    assert first.judge(DOG, ON_PATH)[0] == 0.0


def test_how_often_a_kind_comes_is_forgotten_by_half_lives_and_its_count_is_not():
    kinds = made(halflife_s=60.0)
    watch(kinds, [(8 * k, CAR) for k in range(1, 12)], 100)
    watch(kinds, [], 600, begin_s=100)
    assert kinds.judge(CAR, ON_PATH)[0] < 0.1
    assert kinds.kinds[0].count == 11


def test_a_table_that_is_full_gives_up_the_kind_not_seen_for_longest():
    kinds = made()
    looks = 50.0 * np.arange(1, 50)[:, None] * np.ones(N_DIMS)
    watch(kinds, [(k, look) for k, look in enumerate(looks)], 60)
    assert len(kinds.kinds) == 48
    assert min(kind.first_ns for kind in kinds.kinds) == 1 * NS


def test_a_saved_table_with_a_kind_of_no_id_is_refused():
    kinds = made()
    watch(kinds, [(10, CAR)], 20)
    state = kinds.state()
    state["id"][0] = -2
    with pytest.raises(SnapshotError, match="kinds of visits: id"):
        kinds.restore(state)


def test_a_kind_that_begins_after_a_quiet_hour_is_known_after_four_visits():
    kinds = made(halflife_s=1e9)
    watch(kinds, [], 3000)
    watch(kinds, [(3000 + 7 * k, CAR) for k in range(1, 4)], 25, begin_s=3000)
    assert kinds.judge(CAR, ON_PATH)[0] < 0.1
    watch(kinds, [(3028, CAR)], 5, begin_s=3025)
    assert kinds.judge(CAR, ON_PATH)[0] == 1.0
    watch(kinds, [], 300, begin_s=3030)
    assert kinds.judge(CAR, ON_PATH)[0] < 0.1  # it has stayed away
