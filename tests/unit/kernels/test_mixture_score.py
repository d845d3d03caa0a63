"""The scoring kernels: one logarithm for many dimensions, no overflow, ties to the first."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

from stillwatch.kernels import mixture_score as score


@pytest.mark.parametrize("n_dims", [1, 18, 20, 21, 49])
def test_a_product_of_factors_gives_the_sum_of_their_logarithms(n_dims):
    rng = np.random.default_rng(n_dims)
    x, means, scales = rng.normal(size=(30, n_dims)) * 5, rng.normal(size=(n_dims, 7)), rng.uniform(0.1, 2, (n_dims, 7))
    constants, powers, out = rng.normal(size=7), rng.uniform(1, 50, 7), np.zeros((30, 7))
    score.log_joint_diagonal(x, 30, means, scales, constants, powers, np.zeros(7), out)
    factors = np.log1p((x[:, :, None] - means) ** 2 * scales).sum(axis=1)
    np.testing.assert_allclose(out, constants - powers * factors, rtol=1e-10)


def test_rows_far_out_do_not_overflow():
    x, out = np.full((1, 40), 1e90), np.zeros((1, 2))
    score.log_joint_diagonal(x, 1, np.zeros((40, 2)), np.ones((40, 2)), np.zeros(2), np.ones(2), np.zeros(2), out)
    np.testing.assert_allclose(out, -40 * np.log(score.LARGEST_FACTOR))


def test_full_log_joints():
    rng = np.random.default_rng(0)
    whitened, offsets = rng.normal(size=(8, 6)), rng.normal(size=(3, 2))
    constants, powers, dofs, out = rng.normal(size=3), rng.uniform(1, 9, 3), rng.uniform(1, 9, 3), np.zeros((8, 3))
    score.log_joint_full(whitened, offsets, 8, constants, powers, dofs, out)
    distance = ((whitened.reshape(8, 3, 2) - offsets) ** 2).sum(axis=2)
    np.testing.assert_allclose(out, constants - powers * np.log1p(distance / dofs), rtol=1e-10)


def test_totals_and_labels():
    log_joint = np.array([[0.0, 2.0, 2.0, 9.0], [-900.0, -905.0, -910.0, -1000.0], [5.0, 1.0, 2.0, -1e9]])
    total, label = np.zeros(3), np.zeros(3, np.int64)
    score.log_total(log_joint, 3, total)
    score.likeliest(log_joint, 3, 3, label)
    np.testing.assert_allclose(total, logsumexp(log_joint, axis=1), rtol=1e-12)
    assert label.tolist() == [1, 0, 0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_are_centred_and_held_within_what_a_score_can_take(dtype):
    x = np.random.default_rng(0).normal(size=(6, 3)).astype(dtype)
    x[3] = 1e30, -1e30, 0.0
    shift, out = np.array([0.1, -0.2, 0.3]), np.zeros((4, 3))
    score.centre_rows(x, 2, 4, shift, 1e20, out)
    assert np.array_equal(out, np.clip(x[2:6] - shift, -1e20, 1e20))


@given(st.integers(0, 2**32 - 1), st.integers(1, 20), st.sampled_from([0.01, 1.0, 1e3, 1e90]))
def test_the_likeliest_component_is_that_of_all_log_joints(seed, n_dims, spread):
    rng = np.random.default_rng(seed)
    x, means = spread * rng.normal(size=(40, n_dims)), rng.normal(size=(n_dims, 9))
    model = means, rng.uniform(0.01, 9.0, (n_dims, 9)), rng.normal(size=9), rng.uniform(1, 50, 9)
    out, expected, label = np.zeros((40, 9)), np.zeros(40, np.int64), np.full(40, -1)
    score.log_joint_diagonal(x, 40, *model, np.zeros(9), out)
    score.likeliest(out, 40, 8, expected)
    score.likeliest_diagonal(x, 40, *model, 8, np.zeros(8), label)
    np.testing.assert_array_equal(label, expected)


def test_of_equal_components_the_first_is_the_likeliest():
    ones, label = np.ones((2, 3)), np.zeros(4, np.int64)
    x = np.random.default_rng(0).normal(size=(4, 2))
    score.likeliest_diagonal(x, 4, ones, ones, np.array([0.0, 1.0, 1.0]), np.full(3, 2.0), 3, np.zeros(3), label)
    assert label.tolist() == [1, 1, 1, 1]
