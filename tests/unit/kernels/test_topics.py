"""Words by document and topic, alpha, merging of documents, shares of a new one: against plain NumPy."""

import numpy as np
import pytest
import reference_kernels_topics as reference
from scipy.optimize import minimize
from scipy.special import digamma

from stillwatch.kernels import topics as kernels

N_CLUMPS, N_ITEMS, N_GROUPS, N_TOPICS = 3, 12, 4, 5


class World:
    """Clumps and single words of four documents, each with up to two topics."""

    def __init__(self, seed=0):
        rng = np.random.default_rng(seed)
        self.rng = rng
        self.counts = np.ones(N_ITEMS)
        self.counts[:N_CLUMPS] = rng.integers(2, 9, N_CLUMPS)
        self.group = rng.integers(N_GROUPS, size=N_ITEMS)
        parts = rng.multinomial(reference.PARTS, [0.5, 0.0, 0.3, 0.2], size=N_CLUMPS)
        self.spread = parts.astype(np.uint16)
        self.candidates = np.array([rng.permutation(N_TOPICS)[:2] for _ in range(N_ITEMS)], np.int32)
        first = rng.uniform(0.5, 1.0, N_ITEMS)
        self.shares = np.stack([first, 1.0 - first], axis=1)
        self.candidates[5, 1], self.shares[5] = -1, (1.0, 0.0)
        self.words = rng.gamma(1.0, 5.0, (N_GROUPS, N_TOPICS))
        self.words[1, 2] = 0.0
        self.size = np.array([1.0, 3.0, 1.0, 2.0])
        self.alpha = rng.uniform(0.2, 2.0, N_TOPICS)

    def dense(self):
        shares = np.zeros((N_ITEMS, N_TOPICS))
        for item in range(N_ITEMS):
            for k, share in zip(self.candidates[item], self.shares[item], strict=True):
                if k >= 0:
                    shares[item, k] = share
        return shares

    def n_cs(self):
        return reference.words_by_group(self.counts, self.group, self.spread, N_CLUMPS)


@pytest.fixture
def world():
    return World()


def test_words_by_topic_are_equation_3_15(world):
    out = np.full((N_GROUPS, N_TOPICS + 2), 9.0)
    kernels.words_by_topic(
        world.candidates, world.shares, world.counts, world.group, world.spread, N_CLUMPS, N_ITEMS, out
    )
    np.testing.assert_allclose(out[:, :N_TOPICS], world.n_cs().T @ world.dense(), rtol=1e-12)
    assert (out[:, N_TOPICS:] == 0.0).all()


def test_words_of_a_list_are_those_of_its_items(world):
    rows, weights = np.array([0, 2, 4, 7]), np.array([1.5, 2.0, 0.3, 1.0])
    out = np.full(N_GROUPS, 9.0)
    kernels.words_of_list(rows, weights, world.group, world.spread, N_CLUMPS, out)
    np.testing.assert_allclose(out, (world.n_cs() / world.counts[:, None])[rows].T @ weights, rtol=1e-12)


def test_expected_weights_of_an_item_are_those_of_its_documents(world):
    expected = world.rng.normal(size=(N_GROUPS, N_TOPICS))
    wanted = (world.n_cs() / world.counts[:, None]) @ expected
    block = np.zeros((4, N_TOPICS))
    kernels.add_expected_block(1, 4, N_TOPICS, N_CLUMPS, world.group, world.spread, expected, block)
    np.testing.assert_allclose(block, wanted[1:5], rtol=1e-12)
    rows, logits = np.array([0, 1, 6]), np.ones(3)
    column = np.ascontiguousarray(expected[:, 2])
    kernels.add_expected_list(rows, N_CLUMPS, world.group, world.spread, column, logits)
    np.testing.assert_allclose(logits, 1.0 + wanted[rows, 2], rtol=1e-12)


@pytest.mark.parametrize("n_clumps", [0, N_CLUMPS])
def test_expected_weights_of_kept_topics_are_those_of_all(world, n_clumps):
    expected, shares = world.rng.normal(size=(N_GROUPS, N_TOPICS)), np.ones((N_ITEMS, 2))
    n_cs = reference.words_by_group(world.counts, world.group, world.spread, n_clumps) / world.counts[:, None]
    wanted = n_cs @ expected
    kernels.add_expected_kept(
        world.candidates, N_ITEMS, n_clumps, N_TOPICS, world.group, world.spread, expected, np.zeros(N_GROUPS), shares
    )
    for item in range(N_ITEMS):
        for k, share in zip(world.candidates[item], shares[item], strict=True):
            assert share == pytest.approx(1.0 + wanted[item, k] if k >= 0 else 1.0, rel=1e-12)


def test_what_documents_gain_by_a_merge_is_the_difference_of_their_evidence(world):
    pairs, gains = np.array([[0, 2], [1, 4]]), np.array([1.0, 2.0])
    kernels.add_merge_gains(
        world.words, world.size, world.alpha, N_GROUPS, pairs, 2, np.zeros(N_GROUPS), np.zeros(N_TOPICS), gains
    )
    before = reference.evidence(world.words, world.size, world.alpha)
    for (a, b), gain, began in zip(pairs, gains, (1.0, 2.0), strict=True):
        words, alpha = world.words.copy(), world.alpha.copy()
        words[:, a] += words[:, b]
        alpha[a] += alpha[b]
        left = np.delete(np.arange(N_TOPICS), b)
        after = reference.evidence(np.ascontiguousarray(words[:, left]), world.size, alpha[left])
        assert gain - began == pytest.approx(after - before, rel=1e-9)


def test_document_terms_are_those_of_the_bound(world):
    np.testing.assert_allclose(
        kernels.documents_evidence(world.words, world.size, world.alpha, N_GROUPS),
        reference.evidence(world.words, world.size, world.alpha),
        rtol=1e-12,
    )
    expected = np.zeros((N_GROUPS, N_TOPICS))
    kernels.expected_weights(world.words, world.size, world.alpha, N_GROUPS, expected)
    np.testing.assert_allclose(expected, reference.expected_weights(world.words, world.size, world.alpha), rtol=1e-9)


def test_a_topics_part_is_what_the_evidence_changes_by_where_it_is_divided(world):
    words, k = world.words, 1
    divided = np.hstack([words, 0.25 * words[:, k : k + 1]])
    divided[:, k] *= 0.75
    alpha = np.append(world.alpha, 0.4 * world.alpha[k])
    alpha[k] *= 0.6
    parts = [kernels.topic_evidence(np.ascontiguousarray(divided[:, i]), world.size, alpha[i]) for i in (k, -1)]
    whole = kernels.topic_evidence(np.ascontiguousarray(words[:, k]), world.size, world.alpha[k])
    change = reference.evidence(divided, world.size, alpha) - reference.evidence(words, world.size, world.alpha)
    np.testing.assert_allclose(sum(parts) - whole, change, rtol=1e-9)


def test_digammas(world):
    values, out = np.array([1e-6, 0.3, 2.0, 900.0]), np.zeros(4)
    kernels.digammas(values, out)
    np.testing.assert_allclose(out, digamma(values), rtol=1e-12)


def test_alpha_goes_to_the_largest_bound_and_never_down(world):
    a, b, alpha = 1.0, 0.5, np.ones(N_TOPICS)

    def bound(log_alpha):
        given = np.exp(log_alpha)
        return reference.evidence(world.words, world.size, given) - b * given.sum()

    before = bound(np.log(alpha))
    for _ in range(40):
        kernels.update_alpha(world.words, world.size, N_GROUPS, a, b, 10, alpha)
        now = bound(np.log(alpha))
        assert now >= before - 1e-9
        before = now
    best = minimize(lambda x: -bound(x), np.zeros(N_TOPICS), method="BFGS")
    np.testing.assert_allclose(before, -best.fun, atol=1e-3)


def test_alpha_of_a_topic_that_no_document_uses_goes_to_the_least(world):
    world.words[:, 3] = 0.0
    alpha = np.ones(N_TOPICS)
    kernels.update_alpha(world.words, world.size, N_GROUPS, 1.0, 0.5, 5, alpha)
    assert alpha[3] == kernels.LEAST_ALPHA


def merge(words, size, alpha, n_kept, capacity=8):
    n, k = words.shape
    held, sizes = np.zeros((capacity, k)), np.zeros(capacity)
    held[:n], sizes[:n] = words, size
    place = np.zeros(capacity, np.int64)
    kernels.merge_documents(
        held,
        sizes,
        alpha,
        n,
        n_kept,
        place,
        np.zeros(capacity),
        np.zeros(k),
        np.zeros(capacity, np.int64),
        np.zeros((capacity, capacity)),
    )
    return held[:n_kept], sizes[:n_kept], place[:n]


@pytest.mark.parametrize("n_kept", [1, 2, 4, 7])
def test_documents_are_merged_where_the_bound_loses_least(n_kept):
    rng = np.random.default_rng(n_kept)
    words, size, alpha = rng.gamma(0.4, 9.0, (7, 3)), rng.integers(1, 4, 7).astype(float), np.array([0.4, 0.9, 0.2])
    wanted_words, wanted_size, members = reference.merged(words, size, alpha, n_kept)
    got_words, got_size, place = merge(words, size, alpha, n_kept)
    assert [set(np.flatnonzero(place == s)) for s in range(n_kept)] == members
    np.testing.assert_allclose(got_words, wanted_words, rtol=1e-12)
    np.testing.assert_array_equal(got_size, wanted_size)


def test_words_follow_their_documents_into_the_merged_groups(world):
    before, place = world.n_cs(), np.array([1, 0, 1, 0])
    kernels.move_documents(world.group, N_CLUMPS, N_ITEMS, world.spread, N_GROUPS, place, np.zeros(N_GROUPS))
    wanted = np.zeros((N_ITEMS, 2))
    for s in range(N_GROUPS):
        wanted[:, place[s]] += before[:, s]
    np.testing.assert_allclose(world.n_cs()[:, :2], wanted, rtol=1e-12)


def test_a_new_clump_has_the_documents_of_its_words(world):
    order = np.array([0, 3, 4, 1, 2, 5, 6, 7, 8, 9, 10, 11])
    bounds, groups = np.array([0, 3, 5, 12]), np.array([0, 2])
    out = np.full((2, N_GROUPS), 7, np.uint16)
    kernels.spread_of_clumps(
        order, bounds, groups, N_GROUPS, world.counts, world.group, world.spread, N_CLUMPS, np.zeros(N_GROUPS), out
    )
    assert (out.astype(int).sum(axis=1) == reference.PARTS).all()
    for row, group in enumerate(groups):
        members = order[bounds[group] : bounds[group + 1]]
        wanted = world.n_cs()[members].sum(axis=0) / world.counts[members].sum()
        np.testing.assert_allclose(out[row] / reference.PARTS, wanted, atol=N_GROUPS / reference.PARTS)


def test_shares_of_a_new_document_are_the_variational_updates(world):
    density = world.rng.normal(0.0, 3.0, (30, N_TOPICS))
    zeta = np.zeros(N_TOPICS)
    kernels.infer_document(density, world.alpha, 7, zeta, np.zeros(N_TOPICS), np.zeros(N_TOPICS))
    np.testing.assert_allclose(zeta, reference.inferred(density, world.alpha, 7), rtol=1e-9)


def test_shares_of_a_new_document_end_where_nothing_changes(world):
    density = np.where(np.arange(N_TOPICS) == 1, 0.0, -500.0) * np.ones((9, 1))
    zeta = np.zeros(N_TOPICS)
    kernels.infer_document(density, world.alpha, 10**9, zeta, np.zeros(N_TOPICS), np.zeros(N_TOPICS))
    np.testing.assert_allclose(zeta - world.alpha, 9.0 * (np.arange(N_TOPICS) == 1), atol=1e-9)


@pytest.mark.parametrize("n_best", [3, 5, 8])
def test_similarity_is_equation_3_28_over_the_best_topics(world, n_best):
    density = world.rng.normal(0.0, 40.0, (20, N_TOPICS))  # so far apart that shares seldom turn the order
    zeta = world.rng.uniform(0.5, 9.0, (7, N_TOPICS))
    expected, score = digamma(zeta) - digamma(zeta.sum(axis=1, keepdims=True)), np.zeros(7)
    kernels.similarity(density, expected, n_best, np.zeros(n_best, np.int64), score)
    np.testing.assert_allclose(score, reference.similarity(density, zeta), rtol=1e-12)


def test_likeness_is_what_one_pi_for_both_documents_gains(world):
    asked, zeta = (world.alpha + world.rng.uniform(0.0, 9.0, (n, N_TOPICS)) for n in (4, 7))
    score = np.zeros((4, 7))
    kernels.likeness(asked, zeta, world.alpha, np.zeros(7), score)
    np.testing.assert_allclose(score, reference.likeness(asked, zeta, world.alpha), rtol=1e-9, atol=1e-9)
