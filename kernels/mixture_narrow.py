"""The full family of few dimensions: statistics, posteriors, log joints and restricted splits, each in one call.

Called by agent/learn/mixture/families/narrow.py. Items are read in blocks turned over, a column of a block an item, so
that each sum and each product runs along items: ten dimensions are too few for a loop over them, and for a call of a
matrix product each. Clumps are those of kernels/mixture_rounded.py. It must not choose components nor allocate.
"""

import math

from numba import types

from stillwatch.kernels._jit import kernel, reduction_kernel
from stillwatch.kernels._types import cube, f4, f8, i1, i8, matrix, read_cube, read_matrix, read_vector, vector
from stillwatch.kernels.mixture_common import (
    CONSTANT,
    EVIDENCE,
    SCALE,
    STRENGTH,
    list_weights,
    scatter_logits,
    split_log_odds,
    sum_of,
    update_share,
)
from stillwatch.kernels.mixture_full import evidence, factor_scale, posterior
from stillwatch.kernels.mixture_rounded import decode, encode

COLUMNS = 256  # items of a block
# Rows of a block's workspace behind the differences: weighted or whitened ones; squared distances.
ALONG, DISTANCES, N_EXTRA = range(3)
# How a split's children weigh on each other: by sticks (task: mass on later ones, concentration), or by their masses.
STICKS, MASSES = range(2)

_clumps = (read_matrix(f4), read_matrix(i1), i8)


@reduction_kernel(f8(read_vector(f8), read_vector(f8)))
def _dot(a, b):
    total = 0.0
    for i in range(a.shape[0]):
        total += a[i] * b[i]
    return total


@reduction_kernel(f8(read_vector(f8), read_vector(f8), vector(f8)))
def _weigh(weights, values, out):
    """Write weighted values; return their sum."""
    total = 0.0
    for i in range(weights.shape[0]):
        out[i] = weights[i] * values[i]
        total += out[i]
    return total


@kernel(types.void(f8, read_vector(f8), vector(f8)))
def _add_times(factor, values, out):
    for i in range(values.shape[0]):
        out[i] += factor * values[i]


@kernel(types.void(read_vector(f8), f8, vector(f8)))
def _shift(values, by, out):
    for i in range(values.shape[0]):
        out[i] = values[i] - by


@kernel(types.void(read_vector(f8), vector(f8)))
def _add_squares(values, out):
    for i in range(values.shape[0]):
        out[i] += values[i] * values[i]


@kernel(types.void(read_matrix(f4), read_vector(i8), i8, i8, read_vector(f8), matrix(f8)))
def turn(x, rows, first, n, centre, work):
    """Write x - centre of n listed items from place `first`, a column an item.

    x : ndarray of shape (n_items, n_dims), float32;  rows : (>= first + n,), int64
    work : ndarray of shape (n_dims + N_EXTRA, COLUMNS), float64: its first rows are written
    """
    for i in range(n):
        item = rows[first + i]
        for d in range(centre.shape[0]):
            work[d, i] = x[item, d] - centre[d]


@kernel(types.void(*_clumps, read_vector(i8), matrix(f8), matrix(f8)))
def hold(second, codes, n_clumps, rows, factor, held):
    """Decode the clumps in a list, each to the row of its number, where there is room for all that there are.

    factor : ndarray of shape (n_dims, n_dims), float64, workspace
    held : ndarray of shape (n, n_packed), float64, written; n > n_clumps is room, as the last row is a workspace
    """
    if n_clumps < held.shape[0]:
        for i in range(rows.shape[0]):
            if rows[i] < n_clumps:
                decode(second, codes, rows[i], factor, held[rows[i]])


@kernel(types.void(*_clumps, matrix(f8), matrix(f8)))
def hold_all(second, codes, n_clumps, factor, held):
    """As `hold`, all clumps."""
    if n_clumps < held.shape[0]:
        for clump in range(n_clumps):
            decode(second, codes, clump, factor, held[clump])


@kernel(i8(*_clumps, i8, matrix(f8), matrix(f8)))
def _place_of(second, codes, n_clumps, clump, factor, held):
    """Return the row of `held` with a clump's covariance, which is decoded where there is no room for all."""
    if n_clumps < held.shape[0]:
        return clump
    decode(second, codes, clump, factor, held[held.shape[0] - 1])
    return held.shape[0] - 1


@kernel(types.void(read_vector(f8), i8, i8, matrix(f8), vector(f8), vector(f8)))
def _add_block(weights, first, n, work, sums, packed):
    """Add weighted sums and squares of a block of differences."""
    own, along = weights[first : first + n], work[sums.shape[0] + ALONG, :n]
    p = 0
    for d in range(sums.shape[0]):
        sums[d] += _weigh(own, work[d, :n], along)
        for e in range(d + 1):
            packed[p] += _dot(along, work[e, :n])
            p += 1


@kernel(
    f8(
        read_matrix(f4), *_clumps, read_vector(i8), read_vector(f8), read_vector(f8), matrix(f8), matrix(f8),
        matrix(f8), vector(f8), vector(f8),
    )
)  # fmt: skip
def collect(x, second, codes, n_clumps, rows, weights, centre, held, factor, work, mean, packed):
    """Write the weighted mean and summed squares about it of some items; return the sum of weights.

    x : ndarray of shape (n_items, n_dims), float32, means of clumps first, then points
    second, codes : of the clumps, rounded;  held : their covariances where `hold` wrote them, its last row a workspace
    rows : ndarray of shape (n,), int64;  weights : ndarray of shape (n,), float64, points per item times share
    centre : ndarray of shape (n_dims,), float64: sums are taken about it, as E[x^2] - E[x]^2 would cancel
    factor : ndarray of shape (n_dims, n_dims), workspace;  work : as `turn` has it
    mean, packed : ndarray of shape (n_dims,), (n_packed,), float64, written
    """
    n_dims = centre.shape[0]
    mean[:] = 0.0
    packed[:] = 0.0
    for first in range(0, rows.shape[0], COLUMNS):
        n = min(COLUMNS, rows.shape[0] - first)
        turn(x, rows, first, n, centre, work)
        _add_block(weights, first, n, work, mean, packed)
    for i in range(rows.shape[0]):
        if rows[i] < n_clumps and weights[i] != 0.0:
            place = _place_of(second, codes, n_clumps, rows[i], factor, held)
            _add_times(weights[i], held[place], packed)
    count = sum_of(weights)
    if count > 0.0:
        p = 0
        for d in range(n_dims):
            mean[d] /= count
            for e in range(d + 1):
                packed[p] -= count * mean[d] * mean[e]
                p += 1
            packed[p - 1] = max(packed[p - 1], 0.0)
        for d in range(n_dims):
            mean[d] += centre[d]
    return count


@kernel(
    types.void(f8, read_vector(f8), read_vector(f8), read_vector(f8), matrix(f8), matrix(f8), vector(f8), vector(f8))
)
def fit(count, mean, packed, prior, factor, whiten, post_mean, fits):
    """Write the posterior of a component from its statistics, as `posterior` in kernels/mixture_full.py has it."""
    pull = prior[STRENGTH] * count / (prior[STRENGTH] + count)
    factor_scale(packed, pull, mean, prior[SCALE], factor, fits[:1])
    posterior(count, mean, prior, fits[0], factor, whiten, post_mean, fits)


@kernel(types.void(read_matrix(f8), vector(f8)))
def precision_of(whiten, packed):
    """Write E[Lambda] = whiten^T whiten packed, off-diagonal entries doubled; `whiten` is lower triangular.

    packed : ndarray of shape (n_packed,), float64, written
    """
    n = whiten.shape[0]
    packed[:] = 0.0
    for m in range(n):
        p = 0
        for d in range(m + 1):
            for e in range(d):
                packed[p] += 2.0 * whiten[m, d] * whiten[m, e]
                p += 1
            packed[p] += whiten[m, d] * whiten[m, d]
            p += 1


@kernel(types.void(read_matrix(f8), i8, matrix(f8)))
def _whitened_distances(whiten, n, work):
    """Write |W y|^2 of a block's columns y; W is lower triangular."""
    n_dims = whiten.shape[0]
    along, distances = work[n_dims + ALONG, :n], work[n_dims + DISTANCES, :n]
    distances[:] = 0.0
    for d in range(n_dims):
        along[:] = 0.0
        for e in range(d + 1):
            _add_times(whiten[d, e], work[e, :n], along)
        _add_squares(along, distances)


@kernel(
    types.void(
        read_matrix(f4), *_clumps, read_vector(i8), read_vector(f8), read_matrix(f8), f8, matrix(f8), matrix(f8),
        matrix(f8), vector(f8), vector(f8),
    )
)  # fmt: skip
def log_joint(x, second, codes, n_clumps, rows, mean, whiten, constant, held, factor, work, precision, out):
    """Write S_sk (2.9) of one component for some items: constant - |W (x - mean)|^2 / 2, clumps by their average.

    rows : ndarray of shape (n,), int64;  mean, whiten : of the posterior;
    held, factor, work : as in `collect`;  precision : (n_packed,), float64, workspace;  out : (>= n,), written
    """
    n_dims = mean.shape[0]
    any_clump = False
    for first in range(0, rows.shape[0], COLUMNS):
        n = min(COLUMNS, rows.shape[0] - first)
        turn(x, rows, first, n, mean, work)
        _whitened_distances(whiten, n, work)
        for i in range(n):
            out[first + i] = constant - 0.5 * work[n_dims + DISTANCES, i]
            any_clump = any_clump or rows[first + i] < n_clumps
    if any_clump:
        precision_of(whiten, precision)
        for i in range(rows.shape[0]):
            if rows[i] < n_clumps:
                place = _place_of(second, codes, n_clumps, rows[i], factor, held)
                out[i] -= 0.5 * _dot(precision, held[place])


@kernel(
    types.void(
        read_matrix(f4), *_clumps, read_vector(f8), read_matrix(f8), read_vector(i8), read_vector(i8), read_vector(i8),
        i8, read_vector(f8), matrix(f8), matrix(f8), matrix(f8), vector(f8), vector(f8), matrix(f8), matrix(f8),
        matrix(f8), cube(f8), matrix(f8),
    )
)  # fmt: skip
def maximise(
    x, second, codes, n_clumps, counts, shares, offsets, rows, places, n_components, prior, held, factor, work, weights,
    count, mean, packed, post_mean, whiten, fits,
):  # fmt: skip
    """Write statistics and posterior of every component from the responsibilities: `collect`, then `fit`.

    counts : ndarray of shape (n_items,), float64;  shares : (n_items, n_kept), float64
    offsets, rows, places : the kept pairs by component, as `build_lists` writes them
    held, factor, work : as in `collect`;  weights : (>= the longest list,), float64, workspace
    count, mean, packed, post_mean, whiten, fits : by component, written; sums are taken about `post_mean` as it was
    """
    hold_all(second, codes, n_clumps, factor, held)
    for k in range(n_components):
        low, high = offsets[k], offsets[k + 1]
        listed, own = rows[low:high], weights[: high - low]
        list_weights(listed, places[low:high], shares, counts, own)
        count[k] = collect(
            x, second, codes, n_clumps, listed, own, post_mean[k], held, factor, work, mean[k], packed[k]
        )
        fit(count[k], mean[k], packed[k], prior, factor, whiten[k], post_mean[k], fits[k])


@kernel(
    types.void(
        read_matrix(f4), *_clumps, read_vector(i8), read_vector(i8), read_vector(i8), i8, read_vector(f8),
        read_matrix(f8), read_cube(f8), read_matrix(f8), matrix(f8), matrix(f8), matrix(f8), vector(f8), vector(f8),
        matrix(f8),
    )
)  # fmt: skip
def log_joints_kept(
    x, second, codes, n_clumps, offsets, rows, places, n_components, log_weight, post_mean, whiten, fits, held, factor,
    work, precision, logits, shares,
):  # fmt: skip
    """Write S_sk (2.9) of the kept components to the places of their responsibilities.

    log_weight : ndarray of shape (>= n_components,), float64, E[log pi_k];  logits : (>= the longest list,), workspace
    shares : ndarray of shape (n_items, n_kept), float64, written;  the rest as in `maximise`, `log_joint`
    """
    hold_all(second, codes, n_clumps, factor, held)
    for k in range(n_components):
        low, high = offsets[k], offsets[k + 1]
        log_joint(
            x, second, codes, n_clumps, rows[low:high], post_mean[k], whiten[k], fits[k, CONSTANT] + log_weight[k],
            held, factor, work, precision, logits,
        )  # fmt: skip
        scatter_logits(rows[low:high], places[low:high], logits, shares)


@kernel(
    types.void(
        read_matrix(f4), *_clumps, i8, i8, i8, read_vector(f8), read_matrix(f8), read_cube(f8), read_matrix(f8),
        matrix(f8), matrix(f8), matrix(f8), matrix(f8), matrix(f8), matrix(f8),
    )
)  # fmt: skip
def log_joint_block(
    x, second, codes, n_clumps, first, n_rows, n_components, log_weight, post_mean, whiten, fits, held, factor, raw,
    work, precisions, out,
):  # fmt: skip
    """Write S_sk (2.9) of all components for at most COLUMNS items from `first`.

    raw : ndarray of shape (>= n_dims, COLUMNS), float64, workspace;  precisions : (>= n_components, n_packed), likewise
    out : ndarray of shape (>= n_rows, >= n_components), float64, written
    """
    n_dims = post_mean.shape[1]
    for i in range(n_rows):
        for d in range(n_dims):
            raw[d, i] = x[first + i, d]
    for k in range(n_components):
        for d in range(n_dims):
            _shift(raw[d, :n_rows], post_mean[k, d], work[d, :n_rows])
        _whitened_distances(whiten[k], n_rows, work)
        constant = fits[k, CONSTANT] + log_weight[k]
        for i in range(n_rows):
            out[i, k] = constant - 0.5 * work[n_dims + DISTANCES, i]
    if first < n_clumps:
        for k in range(n_components):
            precision_of(whiten[k], precisions[k])
        last = held.shape[0] - 1
        for i in range(min(n_rows, n_clumps - first)):
            decode(second, codes, first + i, factor, held[last])
            for k in range(n_components):
                out[i, k] -= 0.5 * _dot(precisions[k], held[last])


@kernel(
    f8(
        read_matrix(f4), *_clumps, read_vector(i8), read_vector(f8), read_vector(f8), read_vector(f8), i8, f8, f8, i8,
        i8, f8, read_vector(f8), matrix(f8), matrix(f8), matrix(f8), vector(f8), vector(f8), matrix(f8), matrix(f8),
        matrix(f8), cube(f8), matrix(f8), matrix(f8), vector(f8),
    )
)  # fmt: skip
def split(
    x, second, codes, n_clumps, rows, weights, centre, prior, rule, after, alpha, soft, n_updates, settled, spread,
    held, factor, work, precision, count, mean, packed, post_mean, whiten, fits, sides, share,
):  # fmt: skip
    """Settle the shares of a component's two children, from those given; write the children's statistics and fits.

    rule : STICKS or MASSES;  after, alpha : mass on later sticks, concentration;  soft : 0 assigns hard
    n_updates : at most;  settled : the largest change of a share below which they end
    count, mean, packed, post_mean, whiten, fits : ndarrays of two places each, written
    sides : ndarray of shape (4, >= n), float64: workspace;  share : (n,), float64, changed: the first child's
    spread : ndarray of shape (n_packed,), float64, covariance that each point has besides
    the rest as in `collect` and `log_joint`;  returns the largest change of the last update
    """
    n = rows.shape[0]
    hold(second, codes, n_clumps, rows, factor, held)
    left = n_updates
    change = 0.0
    while True:
        for i in range(n):
            sides[0, i] = weights[i] * share[i]
            sides[1, i] = weights[i] - sides[0, i]
        for side in range(2):
            count[side] = collect(
                x, second, codes, n_clumps, rows, sides[side, :n], centre, held, factor, work, mean[side],
                packed[side],
            )  # fmt: skip
            _add_times(count[side], spread, packed[side])
            fit(count[side], mean[side], packed[side], prior, factor, whiten[side], post_mean[side], fits[side])
        if left == 0 or not (count[0] > 0.0 and count[1] > 0.0):
            return change
        for side in range(2):
            precision_of(whiten[side], precision)
            wide = 0.5 * _dot(precision, spread)
            log_joint(
                x, second, codes, n_clumps, rows, post_mean[side], whiten[side], fits[side, CONSTANT] - wide, held,
                factor, work, precision, sides[2 + side],
            )  # fmt: skip
        odds = math.log(count[0] / count[1])
        if rule == STICKS:
            odds = split_log_odds(count[0], count[1], after, alpha)
        change = update_share(sides[2, :n], sides[3, :n], odds, soft, share)
        if change == 0.0:
            return change
        left = left - 1 if change > settled else 0


@kernel(
    types.void(
        read_vector(f8), read_matrix(f8), read_matrix(f8), read_matrix(f8), read_vector(f8), read_matrix(i8), i8,
        matrix(f8), vector(f8), vector(f8), vector(f8),
    )
)  # fmt: skip
def merge_gains(count, mean, packed, fits, prior, pairs, n_pairs, factor, joined, middle, gains):
    """Write what the evidence of the data gains where each pair of components is one.

    count, mean, packed, fits : by component;  pairs : ndarray of shape (>= n_pairs, 2), int64
    factor, joined, middle : (n_dims, n_dims), (n_packed,), (n_dims + 1,), float64, workspaces
    gains : ndarray of shape (>= n_pairs,), float64, written
    """
    n_dims = mean.shape[1]
    for i in range(n_pairs):
        a, b = pairs[i, 0], pairs[i, 1]
        total = count[a] + count[b]
        part = count[b] / total if total > 0.0 else 0.0
        p = 0
        for d in range(n_dims):
            step = mean[b, d] - mean[a, d]
            middle[d] = mean[a, d] + part * step
            for e in range(d + 1):
                joined[p] = packed[a, p] + packed[b, p] + count[a] * part * step * (mean[b, e] - mean[a, e])
                p += 1
        pull = prior[STRENGTH] * total / (prior[STRENGTH] + total)
        factor_scale(joined, pull, middle[:n_dims], prior[SCALE], factor, middle[n_dims:])
        gains[i] = evidence(total, n_dims, prior, middle[n_dims]) - fits[a, EVIDENCE] - fits[b, EVIDENCE]


@kernel(
    types.void(
        read_matrix(f4), *_clumps, read_vector(f8), read_vector(i8), read_vector(i8), read_vector(i8), i8, matrix(f8),
        matrix(f8), matrix(f8), vector(f8), vector(f8), vector(f8), vector(f8), matrix(f4), vector(f8), matrix(f4),
        matrix(i1),
    )
)  # fmt: skip
def summarise(
    x, second, codes, n_clumps, counts, order, bounds, groups, n_groups, held, factor, work, weights, centre,
    mean, packed, out_x, out_counts, out_second, out_codes,
):  # fmt: skip
    """Write groups of items as clumps; one that is alone in its group is copied.

    order, bounds : as `sort_by_group` writes them;  groups : ndarray of shape (>= n_groups,), int64, those to write
    weights : (>= the largest group,), centre, mean : (n_dims,), packed : (n_packed,), float64, workspaces
    out_x, out_second, out_codes : as Items has them, a row a group, written;  out_counts : float64, likewise
    """
    for row in range(n_groups):
        rows = order[bounds[groups[row]] : bounds[groups[row] + 1]]
        n, alone = rows.shape[0], rows[0]
        if n == 1:
            out_counts[row] = counts[alone]
            for d in range(x.shape[1]):
                out_x[row, d] = x[alone, d]
            for d in range(second.shape[1]):
                out_second[row, d] = second[alone, d]
            for j in range(codes.shape[1]):
                out_codes[row, j] = codes[alone, j]
            continue
        for i in range(n):
            weights[i] = counts[rows[i]]
        for d in range(centre.shape[0]):
            centre[d] = x[alone, d]
        count = collect(x, second, codes, n_clumps, rows, weights[:n], centre, held, factor, work, mean, packed)
        out_counts[row] = count
        for d in range(centre.shape[0]):
            out_x[row, d] = mean[d]
        encode(packed, count, factor, out_second[row], out_codes[row])
