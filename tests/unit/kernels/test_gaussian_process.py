"""Cholesky factors that grow and shrink against fresh ones, and the algebra of swaps against the definition."""

import numpy as np
import pytest
from reference_kernels_exemplars import explained_variance, gaussian_covariance, information

from stillwatch.kernels import gaussian_process as kernels

LENGTHS, SIGNAL, NOISE = np.array([1.0, 0.7, 2.0]), 1.4, 0.03


def covariance(rows):
    return gaussian_covariance(rows, rows, LENGTHS, SIGNAL) + NOISE * np.eye(len(rows))


def rows(n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 3))


def factor_of(x, capacity):
    factor = np.full((capacity, capacity), np.nan)  # what is above the diagonal must not be read
    sigma = covariance(x)
    for n in range(len(x)):
        assert kernels.cholesky_append(np.ascontiguousarray(sigma[n, :n]), sigma[n, n], n, factor) == 0
    return factor


def lower(factor, n):
    return np.tril(np.nan_to_num(factor[:n, :n]))


@pytest.mark.parametrize("n", [1, 2, 9])
def test_a_factor_grown_row_by_row_is_the_fresh_one(n):
    x = rows(n)
    np.testing.assert_allclose(lower(factor_of(x, n + 2), n), np.linalg.cholesky(covariance(x)), atol=1e-12)


@pytest.mark.parametrize("k", [0, 3, 8])
def test_a_row_taken_out_leaves_the_factor_of_the_rest(k):
    x = rows(9)
    factor = factor_of(x, 9)
    kernels.cholesky_delete(k, 9, factor)
    wanted = np.linalg.cholesky(covariance(np.delete(x, k, axis=0)))
    np.testing.assert_allclose(np.abs(lower(factor, 8)), np.abs(wanted), atol=1e-12)
    np.testing.assert_allclose(lower(factor, 8) @ lower(factor, 8).T, wanted @ wanted.T, atol=1e-12)


def test_a_factor_stays_accurate_over_a_thousand_swaps_of_nearly_equal_rows():
    rng = np.random.default_rng(5)
    x = 0.05 * rows(20)
    factor = factor_of(x, 20)
    for _ in range(1000):
        k = int(rng.integers(20))
        new = 0.05 * rng.normal(size=(1, 3))
        kernels.cholesky_delete(k, 20, factor)
        x = np.vstack([np.delete(x, k, axis=0), new])
        column = gaussian_covariance(x[:19], new, LENGTHS, SIGNAL)[:, 0].copy()
        assert kernels.cholesky_append(column, SIGNAL + NOISE, 19, factor) == 0
    np.testing.assert_allclose(lower(factor, 20) @ lower(factor, 20).T, covariance(x), atol=1e-11)


def test_a_matrix_that_is_not_positive_definite_is_reported():
    factor = np.array([[1.0, 0.0], [0.0, 0.0]])
    assert kernels.cholesky_append(np.array([1.0]), 1.0, 1, factor) == 1
    assert kernels.cholesky_append(np.array([np.nan]), 1.0, 1, factor) == 1


@pytest.mark.parametrize("n", [1, 6])
def test_the_inverse_of_the_triangle_times_the_triangle_is_one(n):
    factor = factor_of(rows(n), n + 1)
    out = np.full((n, n), np.nan)
    kernels.triangular_inverse(factor, n, out)
    np.testing.assert_allclose(out @ lower(factor, n), np.eye(n), atol=1e-11)
    assert np.array_equal(np.triu(out, 1), np.zeros((n, n)))


def test_outer_products_are_added_to_the_leading_part():
    rng = np.random.default_rng(0)
    u, s, v, t = rng.random(3), rng.random(3), rng.random(2), rng.random(2)
    out = np.ones((4, 5))
    kernels.add_outer(2.0, u, v, out)
    kernels.add_outer_pair(-1.0, u, v, s, t, out)
    wanted = np.ones((4, 5))
    wanted[:3, :2] += np.outer(u, v) - np.outer(s, t)
    np.testing.assert_allclose(out, wanted, atol=1e-14)


class Swaps:
    """Everything the scores need, from the definitions."""

    def __init__(self, seed, k=4, b=6, n=30):
        self.x = rows(k + b, seed)
        self.points = rows(n, seed + 100)
        a, candidates = self.x[:k], self.x[k:]
        self.k, self.b = k, b
        self.p = np.linalg.inv(covariance(a))
        cross = gaussian_covariance(candidates, a, LENGTHS, SIGNAL)
        self.h = cross @ self.p
        self.r = gaussian_covariance(candidates, candidates, LENGTHS, SIGNAL) - self.h @ cross.T
        g = self.p @ gaussian_covariance(a, self.points, LENGTHS, SIGNAL)
        c = gaussian_covariance(candidates, self.points, LENGTHS, SIGNAL) - cross @ g
        self.q, self.m, self.c = g @ g.T, c @ g.T, c @ c.T

    def scores(self, kernel, *sums):
        gain, slot = np.zeros(self.b), np.zeros(self.b, np.int64)
        kernel(self.k, NOISE, self.p, self.h, self.r, *sums, gain, slot)
        return gain, slot

    def after(self, c, slot):
        active = list(range(self.k))
        active[slot] = self.k + c
        return active


@pytest.mark.parametrize("seed", range(5))
def test_variance_gains_of_swaps_are_those_of_the_definition(seed):
    swaps = Swaps(seed)
    gain, slot = swaps.scores(kernels.variance_swap_gains, swaps.q, swaps.m, swaps.c)
    given = (swaps.points, LENGTHS, SIGNAL, NOISE)
    now = explained_variance(swaps.x, range(4), *given)
    for c in range(swaps.b):
        wanted = [(explained_variance(swaps.x, swaps.after(c, j), *given) - now) * 30 for j in range(4)]
        assert gain[c] == pytest.approx(max(wanted), abs=1e-9)
        assert slot[c] == np.argmax(wanted)


@pytest.mark.parametrize("seed", range(5))
def test_entropy_gains_of_swaps_are_those_of_the_definition(seed):
    swaps = Swaps(seed)
    gain, slot = swaps.scores(kernels.entropy_swap_gains)
    now = information(swaps.x, range(4), LENGTHS, SIGNAL, NOISE)
    for c in range(swaps.b):
        wanted = [information(swaps.x, swaps.after(c, j), LENGTHS, SIGNAL, NOISE) - now for j in range(4)]
        assert gain[c] == pytest.approx(max(wanted), abs=1e-9)
        assert slot[c] == np.argmax(wanted)
