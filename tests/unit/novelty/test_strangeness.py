"""A moving camera: what lies far from all that was kept; the thinned grid of patches, and back."""

import numpy as np
import pytest

from stillwatch.base import MOVING
from stillwatch.features.rows import Rows
from stillwatch.novelty.rules import STRIDE
from stillwatch.novelty.strangeness import Strangeness, spread_out, thinned
from stillwatch.novelty.strategy import Sizes
from stillwatch.settings.config import Config

GRID, DIMS, NS = (12, 16), 18, 1_000_000_000


@pytest.mark.parametrize("grid", [(1, 1), (4, 6), (5, 7), (2, 3)])
def test_a_thinned_grid_stands_for_the_patches_beside_each_of_its_own(grid):
    rows, columns = np.indices(grid)
    values = (100 * rows + columns).astype(np.float32).ravel()
    small = thinned(values, grid)
    out = np.full(grid, -1.0, np.float32)
    spread_out(small.reshape(-(-grid[0] // STRIDE), -(-grid[1] // STRIDE)), out)
    np.testing.assert_array_equal(out, 100 * (rows // STRIDE * STRIDE) + columns // STRIDE * STRIDE)


def test_rows_are_thinned_whole():
    values = np.arange(4 * 6 * 3, dtype=np.float32).reshape(24, 3)
    np.testing.assert_array_equal(thinned(values, (4, 6)), values[[0, 2, 4, 12, 14, 16]])
    assert thinned(values, (4, 6)).flags.c_contiguous


def view(seed: int, far: float = 0.0, colour: float = 0.0) -> Rows:
    """Rows of usual ground; a tenth of the patches, side by side, lie apart, or have another colour."""
    rng = np.random.default_rng(seed)
    patches = rng.normal(0.0, 0.1, (GRID[0] * GRID[1], DIMS)).astype(np.float32)
    thing = patches.reshape(*GRID, DIMS)[4:8, 4:8]
    thing[..., 0] += far
    thing[..., -1] += colour
    y, x = np.indices(GRID)
    centres = np.stack([(x.ravel() + 0.5) / GRID[1], (y.ravel() + 0.5) / GRID[0]], axis=1).astype(np.float32)
    everywhere, nothing = np.ones(len(patches), bool), np.zeros(0, np.float32)
    plain = patches[:, :-2].copy()
    return Rows(
        patches, plain, everywhere, centres, GRID, patches[:, :3], nothing, MOVING, True, nothing, nothing > 0, (0, 0)
    )


def watched(frames: int) -> Strangeness:
    """A strategy that has seen usual ground, four frames a second."""
    strategy = Strangeness(Config(), Sizes(GRID[0] * GRID[1], DIMS - 2, DIMS))
    for i in range(frames):
        watch(strategy, view(i), i)
    return strategy


def watch(strategy: Strangeness, rows: Rows, i: int, *, in_event: bool = False) -> float:
    """Judge and learn the frame of the i-th quarter of a second; return its value."""
    judgement = strategy.judge(rows, i * NS // 4)
    strategy.learn(rows, judgement, i * NS // 4, in_event=in_event)
    return judgement.value


@pytest.mark.parametrize("thing", [{"far": 2.0}, {"colour": 0.8}])
def test_what_is_unlike_all_that_was_seen_is_news_and_outlined(thing):
    strategy = watched(80)
    usual, news = (strategy.judge(view(999, **shown), 20 * NS) for shown in ({}, thing))
    assert news.value > usual.value + 2.0
    left, top, right, bottom = news.regions[0].box
    assert left < 5.5 / GRID[1] < right
    assert top < 5.5 / GRID[0] < bottom


def test_a_colour_counts_more_than_the_same_step_in_a_descriptor():
    strategy = watched(80)
    colour, descriptor = (
        strategy.judge(view(999, **shown), 20 * NS).value for shown in ({"colour": 0.5}, {"far": 0.5})
    )
    assert colour > 1.5 * descriptor


def test_usual_frames_are_worth_about_nothing():
    strategy = watched(80)
    values = [strategy.judge(view(1000 + i), (20 + i) * NS).value for i in range(20)]
    assert abs(float(np.median(values))) < 1.0


def test_what_came_in_view_stays_news_for_seconds_and_is_usual_once_it_is_known():
    strategy = watched(80)
    values = [watch(strategy, view(2000 + i, far=2.0), 80 + i, in_event=True) for i in range(60)]
    assert min(values[:9]) > 0.7 * values[0]  # two and a quarter seconds
    assert max(values[-10:]) < 0.3 * values[0]


def test_an_event_teaches_nothing_of_what_is_usual():
    strategy, other = watched(80), watched(80)
    before = strategy.state()
    for i in range(8):
        watch(strategy, view(2000 + i, far=2.0), 80 + i, in_event=True)
        watch(other, view(2000 + i, far=2.0), 80 + i)
    for part in ("usual", "spread", "calibration"):
        own = [name for name in before if name.startswith(f"{part}.")]
        assert own
        assert all(np.array_equal(before[name], strategy.state()[name]) for name in own)
        assert not all(np.array_equal(before[name], other.state()[name]) for name in own)


@pytest.mark.parametrize("rate", [4, 30, 60])
def test_nothing_is_learnt_of_what_is_usual_before_anything_is_remembered(rate):
    strategy = Strangeness(Config(), Sizes(GRID[0] * GRID[1], DIMS - 2, DIMS))
    values = []
    for i in range(8 * rate):
        judgement = strategy.judge(view(i), i * NS // rate)
        strategy.learn(view(i), judgement, i * NS // rate, in_event=False)
        values.append(judgement.value)
    assert max(abs(value) for value in values) < 4.0  # a frame of the usual is usual from the first that is judged on


def test_a_view_with_an_even_part_is_judged_for_good():
    """A letterbox, an overlay, the hull: what never varies beside what does."""
    strategy, told = Strangeness(Config(), Sizes(GRID[0] * GRID[1], DIMS - 2, DIMS)), []
    for i in range(200):
        rows = view(i)
        rows.patches.reshape(*GRID, DIMS)[8:] = 0.25
        told.append(watch(strategy, rows, i))
    assert np.isfinite(told).all()
    strategy.restore(strategy.state())


def test_rows_are_judged_and_learnt_as_they_came():
    strategy, rows = watched(20), view(7)
    before = rows.patches.copy()
    watch(strategy, rows, 20)
    np.testing.assert_array_equal(rows.patches, before)


def test_one_patch_alone_is_judged_and_left_as_it_came():
    config, one = Config(), np.ones(1, bool)
    strategy = Strangeness(config, Sizes(1, DIMS - 2, DIMS))
    patches, nothing = np.full((1, DIMS), 0.5, np.float32), np.zeros(0, np.float32)
    rows = Rows(
        patches, patches[:, :-2], one, np.full((1, 2), 0.5, np.float32), (1, 1), patches[:, :3], nothing, MOVING, True,
        nothing, nothing > 0, (0, 0),
    )  # fmt: skip
    assert np.isfinite([watch(strategy, rows, i) for i in range(20)]).all()
    np.testing.assert_array_equal(patches, 0.5)
