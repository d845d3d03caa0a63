"""Parts of the mixture's variational updates that both covariance families share: sticks, lists, responsibilities.

Called by agent/learn/mixture/build.py, agent/learn/mixture/compress.py and the other mixture kernels. It must not
know a density.
"""

import math

import numpy as np
from numba import types

from stillwatch.kernels._jit import kernel
from stillwatch.kernels._types import f4, f8, i4, i8, matrix, read_matrix, read_vector, vector

# Responsibilities below exp(-23) = 1e-10 are not kept: together they are worth less than the rounding of the bound.
LEAST_LOG_SHARE = 23.0
NO_COMPONENT = -1


@kernel(f8(f8))
def digamma(x):
    """Return the derivative of log gamma at x > 0, to 1e-13: recurrence up to 8, then the asymptotic series."""
    shift = 0.0
    while x < 8.0:
        shift -= 1.0 / x
        x += 1.0
    inverse = 1.0 / x
    square = inverse * inverse
    series = square * (
        1.0 / 12.0
        - square
        * (
            1.0 / 120.0
            - square
            * (
                1.0 / 252.0
                - square * (1.0 / 240.0 - square * (1.0 / 132.0 - square * (691.0 / 32760.0 - square / 12.0)))
            )
        )
    )
    return shift + math.log(x) - 0.5 * inverse - series


@kernel(f8(f8, f8, f8))
def log_stick(count, after, alpha):
    """Return log B(1 + count, alpha + after) - log B(1, alpha): the evidence of one stick under hard assignments.

    `count` is the mass on the stick, `after` the mass of all later sticks, `alpha` the concentration.
    """
    return (
        math.lgamma(1.0 + count)
        + math.lgamma(alpha + after)
        - math.lgamma(1.0 + alpha + count + after)
        + math.log(alpha)
    )


@kernel(f8(read_vector(f8), f8))
def sticks_evidence(counts, alpha):
    """Return the sum of `log_stick` over sticks.

    counts : ndarray of shape (n,), float64, in stick order
    """
    after = 0.0
    total = 0.0
    for k in range(counts.shape[0] - 1, -1, -1):
        total += log_stick(counts[k], after, alpha)
        after += counts[k]
    return total


@kernel(types.void(read_vector(f8), read_vector(i8), f8, vector(f8), vector(f8)))
def sticks_expectation(counts, order, alpha, log_weight, weight):
    """Write E[log pi_k] and E[pi_k] under the Beta posteriors of the sticks (thesis 2.2, 2.8).

    counts : ndarray of shape (n,), float64, mass by component
    order : ndarray of shape (n,), int64, component of each stick, largest first
    log_weight, weight : ndarray of shape (n,), float64, written
    """
    n = order.shape[0]
    after = 0.0
    for position in range(n):
        after += counts[position]
    log_left = 0.0
    left = 1.0
    for position in range(n):
        k = order[position]
        after = max(after - counts[k], 0.0)
        first = 1.0 + counts[k]
        second = alpha + after
        both = digamma(first + second)
        log_weight[k] = log_left + digamma(first) - both
        log_left += digamma(second) - both
        weight[k] = left * first / (first + second)
        left *= second / (first + second)


@kernel(f8(matrix(f8), i8, i8, read_vector(f8), i8, matrix(i4), matrix(f8)))
def respond_dense(logits, n_rows, n_components, counts, first, candidates, shares):
    """Keep the few largest components of each row, normalise them, and return the sum of n_s log sum_k exp S_sk.

    Equation 2.12 over the kept k. Kept: at most candidates.shape[1] components a row, each within 1e-10 of the best.

    logits : ndarray of shape (block, capacity), float64; rows 0 to n_rows are read and destroyed
    counts : ndarray of shape (n_items,), float64, points an item stands for
    first : int64, item of logits row 0
    candidates : ndarray of shape (n_items, n_kept), int32, written from row `first`; -1 where fewer are kept
    shares : ndarray of shape (n_items, n_kept), float64, written likewise; zero where fewer are kept
    """
    total = 0.0
    n_kept = candidates.shape[1]
    for row in range(n_rows):
        item = first + row
        best = -np.inf
        for k in range(n_components):
            best = max(best, logits[row, k])
        mass = 0.0
        for j in range(n_kept):
            top = 0
            for k in range(1, n_components):
                if logits[row, k] > logits[row, top]:
                    top = k
            value = logits[row, top]
            if j > 0 and not value > best - LEAST_LOG_SHARE:
                for rest in range(j, n_kept):
                    candidates[item, rest] = NO_COMPONENT
                    shares[item, rest] = 0.0
                break
            candidates[item, j] = top
            shares[item, j] = math.exp(value - best)
            mass += shares[item, j]
            logits[row, top] = -np.inf
        for j in range(n_kept):
            shares[item, j] /= mass
        total += counts[item] * (best + math.log(mass))
    return total


@kernel(f8(read_matrix(i4), read_vector(f8), i8, matrix(f8)))
def respond_sparse(candidates, counts, n_items, shares):
    """Normalise the log joints of the kept components in place, and return the sum of n_s log sum_k exp S_sk.

    candidates : ndarray of shape (capacity, n_kept), int32, -1 where unused
    counts : ndarray of shape (capacity,), float64
    shares : ndarray of shape (capacity, n_kept), float64: log joints in, responsibilities out
    """
    total = 0.0
    n_kept = candidates.shape[1]
    for item in range(n_items):
        best = -np.inf
        for j in range(n_kept):
            if candidates[item, j] != NO_COMPONENT:
                best = max(best, shares[item, j])
        mass = 0.0
        for j in range(n_kept):
            if candidates[item, j] == NO_COMPONENT:
                shares[item, j] = 0.0
            else:
                shares[item, j] = math.exp(shares[item, j] - best)
                mass += shares[item, j]
        for j in range(n_kept):
            shares[item, j] /= mass
        total += counts[item] * (best + math.log(mass))
    return total


@kernel(types.void(read_matrix(i4), i8, i8, vector(i8), vector(i8), vector(i8)))
def build_lists(candidates, n_items, n_components, offsets, rows, places):
    """Sort the kept (item, component) pairs by component, items in order: a counting sort.

    offsets : ndarray of shape (>= n_components + 1,), int64, written: component k owns offsets[k] to offsets[k + 1]
    rows, places : ndarray of shape (capacity * n_kept,), int64, written: item, and its column in `candidates`
    """
    n_kept = candidates.shape[1]
    for k in range(n_components + 1):
        offsets[k] = 0
    for item in range(n_items):
        for j in range(n_kept):
            if candidates[item, j] != NO_COMPONENT:
                offsets[candidates[item, j] + 1] += 1
    for k in range(n_components):
        offsets[k + 1] += offsets[k]
    for item in range(n_items):
        for j in range(n_kept):
            k = candidates[item, j]
            if k != NO_COMPONENT:
                rows[offsets[k]] = item
                places[offsets[k]] = j
                offsets[k] += 1
    for k in range(n_components, 0, -1):
        offsets[k] = offsets[k - 1]
    offsets[0] = 0


@kernel(types.void(read_vector(i8), read_vector(i8), read_matrix(f8), read_vector(f8), vector(f8)))
def list_weights(rows, places, shares, counts, weights):
    """Write n_s q(z_s = k) for the pairs of a list.

    rows, places : ndarray of shape (n,), int64;  weights : ndarray of shape (n,), float64, written
    """
    for i in range(rows.shape[0]):
        weights[i] = counts[rows[i]] * shares[rows[i], places[i]]


@kernel(types.void(read_vector(i8), read_vector(i8), read_vector(f8), matrix(f8)))
def scatter_logits(rows, places, logits, shares):
    """Write the log joints of one component's list to their places in `shares`."""
    for i in range(rows.shape[0]):
        shares[rows[i], places[i]] = logits[i]


@kernel(
    types.void(read_vector(i8), read_vector(i8), read_vector(f8), read_vector(f8), f8, i8, read_vector(f8), vector(i8))
)
def strangest(rows, places, logits, counts, constant, fresh, limits, seeds):
    """Write the items of a component's list that fit it worst, among those that it fits best; -1 where there is none.

    rows, places, logits : ndarray of shape (n,): the list of a component, and the log joints of its items
    constant : float64, the log joint at the mean, so that 2 (constant - logit) is the expected squared distance
    fresh : int64, items from this one on are new in this epoch
    limits : ndarray of shape (2,), float64: squared distances above which a fresh item, and any item, are looked at
    seeds : ndarray of shape (2,), int64, written: the farthest fresh item; the one of most points times excess
    """
    seeds[0] = NO_COMPONENT
    seeds[1] = NO_COMPONENT
    farthest = limits[0]
    most = 0.0
    for i in range(rows.shape[0]):
        if places[i] != 0:
            continue
        distance = 2.0 * (constant - logits[i])
        if rows[i] >= fresh and distance > farthest:
            farthest = distance
            seeds[0] = rows[i]
        if counts[rows[i]] * (distance - limits[1]) > most:
            most = counts[rows[i]] * (distance - limits[1])
            seeds[1] = rows[i]


@kernel(f8(f8))
def _x_log_x(x):
    """Return x log x, zero at zero."""
    return x * math.log(x) if x > 0.0 else 0.0


@kernel(f8(read_vector(i8), read_vector(i8), i4, read_matrix(i4), read_matrix(f8), read_vector(f8)))
def merge_entropy(rows, places, other, candidates, shares, counts):
    """Return the change of the entropy term when the list's component and `other` become one; never above zero.

    rows, places : ndarray of shape (n,), int64, the list of the first component
    """
    total = 0.0
    for i in range(rows.shape[0]):
        item = rows[i]
        for j in range(candidates.shape[1]):
            if candidates[item, j] == other:
                one = shares[item, places[i]]
                two = shares[item, j]
                total -= counts[item] * (_x_log_x(one + two) - _x_log_x(one) - _x_log_x(two))
    return total


@kernel(types.void(read_matrix(i4), read_matrix(f8), read_vector(f8), i8, matrix(f8)))
def overlap(candidates, shares, counts, n_items, out):
    """Add up, for each pair of components, the mass that items share between them: sum n_s q_a q_b.

    out : ndarray of shape (capacity, capacity), float64, written (upper triangle)
    """
    out[:, :] = 0.0
    for item in range(n_items):
        for i in range(candidates.shape[1]):
            for j in range(i + 1, candidates.shape[1]):
                a, b = candidates[item, i], candidates[item, j]
                if a != NO_COMPONENT and b != NO_COMPONENT:
                    out[min(a, b), max(a, b)] += counts[item] * shares[item, i] * shares[item, j]


@kernel(types.void(read_matrix(f4), read_vector(i8), read_vector(f8), read_vector(f8), vector(f8), vector(f8)))
def principal_direction(x, rows, weights, centre, direction, workspace):
    """Improve `direction` to the leading principal component of weighted rows, by power iterations over the rows.

    x : ndarray of shape (n_items, n_dims), float32
    direction : ndarray of shape (n_dims,), float64: a start of unit length in, a unit vector out
    workspace : ndarray of shape (n_dims,), float64
    """
    n_dims = centre.shape[0]
    for _ in range(6):
        workspace[:] = 0.0
        for i in range(rows.shape[0]):
            along = 0.0
            for d in range(n_dims):
                along += (x[rows[i], d] - centre[d]) * direction[d]
            along *= weights[i]
            for d in range(n_dims):
                workspace[d] += along * (x[rows[i], d] - centre[d])
        length = 0.0
        for d in range(n_dims):
            length += workspace[d] * workspace[d]
        if not length > 0.0:
            return
        for d in range(n_dims):
            direction[d] = workspace[d] / math.sqrt(length)


@kernel(types.void(read_matrix(f4), read_vector(i8), read_vector(f8), read_vector(f8), vector(f8)))
def side_of_plane(x, rows, centre, direction, share):
    """Write 1 for the rows whose projection from `centre` is positive, else 0.

    share : ndarray of shape (n,), float64, written
    """
    for i in range(rows.shape[0]):
        along = 0.0
        for d in range(centre.shape[0]):
            along += (x[rows[i], d] - centre[d]) * direction[d]
        share[i] = 1.0 if along > 0.0 else 0.0


@kernel(f8(read_vector(f8), read_vector(f8)))
def split_entropy(share, weights):
    """Return the sum of w times the entropy of (share, 1 - share), in nats."""
    total = 0.0
    for i in range(share.shape[0]):
        total -= weights[i] * (_x_log_x(share[i]) + _x_log_x(1.0 - share[i]))
    return total


@kernel(f8(read_vector(f8), read_vector(f8), f8, i8, vector(f8)))
def update_share(logit_a, logit_b, log_odds, soft, share):
    """Update the first child's share of each row from the log densities of both; return the largest change.

    log_odds : float64, E[log pi_a] - E[log pi_b];  soft : int64, 0 assigns hard, as compression does
    """
    change = 0.0
    for i in range(share.shape[0]):
        difference = logit_a[i] - logit_b[i] + log_odds
        if soft == 0:
            new = 1.0 if difference > 0.0 else 0.0
        elif difference > 0.0:
            new = 1.0 / (1.0 + math.exp(-difference))
        else:
            new = 1.0 - 1.0 / (1.0 + math.exp(difference))
        change = max(change, abs(new - share[i]))
        share[i] = new
    return change


@kernel(f8(f8, f8, f8, f8))
def split_log_odds(count_a, count_b, after, alpha):
    """Return E[log pi_a] - E[log pi_b] for two neighbouring sticks, the larger first."""
    large, small = max(count_a, count_b), min(count_a, count_b)
    first = digamma(1.0 + large) - digamma(alpha + small + after)
    second = digamma(1.0 + small) - digamma(1.0 + alpha + small + after)
    return first - second if count_a >= count_b else second - first
