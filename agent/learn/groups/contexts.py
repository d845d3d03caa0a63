"""What stands above the clusters: groups with weights of their own (GMC), or images with labels in groups (SCM, MCM).

Called by agent/learn/groups/variational.py and splitting.py. A context turns how many points each parent (a group, or
an image) has of each cluster into the log weights that the next expectation step uses, and its part of the free energy.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from stillwatch.learn.groups.gaussian import Clusters, GaussPrior
from stillwatch.learn.groups.items import Items
from stillwatch.learn.groups.weights import Weights, dirichlet

WeightRule = Callable[[np.ndarray, float], Weights]


@dataclass(frozen=True)
class Step:
    """What a context makes of the masses: its own next state, log weights (n_parents, K), its part of F in nats."""

    state: np.ndarray
    log_weights: np.ndarray
    energy: float


class Context(Protocol):
    """What stands above the clusters. Its state is an array; a context itself never changes."""

    def step(self, state: np.ndarray, mass: np.ndarray, is_sparse: bool) -> Step: ...

    def explained(self, mass: np.ndarray, log_weights: np.ndarray) -> np.ndarray: ...

    def for_split(self) -> tuple["Context", np.ndarray]: ...


class GroupWeights:
    """Groups that share the clusters, each with its own weights (thesis 4.1-4.11); one group is a flat mixture."""

    def __init__(self, rule: WeightRule, concentration: float):
        self.rule, self.concentration = rule, concentration

    def step(self, state: np.ndarray, mass: np.ndarray, is_sparse: bool) -> Step:
        """Return the weights. Sparse: a cluster with less than one point in a group is left out there (thesis 4.4)."""
        weights = self.rule(mass, self.concentration)
        if not is_sparse:
            return Step(state, weights.log_mean, weights.penalty)
        is_out = (mass < 1.0) & (mass < mass.max(axis=1, keepdims=True))
        return Step(state, np.where(is_out, -np.inf, weights.log_mean), weights.penalty)

    def explained(self, mass: np.ndarray, log_weights: np.ndarray) -> np.ndarray:
        """Return what the weights explain of each cluster, (K,): sum over groups of N_jk E[ln pi_jk]."""
        return np.where(mass > 0.0, mass * np.where(np.isfinite(log_weights), log_weights, 0.0), 0.0).sum(axis=0)

    def for_split(self) -> tuple["GroupWeights", np.ndarray]:
        return self, np.empty(0)


class ImageLabels:
    """Images of T kinds: a kind has its own mix of segment clusters, a group its own weights of kinds (thesis 5, 6).

    The state is q(y), (n_images, T).

    Parameters
    ----------
    rule, concentration : the weights of kinds in each group
    phi : float
        Dirichlet parameter of a kind's mix of clusters.
    groups : ndarray of shape (n_images,), int64
    n_groups : int
    descriptors : Items or None
        One descriptor an image: MCM; without, SCM.
    prior : GaussPrior or None
        Of the kinds' Gaussians over descriptors.
    """

    def __init__(
        self,
        rule: WeightRule,
        concentration: float,
        phi: float,
        groups: np.ndarray,
        n_groups: int,
        descriptors: Items | None = None,
        prior: GaussPrior | None = None,
    ):
        self.rule, self.concentration, self.phi = rule, concentration, phi
        self.groups, self.n_groups = groups, n_groups
        self.descriptors, self.prior = descriptors, prior

    def weights(self, state: np.ndarray) -> Weights:
        """Return the weights of kinds in each group (5.13-14)."""
        return self.rule(self.per_group(state), self.concentration)

    def per_group(self, state: np.ndarray) -> np.ndarray:
        """Return how many images of each kind each group has, (n_groups, T)."""
        of_kinds = np.zeros((self.n_groups, state.shape[1]))
        np.add.at(of_kinds, self.groups, state)
        return of_kinds

    def mixes(self, state: np.ndarray, mass: np.ndarray) -> Weights:
        """Return each kind's mix of segment clusters (5.15)."""
        return dirichlet(state.T @ mass, self.phi)

    def kinds(self, state: np.ndarray) -> Clusters | None:
        """Return the kinds' Gaussians over descriptors, MCM's alone."""
        if self.descriptors is None or self.prior is None:
            return None
        return Clusters(self.prior, self.descriptors.moments(state.T)[0])

    def step(self, state: np.ndarray, mass: np.ndarray, is_sparse: bool) -> Step:
        """Return new image labels (6.9-10) and the log weights of segments by them (5.9); never sparse."""
        weights, mixes, kinds = self.weights(state), self.mixes(state, mass), self.kinds(state)
        cross = mass @ mixes.log_mean.T
        energy = weights.penalty + mixes.penalty
        logs = cross + weights.log_mean[self.groups]
        if kinds is not None and self.descriptors is not None:
            coefficients = kinds.coefficients()
            energy += float(kinds.penalties().sum())
            logs += np.concatenate(list(self.descriptors.each(lambda part, sums: coefficients @ sums)), axis=1).T
        top = logs.max(axis=1, keepdims=True)
        q = np.exp(logs - top)
        total = q.sum(axis=1, keepdims=True)
        q /= total
        energy += float((q * cross).sum() - (top + np.log(total)).sum())
        return Step(q, q @ mixes.log_mean, energy)

    def labels_energy(self, state: np.ndarray, mass: np.ndarray) -> float:
        """Return the part of F, nats, that hangs on q(y) while segments keep their clusters (6.8).

        Weights, mixes and Gaussians are those that follow from q(y), so that different q(y) compare.
        """
        of_kinds, of_clusters = self.per_group(state), state.T @ mass
        weights, mixes = self.rule(of_kinds, self.concentration), dirichlet(of_clusters, self.phi)
        energy = weights.penalty - float((of_kinds * weights.log_mean).sum())
        energy += mixes.penalty - float((of_clusters * mixes.log_mean).sum())
        energy += float((state * np.log(np.maximum(state, 1e-300))).sum())
        return energy + float(self.kind_energies(state)[0].sum())

    def kind_energies(
        self, state: np.ndarray, first: np.ndarray | None = None, second: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return (the part of F of each kind's Gaussian, (T,); that of pairs of kinds joined); empty without them."""
        if self.descriptors is None or self.prior is None:
            return np.empty(0), np.empty(0)
        moments = self.descriptors.moments(state.T)[0]
        joined = moments[:0] if first is None or second is None else moments[first] + moments[second]
        clusters = Clusters(self.prior, np.concatenate([moments, joined]))
        energies = clusters.penalties() - (clusters.moments * clusters.coefficients()).sum(axis=1)
        return energies[: len(moments)], energies[len(moments) :]

    def without_descriptors(self) -> "ImageLabels":
        """Return the same images as SCM has them."""
        return ImageLabels(self.rule, self.concentration, self.phi, self.groups, self.n_groups)

    def explained(self, mass: np.ndarray, log_weights: np.ndarray) -> np.ndarray:
        """Return zeros: what the mixes explain of a cluster cancels between it and its parts (thesis 5.20)."""
        return np.zeros(mass.shape[1])

    def for_split(self) -> tuple["ImageLabels", np.ndarray]:
        """Return the context of a cluster's own points: images of one kind, without descriptors."""
        return self.without_descriptors(), np.ones((len(self.groups), 1))
