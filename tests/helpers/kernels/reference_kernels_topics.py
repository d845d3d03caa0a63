"""The topic model's document terms in plain NumPy and SciPy, from the thesis's equations (chapter 3)."""

import numpy as np
from scipy.special import digamma, gammaln

PARTS = 65535


def words_by_group(counts, group, spread, n_clumps):
    """Return N_cs (n_items, n_groups) of all items."""
    n, n_groups = len(counts), spread.shape[1]
    found = np.zeros((n, max(n_groups, int(group.max(initial=0)) + 1)))
    for item in range(n):
        if item < n_clumps:
            found[item, :n_groups] = counts[item] * spread[item] / PARTS
        else:
            found[item, group[item]] = counts[item]
    return found


def evidence(words, size, alpha):
    """Return log prod_s [Dirichlet-multinomial of N_s / D_s]^D_s, the document terms of 3.29."""
    mean = words / size[:, None]
    each = gammaln(alpha.sum()) - gammaln(alpha.sum() + mean.sum(axis=1))
    each = each + (gammaln(alpha + mean) - gammaln(alpha)).sum(axis=1)
    return float(size @ each)


def expected_weights(words, size, alpha):
    """Return E[log pi_sk] under the Dirichlet of 3.20."""
    zeta = words / size[:, None] + alpha
    return digamma(zeta) - digamma(zeta.sum(axis=1, keepdims=True))


def merged(words, size, alpha, n_kept):
    """Merge pairs that lose least, one at a time, trying all; return words, size, and the members of each group."""
    words, size = [row.copy() for row in words], list(size)
    members = [{s} for s in range(len(size))]

    def one(w, d):
        return evidence(w[None], np.array([d]), alpha)

    while len(size) > n_kept:
        pairs = [
            (one(words[a], size[a]) + one(words[b], size[b]) - one(words[a] + words[b], size[a] + size[b]), a, b)
            for a in range(len(size))
            for b in range(a + 1, len(size))
        ]
        _, a, b = min(pairs)
        words[a], size[a] = words[a] + words[b], size[a] + size[b]
        members[a] |= members[b]
        for held in (words, size, members):
            del held[b]
    return np.array(words), np.array(size), members


def inferred(log_density, alpha, updates):
    """Return zeta of a document by 3.10 and 3.11, from an average document."""
    zeta = alpha + len(log_density) * alpha / alpha.sum()
    for _ in range(updates):
        joint = log_density + digamma(zeta)
        shares = np.exp(joint - joint.max(axis=1, keepdims=True))
        zeta = alpha + (shares / shares.sum(axis=1, keepdims=True)).sum(axis=0)
    return zeta


def similarity(log_density, zeta):
    """Return 3.28 for each document of `zeta`, all topics looked at."""
    expected = digamma(zeta) - digamma(zeta.sum(axis=1, keepdims=True))
    return np.array([(log_density + one).max(axis=1).sum() for one in expected])


def likeness(asked, zeta, alpha):
    """Return log p(z_i, z_j | one pi) - log p(z_i | pi_i) p(z_j | pi_j) for each pair, from Polya's distribution."""

    def log_evidence(counts):
        both = gammaln(alpha.sum()) - gammaln(alpha.sum() + counts.sum())
        return both + (gammaln(alpha + counts) - gammaln(alpha)).sum()

    found = np.zeros((len(asked), len(zeta)))
    for i, one in enumerate(asked - alpha):
        for j, other in enumerate(zeta - alpha):
            found[i, j] = log_evidence(one + other) - log_evidence(one) - log_evidence(other)
    return found
