"""The diagonal family: a Normal-gamma posterior per dimension, over points and clumps.

Made by agent/learn/mixture/families/__init__.py. It must not decide which split or merge is kept.
"""

import numpy as np

from stillwatch.kernels import mixture_clumps, mixture_diagonal
from stillwatch.kernels.mixture_common import CONSTANT, COUNT, EVIDENCE, SCALE, SHAPE
from stillwatch.kernels.mixture_diagonal import AFTER, ALPHA, MEAN, N_STATS, POST_MEAN, PRECISION, SCATTER
from stillwatch.learn.mixture.families.places import Kept, Moments, Places, SplitTask
from stillwatch.learn.mixture.items import Items


class DiagonalFamily(Places):
    """Normal-gamma prior per dimension. A clump is 2 d + 1 values, so three points are the fewest it pays for."""

    covariance = "diagonal"

    def __init__(self, n_dims: int, capacity: int, n_items: int):
        super().__init__(n_dims, n_dims, capacity, n_items)
        self.precision = np.zeros((capacity + 3, n_dims))
        self._stats = np.zeros((2 * N_STATS, n_dims))
        self._fits = np.zeros((2, 4))
        self._settings = np.zeros(5)
        self._distances = np.zeros(capacity)

    @staticmethod
    def clump_cost(n_dims: int) -> int:
        """Values of one clump: count, mean, variance."""
        return 2 * n_dims + 1

    def isotropic(self, times: float) -> np.ndarray:
        """Return `times` the variances that the prior expects of a component."""
        return np.full(self.n_dims, times * self.prior[SCALE] / self.prior[SHAPE])

    def spread_cost(self, place: int, spread: np.ndarray) -> float:
        """Return tr(E[Lambda] spread) / 2: what the width of a point takes from its expected log density."""
        return 0.5 * float(self.precision[place] @ spread)

    def metric(self, n_components: int) -> np.ndarray:
        """Return E[Lambda] of each component: what moving a point to a clump's mean costs, in nats, twice over."""
        return self.precision[:n_components]

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
        moments.count[place] = mixture_diagonal.moments(
            items.x,
            items.second,
            items.n_clumps,
            rows,
            weights,
            centre,
            self.no_spread if spread is None else spread,
            moments.mean[place],
            moments.scatter[place],
        )

    def rescale(self, items: Items, n_components: int, ratio: np.ndarray) -> None:
        """Bring second moments and statistics to units that are `ratio` of the present ones, per column."""
        items.second[: items.n_clumps] *= ratio**2
        self.moments.scatter[:n_components] *= ratio**2

    def fit(self, place: int) -> None:
        """Write the posterior and the fits of a place from its statistics."""
        moments = self.moments
        mixture_diagonal.posterior(
            moments.count[place],
            moments.mean[place],
            moments.scatter[place],
            self.prior,
            self.post_mean[place],
            self.precision[place],
            self.fits[place],
        )

    def fit_all(self, n_components: int) -> None:
        """Write the posteriors and fits of the first places from their statistics."""
        moments = self.moments
        mixture_diagonal.posteriors(
            moments.count, moments.mean, moments.scatter, n_components, self.prior, self.post_mean, self.precision,
            self.fits,
        )  # fmt: skip

    def evidence(self, moments: Moments, place: int) -> float:
        """Return the log evidence of statistics; uses the trial place `merged`."""
        mixture_diagonal.posterior(
            moments.count[place],
            moments.mean[place],
            moments.scatter[place],
            self.prior,
            self.post_mean[self.merged],
            self.precision[self.merged],
            self.fits[self.merged],
        )
        return float(self.fits[self.merged, EVIDENCE])

    def combine(self, moments: Moments, a: int, b: int, out: Moments, place: int) -> None:
        """Write the statistics of two components together."""
        na, nb = moments.count[a], moments.count[b]
        total = na + nb
        step = moments.mean[b] - moments.mean[a]
        part = nb / total if total > 0.0 else 0.0
        scatter = moments.scatter[a] + moments.scatter[b] + na * part * step * step
        out.mean[place] = moments.mean[a] + part * step
        out.scatter[place] = scatter
        out.count[place] = total

    def copy(self, source: int, target: int) -> None:
        """Copy statistics and posterior of a place."""
        self.moments.copy(source, target)
        self.post_mean[target] = self.post_mean[source]
        self.precision[target] = self.precision[source]
        self.fits[target] = self.fits[source]

    def log_joint(self, items: Items, rows: np.ndarray, place: int, log_weight: float, out: np.ndarray) -> None:
        """Write S_sk (2.9) of one place for some items."""
        mixture_diagonal.log_joint_list(
            items.x,
            items.second,
            items.n_clumps,
            rows,
            self.fits[place, CONSTANT] + log_weight,
            self.post_mean[place],
            self.precision[place],
            out,
        )

    def maximise(self, items: Items, kept: Kept, n_components: int) -> None:
        """Update statistics and posteriors of all components from the responsibilities (2.8)."""
        moments = self.moments
        mixture_diagonal.maximise(
            items.x, items.second, items.n_clumps, items.counts, kept.shares, kept.offsets, kept.rows, kept.places,
            n_components, self.prior, self.no_spread, kept.weights, moments.count, moments.mean, moments.scatter,
            self.post_mean, self.precision, self.fits,
        )  # fmt: skip

    def log_joints(self, items: Items, kept: Kept, n_components: int, log_weight: np.ndarray) -> None:
        """Write S_sk (2.9) of the kept components to the places of their responsibilities."""
        constant = np.ascontiguousarray(self.fits[: self.capacity, CONSTANT]) + log_weight
        mixture_diagonal.log_joints_kept(
            items.x, items.second, items.n_clumps, items.n_items, kept.candidates, constant, self.post_mean,
            self.precision, kept.shares,
        )  # fmt: skip

    def merge_gains(self, pairs: np.ndarray, n_pairs: int, gains: np.ndarray) -> None:
        """Write what the evidence of the data gains where each pair of components is one."""
        moments = self.moments
        mixture_diagonal.merge_gains(
            moments.count, moments.mean, moments.scatter, self.fits, self.prior, pairs, n_pairs, gains
        )

    def nearest(self, n_components: int, near: np.ndarray) -> None:
        """Write for each component the others nearest to it, (n_components, n)."""
        mixture_diagonal.nearest(self.post_mean, self.precision, n_components, self._distances, near)

    def log_joint_block(
        self, items: Items, first: int, n_rows: int, n_components: int, log_weight: np.ndarray, out: np.ndarray
    ) -> None:
        """Write S_sk (2.9) of all components for a block of items."""
        constant = np.ascontiguousarray(self.fits[: self.capacity, CONSTANT]) + log_weight
        mixture_diagonal.log_joint_block(
            items.x,
            items.second,
            items.n_clumps,
            first,
            n_rows,
            n_components,
            constant,
            self.post_mean,
            self.precision,
            out,
        )

    def split(
        self, items: Items, rows: np.ndarray, weights: np.ndarray, parent: tuple[Moments, int], task: SplitTask
    ) -> float:
        """Split weighted items in two; `parent` is (moments, place). Return evidence + entropy of the children."""
        moments, place = parent
        self._place_plane(items, moments, place, task)
        self._settings[:ALPHA] = self.prior
        self._settings[ALPHA], self._settings[AFTER] = task.alpha, task.after
        spread = self.no_spread if task.spread is None else task.spread
        entropy_and_evidence = mixture_diagonal.split(
            items.x,
            items.second,
            items.n_clumps,
            rows,
            weights,
            moments.mean[place],
            moments.scatter[place],
            self._settings,
            spread,
            self.plane,
            task.soft,
            task.n_updates,
            self._stats,
            self._fits,
            self.sides,
            self.share[: len(rows)],
        )
        for child, side in ((self.child_a, 0), (self.child_b, 1)):
            stats = self._stats[side * N_STATS :]
            self.moments.count[child] = self._fits[side, COUNT]
            self.fits[child] = self._fits[side, :COUNT]
            self.moments.mean[child] = stats[MEAN]
            self.moments.scatter[child] = stats[SCATTER]
            self.post_mean[child] = stats[POST_MEAN]
            self.precision[child] = stats[PRECISION]
        return entropy_and_evidence

    def write_clumps(
        self, items: Items, order: np.ndarray, bounds: np.ndarray, groups: np.ndarray, kept: Items, weights: np.ndarray
    ) -> None:
        """Write groups of items as clumps, one alone as it is; order, bounds : as `sort_by_group` writes them."""
        moments, last = self.moments, self.merged
        mixture_clumps.summarise_diagonal(
            items.x, items.second, items.n_clumps, items.counts, order, bounds, groups, len(groups), kept.x,
            kept.counts, kept.second, moments.mean[last], moments.scatter[last],
        )  # fmt: skip

    def _normal(self, place: int, step: np.ndarray) -> np.ndarray:
        return self.precision[place] * step

    def distances(self, place: int, others: np.ndarray) -> np.ndarray:
        """Return the expected squared distance of other components' means from this one's."""
        step = self.post_mean[others] - self.post_mean[place]
        return (step * step) @ self.precision[place]

    def arrays(self) -> list[np.ndarray]:
        return [*super().arrays(), self.precision, self._stats, self._fits, self._settings, self._distances]
