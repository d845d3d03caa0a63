"""Model building (thesis 2.8-2.13): variational updates under clump constraints, with splits and merges.

Called by agent/learn/mixture/mixture.py once an epoch. It must not change the items, and keeps a move only if the
bound rises.
"""

from collections.abc import Callable

import numpy as np

from stillwatch.kernels import mixture_common
from stillwatch.kernels.mixture_common import EVIDENCE
from stillwatch.learn.mixture.families import Family
from stillwatch.learn.mixture.families.places import Moments, SplitTask
from stillwatch.learn.mixture.identity import Saved as SavedIdentities
from stillwatch.learn.mixture.items import Items
from stillwatch.learn.mixture.posterior import BuildReport, Posterior

SPLIT_UPDATES = 20  # restricted updates of a split on trial
NEIGHBOURS = 3  # nearest components that each component is tried to merge with
SHARED = 0.01  # of the smaller one's mass: pairs that share more are tried too
FEW = 12  # components of which all pairs are tried
RETRY_GROWTH = 1.05  # a component whose split failed is tried again when its count has changed by this factor
LEAST_GAIN = 1e-3  # nats: moves that gain less are rounding, and would be undone by the next
# A split is weighed with all other components frozen: it loses what its neighbours would gain by moving over. One that
# loses less than this share of what the new component's parameters cost is made on trial, and judged afterwards.
OPTIMISM = 1.0
# Trials, exchanges, and splits of components that have not changed, are made every so many epochs; more often in the
# first ones, where there is most to find.
TRIAL_EPOCHS, FIRST_TRIAL_EPOCHS, FIRST_EPOCHS = 8, 2, 32
EXCHANGES = 4  # rounds of exchanges in such an epoch
TRIAL_UPDATES = 5  # updates of all components that a trial has before it is judged

# Components, which were tried, who they are.
Saved = tuple[int, np.ndarray, SavedIdentities]


class ModelBuilder(Posterior):
    """The mixture's posterior, and the moves that change how many components there are.

    Attributes
    ----------
    loss : ndarray of shape (capacity,), float64
        What the last split of each component on trial in this epoch would have lost, in nats; inf where none was.
    began : callable or None
        Called with the items, and how many of them were held before, when their responsibilities under the last model
        are known: it may use the workspaces, and must leave the model as it is.
    """

    def __init__(self, family: Family, n_items: int, concentration: float, max_iterations: int):
        super().__init__(family, n_items, concentration, max_iterations)
        capacity = family.capacity
        self.loss = np.zeros(capacity)
        self.began: Callable[[Items, int], None] | None = None
        self.spare = Moments(capacity + 1, family.n_dims, family.n_packed)  # what a trial would undo
        self._overlap = np.zeros((capacity, capacity))
        self._near = np.zeros((capacity, NEIGHBOURS), np.int64)
        n_pairs = capacity * (capacity - 1) // 2
        self._pairs, self._gains = np.zeros((n_pairs, 2), np.int64), np.zeros(n_pairs)
        self._stick_parts, self._rank = np.zeros((3, capacity + 1)), np.zeros(capacity, np.int64)

    # The moves

    def try_splits(self, items: Items) -> int:
        """Try to split every component that has changed since it was last tried; return the splits kept.

        The children take over the parent's responsibilities, so that the change of the bound is exact: evidence
        of the children less the parent's, entropy of the share, and the sticks.
        """
        kept = 0
        for k in range(self.n_components):
            count = self.family.moments.count[k]
            if self.tried[k] / RETRY_GROWTH < count < self.tried[k] * RETRY_GROWTH:
                continue
            if self.n_components >= self.family.capacity:
                break
            gain, parts = self._split(items, k)
            if gain > LEAST_GAIN:
                self._keep_split(k, parts)
                kept += 1
            else:
                self.tried[k] = count
                self.loss[k] = -gain
        self.report.splits_kept += kept
        return kept

    def _split(self, items: Items, k: int, seed: int = -1) -> tuple[float, np.ndarray]:
        """Split one component into the trial places; return the gain, -inf where there is no split, and both counts.

        seed : an item that the split begins from, instead of the principal component
        """
        family = self.family
        rows, weights = self.kept.weigh(k, items.counts)
        if len(rows) < 2:
            return -np.inf, np.zeros(2)
        self.report.splits_tried += 1
        counts = self.counts()
        after = float(counts[counts < counts[k]].sum())
        task = SplitTask(after, self.alpha, True, SPLIT_UPDATES, seed=seed)
        score = family.split(items, rows, weights, (family.moments, k), task)
        parts = family.moments.count[[family.child_a, family.child_b]]
        others = np.delete(counts, k)
        gain = (
            score - family.fits[k, EVIDENCE] + self._sticks_with(np.append(others, parts)) - self._sticks_with(counts)
        )
        return (float(gain) if parts.min() > 0.0 else -np.inf), parts

    def try_births(self, items: Items) -> int:
        """Try to split off what is strange to its component, right after an update; return the splits kept.

        A principal component does not see a few rows among many. So each component with a fresh point far out is
        split from that point, and one component an epoch from what else lies outside it.
        """
        self.find_strangest(items)
        turn = self.identities.epoch % max(self.n_components, 1)
        kept = 0
        for k in range(self.n_components):
            seeds = [int(self._seeds[k, 0])] + ([int(self._seeds[k, 1])] if k == turn else [])
            for seed in seeds:
                if seed < 0 or self.n_components >= self.family.capacity:
                    continue
                gain, parts = self._split(items, k, seed)
                if gain > LEAST_GAIN:
                    self._keep_split(k, parts)
                    kept += 1
                    break
        self.report.splits_kept += kept
        return kept

    def try_optimistic_splits(self, items: Items, *, merges: bool) -> bool:
        """Make the splits that failed narrowly in this epoch, let all components settle, keep the whole if it gained.

        What the trial changed is undone where the bound has not risen.
        """
        n = self.n_components
        cost = OPTIMISM * 0.5 * (self.family.n_dims + self.family.n_packed)
        near = np.flatnonzero(self.loss[:n] < cost * np.log(np.maximum(self.counts(), 2.0)))
        room = self.family.capacity - n
        near = near[np.argsort(self.loss[near], kind="stable")][:room]
        self.loss[:n] = np.inf
        if not len(near):
            return False
        before = self.report.free_energy
        saved = self._save()
        self.report.trials += 1
        for k in np.sort(near):
            gain, parts = self._split(items, int(k))
            if gain > -np.inf:
                self._keep_split(int(k), parts)
        self._reassign(items)
        self.settle(items, TRIAL_UPDATES)
        while merges and self.try_merges(items):
            self._reassign(items)
            self.settle(items, TRIAL_UPDATES)
        if self.report.free_energy > before + LEAST_GAIN:
            self.report.trials_kept += 1
            return True
        self._undo(saved)
        self._reassign(items)
        return False

    def _save(self) -> Saved:
        n = self.n_components
        self.spare.take(self.family.moments, n)
        return n, self.tried[:n].copy(), self.identities.save(n)

    def _undo(self, saved: Saved) -> None:
        n, tried, names = saved
        self.family.moments.take(self.spare, n)
        self.n_components = n
        self.tried[:n] = tried
        self.identities.undo(names)
        self.family.fit_all(n)

    def try_exchanges(self, items: Items) -> int:
        """Where there is no room for splits, merge pairs that lose less than a split elsewhere gains; return how many.

        No component takes part in two: then gains and losses add up, but for the sticks.
        """
        if self.n_components < self.family.capacity:
            return 0
        splits = [(-self._split(items, k)[0], k) for k in range(self.n_components)]
        splits = sorted(found for found in splits if -found[0] > LEAST_GAIN)
        merges = []
        if splits:
            # What loses more than the best split gains is no use.
            merges = sorted(self._losses_of_merges(items, self._merge_pairs(items), splits[0][0]))
        touched: set[int] = set()
        made = 0
        for loss_of_split, k in splits:
            free = (merge for merge in merges if not touched & set(merge[1:]) and k not in merge[1:])
            loss, a, b = next(free, (np.inf, -1, -1))
            if k in touched or loss_of_split + loss > -LEAST_GAIN:
                continue
            _, parts = self._split(items, k)
            self._keep_split(k, parts, self._merge(a, b))
            touched |= {a, b, k}
            made += 1
        self.report.exchanges += made
        return made

    def _keep_split(self, k: int, parts: np.ndarray, free: int = -1) -> None:
        """Make the children of the last split components, the smaller one in the `free` place, or the next one."""
        family, new = self.family, self.n_components if free < 0 else free
        large, small = family.child_a, family.child_b
        if parts[1] > parts[0]:
            large, small = small, large
        family.copy(large, k)
        family.copy(small, new)
        self.tried[k] = self.tried[new] = 0.0
        self.loss[k] = self.loss[new] = np.inf
        self.identities.born(new, k)
        self.n_components += free < 0

    def _merge_pairs(self, items: Items) -> int:
        """Write pairs worth a trial: those that share items, and each component with its nearest; return how many."""
        n = self.n_components
        if n <= FEW:
            first, second = np.triu_indices(n, 1)
            self._pairs[: len(first), 0], self._pairs[: len(first), 1] = first, second
            return len(first)
        mixture_common.overlap(self.candidates, self.shares, items.counts, items.n_items, self._overlap)
        self.family.nearest(n, self._near)
        return mixture_common.choose_pairs(self._overlap, self.counts(), self._near, n, SHARED, self._pairs)

    def _add_weights_gains(self, n_pairs: int) -> None:
        """Add to the gains of pairs what the evidence of the weights gains where two components are one."""
        mixture_common.add_stick_gains(
            self.counts(), self.order(), self.alpha, self._pairs, n_pairs, self._stick_parts, self._rank, self._gains
        )

    def _join(self, a: int, b: int, into: int) -> None:
        """Make the statistics of two components those of one of them."""
        self.family.combine(self.family.moments, a, b, self.family.moments, into)
        self.family.fit(into)

    def _losses_of_merges(self, items: Items, n_pairs: int, least: float) -> list[tuple[float, int, int]]:
        """Return what the bound loses where two components are one, and these, for all pairs that gain above `least`.

        A pair whose evidence gains less is left out before its entropy is looked at, which never gains.
        """
        self.family.merge_gains(self._pairs, n_pairs, self._gains)
        self._add_weights_gains(n_pairs)
        found = []
        for i in np.flatnonzero(self._gains[:n_pairs] > least):
            a, b = int(self._pairs[i, 0]), int(self._pairs[i, 1])
            rows, places = self.kept.listed(a)
            entropy = mixture_common.merge_entropy(rows, places, b, self.candidates, self.shares, items.counts)
            found.append((-(float(self._gains[i]) + float(entropy)), a, b))
        return found

    def try_merges(self, items: Items) -> int:
        """Merge pairs whose union raises the bound, best first, no component twice; return the merges kept."""
        if self.n_components < 2:
            return 0
        n_pairs = self._merge_pairs(items)
        self.report.merges_tried += n_pairs
        gone: list[int] = []
        touched: set[int] = set()
        for loss, a, b in sorted(self._losses_of_merges(items, n_pairs, LEAST_GAIN)):
            if loss >= -LEAST_GAIN or a in touched or b in touched:
                continue
            touched.update((a, b))
            gone.append(self._merge(a, b))
        for k in sorted(gone, reverse=True):
            self._remove(k)
        self.report.merges_kept += len(gone)
        return len(gone)

    def _merge(self, a: int, b: int) -> int:
        """Join two components in the larger one's place; return the other place, which is free."""
        large, small = (a, b) if self.counts()[a] >= self.counts()[b] else (b, a)
        self._join(a, b, large)
        self.tried[large] = 0.0
        self.loss[large] = np.inf
        self.identities.died(small, large)
        return small

    def _remove(self, k: int) -> None:
        last = self.n_components - 1
        if k != last:
            self.family.copy(last, k)
            self.tried[k] = self.tried[last]
            self.loss[k] = self.loss[last]
            self.identities.move(last, k)
        self.n_components = last

    def drop_empty(self) -> int:
        """Remove components that hold no mass: their evidence is nothing, their stick is."""
        empty = [k for k in range(self.n_components) if self.counts()[k] < 1e-9]
        for k in reversed(empty[: self.n_components - 1] if len(empty) == self.n_components else empty):
            self.identities.died(k, -1)
            self._remove(k)
        return len(empty)

    # An epoch

    def build(self, items: Items, *, warm: bool, merges: bool, fresh: int = 0) -> BuildReport:
        """Improve the model on all items until no move is kept or the iterations are spent; return what was done.

        fresh : items from this one on are new
        """
        self._fresh = fresh
        self.report = BuildReport()
        self.identities.begin_epoch()
        self.loss[:] = np.inf
        if not warm or self.n_components == 0:
            self.start_from_one(items)
        self.expect_dense(items)
        if self.began is not None and 0 < fresh < items.n_items:
            self.began(items, fresh)
        births_tried, exchanges = False, 0
        epoch = self.identities.epoch
        trials = epoch == 1 or epoch % (FIRST_TRIAL_EPOCHS if epoch < FIRST_EPOCHS else TRIAL_EPOCHS) == 0
        if trials:
            self.tried[: self.n_components] = 0.0
        while True:
            self.settle(items, 3)
            moved = self.try_merges(items) if merges else 0
            if moved:
                self._reassign(items)
                self.settle(items, 1)
            split = self.try_splits(items)
            if split:
                self._reassign(items)
            if self.report.iterations >= self.max_iterations:
                break
            if moved + split:
                continue
            if not births_tried:
                births_tried = True
                if self.try_births(items):
                    self._reassign(items)
                    continue
            if trials and exchanges < EXCHANGES and self.try_exchanges(items):
                exchanges += 1
                self._reassign(items)
                continue
            if not trials or not self.try_optimistic_splits(items, merges=merges):
                break
        return self._end(items)

    def keep(self, items: Items, *, settle: bool) -> BuildReport:
        """Take the components that are there for all items, without moves; return what was done.

        settle : whether they are to fit the items, or stay what they are: learnt from more than is here
        """
        self._fresh = items.n_items
        self.report = BuildReport()
        self.identities.begin_epoch()
        self.loss[:] = np.inf
        self.expect_dense(items)
        return self._end(items) if settle else self.report

    def _end(self, items: Items) -> BuildReport:
        self.settle(items, self.max_iterations)
        self.maximise(items)
        if self.drop_empty():
            self.update_sticks()
        self.expect_dense(items)
        return self.report

    def _reassign(self, items: Items) -> None:
        self.update_sticks()
        self.expect_dense(items)

    def arrays(self) -> list[np.ndarray]:
        """Return every array held, for the account of memory."""
        pairs = [self._overlap, self._near, self._pairs, self._gains, self._stick_parts, self._rank]
        return [*super().arrays(), self.loss, *self.spare.arrays(), *pairs]
