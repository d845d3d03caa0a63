"""The diagonal family's kernels against the slow reference, with points and clumps."""

import numpy as np
import pytest
import reference_kernels_mixture as reference
from scipy.special import xlogy

from stillwatch.kernels import mixture_common as common
from stillwatch.kernels import mixture_diagonal as diagonal

PRIOR = np.array([0.01, 1.5, 0.075])


@pytest.fixture
def data():
    rng = np.random.default_rng(4)
    x = (rng.normal(size=(40, 3)) * 2).astype(np.float32)
    second = rng.uniform(0.1, 1.0, (10, 3)).astype(np.float32)
    return x, second, rng.integers(1, 40, 40).astype(np.float64)


def all_second(second):
    return np.vstack([second, np.zeros((30, 3), np.float32)]).astype(np.float64)


def test_moments_are_those_of_the_points_behind_the_clumps(data):
    x, second, weights = data
    rows = np.arange(0, 40, 2)
    mean, scatter = np.empty(3), np.empty(3)
    count = diagonal.moments(x, second, 10, rows, weights[rows], np.full(3, 0.7), np.zeros(3), mean, scatter)
    expected = reference.statistics(x[rows].astype(float), weights[rows], all_second(second)[rows], np.ones(20))
    assert count == pytest.approx(expected[0])
    np.testing.assert_allclose(mean, expected[1], rtol=1e-12)
    np.testing.assert_allclose(scatter, expected[2], rtol=1e-10)


def test_a_spread_widens_every_point(data):
    x, second, weights = data
    rows, mean, plain, wide = np.arange(40), np.empty(3), np.empty(3), np.empty(3)
    spread = np.array([0.5, 0.0, 2.0])
    diagonal.moments(x, second, 10, rows, weights, np.zeros(3), np.zeros(3), mean, plain)
    diagonal.moments(x, second, 10, rows, weights, np.zeros(3), spread, mean, wide)
    np.testing.assert_allclose(wide - plain, weights.sum() * spread, rtol=1e-9)


def test_moments_of_identical_points_far_from_the_centre_are_not_negative():
    x = np.full((500, 2), 1234.5678, np.float32)
    mean, scatter = np.empty(2), np.empty(2)
    diagonal.moments(
        x, np.zeros((0, 2), np.float32), 0, np.arange(500), np.full(500, 0.3), np.zeros(2), np.zeros(2), mean, scatter
    )
    assert (scatter >= 0.0).all()
    np.testing.assert_allclose(mean, x[0], rtol=1e-12)


def test_no_rows_give_no_count():
    mean, scatter = np.ones(2), np.ones(2)
    empty = np.zeros(0, np.int64)
    assert (
        diagonal.moments(
            np.zeros((1, 2), np.float32),
            np.zeros((0, 2), np.float32),
            0,
            empty,
            np.zeros(0),
            np.zeros(2),
            np.zeros(2),
            mean,
            scatter,
        )
        == 0.0
    )
    assert not mean.any()
    assert not scatter.any()


@pytest.mark.parametrize("count", [0.0, 0.3, 1.0, 57.5, 1e6])
def test_posterior_evidence_and_expectation(count):
    mean, scatter = np.array([0.5, -2.0, 0.0]), np.array([3.0, 0.2, 0.0]) * count
    post_mean, precision, out = np.empty(3), np.empty(3), np.empty(3)
    diagonal.posterior(count, mean, scatter, PRIOR, post_mean, precision, out)
    part = reference.DiagonalComponent(count, mean, scatter, PRIOR)
    np.testing.assert_allclose(post_mean, part.mean, rtol=1e-13)
    np.testing.assert_allclose(precision, part.a / part.b, rtol=1e-13)
    assert out[1] == pytest.approx(reference.log_evidence(count, mean, scatter, PRIOR, "diagonal"), rel=1e-9, abs=1e-8)
    expected = count * part.expected_log_density(mean, scatter / count) if count else 0.0
    assert out[2] == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert out[2] - out[1] == pytest.approx(part.kl_from_prior(), rel=1e-6, abs=1e-6)


def test_log_joints_by_list_and_by_block_are_the_expected_log_densities(data):
    x, second, weights = data
    stats = [
        reference.statistics(x.astype(float), weights, all_second(second), share)
        for share in np.eye(2)[np.random.default_rng(1).integers(2, size=40)].T
    ]
    post_mean, precision, fits = np.zeros((3, 3)), np.zeros((3, 3)), np.zeros((3, 3))
    for k, stat in enumerate(stats):
        diagonal.posterior(*stat, PRIOR, post_mean[k], precision[k], fits[k])
    block = np.zeros((50, 3))
    constant = np.ascontiguousarray(fits[:, 0]) + [0.3, -0.2, 0.0]
    diagonal.log_joint_block(x, second, 10, 5, 30, 2, constant, post_mean, precision, block)
    parts = [reference.DiagonalComponent(*stat, PRIOR) for stat in stats]
    for k, part in enumerate(parts):
        expected = [part.expected_log_density(x[s].astype(float), all_second(second)[s]) for s in range(40)]
        np.testing.assert_allclose(block[:30, k], np.array(expected[5:35]) + [0.3, -0.2][k], rtol=1e-9)
        out, rows = np.zeros(40), np.arange(40)[::-1].copy()
        diagonal.log_joint_list(x, second, 10, rows, fits[k, 0], post_mean[k], precision[k], out)
        np.testing.assert_allclose(out[::-1], expected, rtol=1e-9)


class Components:
    """Three components of the data: their responsibilities, statistics and posteriors."""

    def __init__(self, data):
        x, second, counts = data
        rng = np.random.default_rng(3)
        self.candidates = np.array([rng.permutation(3)[:2] for _ in range(40)], np.int32)
        self.candidates[::5, 1] = -1
        self.shares = rng.uniform(0.1, 0.9, (40, 2))
        self.shares[self.candidates < 0] = 0.0
        self.offsets, self.rows, self.places = (np.zeros(n, np.int64) for n in (4, 80, 80))
        common.build_lists(self.candidates, 40, 3, self.offsets, self.rows, self.places)
        self.count, self.mean, self.scatter = np.zeros(3), np.zeros((3, 3)), np.zeros((3, 3))
        self.post_mean, self.precision, self.fits = rng.normal(size=(3, 3)), np.zeros((3, 3)), np.zeros((3, 3))
        self.arguments = (
            x, second, 10, counts, self.shares, self.offsets, self.rows, self.places, 3, PRIOR, np.zeros(3),
            np.zeros(40), self.count, self.mean, self.scatter, self.post_mean, self.precision, self.fits,
        )  # fmt: skip
        diagonal.maximise(*self.arguments)

    def statistics(self, data, k):
        """Return what the reference says of one component."""
        x, second, counts = data
        share = (self.shares * (self.candidates == k)).sum(axis=1)
        return reference.statistics(x.astype(float), counts, all_second(second), share)


def test_all_components_have_the_moments_and_posteriors_of_their_shares(data):
    parts = Components(data)
    for k in range(3):
        count, mean, scatter = parts.statistics(data, k)
        post_mean, precision, fits = np.zeros(3), np.zeros(3), np.zeros(3)
        diagonal.posterior(count, mean, scatter, PRIOR, post_mean, precision, fits)
        assert parts.count[k] == pytest.approx(count)
        np.testing.assert_allclose(parts.mean[k], mean, rtol=1e-10)
        np.testing.assert_allclose(parts.scatter[k], scatter, rtol=1e-9)
        np.testing.assert_allclose(parts.post_mean[k], post_mean, rtol=1e-9)
        np.testing.assert_allclose(parts.precision[k], precision, rtol=1e-9)
        np.testing.assert_allclose(parts.fits[k], fits, rtol=1e-9)


def test_log_joints_of_kept_components_are_those_of_the_dense_pass(data):
    x, second, _ = data
    parts, constant = Components(data), np.array([0.3, -0.2, 0.7])
    block, out = np.zeros((50, 3)), np.full((40, 2), 9.0)
    diagonal.log_joint_block(x, second, 10, 0, 40, 3, constant, parts.post_mean, parts.precision, block)
    diagonal.log_joints_kept(x, second, 10, 40, parts.candidates, constant, parts.post_mean, parts.precision, out)
    used = parts.candidates >= 0
    np.testing.assert_allclose(out[used], np.take_along_axis(block[:40], parts.candidates, 1)[used], rtol=1e-12)
    assert (out[~used] == 9.0).all()


def test_posteriors_of_all_components_are_those_of_each(data):
    parts = Components(data)
    post_mean, precision, fits = (np.zeros((3, 3)) for _ in range(3))
    diagonal.posteriors(parts.count, parts.mean, parts.scatter, 2, PRIOR, post_mean, precision, fits)
    for found, all_of_them in ((post_mean, parts.post_mean), (precision, parts.precision), (fits, parts.fits)):
        np.testing.assert_array_equal(found[:2], all_of_them[:2])
        assert not found[2].any()


def test_gains_of_merges_are_the_evidence_of_all_items_less_that_of_the_parts(data):
    parts, pairs, gains = Components(data), np.array([[0, 1], [1, 2]]), np.zeros(2)
    diagonal.merge_gains(parts.count, parts.mean, parts.scatter, parts.fits, PRIOR, pairs, 2, gains)
    x, second, counts = data
    for (a, b), gain in zip(pairs, gains, strict=True):
        share = (parts.shares * ((parts.candidates == a) | (parts.candidates == b))).sum(axis=1)
        joined = reference.statistics(x.astype(float), counts, all_second(second), share)
        expected = reference.log_evidence(*joined, PRIOR, "diagonal")
        expected -= sum(reference.log_evidence(*parts.statistics(data, k), PRIOR, "diagonal") for k in (a, b))
        assert gain == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_nearest_components_are_those_of_least_distance_in_the_own_precision(seed):
    rng = np.random.default_rng(seed)
    means, precision, near = rng.normal(size=(9, 4)), rng.uniform(0.2, 5.0, (9, 4)), np.zeros((7, 3), np.int64)
    diagonal.nearest(means, precision, 7, np.zeros(7), near)
    for a in range(7):
        far = ((means[:7] - means[a]) ** 2 * precision[a]).sum(axis=1)
        far[a] = np.inf
        assert near[a].tolist() == np.argsort(far)[:3].tolist()
    diagonal.nearest(means, precision, 2, np.zeros(7), near)
    assert near[:2].tolist() == [[1, -1, -1], [0, -1, -1]]


def split(x, second, n_clumps, soft, n_updates, weights=None, plane=None):
    n = len(x)
    rows, weights = np.arange(n), np.ones(n) if weights is None else weights
    mean, scatter = np.empty(x.shape[1]), np.empty(x.shape[1])
    no = np.zeros(x.shape[1])
    diagonal.moments(x, second, n_clumps, rows, weights, no, no, mean, scatter)
    stats, fits, share = np.zeros((8, x.shape[1])), np.zeros((2, 4)), np.zeros(n)
    settings = np.array([*PRIOR, 1.0, 0.0])
    score = diagonal.split(
        x,
        second,
        n_clumps,
        rows,
        weights,
        mean,
        scatter,
        settings,
        no,
        np.zeros((2, x.shape[1])) if plane is None else plane,
        soft,
        n_updates,
        stats,
        fits,
        np.zeros((4, n)),
        share,
    )
    return score, fits, stats, share


@pytest.mark.parametrize("soft", [0, 1])
def test_a_split_separates_two_groups_and_scores_what_the_reference_says(soft):
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(-3, 0.5, (30, 3)), rng.normal(3, 0.5, (50, 3))]).astype(np.float32)
    score, fits, stats, share = split(x, np.zeros((0, 3), np.float32), 0, soft, 10)
    first = share > 0.5
    assert first[:30].all() != first[30:].all()
    assert len(np.unique(first[:30])) == len(np.unique(first[30:])) == 1
    expected = 0.0
    for child in (share, 1 - share):
        stat = reference.statistics(x.astype(float), np.ones(80), np.zeros((80, 3)), child)
        expected += reference.log_evidence(*stat, PRIOR, "diagonal")
    assert score == pytest.approx(expected, rel=1e-6)
    assert fits[:, 3].sum() == pytest.approx(80.0)


@pytest.mark.parametrize("soft", [0, 1])
def test_a_split_of_clumps_scores_the_points_behind_them_and_the_entropy_of_their_shares(data, soft):
    x, second, counts = data
    score, _, _, share = split(x, second, 10, soft, 4, counts)
    sides = (reference.statistics(x.astype(float), counts, all_second(second), side) for side in (share, 1 - share))
    expected = sum(reference.log_evidence(*side, PRIOR, "diagonal") for side in sides)
    expected -= (counts * (xlogy(share, share) + xlogy(1 - share, 1 - share))).sum()
    assert score == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(("soft", "n_updates"), [(0, 0), (0, 50), (1, 0), (1, 1), (1, 500)])
def test_a_splits_statistics_are_of_the_shares_that_it_ends_with(soft, n_updates):
    x = (np.random.default_rng(2).normal(size=(90, 3)) * [3, 1, 1]).astype(np.float32)
    _, fits, stats, share = split(x, np.zeros((0, 3), np.float32), 0, soft, n_updates)
    for child, side in enumerate((share, 1.0 - share)):
        assert fits[child, 3] == pytest.approx(side.sum())
        np.testing.assert_allclose(stats[4 * child], side @ x.astype(float) / side.sum(), rtol=1e-6)


def test_a_split_begins_at_the_plane_it_is_given():
    x = np.random.default_rng(0).normal(size=(200, 3)).astype(np.float32)
    _, _, _, share = split(x, np.zeros((0, 3), np.float32), 0, 0, 0, plane=np.array([[0.0, 0.5, 0.0], [0.0, 2.0, 0.0]]))
    np.testing.assert_array_equal(share > 0.5, x[:, 1] > 0.5)


def test_more_restricted_updates_never_lower_the_score():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(120, 3)).astype(np.float32) * [1, 2, 3]
    x = x.astype(np.float32)
    scores = [split(x, np.zeros((0, 3), np.float32), 0, 1, n)[0] for n in range(1, 8)]
    assert (np.diff(scores) > -3.0).all()  # the sticks are not part of the score, and may pay for it
    assert scores[-1] > scores[0]


def test_identical_points_cannot_be_split():
    x = np.full((20, 2), 1.5, np.float32)
    _, fits, _, _ = split(x, np.zeros((0, 2), np.float32), 0, 0, 4)
    assert min(fits[:, 3]) == 0.0
