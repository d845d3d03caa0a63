"""The particle filter of the peers' table: exact where it may be, unbiased where it may not."""

import numpy as np
import pytest
from scipy.special import gammaln, multigammaln
from scipy.stats import multivariate_t

from stillwatch.tools.experiments.mixture.particle_filter import ParticleFilter, optimal_resampling
from stillwatch.tools.experiments.mixture.streaming_vb import StreamingMixture

PRIOR = np.array([0.5, 4.0, 1.5])  # kappa_0, nu_0, s


def rows(n, d=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) + 4.0 * rng.integers(0, 2, (n, 1))


def learner(X, n_particles, seed=0, concentration=0.7):
    found = ParticleFilter(X.shape[1], n_particles=n_particles, prior=PRIOR, concentration=concentration, seed=seed)
    return found.partial_fit(X)


def partitions(n):
    """Yield every clustering of n rows as labels in order of appearance."""
    if n == 0:
        yield []
        return
    for labels in partitions(n - 1):
        for label in range(max(labels, default=-1) + 2):
            yield [*labels, label]


def log_marginal(X):
    """Log p(X) of one cluster: Murphy, Conjugate Bayesian analysis of the Gaussian distribution, equation 266."""
    n, d = X.shape
    kappa, nu, s = PRIOR
    mean = X.mean(axis=0)
    scale = s * np.eye(d) + (X - mean).T @ (X - mean) + kappa * n / (kappa + n) * np.outer(mean, mean)
    return (
        multigammaln((nu + n) / 2, d)
        - multigammaln(nu / 2, d)
        - n * d / 2 * np.log(np.pi)
        + d / 2 * np.log(kappa / (kappa + n))
        + nu * d / 2 * np.log(s)
        - (nu + n) / 2 * np.linalg.slogdet(scale)[1]
    )


def log_joint(X, labels, alpha=0.7):
    """Log p(Z, X): Chinese restaurant process times marginal likelihoods."""
    sizes = np.bincount(labels)
    prior = len(sizes) * np.log(alpha) + gammaln(sizes).sum() + gammaln(alpha) - gammaln(alpha + len(labels))
    return prior + sum(log_marginal(X[np.array(labels) == k]) for k in range(len(sizes)))


@pytest.mark.parametrize("d", [1, 3])
def test_with_room_for_every_clustering_weights_are_the_exact_posterior(d):
    X = rows(6, d)
    joint = np.array([log_joint(X, labels) for labels in partitions(6)])
    found = learner(X, 203)  # the Bell number of 6
    assert len(found.weights) == 203
    evidence = np.logaddexp.reduce(joint)
    assert found.log_evidence_ == pytest.approx(evidence, rel=1e-12)
    np.testing.assert_allclose(np.sort(found.weights), np.sort(np.exp(joint - evidence)), rtol=1e-9)


def test_the_predictive_is_the_ratio_of_evidences():
    X = rows(6)
    density = np.exp(learner(X[:5], 1000).score_samples(X[5:]))
    assert density == pytest.approx(np.exp(learner(X, 1000).log_evidence_ - learner(X[:5], 1000).log_evidence_))


def test_before_the_first_row_the_predictive_is_the_priors_student_t():
    X = rows(4)
    kappa, nu, s = PRIOR
    wanted = multivariate_t(np.zeros(2), s * (kappa + 1) / (kappa * (nu - 1)) * np.eye(2), df=nu - 1).logpdf(X)
    fresh = ParticleFilter(2, n_particles=5, prior=PRIOR)
    np.testing.assert_allclose(fresh.score_samples(X), wanted, rtol=1e-12)


def test_with_few_particles_the_evidence_is_right_in_expectation():
    X = rows(7)
    exact = np.logaddexp.reduce([log_joint(X, labels) for labels in partitions(7)])
    ratios = [np.exp(learner(X, 6, seed=seed).log_evidence_ - exact) for seed in range(400)]
    assert np.mean(ratios) == pytest.approx(1.0, abs=4 * np.std(ratios) / 20 + 1e-6)
    assert np.std(ratios) > 1e-4  # it did drop some


def test_particles_are_no_more_than_asked_for_all_different_and_weigh_one():
    found = learner(rows(80), 40)
    assert len(found.weights) == 40
    assert found.weights.sum() == pytest.approx(1.0)
    lines = [tuple(sorted(line[line > 0])) for line in found.clusters]
    assert len(set(lines)) == 40
    assert all(sizes.sum() == 80 for sizes in found.clusterings)


def test_separate_clusters_are_found_and_rows_named_by_them():
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 3, 150)
    X = 15.0 * np.eye(3)[labels] + rng.normal(size=(150, 3))
    found = ParticleFilter(3, n_particles=50, prior=np.array([0.01, 5.0, 5.0])).partial_fit(X)
    assert found.n_components_ == 3
    assert len(set(zip(labels.tolist(), found.predict(X).tolist(), strict=True))) == 3


def test_same_seed_same_bits_and_calls_may_be_cut():
    X = rows(60)
    whole, parts = learner(X, 20, seed=4), learner(X[:25], 20, seed=4).partial_fit(X[25:])
    np.testing.assert_array_equal(whole.weights, parts.weights)
    np.testing.assert_array_equal(whole.score_samples(X), parts.score_samples(X))


def test_resampling_keeps_every_weight_in_expectation():
    weight = np.random.default_rng(0).dirichlet(np.full(30, 0.3))
    total = np.zeros(30)
    grid = (np.arange(500) + 0.5) / 500
    for uniform in grid:
        places, kept = optimal_resampling(weight, 8, uniform)
        assert len(places) == len(set(places.tolist())) == 8
        total[places] += kept
    np.testing.assert_allclose(total / 500, weight, atol=3e-4)


def test_resampling_keeps_large_weights_as_they_are_and_gives_all_others_the_threshold():
    weight = np.array([0.5, 0.2, *np.full(30, 0.01)])
    places, kept = optimal_resampling(weight, 5, 0.4)
    # c = (5 - 2) / 0.3: above 1/c = 0.1 kept, three of thirty drawn, each with 0.1.
    assert places[:2].tolist() == [0, 1]
    np.testing.assert_allclose(kept, [0.5, 0.2, 0.1, 0.1, 0.1])


def test_resampling_drops_nothing_where_there_is_room():
    places, kept = optimal_resampling(np.array([0.25, 0.0, 0.75]), 2, 0.1)
    assert places.tolist() == [0, 2]
    assert kept.tolist() == [0.25, 0.75]


def test_no_particles_are_refused():
    with pytest.raises(ValueError, match="n_particles: 0"):
        ParticleFilter(2, n_particles=0, prior=PRIOR)


def test_streaming_with_one_component_is_the_exact_posterior_however_many_batches():
    X = rows(300)
    found = StreamingMixture(2, n_components=1, batch=100).partial_fit(X)
    start, kappa, nu = X[:100], 301.0, 302.0
    mean = (start.mean(axis=0) + X.sum(axis=0)) / kappa
    pull = start.mean(axis=0) - X.mean(axis=0)
    scale = np.cov(start.T) + np.cov(X.T, bias=True) * 300 + 300 / 301 * np.outer(pull, pull)
    wanted = multivariate_t(mean, scale * (kappa + 1) / (kappa * (nu - 1)), df=nu - 1).logpdf(X[:9])
    np.testing.assert_allclose(found.score_samples(X[:9]), wanted, rtol=1e-9)


def test_streaming_follows_random_batches_and_keeps_its_size():
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 3, 600)
    X = 12.0 * np.eye(3)[labels] + rng.normal(size=(600, 3))
    found = StreamingMixture(3, n_components=6, batch=150)
    size = found.memory_bytes()
    found.partial_fit(X)
    assert found.memory_bytes() == size
    named = found.predict(X)
    assert all(len(set(named[labels == a]) & set(named[labels == b])) == 0 for a, b in ((0, 1), (1, 2), (0, 2)))
