"""The data of a fit: points and clumps alike, as the sums that a Gaussian needs of them, made a block at a time.

Called by agent/learn/groups/. A point is a clump of one without spread. It must not know clusters.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from typing import TypeVar

import numpy as np

from stillwatch.learn.groups.drawing import draw_points

Made = TypeVar("Made")

BLOCK = 4096
# The sums of all items are kept where they take no more than this; otherwise each pass makes them again.
HELD_BYTES = 256 << 20


def n_sums(n_dims: int) -> int:
    """Return how many sums describe some points: second moments, first moments, count."""
    return n_dims * (n_dims + 1) // 2 + n_dims + 1


class Items:
    """Points and clumps by group or image.

    Parameters
    ----------
    x : ndarray of shape (n, n_dims), float64
        Points and means of clumps.
    parents : ndarray of shape (n,), int64, ascending
        The group (or image) of each item.
    n_parents : int
    counts : ndarray of shape (n,), float64, or None
        Points that each item stands for; None is one.
    spreads : ndarray of shape (n, n_dims (n_dims + 1) / 2), float64, or None
        Covariance of each clump's points about their mean, lower triangle, row by row; None is zero.
    pool : Executor or None
        Threads that share the blocks. Sums are added in the blocks' order: threads change no bit of a result.
    """

    def __init__(
        self,
        x: np.ndarray,
        parents: np.ndarray,
        n_parents: int,
        counts: np.ndarray | None = None,
        spreads: np.ndarray | None = None,
        pool: Executor | None = None,
    ):
        self.x, self.parents, self.n_parents = x, parents, n_parents
        self.counts = np.ones(len(x)) if counts is None else counts
        self.are_points = bool((self.counts == 1.0).all())
        self.spreads, self.pool = spreads, pool
        self._is_held = len(x) * n_sums(x.shape[1]) * 8 <= HELD_BYTES
        self._held: dict[tuple[int, int], np.ndarray] = {}

    def __len__(self) -> int:
        return len(self.x)

    @property
    def n_dims(self) -> int:
        return self.x.shape[1]

    def select(self, index: np.ndarray) -> "Items":
        """Return some of the items, by ascending index."""
        spreads = None if self.spreads is None else self.spreads[index]
        return Items(self.x[index], self.parents[index], self.n_parents, self.counts[index], spreads, self.pool)

    def drawn(self, n_most: int, seed: int) -> "Items":
        """Return about `n_most` points at most, drawn from the clumps' own Gaussians (`draw_points`)."""
        assert self.spreads is not None
        rng = np.random.default_rng(seed)
        points, source = draw_points(self.x, self.counts, self.spreads, self.parents, self.n_parents, n_most, rng)
        return Items(points, self.parents[source], self.n_parents, pool=self.pool)

    def per_parent(self) -> np.ndarray:
        """Return the points of each parent, (n_parents,) float64."""
        return np.bincount(self.parents, self.counts, self.n_parents)

    def each(self, work: Callable[[slice, np.ndarray], Made]) -> Iterable[Made]:
        """Return what `work` makes of every block, in order: of which items it is, and their sums (n_sums, n in it)."""
        parts = [slice(start, min(start + BLOCK, len(self))) for start in range(0, len(self), BLOCK)]
        run = map if self.pool is None else self.pool.map
        return run(lambda part: work(part, self.sums(part)), parts)

    def all_sums(self) -> np.ndarray:
        """Return the sums of all items at once, (n_sums, n): for few of them."""
        return self.sums(slice(0, len(self)))

    def sums(self, part: slice) -> np.ndarray:
        """Return the sums of a block: c (x x^T + spread) packed, c x, c."""
        key = part.start, part.stop
        if key in self._held:
            return self._held[key]
        x = np.ascontiguousarray(self.x[part].T)
        d, counts = len(x), self.counts[part]
        made = np.empty((n_sums(d), x.shape[1]))
        place = 0
        for i in range(d):
            np.multiply(x[: i + 1], x[i], out=made[place : place + i + 1])
            place += i + 1
        if self.spreads is not None:
            made[:place] += self.spreads[part].T
        made[place:-1] = x
        made[-1] = 1.0
        if not self.are_points:
            made *= counts
        if self._is_held:
            self._held[key] = made
        return made

    def mass(self, part: slice, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (parents of a block, ascending, how many points each has of each cluster (n of them, K)).

        q : ndarray of shape (K, n in the block), float64
        """
        parents = self.parents[part]
        starts = np.flatnonzero(np.r_[True, parents[1:] != parents[:-1]])
        points = q if self.are_points else q * self.counts[part]
        return parents[starts], np.add.reduceat(points, starts, axis=1).T

    def moments(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (sums of each cluster (K, n_sums), points of each parent in each cluster (n_parents, K)).

        q : ndarray of shape (K, n), float64
        """
        moments, mass = np.zeros((len(q), n_sums(self.n_dims))), np.zeros((self.n_parents, len(q)))
        for of_block, (parents, points) in self.each(
            lambda part, sums: (q[:, part] @ sums.T, self.mass(part, q[:, part]))
        ):
            moments += of_block
            mass[parents] += points
        return moments, mass
