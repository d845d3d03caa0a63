"""Streaming variational Bayes for a mixture of Gaussians: the posterior of one batch is the prior of the next.

Called by tools/experiments/mixture/digits.py and its tests. A peer, no part of the agent: it forgets no count, but it
fits each batch as if rows came in random order.
"""

import numpy as np

from stillwatch.tools.experiments.mixture.particle_filter import student_log_density

MAX_ITERATIONS = 50
TOLERANCE = 1e-3  # largest change of a responsibility at which updates stop


class StreamingMixture:
    """Finite mixture of full Gaussians, learnt batch by batch; nothing is kept but the posterior.

    Dirichlet weights and a Normal-inverse-Wishart prior with scikit-learn's defaults: 1/K, kappa_0 = 1, nu_0 =
    n_dims, S_0 = the first batch's covariance, mean_0 = its mean. The first batch begins from k-means.

    Parameters
    ----------
    n_dims, n_components, batch : int
        Width of the rows, K, rows learnt at a time. A last batch may be smaller; the first may not be below K.
    seed : int
        Of k-means.

    References
    ----------
    .. [1] T. Broderick, N. Boyd, A. Wibisono, A. Wilson, M. Jordan, Streaming variational Bayes, NIPS 2013.
    .. [2] C. Bishop, Pattern Recognition and Machine Learning, 2006, section 10.2: the updates.
    """

    def __init__(self, n_dims: int, *, n_components: int = 30, batch: int = 300, seed: int = 0):
        self.n_dims, self.n_components, self.batch, self.seed = n_dims, n_components, batch, seed
        self._weight = np.full(n_components, 1.0 / n_components)
        self._kappa = np.ones(n_components)
        self._nu = np.full(n_components, float(n_dims))
        self._mean = np.zeros((n_components, n_dims))
        self._scatter = np.zeros((n_components, n_dims, n_dims))
        self._is_fitted = False

    def partial_fit(self, X: np.ndarray) -> "StreamingMixture":
        """Learn rows of shape (n, n_dims), `batch` at a time."""
        rows = np.asarray(X, np.float64)
        for first in range(0, len(rows), self.batch):
            self._learn(rows[first : first + self.batch])
        return self

    def _learn(self, rows: np.ndarray) -> None:
        shares = self._shares(rows) if self._is_fitted else self._begin(rows)
        prior = (self._weight, self._kappa, self._nu, self._mean, self._scatter)
        for _ in range(MAX_ITERATIONS):
            self._update(prior, rows, shares)
            last, shares = shares, self._shares(rows)
            if np.abs(shares - last).max() < TOLERANCE:
                break
        self._update(prior, rows, shares)

    def _begin(self, rows: np.ndarray) -> np.ndarray:
        """Set the prior from the first batch; return its hard responsibilities by k-means."""
        from sklearn.cluster import KMeans

        self._is_fitted = True
        self._mean = np.repeat(rows.mean(axis=0)[None], self.n_components, axis=0)
        self._scatter = np.repeat(np.cov(rows.T)[None], self.n_components, axis=0)
        labels = KMeans(self.n_components, n_init=1, random_state=self.seed).fit_predict(rows)
        return np.eye(self.n_components)[labels]

    def _update(self, prior: tuple[np.ndarray, ...], rows: np.ndarray, shares: np.ndarray) -> None:
        """Set the posterior to prior plus expected statistics (Bishop 10.58 to 10.63)."""
        weight, kappa, nu, mean, scatter = prior
        count = shares.sum(axis=0)
        self._weight, self._kappa, self._nu = weight + count, kappa + count, nu + count
        self._mean = (kappa[:, None] * mean + shares.T @ rows) / self._kappa[:, None]
        # Scatter about the new mean, and the prior mean's distance from it: no difference of large sums.
        self._scatter = np.empty_like(scatter)
        for k in range(self.n_components):
            off, pull = rows - self._mean[k], mean[k] - self._mean[k]
            self._scatter[k] = scatter[k] + (shares[:, k, None] * off).T @ off + kappa[k] * np.outer(pull, pull)

    def _distances(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (x - m)' S^-1 (x - m), (n, K), and log det S, (K,)."""
        factor = np.linalg.cholesky(self._scatter)
        off = (rows - self._mean[:, None]).transpose(0, 2, 1)
        distance = (np.linalg.solve(factor, off) ** 2).sum(axis=1).T
        return distance, 2.0 * np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)

    def _shares(self, rows: np.ndarray) -> np.ndarray:
        """Return responsibilities under the expected log densities (Bishop 10.46, 10.64 to 10.66)."""
        from scipy.special import digamma

        distance, log_det = self._distances(rows)
        log_precision = digamma(0.5 * (self._nu[:, None] - np.arange(self.n_dims))).sum(axis=1) - log_det
        log_joint = digamma(self._weight) + 0.5 * (log_precision - self.n_dims / self._kappa)
        log_joint = log_joint - 0.5 * self._nu * distance
        shares = np.exp(log_joint - log_joint.max(axis=1, keepdims=True))
        return shares / shares.sum(axis=1, keepdims=True)

    def _log_joint(self, X: np.ndarray) -> np.ndarray:
        distance, log_det = self._distances(np.asarray(X, np.float64))
        density = student_log_density(distance, log_det, self._kappa, self._nu, self.n_dims)
        return density + np.log(self._weight / self._weight.sum())

    def score_samples(self, X: np.ndarray) -> np.ndarray:
        """Return the log posterior predictive density of each row, float64, in nats."""
        log_joint = self._log_joint(X)
        return np.logaddexp.reduce(log_joint, axis=1)

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the likeliest component of each row, int64."""
        return self._log_joint(X).argmax(axis=1)

    def memory_bytes(self) -> int:
        """Return the bytes of the posterior and of one batch with its responsibilities."""
        arrays = (self._weight, self._kappa, self._nu, self._mean, self._scatter)
        return sum(array.nbytes for array in arrays) + 8 * self.batch * (self.n_dims + self.n_components)
