"""The full family of few dimensions, over rounded clumps: what takes most of its time is a kernel each.

Made by agent/learn/mixture/families/__init__.py. It must not decide which split or merge is kept.
"""

from typing import Any

import numpy as np

from stillwatch.kernels import mixture_common, mixture_narrow
from stillwatch.kernels.mixture_common import CONSTANT
from stillwatch.kernels.mixture_narrow import COLUMNS, MASSES, N_EXTRA, STICKS
from stillwatch.learn.mixture.families.full import RoundedFamily
from stillwatch.learn.mixture.families.places import SETTLED, Kept, Moments, SplitTask
from stillwatch.learn.mixture.items import Items

# Up to so many dimensions sums over items pass faster through a kernel than through matrix products, of which each
# update of each component needs two.
NARROW = 16
ROOM = 1 << 16  # values of decoded clumps that are held for the time of a pass


class NarrowFamily(RoundedFamily):
    """What `RoundedFamily` computes, in sums of another order."""

    def __init__(self, n_dims: int, capacity: int, n_items: int):
        super().__init__(n_dims, capacity, n_items)
        clumps = min(n_items * n_dims // self.clump_cost(n_dims), ROOM // self.n_packed)
        self._held = np.zeros((clumps + 1, self.n_packed))  # the last one is a workspace
        # What many dimensions would hold.
        self._rows = self._whitened = self._rows[:0].copy()
        self._decoded = self._decoded[:0].copy()
        self._work = np.zeros((n_dims + N_EXTRA, COLUMNS))
        self._raw = np.zeros((n_dims, COLUMNS))
        self._precisions = np.zeros((capacity, self.n_packed))
        self._middle = np.zeros(n_dims + 1)
        moments, pair = self.moments, slice(self.child_a, self.child_b + 1)
        places = moments.count, moments.mean, moments.scatter, self.post_mean, self.whiten, self.fits
        self._children = tuple(array[pair] for array in places)

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
        moments.count[place] = mixture_narrow.collect(
            items.x, items.second, items.codes, items.n_clumps, rows, weights, centre, self._held[-1:],
            self._factor, self._work, moments.mean[place], moments.scatter[place],
        )  # fmt: skip
        if spread is not None:
            moments.scatter[place] += moments.count[place] * spread

    def fit(self, place: int) -> None:
        """Write the posterior and the fits of a place from its statistics."""
        moments = self.moments
        mixture_narrow.fit(
            moments.count[place], moments.mean[place], moments.scatter[place], self.prior, self._factor,
            self.whiten[place], self.post_mean[place], self.fits[place],
        )  # fmt: skip

    def log_joint(self, items: Items, rows: np.ndarray, place: int, log_weight: float, out: np.ndarray) -> None:
        """Write S_sk (2.9) of one place for some items."""
        mixture_narrow.log_joint(
            items.x, items.second, items.codes, items.n_clumps, rows, self.post_mean[place], self.whiten[place],
            self.fits[place, CONSTANT] + log_weight, self._held[-1:], self._factor, self._work, self._packed, out,
        )  # fmt: skip

    def maximise(self, items: Items, kept: Kept, n_components: int) -> None:
        """Update statistics and posteriors of all components from the responsibilities (2.8)."""
        moments = self.moments
        mixture_narrow.maximise(
            items.x, items.second, items.codes, items.n_clumps, items.counts, kept.shares, kept.offsets, kept.rows,
            kept.places, n_components, self.prior, self._held, self._factor, self._work, kept.weights,
            moments.count, moments.mean, moments.scatter, self.post_mean, self.whiten, self.fits,
        )  # fmt: skip

    def log_joints(self, items: Items, kept: Kept, n_components: int, log_weight: np.ndarray) -> None:
        """Write S_sk (2.9) of the kept components to the places of their responsibilities."""
        mixture_narrow.log_joints_kept(
            items.x, items.second, items.codes, items.n_clumps, kept.offsets, kept.rows, kept.places, n_components,
            log_weight, self.post_mean, self.whiten, self.fits, self._held, self._factor, self._work, self._packed,
            kept.logits, kept.shares,
        )  # fmt: skip

    def log_joint_block(
        self, items: Items, first: int, n_rows: int, n_components: int, log_weight: np.ndarray, out: np.ndarray
    ) -> None:
        """Write S_sk (2.9) of all components for a block of items."""
        mixture_narrow.log_joint_block(
            items.x, items.second, items.codes, items.n_clumps, first, n_rows, n_components, log_weight, self.post_mean,
            self.whiten, self.fits, self._held[-1:], self._factor, self._raw, self._work, self._precisions, out,
        )  # fmt: skip

    def merge_gains(self, pairs: np.ndarray, n_pairs: int, gains: np.ndarray) -> None:
        """Write what the evidence of the data gains where each pair of components is one."""
        moments = self.moments
        mixture_narrow.merge_gains(
            moments.count, moments.mean, moments.scatter, self.fits, self.prior, pairs, n_pairs, self._factor,
            self._packed, self._middle, gains,
        )  # fmt: skip

    def split(
        self, items: Items, rows: np.ndarray, weights: np.ndarray, parent: tuple[Moments, int], task: SplitTask
    ) -> float:
        """Split weighted items in two; `parent` is (moments, place). Return evidence + entropy of the children."""
        share = self._cut(items, rows, parent, task)
        self._settle(items, rows, weights, parent[0].mean[parent[1]], task, STICKS)
        return self.split_score(mixture_common.split_entropy(share, weights))

    def settle_by_mass(
        self, items: Items, rows: np.ndarray, weights: np.ndarray, centre: np.ndarray, n_updates: int
    ) -> None:
        """Update the shares of a split on trial, from those given, and both children, each weighing what it holds."""
        self._settle(items, rows, weights, centre, SplitTask(0.0, 0.0, True, n_updates), MASSES)

    def _settle(
        self, items: Items, rows: np.ndarray, weights: np.ndarray, centre: np.ndarray, task: SplitTask, rule: int
    ) -> None:
        """Update the shares of a split on trial, from those given, and both children; `rule` says by which weights."""
        mixture_narrow.split(
            *self.asked(items, rows, weights, centre), rule, task.after, task.alpha, task.soft, task.n_updates, SETTLED,
            self.no_spread if task.spread is None else task.spread, *self.tried(len(rows)),
        )  # fmt: skip

    def asked(self, items: Items, rows: np.ndarray, weights: np.ndarray, centre: np.ndarray) -> tuple[Any, ...]:
        """Return what kernels of splits are given of the items, and the prior."""
        return items.x, items.second, items.codes, items.n_clumps, rows, weights, centre, self.prior

    def tried(self, n: int) -> tuple[np.ndarray, ...]:
        """Return workspaces, both children, and the shares of n items: what kernels of splits write."""
        spaces = self._held, self._factor, self._work, self._packed
        return *spaces, *self._children, self.sides, self.share[:n]

    def write_clumps(
        self, items: Items, order: np.ndarray, bounds: np.ndarray, groups: np.ndarray, kept: Items, weights: np.ndarray
    ) -> None:
        """Write groups of items as clumps, one alone as it is; order, bounds : as `sort_by_group` writes them.

        weights : (>= the largest group,), float64, workspace
        """
        mixture_narrow.summarise(
            items.x, items.second, items.codes, items.n_clumps, items.counts, order, bounds, groups, len(groups),
            self._held[-1:], self._factor, self._work, weights, self._first, self._middle[:-1],
            self._packed, kept.x, kept.counts, kept.second, kept.codes,
        )  # fmt: skip

    def arrays(self) -> list[np.ndarray]:
        return [*super().arrays(), self._work, self._raw, self._precisions, self._middle]
