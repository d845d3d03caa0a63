"""What both covariance families share: statistics and posteriors of components, places for trials, splits.

Used by agent/learn/mixture/families/diagonal.py and full.py. It must not know a density.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from stillwatch.kernels import mixture_common
from stillwatch.kernels.mixture_common import EVIDENCE
from stillwatch.learn.mixture.items import Items

SETTLED = 1e-3  # the largest change of a share below which a split's updates end
BLOCK = 192  # rows of a dense pass whose log joints are held at once
HELD = 48  # rounded covariances of a list that is being split, held decoded: most lists have fewer


class Moments:
    """Sufficient statistics of a set of components: count, mean, summed squares about the mean.

    Attributes
    ----------
    count : ndarray of shape (capacity,), float64
    mean : ndarray of shape (capacity, n_dims), float64
    scatter : ndarray of shape (capacity, n_packed), float64
    """

    def __init__(self, capacity: int, n_dims: int, n_packed: int):
        self.count = np.zeros(capacity)
        self.mean = np.zeros((capacity, n_dims))
        self.scatter = np.zeros((capacity, n_packed))

    def copy(self, source: int, target: int) -> None:
        """Copy one component's statistics to another place."""
        self.count[target] = self.count[source]
        self.mean[target] = self.mean[source]
        self.scatter[target] = self.scatter[source]

    def take(self, other: "Moments", n: int) -> None:
        """Become a copy of the first n places of another."""
        self.count[:n], self.mean[:n], self.scatter[:n] = other.count[:n], other.mean[:n], other.scatter[:n]

    def arrays(self) -> list[np.ndarray]:
        """Return every array held."""
        return [self.count, self.mean, self.scatter]


class Kept(NamedTuple):
    """The responsibilities that are kept, by item and, sorted, by component.

    candidates, shares : ndarrays of shape (n_items, n_kept), int32 and float64
    offsets, rows, places : ndarrays of int64, as `build_lists` in kernels/mixture_common.py writes them
    weights, logits : ndarrays of shape (n_items,), float64, workspaces
    """

    candidates: np.ndarray
    shares: np.ndarray
    offsets: np.ndarray
    rows: np.ndarray
    places: np.ndarray
    weights: np.ndarray
    logits: np.ndarray

    def listed(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the items of a component and the columns in which they have it."""
        low, high = self.offsets[k], self.offsets[k + 1]
        return self.rows[low:high], self.places[low:high]

    def weigh(self, k: int, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the items of a component and n_s q(z_s = k) of each, until the next call."""
        rows, places = self.listed(k)
        weights = self.weights[: len(rows)]
        mixture_common.list_weights(rows, places, self.shares, counts, weights)
        return rows, weights


@dataclass(frozen=True)
class SplitTask:
    """How a split is refined: soft as model building does, or hard over magnified weights as compression does.

    `after` is the mass on later sticks, `spread` the packed covariance that compression gives each point. The split
    begins at the plane halfway between the component's mean and item `seed`, in its own metric; without a seed at the
    plane across its principal component.
    """

    after: float
    alpha: float
    soft: bool
    n_updates: int
    spread: np.ndarray | None = None
    seed: int = -1


class Places:
    """Statistics and posteriors of up to `capacity` components, and three more places for trials.

    Places `child_a`, `child_b` and `merged` hold the last split's children and the last merge tried. `fits` has, by
    place: constant of E[log N], log evidence, expected log likelihood.

    A clump's second moment takes `n_second` float32 values and `n_codes` bytes.
    """

    covariance: str
    n_codes = 0

    def __init__(self, n_dims: int, n_packed: int, capacity: int, n_items: int):
        self.n_dims, self.n_packed, self.capacity = n_dims, n_packed, capacity
        self.child_a, self.child_b, self.merged = capacity, capacity + 1, capacity + 2
        self.moments = Moments(capacity + 3, n_dims, n_packed)
        self.post_mean = np.zeros((capacity + 3, n_dims))
        self.fits = np.zeros((capacity + 3, 3))
        self.share = np.zeros(n_items)
        self.sides = np.zeros((4, n_items))
        self.plane = np.zeros((2, n_dims))  # a point and the normal
        self.prior = np.zeros(3)
        self.no_spread = np.zeros(n_packed)
        self.n_second = n_packed

    def summarise(self, kept: Items, row: int, moments: Moments, place: int) -> None:
        """Write statistics as a clump."""
        kept.counts[row] = moments.count[place]
        kept.x[row] = moments.mean[place]
        kept.second[row] = moments.scatter[place] / moments.count[place]

    def clump_moments(self, items: Items) -> np.ndarray:
        """Return the second moments of all clumps, (n_clumps, n_packed)."""
        return items.second[: items.n_clumps].copy()

    def _place_plane(self, items: Items, moments: Moments, place: int, task: SplitTask) -> None:
        """Write where a seeded split begins; a normal of zeros where there is no seed."""
        self.plane[:] = 0.0
        if task.seed >= 0:
            step = items.x[task.seed] - moments.mean[place]
            self.plane[0] = moments.mean[place] + 0.5 * step
            self.plane[1] = self._normal(place, step)

    def _normal(self, place: int, step: np.ndarray) -> np.ndarray:
        """Return E[Lambda] step: what is across it is equally far in the component's metric."""
        raise NotImplementedError

    # What a family says of one place.

    def collect(
        self,
        items: Items,
        rows: np.ndarray,
        weights: np.ndarray,
        centre: np.ndarray,
        moments: Moments,
        place: int,
        spread: np.ndarray | None = None,
    ) -> None:
        """Write the statistics of weighted items to a place; sums are taken about `centre`."""
        raise NotImplementedError

    def fit(self, place: int) -> None:
        """Write the posterior and the fits of a place from its statistics."""
        raise NotImplementedError

    def log_joint(self, items: Items, rows: np.ndarray, place: int, log_weight: float, out: np.ndarray) -> None:
        """Write S_sk (2.9) of one place for some items."""
        raise NotImplementedError

    def combine(self, moments: Moments, a: int, b: int, out: Moments, place: int) -> None:
        """Write the statistics of two components together."""
        raise NotImplementedError

    def evidence(self, moments: Moments, place: int) -> float:
        """Return the log evidence of statistics."""
        raise NotImplementedError

    def distances(self, place: int, others: np.ndarray) -> np.ndarray:
        """Return the expected squared distance of other components' means from this one's."""
        raise NotImplementedError

    def metric(self, n_components: int) -> np.ndarray | None:
        """Return what compression weighs squared differences by, (n_components, n_dims); None for the units alone."""
        return None

    def split_score(self, entropy: float) -> float:
        """Return evidence of the last split's children plus the entropy of the share."""
        return float(self.fits[self.child_a, EVIDENCE] + self.fits[self.child_b, EVIDENCE] + entropy)

    # All components at once. A family whose components are cheap has a kernel for each.

    def fit_all(self, n_components: int) -> None:
        """Write the posteriors and fits of the first places from their statistics."""
        for k in range(n_components):
            self.fit(k)

    def maximise(self, items: Items, kept: Kept, n_components: int) -> None:
        """Update statistics and posteriors of all components from the responsibilities (2.8)."""
        for k in range(n_components):
            rows, weights = kept.weigh(k, items.counts)
            self.collect(items, rows, weights, self.post_mean[k], self.moments, k)
            self.fit(k)

    def log_joints(self, items: Items, kept: Kept, n_components: int, log_weight: np.ndarray) -> None:
        """Write S_sk (2.9) of the kept components to the places of their responsibilities."""
        for k in range(n_components):
            rows, places = kept.listed(k)
            logits = kept.logits[: len(rows)]
            self.log_joint(items, rows, k, log_weight[k], logits)
            mixture_common.scatter_logits(rows, places, logits, kept.shares)

    def merge_gains(self, pairs: np.ndarray, n_pairs: int, gains: np.ndarray) -> None:
        """Write what the evidence of the data gains where each pair of components is one."""
        for i in range(n_pairs):
            a, b = pairs[i]
            self.combine(self.moments, a, b, self.moments, self.merged)
            gains[i] = self.evidence(self.moments, self.merged) - self.fits[a, EVIDENCE] - self.fits[b, EVIDENCE]

    def settle_by_mass(
        self, items: Items, rows: np.ndarray, weights: np.ndarray, centre: np.ndarray, n_updates: int
    ) -> None:
        """Update the shares of a split on trial, from those given, and both children, each weighing what it holds."""
        n = len(rows)
        share, parts, logits = self.share[:n], self.sides[:2, :n], self.sides[2:, :n]
        for _ in range(n_updates):
            np.multiply(weights, share, out=parts[0])
            np.subtract(weights, parts[0], out=parts[1])
            odds = odds_of(*parts.sum(axis=1))
            if odds is None:
                return
            for side, child in enumerate((self.child_a, self.child_b)):
                self.collect(items, rows, parts[side], centre, self.moments, child)
                self.fit(child)
                self.log_joint(items, rows, child, 0.0, logits[side])
            if mixture_common.update_share(logits[0], logits[1], odds, 1, share) < SETTLED:
                return

    def write_clumps(
        self, items: Items, order: np.ndarray, bounds: np.ndarray, groups: np.ndarray, kept: Items, weights: np.ndarray
    ) -> None:
        """Write groups of items as clumps, one alone as it is; order, bounds : as `sort_by_group` writes them.

        weights : (>= the largest group,), float64, workspace
        """
        for row, group in enumerate(groups):
            rows = order[bounds[group] : bounds[group + 1]]
            alone = rows[0]
            if len(rows) == 1:
                kept.x[row], kept.counts[row] = items.x[alone], items.counts[alone]
                kept.second[row], kept.codes[row] = items.second[alone], items.codes[alone]
                continue
            own = np.take(items.counts, rows, out=weights[: len(rows)])
            self.collect(items, rows, own, items.x[alone].astype(np.float64), self.moments, self.merged)
            self.summarise(kept, row, self.moments, self.merged)

    def nearest(self, n_components: int, near: np.ndarray) -> None:
        """Write for each component the others nearest to it, (n_components, n); at least n others are there."""
        everyone = np.arange(n_components)
        for a in range(n_components):
            far = self.distances(a, everyone)
            far[a] = np.inf
            near[a] = np.argsort(far, kind="stable")[: near.shape[1]]

    def arrays(self) -> list[np.ndarray]:
        """Return every array held, for the account of memory."""
        return [
            *self.moments.arrays(),
            self.post_mean,
            self.fits,
            self.share,
            self.sides,
            self.plane,
            self.prior,
            self.no_spread,
        ]


def odds_of(one: float, other: float) -> float | None:
    """Return the logarithm of how much heavier one side of a split is; None where a side weighs next to nothing."""
    if not min(one, other) > max(one, other) * np.finfo(np.float64).tiny:
        return None
    return float(np.log(one / other))
