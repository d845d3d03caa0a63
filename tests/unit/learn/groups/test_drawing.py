"""Clumps as points again: what is drawn has their numbers and moments; clumps that straddle clusters come apart."""

import numpy as np
import pytest

from stillwatch.learn import GroupedMixture, MemoryBoundedMixture
from stillwatch.learn.groups.drawing import draw_points

LOW = np.tril_indices(3)


def clumps(n=40, seed=0):
    """Return means, whole counts, packed covariances and groups of clumps in 3-D."""
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(n, 3, 3))
    covariances = factors @ factors.transpose(0, 2, 1)
    return (
        rng.normal(size=(n, 3)) * 5,
        rng.integers(2, 60, n).astype(float),
        covariances[:, LOW[0], LOW[1]],
        np.repeat([0, 1], n // 2),
    )


def drawn(n_most, seed=0):
    x, counts, spreads, groups = clumps()
    points, source = draw_points(x, counts, spreads, groups, 2, n_most, np.random.default_rng(seed))
    return points, source, (x, counts, spreads, groups)


def test_every_clump_gives_its_points_about_its_mean_where_all_fit():
    points, source, (x, counts, _, _) = drawn(10**6)
    np.testing.assert_array_equal(np.bincount(source), counts)
    means = np.stack([points[source == i].mean(axis=0) for i in range(len(x))])
    np.testing.assert_allclose(means, x, atol=1e-9)


def test_points_have_the_covariance_of_their_clump():
    x, spreads = np.zeros((1, 3)), clumps()[2][:1]
    points, _ = draw_points(x, np.array([50_000.0]), spreads, np.zeros(1, int), 1, 10**6, np.random.default_rng(0))
    np.testing.assert_allclose(np.cov(points.T, bias=True)[LOW], spreads[0], atol=0.05 * np.abs(spreads).max())


def test_a_limit_is_kept_and_small_groups_keep_all_they_have():
    x, counts = np.zeros((3, 3)), np.array([10.0, 500.0, 90_000.0])
    _, source = draw_points(x, counts, np.zeros((3, 6)), np.arange(3), 3, 1000, np.random.default_rng(0))
    np.testing.assert_allclose(np.bincount(source), [10, 495, 495], atol=1)


def test_a_group_of_which_hardly_anything_is_drawn_still_gives_a_point():
    points, _ = draw_points(
        np.ones((2, 3)), np.full(2, 0.2), np.zeros((2, 6)), np.zeros(2, int), 1, 10, np.random.default_rng(0)
    )
    assert len(points) >= 1


def test_points_of_a_clump_without_spread_are_its_mean():
    points, _ = draw_points(
        np.full((1, 3), 2.0), np.array([4.0]), np.zeros((1, 6)), np.zeros(1, int), 1, 10, np.random.default_rng(0)
    )
    np.testing.assert_array_equal(points, np.full((4, 3), 2.0))


@pytest.fixture(scope="module")
def overlapping():
    """Return points of six overlapping clusters in four dives with their truth, and what each dive's agent kept."""
    rng = np.random.default_rng(0)
    centres, widths = rng.normal(size=(6, 8)) * 1.1, rng.uniform(0.5, 1.2, (6, 8))
    dives, mixes = np.repeat(np.arange(4), 1000), rng.dirichlet(np.full(6, 0.5), 4)
    truth = np.concatenate([rng.choice(6, 1000, p=mix) for mix in mixes])
    X = centres[truth] + rng.normal(size=(4000, 8)) * widths[truth]
    kept = []
    for dive in range(4):
        agent = MemoryBoundedMixture(memory=100, covariance="diagonal", seed=0)
        agent.partial_fit(X[dives == dive]).flush()
        kept.append(agent.clumps_)
    variances = [np.vstack([k["variance"], np.zeros((len(k["mean"]) - len(k["variance"]), 8))]) for k in kept]
    given = {
        "groups": np.repeat(np.arange(4), [len(k["mean"]) for k in kept]),
        "counts": np.concatenate([k["count"] for k in kept]),
        "covariances": np.concatenate(variances),
    }
    return X, dives, truth, np.concatenate([k["mean"] for k in kept]), given


def purity(truth, labels):
    """Return the part of rows in each label's commonest class."""
    return sum(np.bincount(truth[labels == k]).max() for k in np.unique(labels)) / len(truth)


def test_drawn_clumps_find_overlapping_clusters_nearly_as_points_do(overlapping):
    X, dives, truth, means, given = overlapping
    from_points = GroupedMixture().fit(X, groups=dives)
    from_clumps = GroupedMixture(n_drawn=4000).fit(means, **given)
    assert from_clumps.n_clusters_ == from_points.n_clusters_ == 6
    lost = purity(truth, from_points.labels_) - purity(truth, from_clumps.predict(X, dives))
    assert lost < 0.02


def test_counts_and_labels_are_those_of_the_clumps_not_of_what_was_drawn(overlapping):
    _, _, _, means, given = overlapping
    model = GroupedMixture(n_drawn=500).fit(means, **given)
    np.testing.assert_allclose(model.counts_.sum(axis=1), 1000.0)
    assert model.labels_.shape == (len(means),)


def test_one_seed_is_one_result(overlapping):
    _, _, _, means, given = overlapping
    first, again = (GroupedMixture(n_drawn=1000, seed=3).fit(means, **given) for _ in range(2))
    assert first.free_energies_ == again.free_energies_


def test_points_are_not_drawn_again():
    X = np.random.default_rng(0).normal(size=(50, 2))
    whole, drawn_at_most = GroupedMixture().fit(X), GroupedMixture(n_drawn=10).fit(X)
    assert whole.free_energies_ == drawn_at_most.free_energies_
