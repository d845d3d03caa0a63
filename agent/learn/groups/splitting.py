"""How many clusters: greedy splits with a tally of failures, accepted where they lower F (thesis 8.2, algorithm 5.1).

Called by agent/learn/groups/grouped.py and simultaneous.py. A trial is one full round of all clusters, as the thesis
has it, at the cost of two: those not split keep their likelihoods.
"""

from dataclasses import dataclass

import numpy as np

from stillwatch.learn.groups.contexts import Context, Step
from stillwatch.learn.groups.gaussian import Clusters, GaussPrior
from stillwatch.learn.groups.items import Items
from stillwatch.learn.groups.variational import Fit, add_weights, converge, expect, normalise

# The author's library's numbers; the thesis has none.
REFINING_ROUNDS = 15
LEAST_TO_SPLIT = 4.0
LEAST_ON_A_SIDE = 2
# A cluster that holds no more points than this after a trial was not worth it.
LEAST_POINTS = 1.0
# A split that raises F of its cluster's own points by more than this many times the least fall that is accepted is not
# tried on all points: there it gains what neighbours hand over, which was a few times that fall at most (DECISIONS.md).
HOPELESS = 30.0
# With so many items, rounds stop this many times earlier while splits are still found: what they would polish, the next
# split moves again. Before a search ends they go on to the end, and every cluster is tried once more.
MANY_ITEMS, COARSER = 50_000, 10.0


@dataclass(frozen=True)
class Search:
    """What a search needs besides data.

    tolerance : the part of F that a round, or a split, must lower it by
    max_clusters : splits end there
    """

    prior: GaussPrior
    context: Context
    tolerance: float
    max_clusters: int
    is_sparse: bool


@dataclass(frozen=True)
class _Trial:
    clusters: Clusters
    step: Step
    free_energy: float


class _Round:
    """A converged fit whose clusters are tried one after the other."""

    def __init__(self, items: Items, search: Search, fit: Fit):
        self.items, self.search, self.fit = items, search, fit
        self._known: np.ndarray | None = None

    def order(self, tally: list[int]) -> list[int]:
        """Return the clusters: those with fewest failures first, among them those that explain least (5.18-5.20)."""
        fit = self.fit
        explained = (fit.expected.moments * fit.clusters.coefficients()).sum(axis=1)
        explained += self.search.context.explained(fit.expected.mass, fit.step.log_weights)
        score = fit.clusters.penalties() - explained
        return sorted(range(len(score)), key=lambda k: (tally[k], -score[k]))

    def try_split(self, k: int) -> _Trial | None:
        """Return what a split of cluster k leads to, or None where it cannot be made or does not lower F."""
        moved = self._moved(k)
        if moved is None:
            return None
        q = np.zeros((1, len(moved)))
        q[0] = self.fit.expected.q[k, moved]
        new_moments, new_mass = self.items.select(moved).moments(q)
        moments = np.concatenate([self.fit.expected.moments, new_moments])
        mass = np.concatenate([self.fit.expected.mass, new_mass], axis=1)
        moments[k] -= new_moments[0]
        mass[:, k] = np.maximum(mass[:, k] - new_mass[:, 0], 0.0)
        if moments[:, -1].min() <= LEAST_POINTS:
            return None
        clusters = Clusters(self.search.prior, moments)
        step = self.search.context.step(self.fit.step.state, mass, self.search.is_sparse)
        energy = float(clusters.penalties().sum()) + step.energy - self._log_norm(k, clusters, step)
        before = self.fit.free_energy
        if energy < before and before - energy > self.search.tolerance * abs(before):
            return _Trial(clusters, step, energy)
        return None

    def _moved(self, k: int) -> np.ndarray | None:
        """Return which items the second half of cluster k takes, after rounds on its own points alone."""
        clusters, search = self.fit.clusters, self.search
        if clusters.count[k] < LEAST_TO_SPLIT:
            return None
        own = np.flatnonzero(self.fit.expected.q[k] > 0.5)
        items = self.items.select(own)
        is_first = (items.x - clusters.mean[k]) @ clusters.widest(k) >= 0.0
        if min(is_first.sum(), (~is_first).sum()) < LEAST_ON_A_SIDE:
            return None
        context, state = search.context.for_split()
        sums = items.moments(np.stack([is_first, ~is_first]).astype(np.float64))
        refined = converge(
            items, search.prior, context, state, sums, tolerance=search.tolerance, max_rounds=REFINING_ROUNDS
        )
        if refined.clusters.count.min() <= LEAST_POINTS:
            return None
        as_one = sums[0].sum(axis=0, keepdims=True), sums[1].sum(axis=1, keepdims=True)
        unsplit = converge(items, search.prior, context, state, as_one, tolerance=search.tolerance, max_rounds=1)
        risen = refined.free_energy - unsplit.free_energy
        if risen > HOPELESS * search.tolerance * abs(self.fit.free_energy):
            return None
        return own[refined.expected.q[1] > 0.5]

    def _log_norm(self, k: int, clusters: Clusters, step: Step) -> float:
        """Return the log normaliser of a trial: all log likelihoods are known but those of the two halves."""
        halves, known = clusters.coefficients()[[k, -1]], self._likelihoods()

        def work(part: slice, sums: np.ndarray) -> float:
            both = halves @ sums
            logs = np.concatenate([known[:, part], both[1:]])
            logs[k] = both[0]
            add_weights(logs, self.items, part, step.log_weights)
            return normalise(logs)

        return sum(self.items.each(work))

    def _likelihoods(self) -> np.ndarray:
        """Return E[ln N] of all items, (K, n), by the clusters as the next maximisation step would make them."""
        if self._known is None:
            clusters = Clusters(self.search.prior, self.fit.expected.moments)
            coefficients = clusters.coefficients()
            self._known = np.concatenate(list(self.items.each(lambda part, sums: coefficients @ sums)), axis=1)
        return self._known


def search_clusters(items: Items, search: Search, state: np.ndarray, fit: Fit | None, tally: list[int]) -> Fit:
    """Return the fit that no split improves; its free energies are those of every round of the search.

    fit : where to begin; None begins with all items in one cluster
    tally : failures of each cluster since its last success, changed; of the fit's clusters, or [0]
    """
    sums = items.moments(np.ones((1, len(items)))) if fit is None else (fit.expected.moments, fit.expected.mass)
    trace: list[float] = []
    tolerance = search.tolerance * (COARSER if len(items) >= MANY_ITEMS else 1.0)
    while True:
        is_sparse = search.is_sparse and len(tally) > 1
        fit = converge(items, search.prior, search.context, state, sums, tolerance=tolerance, is_sparse=is_sparse)
        trace += fit.free_energies
        chosen, trial = _first_better(_Round(items, search, fit), tally)
        if trial is None and tolerance > search.tolerance:
            tolerance = search.tolerance
            state, sums = fit.step.state, (fit.expected.moments, fit.expected.mass)
            continue
        if trial is None:
            return Fit(fit.clusters, fit.step, fit.expected, trace)
        found = expect(items, trial.clusters, trial.step.log_weights)
        trace.append(trial.free_energy)
        state, sums = trial.step.state, (found.moments, found.mass)
        tally[chosen] = 0
        tally.append(0)


def _first_better(tried: _Round, tally: list[int]) -> tuple[int, _Trial | None]:
    """Return the first cluster whose split lowers F, and that trial; failures are added to the tally."""
    if len(tally) < tried.search.max_clusters:
        for k in tried.order(tally):
            tally[k] += 1
            trial = tried.try_split(k)
            if trial is not None:
                return k, trial
    return -1, None
