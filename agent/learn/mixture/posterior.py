"""The variational updates of the mixture's posterior under clump constraints (thesis 2.8-2.13).

Used by agent/learn/mixture/build.py, whose moves change the number of components. It must not change the items.
"""

from dataclasses import dataclass

import numpy as np

from stillwatch.kernels import mixture_common
from stillwatch.kernels.mixture_common import CONSTANT, EVIDENCE, EXPECTED
from stillwatch.learn.mixture.families import Family
from stillwatch.learn.mixture.families.places import BLOCK, Kept
from stillwatch.learn.mixture.identity import Identities
from stillwatch.learn.mixture.items import Items

KEPT = 6  # responsibilities kept an item
TOLERANCE = 1e-4  # nats a point: the gain of an update below which the updates stop
# News: a fresh point further from its component than this many deviations of the squared distance, and for one
# component an epoch, in turn, whatever lies further out than the second number and stands for most points.
FAR, OUT = 6.0, 2.0


@dataclass
class BuildReport:
    """What one epoch's model building did."""

    free_energy: float = 0.0
    iterations: int = 0
    dense_passes: int = 0
    splits_tried: int = 0
    splits_kept: int = 0
    merges_tried: int = 0
    merges_kept: int = 0
    exchanges: int = 0
    trials: int = 0
    trials_kept: int = 0


class Posterior:
    """The mixture's posterior and the updates that improve it.

    Attributes
    ----------
    family : Family
        Statistics and posteriors of components 0 to n_components.
    told : Moments
        The statistics that the model answers by: those of the family, unless `Remainders` gives others.
    log_weight, weight : ndarray of shape (capacity,), float64
        E[log pi_k], E[pi_k].
    candidates, shares : ndarrays of shape (n_items, KEPT), int32 and float64
        The kept components of each item, largest first after a dense pass, and q(z_s = k).
    tried : ndarray of shape (capacity,), float64
        The count of each component when a split of it last failed.
    """

    def __init__(self, family: Family, n_items: int, concentration: float, max_iterations: int):
        capacity = family.capacity
        kept = min(KEPT, capacity)
        self.family = family
        self.alpha = concentration
        self.max_iterations = max_iterations
        self.n_components = 0
        self.identities = Identities(capacity)
        self.told = family.moments
        self.log_weight = np.zeros(capacity)
        self.weight = np.zeros(capacity)
        self.tried = np.zeros(capacity)
        self._seeds = np.full((capacity, 2), -1, np.int64)  # of each component, what fits it worst (`strangest`)
        spread = np.sqrt(2.0 * family.n_dims)
        self._limits = family.n_dims + spread * np.array([FAR, OUT])
        self._fresh = 0  # items from this one on are new
        self.candidates = np.full((n_items, kept), -1, np.int32)
        self.shares = np.zeros((n_items, kept))
        self.kept = Kept(
            self.candidates, self.shares, np.zeros(capacity + 1, np.int64), np.zeros(n_items * kept, np.int64),
            np.zeros(n_items * kept, np.int64), np.zeros(n_items), np.zeros(n_items),
        )  # fmt: skip
        self._own_logits = np.zeros(n_items)  # of each item with its first component
        self._block = np.zeros((BLOCK, capacity))
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

    def _add_weights(self, items: Items) -> None:
        """Add what depends on the item to the log joints of the kept components; a mixture's weights do not."""

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
        n = items.n_items
        self.family.log_joints(items, self.kept, self.n_components, self.log_weight)
        self._own_logits[:n] = self.shares[:n, 0]
        self._add_weights(items)
        likelihood = mixture_common.respond_sparse(self.candidates, items.counts, items.n_items, self.shares)
        return self._note(likelihood - self._complexity())

    def _note(self, free_energy: float) -> float:
        self.report.free_energy = free_energy
        return free_energy

    def find_strangest(self, items: Items) -> None:
        """Write of each component what fits it worst, as of the last sparse update."""
        n = self.n_components
        constants = self.family.fits[:n, CONSTANT] + self.log_weight[:n]
        mixture_common.strangest(
            self.candidates, self._own_logits, items.counts, items.n_items, constants, n, self._fresh, self._limits,
            self._seeds,
        )  # fmt: skip

    def update_lists(self, items: Items) -> None:
        """Sort the kept pairs by component, as the updates read them."""
        kept = self.kept
        mixture_common.build_lists(
            self.candidates, items.n_items, self.n_components, kept.offsets, kept.rows, kept.places
        )

    def maximise(self, items: Items) -> None:
        """Update q(Phi) and q(V) from the responsibilities (2.8)."""
        self.family.maximise(items, self.kept, self.n_components)
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

    def _sticks_with(self, counts: np.ndarray) -> float:
        return mixture_common.sticks_evidence(-np.sort(-counts), self.alpha)

    # Beginnings and workspaces

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

    def go_on_from(self, ids: np.ndarray) -> None:
        """Begin with the components whose statistics stand in the family's first places; `ids` are their names."""
        self.identities.take(ids)
        self.n_components = len(ids)
        self.tried[: len(ids)] = 0.0
        self.family.fit_all(len(ids))
        self.update_sticks()

    def _start(self, items: Items, label: np.ndarray, n_components: int) -> None:
        n = items.n_items
        self.n_components = n_components
        self.tried[:n_components] = 0.0
        self.candidates[:n], self.shares[:n] = -1, 0.0
        self.candidates[:n, 0], self.shares[:n, 0] = label, 1.0
        self.update_lists(items)
        for k in range(n_components):
            self.family.post_mean[k] = items.x[self.kept.listed(k)[0]].mean(axis=0)
        self.maximise(items)

    def likeliest(self, items: Items) -> np.ndarray:
        """Return the component of largest responsibility of each item, (n_items,) int64; changes nothing learnt."""
        found = np.zeros(items.n_items, np.int64)
        for first in range(0, items.n_items, BLOCK):
            n_rows = min(BLOCK, items.n_items - first)
            self._log_joints(items, first, n_rows)
            found[first : first + n_rows] = self._block[:n_rows, : self.n_components].argmax(axis=1)
        return found

    def scratch(self) -> tuple[np.ndarray, np.ndarray]:
        """Return two workspaces of (n_items * KEPT,) float64, for use until the next build."""
        return self.shares.reshape(-1), self.kept.places.view(np.float64)

    def arrays(self) -> list[np.ndarray]:
        """Return every array held, for the account of memory."""
        own: list[np.ndarray] = [self.log_weight, self.weight, self.tried, self._seeds, self._own_logits, self._block]
        return [*self.family.arrays(), *self.identities.arrays(), *self.kept, *own]
