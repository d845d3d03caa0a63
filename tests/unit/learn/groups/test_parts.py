"""The parts of the mixtures of groups against closed forms and SciPy: gamma functions, weights, Gaussian clusters."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from stillwatch.learn.groups.gamma import digamma, log_gamma
from stillwatch.learn.groups.gaussian import Clusters, GaussPrior
from stillwatch.learn.groups.items import Items
from stillwatch.learn.groups.weights import WEIGHTS, dirichlet, generalised_dirichlet, stick_breaking


@given(st.floats(1e-6, 1e12))
def test_gamma_functions_are_scipys(x):
    assert log_gamma(np.array(x)) == pytest.approx(special.gammaln(x), rel=1e-13, abs=1e-11)
    assert digamma(np.array(x)) == pytest.approx(special.digamma(x), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("rule", WEIGHTS.values(), ids=WEIGHTS)
def test_weights_without_data_cost_nothing(rule):
    assert rule(np.zeros((3, 4)), 1.0).penalty == pytest.approx(0.0, abs=1e-12)


def test_dirichlet_weights_are_counts_with_one_added():
    found = dirichlet(np.array([[7.0, 0.0, 3.0]]), 1.0)
    np.testing.assert_allclose(found.mean, [[8 / 13, 1 / 13, 4 / 13]])
    np.testing.assert_allclose(found.log_mean, [special.digamma([8, 1, 4]) - special.digamma(13)])


def test_sticks_are_broken_in_the_order_of_sizes_of_each_group():
    mass = np.array([[1.0, 5.0, 3.0], [5.0, 3.0, 1.0]])
    found = generalised_dirichlet(mass, 1.0)
    np.testing.assert_allclose(found.log_mean[0, [1, 2, 0]], found.log_mean[1])
    v = np.array([6 / 11, 4 / 6, 1.0])  # 5 + 1 of 5 + 1 + 4 + 1, 3 + 1 of 3 + 1 + 1 + 1, and all that is left
    np.testing.assert_allclose(found.mean[1], v * np.array([1.0, 1 - v[0], (1 - v[0]) * (1 - v[1])]))
    assert stick_breaking(mass, 1.0).mean.sum(axis=1) == pytest.approx([found.mean[0].sum() - 5 / 11 * 2 / 6 / 3] * 2)


def test_expected_log_likelihood_and_penalty_agree_with_draws():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 2)) @ [[1.0, 0.3], [0.0, 0.5]]
    x -= x.mean(axis=0)
    items = Items(x, np.zeros(30, np.int64), 1)
    moments, _ = items.moments(np.ones((1, 30)))
    clusters = Clusters(GaussPrior(2, 0.2), moments)
    precisions = stats.wishart(df=clusters.rho[0], scale=np.linalg.inv(clusters.scale[0])).rvs(20_000, random_state=1)
    covariances = np.linalg.inv(precisions)
    factors = np.linalg.cholesky(covariances / clusters.gamma[0])
    means = clusters.mean[0] + np.einsum("nij,nj->ni", factors, rng.normal(size=(20_000, 2)))
    z = x[:1] - means
    drawn = (
        0.5 * np.linalg.slogdet(precisions)[1] - np.log(2 * np.pi) - 0.5 * np.einsum("ni,nij,nj->n", z, precisions, z)
    )
    found = (clusters.coefficients() @ items.sums(slice(0, 1)))[0, 0]
    assert found == pytest.approx(drawn.mean(), abs=5 * drawn.std() / 141)
    prior = stats.wishart(df=2, scale=np.eye(2) / (2 * 0.2)).logpdf(precisions.T.swapaxes(0, 1))
    posterior = stats.wishart(df=clusters.rho[0], scale=np.linalg.inv(clusters.scale[0])).logpdf(
        precisions.T.swapaxes(0, 1)
    )
    around = np.einsum("ni,nij,nj->n", means, precisions, means)
    own = np.einsum("ni,nij,nj->n", means - clusters.mean[0], precisions, means - clusters.mean[0])
    gamma = clusters.gamma[0]
    ratio = posterior - prior + np.log(gamma) - 0.5 * gamma * own + 0.5 * around
    assert clusters.penalties()[0] == pytest.approx(ratio.mean(), abs=5 * ratio.std() / 141)


def test_a_blocks_sums_add_up_to_moments_by_parent():
    rng = np.random.default_rng(2)
    x, q = rng.normal(size=(9, 2)), rng.dirichlet([1.0, 1.0], 9).T
    counts, spreads = rng.integers(1, 5, 9).astype(float), rng.uniform(size=(9, 3))
    parents = np.array([0, 0, 0, 1, 1, 3, 3, 3, 3])
    moments, mass = Items(x, parents, 4, counts, spreads).moments(q)
    weight = q[1] * counts
    square = np.einsum("n,ni,nj->ij", weight, x, x)
    np.testing.assert_allclose(moments[1, :3], [square[0, 0], square[1, 0], square[1, 1]] + weight @ spreads)
    np.testing.assert_allclose(moments[1, 3:], [*(weight @ x), weight.sum()])
    np.testing.assert_allclose(mass[:, 1], [weight[:3].sum(), weight[3:5].sum(), 0.0, weight[5:].sum()])
