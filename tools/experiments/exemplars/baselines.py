"""Peers of StreamGreedy on the same rows: FasterPAM, k-means snapped to rows, random rows, k-centre, online k-means.

Called by the exemplar experiments and their tests. Each returns rows (or centres); none knows how it is scored.
"""

import numpy as np


def random_rows(rows: np.ndarray, k: int, seed: int) -> np.ndarray:
    """Return k rows drawn without replacement."""
    return rows[np.random.default_rng(seed).choice(len(rows), min(k, len(rows)), replace=False)]


def nearest_rows(rows: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Return the row nearest to each centre, each row at most once."""
    best = np.full(len(centres), np.inf)
    at = np.zeros(len(centres), np.int64)
    for start in range(0, len(rows), 4096):
        squared = squared_distances(rows[start : start + 4096], centres)
        here = squared.argmin(axis=0)
        value = squared[here, np.arange(len(centres))]
        better = value < best
        best[better], at[better] = value[better], start + here[better]
    return rows[np.unique(at)]


def squared_distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the matrix of squared Euclidean distances, (len(a), len(b)) float64."""
    squared = (a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1) - 2.0 * (a @ b.T)
    return np.maximum(squared, 0.0)


def mean_least_distance(rows: np.ndarray, exemplars: np.ndarray, phantom: np.ndarray | None = None) -> float:
    """Return the mean squared distance of rows to their nearest exemplar, L (3.5); with a phantom, L(A + {x0})."""
    centres = exemplars if phantom is None else np.vstack([exemplars, phantom[None]])
    total = 0.0
    for start in range(0, len(rows), 4096):
        total += squared_distances(rows[start : start + 4096], centres).min(axis=1).sum()
    return total / len(rows)


def fasterpam(rows: np.ndarray, k: int, n_rows: int, seed: int) -> np.ndarray:
    """Return the medoids of FasterPAM (the `kmedoids` package) on a random subset of n_rows rows: an n x n matrix."""
    import kmedoids

    subset = random_rows(rows, n_rows, seed).astype(np.float32)
    squared = np.empty((len(subset), len(subset)), np.float32)
    norms = np.einsum("ij,ij->i", subset, subset)
    np.matmul(subset, subset.T, out=squared)
    squared *= -2.0
    squared += norms[:, None]
    squared += norms
    np.maximum(squared, 0.0, out=squared)
    found = kmedoids.fasterpam(squared, k, random_state=seed, n_cpu=1)
    return subset[found.medoids].astype(np.float64)


def kmeans_snapped(rows: np.ndarray, k: int, seed: int) -> np.ndarray:
    """Return the rows nearest to the centres of scikit-learn's KMeans (one start)."""
    from sklearn.cluster import KMeans

    return nearest_rows(rows, KMeans(k, n_init=1, random_state=seed).fit(rows).cluster_centers_)


def minibatch_kmeans_snapped(rows: np.ndarray, k: int, seed: int) -> np.ndarray:
    """Return the rows nearest to the centres of scikit-learn's MiniBatchKMeans (one start)."""
    from sklearn.cluster import MiniBatchKMeans

    return nearest_rows(rows, MiniBatchKMeans(k, n_init=1, random_state=seed).fit(rows).cluster_centers_)


class OnlineKCentre:
    """k-centre summary of a stream as ROST's summariser keeps it (Girdhar and Dudek 2012, "picks above the mean").

    A row enters when its distance to the nearest row held is above the mean of those distances among the rows held;
    a summary over k rows is then trimmed to k by farthest-first traversal, which starts from its first row.
    """

    def __init__(self, k: int):
        self.k = k
        self.rows: list[np.ndarray] = []
        self._threshold = 0.0

    def partial_fit(self, rows: np.ndarray) -> None:
        """Take rows one by one."""
        for row in rows:
            self._offer(row)

    def _offer(self, row: np.ndarray) -> None:
        if self.rows and np.sqrt(((np.array(self.rows) - row) ** 2).sum(axis=1).min()) <= self._threshold:
            return
        self.rows.append(row)
        if len(self.rows) > self.k:
            self._trim()
        if len(self.rows) > 1:
            held = np.array(self.rows)
            squared = squared_distances(held, held)
            np.fill_diagonal(squared, np.inf)
            self._threshold = float(np.sqrt(squared.min(axis=1)).mean())

    def _trim(self) -> None:
        held = np.array(self.rows)
        kept = [0]
        least = ((held - held[0]) ** 2).sum(axis=1)
        while len(kept) < self.k:
            kept.append(int(least.argmax()))
            least = np.minimum(least, ((held - held[kept[-1]]) ** 2).sum(axis=1))
        self.rows = [self.rows[i] for i in sorted(kept)]


def k_centre(rows: np.ndarray, k: int, seed: int) -> np.ndarray:
    """Return the summary that `OnlineKCentre` has after one pass. Deterministic: `seed` is not used."""
    summary = OnlineKCentre(k)
    summary.partial_fit(rows)
    return np.array(summary.rows)


class OnlineKMeans:
    """Online k-means (MacQueen; Dasgupta 2009): each row moves its nearest centre by 1 / (rows of that centre)."""

    def __init__(self, centres: np.ndarray):
        self.centres = centres.astype(np.float32)
        self._norms = np.einsum("ij,ij->i", self.centres, self.centres)
        self.counts = np.ones(len(centres), np.int64)

    def partial_fit(self, rows: np.ndarray) -> None:
        """Take rows one by one."""
        for row in rows.astype(np.float32, copy=False):
            c = int(np.argmin(self._norms - 2.0 * (self.centres @ row)))
            self.counts[c] += 1
            self.centres[c] += (row - self.centres[c]) / self.counts[c]
            self._norms[c] = self.centres[c] @ self.centres[c]
