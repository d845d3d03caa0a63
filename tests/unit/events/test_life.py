"""The life of an alert: raised late enough, told once, merged, cooled down, kept within a budget, ended by itself."""

from types import SimpleNamespace

import msgspec
import numpy as np
import pytest

from stillwatch.base.camera import FIXED
from stillwatch.events.life import EventLife
from stillwatch.events.rules import UNSETTLED_S
from stillwatch.novelty import Precedents
from stillwatch.novelty.regions import Region
from stillwatch.novelty.score import Score
from stillwatch.settings.config import EventsConfig

RATE = 10
LEFT, RIGHT = (0.1, 0.1, 0.3, 0.3), (0.6, 0.6, 0.9, 0.9)
CALM = SimpleNamespace(scene_change=False, known_scene=False)
CONFIG = EventsConfig(
    raise_rarity=100.0, clear_rarity=10.0, min_frames=3, gap_s=0.5, cooldown_s=2.0, update_s=1.0, longest_s=60.0,
    alerts_per_hour=60.0, burst=3,
)  # fmt: skip


def score(rarity, box=LEFT, learning=False, component=7, labels=(), view=None, watched_s=0.0):
    found = []
    if box and rarity > 1:
        found = [Region(box, ((box[0] + box[2]) / 2, (box[1] + box[3]) / 2), 30.0, 6, 0)]
    return Score(
        value=float(np.log(rarity)),
        rarity=float(rarity),
        frame_surprise=0.0,
        patch_map=np.zeros((1, 1), np.float32),
        labels=np.array(labels, np.int64),
        learning=learning,
        progress=1.0,
        regions=found,
        component=component,
        t_ns=0,
        rows=None if view is None else SimpleNamespace(view=view, rule=FIXED),
        precedents=Precedents(watched_s=watched_s),
    )


def play(life, scores, first=0, verdicts=None):
    """Return (frame number, record) of everything told while `scores` come in; None is a refused frame."""
    told = []
    for i, item in enumerate(scores, first):
        frame = SimpleNamespace(sequence=i, t_ns=(i + 1) * 1_000_000_000 // RATE)
        if isinstance(item, int | float):
            item = score(item)
        told += [(i, record) for record in life.update(frame, item, (verdicts or {}).get(i, CALM), None)]
    return told


def phases(told):
    return [(i, record.phase) for i, record in told]


def test_nothing_is_told_of_common_frames():
    assert play(EventLife(CONFIG), [1, 5, 50, 99] * 50) == []


def test_an_alert_needs_its_frames_in_a_row():
    assert play(EventLife(CONFIG), [1, 500, 500, 1, 500, 500, 1] * 5) == []
    assert phases(play(EventLife(CONFIG), [1, 500, 500, 500])) == [(3, "new")]


def test_an_alert_says_when_it_began_and_how_rare():
    ((_, record),) = play(EventLife(CONFIG), [1, 500, 2000, 900])
    assert (record.start_sequence, record.start_t_ns) == (1, 200_000_000)
    assert (record.kind, record.rarity, record.component) == ("novel", 2000.0, 7)
    assert record.history[-3:].tolist() == [500.0, 2000.0, 900.0]
    assert 0.2 < record.severity < 1.0


def test_it_stays_open_above_the_lower_threshold_and_ends_a_gap_after_the_last_rare_frame():
    told = play(EventLife(CONFIG), [500] * 3 + [90] * 5 + [1] * 20)
    assert phases(told) == [(2, "new"), (12, "end")]
    assert told[-1][1].duration_s == pytest.approx(0.7)
    assert {record.id for _, record in told} == {0}


def test_short_gaps_are_bridged():
    told = play(EventLife(CONFIG), [500] * 3 + [1] * 4 + [500] * 3 + [1] * 20)
    assert [phase for _, phase in phases(told)] == ["new", "end"]


def test_a_long_event_is_updated_at_its_pace():
    told = play(EventLife(CONFIG), [500] * 35)
    assert phases(told) == [(2, "new"), (12, "update"), (22, "update"), (32, "update")]


def test_the_same_place_soon_after_is_not_a_new_alert_but_another_place_is():
    quiet = [1] * 10
    life = EventLife(CONFIG)
    told = play(life, [500] * 3 + quiet + [500] * 4 + quiet)
    assert [phase for _, phase in phases(told)] == ["new", "end"]
    assert life.suppressed == {"cooldown": 1}
    other = play(EventLife(CONFIG), [500] * 3 + quiet + [score(500, RIGHT)] * 4 + quiet)
    assert [phase for _, phase in phases(other)] == ["new", "end", "new", "end"]


def test_what_outlasts_the_cooldown_is_told_after_all():
    told = play(EventLife(CONFIG), [500] * 3 + [1] * 10 + [500] * 30)
    assert [phase for _, phase in phases(told)][:3] == ["new", "end", "new"]
    assert told[2][1].start_sequence == 13


def test_the_budget_is_a_burst_and_then_a_trickle():
    once = [500] * 3 + [1] * 30
    life = EventLife(CONFIG)
    told = play(life, once * 10)
    n_new = sum(record.phase == "new" for _, record in told)
    assert n_new == 3
    assert life.suppressed["budget"] == 7
    minute_later = play(life, [1] * 600 + [score(500, RIGHT)] * 3, first=330)
    assert sum(record.phase == "new" for _, record in minute_later) == 1


def visits(n, begin_s, every_s=5.0):
    """Return `n` visits, 0.3 s each, `every_s` apart, that nobody came before, from `begin_s` of watching on."""
    frames = []
    for i in range(n):
        novel = [score(500, watched_s=begin_s + every_s * i)] * 3
        frames += novel + [score(1, watched_s=begin_s + every_s * i + 1.0)] * (round(every_s * RATE) - 3)
    return frames


def test_what_was_told_before_anybody_could_be_usual_is_not_charged_to_what_comes_after():
    life = EventLife(CONFIG)
    first = play(life, visits(5, begin_s=0.0))
    assert [record.phase for _, record in first].count("new") == 3
    after = play(life, visits(5, begin_s=UNSETTLED_S), first=round(UNSETTLED_S * RATE))
    assert [record.phase for _, record in after].count("new") == 3
    later = play(life, visits(5, begin_s=UNSETTLED_S + 30.0), first=round((UNSETTLED_S + 30.0) * RATE))
    assert [record.phase for _, record in later].count("new") == 0


def test_a_restart_does_not_give_the_first_minutes_alerts_back_again():
    life, again = EventLife(CONFIG), EventLife(CONFIG)
    play(life, visits(4, begin_s=UNSETTLED_S))
    again.prepare(life.state())()
    told = play(again, visits(3, begin_s=UNSETTLED_S + 20.0), first=200)
    assert [record.phase for _, record in told] == []


def test_rare_frames_without_a_region_of_the_least_size_are_counted_not_told():
    life = EventLife(CONFIG)
    assert play(life, [score(500, box=())] * 10) == []
    assert life.suppressed == {"small": 1}


def test_what_lasts_too_long_is_ended_and_may_then_become_usual():
    life = EventLife(CONFIG)
    told = play(life, [500] * 700)
    assert [phase for _, phase in phases(told)][-1] == "end"
    assert not life.active
    assert play(life, [500] * 100, first=700) == []
    again = play(life, [1] * 30 + [score(500, RIGHT)] * 3, first=800)
    assert [record.phase for _, record in again] == ["new"]


def test_no_alert_while_learning():
    assert play(EventLife(CONFIG), [score(1e6, learning=True)] * 20) == []


def test_refused_frames_end_an_event_by_the_gap():
    told = play(EventLife(CONFIG), [500] * 3 + [None] * 20)
    assert phases(told) == [(2, "new"), (7, "end")]


def test_a_scene_change_is_told_once_and_ends_what_was_open():
    change = {5: SimpleNamespace(scene_change=True, known_scene=False)}
    told = play(EventLife(CONFIG), [500] * 5 + [1] * 10, verdicts=change)
    assert [(i, r.kind, r.phase) for i, r in told] == [
        (2, "novel", "new"),
        (5, "novel", "end"),
        (5, "scene_change", "new"),
        (5, "scene_change", "end"),
    ]


@pytest.mark.parametrize(("tell", "is_told"), [("first_of_kind", False), ("rare", False), ("every", True)])
def test_a_picture_that_was_normal_before_ends_what_was_open_and_is_told_to_who_wants_everything(tell, is_told):
    change = {5: SimpleNamespace(scene_change=True, known_scene=True)}
    life = EventLife(msgspec.structs.replace(CONFIG, tell=tell))
    told = [(i, r.kind, r.phase) for i, r in play(life, [500] * 5 + [1] * 10, verdicts=change)]
    assert told[:2] == [(2, "novel", "new"), (5, "novel", "end")]
    assert bool(told[2:]) == is_told


def test_a_view_that_the_camera_never_had_is_told_once_and_ends_what_was_open():
    in_view = [score(500, view=0)] * 5 + [score(1, view=1)] * 5 + [score(1, view=0)] * 5 + [score(1, view=1)] * 5
    assert [(i, r.kind, r.phase) for i, r in play(EventLife(CONFIG), in_view)] == [
        (2, "novel", "new"),
        (5, "novel", "end"),
        (5, "view_changed", "new"),
        (5, "view_changed", "end"),
    ]


def test_who_wants_everything_is_told_of_each_turn_of_the_camera():
    in_view = [score(1, view=i // 250 % 2) for i in range(1000)]
    told = play(EventLife(msgspec.structs.replace(CONFIG, tell="every")), in_view)
    assert [(i, r.kind) for i, r in told if r.phase == "new"] == [(n, "view_changed") for n in (250, 500, 750)]


def test_a_knock_that_the_gate_told_of_is_not_told_again():
    change = {5: SimpleNamespace(scene_change=True, known_scene=False)}
    in_view = [score(1, view=0)] * 60 + [score(1, view=1)] * 60
    told = play(EventLife(CONFIG), in_view, verdicts=change)
    assert [(i, r.kind) for i, r in told if r.phase == "new"] == [(5, "scene_change")]


def test_ids_rise_and_are_never_used_again():
    told = play(EventLife(CONFIG), ([score(500)] * 3 + [1] * 30 + [score(500, RIGHT)] * 3 + [1] * 30))
    assert [record.id for _, record in told] == [0, 0, 1, 1]


def test_finish_ends_the_open_event():
    life = EventLife(CONFIG)
    play(life, [500] * 5)
    (record,) = life.finish(SimpleNamespace(sequence=5, t_ns=600_000_000))
    assert record.phase == "end"
    assert life.open_id == -1


def test_a_restart_keeps_why_the_open_event_was_not_told():
    life = EventLife(CONFIG)
    play(life, [500] * 3 + [1] * 10 + [500] * 4)
    resumed = EventLife(CONFIG)
    resumed.restore(life.state())
    play(resumed, [500] * 2, first=17)
    assert resumed.suppressed == life.suppressed == {"cooldown": 1}


@pytest.mark.parametrize("cut", [1, 3, 8, 20, 47])
def test_a_restart_in_the_middle_tells_the_same(cut):
    rng = np.random.default_rng(cut)
    story = [float(v) for v in np.exp(rng.normal(3.5, 2.5, 60).clip(0, 12))]
    whole, first = EventLife(CONFIG), EventLife(CONFIG)
    expected = play(whole, story)
    told = play(first, story[:cut])
    resumed = EventLife(CONFIG)
    resumed.restore(first.state())
    told += play(resumed, story[cut:], first=cut)
    assert [(i, r.id, r.kind, r.phase, r.rarity) for i, r in told] == [
        (i, r.id, r.kind, r.phase, r.rarity) for i, r in expected
    ]
    assert all(np.array_equal(a, b) for a, b in zip(whole.state().values(), resumed.state().values(), strict=True))


def test_an_event_of_which_little_is_left_ends_though_not_all_is_usual_again():
    told = play(EventLife(CONFIG), [1e6] * 10 + [200] * 30)
    assert phases(told)[0] == (2, "new")
    assert phases(told)[-1] == (15, "end")
    assert sum(record.phase == "new" for _, record in told) == 1


def test_an_event_of_which_two_thirds_are_left_for_a_while_is_over_and_the_next_visit_is_told():
    """What was put down goes on to be unlike its place for seconds, and the hand comes back within them."""
    hand, left, elsewhere = 1e6, 6e3, score(1e6, RIGHT)  # values of 13.8 and 8.7
    told = play(EventLife(CONFIG), [hand] * 10 + [left] * 12 + [elsewhere] * 5)
    assert [(i, r.phase) for i, r in told if r.phase != "update"] == [(2, "new"), (15, "end"), (24, "new")]


def test_a_visit_that_wavers_is_one_event():
    wavers = [1e6, 1e6, 1e6, 6e3, 6e3, 6e3] * 8  # less than three tenths off, or for less than the gap
    assert sum(r.phase == "new" for _, r in play(EventLife(CONFIG), wavers)) == 1


def test_what_is_left_may_fade_and_what_comes_then_is_measured_against_the_rest():
    fading = [6e3] * 8 + [200] * 12
    weaker = [score(3e3, RIGHT)] * 4  # 1.5 times what is left by then, and less than was left at first
    told = play(EventLife(CONFIG), [1e6] * 10 + fading + weaker)
    assert [(i, r.phase) for i, r in told if r.phase == "new"] == [(2, "new"), (32, "new")]


def test_what_is_left_is_no_new_event_but_something_that_rises_above_it_is():
    after = [score(1e5, RIGHT)] * 3
    told = play(EventLife(CONFIG), [1e6] * 10 + [200] * 30 + after)
    assert [(i, r.phase) for i, r in told if r.phase == "new"] == [(2, "new"), (42, "new")]


def test_what_is_left_in_one_view_hides_nobody_in_another():
    life = EventLife(CONFIG)
    play(life, [score(1e6, view=0)] * 10 + [score(6e3, view=0)] * 10)
    learning = [score(1, learning=True, view=1)] * 16
    told = play(life, learning + [score(4e4, RIGHT, view=1)] * 5, first=20)
    assert [(r.kind, r.phase) for _, r in told if r.kind == "novel"] == [("novel", "new")]


def test_the_rest_of_an_event_may_become_usual():
    life = EventLife(CONFIG)
    play(life, [1e6] * 10 + [200] * 10)
    assert not life.active


def test_the_level_that_was_left_does_not_climb_along_with_what_comes_slowly():
    slowly = [score(float(rarity), RIGHT) for rarity in np.geomspace(300, 1e6, 25)]
    told = play(EventLife(CONFIG), [1e6] * 10 + [200] * 30 + slowly)
    assert sum(record.phase == "new" for _, record in told) == 2


def test_a_restart_keeps_what_is_left_of_an_event_and_how_many_there_were():
    life = EventLife(CONFIG)
    play(life, [1e6] * 10 + [200] * 20)
    resumed = EventLife(CONFIG)
    resumed.restore(life.state())
    assert resumed.n_events == life.n_events == 1
    assert play(resumed, [200] * 10, first=30) == []
    play(life, [200] * 10, first=30)
    rising = [score(5e3, RIGHT)] * 3
    assert phases(play(resumed, rising, first=40)) == phases(play(life, rising, first=40))
