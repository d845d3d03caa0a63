"""The data a mixture still holds: clumps (count, mean, second moment), singlets and the epoch, in fixed arrays.

Filled by agent/learn/mixture/mixture.py, read by model building and compression. It must not know a model, nor
allocate later.
"""

import numpy as np


class Items:
    """Clumps first, then single points: what model building sees as data (thesis 2.10).

    Attributes
    ----------
    x : ndarray of shape (capacity, n_dims), float32
        Mean of each clump, or the point, in the learner's normalised units.
    counts : ndarray of shape (capacity,), float64
        Points an item stands for.
    second : ndarray of shape (clump_capacity, n_second), float32
        Average of (x - mean)(x - mean)^T over a clump's members: variances, or the packed lower triangle, or what
        kernels/mixture_rounded.py makes of it.
    codes : ndarray of shape (clump_capacity, n_codes), int8
        Rounded correlations; no columns where second moments are exact.
    n_clumps, n_items : int
        Clumps in use, and items in use: singlets and the epoch lie between them.
    """

    def __init__(self, n_dims: int, n_second: int, capacity: int, clump_capacity: int, n_codes: int = 0):
        self.x = np.zeros((capacity, n_dims), np.float32)
        self.counts = np.zeros(capacity)
        self.second = np.zeros((clump_capacity, n_second), np.float32)
        self.codes = np.zeros((clump_capacity, n_codes), np.int8)
        self.n_clumps = 0
        self.n_items = 0

    @property
    def total(self) -> float:
        """Points summarised or held: T of the paper."""
        return float(self.counts[: self.n_items].sum())

    def append(self, points: np.ndarray, counts: np.ndarray | float = 1.0) -> None:
        """Add normalised points, of shape (n, n_dims), and what they count; the owner's sizes guarantee the room."""
        end = self.n_items + len(points)
        self.x[self.n_items : end] = points
        self.counts[self.n_items : end] = counts
        self.n_items = end

    def take(self, other: "Items") -> None:
        """Become a copy of `other`'s used part."""
        n, c = other.n_items, other.n_clumps
        self.x[:n] = other.x[:n]
        self.counts[:n] = other.counts[:n]
        self.second[:c] = other.second[:c]
        self.codes[:c] = other.codes[:c]
        self.n_items, self.n_clumps = n, c

    def arrays(self) -> list[np.ndarray]:
        """Return every array held, for the account of memory."""
        return [self.x, self.counts, self.second, self.codes]
