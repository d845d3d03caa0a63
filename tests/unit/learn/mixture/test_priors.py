"""The posterior's expectations and KL terms against Monte Carlo, and the spread that makes the prior unit-free."""

import numpy as np
import pytest
import reference_kernels_mixture as reference
from mixture_cases import FAMILIES, clusters
from scipy.stats import gamma, multivariate_normal, norm, wishart

from stillwatch.learn.mixture.families import make_family
from stillwatch.learn.mixture.priors import Normaliser, prior_parameters

DRAWS = 40_000


def posterior(covariance):
    """Return a family with one fitted component, its reference, and its statistics."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(30, 3)) @ rng.normal(size=(3, 3)) + 0.5
    second = np.zeros((30, 3)) if covariance == "diagonal" else np.zeros((30, 3, 3))
    count, mean, scatter = reference.statistics(rows, np.ones(30), second, np.ones(30))
    family = make_family(covariance, 3, 2, 10)
    family.prior[:] = prior_parameters(covariance, 3, 0.5, 0.3)
    family.moments.count[0], family.moments.mean[0] = count, mean
    family.moments.scatter[0] = scatter if covariance == "diagonal" else scatter[np.tril_indices(3)]
    family.fit(0)
    return family, reference.COMPONENTS[covariance](count, mean, scatter, family.prior)


def test_kl_and_expectations_of_the_normal_gamma_agree_with_monte_carlo():
    family, part = posterior("diagonal")
    kappa0, a0, b0 = family.prior
    rng, x, expected, kl = np.random.default_rng(1), np.array([0.4, -1.0, 2.0]), 0.0, 0.0
    for d in range(3):
        lam = rng.gamma(part.a, 1 / part.b[d], DRAWS)
        mu = rng.normal(part.mean[d], 1 / np.sqrt(part.kappa * lam))
        expected += norm.logpdf(x[d], mu, 1 / np.sqrt(lam)).mean()
        q = norm.logpdf(mu, part.mean[d], 1 / np.sqrt(part.kappa * lam)) + gamma.logpdf(lam, part.a, 0, 1 / part.b[d])
        p = norm.logpdf(mu, 0.0, 1 / np.sqrt(kappa0 * lam)) + gamma.logpdf(lam, a0, 0, 1 / b0)
        kl += (q - p).mean()
    assert family.fits[0, 2] - family.fits[0, 1] == pytest.approx(kl, rel=0.02)
    assert part.expected_log_density(x, np.zeros(3)) == pytest.approx(expected, rel=0.02)


def test_kl_and_expectations_of_the_normal_wishart_agree_with_monte_carlo():
    family, part = posterior("full")
    kappa0, nu0, s0 = family.prior
    rng, x = np.random.default_rng(2), np.array([0.4, -1.0, 2.0])
    q, p = wishart(part.nu, part.inverse), wishart(nu0, np.eye(3) / s0)
    lams = q.rvs(4000, random_state=rng)
    expected, kl = [], []
    for lam in lams:
        covariance = np.linalg.inv(lam)
        mu = rng.multivariate_normal(part.mean, covariance / part.kappa)
        expected.append(multivariate_normal.logpdf(x, mu, covariance))
        kl.append(
            q.logpdf(lam)
            - p.logpdf(lam)
            + multivariate_normal.logpdf(mu, part.mean, covariance / part.kappa)
            - multivariate_normal.logpdf(mu, np.zeros(3), covariance / kappa0)
        )
    assert family.fits[0, 2] - family.fits[0, 1] == pytest.approx(np.mean(kl), rel=0.03)
    assert part.expected_log_density(x, np.zeros((3, 3))) == pytest.approx(np.mean(expected), rel=0.03)


@pytest.mark.parametrize("covariance", FAMILIES)
def test_normalised_rows_do_not_depend_on_units(covariance):
    rows, _ = clusters(0)
    plain = Normaliser.measure(rows, by_column=covariance == "diagonal")
    moved = Normaliser.measure(rows * 250.0 - 4e4, by_column=covariance == "diagonal")
    np.testing.assert_allclose(moved.apply(rows * 250.0 - 4e4), plain.apply(rows), rtol=1e-7, atol=1e-7)
    assert plain.apply(rows).var(axis=0).mean() == pytest.approx(1.0)


def test_the_diagonal_family_takes_each_dimension_in_its_own_units():
    rows, _ = clusters(0)
    units = np.array([1.0, 1e3, 1e-3, 5.0])
    np.testing.assert_allclose(
        Normaliser.measure(rows * units, by_column=True).apply(rows * units),
        Normaliser.measure(rows, by_column=True).apply(rows),
        rtol=1e-9,
        atol=1e-9,
    )


@pytest.mark.parametrize("rows", [np.zeros((5, 2)), np.full((5, 2), 7.0), np.array([[1.0, 2.0]])])
def test_no_spread_gives_a_scale_all_the_same(rows):
    normaliser = Normaliser.measure(rows, by_column=True)
    assert np.isfinite(normaliser.scale).all()
    assert (normaliser.scale > 0.0).all()
