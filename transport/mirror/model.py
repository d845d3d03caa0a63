"""A mixture as both ends of the mirror hold it, and its change between data moments and posterior Gaussians.

Used by transport/mirror/vehicle.py (vehicle), transport/mirror/ground.py (ground) and ground tools. It must not
score: the agent's StudentMixture does, from these arrays.
"""

import functools
from dataclasses import dataclass

import numpy as np

from stillwatch.transport.mirror.values import Gaussian, all_from_moments, covariance_of, from_moments
from stillwatch.transport.wire import Model


@dataclass(frozen=True, slots=True)
class MixtureSummary:
    """Everything that rebuilds a mixture's predictive density; names and forms as in the Model message.

    Attributes
    ----------
    ids : ndarray of shape (k,), int64
    counts : ndarray of shape (k,), float64
        Samples each component stands for; the largest first.
    means : ndarray of shape (k, d), float64
    variances : ndarray of shape (k, d), float64, or None
    covariances : ndarray of shape (k, d (d + 1) / 2), float64, or None
        Lower triangles, row by row.
    prior_mean, prior_scale : ndarray of shape (d,), and (d,) or (d (d + 1) / 2,), float64
    prior_strength, prior_dof, concentration : float
    """

    which: str
    model_epoch: int
    ids: np.ndarray
    counts: np.ndarray
    means: np.ndarray
    variances: np.ndarray | None
    covariances: np.ndarray | None
    prior_mean: np.ndarray
    prior_scale: np.ndarray
    prior_strength: float
    prior_dof: float
    concentration: float

    @property
    def n_dims(self) -> int:
        return len(self.prior_mean)

    @property
    def is_full(self) -> bool:
        """Whether covariances are full."""
        return self.covariances is not None

    @property
    def covariance(self) -> str:
        """Kind of covariance, as in the Model message."""
        return "full" if self.is_full else "diagonal"

    @property
    def shares(self) -> np.ndarray:
        """Share of all samples of each component, near to its weight; what is left belongs to what was never seen."""
        return self.counts / (self.counts.sum() + self.concentration)

    @property
    def wishart_dof(self) -> float:
        """Degrees of freedom of the prior; the Gamma prior of a diagonal mixture has half as many as its shape."""
        return self.prior_dof if self.is_full else 2.0 * self.prior_dof


def summary_of(message: Model) -> MixtureSummary:
    """Return the mixture of a Model message, in float64, the largest component first."""
    order = np.argsort(-message.counts.astype(np.float64), kind="stable")
    return MixtureSummary(
        message.which,
        message.model_epoch,
        message.ids.astype(np.int64)[order],
        message.counts.astype(np.float64)[order],
        message.means.astype(np.float64)[order],
        None if message.variances is None else message.variances.astype(np.float64)[order],
        None if message.covariances is None else message.covariances.astype(np.float64)[order],
        message.prior_mean.astype(np.float64),
        message.prior_scale.astype(np.float64),
        message.prior_strength,
        message.prior_dof,
        message.concentration,
    )


@functools.lru_cache(maxsize=8)
def _triangle(n_dims: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and columns of a lower triangle, row by row: asked for by every component of every epoch."""
    return np.tril_indices(n_dims)


def unpack_triangle(packed: np.ndarray, n_dims: int) -> np.ndarray:
    """Return the symmetric matrices (..., d, d) of lower triangles (..., d (d + 1) / 2) row by row."""
    matrix = np.zeros((*packed.shape[:-1], n_dims, n_dims))
    rows, columns = _triangle(n_dims)
    matrix[..., rows, columns] = packed
    matrix[..., columns, rows] = packed
    return matrix


def pack_triangle(matrix: np.ndarray) -> np.ndarray:
    """Undo `unpack_triangle`."""
    return matrix[_triangle(len(matrix))]


def prior_gaussian(summary: MixtureSummary) -> Gaussian:
    """Return the prior as a Gaussian: its mean, and its scale over its degrees of freedom."""
    scale = unpack_triangle(summary.prior_scale, summary.n_dims) if summary.is_full else summary.prior_scale
    return from_moments(summary.prior_mean, scale / summary.prior_dof)


def posterior_gaussians(summary: MixtureSummary) -> list[Gaussian]:
    """Return each component as the posterior sees it: mean, and scale over degrees of freedom.

    Scoring reads the posterior. It is never singular, unlike the moments of a component with one sample, so its
    own spread can be the unit of its errors. Normal-inverse-Wishart update (Murphy 2007, equations 209 to 214);
    Normal-Gamma in each dimension where diagonal (equations 86 to 89), with twice its shape and rate.
    """
    n, strength = summary.counts, summary.prior_strength
    means = (strength * summary.prior_mean + n[:, None] * summary.means) / (strength + n)[:, None]
    shift = summary.means - summary.prior_mean
    pull = strength * n / (strength + n)
    if summary.covariances is None:
        assert summary.variances is not None
        scatter = n[:, None] * summary.variances + pull[:, None] * shift**2 + 2.0 * summary.prior_scale
        return all_from_moments(means, scatter / (summary.wishart_dof + n)[:, None])
    prior, n, pull = unpack_triangle(summary.prior_scale, summary.n_dims), n[:, None, None], pull[:, None, None]
    scatter = n * unpack_triangle(summary.covariances, summary.n_dims)
    scatter += pull * (shift[:, :, None] * shift[:, None, :]) + prior
    return all_from_moments(means, scatter / (summary.wishart_dof + n))


def moments_of(
    posterior: Gaussian, count: float, prior: Gaussian, strength: float, dof: float
) -> tuple[np.ndarray, np.ndarray]:
    """Undo `posterior_gaussians` for one component: the data's mean, and its variances or packed covariance.

    Where rounding would leave less than no variance, none is left.
    """
    mean = posterior.mean + strength / count * (posterior.mean - prior.mean)
    shift = mean - prior.mean
    pull = strength * count / (strength + count)
    scale = (dof + count) * covariance_of(posterior) - dof * covariance_of(prior)
    if posterior.whitener is None:
        return mean, np.maximum(scale - pull * shift**2, 0.0) / count
    scatter = scale - pull * np.outer(shift, shift)
    values, vectors = np.linalg.eigh(scatter)
    if values[0] < 0.0:
        scatter = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return mean, pack_triangle(scatter) / count
