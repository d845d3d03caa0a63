"""Who looks like those who come all day is familiar, patch by patch, after minutes of watching and at their height."""

import numpy as np
import pytest

from stillwatch.base import FIXED
from stillwatch.features import Rows
from stillwatch.novelty.rules import HABITUATED_S, HABITUATION_BEGINS_S, MARKED_SECONDS, MOST_MARKS
from stillwatch.novelty.visits.habituation import Habituation
from stillwatch.novelty.visits.sightings import Sighting, box_of

NS, RATE = 1_000_000_000, 5
GRID = (20, 24)
N, N_PATCH_DIMS = GRID[0] * GRID[1], 4
BLUE, RED = (4.6, 0.8, -0.6), (4.2, -0.5, 0.9)  # logarithms of green, blue over green, red over green
PATH_ROW, LAWN_ROW = 3, 14


def someone(row: int, column: int, wide: int = 4) -> np.ndarray:
    rows, columns = np.mgrid[row : row + 4, column : column + wide]
    return (rows * GRID[1] + columns).ravel()


def rows_of(who: list[tuple[np.ndarray, tuple]], t: int) -> Rows:
    """Rows of a grey place with people of these patches and colours, under a little noise of frame `t`."""
    colours = np.full((N, 3), (4.4, 0.0, 0.0), np.float32)
    for patches, colour in who:
        colours[patches] = colour
    colours += np.random.default_rng(t).normal(0.0, 0.02, (N, 3)).astype(np.float32)
    blank = np.zeros((N, N_PATCH_DIMS), np.float32)
    return Rows(
        patches=blank, plain=blank, valid=np.ones(N, bool), centres=np.zeros((N, 2), np.float32), grid_shape=GRID,
        colours=colours, frame=np.zeros(3, np.float32), rule=FIXED, ready=True, words=blank,
        word_valid=np.ones(N, bool), word_shape=GRID,
    )  # fmt: skip


def sightings_of(who: list[tuple[np.ndarray, tuple]], visit: int) -> list[Sighting]:
    return [Sighting(np.sort(patches), box_of(patches, GRID[1]), 8.0, visit=visit) for patches, _ in who]


def watch(habituation: Habituation, seconds: float, every_s: float, colour=BLUE, row=PATH_ROW, begin_s=0.0) -> float:
    """Let someone cross for two seconds every `every_s`; return when it ends."""
    for t in range(round(begin_s * RATE), round((begin_s + seconds) * RATE)):
        place = (t / RATE) % every_s
        who = [(someone(row, int(8 * place)), colour)] if place < 2.0 else []
        rows = rows_of(who, t)
        visit = int(t / RATE / every_s)
        habituation.learn(habituation.mark(sightings_of(who, visit), rows), rows, t * NS // RATE)
    return begin_s + seconds


def familiarity(habituation: Habituation, *who: tuple[np.ndarray, tuple]) -> list[float]:
    """Return how familiar each of these looks, on the mean of their patches."""
    out = np.full(N, -1.0, np.float32)
    group = np.sort(np.concatenate([patches for patches, _ in who]))
    marked = habituation.mark([Sighting(group, box_of(group, GRID[1]), 8.0)], rows_of(list(who), 99))
    habituation.familiar(marked, GRID, out)
    return [float(out[patches].mean()) for patches, _ in who]


def made() -> Habituation:
    return Habituation(N_PATCH_DIMS, 3600.0, seed=1)


def test_who_comes_every_ten_seconds_is_familiar_after_five_minutes():
    habituation = made()
    watch(habituation, HABITUATED_S + 5, every_s=10)
    assert familiarity(habituation, (someone(PATH_ROW, 9), BLUE))[0] > 0.9


def test_nobody_is_familiar_in_the_first_minutes():
    habituation = made()
    watch(habituation, HABITUATION_BEGINS_S - 5, every_s=4)
    assert familiarity(habituation, (someone(PATH_ROW, 9), BLUE)) == [0.0]


def test_another_look_is_not_familiar():
    habituation = made()
    watch(habituation, HABITUATED_S + 5, every_s=10)
    assert familiarity(habituation, (someone(PATH_ROW, 9), RED))[0] < 0.1


def test_the_same_look_at_another_height_is_not_familiar():
    habituation = made()
    watch(habituation, HABITUATED_S + 5, every_s=10)
    assert familiarity(habituation, (someone(LAWN_ROW, 9), BLUE))[0] < 0.1


def test_who_comes_once_in_two_minutes_is_not_familiar():
    habituation = made()
    watch(habituation, 900, every_s=120)
    assert familiarity(habituation, (someone(PATH_ROW, 9), BLUE)) == [0.0]


def test_of_two_who_touch_each_is_told_for_himself():
    habituation = made()
    watch(habituation, HABITUATED_S + 5, every_s=10)
    usual, other = familiarity(habituation, (someone(PATH_ROW, 0, 12), BLUE), (someone(PATH_ROW, 12, 12), RED))
    assert usual > 0.5
    assert other < 0.3


def test_what_is_usual_no_more_becomes_news_with_half_lives():
    habituation = Habituation(N_PATCH_DIMS, 120.0, seed=1)
    end = watch(habituation, HABITUATED_S + 60, every_s=10)
    before = familiarity(habituation, (someone(PATH_ROW, 9), BLUE))[0]
    watch(habituation, 900, every_s=10, colour=RED, begin_s=end)
    assert familiarity(habituation, (someone(PATH_ROW, 9), BLUE))[0] < 0.5 * before
    assert familiarity(habituation, (someone(PATH_ROW, 9), RED))[0] > 0.9


def test_a_frame_is_marked_at_no_more_patches_than_there_is_room_for():
    everywhere = np.arange(N)
    (marked,) = made().mark([Sighting(everywhere, box_of(everywhere, GRID[1]), 8.0)], rows_of([], 0))
    assert len(marked.marked) == len(marked.marks) == MOST_MARKS
    assert (np.diff(marked.marked) > 0).all()


def test_nobody_there_teaches_only_that_time_goes_by():
    habituation = made()
    for t in range(100):
        habituation.learn([], rows_of([], t), t * NS)
    state = habituation.state()
    assert float(state["seen.watched_s"]) == pytest.approx(99.0, rel=0.02)
    assert float(state["seen.present_s"]) == 0.0
    assert int(state["seen.held"]) == 0


def test_as_many_seconds_are_kept_as_there_is_room_for():
    habituation = made()
    watch(habituation, 6 * MARKED_SECONDS, every_s=4)
    assert int(habituation.state()["seen.held"]) == MARKED_SECONDS
    assert habituation.memory_bytes()["habituation"] < 250_000


def test_reset_forgets_everybody():
    habituation = made()
    watch(habituation, HABITUATED_S + 5, every_s=10)
    habituation.reset()
    assert all(np.array_equal(value, made().state()[name]) for name, value in habituation.state().items())


def test_a_sighting_without_marks_is_left_as_it_is():
    sighting = Sighting(someone(3, 3), box_of(someone(3, 3), GRID[1]), 8.0)
    out = np.zeros(N, np.float32)
    habituation = made()
    watch(habituation, HABITUATED_S + 5, every_s=10)
    habituation.familiar([sighting], GRID, out)
    assert not out.any()
