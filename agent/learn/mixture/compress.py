"""Compression: which points may be summarised for good, within the bound on memory.

Called by agent/learn/mixture/mixture.py after model building. It must never store more values than its budget.
"""

from typing import Literal

import numpy as np

from stillwatch.kernels import mixture_clumps
from stillwatch.learn.mixture.build import ModelBuilder
from stillwatch.learn.mixture.items import Items
from stillwatch.learn.mixture.top_down import CompressReport, TopDown

COMPRESSIONS = ("geometry", "paper")
# Full clumps are dear where there are fewer for a component than a clump costs points: then which ones are kept must
# know covariances, as the paper's top-down splits do. Where they are many and small, today's components should not
# bind them, and geometry keeps more of what tomorrow's model needs. Diagonal ones are dear only where there is none
# for each component (DECISIONS.md).
DEAR = 1.0
# Sweeps over all clumps after the paper's splits, by family: those alone cannot move a point to another branch. They
# gain where clumps are few and dear; where most of the memory holds single points they empty the clumps (DECISIONS.md).
SWEEPS = {"diagonal": 0, "full": 2}
# Where all the memory would hold fewer clumps than FEW, and each costs at least COSTLY points, rows are learnt in short
# epochs, a tenth of the memory: what is folded early is folded before its components are known, and half of such a
# memory waits for the next rows. Of so few rows at once geometry loses no more than top-down splits do, in half their
# time (DECISIONS.md).
FEW, COSTLY, SHORT = 150, 4, 10
ROUNDS = 8  # in which the first centres are picked
LLOYD = 2  # updates of all centres before the rest of the budget is filled
FILLS = 4  # rounds that fill it
MOST_ROWS = 128  # items whose products with all centres are held at once
ROUNDING = 2.0**-24  # of a float32, as a share of it


def are_few_and_dear(clump_cost: int, n_dims: int, memory: int) -> bool:
    """Return whether a memory of so many points of `n_dims` values is to be learnt in short epochs."""
    return memory * n_dims < FEW * clump_cost and clump_cost >= COSTLY * n_dims


class Compressor:
    """Weighted k-means over the means of all items at once, old clumps included.

    Weights are counts, so that the loss is the spread about centres summed over all points ever summarised: for a
    diagonal covariance in nats, each item's in the expected precision of its component (half of it is what 2.11 would
    lose if clumps had no second moment), for a full one in the learner's normalised units. An item may join any group
    of the components that it is not impossible for. The first centres are one item of each component and then the
    quantiles of weight times squared distance, in a few rounds: k-means++ without chance. What the groups leave of
    the budget, as groups cheaper as points stay points, buys more centres. Only where clumps are few and dear it is
    the paper's own form (`TopDown`).

    Parameters
    ----------
    builder : ModelBuilder
        Its family gives moments. Its workspaces are used between two builds: memory is not taken twice.
    budget : int
        Values that clumps and singlets may take: MC <= (memory - E) d.
    form : {"geometry", "paper"}
    cost : int or None
        Values of one clump, where that is more than the family's.
    dear : float
        Share of what a full clump costs in points below which clumps for a component are dear; 0 where none ever are.
    sweeps : int or None
        After the paper's splits, where it is another number than the family's.
    """

    def __init__(
        self,
        builder: ModelBuilder,
        budget: int,
        form: Literal["geometry", "paper"] = "geometry",
        cost: int | None = None,
        dear: float = DEAR,
        sweeps: int | None = None,
    ):
        self.family, self.form, self.budget, self.dear = builder.family, form, budget, dear
        n_items, self.n_dims = len(builder.candidates), self.family.n_dims
        self.clump_cost = self.family.clump_cost(self.n_dims) if cost is None else cost
        sweeps = SWEEPS[self.family.covariance] if sweeps is None else sweeps
        self.top_down = TopDown(self.family, n_items, budget, builder.alpha, builder.spare, self.clump_cost, sweeps)
        centres, self.block = builder.scratch()
        # Groups can outnumber clumps: those of few points cost less.
        most = min(len(centres) // self.n_dims, 2 * (budget // self.clump_cost), n_items)
        self.centres = centres[: most * self.n_dims].reshape(most, self.n_dims)
        self.owner = np.zeros(most, np.int64)  # component of each centre
        self.sums, self.costs = np.zeros(most), np.zeros(most, np.int64)
        groups = max(most, budget // self.clump_cost + 1)  # one of top-down splits is of all that stays
        self.bounds, self.chosen = np.zeros(groups + 1, np.int64), np.zeros(most, np.int64)
        self.starts = np.zeros(self.family.capacity + 1, np.int64)
        self.label = np.zeros(n_items, np.int64)
        self.previous, self.distances = self.top_down.order, self.top_down.values
        self._room = min(budget // self.clump_cost, most)  # first centres
        needs_everyone = self.family.metric(0) is None or self._room < self.family.capacity
        self.everyone = np.zeros((n_items if needs_everyone else 0, 1), np.int32)
        self.plain = np.ones((1, self.n_dims))
        self.halves = np.zeros(most, np.float32)  # of each centre, half its squared length
        self.n_groups = 0

    def compress(self, items: Items, candidates: np.ndarray, n_components: int, magnification: float) -> CompressReport:
        """Reduce `items` to clumps and singlets within the budget.

        candidates : ndarray of shape (>= n_items, n), int32: components of the largest responsibilities, falling; -1
            is none
        magnification : float, N / T: how many points of the future each point stands for, in the paper's form
        """
        n = items.n_items
        if items.n_clumps * self.clump_cost + (n - items.n_clumps) * self.n_dims <= self.budget:
            return CompressReport()  # everything fits: nothing has to be given up
        if self.form == "paper" or self._are_dear(n_components):
            n_partitions = self.top_down.partition(items, candidates[:n, 0], n_components, magnification)
            n_clumps = self.top_down.label(items, n_partitions, self.label)
            self.n_groups = n_clumps + 1
            self._summarise(items, np.arange(n_clumps))
            return self.top_down.report
        self._first_centres(items, candidates, n_components)
        self._sort(items)
        for _ in range(LLOYD):
            self._update(items)
            self._assign(items)
        self._fill(items)
        self._summarise(items)
        return CompressReport(partitions=self.n_groups)

    def _are_dear(self, n_components: int) -> bool:
        if self.family.covariance == "diagonal":
            return self.budget < n_components * self.clump_cost
        return self.budget * self.n_dims < self.dear * n_components * self.clump_cost**2

    # Centres

    def _first_centres(self, items: Items, candidates: np.ndarray, n_components: int) -> None:
        """Pick as many centres as the budget has clumps: one in each component, then where most is left unexplained.

        Where components outnumber those centres, all items are as if of one.
        """
        n = items.n_items
        metric, seeds = None, np.argmax(items.counts[:n], keepdims=True)
        if n_components <= self._room:
            metric = self.family.metric(n_components)
            mixture_clumps.heaviest_of_each(candidates, items.counts, n, n_components, self.chosen)
            seeds = self.chosen[:n_components]
        # Without a metric of its own each item is of one component, whose metric is that of the units.
        self.candidates = self.everyone if metric is None else candidates
        self.metric = self.plain if metric is None else metric
        self.n_groups = 0
        self.label[:n] = 0
        self.distances[:n] = np.inf
        self._add(items, seeds[seeds >= 0])
        for round_ in range(ROUNDS):
            share = -(-(self._room - self.n_groups) // (ROUNDS - round_))
            if share <= 0 or not self._add_where_far(items, share):
                break

    def _add_where_far(self, items: Items, n_seeds: int) -> bool:
        picked = mixture_clumps.pick_seeds(items.counts, self.distances, items.n_items, n_seeds, self.chosen)
        if picked:
            self._add(items, self.chosen[:picked])
        return picked > 0

    def _add(self, items: Items, seeds: np.ndarray) -> None:
        """Make items centres, and move to each what is nearer to it than to its own."""
        first = self.n_groups
        self.n_groups += len(seeds)
        self.centres[first : self.n_groups] = items.x[seeds]
        self.owner[first : self.n_groups] = self.candidates[seeds, 0]
        self._move(items, first)

    def _move(self, items: Items, first: int) -> None:
        """Sort the centres from `first` by component, and move to each what is nearer to it than to its own."""
        centres, owner = self.centres[first : self.n_groups], self.owner[first : self.n_groups]
        order = np.argsort(owner, kind="stable")
        centres[:], owner[:] = centres[order], owner[order]
        if self.metric is self.plain:
            self._move_by_products(items, centres, first)
            return
        turned = self.block[: centres.size].reshape(centres.shape[::-1])
        turned[:] = centres.T
        starts = self.starts[: len(self.metric) + 1]
        starts[:] = np.searchsorted(owner, np.arange(len(starts)))
        mixture_clumps.move_nearer(
            items.x, items.n_items, self.candidates, self.metric, centres, turned, starts, first, self.sums,
            self.label, self.distances,
        )  # fmt: skip

    def _move_by_products(self, items: Items, centres: np.ndarray, first: int) -> None:
        """Let matrix products say which centres may be nearer, where all items are of one component and metric."""
        n, n_items = len(centres), items.n_items
        room = self.block.view(np.float32)  # at least half of it is left, as centres take twice the bytes in theirs
        rounded = room[: centres.size].reshape(centres.shape)
        rounded[:] = centres
        squares = np.einsum("ij,ij->i", rounded, rounded)
        # A product of d terms is wrong by d roundings of its terms' sizes, which sum to at most half of the squared
        # lengths together; 16 more are for the roundings of centres, squares and bounds.
        share = (self.n_dims + 16) * ROUNDING
        self.halves[:n] = (0.5 - share) * squares
        n_rows = min((room.size - centres.size) // n, MOST_ROWS)
        products = room[centres.size : centres.size + n_rows * n].reshape(n_rows, n)
        for low in range(0, n_items, n_rows):
            rows = items.x[low : min(low + n_rows, n_items)]
            with np.errstate(invalid="ignore"):  # of what lay in the block before: a product is written, never read
                np.matmul(rows, rounded.T, out=products[: len(rows)])
            mixture_clumps.move_nearer_by_products(
                items.x, low, len(rows), centres, products, self.halves, share, first, self.label, self.distances
            )

    def _sort(self, items: Items) -> None:
        """Sort all centres by component; items stay with theirs."""
        n = self.n_groups
        order = np.argsort(self.owner[:n], kind="stable")
        self.centres[:n], self.owner[:n] = self.centres[order], self.owner[order]
        place = self.chosen[:n]
        place[order] = np.arange(n)
        self.label[: items.n_items] = place[self.label[: items.n_items]]

    def _assign(self, items: Items) -> None:
        """Move each item to its nearest centre; where it is now is looked at first, as it rarely moves."""
        self._sort(items)
        mixture_clumps.own_distances(
            items.x, items.n_items, self.candidates, self.metric, self.label, self.centres, self.distances
        )
        self._move(items, 0)

    def _update(self, items: Items) -> None:
        norm = self.block[: self.centres.size].reshape(self.centres.shape)
        mixture_clumps.group_means(
            items.x, items.counts, items.n_items, self.candidates, self.metric, self.label, self.n_groups, norm,
            self.centres,
        )  # fmt: skip

    def _cost(self, items: Items) -> int:
        return mixture_clumps.group_costs(
            self.label, items.n_items, items.n_clumps, self.n_groups, self.n_dims, self.clump_cost, self.costs
        )

    def _fill(self, items: Items) -> None:
        """Spend what is left: new centres within what would be clumps, then a last update where the result fits."""
        n = items.n_items
        for _ in range(FILLS):
            extra = (self.budget - self._cost(items)) // self.clump_cost
            extra = min(extra, len(self.centres) - self.n_groups)
            if extra < 1:
                break
            self._update(items)
            mixture_clumps.own_distances(
                items.x, n, self.candidates, self.metric, self.label, self.centres, self.distances
            )
            self.distances[:n][self.costs[self.label[:n]] < self.clump_cost] = 0.0  # single points already
            self.previous[:n] = self.label[:n]
            before = self.n_groups
            if not self._add_where_far(items, extra):
                break
            if self._cost(items) > self.budget:
                self.label[:n] = self.previous[:n]
                self.n_groups = before
                break
        self.previous[:n] = self.label[:n]
        self._update(items)
        self._assign(items)
        if self._cost(items) > self.budget:
            self.label[:n] = self.previous[:n]
            self._cost(items)

    # The result

    def _summarise(self, items: Items, groups: np.ndarray | None = None) -> None:
        """Replace the items by the clumps of the groups, then the points that stay single, in their order.

        groups : ndarray of shape (n_clumps,), int64, rising: those that become clumps; None: all that are cheaper so
        """
        n, kept = items.n_items, self.top_down.kept
        order = self.top_down.order
        mixture_clumps.sort_by_group(self.label, n, self.n_groups, self.bounds, order)
        if groups is None:
            sizes = np.diff(self.bounds[: self.n_groups + 1])
            # A group's first item is its lowest: an old clump, if it holds any.
            has_clump = order[np.minimum(self.bounds[: self.n_groups], n - 1)] < items.n_clumps
            groups = np.flatnonzero((sizes > 0) & (has_clump | (sizes * self.n_dims > self.clump_cost)))
        is_clump = np.zeros(self.n_groups, bool)
        is_clump[groups] = True
        single = ~is_clump[self.label[:n]]
        points, counts = items.x[:n][single], items.counts[:n][single]
        self.family.write_clumps(items, order, self.bounds, groups, kept, self.distances)
        self._carry(items, order, groups, single)
        kept.n_clumps = kept.n_items = len(groups)
        items.take(kept)
        items.append(points, counts)

    def _carry(self, items: Items, order: np.ndarray, groups: np.ndarray, single: np.ndarray) -> None:
        """Keep what else a subclass's items know, before they are replaced: `groups` of k-means become clumps.

        order : ndarray of shape (n_items,), int64: items by group, as `self.bounds` delimits them
        single : ndarray of shape (n_items,), bool: which stay points
        """

    def arrays(self) -> list[np.ndarray]:
        """Return every array held, for the account of memory."""
        own: list[np.ndarray] = [self.owner, self.sums, self.costs, self.bounds, self.chosen, self.starts, self.label]
        own += [self.everyone, self.plain, self.halves]
        return [*self.top_down.arrays(), *own]
