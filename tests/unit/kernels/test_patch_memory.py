"""Distance to the nearest of what was kept, against plain NumPy."""

import numpy as np
import pytest

from stillwatch.kernels import patch_memory as kernels


def world(seed, n_rows=7, capacity=40, n_dims=5):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_rows, n_dims)).astype(np.float32), rng.normal(size=(n_dims, capacity)).astype(np.float32)


@pytest.mark.parametrize("n", [1, 2, 17, 40])
def test_distance_to_the_nearest_kept_is_the_least_of_all(n):
    rows, columns = world(n)
    out = np.zeros(len(rows), np.float32)
    kernels.nearest_kept(rows, columns, n, np.zeros(40, np.float32), out)
    wanted = np.linalg.norm(rows[:, :, None] - columns[None, :, :n], axis=1).min(axis=1)
    np.testing.assert_allclose(out, wanted, rtol=1e-5)


def test_a_row_that_is_kept_is_at_no_distance():
    rows, columns = world(3)
    columns[:, 11] = rows[2]
    out = np.ones(len(rows), np.float32)
    kernels.nearest_kept(rows, columns, 40, np.zeros(40, np.float32), out)
    assert out[2] == 0.0
    assert (np.delete(out, 2) > 0.0).all()


@pytest.mark.parametrize(("n_groups", "size"), [(1, 1), (3, 4), (10, 4), (2, 20)])
def test_distance_to_each_group_is_the_least_of_its_own(n_groups, size):
    rows, columns = world(n_groups)
    out = np.full((len(rows), 12), -1.0, np.float32)
    kernels.nearest_of_groups(rows, columns, n_groups, size, np.zeros(40, np.float32), out)
    distances = np.linalg.norm(rows[:, :, None] - columns[None, :, : n_groups * size], axis=1)
    np.testing.assert_allclose(out[:, :n_groups], distances.reshape(len(rows), n_groups, size).min(axis=2), rtol=1e-5)
    assert (out[:, n_groups:] == -1.0).all()
