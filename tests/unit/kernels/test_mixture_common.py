"""Parts that both families share: digamma, sticks, responsibilities, lists, entropies."""

import numpy as np
import pytest
import reference_kernels_mixture as reference
from scipy.special import betaln, digamma, entr, logsumexp

from stillwatch.kernels import mixture_common as common


@pytest.mark.parametrize("x", [1e-6, 0.3, 1.0, 2.5, 7.999, 8.0, 123.4, 1e7])
def test_digamma(x):
    assert common.digamma(x) == pytest.approx(digamma(x), rel=1e-13, abs=1e-13)


@pytest.mark.parametrize(("count", "after", "alpha"), [(0.0, 0.0, 1.0), (5.5, 3.25, 0.1), (1e6, 2e6, 10.0)])
def test_the_evidence_of_a_stick_is_a_ratio_of_beta_functions(count, after, alpha):
    expected = betaln(1 + count, alpha + after) - betaln(1, alpha)
    assert common.log_stick(count, after, alpha) == pytest.approx(expected, rel=1e-10, abs=1e-10)


def test_largest_first_is_the_best_order_of_sticks():
    counts = np.array([50.0, 20.0, 7.0, 1.0])
    best = common.sticks_evidence(counts, 1.0)
    rng = np.random.default_rng(0)
    assert all(common.sticks_evidence(rng.permutation(counts), 1.0) <= best + 1e-12 for _ in range(20))


def test_expected_log_weights_equal_the_reference_and_mean_weights_leave_the_prior_mass():
    counts = np.array([3.0, 40.0, 0.5, 12.0])
    order = np.argsort(-counts, kind="stable")
    log_weight, weight = np.zeros(4), np.zeros(4)
    common.sticks_expectation(counts, order, 2.0, log_weight, weight)
    expected, _ = reference.sticks(counts, 2.0)
    np.testing.assert_allclose(log_weight, expected, rtol=1e-12)
    draws = np.random.default_rng(1)
    left, mean = np.ones(200_000), np.zeros(4)
    for position, k in enumerate(order):
        stick = draws.beta(1 + counts[k], 2.0 + counts[order[position + 1 :]].sum(), 200_000)
        mean[k] = (left * stick).mean()
        left = left * (1 - stick)
    np.testing.assert_allclose(weight, mean, atol=2e-3)
    assert 0.0 < 1.0 - weight.sum() < 0.1


def respond(logits, counts, n_kept):
    candidates = np.full((len(logits), n_kept), 9, np.int32)
    shares = np.full((len(logits), n_kept), 9.0)
    total = common.respond_dense(logits.copy(), len(logits), logits.shape[1], counts, 0, candidates, shares)
    return total, candidates, shares


def test_dense_responsibilities_are_the_softmax_where_all_are_kept():
    rng = np.random.default_rng(0)
    logits, counts = rng.normal(size=(50, 4)) * 3, rng.uniform(1, 9, 50)
    total, candidates, shares = respond(logits, counts, 4)
    expected = np.exp(logits - logsumexp(logits, axis=1, keepdims=True))
    np.testing.assert_allclose(np.take_along_axis(expected, candidates.astype(int), 1), shares, rtol=1e-12)
    assert total == pytest.approx(counts @ logsumexp(logits, axis=1), rel=1e-12)


def test_only_the_largest_few_are_kept_and_the_sum_is_over_them():
    logits = np.array([[0.0, 3.0, 1.0, 2.0, -1.0]])
    total, candidates, shares = respond(logits, np.array([2.0]), 3)
    assert candidates.tolist() == [[1, 3, 2]]
    assert total == pytest.approx(2.0 * logsumexp([3.0, 2.0, 1.0]))
    assert shares.sum() == pytest.approx(1.0)


def test_negligible_components_are_not_kept():
    _, candidates, shares = respond(np.array([[0.0, -100.0]]), np.ones(1), 2)
    assert candidates.tolist() == [[0, -1]]
    assert shares.tolist() == [[1.0, 0.0]]


def test_sparse_responsibilities_equal_dense_ones_over_the_kept():
    rng = np.random.default_rng(5)
    logits, counts = rng.normal(size=(30, 5)), np.ones(30)
    total, candidates, shares = respond(logits, counts, 3)
    again = np.where(candidates >= 0, np.take_along_axis(logits, np.maximum(candidates, 0).astype(int), 1), 0.0)
    assert common.respond_sparse(candidates, counts, 30, again) == pytest.approx(total, rel=1e-12)
    np.testing.assert_allclose(again, shares, rtol=1e-12)


def test_sparse_responsibilities_leave_unused_places_at_zero():
    candidates = np.array([[1, -1]], np.int32)
    shares = np.array([[-3.0, 7.0]])
    assert common.respond_sparse(candidates, np.array([2.0]), 1, shares) == pytest.approx(-6.0)
    assert shares.tolist() == [[1.0, 0.0]]


def test_weights_and_logits_follow_a_components_list():
    rows, places = np.array([0, 2]), np.array([1, 0])
    shares = np.array([[0.75, 0.25], [0.5, 0.5], [0.1, 0.9]])
    weights = np.zeros(2)
    common.list_weights(rows, places, shares, np.array([4.0, 1.0, 10.0]), weights)
    assert weights == pytest.approx([1.0, 1.0])
    common.scatter_logits(rows, places, np.array([-1.5, -2.5]), shares)
    assert shares.tolist() == [[0.75, -1.5], [0.5, 0.5], [-2.5, 0.9]]


def test_lists_hold_every_kept_pair_by_component_in_order_of_items():
    candidates = np.array([[2, 0], [1, -1], [0, 2]], np.int32)
    offsets, rows, places = np.zeros(4, np.int64), np.zeros(6, np.int64), np.zeros(6, np.int64)
    common.build_lists(candidates, 3, 3, offsets, rows, places)
    assert offsets.tolist() == [0, 2, 3, 5]
    assert rows[:5].tolist() == [0, 2, 1, 0, 2]
    assert places[:5].tolist() == [1, 0, 0, 0, 1]


def test_entropies():
    shares = np.array([[0.5, 0.3, 0.2], [1.0, 0.0, 0.0]])
    counts = np.array([3.0, 5.0])
    candidates = np.array([[0, 1, 2], [0, -1, -1]], np.int32)
    rows, places = np.array([0, 1]), np.array([0, 0])
    merged = 3.0 * (entr(0.8) + entr(0.2) - entr(shares[0]).sum())
    assert common.merge_entropy(rows, places, 1, candidates, shares, counts) == pytest.approx(merged)
    share, weights = np.array([0.25, 1.0]), np.array([2.0, 7.0])
    assert common.split_entropy(share, weights) == pytest.approx(2.0 * (entr(0.25) + entr(0.75)))


def test_overlap_is_the_mass_that_pairs_share():
    candidates = np.array([[1, 0], [0, 1]], np.int32)
    shares, out = np.array([[0.6, 0.4], [0.9, 0.1]]), np.ones((3, 3))
    common.overlap(candidates, shares, np.array([1.0, 2.0]), 2, out)
    assert out[0, 1] == pytest.approx(0.24 + 0.18)
    assert out.sum() == pytest.approx(out[0, 1])


def test_principal_direction_is_the_leading_eigenvector():
    rng = np.random.default_rng(2)
    x = (rng.normal(size=(400, 3)) * [1.0, 6.0, 0.5] @ np.linalg.qr(rng.normal(size=(3, 3)))[0]).astype(np.float32)
    direction = np.array([1.0, 0.0, 0.0])
    centre = x.mean(axis=0).astype(np.float64)
    common.principal_direction(x, np.arange(400), np.ones(400), centre, direction, np.zeros(3))
    leading = np.linalg.eigh(np.cov(x.T))[1][:, -1]
    assert abs(direction @ leading) > 0.999


def test_update_share_is_the_logistic_of_the_difference():
    a, b, share = np.array([1.0, -800.0, 800.0]), np.zeros(3), np.zeros(3)
    change = common.update_share(a, b, 0.5, 1, share)
    np.testing.assert_allclose(share, [1 / (1 + np.exp(-1.5)), 0.0, 1.0], atol=1e-12)
    assert change == 1.0
    common.update_share(a, b, 0.5, 0, share)
    assert share.tolist() == [1.0, 0.0, 1.0]


def test_log_odds_of_two_sticks_are_those_of_the_reference():
    log_weight, _ = reference.sticks(np.array([9.0, 4.0]), 1.5)
    assert common.split_log_odds(9.0, 4.0, 0.0, 1.5) == pytest.approx(log_weight[0] - log_weight[1], rel=1e-12)
    assert common.split_log_odds(4.0, 9.0, 0.0, 1.5) == pytest.approx(log_weight[1] - log_weight[0], rel=1e-12)


def test_the_strangest_items_are_the_farthest_fresh_one_and_the_one_of_most_points_times_excess():
    # Squared distances of items 0, 2, 5 and 6 from component 0: 10, 30, 25, 20; the others fit component 1 better.
    candidates = np.array([[0, 1], [1, 0], [0, 1], [1, 0], [1, 0], [0, -1], [0, 1]], np.int32)
    logits = np.array([1.0, 9.0, 1.0, 9.0, 9.0, 1.0, 1.0]) - 0.5 * np.array([10.0, 0, 30, 0, 0, 25, 20])
    counts = np.array([50.0, 9, 9, 9, 9, 1, 1])
    constants, seeds = np.array([1.0, 9.0, 0.0]), np.zeros((3, 2), np.int64)
    common.strangest(candidates, logits, counts, 7, constants, 3, 5, np.array([22.0, 9.0]), seeds)
    assert seeds.tolist() == [[5, 2], [-1, -1], [-1, -1]]
    common.strangest(candidates, logits, counts, 7, constants, 3, 5, np.array([26.0, 30.0]), seeds)
    assert (seeds == -1).all()


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("n_kept", [1, 3, 6])
def test_what_is_kept_is_what_a_stable_sort_puts_first(seed, n_kept):
    rng = np.random.default_rng(seed)
    logits = np.round(rng.normal(size=(40, 9)) * 10)  # rounded, so that there are ties
    _, candidates, shares = respond(logits, np.ones(40), n_kept)
    order = np.argsort(-logits, axis=1, kind="stable")[:, :n_kept]
    sorted_ = np.take_along_axis(logits, order, 1)
    kept = (sorted_ > sorted_[:, :1] - 23.0) | (np.arange(n_kept) == 0)
    np.testing.assert_array_equal(candidates, np.where(kept, order, -1))
    expected = np.where(kept, np.exp(sorted_ - sorted_[:, :1]), 0.0)
    np.testing.assert_allclose(shares, expected / expected.sum(axis=1, keepdims=True), rtol=1e-12)


def test_pairs_are_those_that_share_mass_or_are_near():
    overlaps = np.zeros((5, 5))
    overlaps[0, 1], overlaps[1, 3] = 0.2, 0.04
    near = np.array([[2], [0], [0], [2], [9]])
    pairs = np.full((6, 2), -9, np.int64)
    n = common.choose_pairs(overlaps, np.array([10.0, 10.0, 10.0, 5.0]), near, 4, 0.01, pairs)
    assert pairs[:n].tolist() == [[0, 1], [0, 2], [2, 3]]  # 1 and 3 share 0.04, less than 0.01 times 5


@pytest.mark.parametrize("seed", range(10))
def test_gains_of_sticks_are_the_evidence_after_less_before(seed):
    rng = np.random.default_rng(seed)
    counts = rng.gamma(0.5, 20.0, 8)
    counts[5] = counts[2]
    pairs = np.array([(a, b) for a in range(8) for b in range(a + 1, 8)])
    gains, order = np.full(28, 3.0), np.argsort(-counts, kind="stable")
    common.add_stick_gains(counts, order, 1.7, pairs, 28, np.zeros((3, 9)), np.zeros(8, np.int64), gains)
    before = common.sticks_evidence(-np.sort(-counts), 1.7)
    for (a, b), gain in zip(pairs, gains, strict=True):
        joined = np.append(np.delete(counts, [a, b]), counts[a] + counts[b])
        assert gain == pytest.approx(3.0 + common.sticks_evidence(-np.sort(-joined), 1.7) - before, abs=1e-9)
