"""The rounds of variational Bayes: parameters, labels, free energy, until it falls no more (thesis 2.2, 4.2, 5.2).

Called by agent/learn/groups/splitting.py and simultaneous.py. F is the negative bound on log p(data): it never rises.
"""

from dataclasses import dataclass

import numpy as np

from stillwatch.learn.groups.contexts import Context, Step
from stillwatch.learn.groups.gaussian import Clusters, GaussPrior
from stillwatch.learn.groups.items import Items, n_sums


@dataclass(frozen=True)
class Expected:
    """What an expectation step found.

    Attributes
    ----------
    q : ndarray of shape (K, n), float64
        Probability of each item's label.
    moments, mass
        As `Items.moments`: the sums of the next maximisation step.
    log_norm : float
        Sum over items of the log normaliser of q, nats.
    """

    q: np.ndarray
    moments: np.ndarray
    mass: np.ndarray
    log_norm: float


@dataclass(frozen=True)
class Fit:
    """A model after its rounds: the parameters, the labels that follow from them, F after every round."""

    clusters: Clusters
    step: Step
    expected: Expected
    free_energies: list[float]

    @property
    def free_energy(self) -> float:
        return self.free_energies[-1]


def add_weights(logs: np.ndarray, items: Items, part: slice, log_weights: np.ndarray) -> None:
    """Add the log weights of each item's parent to log likelihoods of shape (K, n in the block)."""
    parents = items.parents[part]
    starts = np.flatnonzero(np.r_[True, parents[1:] != parents[:-1]])
    lengths = np.diff(np.r_[starts, len(parents)])
    of_items = np.repeat(log_weights[parents[starts]].T, lengths, axis=1)
    logs += of_items if items.are_points else of_items * items.counts[part]


def normalise(logs: np.ndarray) -> float:
    """Turn log joint probabilities (K, n) into probabilities in place; return the sum of their log normalisers."""
    top = logs.max(axis=0)
    logs -= top
    np.exp(logs, out=logs)
    total = logs.sum(axis=0)
    logs /= total
    return float(top.sum() + np.log(total).sum())


def expect(items: Items, clusters: Clusters, log_weights: np.ndarray) -> Expected:
    """Return labels and the sums that follow from them; a cluster that no parent of a block has is skipped there."""
    coefficients = clusters.coefficients()
    q = np.zeros((len(clusters), len(items)))

    def work(part: slice, sums: np.ndarray) -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray], float]:
        first, last = items.parents[part.start], items.parents[part.stop - 1]
        used = np.flatnonzero(np.isfinite(log_weights[first : last + 1]).any(axis=0))
        logs = coefficients[used] @ sums
        add_weights(logs, items, part, log_weights[:, used])
        log_norm = normalise(logs)
        q[used, part] = logs
        return used, logs @ sums.T, items.mass(part, q[:, part]), log_norm

    moments = np.zeros((len(clusters), n_sums(items.n_dims)))
    mass = np.zeros((items.n_parents, len(clusters)))
    total = 0.0
    for used, of_block, (parents, points), log_norm in items.each(work):
        moments[used] += of_block
        mass[parents] += points
        total += log_norm
    return Expected(q, moments, mass, total)


def converge(
    items: Items,
    prior: GaussPrior,
    context: Context,
    state: np.ndarray,
    sums: tuple[np.ndarray, np.ndarray],
    *,
    tolerance: float,
    max_rounds: int | None = None,
    is_sparse: bool = False,
) -> Fit:
    """Run rounds from labels given by their sums until F falls by no more than `tolerance` of itself.

    sums : (moments, mass) as `Items.moments` returns them
    is_sparse : leave clusters out of groups that have hardly any of them; a round in which that would raise F, and
        those after it, are done in full
    """
    moments, mass = sums
    trace: list[float] = []
    while True:
        clusters = Clusters(prior, moments)
        step = context.step(state, mass, is_sparse)
        expected = expect(items, clusters, step.log_weights)
        energy = float(clusters.penalties().sum()) + step.energy - expected.log_norm
        if is_sparse and trace and energy > trace[-1]:
            is_sparse = False
            continue
        trace.append(energy)
        state, moments, mass = step.state, expected.moments, expected.mass
        has_settled = len(trace) > 1 and abs(trace[-2] - energy) <= tolerance * abs(trace[-2])
        if has_settled or len(trace) == max_rounds:
            return Fit(clusters, step, expected, trace)
