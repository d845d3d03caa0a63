"""Mixtures to mirror, as a vehicle learns them, and an independent Student-t predictive to compare assignments.

Used by the mirror's tests. The predictive follows Murphy (2007), equation 258, and in one dimension 100, and
shares no code with the agent.
"""

import warnings

import numpy as np
from scipy.special import gammaln
from threadpoolctl import threadpool_limits

from stillwatch.transport.wire.messages import Headers, Model


def clustered_rows(rng: np.random.Generator, n_rows: int, n_clusters: int, n_dims: int) -> np.ndarray:
    """Return rows like projected descriptors: spread falling with dimension, clusters of all sizes that overlap."""
    scale = 1.0 / np.sqrt(1.0 + np.arange(n_dims))
    weights = rng.dirichlet(np.full(n_clusters, 1.0))
    centres = rng.normal(size=(n_clusters, n_dims)) * scale
    shapes = rng.normal(size=(n_clusters, n_dims, n_dims)) * 0.15 * scale[:, None] + 0.35 * np.eye(n_dims) * scale
    spread = np.exp(0.4 * rng.normal(size=(n_clusters, 1)))
    labels = rng.choice(n_clusters, n_rows, p=weights)
    return centres[labels] + spread[labels] * np.einsum("nij,nj->ni", shapes[labels], rng.normal(size=(n_rows, n_dims)))


def fitted_model(rows: np.ndarray, n_components: int, is_full: bool, epoch: int = 1, seed: int = 0) -> Model:
    """Return the Model message of a mixture fitted to the rows by scikit-learn: a vehicle's model as it would be."""
    from sklearn.mixture import GaussianMixture

    kind = "full" if is_full else "diag"
    fit = GaussianMixture(
        n_components, covariance_type=kind, max_iter=8, random_state=seed, init_params="random_from_data"
    )
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")  # that eight iterations do not converge
        fit.fit(rows)
    d = rows.shape[1]
    order = np.argsort(-fit.weights_)
    tril = np.tril_indices(d)
    second = fit.covariances_[order][:, tril[0], tril[1]] if is_full else fit.covariances_[order]
    spread = rows.var(axis=0).mean()
    prior = np.diag(np.full(d, 0.1 * spread * d))[tril] if is_full else np.full(d, 0.1 * spread)
    return model_message(
        np.arange(n_components) * 3 + 5,
        fit.weights_[order] * 1e5,
        fit.means_[order],
        second,
        rows.mean(axis=0),
        prior,
        is_full,
        epoch,
    )


def model_message(ids, counts, means, second, prior_mean, prior_scale, is_full, epoch) -> Model:
    """Return a Model message in float64 from its arrays."""
    k, d = means.shape
    header = Headers("cam1", "run", "boot", 1).next(Model, t_ns=0, mono_ns=0, wall_ns=0)
    return Model(
        **header,
        which="patches",
        covariance="full" if is_full else "diagonal",
        n_dims=d,
        n_components=k,
        model_epoch=epoch,
        ids=np.asarray(ids, np.int64),
        counts=np.asarray(counts, np.float64),
        weights=np.asarray(counts, np.float64) / (np.sum(counts) + 1.0),
        means=np.asarray(means, np.float64),
        variances=None if is_full else np.asarray(second, np.float64),
        covariances=np.asarray(second, np.float64) if is_full else None,
        prior_mean=np.asarray(prior_mean, np.float64),
        prior_scale=np.asarray(prior_scale, np.float64),
        prior_strength=0.01,
        prior_dof=float(d) if is_full else 1.0,
        concentration=1.0,
    )


def assignments(summary, rows: np.ndarray) -> np.ndarray:
    """Return the id of the component with the highest predictive responsibility for each row."""
    scores = np.empty((len(summary.ids), len(rows)))
    for k in range(len(summary.ids)):
        scores[k] = np.log(summary.counts[k]) + _log_predictive(summary, k, rows)
    return np.asarray(summary.ids)[scores.argmax(axis=0)]


def _log_predictive(summary, k: int, rows: np.ndarray) -> np.ndarray:
    n, strength, dof = summary.counts[k], summary.prior_strength, summary.prior_dof
    d = len(summary.prior_mean)
    kappa, nu = strength + n, dof + n
    mean = (strength * summary.prior_mean + n * summary.means[k]) / kappa
    shift = summary.means[k] - summary.prior_mean
    if summary.covariances is None:
        nu = 2.0 * dof + n
        scale = 2.0 * summary.prior_scale + n * summary.variances[k] + strength * n / kappa * shift**2
        square = (rows - mean) ** 2 / (scale * (kappa + 1) / kappa)
        constant = gammaln((nu + 1) / 2) - gammaln(nu / 2) - 0.5 * np.log(np.pi * scale * (kappa + 1) / kappa)
        return (constant - 0.5 * (nu + 1) * np.log1p(square)).sum(axis=1)
    scale = _square(summary.prior_scale, d) + n * _square(summary.covariances[k], d)
    scale = scale + strength * n / kappa * np.outer(shift, shift)
    free = nu - d + 1
    matrix = scale * (kappa + 1) / (kappa * free)
    distance = ((rows - mean) @ np.linalg.inv(matrix) * (rows - mean)).sum(axis=1)
    constant = gammaln((free + d) / 2) - gammaln(free / 2) - 0.5 * d * np.log(free * np.pi)
    return constant - 0.5 * np.linalg.slogdet(matrix)[1] - 0.5 * (free + d) * np.log1p(distance / free)


def _square(packed: np.ndarray, d: int) -> np.ndarray:
    matrix = np.zeros((d, d))
    matrix[np.tril_indices(d)] = packed
    return matrix + np.tril(matrix, -1).T
