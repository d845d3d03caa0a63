"""Model building of topics: the bound is 3.29, rises with every update and move, and clumps of one word are words."""

import numpy as np
import pytest
import reference_kernels_mixture as mixture
import reference_kernels_topics as reference
from mixture_cases import dense_shares, second_moments
from scipy.special import xlogy
from topic_cases import builder_of, corpus, words_of

from stillwatch.learn.mixture.families.places import odds_of

N_DOCUMENTS = 6


@pytest.fixture
def small():
    rows, _, groups = corpus(1, n_documents=N_DOCUMENTS, n_words=40, n_topics=4, n_dims=3)
    return rows, groups


def bound(words, builder):
    """Return 3.29, its sign turned, for the builder's q(z) and alpha, all else at its optimum."""
    n, docs = words.n_items, builder.documents
    x, counts, second = words.x[:n].astype(float), words.counts[:n], second_moments(words, "diagonal")
    shares = dense_shares(builder, n)
    k = shares.shape[1]
    stats = [mixture.statistics(x, counts, second, shares[:, i]) for i in range(k)]
    total = sum(mixture.log_evidence(*stat, builder.family.prior, "diagonal") for stat in stats)
    n_cs = reference.words_by_group(counts, words.group[:n], words.spread, words.n_clumps)
    alpha = docs.alpha[:k]
    total += reference.evidence(n_cs.T @ shares, docs.size[: docs.n_groups], alpha) - 0.5 * alpha.sum()
    return total - (counts[:, None] * xlogy(shares, shares)).sum()


def update(builder, words, times):
    """Update everything so many times."""
    for _ in range(times):
        builder.expect_dense(words)
        builder.update_lists(words)
        builder.maximise(words)


def test_the_bound_is_equation_3_29(small):
    words = words_of(*small, N_DOCUMENTS)
    builder = builder_of(words, N_DOCUMENTS, 4)
    update(builder, words, 60)
    told = builder.expect_dense(words)
    # q(z) has just been updated: the reference takes all else at its optimum for it, which nothing changes any more.
    np.testing.assert_allclose(told, bound(words, builder), atol=1e-3)


def test_the_bound_never_falls_within_updates(small):
    words = words_of(*small, N_DOCUMENTS, as_clumps=100)
    words.counts[:100] = 3.0
    builder = builder_of(words, N_DOCUMENTS, 5)
    before = builder.expect_dense(words)
    for update in range(25):
        builder.update_lists(words)
        builder.maximise(words)
        now = builder.expect_dense(words) if update % 3 == 0 else builder.expect_sparse(words)
        assert now >= before - 1e-10 * abs(before)
        before = now


def test_a_split_gains_what_it_says(small):
    words = words_of(*small, N_DOCUMENTS)
    builder = builder_of(words, N_DOCUMENTS, 2)
    update(builder, words, 5)
    before = builder.expect_dense(words)
    assert builder.try_splits(words) > 0
    builder.update_sticks()
    assert builder.expect_dense(words) > before


def test_a_merge_that_is_kept_raises_the_bound():
    rng = np.random.default_rng(0)
    rows, groups = rng.normal(size=(200, 2)), np.repeat([0, 1], 100)
    words = words_of(rows, groups, 2)
    builder = builder_of(words, 2, 3)
    before = builder.expect_dense(words)
    builder.update_lists(words)
    assert builder.try_merges(words) > 0
    builder.update_sticks()
    assert builder.expect_dense(words) > before
    assert builder.documents.alpha[builder.n_components :].max() == 0.0


def test_clumps_of_one_word_are_words(small):
    told = []
    for as_clumps in (0, 150):
        words = words_of(*small, N_DOCUMENTS, as_clumps=as_clumps)
        builder = builder_of(words, N_DOCUMENTS, 4)
        builder.build(words, warm=True, merges=True)
        told.append((builder.n_components, builder.report.free_energy, builder.documents.words.copy()))
    assert told[0][0] == told[1][0]
    np.testing.assert_allclose(told[0][1], told[1][1], rtol=1e-9)
    np.testing.assert_allclose(told[0][2], told[1][2], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("one", "other"), [(0.0, 4.0), (1e-310, 4.0), (4.0, 1e-310), (0.0, 0.0)])
def test_a_side_of_a_split_that_weighs_next_to_nothing_has_no_odds(one, other):
    assert odds_of(one, other) is None


def test_the_odds_of_a_split_are_logarithms_of_how_much_heavier_a_side_is():
    assert odds_of(8.0, 2.0) == pytest.approx(np.log(4.0))
    assert odds_of(1e-300, 1e-5) == pytest.approx(-295 * np.log(10.0))


@pytest.mark.parametrize("as_clumps", [0, 80])
def test_few_dimensions_give_the_topics_that_matrix_products_give(as_clumps):
    rows, _, groups = corpus(2, n_documents=20, n_words=40, n_topics=5, n_dims=3)
    told = []
    for form in ("rounded", "wide"):
        words = words_of(rows, groups, 20, as_clumps, form)
        builder = builder_of(words, 20, 3, form=form)
        builder.build(words, warm=True, merges=True, fresh=500)
        report, n, docs = builder.report, builder.n_components, builder.documents
        assert report.splits_kept > 0
        told.append((report.free_energy, docs.alpha[:n], docs.words[:, :n], builder.counts(), report.splits_tried))
    for one, other in zip(*told, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)
