"""Where searches for clusters begin: all in one, as the thesis has it, and from k-means; the least free energy is kept.

Called by agent/learn/groups/grouped.py. A search that begins with one cluster ends where no single cut of a cluster
lowers F: with a few hundred rows that may be at two clusters where twenty are better (DECISIONS.md).
"""

from dataclasses import replace

import numpy as np

from stillwatch.learn.groups.items import Items
from stillwatch.learn.groups.splitting import LEAST_POINTS, Search, search_clusters
from stillwatch.learn.groups.variational import Fit, converge

# Clusters of k-means that further searches begin with, in turn.
N_CENTRES = (8, 16, 4, 24)
LLOYD_ROUNDS = 10


def best_search(items: Items, search: Search, n_init: int, seed: int) -> Fit:
    """Return the fit of least free energy of `n_init` searches, the first of which begins with one cluster."""
    best = search_clusters(items, search, np.empty(0), None, [0])
    for place in range(n_init - 1):
        n_centres = min(N_CENTRES[place % len(N_CENTRES)], search.max_clusters)
        labels = k_means(items.x, items.counts, n_centres, np.random.default_rng([seed, place]))
        found = _search_from(items, search, labels)
        if found.free_energy < best.free_energy:
            best = found
    return best


def _search_from(items: Items, search: Search, labels: np.ndarray) -> Fit:
    """Return the fit of a search that begins with hard labels, (n,) int64; clusters that empty are left out."""
    q = (labels == np.arange(labels.max() + 1)[:, None]).astype(np.float64)
    trace: list[float] = []
    while True:
        fit = converge(items, search.prior, search.context, np.empty(0), items.moments(q), tolerance=search.tolerance)
        is_kept = fit.clusters.count > LEAST_POINTS
        if is_kept.all() or not is_kept.any():
            break
        q = fit.expected.q[is_kept] / np.maximum(fit.expected.q[is_kept].sum(axis=0), np.finfo(float).tiny)
    trace += fit.free_energies
    found = search_clusters(items, search, np.empty(0), fit, [0] * len(fit.clusters))
    return replace(found, free_energies=trace + found.free_energies)


def k_means(x: np.ndarray, counts: np.ndarray, n_centres: int, rng: np.random.Generator) -> np.ndarray:
    """Return labels from 0 without gaps, (n,) int64, of at most `n_centres` clusters that k-means++ and Lloyd find.

    x : ndarray of shape (n, n_dims), float64;  counts : ndarray of shape (n,), float64: points that each row stands for
    """
    centres = x[[rng.choice(len(x), p=counts / counts.sum())]]
    nearest = ((x - centres[0]) ** 2).sum(axis=1)
    while len(centres) < n_centres and nearest.max() > 0.0:
        chances = nearest * counts
        centres = np.vstack([centres, x[rng.choice(len(x), p=chances / chances.sum())]])
        nearest = np.minimum(nearest, ((x - centres[-1]) ** 2).sum(axis=1))
    for _ in range(LLOYD_ROUNDS):
        labels = ((centres**2).sum(axis=1) - 2.0 * x @ centres.T).argmin(axis=1)
        _, labels = np.unique(labels, return_inverse=True)
        weights = np.bincount(labels, counts)
        centres = np.stack([np.bincount(labels, counts * column) for column in x.T], axis=1) / weights[:, None]
    return labels.astype(np.int64)
