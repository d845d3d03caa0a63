"""The fixed camera's strategy, whole: the same events from any start, in a quiet place and in a busy one."""

from dataclasses import replace

import numpy as np
import pytest

from stillwatch.base.camera import FIXED
from stillwatch.epochs.models import Models
from stillwatch.features.rows import Lighting, Rows
from stillwatch.novelty.places.unlikeness import Unlikeness
from stillwatch.novelty.rules import LEAST_LEVEL, LEAST_LEVEL_DEVIATION
from stillwatch.novelty.strategy import Sizes
from stillwatch.settings.config import Config

GRID, DIMS, NS = (12, 16), 16, 1_000_000_000
N = GRID[0] * GRID[1]
TOLD = 500.0


# What crossed the first frames is a component of the mixture: the strategy must judge without it.
MODELS = Models({}, epoch=0, activated_frame=0)


def rows_of(plain: np.ndarray, valid=None) -> Rows:
    y, x = np.mgrid[: GRID[0], : GRID[1]]
    centres = np.column_stack([(x.ravel() + 0.5) / GRID[1], (y.ravel() + 0.5) / GRID[0]]).astype(np.float32)
    patches = np.hstack([plain, centres]).astype(np.float32)
    valid = np.ones(N, bool) if valid is None else valid
    colours, frame = np.zeros((N, 3), np.float32), np.zeros(20, np.float32)
    words = np.zeros((0, 3), np.float32), np.zeros(0, bool), (0, 0)
    return Rows(patches, plain, valid, centres, GRID, colours, frame, FIXED, True, *words)


class Scene:
    """A wall of places under noise; things, 5 x 5 patches of their own look, stand where they are put."""

    def __init__(self, seed=0):
        self._rng = np.random.default_rng(seed)
        self._looks = self._rng.normal(0.0, 0.4, (*GRID, DIMS)).astype(np.float32)
        self._thing = 0.8 * self._rng.normal(size=(5, 5, DIMS)).astype(np.float32)

    def other(self):
        """From now on things have another look."""
        self._thing = 0.8 * self._rng.normal(size=(5, 5, DIMS)).astype(np.float32)

    def change(self, columns):
        """From now on so many columns of the wall have another look."""
        self._looks[:, :columns] = self._rng.normal(0.0, 0.4, (GRID[0], columns, DIMS))

    def frame(self, *corners):
        picture = self._looks + self._rng.normal(0.0, 0.02, (*GRID, DIMS)).astype(np.float32)
        for row, column in corners:
            first, last = max(column, 0), max(min(column + 5, GRID[1]), 0)
            picture[row : row + 5, first:last] = self._thing[:, first - column : last - column]
        return np.ascontiguousarray(picture.reshape(N, DIMS))


def make() -> Unlikeness:
    return Unlikeness(Config(), Sizes(N, DIMS, DIMS + 2))


def told(strategy: Unlikeness, scene: Scene, where, n, begin=0, rate=5) -> list[int]:
    """Watch frames `begin` to `begin + n`; return those that are rare enough for an alert."""
    found = []
    for i in range(begin, begin + n):
        rows = rows_of(scene.frame(*where(i)))
        judgement = strategy.judge(rows, round(i / rate * NS))
        strategy.learn(rows, judgement, round(i / rate * NS), in_event=judgement.rarity >= TOLD)
        if judgement.rarity >= TOLD:
            found.append(i)
    return found


def test_each_view_of_the_camera_has_a_baseline_of_its_own_that_is_found_again():
    strategy, here, there = make(), Scene(), Scene()
    there.change(columns=6)

    def watch(scene, view, n, begin):
        """Watch a still scene; return the last frame's judgement."""
        for i in range(begin, begin + n):
            rows = replace(rows_of(scene.frame()), view=view)
            judgement = strategy.judge(rows, i * NS // 5)
            strategy.learn(rows, judgement, i * NS // 5, in_event=False)
        return judgement

    told = watch(here, 0, 100, 0), watch(there, 1, 12, 100), watch(here, 0, 10, 112), watch(there, 1, 10, 122)
    assert all(judgement.was_judged and not (judgement.surprise > 1.0).any() for judgement in told)
    assert watch(there, 0, 1, 132).stands_out.mean() > 0.3  # where nobody says so, what is other is news


def test_after_a_step_of_the_white_balance_who_comes_is_told_and_names_are_not_believed():
    strategy, scene = make(), Scene()

    def watch(n, begin, white, *corners):
        """Watch frames whose colours all have a shift; return the last one's judgement."""
        for i in range(begin, begin + n):
            rows = rows_of(scene.frame(*corners))
            colours = rows.colours + np.random.default_rng(i).normal(0.0, 0.01, rows.colours.shape) + white
            rows = replace(rows, colours=colours.astype(np.float32))
            judgement = strategy.judge(rows, i * NS // 5)
            strategy.learn(rows, judgement, i * NS // 5, in_event=False)
        return judgement

    calm = watch(150, 0, 0.0)
    assert (calm.was_judged, calm.was_named) == (True, True)
    warm = watch(5, 150, (0.0, -0.12, 0.12))
    assert (warm.was_judged, warm.was_named) == (True, False)
    assert warm.rarity < TOLD
    assert watch(3, 155, (0.0, -0.12, 0.12), (4, 6)).rarity >= TOLD


def test_a_shadow_on_the_wall_is_not_news_and_who_stands_in_it_is():
    strategy, scene = make(), Scene()
    contrast, bright = np.full(N, 0.5, np.float32), np.full(N, 160.0, np.float32)
    no_axis, origin = np.zeros((2, DIMS), np.float32)

    def lit(plain, share, told=True):
        """Return rows of a wall of which six columns have so much of the light."""
        part = np.zeros(GRID, bool)
        part[:, :6] = True
        gain = np.where(part.ravel(), share, 1.0).astype(np.float32)
        lighting = Lighting(contrast * gain, (bright + 16.0) * gain - 16.0, no_axis, origin)
        return replace(rows_of(plain * gain[:, None]), lighting=lighting if told else None)

    for i in range(150):
        rows = lit(scene.frame(), 1.0)
        strategy.learn(rows, strategy.judge(rows, i * NS // 5), i * NS // 5, in_event=False)
    dark = scene.frame()
    assert strategy.judge(lit(dark, 0.6, told=False), 30 * NS).stands_out.mean() > 0.2
    # Two columns beside the shadow's edge are in light that their neighbours have half of.
    assert strategy.judge(lit(dark, 0.6), 30 * NS).stands_out.reshape(GRID)[:, :4].mean() < 0.02
    there = strategy.judge(lit(scene.frame((4, 0)), 0.6), 30 * NS).stands_out.reshape(GRID)
    assert there[5:8, 1:4].all()
    assert not there[:2, :4].any()


def crossing(begin, row=4):
    """Return where a thing is that enters at a frame and crosses, two places a frame."""
    return lambda i: [(row, 2 * (i - begin))] if 0 <= i - begin < 6 else []


def test_a_quiet_place_is_silent_and_who_crosses_it_is_told_where_they_are():
    strategy, scene = make(), Scene()
    assert told(strategy, scene, crossing(150), 200) == list(
        range(151, 156)
    )  # who is there for one frame is nobody yet
    judgement = strategy.judge(rows_of(scene.frame((4, 6))), 41 * NS)
    x0, y0, x1, y1 = judgement.regions[0].box
    assert x0 <= 6 / 16 < 11 / 16 <= x1
    assert y0 <= 4 / 12 < 9 / 12 <= y1


def test_who_crossed_the_first_seconds_is_told_when_they_come_again():
    strategy, scene = make(), Scene(1)
    visits = [crossing(3), crossing(150), crossing(220)]
    found = told(strategy, scene, lambda i: [c for visit in visits for c in visit(i)], 260)
    assert set(range(151, 156)) <= set(found)
    assert set(range(221, 226)) <= set(found)
    assert all(150 <= i < 156 or 220 <= i < 226 for i in found if i > 30)


def test_a_path_that_is_never_empty_is_silent_and_who_leaves_it_is_told():
    strategy, scene = make(), Scene(2)

    def path(i):
        return [(1, (2 * i) % 12), (1, (2 * i + 6) % 12)]

    told(strategy, scene, path, 600)
    quiet = told(strategy, scene, path, 200, begin=600)
    off = told(strategy, scene, lambda i: [*path(i), (7, i - 800), (7, i - 800 + 6)], 5, begin=800)
    assert quiet == []
    assert off


def test_usual_traffic_is_counted_and_another_kind_on_its_path_is_told():
    strategy, scene = make(), Scene(6)

    def often(i):
        return [(4, i % 40 - 5)] if i % 40 < 22 else []  # every 8 s, whole in half of its frames

    early = told(strategy, scene, often, 120)
    told(strategy, scene, often, 280, begin=120)
    late = told(strategy, scene, often, 200, begin=400)
    assert [i for i in early if i > 40]
    assert late == []
    assert strategy.kinds[0].count >= 5
    scene.other()
    assert told(strategy, scene, lambda i: [(4, i - 605)], 22, begin=600)


def crowd(i):
    """Return where things are that keep three lanes busy nearly all the time, each at times of its own."""
    lanes = ((0, 31), (3, 37), (6, 41))  # row, frames from one to the next
    things = [(row + i // every % 2, i % every // 2 - 4) for row, every in lanes]
    return [(row, column) for row, column in things if column < GRID[1]]


@pytest.mark.parametrize("seed", [2, 3])
def test_once_it_is_known_who_comes_a_place_that_never_rests_is_as_quiet_as_an_empty_one(seed):
    strategy, scene, other = make(), Scene(seed), Scene(seed + 10)
    told(strategy, scene, crowd, 1800)  # six minutes
    for i in range(1800, 1804):
        picture = scene.frame(*crowd(i)).reshape(*GRID, DIMS)
        picture[7:12, i - 1800 : i - 1795] = other.frame((7, 2)).reshape(*GRID, DIMS)[7:12, 2:7]  # who never came
        rows = rows_of(picture.reshape(N, DIMS))
        judgement = strategy.judge(rows, i * NS // 5)
        strategy.learn(rows, judgement, i * NS // 5, in_event=False)
    assert judgement.statistics[0] > LEAST_LEVEL
    assert judgement.value > 0.9 * judgement.statistics[0] / LEAST_LEVEL_DEVIATION


def test_masked_places_are_never_told():
    strategy, scene = make(), Scene(3)
    told(strategy, scene, lambda i: [], 100)
    valid = np.ones(GRID, bool)
    valid[3:10] = False
    judgement = strategy.judge(rows_of(scene.frame((4, 6)), valid.ravel()), 21 * NS)
    assert judgement.regions == []


def test_a_grid_of_another_shape_begins_anew():
    strategy, scene = make(), Scene(4)
    told(strategy, scene, lambda i: [], 60)
    rows = rows_of(scene.frame())
    turned = replace(rows, grid_shape=GRID[::-1])
    assert strategy.judge(turned, 13 * NS).statistics == (0.0,)


def test_a_restored_strategy_judges_with_the_same_bits():
    scene = Scene(5)
    frames = [rows_of(scene.frame(*crossing(80)(i))) for i in range(120)]
    whole, half, resumed = make(), make(), make()

    def watch(strategy, begin, end):
        values = []
        for i in range(begin, end):
            judgement = strategy.judge(frames[i], i * NS // 5)
            values.append((judgement.value, judgement.deviations.tobytes()))
            strategy.learn(frames[i], judgement, i * NS // 5, in_event=False)
        return values

    expected = watch(whole, 0, 120)
    watch(half, 0, 70)
    resumed.restore(half.state())
    assert watch(resumed, 70, 120) == expected[70:]


def test_rain_is_no_news_and_who_comes_in_it_is_told():
    strategy, scene, rng = make(), Scene(7), np.random.default_rng(8)

    def rain():
        """Six drops of two by two patches, anew in each frame."""
        drops = np.zeros((*GRID, DIMS), np.float32)
        for row, column in rng.integers(0, (GRID[0] - 1, GRID[1] - 1), (6, 2)):
            drops[row : row + 2, column : column + 2] = rng.normal(0.0, 0.8, DIMS)
        return drops.reshape(N, DIMS)

    told(strategy, scene, lambda i: [], 300)
    found = []
    for i in range(300, 400):
        where = [(4, i - 370)] if 370 <= i < 386 else []
        rows = rows_of(scene.frame(*where) + rain())
        judgement = strategy.judge(rows, round(i / 5 * NS))
        strategy.learn(rows, judgement, round(i / 5 * NS), in_event=judgement.rarity >= TOLD)
        found += [i] * (judgement.rarity >= TOLD)
    assert [i for i in found if not 370 <= i < 387] == []
    assert set(range(371, 379)) <= set(found)


def test_a_picture_that_is_another_everywhere_is_no_news_and_who_comes_after_it_is_told():
    """Snow everywhere, thick on ledges, six places of sixteen: what stands out is no shared shift of all."""
    strategy, scene, rng = make(), Scene(4), np.random.default_rng(9)
    assert told(strategy, scene, lambda i: [], 150) == []
    calm, (y, x) = scene._looks, np.mgrid[: GRID[0], : GRID[1]]
    depth = np.where((y % 4 < 2) & (x % 4 < 3), 0.8, 0.05)[..., None]
    scene._looks = (calm + rng.normal(0.0, depth, (*GRID, DIMS))).astype(np.float32)
    assert told(strategy, scene, lambda i: [], 60, begin=150) == []
    scene._looks = calm
    assert told(strategy, scene, crossing(240), 60, begin=210) == list(range(241, 246))
