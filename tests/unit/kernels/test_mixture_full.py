"""The full family's kernels against NumPy and the slow reference."""

import numpy as np
import pytest
import reference_kernels_mixture as reference

from stillwatch.kernels import mixture_full as full

PRIOR = np.array([0.01, 6.0, 0.3])
LOW = np.tril_indices(4)


def random_square(seed):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(4, 4))
    return a @ a.T + 0.1 * np.eye(4)


def fitted(count, mean, square):
    factor, whiten, post_mean, out, log_det = np.zeros((4, 4)), np.zeros((4, 4)), np.zeros(4), np.zeros(3), np.zeros(1)
    pull = PRIOR[0] * count / (PRIOR[0] + count)
    status = full.factor_scale(np.ascontiguousarray(square[LOW]), pull, mean, PRIOR[2], factor, log_det)
    full.posterior(count, mean, PRIOR, log_det[0], factor, whiten, post_mean, out)
    return status, whiten, post_mean, out, log_det[0]


@pytest.mark.parametrize("count", [0.0, 0.7, 12.0, 1e6])
def test_posterior_evidence_and_expectation(count):
    mean, square = np.array([0.5, -2.0, 0.0, 1.0]), random_square(1) * count
    status, whiten, post_mean, out, log_det = fitted(count, mean, square)
    part = reference.FullComponent(count, mean, square, PRIOR)
    assert status == 0
    np.testing.assert_allclose(whiten.T @ whiten, part.nu * part.inverse, rtol=1e-9)
    np.testing.assert_allclose(post_mean, part.mean, rtol=1e-12)
    assert log_det == pytest.approx(np.linalg.slogdet(part.scale)[1], rel=1e-12)
    expected = reference.log_evidence(count, mean, square, PRIOR, "full")
    assert out[1] == pytest.approx(expected, rel=1e-9, abs=1e-8)
    assert full.evidence(count, 4, PRIOR, log_det) == out[1]
    likelihood = count * part.expected_log_density(mean, square / count) if count else 0.0
    assert out[2] == pytest.approx(likelihood, rel=1e-9, abs=1e-8)
    assert out[2] - out[1] == pytest.approx(part.kl_from_prior(), rel=1e-6, abs=1e-6)


def test_an_indefinite_matrix_is_mended_by_jitter_and_a_hopeless_one_reduced_to_its_diagonal():
    almost = np.ones((4, 4)) * 1e6
    almost[0, 0] -= 1e-9
    factor, log_det = np.zeros((4, 4)), np.zeros(1)
    assert full.factor_scale(almost[LOW].copy(), 0.0, np.zeros(4), 1e-12, factor, log_det) == 1
    assert np.isfinite(log_det[0])
    hopeless = np.full((4, 4), 5.0)
    np.fill_diagonal(hopeless, [1.0, 2.0, 3.0, 4.0])
    assert full.factor_scale(hopeless[LOW].copy(), 0.0, np.zeros(4), 1e-12, factor, log_det) == 2
    np.testing.assert_allclose(np.diag(factor) ** 2, [1, 2, 3, 4], rtol=1e-3)
    assert log_det[0] == pytest.approx(np.log(24.0), rel=1e-3)


def test_gathered_rows_are_weighted_and_centred():
    x = np.random.default_rng(0).normal(size=(9, 4)).astype(np.float32)
    rows, weights, centre = np.array([2, 5, 7]), np.array([1.0, 4.0, 0.25]), np.full(4, 0.5)
    first, out = np.zeros(4), np.zeros((5, 4))
    assert full.gather_weighted(x, rows, weights, centre, first, out) == 5.25
    np.testing.assert_allclose(out[:3], np.sqrt(weights)[:, None] * (x[rows] - centre), rtol=1e-12)
    np.testing.assert_allclose(first, weights @ (x[rows].astype(float) - centre), rtol=1e-12)
    full.gather_centred(x, rows, centre, out)
    np.testing.assert_allclose(out[:3], x[rows] - centre, rtol=1e-12)


def test_packing():
    square, packed = random_square(3), np.zeros(10)
    full.pack_doubled(square, packed)
    other = random_square(4)[LOW]
    assert packed @ other == pytest.approx(np.trace(square @ reference.unpack(other, 4)))
    added = np.ones(10)
    full.add_packed_square(square, 2.0, np.arange(4.0), added)
    expected = square - 2.0 * np.outer(np.arange(4), np.arange(4))
    np.fill_diagonal(expected, np.maximum(np.diag(expected) + 1.0, 0.0) - 1.0)
    np.testing.assert_allclose(added, expected[LOW] + 1.0, rtol=1e-12)


def test_traces_are_taken_from_clumps_only():
    second = np.stack([random_square(s)[LOW] for s in range(3)]).astype(np.float32)
    precision, out = np.zeros(10), np.zeros(4)
    full.pack_doubled(random_square(9), precision)
    full.subtract_traces(precision, second, np.array([7, 2, 0, 3]), 3, out)
    expected = [0.5 * np.trace(random_square(9) @ random_square(s)) for s in (2, 0)]
    np.testing.assert_allclose(-out, [0.0, *expected, 0.0], rtol=1e-6)
    block = np.zeros((4, 2))
    full.subtract_traces_block(precision, second, 1, 4, 3, 1, block)
    assert (block[:, 0] == 0.0).all()
    np.testing.assert_allclose(-block[1, 1], expected[0], rtol=1e-6)
    assert (block[2:, 1] == 0.0).all()
    packed = np.zeros(10)
    full.add_packed_moments(second, np.array([1, 3]), np.array([2.0, 9.0]), 3, packed)
    np.testing.assert_allclose(packed, 2.0 * second[1])


def test_log_joints_are_a_constant_less_half_the_square():
    rows = np.random.default_rng(1).normal(size=(6, 4))
    out, block = np.zeros(6), np.zeros((6, 3))
    full.log_joint_rows(rows, 6, 1.5, out)
    np.testing.assert_allclose(out, 1.5 - 0.5 * (rows**2).sum(axis=1), rtol=1e-12)
    full.log_joint_column(rows, np.ones(4), 6, 1.5, 2, block)
    np.testing.assert_allclose(block[:, 2], 1.5 - 0.5 * ((rows - 1) ** 2).sum(axis=1), rtol=1e-12)


def test_packed_direction_is_the_leading_eigenvector():
    square = np.diag([1.0, 9.0, 2.0, 0.1]) + 0.2
    direction = np.array([1.0, 0.0, 0.0, 0.0])
    full.packed_direction(square[LOW].copy(), direction, np.zeros(4))
    assert abs(direction @ np.linalg.eigh(square)[1][:, -1]) > 0.9999


def test_packed_direction_of_no_spread_stays_as_it_was():
    direction = np.array([0.6, 0.8])
    full.packed_direction(np.zeros(3), direction, np.zeros(2))
    assert direction.tolist() == [0.6, 0.8]
