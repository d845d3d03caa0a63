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
# What a prior holds: the points that its mean is worth (kappa_0), its shape (a_0 of the diagonal family, nu_0 of the
# full one) and its scale (b_0; s_0 of S_0 = s_0 I).
STRENGTH, SHAPE, SCALE = range(3)
# Columns of a posterior's fit: the constant of its log density, its evidence, the expected log likelihood of its own,
# the points in it (of the children of a split only).
CONSTANT, EVIDENCE, EXPECTED, COUNT = range(4)


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


@kernel(f8(read_vector(f8)))
def sum_of(values):
    """Return the sum, one value after the other."""
    total = 0.0
    for i in range(values.shape[0]):
        total += values[i]
    return total


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


@kernel(f8(read_matrix(f8), i8, i8, read_vector(f8), i8, matrix(i4), matrix(f8)))
def respond_dense(logits, n_rows, n_components, counts, first, candidates, shares):
    """Keep the few largest components of each row, normalise them, and return the sum of n_s log sum_k exp S_sk.

    Equation 2.12 over the kept k. Kept: at most candidates.shape[1] components a row, each within 1e-10 of the best.

    logits : ndarray of shape (block, capacity), float64; rows 0 to n_rows are read
    counts : ndarray of shape (n_items,), float64, points an item stands for
    first : int64, item of logits row 0
    candidates : ndarray of shape (n_items, n_kept), int32, written from row `first`; -1 where fewer are kept
    shares : ndarray of shape (n_items, n_kept), float64, written likewise; zero where fewer are kept
    """
    total = 0.0
    n_kept = candidates.shape[1]
    for row in range(n_rows):
        item = first + row
        n_found = 0
        for k in range(n_components):
            value = logits[row, k]
            if n_found == n_kept and not value > shares[item, n_kept - 1]:
                continue
            if n_found > 0 and not value > shares[item, 0] - LEAST_LOG_SHARE:
                continue
            at = min(n_found, n_kept - 1)
            while at > 0 and value > shares[item, at - 1]:
                shares[item, at] = shares[item, at - 1]
                candidates[item, at] = candidates[item, at - 1]
                at -= 1
            shares[item, at] = value
            candidates[item, at] = k
            n_found = min(n_found + 1, n_kept)
        best = shares[item, 0]
        mass = 0.0
        for j in range(n_kept):
            if j < n_found and (j == 0 or shares[item, j] > best - LEAST_LOG_SHARE):
                shares[item, j] = math.exp(shares[item, j] - best)
                mass += shares[item, j]
            else:
                candidates[item, j] = NO_COMPONENT
                shares[item, j] = 0.0
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
    types.void(
        read_matrix(i4), read_vector(f8), read_vector(f8), i8, read_vector(f8), i8, i8, read_vector(f8), matrix(i8)
    )
)  # fmt: skip
def strangest(candidates, logits, counts, n_items, constants, n_components, fresh, limits, seeds):
    """Write the items that fit their component worst, among those that it fits best; -1 where there is none.

    candidates : ndarray of shape (>= n_items, n), int32, an item's likeliest component first
    logits : ndarray of shape (>= n_items,), float64, the items' log joints with that one
    constants : ndarray of shape (n_components,), float64, the log joint at each mean, so that
        2 (constant - logit) is the expected squared distance
    fresh : int64, items from this one on are new in this epoch
    limits : ndarray of shape (2,), float64: squared distances above which a fresh item, and any item, are looked at
    seeds : ndarray of shape (>= n_components, 2), int64, written: the farthest fresh item; the one of most points
        times excess
    """
    for k in range(n_components):
        seeds[k, :] = NO_COMPONENT
    for item in range(n_items):
        k = candidates[item, 0]
        distance = 2.0 * (constants[k] - logits[item])
        if item >= fresh and distance > limits[0]:
            held = seeds[k, 0]
            if held < 0 or distance > 2.0 * (constants[k] - logits[held]):
                seeds[k, 0] = item
        excess = counts[item] * (distance - limits[1])
        if excess > 0.0:
            held = seeds[k, 1]
            if held < 0 or excess > counts[held] * (2.0 * (constants[k] - logits[held]) - limits[1]):
                seeds[k, 1] = item


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


@kernel(i8(read_matrix(f8), read_vector(f8), read_matrix(i8), i8, f8, matrix(i8)))
def choose_pairs(overlaps, counts, near, n_components, least, pairs):
    """Write pairs a < b, rising, that share more than `least` of the smaller one, or where one is near the other.

    overlaps : ndarray of shape (capacity, capacity), float64, as `overlap` writes it
    near : ndarray of shape (>= n_components, n), int64, components near each, -1 is none
    pairs : ndarray of shape (>= n (n - 1) / 2, 2), int64, written;  returns how many
    """
    n_pairs = 0
    for a in range(n_components):
        for b in range(a + 1, n_components):
            chosen = overlaps[a, b] > least * min(counts[a], counts[b])
            for j in range(near.shape[1]):
                chosen = chosen or near[a, j] == b or near[b, j] == a
            if chosen:
                pairs[n_pairs, 0] = a
                pairs[n_pairs, 1] = b
                n_pairs += 1
    return n_pairs


@kernel(types.void(read_vector(f8), read_vector(i8), f8, read_matrix(i8), i8, matrix(f8), vector(i8), vector(f8)))
def add_stick_gains(counts, order, alpha, pairs, n_pairs, parts, rank, gains):
    """Add to `gains` what the evidence of the sticks gains where each pair is one: `sticks_evidence` after less before.

    Only sticks between the place of the pair's sum and that of its smaller part change.

    counts : ndarray of shape (n,), float64;  order : (n,), int64, component of each stick, largest first
    pairs : ndarray of shape (>= n_pairs, 2), int64
    parts : ndarray of shape (3, >= n + 1), float64, workspace: evidence of the sticks from each one on, the same of
        those before it, mass from it on;  rank : (>= n,), int64, workspace
    gains : ndarray of shape (>= n_pairs,), float64, added to
    """
    n = counts.shape[0]
    parts[0, n] = 0.0
    parts[2, n] = 0.0
    for position in range(n - 1, -1, -1):
        k = order[position]
        rank[k] = position
        one = log_stick(counts[k], parts[2, position + 1], alpha)
        parts[1, position] = one
        parts[0, position] = parts[0, position + 1] + one
        parts[2, position] = parts[2, position + 1] + counts[k]
    before = 0.0
    for position in range(n):
        one = parts[1, position]
        parts[1, position] = before
        before += one
    parts[1, n] = before
    for i in range(n_pairs):
        a, b = pairs[i, 0], pairs[i, 1]
        joined = counts[a] + counts[b]
        position = max(rank[a], rank[b])
        total, after = parts[0, position + 1], parts[2, position + 1]
        while position >= 0 and (position == rank[a] or position == rank[b] or counts[order[position]] <= joined):
            k = order[position]
            if k != a and k != b:
                total += log_stick(counts[k], after, alpha)
                after += counts[k]
            position -= 1
        total += log_stick(joined, after, alpha)
        gains[i] += total + parts[1, position + 1] - parts[0, 0]


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
