"""Gaussians as small integers: how far off, what a beginning is good for, and codes that come back."""

import numpy as np
import pytest

from stillwatch.transport.mirror import bits
from stillwatch.transport.mirror.values import (
    COARSE,
    FINE,
    STEPS,
    covariance_of,
    divergence,
    divergences,
    from_moments,
    n_rows,
    origin,
    quantise,
    reconstruct,
)
from stillwatch.transport.wire.bitpack import BitReader, BitWriter
from stillwatch.transport.wire.errors import DecodeError


def moments(seed, d, is_full):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(d, d)) * np.exp(rng.normal(size=(d, 1))) + np.eye(d)
    covariance = root @ root.T
    return 5.0 * rng.normal(size=d), covariance if is_full else np.diag(covariance).copy()


@pytest.mark.parametrize("is_full", [False, True])
def test_divergences_of_pairs_are_those_of_each_pair_by_itself(is_full):
    rng = np.random.default_rng(3)
    spreads = [np.diag(variances) if is_full else variances for variances in rng.uniform(0.1, 4.0, (10, 3))]
    gaussians = [from_moments(rng.normal(size=3), spread) for spread in spreads]
    targets, known = gaussians[:5], gaussians[5:]
    one_by_one = [divergence(target, other) for target, other in zip(targets, known, strict=True)]
    assert divergences(targets, known).tolist() == one_by_one
    assert divergences([], []).shape == (0,)


@pytest.mark.parametrize("is_full", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_moments_come_back(seed, is_full):
    mean, covariance = moments(seed, 7, is_full)
    gaussian = from_moments(mean, covariance)
    np.testing.assert_array_equal(gaussian.mean, mean)
    np.testing.assert_allclose(covariance_of(gaussian), covariance, rtol=1e-8)


@pytest.mark.parametrize("is_full", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_error_in_white_units_is_about_a_step_however_correlated(seed, is_full):
    mean, covariance = moments(seed, 8, is_full)
    target = from_moments(mean, covariance)
    coarse = reconstruct(quantise(target, origin(8, is_full), COARSE, True), origin(8, is_full), COARSE, True)
    fine = reconstruct(quantise(target, coarse, FINE, False), coarse, FINE, False)
    for found, level in ((coarse, COARSE), (fine, FINE)):
        spread, _, step = STEPS[level]
        assert np.abs(found.log_spread - target.log_spread).max() <= spread / 2 + 1e-9
        whitener = found.whitener if is_full else np.diag(2.0**-found.log_spread)
        assert np.abs(whitener @ (found.mean - mean)).max() <= step / 2 + 1e-9
    assert divergence(target, fine) < 0.05
    assert divergence(target, fine) < divergence(target, coarse)


def test_divergence_is_that_of_the_textbook():
    one = from_moments(np.array([1.0, 2.0]), np.array([[2.0, 0.5], [0.5, 1.0]]))
    two = from_moments(np.array([0.0, 1.0]), np.array([[1.0, -0.2], [-0.2, 3.0]]))
    p, q = covariance_of(one), covariance_of(two)
    shift = two.mean - one.mean
    inverse = np.linalg.inv(q)
    expected = 0.5 * (np.trace(inverse @ p) - 2 + shift @ inverse @ shift + np.log(np.linalg.det(q) / np.linalg.det(p)))
    assert divergence(one, two) == pytest.approx(expected, rel=1e-9)
    assert divergence(one, one) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("is_full", [False, True])
def test_a_beginning_is_the_gaussian_of_the_first_dimensions(is_full):
    mean, covariance = moments(3, 6, is_full)
    values = quantise(from_moments(mean, covariance), origin(6, is_full), COARSE, True)
    whole = reconstruct(values, origin(6, is_full), COARSE, True)
    rows = 3
    begin = values[: sum(2 + (row if is_full else 0) for row in range(rows))]
    assert n_rows(len(begin), 6, is_full) == rows
    assert n_rows(len(begin) - 1, 6, is_full) == rows - 1
    part = reconstruct(begin, origin(6, is_full), COARSE, True)
    np.testing.assert_array_equal(part.mean[:rows], whole.mean[:rows])
    np.testing.assert_array_equal(part.log_spread[:rows], whole.log_spread[:rows])


def test_singular_and_zero_covariances_have_a_gaussian_all_the_same():
    ones = from_moments(np.zeros(3), np.ones((3, 3)))
    assert np.isfinite(covariance_of(ones)).all()
    assert np.isfinite(covariance_of(from_moments(np.zeros(3), np.zeros((3, 3))))).all()
    assert np.isfinite(covariance_of(from_moments(np.zeros(3), np.zeros(3)))).all()


@pytest.mark.parametrize("parameter", [0, 3, 15])
def test_rice_codes_come_back_in_the_bits_foretold(parameter):
    values = bits.zigzag(np.array([0, -1, 1, 7, -300, 40_000, -(2**21), 2**21]))
    writer = BitWriter()
    for value in values:
        bits.write_rice(writer, int(value), parameter)
    assert writer.n_bits == bits.rice_bits(values, parameter).sum()
    reader = BitReader(writer.to_bytes())
    found = [bits.unzigzag(bits.read_rice(reader, parameter)) for _ in values]
    assert found == [0, -1, 1, 7, -300, 40_000, -(2**21), 2**21]


def test_gamma_codes_come_back_in_the_bits_foretold():
    numbers = [0, 1, 2, 3, 100, 2**31]
    writer = BitWriter()
    for number in numbers:
        bits.write_gamma(writer, number)
    assert writer.n_bits == sum(bits.gamma_bits(number) for number in numbers)
    reader = BitReader(writer.to_bytes())
    assert [bits.read_gamma(reader) for _ in numbers] == numbers
    with pytest.raises(DecodeError, match="48 bits"):
        bits.read_gamma(BitReader(bytes(20)))


@pytest.mark.parametrize("count", [0.5, 1.0, 12.0, 3e4, 1e9])
def test_counts_are_within_two_percent(count):
    assert bits.count_of(bits.count_code(count)) == pytest.approx(count, rel=0.022)
