"""The same event again is told some times, then counted, as long as it is no more than it was."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from stillwatch.base.camera import FIXED, MOVING
from stillwatch.events.life import EventLife
from stillwatch.events.repeats import Repeats, sign_of
from stillwatch.events.rules import EVENT_STATES, UNSETTLED_S
from stillwatch.features.rows import Rows
from stillwatch.novelty import Precedents
from stillwatch.novelty.regions import Region
from stillwatch.novelty.score import Score
from stillwatch.settings.config import EventsConfig

GRID, DIMS, NS = (8, 12), 20, 1_000_000_000
N = GRID[0] * GRID[1]
LOOKS = np.random.default_rng(0).normal(0.0, 0.4, (N, DIMS)).astype(np.float32)


def scored(corner=(1, 1), look=0.0, colour=(4.0, 0.0, 0.0), watched_s=1e4, rule=FIXED, value=6.0, rarity=1e4) -> Score:
    """Return the score of a frame in which a thing of 3 x 3 patches is novel."""
    novelty = np.zeros(GRID, np.float32)
    novelty[corner[0] : corner[0] + 3, corner[1] : corner[1] + 3] = 5.0
    colours = np.tile(np.float32(colour), (N, 1))
    nothing, flags = np.zeros((0, 4), np.float32), np.zeros(0, bool)
    plain = LOOKS + np.float32(look)
    rows = Rows(plain, plain, np.ones(N, bool), nothing, GRID, colours, nothing, rule, True, nothing, flags, (0, 0))
    x, y = corner[1] / GRID[1], corner[0] / GRID[0]
    region = Region((x, y, x + 0.25, y + 0.375), (x + 0.1, y + 0.2), 30.0, 9, 0)
    before = Precedents(watched_s=watched_s)
    return Score(value, rarity, 0.0, novelty, None, False, 1.0, [region], 3, 0, rows, None, before)


def counted(repeats: Repeats, times_s, made=None, lasts_s=1.0) -> list[bool]:
    """Let an event of one frame begin at each time and last; return which of them were counted, not told."""
    found = []
    for t_s in times_s:
        repeats.see(made or scored(), round(t_s * NS))
        found.append(repeats.is_usual(round((t_s + lasts_s) * NS), round(lasts_s * NS)))
        repeats.end(round(lasts_s * NS))
    return found


def shown(repeats: Repeats, t_s, frames, every_s=0.2) -> list[bool]:
    """Show one event's frames; return of each whether the event was counted by then, not told."""
    found = []
    for i, score in enumerate(frames):
        lasted_ns = round(i * every_s * NS)
        repeats.see(score, round(t_s * NS) + lasted_ns)
        found.append(repeats.is_usual(round(t_s * NS) + lasted_ns, lasted_ns))
    repeats.end(round((len(frames) - 1) * every_s * NS))
    return found


def habitual(**settings) -> Repeats:
    """Return one that knows an event that comes each minute."""
    repeats = Repeats(EventsConfig(**settings))
    counted(repeats, range(0, 60 * 8, 60))
    return repeats


def test_an_event_that_comes_each_minute_is_told_twice_and_then_counted():
    assert counted(Repeats(EventsConfig()), range(0, 600, 60)) == [False] * 2 + [True] * 8


def test_in_the_first_minutes_everything_is_told():
    early = scored(watched_s=UNSETTLED_S - 1.0)
    assert counted(Repeats(EventsConfig()), range(0, 600, 60), early) == [False] * 10


def test_all_are_told_or_the_first_alone_to_who_wants_that():
    assert counted(Repeats(EventsConfig(tell="every")), range(0, 600, 60)) == [False] * 10
    assert counted(Repeats(EventsConfig(tell="first_of_kind")), range(0, 600, 60)) == [False] + [True] * 9


@pytest.mark.parametrize(
    "other",
    [{"corner": (4, 8)}, {"look": 0.05}, {"colour": (4.0, 0.3, 0.0)}, {"colour": (5.0, 0.0, 0.0)}],
    ids=["elsewhere", "of another look", "of another colour", "much brighter"],
)
def test_another_event_is_told(other):
    assert counted(habitual(), [480], scored(**other)) == [False]
    assert counted(habitual(), [480]) == [True]


def test_light_that_changes_a_little_makes_no_other_event():
    assert counted(habitual(), [480], scored(colour=(4.3, 0.05, -0.05))) == [True]


def test_what_was_away_for_longer_than_ever_is_told_once():
    repeats = habitual()
    assert counted(repeats, [480, 580, 680]) == [True, False, True]  # 60 s between two so far, then 100


def test_what_lasts_longer_than_it_ever_did_is_told():
    assert counted(habitual(), [480], lasts_s=3.0) == [False]


SHADE = [scored(corner=(2, column)) for column in range(0, 9, 2)]  # a shade that crosses the view


def test_an_event_that_begins_as_another_looked_in_its_midst_is_the_same_again():
    repeats = Repeats(EventsConfig())
    for t_s in (0, 60, 120):
        shown(repeats, t_s, SHADE)
    assert shown(repeats, 180, SHADE[2:]) == [True] * 3
    assert not any(shown(repeats, 240, [scored(corner=(5, 4))]))  # where it never was


def test_what_looks_a_little_other_each_time_is_counted_all_the_same():
    # Rain: each time of a look of its own, none of them seen twice, all of them the same again.
    drops = np.random.default_rng(5).normal(0.0, 0.02, (12, 3))
    events = [scored(colour=(4.0 + light, red, blue)) for light, red, blue in drops.tolist()]
    repeats = Repeats(EventsConfig())
    found = [counted(repeats, [60 * i], made)[0] for i, made in enumerate(events)]
    assert found == [False] * 2 + [True] * 10


def test_who_comes_into_the_midst_of_a_usual_event_is_told_after_a_second():
    repeats = Repeats(EventsConfig())
    for t_s in (0, 60, 120):
        shown(repeats, t_s, SHADE)
    somebody = [scored(corner=(4, 8), look=0.3)] * 10
    assert shown(repeats, 180, SHADE[:2] + somebody, every_s=0.1) == [True] * 12  # .9 s by the last frame
    assert (
        shown(repeats, 240, SHADE[:2] + [scored(corner=(5, 0), look=-0.3)] * 7, every_s=0.2) == [True] * 7 + [False] * 2
    )


def test_an_event_that_looks_other_for_a_moment_stays_counted():
    repeats = Repeats(EventsConfig())
    for t_s in (0, 60, 120):
        shown(repeats, t_s, SHADE)
    drop = scored(corner=(5, 5), look=0.3)
    assert shown(repeats, 180, [SHADE[0], drop, drop, SHADE[1], drop, drop, SHADE[2]]) == [True] * 7


def test_an_event_is_not_counted_for_its_own_frames():
    # A still scene: each frame of the first event looks as its first did.
    assert shown(Repeats(EventsConfig()), 0, [scored()] * 20) == [False] * 20


def test_under_a_camera_that_moves_and_where_nothing_is_novel_nothing_is_remembered():
    assert sign_of(scored(rule=MOVING)) is None
    assert sign_of(replace(scored(), patch_map=np.zeros(GRID, np.float32))) is None
    assert counted(Repeats(EventsConfig()), range(0, 600, 60), scored(rule=MOVING)) == [False] * 10


def test_a_sign_is_the_mean_of_what_is_novel():
    sign = sign_of(scored(corner=(2, 3)))
    inside = LOOKS.reshape(*GRID, DIMS)[2:5, 3:6].reshape(9, DIMS)
    np.testing.assert_allclose(sign.look, inside.mean(axis=0)[:16], atol=1e-6)
    # rows 2, 3 and 4 and columns 3, 4, 5 of blocks of 2 x 3: row 2 and 3 in block row 1, row 4 in 2, all in column 1
    np.testing.assert_allclose(sign.layout.reshape(4, 4)[[1, 2], 1], np.array([6.0, 3.0]) / np.sqrt(45.0), atol=1e-6)
    assert np.linalg.norm(sign.layout) == pytest.approx(1.0)


def test_what_came_once_and_was_not_seen_for_longest_gives_way_before_what_came_often():
    repeats = Repeats(EventsConfig())
    counted(repeats, range(0, 1500, 300), scored(look=-0.5))
    for k in range(EVENT_STATES):
        counted(repeats, [1201 + 0.5 * k], scored(colour=(4.0, 0.3 * k, 0.0)))
    assert counted(repeats, [1500.0], scored(look=-0.5)) == [True]
    assert counted(repeats, [2000.0, 2001.0], scored()) == [False, False]  # forgotten: new, and again
    assert repeats.memory_bytes()["repeats"] < 100_000


def test_a_restart_in_the_midst_of_an_event_remembers():
    repeats, resumed = habitual(), Repeats(EventsConfig())
    repeats.see(scored(), 480 * NS)
    resumed.restore(repeats.state())
    assert resumed.is_usual(481 * NS, NS)


def play(life: EventLife, t_s: float, score: Score, seconds: float) -> list:
    """Show a frame's score for some seconds, ten times a second, then calm; return what was told."""
    told, calm = [], replace(scored(), value=0.0, rarity=1.0, regions=[])
    verdict = SimpleNamespace(scene_change=False, known_scene=False)
    for i in range(round(seconds * 10) + 30):
        frame = SimpleNamespace(sequence=0, t_ns=round((t_s + i / 10) * NS))
        told += life.update(frame, score if i < seconds * 10 else calm, verdict, None)
    return [record.phase for record in told]


def test_an_alert_of_the_same_is_held_back_and_counted_until_it_is_more():
    life = EventLife(EventsConfig())
    phases = [play(life, t_s, scored(), 1.0) for t_s in range(1, 600, 60)]
    assert [bool(told) for told in phases] == [True] * 2 + [False] * 8
    assert life.suppressed == {"repeated": 8}
    assert play(life, 601, scored(), 4.0)[0] == "new"  # it lasts longer than ever
