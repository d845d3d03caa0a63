"""Rounded covariances: variances kept, correlations within their step, positive definite whatever was put in."""

import numpy as np
import pytest
import reference_kernels_mixture as reference

from stillwatch.kernels import mixture_rounded as rounded

D = 6
LOW = np.tril_indices(D)


def covariance(seed, n_points=40, n_dims=D):
    """Return the covariance of correlated points; fewer points than dimensions make it singular."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n_points, n_dims)) @ rng.normal(size=(n_dims, n_dims)) * np.geomspace(0.01, 10.0, n_dims)
    return np.cov(rows.T, bias=True)


def encoded(squares, count=7.0):
    n = len(squares)
    second, codes = np.zeros((n, D + 1), np.float32), np.zeros((n, D * (D - 1) // 2), np.int8)
    for i, square in enumerate(squares):
        rounded.encode(np.ascontiguousarray(square[LOW]) * count, count, np.zeros((D, D)), second[i], codes[i])
    return second, codes


def decoded(second, codes, clump=0):
    packed, square = np.zeros(len(LOW[0])), np.zeros((D, D))
    rounded.decode(second, codes, clump, np.zeros((D, D)), packed)
    square[LOW] = packed
    return square + np.tril(square, -1).T


def correlations(square):
    deviation = np.sqrt(np.diag(square))
    return square / np.outer(deviation, deviation)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n_points", [2, 5, 40, 1000])
def test_variances_are_kept_and_correlations_are_off_by_a_few_steps(n_points, seed):
    square = covariance(seed, n_points)
    second, codes = encoded([square])
    found = decoded(second, codes)
    np.testing.assert_allclose(np.diag(found), np.diag(square), rtol=1e-6)
    assert second[0, D] <= 1.0 / 127.0
    # An entry is a sum of products of two factor entries, each off by half a step; rows are of unit length.
    assert np.abs(correlations(found) - correlations(square)).max() < 0.5 * np.sqrt(D) * second[0, D] * 2
    assert np.linalg.eigvalsh(correlations(found)).min() > 0.0


@pytest.mark.parametrize("seed", range(5))
def test_decoding_equals_the_slow_reference(seed):
    second, codes = encoded([covariance(seed), covariance(seed + 10, 3)])
    for clump in range(2):
        expected = reference.decode_rounded(second[clump], codes[clump])
        np.testing.assert_allclose(decoded(second, codes, clump), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_what_was_rounded_once_is_hardly_changed_by_rounding_again(seed):
    once = decoded(*encoded([covariance(seed)]))
    second, codes = encoded([once])
    assert np.abs(correlations(decoded(second, codes)) - correlations(once)).max() < 2e-4 + second[0, D]


@pytest.mark.parametrize("square", [
    np.zeros((D, D)), np.ones((D, D)), np.diag([0.0, 1.0, 0.0, 1e12, 1e-30, 2.0]), -np.ones((D, D)) + 2 * np.eye(D),
], ids=["zero", "one direction", "some zero", "indefinite"])  # fmt: skip
def test_matrices_without_an_inverse_stay_finite(square):
    found = decoded(*encoded([square]))
    assert np.isfinite(found).all()
    np.testing.assert_allclose(np.diag(found), np.diag(square), rtol=1e-6, atol=1e-37)
    assert np.linalg.eigvalsh(found).min() >= -1e-9 * np.diag(square).max()


def test_moments_and_traces_are_those_of_the_decoded_clumps():
    second, codes = encoded([covariance(s) for s in range(4)])
    squares = [decoded(second, codes, s) for s in range(4)]
    rows, weights = np.array([0, 2, 3, 7]), np.array([1.5, 0.0, 4.0, 9.0])
    factor, packed, total = np.zeros((D, D)), np.zeros(len(LOW[0])), np.ones(len(LOW[0]))
    rounded.add_moments(second, codes, rows, weights, 4, factor, packed, total)
    np.testing.assert_allclose(total, 1.0 + (1.5 * squares[0] + 4.0 * squares[3])[LOW], rtol=1e-9)
    precision = covariance(9)
    doubled = (2.0 * precision - np.diag(np.diag(precision)))[LOW]
    out = np.zeros(4)
    rounded.subtract_traces(doubled, second, codes, rows, 4, factor, packed, out)
    expected = [-0.5 * np.trace(precision @ squares[s]) for s in (0, 2, 3)]
    np.testing.assert_allclose(out, [*expected, 0.0], rtol=1e-9)
    block = np.zeros((3, len(LOW[0])), np.float32)
    rounded.decode_block(second, codes, 1, 3, factor, packed, block)
    np.testing.assert_allclose(block, [square[LOW] for square in squares[1:]], rtol=1e-6, atol=1e-12)


def test_what_is_held_decoded_adds_and_subtracts_what_decoding_each_time_does():
    second, codes = encoded([covariance(s) for s in range(4)])
    rows, weights = np.array([0, 2, 3, 7]), np.array([1.5, 0.0, 4.0, 9.0])
    factor, packed, held = np.zeros((D, D)), np.zeros(len(LOW[0])), np.zeros((5, len(LOW[0])))
    rounded.decode_list(second, codes, rows, 3, factor, held)
    found, expected = np.ones((2, len(LOW[0])))
    rounded.add_decoded(held, 3, weights, found)
    rounded.add_moments(second, codes, rows, weights, 4, factor, packed, expected)
    np.testing.assert_array_equal(found, expected)
    precision, out, each = np.arange(1.0, 22.0), np.ones(4), np.ones(4)
    rounded.subtract_decoded(precision, held, 3, out)
    rounded.subtract_traces(precision, second, codes, rows, 4, factor, packed, each)
    np.testing.assert_allclose(out, each, rtol=1e-12)
