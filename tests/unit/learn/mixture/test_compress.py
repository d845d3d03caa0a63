"""Compression: nothing is lost, the budget holds, and what the future would tell apart stays apart."""

import numpy as np
import pytest
from mixture_cases import BUILT, ROUNDED, builder_for, clumped, clusters, cost_of_clump, items_of, second_moments

from stillwatch.learn.mixture.compress import Compressor


def compress(items, form, budget, labels, magnification):
    """Compress items of these components; return the report."""
    builder = builder_for(items, form, 12, 0.05)
    names, place = np.unique(labels, return_inverse=True)
    builder.start_from(items, place, names)
    return Compressor(builder, budget).compress(items, builder.candidates, len(names), magnification)


def cost(items, form):
    d = items.x.shape[1]
    return items.n_clumps * cost_of_clump(form, d) + (items.n_items - items.n_clumps) * d


def totals(items, form):
    """Return count, sum and summed squares of all the points that items stand for."""
    n = items.n_items
    x, counts = items.x[:n].astype(float), items.counts[:n]
    second = second_moments(items, form)
    outer = x**2 if form == "diagonal" else np.einsum("ni,nj->nij", x, x)
    return counts.sum(), counts @ x, np.tensordot(counts, outer + second, axes=1)


@pytest.mark.parametrize("form", BUILT)
@pytest.mark.parametrize("budget", [60, 150, 400])
@pytest.mark.parametrize("magnification", [1.0, 50.0, 1e5])
def test_the_budget_holds_and_no_mass_is_lost(magnification, budget, form):
    rows, labels = clusters(1, n_rows=300, n_clusters=3)
    items = items_of(rows, form)
    before = totals(items, form)
    compress(items, form, budget, labels, magnification)
    assert cost(items, form) <= budget
    after = totals(items, form)
    assert after[0] == before[0]
    np.testing.assert_allclose(after[1], before[1], rtol=1e-5, atol=1e-3)
    if form not in ROUNDED:
        np.testing.assert_allclose(after[2], before[2], rtol=1e-5, atol=1e-2)
        return
    variances = np.einsum("dd->d", before[2])
    np.testing.assert_allclose(np.einsum("dd->d", after[2]), variances, rtol=1e-5)
    # A rounded correlation is off by some steps of 1/127; the moments about the origin hold the exact means too.
    assert (np.abs(after[2] - before[2]) < 0.03 * np.sqrt(np.outer(variances, variances))).all()


@pytest.mark.parametrize("form", BUILT)
def test_where_components_outnumber_the_first_centres_the_budget_holds_and_no_mass_is_lost(form):
    rows, labels = clusters(2, n_rows=40, n_clusters=18, n_dims=16)
    assert len(np.unique(labels)) == 18
    items = items_of(rows, form)
    before = totals(items, form)
    builder = builder_for(items, form, 20, 0.05)
    builder.start_from(items, labels, np.arange(18))
    compressor = Compressor(builder, 600)
    assert len(compressor.centres) < 18
    compressor.compress(items, builder.candidates, 18, 1.0)
    assert cost(items, form) <= 600
    assert totals(items, form)[0] == before[0]
    np.testing.assert_allclose(totals(items, form)[1], before[1], rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("form", BUILT)
def test_what_fits_is_left_alone(form):
    rows, labels = clusters(1, n_rows=50)
    items = items_of(rows, form)
    kept = items.x.copy()
    report = compress(items, form, 200, labels, 10.0)
    np.testing.assert_array_equal(items.x, kept)
    assert report.splits_tried == 0


@pytest.mark.parametrize("form", BUILT)
def test_more_components_than_the_budget_holds_are_joined_by_least_loss(form):
    rng = np.random.default_rng(0)
    means = np.array([[0.0, 0], [0.3, 0], [9, 9], [-9, 9]])
    labels = np.repeat(np.arange(4), 50)
    items = items_of(means[labels] + rng.normal(size=(200, 2)) * 0.2, form)
    budget = 3 * cost_of_clump(form, 2)
    report = compress(items, form, budget, labels, 10.0)
    assert report.forced_merges == 1
    assert sorted(items.counts[: items.n_clumps].tolist()) == [50.0, 50.0, 100.0]


@pytest.mark.parametrize("form", BUILT)
def test_two_clusters_in_one_component_become_two_clumps(form):
    rng = np.random.default_rng(1)
    rows = np.concatenate([rng.normal(-3, 0.3, (150, 3)), rng.normal(3, 0.3, (150, 3))])
    items = items_of(rows, form)
    budget = 2 * cost_of_clump(form, 3) + 2
    compress(items, form, budget, np.zeros(300, int), 20.0)
    assert items.counts[: items.n_clumps].tolist() == [150.0, 150.0]


@pytest.mark.parametrize(("form", "most"), [("diagonal", 2), ("full", 3), ("rounded", 3), ("wide", 3)])
def test_a_group_stays_single_points_up_to_the_size_where_a_clump_is_cheaper(form, most):
    # d = 4: a full clump takes 15 values, so 3 points (12) are kept; a rounded one 12, so 3; a diagonal one 9, so 2.
    rows = np.repeat([[0.0, 0, 0, 0], [50, 0, 0, 0], [0, 50, 0, 0]], [200, most, most + 1], axis=0)
    rows = rows + np.random.default_rng(0).normal(size=rows.shape) * 0.1
    items = items_of(rows, form)
    labels = np.repeat([0, 1, 2], [200, most, most + 1])
    budget = 2 * cost_of_clump(form, 4) + most * 4
    compress(items, form, budget, labels, 20.0)
    assert sorted(items.counts[: items.n_items].tolist()) == [1.0] * most + [most + 1.0, 200.0]


@pytest.mark.parametrize("form", BUILT)
def test_a_clump_is_never_taken_apart(form):
    rows, labels = clusters(2, n_rows=200, n_clusters=5)
    items = clumped(rows, labels, form)
    items.append(rows[:60].astype(np.float32))
    sizes = items.counts[:5].copy()
    compress(items, form, 150, np.zeros(65, int), 50.0)
    assert items.n_clumps >= 1
    assert items.counts[: items.n_clumps].max() >= sizes.max()
    assert items.counts[: items.n_items].sum() == 260


@pytest.mark.parametrize("form", BUILT)
def test_identical_points_are_one_clump(form):
    items = items_of(np.full((500, 3), 1.25), form)
    compress(items, form, 60, np.zeros(500, int), 1e4)
    assert (items.n_items, items.n_clumps) == (1, 1)
    assert items.counts[0] == 500.0
    np.testing.assert_allclose(items.second[0], 0.0, atol=1e-12)
