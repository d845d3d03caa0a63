"""The diagonal family: a Normal-gamma posterior per dimension, over points and clumps (count, mean, variance).

Called by agent/learn/mixture/families. It must not choose components nor allocate: lists and workspaces are given.
"""

import math

from numba import types

from stillwatch.kernels._jit import kernel, reduction_kernel
from stillwatch.kernels._types import f4, f8, i4, i8, matrix, read_matrix, read_vector, vector
from stillwatch.kernels.mixture_common import (
    CONSTANT,
    COUNT,
    EVIDENCE,
    EXPECTED,
    NO_COMPONENT,
    SCALE,
    SHAPE,
    STRENGTH,
    digamma,
    list_weights,
    principal_direction,
    side_of_plane,
    split_entropy,
    split_log_odds,
    update_share,
)

LOG_2PI = math.log(2.0 * math.pi)
# What `split` is given behind the prior's three numbers: the concentration, the mass on later sticks.
ALPHA, AFTER = 3, 4
# Rows of a child's statistics in `split`, and how many there are.
MEAN, SCATTER, POST_MEAN, PRECISION, N_STATS = range(5)


@kernel(
    f8(
        read_matrix(f4),
        read_matrix(f4),
        i8,
        read_vector(i8),
        read_vector(f8),
        read_vector(f8),
        read_vector(f8),
        vector(f8),
        vector(f8),
    )
)
def moments(x, second, n_clumps, rows, weights, centre, spread, mean, scatter):
    """Write the weighted mean and summed squared deviations of some items; return the sum of weights.

    x : ndarray of shape (n_items, n_dims), float32, means of clumps first, then points
    second : ndarray of shape (n_clumps, n_dims), float32, variance of each clump's members
    rows : ndarray of shape (n,), int64;  weights : ndarray of shape (n,), float64, points per item times share
    centre : ndarray of shape (n_dims,), float64: sums are taken about it, as E[x^2] - E[x]^2 would cancel
    spread : ndarray of shape (n_dims,), float64, variance added to each point: where compression expects its like
    mean, scatter : ndarray of shape (n_dims,), float64, written
    """
    n_dims = centre.shape[0]
    mean[:] = 0.0
    scatter[:] = 0.0
    count = 0.0
    for i in range(rows.shape[0]):
        item = rows[i]
        weight = weights[i]
        count += weight
        for d in range(n_dims):
            difference = x[item, d] - centre[d]
            mean[d] += weight * difference
            scatter[d] += weight * difference * difference
        if item < n_clumps:
            for d in range(n_dims):
                scatter[d] += weight * second[item, d]
    if count > 0.0:
        for d in range(n_dims):
            mean[d] /= count
            scatter[d] = max(scatter[d] - count * mean[d] * mean[d], 0.0) + count * spread[d]
            mean[d] += centre[d]
    return count


@kernel(f8(f8, i8, read_vector(f8), f8))
def _evidence(count, n_dims, prior, log_b):
    """Return the log marginal likelihood of `count` points from the sum of log b over dimensions."""
    kappa = prior[STRENGTH] + count
    a = prior[SHAPE] + 0.5 * count
    return (
        n_dims
        * (
            math.lgamma(a)
            - math.lgamma(prior[SHAPE])
            + prior[SHAPE] * math.log(prior[SCALE])
            + 0.5 * (math.log(prior[STRENGTH] / kappa) - count * LOG_2PI)
        )
        - a * log_b
    )


@kernel(types.void(f8, read_vector(f8), read_vector(f8), read_vector(f8), vector(f8), vector(f8), vector(f8)))
def posterior(count, mean, scatter, prior, post_mean, precision, out):
    """Write the Normal-gamma posterior of a component from its statistics (thesis 2.8; Murphy's Normal-gamma).

    mean, scatter : ndarray of shape (n_dims,), float64
    prior : ndarray of shape (3,), float64: kappa_0, a_0, b_0; the prior mean is the origin
    post_mean, precision : ndarray of shape (n_dims,), float64, written: m_k, and E[lambda] = a / b
    out : ndarray of shape (3,), float64, written: constant of E[log N], log evidence (E[log lik] - KL), E[log lik]
    """
    kappa = prior[STRENGTH] + count
    a = prior[SHAPE] + 0.5 * count
    pull = prior[STRENGTH] * count / kappa
    log_b = 0.0
    fit = 0.0
    n_dims = mean.shape[0]
    for d in range(n_dims):
        post_mean[d] = count * mean[d] / kappa
        b = prior[SCALE] + 0.5 * (scatter[d] + pull * mean[d] * mean[d])
        precision[d] = a / b
        log_b += math.log(b)
        off = mean[d] - post_mean[d]
        fit += precision[d] * (scatter[d] + count * off * off)
    out[CONSTANT] = 0.5 * (n_dims * (digamma(a) - LOG_2PI - 1.0 / kappa) - log_b)
    out[EVIDENCE] = _evidence(count, n_dims, prior, log_b)
    out[EXPECTED] = count * out[CONSTANT] - 0.5 * fit


@kernel(
    types.void(
        read_matrix(f4), read_matrix(f4), i8, read_vector(f8), read_matrix(f8), read_vector(i8), read_vector(i8),
        read_vector(i8), i8, read_vector(f8), read_vector(f8), vector(f8), vector(f8), matrix(f8), matrix(f8),
        matrix(f8), matrix(f8), matrix(f8),
    )
)  # fmt: skip
def maximise(
    x, second, n_clumps, counts, shares, offsets, rows, places, n_components, prior, spread, weights, count, mean,
    scatter, post_mean, precision, fits,
):  # fmt: skip
    """Write statistics and posterior of every component from the responsibilities: `moments`, then `posterior`.

    counts : ndarray of shape (n_items,), float64;  shares : (n_items, n_kept), float64
    offsets, rows, places : the kept pairs by component, as `build_lists` writes them
    spread : ndarray of shape (n_dims,), float64, zeros;  weights : (>= the longest list,), float64, workspace
    count, mean, scatter, post_mean, precision, fits : by component, written; sums are taken about `post_mean` as it was
    """
    for k in range(n_components):
        low, high = offsets[k], offsets[k + 1]
        listed, own = rows[low:high], weights[: high - low]
        list_weights(listed, places[low:high], shares, counts, own)
        count[k] = moments(x, second, n_clumps, listed, own, post_mean[k], spread, mean[k], scatter[k])
        posterior(count[k], mean[k], scatter[k], prior, post_mean[k], precision[k], fits[k])


@kernel(
    types.void(
        read_vector(f8), read_matrix(f8), read_matrix(f8), i8, read_vector(f8), matrix(f8), matrix(f8), matrix(f8)
    )
)  # fmt: skip
def posteriors(count, mean, scatter, n_components, prior, post_mean, precision, fits):
    """Write the `posterior` of every component from its statistics.

    count, mean, scatter : by component;  post_mean, precision, fits : by component, written
    """
    for k in range(n_components):
        posterior(count[k], mean[k], scatter[k], prior, post_mean[k], precision[k], fits[k])


@kernel(
    types.void(
        read_vector(f8), read_matrix(f8), read_matrix(f8), read_matrix(f8), read_vector(f8), read_matrix(i8), i8,
        vector(f8),
    )
)  # fmt: skip
def merge_gains(count, mean, scatter, fits, prior, pairs, n_pairs, gains):
    """Write what the evidence of the data gains where each pair of components is one.

    count, mean, scatter, fits : by component;  pairs : ndarray of shape (>= n_pairs, 2), int64
    gains : ndarray of shape (>= n_pairs,), float64, written
    """
    n_dims = mean.shape[1]
    for i in range(n_pairs):
        a, b = pairs[i, 0], pairs[i, 1]
        total = count[a] + count[b]
        part = count[b] / total if total > 0.0 else 0.0
        pull = prior[STRENGTH] * total / (prior[STRENGTH] + total)
        log_b = 0.0
        for d in range(n_dims):
            step = mean[b, d] - mean[a, d]
            middle = mean[a, d] + part * step
            joined = scatter[a, d] + scatter[b, d] + count[a] * part * step * step
            log_b += math.log(prior[SCALE] + 0.5 * (joined + pull * middle * middle))
        gains[i] = _evidence(total, n_dims, prior, log_b) - fits[a, EVIDENCE] - fits[b, EVIDENCE]


@reduction_kernel(types.void(read_matrix(f8), read_matrix(f8), i8, vector(f8), matrix(i8)))
def nearest(post_mean, precision, n_components, distances, near):
    """Write for each component the others nearest to it in its expected precision, nearest first; -1 is none.

    distances : ndarray of shape (>= n,), float64, workspace;  near : (>= n_components, n), int64, written
    """
    n_near = near.shape[1]
    for a in range(n_components):
        n_found = 0
        for b in range(n_components):
            if b == a:
                continue
            distance = 0.0
            for d in range(post_mean.shape[1]):
                step = post_mean[b, d] - post_mean[a, d]
                distance += precision[a, d] * step * step
            if n_found == n_near and not distance < distances[n_near - 1]:
                continue
            at = min(n_found, n_near - 1)
            while at > 0 and distance < distances[at - 1]:
                distances[at] = distances[at - 1]
                near[a, at] = near[a, at - 1]
                at -= 1
            distances[at] = distance
            near[a, at] = b
            n_found = min(n_found + 1, n_near)
        for j in range(n_found, n_near):
            near[a, j] = NO_COMPONENT


@reduction_kernel(
    types.void(
        read_matrix(f4), read_matrix(f4), i8, i8, read_matrix(i4), read_vector(f8), read_matrix(f8), read_matrix(f8),
        matrix(f8),
    )
)  # fmt: skip
def log_joints_kept(x, second, n_clumps, n_items, candidates, constant, post_mean, precision, out):
    """Write S_sk (2.9) of all items for their kept components.

    candidates : ndarray of shape (>= n_items, n_kept), int32, -1 where unused
    constant : ndarray of shape (capacity,), float64;  post_mean, precision : ndarray of shape (capacity, n_dims)
    out : ndarray of shape (>= n_items, n_kept), float64, written where there is a component
    """
    n_dims = post_mean.shape[1]
    for item in range(n_items):
        for j in range(candidates.shape[1]):
            k = candidates[item, j]
            if k == NO_COMPONENT:
                continue
            distance = 0.0
            for d in range(n_dims):
                difference = x[item, d] - post_mean[k, d]
                distance += precision[k, d] * difference * difference
            if item < n_clumps:
                for d in range(n_dims):
                    distance += precision[k, d] * second[item, d]
            out[item, j] = constant[k] - 0.5 * distance


@reduction_kernel(
    types.void(read_matrix(f4), read_matrix(f4), i8, read_vector(i8), f8, read_vector(f8), read_vector(f8), vector(f8))
)
def log_joint_list(x, second, n_clumps, rows, constant, post_mean, precision, out):
    """Write S_sk (2.9) of one component for some items.

    constant : float64, E[log pi_k] plus the constant of E[log N];  out : ndarray of shape (n,), float64, written
    """
    n_dims = post_mean.shape[0]
    for i in range(rows.shape[0]):
        item = rows[i]
        distance = 0.0
        for d in range(n_dims):
            difference = x[item, d] - post_mean[d]
            distance += precision[d] * difference * difference
        if item < n_clumps:
            for d in range(n_dims):
                distance += precision[d] * second[item, d]
        out[i] = constant - 0.5 * distance


@reduction_kernel(
    types.void(
        read_matrix(f4), read_matrix(f4), i8, i8, i8, i8, read_vector(f8), read_matrix(f8), read_matrix(f8), matrix(f8)
    )
)
def log_joint_block(x, second, n_clumps, first, n_rows, n_components, constant, post_mean, precision, out):
    """Write S_sk (2.9) of all components for `n_rows` items from `first`.

    constant : ndarray of shape (capacity,), float64;  post_mean, precision : ndarray of shape (capacity, n_dims)
    out : ndarray of shape (block, capacity), float64, written
    """
    n_dims = post_mean.shape[1]
    for row in range(n_rows):
        item = first + row
        for k in range(n_components):
            distance = 0.0
            for d in range(n_dims):
                difference = x[item, d] - post_mean[k, d]
                distance += precision[k, d] * difference * difference
            if item < n_clumps:
                for d in range(n_dims):
                    distance += precision[k, d] * second[item, d]
            out[row, k] = constant[k] - 0.5 * distance


@kernel(
    types.void(
        read_matrix(f4), read_matrix(f4), i8, read_vector(i8), read_vector(f8), read_vector(f8), read_vector(f8),
        read_vector(f8), read_vector(f8), matrix(f8), matrix(f8),
    )
)  # fmt: skip
def _fit_sides(x, second, n_clumps, rows, weights, share, centre, spread, prior, stats, fits):
    """Write `moments` and `posterior` of both children; an item that is all of one is none of the other's sums."""
    # Sums as in `moments`, written out: a kernel for one item, called from both, learns a fifth to a third fewer rows a
    # second, as it is not inlined.
    n_dims = centre.shape[0]
    for child in range(2):
        base = N_STATS * child
        mean, scatter = stats[base + MEAN], stats[base + SCATTER]
        mean[:] = 0.0
        scatter[:] = 0.0
        count = 0.0
        for i in range(rows.shape[0]):
            item = rows[i]
            weight = weights[i] * share[i]
            if child == 1:
                weight = weights[i] - weight
            if weight == 0.0:
                continue
            count += weight
            for d in range(n_dims):
                difference = x[item, d] - centre[d]
                mean[d] += weight * difference
                scatter[d] += weight * difference * difference
            if item < n_clumps:
                for d in range(n_dims):
                    scatter[d] += weight * second[item, d]
        if count > 0.0:
            for d in range(n_dims):
                mean[d] /= count
                scatter[d] = max(scatter[d] - count * mean[d] * mean[d], 0.0) + count * spread[d]
                mean[d] += centre[d]
        fits[child, COUNT] = count
        posterior(count, mean, scatter, prior, stats[base + POST_MEAN], stats[base + PRECISION], fits[child])


@kernel(
    f8(
        read_matrix(f4),
        read_matrix(f4),
        i8,
        read_vector(i8),
        read_vector(f8),
        read_vector(f8),
        read_vector(f8),
        read_vector(f8),
        read_vector(f8),
        read_matrix(f8),
        i8,
        i8,
        matrix(f8),
        matrix(f8),
        matrix(f8),
        vector(f8),
    )
)
def split(
    x, second, n_clumps, rows, weights, centre, scatter, settings, spread, plane, soft, max_iterations, stats, fits,
    sides, share,
):  # fmt: skip
    """Split a component by a plane and refine by updates restricted to the two children.

    Section 2.5.1 (soft) and 2.5.2 (hard, with weights magnified by N/T).

    rows, weights : the parent's list;  centre, scatter : ndarray of shape (n_dims,), float64, the parent's
    settings : ndarray of shape (5,), float64: kappa_0, a_0, b_0, concentration, mass on later sticks
    spread : ndarray of shape (n_dims,), float64, as in `moments`
    plane : ndarray of shape (2, n_dims), float64: a point of the plane and its normal; where the normal is zero, the
        plane through the centre across the principal component
    stats : ndarray of shape (8, n_dims), float64, written: mean, scatter, m, E[lambda] of child a, then of b
    fits : ndarray of shape (2, 4), float64, written: constant, evidence, E[log lik], count of both children
    sides : ndarray of shape (>= 2, n), float64, workspace: log joints of both
    share : ndarray of shape (n,), float64, written: the share of child a

    Returns the evidence of both children plus the entropy of the share: the sticks are the caller's.
    """
    is_given = False
    for d in range(centre.shape[0]):
        is_given |= plane[1, d] != 0.0
    if is_given:
        side_of_plane(x, rows, plane[0], plane[1], share)
    else:
        stats[0, :] = 0.0
        widest = 0
        for d in range(centre.shape[0]):
            if scatter[d] > scatter[widest]:
                widest = d
        stats[0, widest] = 1.0
        principal_direction(x, rows, weights, centre, stats[0], stats[1])
        side_of_plane(x, rows, centre, stats[0], share)
    prior = settings[:ALPHA]
    for iteration in range(max_iterations + 1):
        change = 0.0  # since this fit
        _fit_sides(x, second, n_clumps, rows, weights, share, centre, spread, prior, stats, fits)
        if iteration == max_iterations or fits[0, COUNT] <= 0.0 or fits[1, COUNT] <= 0.0:
            break
        for child in range(2):
            base = N_STATS * child
            wide = fits[child, CONSTANT]
            for d in range(centre.shape[0]):
                wide -= 0.5 * spread[d] * stats[base + PRECISION, d]
            post_mean, precision = stats[base + POST_MEAN], stats[base + PRECISION]
            log_joint_list(x, second, n_clumps, rows, wide, post_mean, precision, sides[child])
        odds = split_log_odds(fits[0, COUNT], fits[1, COUNT], settings[AFTER], settings[ALPHA])
        change = update_share(sides[0], sides[1], odds, soft, share)
        if change < 1e-3:
            break
    # An update below the tolerance leaves statistics of the share before it; both are valid, the sum must match one.
    if change > 0.0:
        _fit_sides(x, second, n_clumps, rows, weights, share, centre, spread, prior, stats, fits)
    return fits[0, EVIDENCE] + fits[1, EVIDENCE] + split_entropy(share, weights)
