"""The thinned grid of a moving camera's patches, and back."""

import numpy as np
import pytest

from stillwatch.novelty.rules import STRIDE
from stillwatch.novelty.strangeness import spread_out, thinned


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
