"""Clumps looked at as parts of the normal density that each stands for: what model building may divide further.

Used by agent/learn/mixture/mixture.py before model building. It must not change what is held.
"""

import numpy as np

from stillwatch.learn.mixture.items import Items

PARTS = (1, 2, 4)
# A half of a normal density lies this many deviations off its centre; what it has less variance is the square.
HALF = np.sqrt(2.0 / np.pi)


class Parts:
    """Halves, or quarters, of diagonal clumps: all points of a clump share q(z), those of its parts need not.

    A clump's bound is that of points which all go to the same components (2.10), so that one which lies across a
    boundary costs what its points would not. It is cut in the column that is widest in the metric of its component, at
    its mean, into halves of a normal density: both together have its count, mean and variances exactly.

    Parameters
    ----------
    n_parts : {1, 2, 4}
    n_dims, n_clumps, n_items : int
        Columns; clumps held at most; parts and points at most.
    """

    def __init__(self, n_parts: int, n_dims: int, n_clumps: int, n_items: int):
        self.n_parts = n_parts
        is_used = n_parts > 1
        self.seen = Items(n_dims, n_dims, n_items if is_used else 0, n_parts * n_clumps if is_used else 0)

    def of(self, items: Items, metric: np.ndarray | None) -> Items:
        """Return the items with all clumps cut, valid until the next call; `items` itself where there is none to cut.

        metric : ndarray of shape (n_items, n_dims), float64: what an item's squared differences are weighed by; None:
            one is like another
        """
        n, n_clumps, seen = items.n_items, items.n_clumps, self.seen
        if self.n_parts == 1 or n_clumps == 0:
            return items
        mean = items.x[:n_clumps].astype(np.float64)
        variance = items.second[:n_clumps].astype(np.float64)
        count = items.counts[:n_clumps]
        metric = np.ones_like(mean) if metric is None else metric[:n_clumps]
        while len(mean) < self.n_parts * n_clumps:
            rows, widest = np.arange(len(mean)), np.argmax(variance * metric, axis=1)
            step = np.zeros_like(mean)
            step[rows, widest] = HALF * np.sqrt(variance[rows, widest])
            variance[rows, widest] *= 1.0 - HALF**2
            mean = np.concatenate([mean + step, mean - step])
            variance, metric = np.concatenate([variance, variance]), np.concatenate([metric, metric])
            count = np.concatenate([count, count]) / 2.0
        seen.n_items = seen.n_clumps = len(mean)
        seen.x[: len(mean)], seen.second[: len(mean)], seen.counts[: len(mean)] = mean, variance, count
        seen.append(items.x[n_clumps:n], items.counts[n_clumps:n])
        return seen
