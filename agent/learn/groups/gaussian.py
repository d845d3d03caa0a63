"""Gaussian clusters with a Gauss-Wishart prior, from the sums of their points: K of them at once (thesis A.22-A.35).

Called by agent/learn/groups/variational.py and splitting.py. It must not see points: `Items` makes the sums.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stillwatch.learn.groups.gamma import digamma, log_gamma


@dataclass(frozen=True)
class GaussPrior:
    """The prior of every cluster: its mean is the origin, its expected covariance `variance` I, worth n_dims points.

    Attributes
    ----------
    n_dims : int
    variance : float
        C_width, or C_width lambda_max where the data was not whitened, in squared units of the data.
    """

    n_dims: int
    variance: float

    @property
    def scale(self) -> float:
        """The prior's Omega^-1 is this times I: rho C_width lambda_max (thesis 4.15), with rho = n_dims."""
        return self.n_dims * self.variance


class Clusters:
    """Posteriors of K Gaussian clusters.

    Parameters
    ----------
    prior : GaussPrior
    moments : ndarray of shape (K, n_dims (n_dims + 1) / 2 + n_dims + 1), float64
        Of each cluster: sums of q x x^T (lower triangle, row by row), of q x, and of q.
    """

    def __init__(self, prior: GaussPrior, moments: np.ndarray):
        self.prior, self.moments = prior, moments
        d = prior.n_dims
        self._low = np.tril_indices(d)
        n_packed = len(self._low[0])
        self.count = moments[:, -1]
        self.gamma = 1.0 + self.count
        self.rho = d + self.count
        first = moments[:, n_packed:-1]
        self.mean = first / self.gamma[:, None]
        scale = np.zeros((len(moments), d, d))
        scale[:, self._low[0], self._low[1]] = moments[:, :n_packed]
        scale[:, self._low[1], self._low[0]] = moments[:, :n_packed]
        scale -= first[:, :, None] * first[:, None, :] / self.gamma[:, None, None]
        scale[:, range(d), range(d)] += prior.scale
        self.scale = scale  # Omega~^-1

    def __len__(self) -> int:
        return len(self.count)

    @cached_property
    def _omega(self) -> np.ndarray:
        return np.linalg.inv(self.scale)

    @cached_property
    def _log_det(self) -> np.ndarray:
        return -np.linalg.slogdet(self.scale)[1]

    @cached_property
    def _halves(self) -> np.ndarray:
        return 0.5 * (self.rho[:, None] + 1.0 - np.arange(1, self.prior.n_dims + 1))

    @cached_property
    def _digammas(self) -> np.ndarray:
        return digamma(self._halves).sum(axis=1)

    @property
    def covariance(self) -> np.ndarray:
        """Inverse of the expected precision, (K, n_dims, n_dims)."""
        return self.scale / self.rho[:, None, None]

    def coefficients(self) -> np.ndarray:
        """Return what multiplies the sums of some points to give their E[ln N(x | mu, Lambda)], as `moments` (A.26)."""
        d = self.prior.n_dims
        pull = np.einsum("kij,kj->ki", self._omega, self.mean)
        square = -0.5 * self.rho[:, None] * self._omega[:, self._low[0], self._low[1]]
        square[:, self._low[0] != self._low[1]] *= 2.0
        expected = self._digammas + d * math.log(2.0) + self._log_det
        constant = 0.5 * (expected - d / self.gamma - d * math.log(2.0 * math.pi))
        constant -= 0.5 * self.rho * (pull * self.mean).sum(axis=1)
        return np.concatenate([square, self.rho[:, None] * pull, constant[:, None]], axis=1)

    def penalties(self) -> np.ndarray:
        """Return KL(q(mu, Lambda) || p(mu, Lambda)) of each cluster, (K,), nats (A.35)."""
        d, s = self.prior.n_dims, self.prior.scale
        before = 0.5 * (d + 1.0 - np.arange(1, d + 1))
        bend = np.einsum("ki,kij,kj->k", self.mean, self._omega, self.mean)
        return (
            0.5 * d * (1.0 / self.gamma + np.log(self.gamma) - self.rho - 1.0)
            - 0.5 * d * (d * math.log(s) + self._log_det)
            + 0.5 * self.rho * (s * np.trace(self._omega, axis1=1, axis2=2) + bend)
            + 0.5 * self.count * self._digammas
            + log_gamma(before).sum()
            - log_gamma(self._halves).sum(axis=1)
        )

    def widest(self, k: int) -> np.ndarray:
        """Return the direction in which cluster k is widest, a unit vector of shape (n_dims,)."""
        return np.linalg.eigh(self.scale[k])[1][:, -1]
