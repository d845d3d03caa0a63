"""Model building: the bound is what the papers say it is, rises with every update and every move, and obeys clumps."""

import numpy as np
import pytest
import reference_kernels_mixture as reference
from mixture_cases import (
    AWKWARD,
    BUILT,
    FAMILIES,
    awkward_rows,
    builder_for,
    clumped,
    clusters,
    covariance_of,
    dense_shares,
    items_of,
    second_moments,
)
from scipy.special import entr

from stillwatch.kernels import mixture_common
from stillwatch.kernels.mixture_common import EVIDENCE


def started(rows, form, n_components=4, seed=0, items=None):
    """Return items and a builder whose components began from a random hard partition."""
    items = items_of(rows, form) if items is None else items
    builder = builder_for(items, form)
    n = items.n_items
    n_components = min(n_components, n)
    builder.n_components = n_components
    builder.candidates[:n, 0] = np.random.default_rng(seed).integers(n_components, size=n)
    builder.candidates[:n_components, 0] = np.arange(n_components)
    builder.shares[:n, 0] = 1.0
    builder.update_lists(items)
    builder.maximise(items)
    return items, builder


def bound(items, builder, form):
    """Return the reference's bound for the builder's q(Z)."""
    n = items.n_items
    x = items.x[:n].astype(np.float64)
    return reference.free_energy(
        x,
        items.counts[:n],
        second_moments(items, form),
        dense_shares(builder, n),
        builder.family.prior,
        builder.alpha,
        covariance_of(form),
    )


def free_energy_after_maximise(builder, items):
    """Return the bound with q(Phi) and q(V) at their optimum for the present q(Z): evidence plus entropy."""
    evidence = builder.family.fits[: builder.n_components, EVIDENCE].sum()
    sticks = mixture_common.sticks_evidence(-np.sort(-builder.counts()), builder.alpha)
    n = items.n_items
    return float(evidence + sticks + items.counts[:n] @ entr(builder.shares[:n]).sum(axis=1))


@pytest.mark.parametrize("covariance", BUILT)
@pytest.mark.parametrize("kind", AWKWARD)
def test_the_bound_never_falls_within_updates(kind, covariance):
    items, builder = started(awkward_rows(kind), covariance)
    before = builder.expect_dense(items)
    for update in range(25):
        builder.update_lists(items)
        builder.maximise(items)
        now = builder.expect_dense(items) if update % 3 == 0 else builder.expect_sparse(items)
        assert now >= before - 1e-10 * abs(before)
        before = now


@pytest.mark.parametrize("covariance", BUILT)
@pytest.mark.parametrize("kind", AWKWARD)
def test_the_bound_equals_the_slow_reference(kind, covariance):
    items, builder = started(awkward_rows(kind), covariance)
    builder.expect_dense(items)
    builder.update_lists(items)
    builder.maximise(items)
    expected = bound(items, builder, covariance)
    assert free_energy_after_maximise(builder, items) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("covariance", BUILT)
def test_both_forms_of_the_bound_agree_where_updates_have_converged(covariance):
    rows, _ = clusters(5)
    items, builder = started(rows, covariance)
    builder.expect_dense(items)
    for _ in range(300):
        builder.update_lists(items)
        builder.maximise(items)
        after_expectation = builder.expect_sparse(items)
    builder.maximise(items)
    assert free_energy_after_maximise(builder, items) == pytest.approx(after_expectation, rel=1e-9)


@pytest.mark.parametrize("covariance", BUILT)
@pytest.mark.parametrize("seed", range(4))
def test_a_split_changes_the_bound_by_exactly_the_gain_it_claims(seed, covariance):
    rows, _ = clusters(seed, n_clusters=3)
    items, builder = started(rows, covariance, n_components=1)
    builder.expect_dense(items)
    builder.update_lists(items)
    builder.maximise(items)
    before = free_energy_after_maximise(builder, items)
    assert builder.try_splits(items) == 1
    share = builder.family.share[: items.n_items]
    shares = np.column_stack([share, 1.0 - share])
    x = items.x[: items.n_items].astype(np.float64)
    after = reference.free_energy(
        x,
        items.counts[: items.n_items],
        second_moments(items, covariance),
        shares,
        builder.family.prior,
        builder.alpha,
        covariance_of(covariance),
    )
    assert after > before
    builder.update_sticks()
    assert builder.expect_dense(items) >= after - 1e-9 * abs(after)


@pytest.mark.parametrize("covariance", BUILT)
@pytest.mark.parametrize("seed", range(4))
def test_merging_the_halves_of_one_cluster_raises_the_bound(seed, covariance):
    rows = np.random.default_rng(seed).normal(size=(200, 3))
    items, builder = started(rows, covariance, n_components=2, seed=seed)
    builder.expect_dense(items)
    builder.update_lists(items)
    builder.maximise(items)
    before = free_energy_after_maximise(builder, items)
    assert builder.try_merges(items) == 1
    builder.update_sticks()
    assert builder.n_components == 1
    assert builder.expect_dense(items) > before


@pytest.mark.parametrize("covariance", BUILT)
def test_a_model_built_from_scratch_finds_separate_clusters(covariance):
    rows, labels = clusters(7, n_rows=600, n_clusters=5, gap=8.0)
    items = items_of(rows / 8.0, covariance)
    builder = builder_for(items, covariance, scale=0.02)
    builder.build(items, warm=True, merges=True)
    found = builder.candidates[:600, 0]
    assert builder.n_components == 5
    assert all(len(np.unique(found[labels == k])) == 1 for k in range(5))


@pytest.mark.parametrize("form", BUILT)
def test_clumps_of_identical_members_change_nothing(form):
    base, _ = clusters(2, n_rows=40)
    points, builder_points = started(np.repeat(base, 3, axis=0), form, n_components=1)
    clumps, builder_clumps = started(
        base, form, n_components=1, items=clumped(np.repeat(base, 3, axis=0), np.repeat(np.arange(40), 3), form)
    )
    free = builder_points.build(points, warm=False, merges=True).free_energy
    held = builder_clumps.build(clumps, warm=False, merges=True).free_energy
    assert builder_points.n_components == builder_clumps.n_components
    assert held == pytest.approx(free, rel=1e-9)


@pytest.mark.parametrize("form", BUILT)
def test_over_clumps_the_bound_equals_the_slow_reference_and_never_falls(form):
    rows, labels = clusters(9, n_rows=160, n_clusters=4)
    parts = labels * 5 + np.random.default_rng(0).integers(5, size=160)
    items, builder = started(rows, form, items=clumped(rows, np.where(parts % 5 == 4, -1, parts), form))
    before = builder.expect_dense(items)
    for update in range(20):
        builder.update_lists(items)
        builder.maximise(items)
        assert free_energy_after_maximise(builder, items) == pytest.approx(bound(items, builder, form), rel=1e-9)
        # The dense pass reads decoded moments in float32.
        now = builder.expect_dense(items) if update % 3 == 0 else builder.expect_sparse(items)
        assert now >= before - 1e-7 * abs(before)
        before = now


@pytest.mark.parametrize("covariance", FAMILIES)
def test_property_1_a_constrained_solution_copied_to_its_points_keeps_its_bound_and_can_only_rise(covariance):
    rows, labels = clusters(9, n_rows=120, n_clusters=3)
    fine = labels * 10 + np.random.default_rng(0).integers(4, size=120)
    held, builder = started(rows, covariance, 3, items=clumped(rows, fine, covariance))
    builder.expect_dense(held)
    for _ in range(20):
        builder.update_lists(held)
        builder.maximise(held)
        builder.expect_sparse(held)
    builder.maximise(held)
    constrained = free_energy_after_maximise(builder, held)
    free, copy = started(rows, covariance, 3)
    by_clump = np.searchsorted(np.unique(fine), fine)
    copy.candidates[:120], copy.shares[:120] = builder.candidates[by_clump], builder.shares[by_clump]
    copy.update_lists(free)
    copy.maximise(free)
    assert free_energy_after_maximise(copy, free) == pytest.approx(constrained, rel=1e-7)
    assert bound(free, copy, covariance) == pytest.approx(constrained, rel=1e-7)
    copy.n_components = 3
    assert copy.expect_dense(free) >= constrained - 1e-7 * abs(constrained)


@pytest.mark.parametrize("covariance", BUILT)
def test_property_2_a_finer_set_of_clumps_started_from_the_coarser_solution_is_never_worse(covariance):
    rows, labels = clusters(10, n_rows=120, n_clusters=3)
    coarse = labels * 2 + (rows[:, 0] > np.median(rows[:, 0]))
    fine = coarse * 2 + (rows[:, 1] > np.median(rows[:, 1]))
    held, builder = started(rows, covariance, 3, items=clumped(rows, coarse, covariance))
    builder.expect_dense(held)
    for _ in range(20):
        builder.update_lists(held)
        builder.maximise(held)
        builder.expect_sparse(held)
    coarse_bound = builder.report.free_energy
    finer, copy = started(rows, covariance, 3, items=clumped(rows, fine, covariance))
    parents = np.searchsorted(np.unique(coarse), np.unique(fine) // 2)
    n = finer.n_items
    copy.candidates[:n], copy.shares[:n] = builder.candidates[parents], builder.shares[parents]
    copy.update_lists(finer)
    copy.maximise(finer)
    assert copy.expect_dense(finer) >= coarse_bound - 1e-7 * abs(coarse_bound)


@pytest.mark.parametrize("covariance", BUILT)
def test_no_more_components_than_allowed_and_no_more_updates(covariance):
    rows, _ = clusters(1, n_rows=400, n_clusters=8, gap=6.0)
    items = items_of(rows, covariance)
    builder = builder_for(items, covariance, capacity=3, max_iterations=7)
    report = builder.build(items, warm=True, merges=True)
    assert builder.n_components <= 3
    assert report.iterations <= 8


@pytest.mark.parametrize("form", BUILT)
def test_where_there_is_no_room_a_pair_is_merged_for_a_split_that_gains_more(form):
    rng = np.random.default_rng(8)
    means = np.array([[0.0, 0], [10, 0], [0, 10], [10, 10]])
    labels = np.repeat(np.arange(4), 60)
    rows = means[labels] + rng.normal(size=(240, 2))
    items = items_of(rows / 5.0, form)
    builder = builder_for(items, form, capacity=4)
    # Cluster 0 is two components' and clusters 2 and 3 are one's: no merge and no split alone leads out of it.
    start = np.where(labels == 0, np.arange(240) % 2, np.minimum(labels, 2) + 1)
    builder.start_from(items, start, np.arange(4))
    builder.expect_dense(items)
    builder.update_lists(items)
    before = free_energy_after_maximise(builder, items)
    assert builder.try_exchanges(items) == 1
    assert builder.n_components == 4
    builder.update_sticks()
    assert builder.expect_dense(items) > before
    own = builder.likeliest(items)
    assert [len(np.unique(own[labels == k])) for k in range(4)] == [1, 1, 1, 1]
    assert len(np.unique(own)) == 4
    assert {event[0] for event in builder.identities.events} >= {"birth", "death"}


def test_with_room_left_nothing_is_exchanged():
    rows, _ = clusters(1)
    items = items_of(rows / 3.0, "diagonal")
    builder = builder_for(items, "diagonal", capacity=20)
    builder.build(items, warm=True, merges=True)
    assert builder.n_components < 20
    assert builder.report.exchanges == builder.try_exchanges(items) == 0


@pytest.mark.parametrize("seed", range(3))
def test_few_dimensions_give_the_model_that_matrix_products_give(seed):
    rows, labels = clusters(seed, n_rows=500, n_clusters=6, gap=2.0)
    parts = np.where(np.arange(500) < 200, labels * 3 + np.arange(500) % 3, -1)
    told = []
    for form in ("rounded", "wide"):
        items = clumped(rows, parts, form)
        builder = builder_for(items, form)
        report = builder.build(items, warm=True, merges=True, fresh=items.n_items - 100)
        moments, n = builder.family.moments, builder.n_components
        told.append((report.free_energy, moments.count[:n], moments.mean[:n], moments.scatter[:n], report.splits_tried))
    for one, other in zip(*told, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-7)
