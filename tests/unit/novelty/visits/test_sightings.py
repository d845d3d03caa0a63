"""What a group of patches looks like: its size, and its more unlike half's rows and colours."""

import numpy as np
import pytest

from stillwatch.base.camera import FIXED
from stillwatch.features import Rows
from stillwatch.novelty.visits.sightings import look_of

N, GRID = 24, (4, 6)


def made_rows(seed):
    rng = np.random.default_rng(seed)
    plain, colours = rng.normal(size=(N, 5)).astype(np.float32), rng.uniform(0, 9, (N, 3)).astype(np.float32)
    flags, nothing = np.ones(N, bool), np.zeros((N, 0), np.float32)
    return Rows(plain, plain, flags, nothing, GRID, colours, nothing, FIXED, True, nothing, flags, (0, 0))


@pytest.mark.parametrize("n", [1, 2, 5, 6, 24])
def test_a_look_is_the_size_and_the_mean_of_the_more_unlike_half(n):
    rows, rng = made_rows(n), np.random.default_rng(n)
    patches = np.sort(rng.permutation(N)[:n])
    unlikeness = np.round(rng.uniform(0, 3, N), 1).astype(np.float32)  # some are equal
    half = [p for p in patches if unlikeness[p] >= np.median([unlikeness[q] for q in patches])]
    look = look_of(patches, unlikeness, rows, (1.0, 2.0, 3.0, 6.0))
    expected = [np.log(n), np.log(4.0), np.log(2.0)]
    expected += [np.mean([float(rows.plain[p, d]) for p in half]) for d in range(5)]
    expected += [np.mean([float(rows.colours[p, c]) for p in half]) for c in range(3)]
    expected += [np.std([float(rows.colours[p, c]) for p in half]) for c in range(3)]
    np.testing.assert_allclose(look, expected, rtol=1e-12, atol=1e-12)
