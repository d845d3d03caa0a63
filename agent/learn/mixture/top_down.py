"""The paper's compression (thesis 2.14-2.17, algorithm 1): top-down splits of the components, best gain first.

Called by agent/learn/mixture/compress.py where clumps are dear. It must never store more values than its budget.
"""

import heapq
from dataclasses import dataclass

import numpy as np

from stillwatch.kernels import mixture_common
from stillwatch.learn.mixture.families import Family
from stillwatch.learn.mixture.families.places import Moments, SplitTask
from stillwatch.learn.mixture.items import Items

SPLIT_UPDATES = 4
# The future is not made of copies of the past, as 2.14 has it: each point stands for points spread about it with this
# many times the covariance that the prior expects of a component. Without it magnified points have no width of their
# own, groups with fewer points than dimensions gain without bound, and memory is spent on peeling single points off.
SPREAD = 4.0


@dataclass
class CompressReport:
    """What one epoch's compression did."""

    partitions: int = 0
    splits_tried: int = 0
    splits_kept: int = 0
    forced_merges: int = 0  # partitions joined because the components alone needed more than the budget


class TopDown:
    """Top-down splits of the hard partition, best change of the magnified free energy first.

    Two speed measures are the thesis's own: clumps are assigned hard, and a split is refined within its partition
    only, so that its evaluation stays valid, and is kept, until it is chosen. Under hard assignments the magnified
    free energy (2.17) at its optimum is a sum over partitions: log evidence of the magnified statistics, and of the
    sticks; the children take their parent's place in the stick order.

    Parameters
    ----------
    family : Family
        Gives moments, evidence and splits; only its trial places are written.
    n_items : int
        Most items there can be.
    budget : int
        Values that clumps and singlets may take: MC <= (memory - E) d.
    concentration : float
    parents : Moments
        Room for one component more than the family's capacity; written.
    cost, sweeps : int
        Values of one clump; sweeps over all clumps at the end.
    """

    def __init__(
        self, family: Family, n_items: int, budget: int, concentration: float, parents: Moments, cost: int, sweeps: int
    ):
        self.family = family
        self.budget = budget
        self.alpha = concentration
        self.n_dims = family.n_dims
        self.clump_cost, self.sweeps = cost, sweeps
        most = max(budget // self.clump_cost, 1)
        # The new clumps, while the old ones are still read.
        self.kept = Items(family.n_dims, family.n_second, most, most, family.n_codes)
        self.order = np.zeros(n_items, np.int64)
        self.weights = np.zeros(n_items)
        self.bounds = np.zeros((n_items + 1, 3), np.int64)  # low, middle, high in `order`
        self.after = np.zeros(n_items + 1)
        self.spread = family.isotropic(SPREAD)
        self.values = np.zeros(n_items)
        self.parents = parents
        self.report = CompressReport()

    def partition(self, items: Items, assignment: np.ndarray, n_components: int, magnification: float) -> int:
        """Sort the items into what clumps and singlets within the budget may hold; return the number of partitions.

        assignment : ndarray of shape (n_items,), integer: component of the largest responsibility
        magnification : float, N / T: how many points of the future each point stands for
        """
        self.report = CompressReport()
        groups = self._first_partition(items, assignment, n_components)
        groups = self._force_into_budget(items, groups, magnification)
        self._lay_out(items, groups, magnification)
        cost = sum(self._cost(items, p) for p in range(len(groups)))
        n_partitions = self._split_down(items, len(groups), cost, magnification)
        self.report.partitions = self._sweep(items, n_partitions)
        return self.report.partitions

    def label(self, items: Items, n_partitions: int, out: np.ndarray) -> int:
        """Write the number of the clump that each item becomes part of, theirs for what stays; return how many clumps.

        out : ndarray of shape (>= n_items,), int64
        """
        n_clumps = 0
        out[: items.n_items] = -1
        for p in range(n_partitions):
            rows = self._rows(p)
            if self._is_clump(items, rows) and (len(rows) > 1 or rows[0] < items.n_clumps):
                out[rows] = n_clumps
                n_clumps += 1
        out[: items.n_items][out[: items.n_items] < 0] = n_clumps
        return n_clumps

    def _first_partition(self, items: Items, assignment: np.ndarray, n_components: int) -> list[np.ndarray]:
        """Return the items of each component under hard assignment, largest first, empty ones left out."""
        groups = [np.flatnonzero(assignment[: items.n_items] == k) for k in range(n_components)]
        return self._by_size(items, [rows for rows in groups if len(rows)])

    @staticmethod
    def _by_size(items: Items, groups: list[np.ndarray]) -> list[np.ndarray]:
        return sorted(groups, key=lambda group: -items.counts[group].sum())

    def _group_cost(self, items: Items, rows: np.ndarray) -> int:
        """Return the values a group takes: its points where that is no more than a clump, else a clump."""
        return self.clump_cost if self._is_clump(items, rows) else len(rows) * self.n_dims

    def _is_clump(self, items: Items, rows: np.ndarray) -> bool:
        return bool(rows.min() < items.n_clumps or len(rows) * self.n_dims > self.clump_cost)

    def _force_into_budget(self, items: Items, groups: list[np.ndarray], magnification: float) -> list[np.ndarray]:
        """Join groups by least loss of the magnified free energy until the groups alone fit the budget."""
        costs = [self._group_cost(items, rows) for rows in groups]
        if sum(costs) <= self.budget:
            return groups
        self._measure_groups(items, groups, magnification)
        active = list(range(len(groups)))
        evidence = {g: self.family.evidence(self.parents, g) for g in active}
        losses = {(a, b): self._loss(evidence, a, b) for i, a in enumerate(active) for b in active[i + 1 :]}
        while sum(costs[g] for g in active) > self.budget and len(active) > 1:
            a, b = min(losses, key=lambda pair: (losses[pair], pair))
            self.family.combine(self.parents, a, b, self.parents, a)
            groups[a] = np.sort(np.concatenate([groups[a], groups[b]]))
            costs[a] = self._group_cost(items, groups[a])
            evidence[a] = self.family.evidence(self.parents, a)
            active.remove(b)
            losses = {pair: loss for pair, loss in losses.items() if a not in pair and b not in pair}
            losses.update({(min(a, g), max(a, g)): self._loss(evidence, a, g) for g in active if g != a})
            self.report.forced_merges += 1
        return self._by_size(items, [groups[g] for g in active])

    def _measure_groups(self, items: Items, groups: list[np.ndarray], magnification: float) -> None:
        for g, rows in enumerate(groups):
            centre, weights = items.x[rows[0]].astype(np.float64), items.counts[rows] * magnification
            self.family.collect(items, rows, weights, centre, self.parents, g, self.spread)

    def _loss(self, evidence: dict[int, float], a: int, b: int) -> float:
        """Return what joining two groups costs, with their sticks taken as neighbours and last."""
        last = self.family.capacity
        self.family.combine(self.parents, a, b, self.parents, last)
        joined = self.family.evidence(self.parents, last)
        na, nb = self.parents.count[a], self.parents.count[b]
        sticks = self._neighbours(na, nb, 0.0) - mixture_common.log_stick(na + nb, 0.0, self.alpha)
        return evidence[a] + evidence[b] + sticks - joined

    def _neighbours(self, one: float, two: float, after: float) -> float:
        large, small = max(one, two), min(one, two)
        return mixture_common.log_stick(large, after + small, self.alpha) + mixture_common.log_stick(
            small, after, self.alpha
        )

    def _lay_out(self, items: Items, groups: list[np.ndarray], magnification: float) -> None:
        """Write the groups one after the other into `order`, with the mass on later sticks."""
        np.multiply(items.counts[: items.n_items], magnification, out=self.weights[: items.n_items])
        low = 0
        for p, rows in enumerate(groups):
            self.order[low : low + len(rows)] = rows
            self.bounds[p] = low, low, low + len(rows)
            low += len(rows)
        after = 0.0
        for p in range(len(groups) - 1, -1, -1):
            self.after[p] = after
            after += self.weights[groups[p]].sum()

    def _rows(self, p: int) -> np.ndarray:
        return self.order[self.bounds[p, 0] : self.bounds[p, 2]]

    def _cost(self, items: Items, p: int) -> int:
        return self._group_cost(items, self._rows(p))

    def _evaluate(self, items: Items, p: int) -> float | None:
        """Refine a split of partition p, sort its rows by child, return the change of F_C; None where there is none."""
        rows = self._rows(p)
        if len(rows) < 2 or not self._is_clump(items, rows):
            return None
        family, place = self.family, self.family.capacity
        weights = self.weights[rows]
        family.collect(items, rows, weights, items.x[rows[0]].astype(np.float64), self.parents, place, self.spread)
        before = family.evidence(self.parents, place)
        self.report.splits_tried += 1
        # Where the refinement leaves one side empty, the cut across the principal component itself stands.
        for n_updates in (SPLIT_UPDATES, 0):
            task = SplitTask(self.after[p], self.alpha, False, n_updates, self.spread)
            score = family.split(items, rows, weights, (self.parents, place), task)
            first = family.share[: len(rows)] > 0.5
            n_first = int(np.count_nonzero(first))
            if 0 < n_first < len(rows):
                break
        else:
            return None
        self.bounds[p, 1] = self.bounds[p, 0] + n_first
        rows[:] = np.concatenate([rows[first], rows[~first]])
        one, two = weights[first].sum(), weights[~first].sum()
        sticks = self._neighbours(one, two, self.after[p]) - mixture_common.log_stick(
            one + two, self.after[p], self.alpha
        )
        return score - before + sticks

    def _split_down(self, items: Items, n_partitions: int, cost: int, magnification: float) -> int:
        """Make the best split that still fits, again and again; return the number of partitions."""
        queue: list[tuple[float, int]] = []
        for p in range(n_partitions):
            self._queue(items, queue, p)
        while queue and cost + 1 <= self.budget:
            _, p = heapq.heappop(queue)
            low, middle, high = (int(b) for b in self.bounds[p])
            first = self._group_cost(items, self.order[low:middle])
            second = self._group_cost(items, self.order[middle:high])
            added = first + second - self._cost(items, p)
            if cost + added > self.budget:
                continue
            cost += added
            new = n_partitions
            n_partitions += 1
            self.report.splits_kept += 1
            one = self.weights[self.order[low:middle]].sum()
            two = self.weights[self.order[middle:high]].sum()
            after = self.after[p]
            self.after[p] = after + two if one >= two else after
            self.after[new] = after if one >= two else after + one
            self.bounds[p] = low, low, middle
            self.bounds[new] = middle, middle, high
            if cost + self.n_dims <= self.budget or self.clump_cost % self.n_dims:
                self._queue(items, queue, p)
                self._queue(items, queue, new)
        return n_partitions

    def _queue(self, items: Items, queue: list[tuple[float, int]], p: int) -> None:
        gain = self._evaluate(items, p)
        if gain is not None:
            heapq.heappush(queue, (-gain, p))

    def _sweep(self, items: Items, n_partitions: int) -> int:
        """Reassign the points among the items of clumps to their best clump (2.16, hard); return the partitions left.

        Old clumps stay: magnified, their own group fits them best. Groups kept as single points stay as they are, so
        that the cost can only fall.
        """
        clumps = [p for p in range(n_partitions) if self._is_clump(items, self._rows(p))]
        rest = [self._rows(p).copy() for p in range(n_partitions) if not self._is_clump(items, self._rows(p))]
        if len(clumps) < 2:
            return n_partitions
        members = np.concatenate([self._rows(p) for p in clumps])
        label = np.repeat(np.arange(len(clumps)), [self.bounds[p, 2] - self.bounds[p, 0] for p in clumps])
        order = np.argsort(members, kind="stable")
        members, label = members[order], label[order]
        for _ in range(self.sweeps):
            best = self._best_clump(items, members, label, len(clumps))
            if np.array_equal(best, label):
                break
            label = best
        groups = [members[label == j] for j in range(len(clumps))]
        groups = [rows for rows in groups if len(rows)] + rest
        low = 0
        for p, rows in enumerate(groups):
            self.order[low : low + len(rows)] = rows
            self.bounds[p] = low, low, low + len(rows)
            low += len(rows)
        return len(groups)

    def _best_clump(self, items: Items, members: np.ndarray, label: np.ndarray, n_clumps: int) -> np.ndarray:
        """Return the clump of largest S_sk for each single point, one clump's posterior at a time in a trial place."""
        family, place = self.family, self.family.child_a
        mass = np.bincount(label, self.weights[members], n_clumps)
        log_weight, weight = np.zeros(n_clumps), np.zeros(n_clumps)
        mixture_common.sticks_expectation(mass, np.argsort(-mass, kind="stable"), self.alpha, log_weight, weight)
        old = int(np.searchsorted(members, items.n_clumps))
        points, n = members[old:], len(members) - old
        best, found = np.full(n, -np.inf), np.zeros(n, np.int64)
        for j in range(n_clumps):
            rows = members[label == j]
            if not len(rows):
                continue
            centre = items.x[rows[0]].astype(np.float64)
            family.collect(items, rows, self.weights[rows], centre, family.moments, place, self.spread)
            family.fit(place)
            wide = family.spread_cost(place, self.spread)
            family.log_joint(items, points, place, log_weight[j] - wide, self.values[:n])
            closer = self.values[:n] > best
            best[closer], found[closer] = self.values[:n][closer], j
        return np.concatenate([label[:old], found])

    def arrays(self) -> list[np.ndarray]:
        """Return every array held, for the account of memory."""
        own = [self.order, self.weights, self.bounds, self.after, self.spread, self.values]
        return [*self.kept.arrays(), *own]
