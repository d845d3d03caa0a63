"""Fearnhead's particle filter for Dirichlet process mixtures of Gaussians: the paper's peer of table 2.1.

Called by tools/experiments/mixture/digits.py and its tests. It is no part of the agent: its memory grows with the
number of different clusters that its particles hold.
"""

import numpy as np

SCORE_BLOCK = 256  # clusters whose differences to all rows are in memory at a time


class ParticleFilter:
    """Posterior over clusterings z_1..z_t of the rows so far, as M weighted clusterings (particles).

    The component parameters are integrated out under a Normal-inverse-Wishart prior, so that a particle is a
    clustering and nothing else. A row extends each particle by every cluster it has and by a new one; of these, M
    are kept by the optimal resampling of [2]_: weights above a threshold 1/c stay as they are, the rest are drawn by
    systematic resampling and get the weight 1/c, which keeps every weight right in expectation and no two particles
    equal.

    The same cluster (set of rows) sits in many particles and is kept once: its predictive density of a row is
    computed once, and its statistics are updated once for all particles that put the row there. That changes no
    result; it only makes 10,000 particles affordable.

    Parameters
    ----------
    n_dims : int
    n_particles : int
        M.
    prior : array of shape (3,)
        kappa_0, nu_0 and s of the prior: mean at the origin, S_0 = s I (as `mixture_priors.prior_parameters` gives).
    concentration : float
        alpha.
    seed : int
        Of the resampling.

    Attributes
    ----------
    n_seen_ : int
        Rows learnt.
    log_evidence_ : float
        Estimate of log p(x_1..x_t), in nats; exact as long as no particle was dropped.

    References
    ----------
    .. [1] P. Fearnhead, Particle filters for mixture models with an unknown number of components, Statistics and
       Computing 14, 2004, 11-21.
    .. [2] P. Fearnhead, P. Clifford, On-line inference for hidden Markov models via particle filters, JRSS B 65,
       2003, 887-899.
    """

    def __init__(self, n_dims: int, *, n_particles: int, prior: np.ndarray, concentration: float = 1.0, seed: int = 0):
        if n_particles < 1:
            raise ValueError(f"n_particles: {n_particles} is below 1")
        self.n_dims, self.n_particles, self.concentration = n_dims, n_particles, concentration
        self._kappa, self._nu, scale = (float(value) for value in prior)
        self._rng = np.random.default_rng(seed)
        # Different clusters; the first is the empty one, which a row that opens a cluster joins.
        self._count = np.zeros(1)
        self._mean = np.zeros((1, n_dims))  # posterior means
        self._inverse = np.eye(n_dims)[None] / scale  # of S, the posterior scale matrices
        self._log_det = np.full(1, n_dims * np.log(scale))
        # Particles: which clusters each has (0 past the last: a particle never has the empty one), and its weight.
        self.clusters = np.zeros((1, 0), np.int64)
        self._log_weight = np.zeros(1)
        self.n_seen_ = 0
        self.log_evidence_ = 0.0

    def partial_fit(self, X: np.ndarray) -> "ParticleFilter":
        """Take rows of shape (n, n_dims) one after the other."""
        for row in np.asarray(X, np.float64):
            self._take(row)
        return self

    def _take(self, row: np.ndarray) -> None:
        difference = row - self._mean
        solved = np.matmul(self._inverse, difference[:, :, None])[:, :, 0]
        distance = np.einsum("ij,ij->i", difference, solved)
        parent, chosen = self._resample(self._log_density(distance))
        extended = self.clusters[parent]
        # A particle's clusters fill its line from the left: a new one takes the first free place.
        place = np.where(chosen == extended.shape[1], (extended > 0).sum(axis=1), chosen)
        if place.max() == extended.shape[1]:
            extended = np.hstack([extended, np.zeros((len(extended), 1), np.int64)])
        lines = np.arange(len(extended))
        grown, name = np.unique(extended[lines, place], return_inverse=True)
        extended[lines, place] = len(self._count) + name
        is_used = np.zeros(len(self._count) + len(grown), bool)
        is_used[0] = True
        is_used[extended] = True
        self.clusters = (np.cumsum(is_used) - 1)[extended[:, : (extended > 0).sum(axis=1).max()]]
        self._renew(np.flatnonzero(is_used[: len(self._count)]), grown, difference, solved, distance)
        self.n_seen_ += 1

    def _resample(self, log_density: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (particle, column of its cluster, or their number for a new one) of each descendant kept."""
        n_columns = self.clusters.shape[1]
        share = np.append(np.log(np.maximum(self._count[1:], 1.0)) + log_density[1:], -np.inf)
        # Index -1 of `share` is "no cluster here", as 0 stands for that in the particles' lines.
        log_weight = np.empty((len(self.clusters), n_columns + 1))
        log_weight[:, :n_columns] = share[self.clusters - 1]
        log_weight[:, n_columns] = np.log(self.concentration) + log_density[0]
        log_weight += self._log_weight[:, None] - np.log(self.concentration + self.n_seen_)
        top = log_weight.max()
        weight = np.exp(log_weight - top).ravel()
        total = weight.sum()
        self.log_evidence_ += top + np.log(total)
        weight /= total
        kept, kept_weight = optimal_resampling(weight, self.n_particles, self._rng.random())
        self._log_weight = np.log(kept_weight / kept_weight.sum())
        return kept // (n_columns + 1), kept % (n_columns + 1)

    def _log_density(self, distance: np.ndarray) -> np.ndarray:
        """Return each cluster's log predictive density from (x - m)' S^-1 (x - m), of shape (..., n_clusters)."""
        kappa, nu = self._kappa + self._count, self._nu + self._count
        return student_log_density(distance, self._log_det, kappa, nu, self.n_dims)

    def _renew(self, kept: np.ndarray, old: np.ndarray, difference, solved, distance) -> None:
        """Keep the clusters `kept`, and append the clusters `old` with the row added.

        S + r d d', with d the row less the posterior mean and r = kappa / (kappa + 1), is inverted by Sherman and
        Morrison's formula.
        """
        kappa = self._kappa + self._count[old]
        ratio = kappa / (kappa + 1.0)
        step = ratio / (1.0 + ratio * distance[old])
        added = solved[old]
        inverse = self._inverse[old]
        inverse -= (step[:, None] * added)[:, :, None] * added[:, None, :]
        log_det = self._log_det[old] + np.log1p(ratio * distance[old])
        mean = self._mean[old] + difference[old] / (kappa + 1.0)[:, None]
        self._inverse = np.concatenate([self._inverse[kept], inverse])
        self._log_det = np.append(self._log_det[kept], log_det)
        self._mean = np.vstack([self._mean[kept], mean])
        self._count = np.append(self._count[kept], self._count[old] + 1.0)

    @property
    def clusterings(self) -> list[np.ndarray]:
        """The sizes of each particle's clusters, in the order in which they began."""
        return [self._count[line[line > 0]] for line in self.clusters]

    @property
    def weights(self) -> np.ndarray:
        """The particles' weights, (n_particles,) float64; they sum to one."""
        return np.exp(self._log_weight)

    @property
    def n_components_(self) -> int:
        """Clusters of the particle with the greatest weight."""
        return int((self.clusters[self._log_weight.argmax()] > 0).sum())

    def _log_densities(self, X: np.ndarray, which: np.ndarray) -> np.ndarray:
        """Return log densities of shape (n, len(which)) of rows under clusters."""
        rows = np.asarray(X, np.float64)
        distance = np.zeros((len(rows), len(self._count)))
        for first in range(0, len(which), SCORE_BLOCK):
            some = which[first : first + SCORE_BLOCK]
            difference = rows - self._mean[some][:, None]
            solved = np.matmul(difference, self._inverse[some])
            distance[:, some] = np.einsum("kij,kij->ik", difference, solved)
        return self._log_density(distance)[:, which]

    def score_samples(self, X: np.ndarray) -> np.ndarray:
        """Return the log predictive density of each row, averaged over all particles, float64, in nats."""
        held = np.repeat(self.weights, self.clusters.shape[1])
        weight = self._count * np.bincount(self.clusters.ravel(), weights=held, minlength=len(self._count))
        weight[0] = self.concentration
        log_joint = self._log_densities(X, np.arange(len(self._count)))
        log_joint += np.log(weight / (self.n_seen_ + self.concentration))
        return np.logaddexp.reduce(log_joint, axis=1)

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return for each row the place of its likeliest cluster in the particle with the greatest weight, int64."""
        line = self.clusters[self._log_weight.argmax()]
        which = line[line > 0]
        return (self._log_densities(X, which) + np.log(self._count[which])).argmax(axis=1)

    def memory_bytes(self) -> int:
        """Return the bytes of all arrays now; they grow and shrink with the clusters that the particles hold."""
        arrays = (self._count, self._mean, self._inverse, self._log_det, self.clusters, self._log_weight)
        return sum(array.nbytes for array in arrays)


def optimal_resampling(weight: np.ndarray, n_kept: int, uniform: float) -> tuple[np.ndarray, np.ndarray]:
    """Return (places, weights) of at most `n_kept` of the weights, each unbiased, the expected error least.

    weight : ndarray of shape (n,), float64, sums to one; zeros are never kept
    uniform : float in [0, 1), the one random number of the systematic resampling

    Fearnhead and Clifford (2003), section 3.2: the threshold 1/c solves sum_i min(c w_i, 1) = n_kept.
    """
    alive = np.flatnonzero(weight)
    if len(alive) <= n_kept:
        return alive, weight[alive]
    weight = weight[alive]
    order = np.argpartition(-weight, n_kept - 1)
    first = order[:n_kept][np.argsort(-weight[order[:n_kept]], kind="stable")]
    # With the a largest kept as they are, c = (n_kept - a) / (sum of the rest); a is the least that leaves all others
    # at c w <= 1.
    rest = weight[order[n_kept:]].sum() + np.cumsum(weight[first][::-1])[::-1]
    c = (n_kept - np.arange(n_kept)) / rest
    n_whole = int(np.argmax(c * weight[first] <= 1.0)) if (c * weight[first] <= 1.0).any() else n_kept - 1
    whole = first[:n_whole]
    is_other = np.ones(len(weight), bool)
    is_other[whole] = False
    others = np.flatnonzero(is_other)
    ticks = np.floor(np.cumsum(weight[others]) * c[n_whole] + uniform)
    drawn = others[np.diff(ticks, prepend=np.floor(uniform)) > 0.0][: n_kept - n_whole]
    kept = np.concatenate([whole, drawn])
    kept_weight = np.concatenate([weight[whole], np.full(len(drawn), 1.0 / c[n_whole])])
    return alive[kept], kept_weight


def student_log_density(
    distance: np.ndarray, log_det: np.ndarray, kappa: np.ndarray, nu: np.ndarray, n_dims: int
) -> np.ndarray:
    """Return the log of the Student-t predictive of a Normal-inverse-Wishart posterior, in nats.

    distance : (x - m)' S^-1 (x - m), ndarray of shape (..., n_clusters), S being the posterior's scale matrix
    log_det, kappa, nu : ndarray of shape (n_clusters,), log det S and the posterior's two counts
    """
    from scipy.special import gammaln

    half = 0.5 * (nu + 1.0)
    constant = gammaln(half) - gammaln(half - 0.5 * n_dims) - 0.5 * log_det
    constant -= 0.5 * n_dims * np.log(np.pi * (kappa + 1.0) / kappa)
    return constant - half * np.log1p(distance * (kappa / (kappa + 1.0)))
