"""From what a caller gives to `Items`: rows or clumps are checked, centred, sorted by group, and told back in order.

Called by agent/learn/groups/grouped.py and simultaneous.py. It must not change what it is given.
"""

from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from stillwatch.learn.base import check_rows
from stillwatch.learn.groups.items import Items


@dataclass(frozen=True)
class Data:
    """Checked data of a fit.

    Attributes
    ----------
    x : ndarray of shape (n, n_dims), float64
    counts : ndarray of shape (n,), float64
    spreads : ndarray of shape (n, n_dims (n_dims + 1) / 2), float64, or None
    """

    x: np.ndarray
    counts: np.ndarray
    spreads: np.ndarray | None

    @classmethod
    def check(cls, X: Any, counts: Any, covariances: Any, who: str, n_features: int | None = None) -> "Data":
        """Return the data, or raise ValueError that names what is wrong, where, and what it should be."""
        x = check_rows(X, n_features, who).astype(np.float64)
        if not len(x):
            raise ValueError(f"X: 0 sample(s) (shape={x.shape}) while a minimum of 1 is required.")
        if counts is None:
            weights = np.ones(len(x))
        else:
            weights = np.array(counts, np.float64)
            if weights.shape != (len(x),):
                raise ValueError(f"counts: shape {weights.shape} is not ({len(x)},), one for each row of X")
            if not (np.isfinite(weights).all() and (weights > 0.0).all()):
                raise ValueError(f"counts: row {int(np.argmin(weights > 0.0))} is not a number above 0")
        return cls(x, weights, None if covariances is None else _packed(covariances, *x.shape))

    @property
    def mean(self) -> np.ndarray:
        return (self.counts @ self.x) / self.counts.sum()

    def widest_variance(self) -> float:
        """Return the largest eigenvalue of the covariance of all points, above 0 even where they are all the same."""
        n, centred = self.counts.sum(), self.x - self.mean
        square = (centred * self.counts[:, None]).T @ centred
        if self.spreads is not None:
            low = np.tril_indices(len(square))
            within = np.zeros_like(square)
            within[low] = self.counts @ self.spreads
            square += within + np.tril(within, -1).T
        largest = float(np.linalg.eigvalsh(square)[-1]) / max(n - 1.0, 1.0)
        size = float(np.abs(self.x).max())
        return max(largest, (1e-6 * size) ** 2, 1e-12)

    def items(self, parents: np.ndarray, n_parents: int, order: np.ndarray, pool: Executor | None) -> Items:
        """Return the centred data sorted by parent; `order` is a stable argsort of `parents`."""
        spreads = None if self.spreads is None else self.spreads[order]
        return Items(self.x[order] - self.mean, parents[order], n_parents, self.counts[order], spreads, pool)


def _packed(covariances: Any, n: int, n_dims: int) -> np.ndarray:
    """Return covariances as packed lower triangles of shape (n, n_dims (n_dims + 1) / 2); missing rows are points."""
    given = np.asarray(covariances, np.float64)
    n_packed = n_dims * (n_dims + 1) // 2
    low = np.tril_indices(n_dims)
    shapes = {(n_dims, n_dims), (n_packed,), (n_dims,)}
    if given.ndim not in (2, 3) or len(given) > n or given.shape[1:] not in shapes:
        raise ValueError(
            f"covariances: shape {given.shape} is not (m, {n_dims}, {n_dims}), (m, {n_packed}) or (m, {n_dims}) with "
            f"m at most {n}, the rows of X"
        )
    if not np.isfinite(given).all():
        raise ValueError("covariances: they hold NaN or infinity")
    packed = np.zeros((n, n_packed))
    if given.ndim == 3:
        packed[: len(given)] = given[:, low[0], low[1]]
    elif given.shape[1] == n_packed:
        packed[: len(given)] = given
    else:
        packed[: len(given), np.flatnonzero(low[0] == low[1])] = given
    if (packed[:, low[0] == low[1]] < 0.0).any():
        raise ValueError("covariances: a variance is below 0")
    return packed


def group_index(groups: Any, n: int, what: str = "groups") -> tuple[np.ndarray, np.ndarray]:
    """Return (names of the groups, ascending; the group of each row, (n,) int64); None is one group named 0."""
    if groups is None:
        return np.zeros(1, np.int64), np.zeros(n, np.int64)
    given = np.asarray(groups)
    if given.shape != (n,):
        raise ValueError(f"{what}: shape {given.shape} is not ({n},), one for each row")
    names, index = np.unique(given, return_inverse=True)
    return names, index.astype(np.int64)


@contextmanager
def threads(n_jobs: int) -> Iterator[Executor | None]:
    """Yield what shares blocks among `n_jobs` threads, each with a BLAS of one thread; None for one."""
    with threadpool_limits(1, user_api="blas"):
        if n_jobs == 1:
            yield None
        else:
            with ThreadPoolExecutor(n_jobs) as pool:
                yield pool
