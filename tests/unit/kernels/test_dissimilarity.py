"""Dissimilarity kernels against sums written out, and their edges: empty, one row, zero, constant, huge."""

import numba
import numpy as np
import pytest
from reference_kernels_exemplars import chi_square, sqeuclidean

from stillwatch.kernels import dissimilarity as kernels


def finished(x, y, scale=1.0, is_root=0):
    norms = [np.zeros(len(rows), np.float32) for rows in (x, y)]
    for rows, out in zip((x, y), norms, strict=True):
        kernels.squared_norms(rows, out)
    gram = x @ y.T
    kernels.finish_euclidean(*norms, scale, is_root, gram)
    return gram


def rows(n, d, seed=0, scale=1.0):
    return (scale * np.random.default_rng(seed).random((n, d))).astype(np.float32)


@pytest.mark.parametrize(("n", "m", "d"), [(5, 3, 4), (1, 1, 1), (0, 3, 4), (4, 0, 2)])
def test_inner_products_become_squared_distances(n, m, d):
    x, y = rows(n, d), rows(m, d, 1)
    wanted = np.array([[sqeuclidean(a, b) for b in y] for a in x]).reshape(n, m)
    np.testing.assert_allclose(finished(x, y), wanted, atol=1e-6)


def test_the_root_of_the_scaled_value_is_taken_when_asked():
    x, y = rows(3, 4), rows(2, 4, 1)
    wanted = [[np.sqrt(0.5 * sqeuclidean(a, b)) for b in y] for a in x]
    np.testing.assert_allclose(finished(x, y, 0.5, 1), wanted, rtol=1e-5)


@pytest.mark.parametrize("scale", [1e-18, 1.0, 1e15])
def test_no_rounding_makes_a_dissimilarity_negative_or_infinite(scale):
    x = rows(30, 8, scale=scale)
    found = finished(x, np.ascontiguousarray(x[::-1]))
    assert np.isfinite(found).all()
    assert (found >= 0.0).all()


@pytest.mark.parametrize(("n", "m"), [(5, 3), (1, 1), (0, 2)])
def test_chi_square_is_the_sum_over_bins_that_either_row_has(n, m):
    x, y = rows(n, 6), rows(m, 6, 1)
    x[:, 2] = 0.0
    y[:, 2:4] = 0.0
    out = np.full((m, n), np.nan, np.float32)
    kernels.chi_square(x, y, out)
    wanted = np.array([[chi_square(a, b) for a in x] for b in y]).reshape(m, n)
    np.testing.assert_allclose(out, wanted, rtol=1e-5, atol=1e-7)


def test_chi_square_of_empty_histograms_is_zero():
    out = np.full((2, 2), np.nan, np.float32)
    kernels.chi_square(np.zeros((2, 4), np.float32), np.zeros((2, 4), np.float32), out)
    assert (out == 0.0).all()


def test_a_users_function_is_called_with_the_point_first():
    @numba.njit
    def farther_above(point, exemplar):
        return max(0.0, exemplar[0] - point[0])

    out = np.zeros((2, 3), np.float32)
    points = np.array([[0.0], [1.0], [5.0]], np.float32)
    kernels.pairwise_kernel(farther_above)(points, np.array([[2.0], [4.0]], np.float32), out)
    assert out.tolist() == [[2.0, 1.0, 0.0], [4.0, 3.0, 0.0]]
