"""Clumps as points again: drawn from each clump's own Gaussian, so that its points may have different labels.

Called by agent/learn/groups/grouped.py. A clump taken whole has one label; where clusters overlap, clumps straddle
them, and one label each costs what DECISIONS.md tells. It must not know clusters.
"""

import numpy as np

# Clumps whose square roots of covariances are held at once.
CLUMPS_AT_ONCE = 4096


def draw_points(
    x: np.ndarray,
    counts: np.ndarray,
    spreads: np.ndarray,
    groups: np.ndarray,
    n_groups: int,
    n_most: int,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Return (points (m, n_dims), the item that each comes from (m,), ascending), m about `n_most` at most.

    Groups of few points keep them all; what they leave is shared by the others alike, so that no dive drowns in
    another. Two or more points of a clump have its mean and its variances exactly.

    Parameters
    ----------
    x, counts, spreads : as `Items` has them
    groups : ndarray of shape (n,), int64
    """
    per_group = np.bincount(groups, counts, n_groups)
    rates = np.minimum(1.0, _level(per_group, n_most) / np.maximum(per_group, 1e-300))
    source = np.repeat(np.arange(len(x)), _how_many(counts * rates[groups], rng))
    points = rng.normal(size=(len(source), x.shape[1]))
    first = np.flatnonzero(np.r_[True, source[1:] != source[:-1]])
    lengths = np.diff(np.r_[first, len(source)])
    _standardise(points, first, lengths)
    for start in range(0, len(first), CLUMPS_AT_ONCE):
        part = slice(start, start + CLUMPS_AT_ONCE)
        roots = _roots(spreads[source[first[part]]], x.shape[1])
        for root, begin, length in zip(roots, first[part], lengths[part], strict=True):
            own = points[begin : begin + length]
            own[:] = own @ root if root.ndim == 2 else own * root
    points += x[source]
    return points, source


def _level(per_group: np.ndarray, n_most: int) -> float:
    """Return what each group may have at most so that all together have `n_most` (water filling)."""
    sizes = np.sort(per_group)
    left, n_left = float(n_most), len(sizes)
    for size in sizes:
        if size * n_left > left:
            return left / n_left
        left, n_left = left - size, n_left - 1
    return float(sizes[-1])


def _how_many(expected: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return whole numbers that keep every running total to within one (systematic sampling), int64; never all 0."""
    reached = np.floor(np.cumsum(expected) + rng.random() * (expected != np.round(expected)).any() + 1e-9)
    drawn = np.diff(reached, prepend=0.0).astype(np.int64)
    if not drawn.any():
        drawn[np.argmax(expected)] = 1
    return drawn


def _standardise(points: np.ndarray, first: np.ndarray, lengths: np.ndarray) -> None:
    """Give runs of two or more rows mean 0 and variance 1 in each column, in place."""
    is_run = np.repeat(lengths > 1, lengths)
    runs = lengths[:, None]
    points -= np.where(is_run[:, None], np.repeat(np.add.reduceat(points, first) / runs, lengths, axis=0), 0.0)
    deviation = np.sqrt(np.add.reduceat(points * points, first) / runs)
    points /= np.where(is_run[:, None], np.repeat(np.maximum(deviation, 1e-300), lengths, axis=0), 1.0)


def _roots(spreads: np.ndarray, n_dims: int) -> np.ndarray:
    """Return what makes standard rows into rows of these covariances, (n, n_dims) deviations or (n, n_dims, n_dims)."""
    low = np.tril_indices(n_dims)
    is_diagonal = low[0] == low[1]
    if not spreads[:, ~is_diagonal].any():
        return np.sqrt(np.maximum(spreads[:, is_diagonal], 0.0))
    whole = np.zeros((len(spreads), n_dims, n_dims))
    whole[:, low[0], low[1]] = spreads
    whole[:, low[1], low[0]] = spreads
    variances, directions = np.linalg.eigh(whole)
    return (directions * np.sqrt(np.maximum(variances, 0.0))[:, None, :]).transpose(0, 2, 1)
