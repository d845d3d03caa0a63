"""Model building (thesis 2.8-2.13): variational updates under clump constraints, with splits and merges.

Called by agent/learn/mixture/mixture.py once an epoch. It must not change the items, and keeps a move only if the
bound rises.
"""

import numpy as np

from stillwatch.kernels import mixture_common
from stillwatch.learn.mixture.families import Family
from stillwatch.learn.mixture.families.places import BLOCK, CONSTANT, EVIDENCE, EXPECTED, Moments, SplitTask
from stillwatch.learn.mixture.identity import Identities
from stillwatch.learn.mixture.items import Items
from stillwatch.learn.mixture.report import BuildReport

KEPT = 6  # responsibilities kept an item
SPLIT_UPDATES = 20  # restricted updates of a split on trial
TOLERANCE = 1e-4  # nats a point: the gain of an update below which the updates stop
NEIGHBOURS = 3  # nearest components that each component is tried to merge with
RETRY_GROWTH = 1.05  # a component whose split failed is tried again when its count has changed by this factor
LEAST_GAIN = 1e-3  # nats: moves that gain less are rounding, and would be undone by the next
# A split is weighed with all other components frozen: it loses what its neighbours would gain by moving over. One that
# loses less than this share of what the new component's parameters cost is made on trial, and judged afterwards.
OPTIMISM = 1.0
TRIAL_EPOCHS = 8  # trials, and splits of components that have not changed, are made every so many epochs
# News: a fresh point further from its component than this many deviations of the squared distance, and for one
# component an epoch, in turn, whatever lies further out than the second number and stands for most points.
FAR, OUT = 6.0, 2.0
TRIAL_UPDATES = 5  # updates of all components that a trial has before it is judged


class ModelBuilder:
    """The mixture's posterior and the updates that improve it.

    Attributes
    ----------
    family : Family
        Statistics and posteriors of components 0 to n_components.
    log_weight, weight : ndarray of shape (capacity,), float64
        E[log pi_k], E[pi_k].
    candidates, shares : ndarrays of shape (n_items, KEPT), int32 and float64
        The kept components of each item, largest first after a dense pass, and q(z_s = k).
    loss : ndarray of shape (capacity,), float64
        What the last split of each component on trial in this epoch would have lost, in nats; inf where none was.
    """

    def __init__(self, family: Family, n_items: int, concentration: float, max_iterations: int):
        capacity = family.capacity
        kept = min(KEPT, capacity)
        self.family = family
        self.alpha = concentration
        self.max_iterations = max_iterations
        self.n_components = 0
        self.identities = Identities(capacity)
        self.log_weight = np.zeros(capacity)
        self.weight = np.zeros(capacity)
        self.tried = np.zeros(capacity)
        self.loss = np.zeros(capacity)
        self._seeds = np.full((capacity, 2), -1, np.int64)  # of each component, what fits it worst (`strangest`)
        spread = np.sqrt(2.0 * family.n_dims)
        self._limits = family.n_dims + spread * np.array([FAR, OUT])
        self._fresh = 0  # items from this one on are new
        self.spare = Moments(capacity + 1, family.n_dims, family.n_packed)  # what a trial would undo
        self.candidates = np.full((n_items, kept), -1, np.int32)
        self.shares = np.zeros((n_items, kept))
        self._offsets = np.zeros(capacity + 1, np.int64)
        self._rows = np.zeros(n_items * kept, np.int64)
        self._places = np.zeros(n_items * kept, np.int64)
        self._weights = np.zeros(n_items)
        self._logits = np.zeros(n_items)
        self._block = np.zeros((BLOCK, capacity))
        self._overlap = np.zeros((capacity, capacity))
        self.report = BuildReport()

    # The updates

    def counts(self) -> np.ndarray:
        """Return the mass of each component in use (a view)."""
        return self.family.moments.count[: self.n_components]

    def order(self) -> np.ndarray:
        """Return components in stick order: largest first, ties by place."""
        return np.argsort(-self.counts(), kind="stable")

    def update_sticks(self) -> None:
        """Update q(V) from the counts; the order by size is the best one for given counts."""
        n = self.n_components
        mixture_common.sticks_expectation(self.counts(), self.order(), self.alpha, self.log_weight[:n], self.weight[:n])

    def _complexity(self) -> float:
        """Return the KL terms (2.13), as evidence less expected log likelihood of the last maximisation."""
        fits = self.family.fits[: self.n_components]
        evidence = fits[:, EVIDENCE].sum() + self._weights_evidence()
        return float(fits[:, EXPECTED].sum() + self._weights_expected() - evidence)

    # What the weights are is a subclass's affair: a topic model has some for each document.

    def _weights_evidence(self) -> float:
        """Return the log evidence of the counts under the prior of the weights."""
        return self._sticks_with(self.counts())

    def _weights_expected(self) -> float:
        """Return the expected log likelihood of the counts under q(pi)."""
        return float(self.counts() @ self.log_weight[: self.n_components])

    def _log_joints(self, items: Items, first: int, n_rows: int) -> None:
        """Write S_sk (2.9) of all components for a block of items."""
        self.family.log_joint_block(items, first, n_rows, self.n_components, self.log_weight, self._block)

    def _add_weights(self, items: Items, rows: np.ndarray, k: int, logits: np.ndarray) -> None:
        """Add what depends on the item to the log joints of a list; a mixture's weights do not."""

    def expect_dense(self, items: Items) -> float:
        """Update q(Z) over all components, keep the largest few, and return the bound (2.11)."""
        likelihood = 0.0
        for first in range(0, items.n_items, BLOCK):
            n_rows = min(BLOCK, items.n_items - first)
            self._log_joints(items, first, n_rows)
            likelihood += mixture_common.respond_dense(
                self._block, n_rows, self.n_components, items.counts, first, self.candidates, self.shares
            )
        self.report.dense_passes += 1
        return self._note(likelihood - self._complexity())

    def expect_sparse(self, items: Items) -> float:
        """Update q(Z) over each item's kept components, and return the bound."""
        for k in range(self.n_components):
            rows, places = self._list(k)
            logits = self._logits[: len(rows)]
            self.family.log_joint(items, rows, k, self.log_weight[k], logits)
            constant = self.family.fits[k, CONSTANT] + self.log_weight[k]
            mixture_common.strangest(
                rows, places, logits, items.counts, constant, self._fresh, self._limits, self._seeds[k]
            )
            self._add_weights(items, rows, k, logits)
            mixture_common.scatter_logits(rows, places, logits, self.shares)
        likelihood = mixture_common.respond_sparse(self.candidates, items.counts, items.n_items, self.shares)
        return self._note(likelihood - self._complexity())

    def _note(self, free_energy: float) -> float:
        self.report.free_energy = free_energy
        return free_energy

    def update_lists(self, items: Items) -> None:
        """Sort the kept pairs by component, as the updates read them."""
        mixture_common.build_lists(
            self.candidates, items.n_items, self.n_components, self._offsets, self._rows, self._places
        )

    def _list(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        low, high = self._offsets[k], self._offsets[k + 1]
        return self._rows[low:high], self._places[low:high]

    def _weigh(self, items: Items, k: int) -> tuple[np.ndarray, np.ndarray]:
        rows, places = self._list(k)
        weights = self._weights[: len(rows)]
        mixture_common.list_weights(rows, places, self.shares, items.counts, weights)
        return rows, weights

    def maximise(self, items: Items) -> None:
        """Update q(Phi) and q(V) from the responsibilities (2.8)."""
        family = self.family
        for k in range(self.n_components):
            rows, weights = self._weigh(items, k)
            family.collect(items, rows, weights, family.post_mean[k], family.moments, k)
            family.fit(k)
        self.update_sticks()
        self.report.iterations += 1

    def settle(self, items: Items, n_updates: int) -> None:
        """Alternate both updates over the kept components until the bound gains less than the tolerance."""
        least = TOLERANCE * items.total
        self.update_lists(items)
        for _ in range(n_updates):
            if self.report.iterations >= self.max_iterations:
                return
            before = self.report.free_energy
            self.maximise(items)
            if self.expect_sparse(items) - before < least:
                return

    # The moves

    def _sticks_with(self, counts: np.ndarray) -> float:
        return mixture_common.sticks_evidence(-np.sort(-counts), self.alpha)

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
        rows, weights = self._weigh(items, k)
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

    def _save(self) -> tuple:
        n, moments = self.n_components, self.family.moments
        for name in ("count", "mean", "scatter"):
            getattr(self.spare, name)[:n] = getattr(moments, name)[:n]
        return n, self.tried[:n].copy(), self.identities.save(n)

    def _undo(self, saved: tuple) -> None:
        n, tried, names = saved
        moments = self.family.moments
        for name in ("count", "mean", "scatter"):
            getattr(moments, name)[:n] = getattr(self.spare, name)[:n]
        self.n_components = n
        self.tried[:n] = tried
        self.identities.undo(names)
        for k in range(n):
            self.family.fit(k)

    def _keep_split(self, k: int, parts: np.ndarray) -> None:
        family, new = self.family, self.n_components
        large, small = family.child_a, family.child_b
        if parts[1] > parts[0]:
            large, small = small, large
        family.copy(large, k)
        family.copy(small, new)
        self.tried[k] = self.tried[new] = 0.0
        self.loss[k] = self.loss[new] = np.inf
        self.identities.born(new, k)
        self.n_components += 1

    def _merge_pairs(self, items: Items) -> list[tuple[int, int]]:
        """Return pairs worth a trial: those that share items, and each component with its nearest."""
        n = self.n_components
        if n <= 12:
            return [(a, b) for a in range(n) for b in range(a + 1, n)]
        mixture_common.overlap(self.candidates, self.shares, items.counts, items.n_items, self._overlap)
        counts = self.counts()
        least = 0.01 * np.minimum(counts[:, None], counts[None, :])
        pairs = {(int(a), int(b)) for a, b in np.argwhere(self._overlap[:n, :n] > least) if a < b}
        everyone = np.arange(n)
        for a in range(n):
            near = self.family.distances(a, everyone)
            near[a] = np.inf
            pairs.update((min(a, int(b)), max(a, int(b))) for b in np.argsort(near, kind="stable")[:NEIGHBOURS])
        return sorted(pairs)

    def _weights_gain(self, a: int, b: int) -> float:
        """Return what the evidence of the weights gains where two components are one."""
        counts = self.counts()
        joined = np.append(np.delete(counts, [a, b]), counts[a] + counts[b])
        return self._sticks_with(joined) - self._sticks_with(counts)

    def _join(self, a: int, b: int, into: int) -> None:
        """Make the statistics of two components those of one of them."""
        self.family.combine(self.family.moments, a, b, self.family.moments, into)
        self.family.fit(into)

    def _merge_gain(self, items: Items, a: int, b: int) -> float:
        family = self.family
        family.combine(family.moments, a, b, family.moments, family.merged)
        evidence = family.evidence(family.moments, family.merged) - family.fits[a, EVIDENCE] - family.fits[b, EVIDENCE]
        rows, places = self._list(a)
        return (
            evidence
            + self._weights_gain(a, b)
            + mixture_common.merge_entropy(rows, places, b, self.candidates, self.shares, items.counts)
        )

    def try_merges(self, items: Items) -> int:
        """Merge pairs whose union raises the bound, best first, no component twice; return the merges kept."""
        if self.n_components < 2:
            return 0
        gains = []
        for a, b in self._merge_pairs(items):
            gain = self._merge_gain(items, a, b)
            self.report.merges_tried += 1
            if gain > LEAST_GAIN:
                gains.append((-gain, a, b))
        gone: list[int] = []
        touched: set[int] = set()
        for _, a, b in sorted(gains):
            if a in touched or b in touched:
                continue
            touched.update((a, b))
            large, small = (a, b) if self.counts()[a] >= self.counts()[b] else (b, a)
            self._join(a, b, large)
            self.tried[large] = 0.0
            self.loss[large] = np.inf
            self.identities.died(small, large)
            gone.append(small)
        for k in sorted(gone, reverse=True):
            self._remove(k)
        self.report.merges_kept += len(gone)
        return len(gone)

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

    def start_from_one(self, items: Items) -> None:
        """Begin with a single component of everything, as the paper does each round."""
        for k in range(self.n_components):
            self.identities.died(k, -1)
        self.identities.born(0, -1)
        self._start(items, np.zeros(items.n_items, np.int64), 1)

    def start_from(self, items: Items, label: np.ndarray, ids: np.ndarray) -> None:
        """Begin with a component of each label; `ids`, rising, are the components' names."""
        self.identities.take(ids)
        self._start(items, label, len(ids))

    def _start(self, items: Items, label: np.ndarray, n_components: int) -> None:
        n = items.n_items
        self.n_components = n_components
        self.tried[:n_components] = 0.0
        self.candidates[:n], self.shares[:n] = -1, 0.0
        self.candidates[:n, 0], self.shares[:n, 0] = label, 1.0
        self.update_lists(items)
        for k in range(n_components):
            self.family.post_mean[k] = items.x[self._list(k)[0]].mean(axis=0)
        self.maximise(items)

    def likeliest(self, items: Items) -> np.ndarray:
        """Return the component of largest responsibility of each item, (n_items,) int64; changes nothing learnt."""
        found = np.zeros(items.n_items, np.int64)
        for first in range(0, items.n_items, BLOCK):
            n_rows = min(BLOCK, items.n_items - first)
            self._log_joints(items, first, n_rows)
            found[first : first + n_rows] = self._block[:n_rows, : self.n_components].argmax(axis=1)
        return found

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
        births_tried = False
        epoch = self.identities.epoch
        trials = epoch % TRIAL_EPOCHS == 0 or epoch & (epoch - 1) == 0  # often at first: there is most to find
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
            if not trials or not self.try_optimistic_splits(items, merges=merges):
                break
        self.settle(items, self.max_iterations)
        self.maximise(items)
        if self.drop_empty():
            self.update_sticks()
        self.expect_dense(items)
        return self.report

    def _reassign(self, items: Items) -> None:
        self.update_sticks()
        self.expect_dense(items)

    def scratch(self) -> tuple[np.ndarray, np.ndarray]:
        """Return two workspaces of (n_items * KEPT,) float64, for use until the next build."""
        return self.shares.reshape(-1), self._places.view(np.float64)

    def arrays(self) -> list[np.ndarray]:
        """Return every array held, for the account of memory."""
        own: list[np.ndarray] = [self.log_weight, self.weight, self.tried, self.candidates, self.shares]
        own += [
            self.loss,
            self._seeds,
            *self.spare.arrays(),
            self._offsets,
            self._rows,
            self._places,
            self._weights,
            self._logits,
            self._block,
            self._overlap,
        ]
        return [*self.family.arrays(), *self.identities.arrays(), *own]
