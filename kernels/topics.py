"""Documents of the topic model: their words by topic, expected weights, evidence, alpha, merging of document groups.

Called by agent/learn/topics. It must not know a density, nor allocate: what words are like is the mixture kernels'.
"""

import math

import numpy as np
from numba import types

from stillwatch.kernels._jit import kernel, reduction_kernel
from stillwatch.kernels._types import f8, i4, i8, matrix, read_matrix, read_vector, vector
from stillwatch.kernels.mixture_common import NO_COMPONENT, digamma, sum_of

# A clump's words by document group are shares of its words, in parts of this many: they add up to it.
PARTS = 65535.0
LEAST_ALPHA = 1e-6  # a topic that no document uses keeps so much, as log Gamma has no value at zero

_shares_of_groups = read_matrix(types.uint16)


@kernel(
    types.void(
        read_matrix(i4), read_matrix(f8), read_vector(f8), read_vector(i8), _shares_of_groups, i8, i8, matrix(f8)
    )
)
def words_by_topic(candidates, shares, counts, group, spread, n_clumps, n_items, words):
    """Write N_ks (3.15): how many words of each document group are of each topic.

    candidates, shares : ndarrays of shape (capacity, n_kept), int32 and float64: kept topics of an item, q(z_c = k)
    counts : ndarray of shape (capacity,), float64;  group : ndarray of shape (capacity,), int64, of single words
    spread : ndarray of shape (clump_capacity, n_groups), uint16: N_cs / N_c of clumps, in PARTS
    words : ndarray of shape (n_groups, capacity), float64, written
    """
    words[:, :] = 0.0
    for item in range(n_items):
        for j in range(candidates.shape[1]):
            k = candidates[item, j]
            if k == NO_COMPONENT:
                continue
            mass = counts[item] * shares[item, j]
            if item >= n_clumps:
                words[group[item], k] += mass
            else:
                for s in range(spread.shape[1]):
                    if spread[item, s] > 0:
                        words[s, k] += mass * (spread[item, s] / PARTS)


@kernel(types.void(read_vector(i8), read_vector(f8), read_vector(i8), _shares_of_groups, i8, vector(f8)))
def words_of_list(rows, weights, group, spread, n_clumps, words):
    """Write how many words of each document group some weighted items hold.

    rows, weights : ndarray of shape (n,), int64 and float64;  words : ndarray of shape (n_groups,), float64, written
    """
    words[:] = 0.0
    for i in range(rows.shape[0]):
        item = rows[i]
        if item >= n_clumps:
            words[group[item]] += weights[i]
        else:
            for s in range(spread.shape[1]):  # most are none: a loop without a question runs along the row
                words[s] += weights[i] * (spread[item, s] / PARTS)


@kernel(types.void(i8, i8, i8, i8, read_vector(i8), _shares_of_groups, read_matrix(f8), matrix(f8)))
def add_expected_block(first, n_rows, n_topics, n_clumps, group, spread, expected, block):
    """Add sum_s N_cs / N_c E[log pi_sk] (3.21) to the log joints of a block of items.

    expected : ndarray of shape (n_groups, capacity), float64;  block : (block, capacity), float64, changed
    """
    for row in range(n_rows):
        item = first + row
        if item >= n_clumps:
            s = group[item]
            for k in range(n_topics):
                block[row, k] += expected[s, k]
        else:
            for s in range(spread.shape[1]):
                if spread[item, s] > 0:
                    part = spread[item, s] / PARTS
                    for k in range(n_topics):
                        block[row, k] += part * expected[s, k]


@reduction_kernel(f8(_shares_of_groups, i8, read_vector(f8)))
def _expected_of_clump(spread, clump, expected):
    total = 0.0
    for s in range(spread.shape[1]):
        total += spread[clump, s] * expected[s]
    return total / PARTS


@kernel(types.void(read_vector(i8), i8, read_vector(i8), _shares_of_groups, read_vector(f8), vector(f8)))
def add_expected_list(rows, n_clumps, group, spread, expected, logits):
    """Add the same to the log joints of one topic's list; `expected` is (>= n_groups,), that topic's."""
    for i in range(rows.shape[0]):
        item = rows[i]
        logits[i] += expected[group[item]] if item >= n_clumps else _expected_of_clump(spread, item, expected)


@kernel(
    types.void(read_matrix(i4), i8, i8, i8, read_vector(i8), _shares_of_groups, read_matrix(f8), vector(f8), matrix(f8))
)
def add_expected_kept(candidates, n_items, n_clumps, n_topics, group, spread, expected, of_topic, shares):
    """Add the same to the log joints of the kept topics of all items.

    candidates : ndarray of shape (capacity, n_kept), int32;  expected : ndarray of shape (n_groups, capacity), float64
    of_topic : ndarray of shape (n_groups,), float64, workspace;  shares : (capacity, n_kept), float64: log joints
    """
    for k in range(n_topics if n_clumps else 0):
        for s in range(of_topic.shape[0]):
            of_topic[s] = expected[s, k]
        for item in range(n_clumps):
            for j in range(candidates.shape[1]):
                if candidates[item, j] == k:
                    shares[item, j] += _expected_of_clump(spread, item, of_topic)
    for item in range(n_clumps, n_items):
        for j in range(candidates.shape[1]):
            if candidates[item, j] != NO_COMPONENT:
                shares[item, j] += expected[group[item], candidates[item, j]]


@kernel(types.void(read_matrix(f8), read_vector(f8), read_vector(f8), i8, matrix(f8)))
def expected_weights(words, size, alpha, n_groups, expected):
    """Write E[log pi_sk] = psi(zeta_ks) - psi(zeta_s), zeta_ks = N_ks / D_s + alpha_k (3.20).

    words, expected : ndarray of shape (n_groups, capacity), float64;  size : D_s;  alpha : (n_topics,), float64
    """
    n_topics = alpha.shape[0]
    base = sum_of(alpha)
    for s in range(n_groups):
        total = base
        for k in range(n_topics):
            total += words[s, k] / size[s]
        low = digamma(total)
        for k in range(n_topics):
            expected[s, k] = digamma(alpha[k] + words[s, k] / size[s]) - low


@kernel(types.void(read_vector(f8), vector(f8)))
def digammas(values, out):
    """Write psi of each value above 0."""
    for i in range(values.shape[0]):
        out[i] = digamma(values[i])


@kernel(f8(read_vector(f8), read_vector(f8), f8))
def topic_evidence(words, size, alpha):
    """Return sum_s D_s log [Gamma(alpha_k + N_ks / D_s) / Gamma(alpha_k)]: one topic's part of 3.29.

    words, size : ndarray of shape (n_groups,), float64;  alpha : float64
    """
    total = 0.0
    low = math.lgamma(alpha)
    for s in range(words.shape[0]):
        if words[s] > 0.0:
            total += size[s] * (math.lgamma(alpha + words[s] / size[s]) - low)
    return total


@kernel(
    types.void(
        read_matrix(f8), read_vector(f8), read_vector(f8), i8, read_matrix(i8), i8, vector(f8), vector(f8), vector(f8)
    )
)
def add_merge_gains(words, size, alpha, n_groups, pairs, n_pairs, of_topic, apart, gains):
    """Add to `gains` what the documents' evidence gains where each pair of topics is one.

    words : ndarray of shape (n_groups, capacity), float64;  size : D_s;  alpha : ndarray of shape (n_topics,)
    pairs : ndarray of shape (>= n_pairs, 2), int64
    of_topic : (>= n_groups,), apart : (>= n_topics,), float64, workspaces;  gains : (>= n_pairs,), float64, added to
    """
    for k in range(alpha.shape[0]):
        for s in range(n_groups):
            of_topic[s] = words[s, k]
        apart[k] = topic_evidence(of_topic[:n_groups], size, alpha[k])
    for i in range(n_pairs):
        a, b = pairs[i, 0], pairs[i, 1]
        for s in range(n_groups):
            of_topic[s] = words[s, a] + words[s, b]
        gains[i] += topic_evidence(of_topic[:n_groups], size, alpha[a] + alpha[b]) - (apart[a] + apart[b])


@kernel(f8(f8, read_vector(f8), read_vector(f8), f8))
def _group_evidence(size, words, alpha, base):
    """Return D_s times the Dirichlet-multinomial log evidence of N_s / D_s."""
    total = 0.0
    evidence = 0.0
    for k in range(alpha.shape[0]):
        count = words[k] / size
        if count > 0.0:
            total += count
            evidence += math.lgamma(alpha[k] + count) - math.lgamma(alpha[k])
    return size * (evidence + math.lgamma(base) - math.lgamma(base + total))


@kernel(f8(read_matrix(f8), read_vector(f8), read_vector(f8), i8))
def documents_evidence(words, size, alpha, n_groups):
    """Return the terms of 3.29 that documents have, as evidence: their words' topics given alpha.

    words : ndarray of shape (n_groups, capacity), float64;  size : D_s;  alpha : ndarray of shape (n_topics,)
    """
    base = sum_of(alpha)
    total = 0.0
    for s in range(n_groups):
        total += _group_evidence(size[s], words[s], alpha, base)
    return total


@kernel(types.void(read_matrix(f8), read_vector(f8), i8, f8, f8, i8, vector(f8)))
def update_alpha(words, size, n_groups, a, b, n_updates, alpha):
    """Update alpha by its fixed point (3.22) so many times.

    words : ndarray of shape (n_groups, capacity), float64;  size : D_s;  a, b : of the gamma prior (3.12)
    alpha : ndarray of shape (n_topics,), float64: changed
    """
    n_topics = alpha.shape[0]
    for _ in range(n_updates):
        base = sum_of(alpha)
        below = b
        for s in range(n_groups):
            total = base
            for k in range(n_topics):
                total += words[s, k] / size[s]
            below += size[s] * (digamma(total) - digamma(base))
        for k in range(n_topics):
            low = digamma(alpha[k])
            above = 0.0
            for s in range(n_groups):
                if words[s, k] > 0.0:
                    above += size[s] * (digamma(alpha[k] + words[s, k] / size[s]) - low)
            alpha[k] = max((a - 1.0 + alpha[k] * above) / below, LEAST_ALPHA)


@kernel(f8(i8, i8, read_matrix(f8), read_vector(f8), read_vector(f8), f8, read_vector(f8), vector(f8)))
def _merging_loss(s, t, words, size, alpha, base, own, joined):
    for k in range(alpha.shape[0]):
        joined[k] = words[s, k] + words[t, k]
    return own[s] + own[t] - _group_evidence(size[s] + size[t], joined, alpha, base)


@kernel(
    types.void(
        matrix(f8), vector(f8), read_vector(f8), i8, i8, vector(i8), vector(f8), vector(f8), vector(i8), matrix(f8)
    )
)
def merge_documents(words, size, alpha, n_groups, n_kept, place, own, joined, alive, loss):
    """Merge document groups, the pair first by which the bound loses least, until `n_kept` are left.

    Tied documents share q(pi), so that a merge loses D_s l(N_s / D_s) + D_t l(N_t / D_t) - D l(N / D), l being the
    Dirichlet-multinomial log evidence: what 3.29 says, where the thesis's 3.27 is a heuristic.

    words : ndarray of shape (capacity_groups, capacity), float64;  size : (capacity_groups,): merged in place, then
        moved to the first places in their order
    place : ndarray of shape (capacity_groups,), int64, written: where each group is afterwards
    own, alive : ndarray of shape (capacity_groups,), workspaces;  joined : (capacity,), workspace
    loss : ndarray of shape (capacity_groups, capacity_groups), float64, workspace
    """
    base = sum_of(alpha)
    for s in range(n_groups):
        place[s] = s
        alive[s] = 1
        own[s] = _group_evidence(size[s], words[s], alpha, base)
    for s in range(n_groups):
        for t in range(s + 1, n_groups):
            loss[s, t] = _merging_loss(s, t, words, size, alpha, base, own, joined)
    for _ in range(max(n_groups - n_kept, 0)):
        best = np.inf
        a, b = 0, 1
        for s in range(n_groups):
            if alive[s] == 1:
                for t in range(s + 1, n_groups):
                    if alive[t] == 1 and loss[s, t] < best:
                        best, a, b = loss[s, t], s, t
        for k in range(words.shape[1]):
            words[a, k] += words[b, k]
        size[a] += size[b]
        alive[b] = 0
        for s in range(n_groups):
            if place[s] == b:
                place[s] = a
        own[a] = _group_evidence(size[a], words[a], alpha, base)
        for s in range(n_groups):
            if alive[s] == 1 and s != a:
                low, high = min(s, a), max(s, a)
                loss[low, high] = _merging_loss(low, high, words, size, alpha, base, own, joined)
    end = 0
    for s in range(n_groups):
        if alive[s] == 1:
            alive[s] = end
            for k in range(words.shape[1]):
                words[end, k] = words[s, k]
            size[end] = size[s]
            end += 1
        else:
            alive[s] = -1
    for s in range(n_groups):
        place[s] = alive[place[s]]


@kernel(
    types.void(
        read_vector(i8),
        read_vector(i8),
        read_vector(i8),
        i8,
        read_vector(f8),
        read_vector(i8),
        _shares_of_groups,
        i8,
        vector(f8),
        matrix(types.uint16),
    )
)
def spread_of_clumps(order, bounds, groups, n_groups, counts, group, spread, n_clumps, words, out):
    """Write the words by document group of new clumps, as shares in PARTS that add up exactly.

    order : ndarray of shape (n_items,), int64, items sorted by the groups of k-means that `bounds` delimits
    groups : ndarray of shape (n_new,), int64, which of those become clumps, a row of `out` each
    n_groups : int64, document groups in use;  spread, n_clumps : of the items before
    words : ndarray of shape (capacity_groups,), float64, workspace
    """
    for row in range(groups.shape[0]):
        words[:n_groups] = 0.0
        total = 0.0
        for i in range(bounds[groups[row]], bounds[groups[row] + 1]):
            item = order[i]
            total += counts[item]
            if item >= n_clumps:
                words[group[item]] += counts[item]
            else:
                for s in range(n_groups):
                    if spread[item, s] > 0:
                        words[s] += counts[item] * (spread[item, s] / PARTS)
        left = int(PARTS)
        most = 0
        for s in range(out.shape[1]):
            out[row, s] = 0
        for s in range(n_groups):
            out[row, s] = int(words[s] / total * PARTS)
            left -= int(out[row, s])
            if words[s] > words[most]:
                most = s
        out[row, most] += left


@kernel(types.void(vector(i8), i8, i8, matrix(types.uint16), i8, read_vector(i8), vector(f8)))
def move_documents(group, n_clumps, n_items, spread, n_groups, place, parts):
    """Rename the document groups of items after a merge: group `s` is now `place[s]`.

    parts : ndarray of shape (capacity_groups,), float64, workspace
    """
    for item in range(n_clumps, n_items):
        group[item] = place[group[item]]
    n_columns = min(n_groups, spread.shape[1])
    for row in range(n_clumps):
        parts[:n_groups] = 0.0
        for s in range(n_columns):
            parts[place[s]] += spread[row, s]
            spread[row, s] = 0
        for s in range(n_columns):
            spread[row, s] = int(parts[s])


@kernel(types.void(read_matrix(f8), read_vector(f8), i8, vector(f8), vector(f8), vector(f8)))
def infer_document(log_density, alpha, n_updates, zeta, expected, logits):
    """Write zeta_k of one new document by variational updates over its words (3.11 and 3.10), topics fixed.

    log_density : ndarray of shape (n_words, n_topics), float64, of each word under each topic
    alpha, zeta, expected, logits : ndarray of shape (n_topics,), float64; zeta written, the others workspaces
    """
    n_words, n_topics = log_density.shape
    base = sum_of(alpha)
    for k in range(n_topics):
        zeta[k] = (
            alpha[k] + n_words * alpha[k] / base
        )  # as an average document: psi(alpha_k) alone excludes small topics
    for _ in range(n_updates):
        for k in range(n_topics):
            expected[k] = digamma(zeta[k])
        change = 0.0
        for k in range(n_topics):
            logits[k] = zeta[k]
            zeta[k] = alpha[k]
        for i in range(n_words):
            best = -np.inf
            for k in range(n_topics):
                best = max(best, log_density[i, k] + expected[k])
            mass = 0.0
            for k in range(n_topics):
                mass += math.exp(log_density[i, k] + expected[k] - best)
            for k in range(n_topics):
                zeta[k] += math.exp(log_density[i, k] + expected[k] - best) / mass
        for k in range(n_topics):
            change = max(change, abs(zeta[k] - logits[k]))
        if change < 1e-6 * n_words:
            return


@kernel(types.void(read_matrix(f8), read_matrix(f8), i8, vector(i8), vector(f8)))
def similarity(log_density, expected, n_best, best, score):
    """Write how likely a document's words are in each of some other documents, every word hard in one topic (3.28).

    log_density : ndarray of shape (n_words, n_topics), float64, of each word under each topic
    expected : ndarray of shape (n_documents, n_topics), float64: psi(zeta_kj) - psi(sum_k zeta_kj)
    n_best : int64, topics of a word that are looked at: those of highest density; `best` (n_best,) int64, workspace
    score : ndarray of shape (n_documents,), float64, written
    """
    n_words, n_topics = log_density.shape
    score[:] = 0.0
    for i in range(n_words):
        for j in range(n_best):
            best[j] = -1
        for k in range(n_topics):
            at = n_best
            while at > 0 and (best[at - 1] < 0 or log_density[i, k] > log_density[i, best[at - 1]]):
                at -= 1
            if at < n_best:
                for j in range(n_best - 1, at, -1):
                    best[j] = best[j - 1]
                best[at] = k
        for document in range(expected.shape[0]):
            most = -np.inf
            for j in range(n_best):
                if best[j] >= 0:
                    most = max(most, log_density[i, best[j]] + expected[document, best[j]])
            score[document] += most


@kernel(f8(read_vector(f8)))
def _log_beta(zeta):
    found = 0.0
    for k in range(zeta.shape[0]):
        found += math.lgamma(zeta[k])
    return found - math.lgamma(sum_of(zeta))


@kernel(types.void(read_matrix(f8), read_matrix(f8), read_vector(f8), vector(f8), matrix(f8)))
def likeness(asked, zeta, alpha, own, score):
    """Write how much likelier the topics of two documents' words are from one pi than from two.

    log B(zeta_i + zeta_j - alpha) + log B(alpha) - log B(zeta_i) - log B(zeta_j), B being the beta function of many
    arguments: what 3.29 would gain if the two documents were tied.

    asked, zeta : ndarrays of shape (n_asked, n_topics) and (n, n_topics), float64, 3.20, of at least alpha each
    alpha : ndarray of shape (n_topics,), float64, above 0;  own : ndarray of shape (n,), float64, workspace
    score : ndarray of shape (n_asked, n), float64, written
    """
    none = _log_beta(alpha)
    for j in range(zeta.shape[0]):
        own[j] = _log_beta(zeta[j])
    for i in range(asked.shape[0]):
        apart = _log_beta(asked[i]) - none
        for j in range(zeta.shape[0]):
            total = 0.0
            found = 0.0
            for k in range(alpha.shape[0]):
                both = asked[i, k] + zeta[j, k] - alpha[k]
                total += both
                found += math.lgamma(both)
            score[i, j] = found - math.lgamma(total) - apart - own[j]
