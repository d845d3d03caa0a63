"""A moving camera: what lies far from all that was kept, or is unlikely; the thinned grid of patches, and back."""

import numpy as np
import pytest

from stillwatch.base import MOVING
from stillwatch.epochs import Models
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


class OneGround:
    """A mixture of one component, under which every row is as likely as its second value says."""

    n_components, ids = 1, np.array([0])

    def score_and_label(self, x, score, label):
        score[:], label[:] = 10.0 - 10.0 * x[:, 1], 0


MODELS = Models({"patches": OneGround()}, epoch=1, activated_frame=0)


def view(seed: int, far: float = 0.0, unlikely: float = 0.0) -> Rows:
    """Rows of usual ground; a tenth of the patches, side by side, lie apart, or have another likelihood."""
    rng = np.random.default_rng(seed)
    patches = rng.normal(0.0, 0.1, (GRID[0] * GRID[1], DIMS)).astype(np.float32)
    thing = patches.reshape(*GRID, DIMS)[4:8, 4:8]
    thing[..., 0] += far
    thing[..., 1] += unlikely
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
        judgement = strategy.judge(view(i), MODELS, i * NS // 4)
        strategy.learn(view(i), judgement, i * NS // 4, in_event=False)
    return strategy


@pytest.mark.parametrize("thing", [{"far": 2.0}, {"unlikely": 0.8}])
def test_what_is_strange_by_either_measure_is_news_and_outlined(thing):
    strategy = watched(80)
    usual, news = (strategy.judge(view(999, **shown), MODELS, 20 * NS) for shown in ({}, thing))
    assert news.value > usual.value + 2.0
    left, top, right, bottom = news.regions[0].box
    assert left < 5.5 / GRID[1] < right
    assert top < 5.5 / GRID[0] < bottom


def test_a_frame_that_is_usual_by_one_measure_does_not_hide_what_the_other_says():
    strategy = watched(80)
    alone = strategy.judge(view(999, far=2.0), MODELS, 20 * NS).value
    both = strategy.judge(view(999, far=2.0, unlikely=-0.8), MODELS, 20 * NS).value
    assert both > 0.7 * alone


def test_usual_frames_are_worth_about_nothing():
    strategy = watched(80)
    values = [strategy.judge(view(1000 + i), MODELS, (20 + i) * NS).value for i in range(20)]
    assert abs(float(np.median(values))) < 1.0
