"""The loops of weighted k-means over items, against plain NumPy."""

import numpy as np
import pytest

from stillwatch.kernels import mixture_clumps as clumps


@pytest.fixture
def data():
    """Items (the first ten are clumps), their second moments and counts, a grouping, centres."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=(60, 3)).astype(np.float32)
    second = rng.uniform(0.1, 1.0, (10, 3)).astype(np.float32)
    counts = np.concatenate([rng.integers(2, 30, 10), np.ones(50)]).astype(float)
    return x, second, counts, rng.integers(0, 7, 60), rng.normal(size=(9, 3))


def quantile_seeds(mass, n_seeds):
    """Return the items in which the quantiles (j + 1/2) / n_seeds of the mass lie, each once."""
    ends = np.cumsum(mass) / mass.sum()
    return sorted({int(np.searchsorted(ends, (j + 0.5) / n_seeds)) for j in range(n_seeds)})


@pytest.mark.parametrize("n_seeds", [1, 4, 11])
@pytest.mark.parametrize("seed", range(5))
def test_seeds_lie_at_the_quantiles_of_the_mass_each_once(seed, n_seeds):
    rng = np.random.default_rng(seed)
    weights, distances = rng.uniform(0, 5, 40), rng.uniform(0, 1, 40) ** 4
    chosen = np.zeros(n_seeds, np.int64)
    n = clumps.pick_seeds(weights, distances, 40, n_seeds, chosen)
    assert chosen[:n].tolist() == quantile_seeds(weights * distances, n_seeds)


def test_there_is_no_seed_where_nothing_is_left_unexplained():
    assert clumps.pick_seeds(np.ones(5), np.zeros(5), 5, 3, np.zeros(3, np.int64)) == 0


@pytest.fixture
def components():
    """Candidates of the items, the last one missing for some, and the metrics of five components."""
    rng = np.random.default_rng(5)
    candidates = np.array([rng.permutation(5)[:3] for _ in range(60)], np.int32)
    candidates[::4, 2] = -1
    return candidates, rng.uniform(0.5, 2.0, (5, 3))


def test_own_distances_are_in_the_metric_of_the_items_component(data, components):
    x, _, _, label, centres = data
    candidates, metric = components
    out = np.zeros(60)
    clumps.own_distances(x, 60, candidates, metric, label, centres, out)
    np.testing.assert_allclose(out, (metric[candidates[:, 0]] * (x - centres[label]) ** 2).sum(axis=1), rtol=1e-12)


# Few centres are searched one by one, many all at once; of many columns the last are left out of what is too far.
@pytest.mark.parametrize("of_the_last", [3, 40])
@pytest.mark.parametrize("n_dims", [3, 14])
def test_items_move_to_the_nearest_new_centre_of_a_candidate_only_where_it_is_nearer(components, of_the_last, n_dims):
    candidates, _ = components
    rng = np.random.default_rng(n_dims)
    x, metric = rng.normal(size=(60, n_dims)).astype(np.float32), rng.uniform(0.5, 2.0, (5, n_dims))
    label = np.arange(60) % 20
    own, owner = candidates[:, 0], np.array([0, 1, 1, 3, 3, 3] + [4] * of_the_last)  # none of component 2
    near = np.where(np.arange(60) % 3 == 0, 0.01, 1.0)[:, None]  # a third of the items are where they belong
    distances = (metric[own] * near * (x - rng.normal(size=(20, n_dims))[label]) ** 2).sum(axis=1)
    new = rng.normal(size=(len(owner), n_dims))
    every = (metric[own][:, None] * (x[:, None] - new[None]) ** 2).sum(axis=2)
    every[~(owner[None, :, None] == candidates[:, None, :]).any(axis=2)] = np.inf
    moves = every.min(axis=1) < distances
    assert 0 < moves.sum() < 60
    expected = np.where(moves, 20 + every.argmin(axis=1), label)
    least = np.minimum(every.min(axis=1), distances)
    starts, turned, sums = np.searchsorted(owner, np.arange(6)), np.ascontiguousarray(new.T), np.zeros(len(owner))
    moved = clumps.move_nearer(x, 60, candidates, metric, new, turned, starts, 20, sums, label, distances)
    assert moved == moves.sum()
    np.testing.assert_array_equal(label, expected)
    np.testing.assert_allclose(distances, least, rtol=1e-12)


def products_of(x, centres):
    """Return what `move_nearer_by_products` takes of items and centres, as compression makes it."""
    rounded = centres.astype(np.float32)
    share = (x.shape[1] + 16) * 2.0**-24
    halves = ((0.5 - share) * (rounded * rounded).sum(axis=1)).astype(np.float32)
    return x @ rounded.T, halves, share


@pytest.mark.parametrize("far_out", [0.0, 1e4, 1e9])  # of one item and one centre: products are then less exact
@pytest.mark.parametrize("middle", [0.0, 300.0])
@pytest.mark.parametrize("n_dims", [1, 3, 50])
def test_products_move_items_to_where_a_search_through_all_squares_does(n_dims, middle, far_out):
    rng = np.random.default_rng(n_dims)
    x = (middle + rng.normal(size=(200, n_dims))).astype(np.float32)
    centres = np.vstack([x[50:90], middle + rng.normal(size=(60, n_dims)), x[50:60]])  # some of them twice
    x[7], centres[3] = x[7] + far_out, centres[3] - far_out
    label, distances = np.arange(200) % 20, rng.uniform(0.0, 2.0 * n_dims, 200)
    distances[::5] = np.inf
    others, far = label.copy(), distances.copy()
    products, halves, share = products_of(x[20:], centres)
    moved = clumps.move_nearer_by_products(x, 20, 180, centres, products, halves, share, 20, label, distances)
    of_one = np.zeros((180, 1), np.int32), np.ones((1, n_dims))
    whole = centres, np.ascontiguousarray(centres.T), np.array([0, len(centres)]), 20, np.zeros(len(centres))
    assert moved == clumps.move_nearer(x[20:], 180, *of_one, *whole, others[20:], far[20:])
    np.testing.assert_array_equal(label, others)
    np.testing.assert_array_equal(distances, far)


def test_centres_become_means_weighted_by_points_and_metric_and_empty_ones_stay(data, components):
    x, _, counts, label, centres = data
    candidates, metric = components
    before, norm = centres.copy(), np.zeros((9, 3))
    clumps.group_means(x, counts, 60, candidates, metric, label, 9, norm, centres)
    weights = counts[:, None] * metric[candidates[:, 0]]
    for g in range(7):
        mine = label == g
        np.testing.assert_allclose(centres[g], np.average(x[mine], axis=0, weights=weights[mine]), rtol=1e-6)
    np.testing.assert_array_equal(centres[7:], before[7:])


def test_a_group_costs_its_points_or_a_clump_whichever_is_less():
    # Items 0 and 1 are clumps. Three values a point, seven a clump: up to two points are kept as they are.
    label = np.array([0, 1, 0, 2, 3, 3, 4, 4, 4])
    costs = np.zeros(6, np.int64)
    assert clumps.group_costs(label, 9, 2, 6, 3, 7, costs) == 7 + 7 + 3 + 6 + 7
    assert costs.tolist() == [7, 7, 3, 6, 7, 0]


def test_items_are_sorted_by_group_in_their_order(data):
    label = data[3]
    bounds, order = np.zeros(8, np.int64), np.zeros(60, np.int64)
    clumps.sort_by_group(label, 60, 7, bounds, order)
    np.testing.assert_array_equal(order, np.argsort(label, kind="stable"))
    np.testing.assert_array_equal(np.diff(bounds), np.bincount(label, minlength=7))


def test_the_heaviest_item_of_each_component_is_its_seed():
    chosen = np.zeros(3, np.int64)
    clumps.heaviest_of_each(
        np.array([[1, 0], [0, 1], [0, -1], [1, 0]], np.int32), np.array([2.0, 1.0, 5.0, 2.0]), 4, 3, chosen
    )
    assert chosen.tolist() == [2, 0, -1]


def test_clumps_hold_the_moments_of_their_groups_and_a_clump_alone_is_copied(data):
    x, second, counts, label, _ = data
    label = np.where(np.arange(60) == 3, 7, label)
    bounds, order = np.zeros(9, np.int64), np.zeros(60, np.int64)
    clumps.sort_by_group(label, 60, 8, bounds, order)
    groups = np.array([2, 5, 7])
    out_x, out_counts, out_second = np.zeros((3, 3), np.float32), np.zeros(3), np.zeros((3, 3), np.float32)
    clumps.summarise_diagonal(
        x, second, 10, counts, order, bounds, groups, 3, out_x, out_counts, out_second, np.zeros(3), np.zeros(3)
    )
    everything = np.vstack([second, np.zeros((50, 3))])
    for row, g in enumerate(groups[:2]):
        mine = label == g
        mean = np.average(x[mine], axis=0, weights=counts[mine])
        spread = np.average((x[mine] - mean) ** 2 + everything[mine], axis=0, weights=counts[mine])
        np.testing.assert_allclose(out_x[row], mean, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(out_second[row], spread, rtol=1e-5)
        assert out_counts[row] == counts[mine].sum()
    np.testing.assert_array_equal(out_x[2], x[3])
    np.testing.assert_array_equal(out_second[2], second[3])
