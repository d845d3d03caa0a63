"""The diagonal family: a Normal-gamma posterior per dimension, over points and clumps (count, mean, variance).

Called by agent/learn/mixture/families. It must not choose components nor allocate: lists and workspaces are given.
"""

import math

import numpy as np
from numba import types

from stillwatch.kernels._jit import kernel, reduction_kernel
from stillwatch.kernels._types import f4, f8, i8, matrix, read_matrix, read_vector, vector
from stillwatch.kernels.mixture_common import (
    digamma,
    principal_direction,
    side_of_plane,
    split_entropy,
    split_log_odds,
    update_share,
)

LOG_2PI = math.log(2.0 * math.pi)


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


@kernel(types.void(f8, read_vector(f8), read_vector(f8), read_vector(f8), vector(f8), vector(f8), vector(f8)))
def posterior(count, mean, scatter, prior, post_mean, precision, out):
    """Write the Normal-gamma posterior of a component from its statistics (thesis 2.8; Murphy's Normal-gamma).

    mean, scatter : ndarray of shape (n_dims,), float64
    prior : ndarray of shape (3,), float64: kappa_0, a_0, b_0; the prior mean is the origin
    post_mean, precision : ndarray of shape (n_dims,), float64, written: m_k, and E[lambda] = a / b
    out : ndarray of shape (3,), float64, written: constant of E[log N], log evidence (E[log lik] - KL), E[log lik]
    """
    kappa = prior[0] + count
    a = prior[1] + 0.5 * count
    pull = prior[0] * count / kappa
    log_b = 0.0
    fit = 0.0
    n_dims = mean.shape[0]
    for d in range(n_dims):
        post_mean[d] = count * mean[d] / kappa
        b = prior[2] + 0.5 * (scatter[d] + pull * mean[d] * mean[d])
        precision[d] = a / b
        log_b += math.log(b)
        off = mean[d] - post_mean[d]
        fit += precision[d] * (scatter[d] + count * off * off)
    out[0] = 0.5 * (n_dims * (digamma(a) - LOG_2PI - 1.0 / kappa) - log_b)
    out[1] = (
        n_dims
        * (
            math.lgamma(a)
            - math.lgamma(prior[1])
            + prior[1] * math.log(prior[2])
            + 0.5 * (math.log(prior[0] / kappa) - count * LOG_2PI)
        )
        - a * log_b
    )
    out[2] = count * out[0] - 0.5 * fit


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


@kernel(types.void(read_vector(f8), read_vector(f8), vector(f8), vector(f8)))
def _weigh_sides(weights, share, weight_a, weight_b):
    """Write the weights of both children."""
    for i in range(weights.shape[0]):
        weight_a[i] = weights[i] * share[i]
        weight_b[i] = weights[i] - weight_a[i]


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
    sides : ndarray of shape (4, n), float64, workspace
    share : ndarray of shape (n,), float64, written: the share of child a

    Returns the evidence of both children plus the entropy of the share: the sticks are the caller's.
    """
    if np.any(plane[1] != 0.0):
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
    prior = settings[:3]
    for iteration in range(max_iterations + 1):
        _weigh_sides(weights, share, sides[0], sides[1])
        for child in range(2):
            base = 4 * child
            fits[child, 3] = moments(
                x, second, n_clumps, rows, sides[child], centre, spread, stats[base], stats[base + 1]
            )
            posterior(
                fits[child, 3], stats[base], stats[base + 1], prior, stats[base + 2], stats[base + 3], fits[child]
            )
        if iteration == max_iterations or fits[0, 3] <= 0.0 or fits[1, 3] <= 0.0:
            break
        for child in range(2):
            base = 4 * child
            wide = fits[child, 0]
            for d in range(centre.shape[0]):
                wide -= 0.5 * spread[d] * stats[base + 3, d]
            log_joint_list(x, second, n_clumps, rows, wide, stats[base + 2], stats[base + 3], sides[2 + child])
        odds = split_log_odds(fits[0, 3], fits[1, 3], settings[4], settings[3])
        if update_share(sides[2], sides[3], odds, soft, share) < 1e-3:
            break
    # An update below the tolerance leaves statistics of the share before it; both are valid, the sum must match one.
    _weigh_sides(weights, share, sides[0], sides[1])
    for child in range(2):
        base = 4 * child
        fits[child, 3] = moments(x, second, n_clumps, rows, sides[child], centre, spread, stats[base], stats[base + 1])
        posterior(fits[child, 3], stats[base], stats[base + 1], prior, stats[base + 2], stats[base + 3], fits[child])
    return fits[0, 1] + fits[1, 1] + split_entropy(share, weights)
