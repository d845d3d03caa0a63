"""How clusters are weighted in each group: Dirichlet, generalised Dirichlet, or the sticks of a Dirichlet process.

Called by agent/learn/groups/contexts.py. It must not see data: it is given how many points each group has of each
cluster.
"""

from dataclasses import dataclass

import numpy as np

from stillwatch.learn.groups.gamma import digamma, log_gamma


@dataclass(frozen=True)
class Weights:
    """Posterior weights of J groups over K clusters.

    Attributes
    ----------
    log_mean : ndarray of shape (J, K), float64
        E[ln pi_jk].
    mean : ndarray of shape (J, K), float64
        E[pi_jk]; with sticks, what is left for clusters that were never seen is not in it.
    penalty : float
        Sum over groups of KL(q(pi_j) || p(pi_j)), nats.
    """

    log_mean: np.ndarray
    mean: np.ndarray
    penalty: float


def dirichlet(mass: np.ndarray, concentration: float) -> Weights:
    """Return the posterior of symmetric Dirichlet weights (thesis A.9-A.12).

    mass : ndarray of shape (J, K), float64: N_jk
    """
    a = concentration + mass
    total, n_clusters = a.sum(axis=1, keepdims=True), a.shape[1]
    log_mean = digamma(a) - digamma(total)
    penalty = (
        float(log_gamma(total).sum() - log_gamma(a).sum() + (mass * log_mean).sum())
        + float(n_clusters * log_gamma(np.array(concentration)) - log_gamma(np.array(n_clusters * concentration)))
        * a.shape[0]
    )
    return Weights(log_mean, a / total, penalty)


def _sticks(mass: np.ndarray, first: float, second: float, is_last_forced: bool) -> Weights:
    """Return the posterior of stick-breaking weights, the sticks of each group by its own order of sizes (A.13-A.21).

    is_last_forced : whether the last stick takes all that is left (generalised Dirichlet) or a beta's share (DP)
    """
    order = np.argsort(-mass, axis=1, kind="stable")
    sizes = np.take_along_axis(mass, order, axis=1)
    a = first + sizes
    b = second + np.maximum(sizes.sum(axis=1, keepdims=True) - np.cumsum(sizes, axis=1), 0.0)
    both = digamma(a + b)
    log_v, log_rest = digamma(a) - both, digamma(b) - both
    v = a / (a + b)
    if is_last_forced:
        log_v[:, -1], v[:, -1] = 0.0, 1.0
    before = np.cumsum(log_rest, axis=1) - log_rest
    rest = np.cumprod(np.concatenate([np.ones((len(v), 1)), 1.0 - v[:, :-1]], axis=1), axis=1)
    log_mean, mean = np.empty_like(a), np.empty_like(a)
    np.put_along_axis(log_mean, order, log_v + before, axis=1)
    np.put_along_axis(mean, order, v * rest, axis=1)
    used = np.s_[:, : a.shape[1] - is_last_forced]
    a, b, log_v, log_rest = a[used], b[used], log_v[used], log_rest[used]
    one = log_gamma(np.array([first, second, first + second]))
    terms = (a - first) * log_v + (b - second) * log_rest - log_gamma(a) - log_gamma(b) + log_gamma(a + b)
    return Weights(log_mean, mean, float((terms + one[0] + one[1] - one[2]).sum()))


def generalised_dirichlet(mass: np.ndarray, concentration: float) -> Weights:
    """Return the posterior of generalised Dirichlet weights with a = b = `concentration` (thesis 4.2, 4.10)."""
    return _sticks(mass, concentration, concentration, True)


def stick_breaking(mass: np.ndarray, concentration: float) -> Weights:
    """Return the posterior of the sticks of a Dirichlet process, Beta(1, `concentration`): the VDP's weights."""
    return _sticks(mass, 1.0, concentration, False)


WEIGHTS = {
    "dirichlet": dirichlet, "generalised_dirichlet": generalised_dirichlet, "stick_breaking": stick_breaking,
}  # fmt: skip
