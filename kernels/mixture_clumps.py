"""Which points become a clump: the loops of weighted k-means over items, and the moments of its groups.

Called by agent/learn/mixture/compress.py. It must not know a model.
"""

import numpy as np
from numba import types

from stillwatch.kernels._jit import kernel
from stillwatch.kernels._types import f4, f8, i4, i8, matrix, read_matrix, read_vector, vector

MANY = 10  # centres of a component from which on the innermost loop of a search runs over them, not over columns
STRIDE = 32  # centres whose products are looked at together before any is looked at alone


@kernel(i8(read_vector(f8), read_vector(f8), i8, i8, vector(i8)))
def pick_seeds(weights, distances, n_items, n_seeds, chosen):
    """Pick items at the quantiles (j + 1/2) / n_seeds of the summed weight times distance; return how many.

    What k-means++ draws with this probability, without chance, and never an item twice.

    weights, distances : ndarray of shape (>= n_items,), float64;  chosen : (>= n_seeds,), int64, written, rising
    """
    total = 0.0
    for i in range(n_items):
        total += weights[i] * distances[i]
    n_chosen = 0
    if not total > 0.0:
        return n_chosen
    passed = 0.0
    mark = 0.5
    for i in range(n_items):
        passed += weights[i] * distances[i]
        if n_chosen < n_seeds and passed / total * n_seeds > mark:
            chosen[n_chosen] = i
            n_chosen += 1
            mark = np.floor(passed / total * n_seeds + 0.5) + 0.5
    return n_chosen


@kernel(
    types.void(
        read_matrix(f4), i8, read_matrix(i4), read_matrix(f8), read_vector(i8), read_matrix(f8), vector(f8)
    )
)  # fmt: skip
def own_distances(x, n_items, candidates, metric, label, centres, out):
    """Write the squared distance of each item from its group's centre, in the metric of the item's component.

    x : ndarray of shape (n, n_dims), float32;  candidates, metric : as in `move_nearer`
    label : (n,), int64;  centres : (n_groups, n_dims), float64;  out : (>= n_items,), float64, written
    """
    for i in range(n_items):
        own = candidates[i, 0]
        total = 0.0
        for d in range(centres.shape[1]):
            difference = x[i, d] - centres[label[i], d]
            total += metric[own, d] * difference * difference
        out[i] = total


@kernel(
    types.void(
        f8, f8, f8, f8, f8, f8, f8, f8, read_vector(f8), read_vector(f8), read_vector(f8), read_vector(f8), i8,
        vector(f8),
    )
)  # fmt: skip
def _add_four(v0, v1, v2, v3, w0, w1, w2, w3, r0, r1, r2, r3, n, sums):
    """Add four columns' weighted squared differences to n sums, in their order.

    A kernel of its own, as the loop is vectorised only where columns and sums are arguments: a third of the time.
    """
    for c in range(n):
        e0, e1, e2, e3 = v0 - r0[c], v1 - r1[c], v2 - r2[c], v3 - r3[c]
        sums[c] = sums[c] + w0 * e0 * e0 + w1 * e1 * e1 + w2 * e2 * e2 + w3 * e3 * e3


@kernel(types.void(read_matrix(f4), read_matrix(f8), read_matrix(f8), i8, i8, i8, i8, i8, i8, vector(f8)))
def _add_squares(x, metric, turned, i, own, low, n, d, end, sums):
    """Add to `sums` the weighted squared differences of item i from n centres in columns d to end.

    Four columns a pass: sums are read and written once, and the terms are added in the order of columns.
    """
    high = low + n
    while d < end:
        if d + 4 <= end:
            _add_four(
                1.0 * x[i, d], 1.0 * x[i, d + 1], 1.0 * x[i, d + 2], 1.0 * x[i, d + 3],
                metric[own, d], metric[own, d + 1], metric[own, d + 2], metric[own, d + 3],
                turned[d, low:high], turned[d + 1, low:high], turned[d + 2, low:high], turned[d + 3, low:high], n, sums,
            )  # fmt: skip
            d += 4
        else:
            column = turned[d, low:high]
            for c in range(n):
                difference = x[i, d] - column[c]
                sums[c] += metric[own, d] * difference * difference
            d += 1


@kernel(
    i8(
        read_matrix(f4), i8, read_matrix(i4), read_matrix(f8), read_matrix(f8), matrix(f8), vector(i8), i8, vector(f8),
        vector(i8), vector(f8),
    )
)  # fmt: skip
def move_nearer(x, n_items, candidates, metric, centres, turned, starts, first, sums, label, distances):
    """Move each item to the nearest centre of its candidates where that is nearer than its own; return how many moved.

    A sum of squares only grows: what is too far after a third of the columns is left there.

    candidates : ndarray of shape (>= n_items, n), int32: components whose centres an item may move to, its own first;
        -1 is none
    metric : (n_components, n_dims), float64: what squared differences of a component's items are weighted by
    centres : (n_centres, n_dims), float64, sorted by component;  turned : (n_dims, n_centres), float64: its transpose,
        so that where a component has many the innermost loop runs over them
    starts : (n_components + 1,), int64: component k owns centres starts[k] to starts[k + 1]
    first : group of centre 0;  sums : (>= n_centres,), float64, workspace
    label, distances : (>= n_items,), int64 and float64, updated
    """
    moved = 0
    n_dims = x.shape[1]
    third = 4 * (n_dims // 12)
    for i in range(n_items):
        own = candidates[i, 0]
        found = -1
        least = distances[i]
        for j in range(candidates.shape[1]):
            k = candidates[i, j]
            if k < 0 or starts[k] == starts[k + 1]:
                continue
            low, high = starts[k], starts[k + 1]
            n = high - low
            if n < MANY:
                for c in range(low, high):
                    total = 0.0
                    for d in range(n_dims):
                        difference = x[i, d] - centres[c, d]
                        total += metric[own, d] * difference * difference
                        if d == third and total >= least:
                            break
                    if total < least:
                        least = total
                        found = c
                continue
            sums[:n] = 0.0
            _add_squares(x, metric, turned, i, own, low, n, 0, third, sums)
            near = 0
            for c in range(n):
                near += sums[c] < least
            if near == 0:
                continue
            _add_squares(x, metric, turned, i, own, low, n, third, n_dims, sums)
            for c in range(n):
                if sums[c] < least:
                    least = sums[c]
                    found = low + c
        if found >= 0:
            label[i] = first + found
            distances[i] = least
            moved += 1
    return moved


@kernel(
    i8(
        read_matrix(f4), i8, i8, read_matrix(f8), read_matrix(f4), read_vector(f4), f8, i8, vector(i8), vector(f8),
    )
)  # fmt: skip
def move_nearer_by_products(x, low, n_rows, centres, products, halves, share, first, label, distances):
    """Move items to the nearest of all centres, unweighted, as `move_nearer` does; return how many moved.

    An item lies nearer than `least` where x.c - |c|^2 / 2 is above (|x|^2 - least) / 2. Rounded products say where that
    may be, with more room than they can be wrong by; only there the squares are summed, in the order of columns: labels
    and distances are those of a search through all.

    low : item of products row 0;  centres : (n_centres, n_dims), float64
    products : (>= n_rows, n_centres), float32: of items with centres
    halves : (>= n_centres,), float32: |c|^2 / 2 less `share` times |c|^2
    share : of |x|^2 + |c|^2 that a product and what it is compared with may be wrong by together
    first, label, distances : as in `move_nearer`
    """
    moved = 0
    n_dims, n_centres = centres.shape[1], centres.shape[0]
    for row in range(n_rows):
        item = low + row
        square = 0.0
        for d in range(n_dims):
            value = np.float64(x[item, d])
            square += value * value
        found = -1
        least = distances[item]
        bound = np.float32(0.5 * (square - least) - share * (square + least))
        for begin in range(0, n_centres, STRIDE):
            end = min(begin + STRIDE, n_centres)
            near = 0
            for c in range(begin, end):
                near += products[row, c] - halves[c] > bound
            if near == 0:
                continue
            for c in range(begin, end):
                if products[row, c] - halves[c] > bound:
                    total = 0.0
                    for d in range(n_dims):
                        difference = x[item, d] - centres[c, d]
                        total += difference * difference
                    if total < least:
                        least = total
                        found = c
                        bound = np.float32(0.5 * (square - least) - share * (square + least))
        if found >= 0:
            label[item] = first + found
            distances[item] = least
            moved += 1
    return moved


@kernel(
    types.void(
        read_matrix(f4), read_vector(f8), i8, read_matrix(i4), read_matrix(f8), read_vector(i8), i8, matrix(f8),
        matrix(f8),
    )
)  # fmt: skip
def group_means(x, weights, n_items, candidates, metric, label, n_groups, norm, centres):
    """Write the mean of each group's items, weighted by points and metric; a group without any keeps its centre.

    candidates, metric : as in `move_nearer`
    norm, centres : ndarray of shape (>= n_groups, n_dims), float64, written
    """
    for g in range(n_groups):
        norm[g, :] = 0.0
    for i in range(n_items):
        own = candidates[i, 0]
        for d in range(centres.shape[1]):
            norm[label[i], d] += weights[i] * metric[own, d]
    for g in range(n_groups):
        if norm[g, 0] > 0.0:
            centres[g, :] = 0.0
    for i in range(n_items):
        own, g = candidates[i, 0], label[i]
        for d in range(centres.shape[1]):
            centres[g, d] += weights[i] * metric[own, d] / norm[g, d] * x[i, d]


@kernel(i8(read_vector(i8), i8, i8, i8, i8, i8, vector(i8)))
def group_costs(label, n_items, n_clumps, n_groups, n_dims, clump_cost, costs):
    """Write the values that each group takes: its points where that is no more than a clump, else a clump.

    A group that holds an old clump is a clump; one without items costs nothing. Returns the sum.

    costs : ndarray of shape (>= n_groups,), int64, written
    """
    for g in range(n_groups):
        costs[g] = 0
    for i in range(n_items):
        g = label[i]
        costs[g] = clump_cost if i < n_clumps else min(costs[g] + n_dims, clump_cost + 1)
    total = 0
    for g in range(n_groups):
        costs[g] = min(costs[g], clump_cost)
        total += costs[g]
    return total


@kernel(types.void(read_vector(i8), i8, i8, vector(i8), vector(i8)))
def sort_by_group(label, n_items, n_groups, bounds, order):
    """Sort items by group, in their order within each: a counting sort.

    bounds : ndarray of shape (>= n_groups + 1,), int64, written: group g owns bounds[g] to bounds[g + 1] of `order`
    """
    for g in range(n_groups + 1):
        bounds[g] = 0
    for i in range(n_items):
        bounds[label[i] + 1] += 1
    for g in range(n_groups):
        bounds[g + 1] += bounds[g]
    for i in range(n_items):
        order[bounds[label[i]]] = i
        bounds[label[i]] += 1
    for g in range(n_groups, 0, -1):
        bounds[g] = bounds[g - 1]
    bounds[0] = 0


@kernel(types.void(read_matrix(i4), read_vector(f8), i8, i8, vector(i8)))
def heaviest_of_each(candidates, counts, n_items, n_components, chosen):
    """Write the item of most points of each component, the first of equals; -1 for a component without items.

    candidates : ndarray of shape (>= n_items, n), int32, an item's own component first
    chosen : ndarray of shape (>= n_components,), int64, written
    """
    for k in range(n_components):
        chosen[k] = -1
    for i in range(n_items):
        k = candidates[i, 0]
        if chosen[k] < 0 or counts[i] > counts[chosen[k]]:
            chosen[k] = i


@kernel(
    types.void(
        read_matrix(f4), read_matrix(f4), i8, read_vector(f8), read_vector(i8), read_vector(i8), read_vector(i8), i8,
        matrix(f4), vector(f8), matrix(f4), vector(f8), vector(f8),
    )
)  # fmt: skip
def summarise_diagonal(
    x, second, n_clumps, counts, order, bounds, groups, n_groups, out_x, out_counts, out_second, mean, scatter
):
    """Write groups of items as clumps of (count, mean, variances); a clump alone in its group is copied.

    x, second, counts : the items;  order, bounds : as `sort_by_group` writes them
    groups : ndarray of shape (>= n_groups,), int64, the groups to write
    out_x, out_second : ndarray of shape (>= n_groups, n_dims), float32, written;  out_counts : float64, likewise
    mean, scatter : ndarray of shape (n_dims,), float64, workspaces
    """
    n_dims = x.shape[1]
    for row in range(n_groups):
        low, high = bounds[groups[row]], bounds[groups[row] + 1]
        count = 0.0
        mean[:] = 0.0
        scatter[:] = 0.0
        for i in range(low, high):
            count += counts[order[i]]
        for i in range(low, high):
            item = order[i]
            for d in range(n_dims):
                mean[d] += counts[item] / count * x[item, d]
        for i in range(low, high):
            item = order[i]
            for d in range(n_dims):
                difference = x[item, d] - mean[d]
                scatter[d] += counts[item] * difference * difference
                if item < n_clumps:
                    scatter[d] += counts[item] * second[item, d]
        out_counts[row] = count
        alone = order[low]
        for d in range(n_dims):
            out_x[row, d] = mean[d]
            out_second[row, d] = scatter[d] / count
            if high - low == 1:
                out_x[row, d] = x[alone, d]
                out_second[row, d] = second[alone, d]
