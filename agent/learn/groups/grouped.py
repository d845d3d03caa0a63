"""The public mixture of groups that share clusters: GMC, S-GMC, and as one group BGMM and VDP.

Called by tools/survey/ and by users of the library. It holds all rows while it learns; agent/learn/mixture/ is for
streams.
"""

from typing import Any, Self

import numpy as np

from stillwatch.learn.base import Configured, check_rows, not_fitted
from stillwatch.learn.groups.contexts import GroupWeights
from stillwatch.learn.groups.gaussian import Clusters, GaussPrior
from stillwatch.learn.groups.items import Items
from stillwatch.learn.groups.rows import Data, group_index, threads
from stillwatch.learn.groups.splitting import Search
from stillwatch.learn.groups.starting import best_search
from stillwatch.learn.groups.variational import Fit, add_weights, expect, normalise
from stillwatch.learn.groups.weights import WEIGHTS


def check_settings(**positive: float) -> None:
    """Raise ValueError for the first setting that is not a number above 0."""
    for name, value in positive.items():
        if not (np.isfinite(value) and value > 0):
            raise ValueError(f"{name}: {value!r} is not a number above 0")


class GroupedMixture(Configured):
    """Gaussian clusters shared by groups, each group with its own weights; their number follows from the data.

    Groups are dives, albums, cameras, days. With Dirichlet weights it is the S-GMC, with generalised Dirichlet ones the
    GMC; with one group they are the BGMM and, with stick-breaking weights, the VDP.

    Parameters
    ----------
    weights : {"dirichlet", "generalised_dirichlet", "stick_breaking"}
        Prior of a group's weights. It hardly matters with much data.
    c_width : float
        C_width: the covariance that a cluster is expected to have, in units of the largest eigenvalue of the data's.
        The one knob: smaller gives more clusters.
    is_whitened : bool
        The data has unit variance everywhere: C_width is then in squared units of the data itself.
    concentration : float
        alpha, or a = b, or the Dirichlet process's alpha.
    tolerance : float
        The part of the free energy that a round, or a split, must lower it by to go on.
    sparse : bool
        Leave a cluster out of groups that have less than one point of it. Faster with many groups.
    max_clusters : int
        Splits end there.
    n_drawn : int or None
        Clumps are drawn as points of their own Gaussians, about this many at most in all groups: each point then has
        a label of its own. None takes clumps whole, each with one label: exact for clumps that straddle no clusters.
    n_init : int
        Searches, of which that of least free energy is kept. The first begins with one cluster, as the thesis has it;
        further ones begin with k-means of 8, 16, 4 and 24 clusters, in turn. They pay with few rows (hundreds), where
        single splits end early, and cost as much as the first each.
    n_jobs : int
        Threads. Their number changes no bit of the result.
    seed : int
        Of the points drawn, and of k-means.

    Attributes
    ----------
    labels_ : ndarray of shape (n,), int64
        The most probable cluster of each row of the fit; clusters are numbered by size, largest first.
    groups_ : ndarray of shape (J,)
        The groups' names, ascending.
    weights_ : ndarray of shape (J, K), float64
        E[pi_jk].
    means_, covariances_ : ndarray of shape (K, n_features), (K, n_features, n_features), float64
    counts_ : ndarray of shape (J, K), float64
        Points of each group in each cluster, fractions included.
    free_energy_, free_energies_ : float, list of float
        The negative bound on log p(data), nats, at the end and after every round; comparable within one model alone.
    n_features_in_, n_clusters_ : int

    References
    ----------
    .. [1] D. M. Steinberg, An Unsupervised Approach to Modelling Visual Data, PhD thesis, University of Sydney, 2013,
       chapter 4 and algorithm 5.1; equation numbers here are the thesis's.

    Examples
    --------
    >>> import numpy as np
    >>> from stillwatch.learn import GroupedMixture
    >>> rng = np.random.default_rng(0)
    >>> sand, reef = rng.normal(-4.0, 1.0, (300, 2)), rng.normal(4.0, 1.0, (100, 2))
    >>> X, dives = np.concatenate([sand, reef]), np.repeat(["first", "second", "first", "second"], [240, 60, 10, 90])
    >>> model = GroupedMixture(c_width=0.1).fit(X, groups=dives)
    >>> model.n_clusters_, model.groups_.tolist(), model.weights_.round(1).tolist()
    (2, ['first', 'second'], [[1.0, 0.0], [0.4, 0.6]])
    >>> model.predict([[-4.0, -4.0], [4.0, 4.0]]).tolist()
    [0, 1]
    """

    _estimator_kind = "clusterer"

    def __init__(
        self,
        *,
        weights: str = "dirichlet",
        c_width: float = 0.04,
        is_whitened: bool = False,
        concentration: float = 1.0,
        tolerance: float = 1e-5,
        sparse: bool = False,
        max_clusters: int = 200,
        n_drawn: int | None = None,
        n_init: int = 1,
        n_jobs: int = 1,
        seed: int = 0,
    ):
        self.weights = weights
        self.c_width = c_width
        self.is_whitened = is_whitened
        self.concentration = concentration
        self.tolerance = tolerance
        self.sparse = sparse
        self.max_clusters = max_clusters
        self.n_drawn = n_drawn
        self.n_init = n_init
        self.n_jobs = n_jobs
        self.seed = seed

    def fit(
        self, X: np.ndarray, y: Any = None, *, groups: Any = None, counts: Any = None, covariances: Any = None
    ) -> Self:
        """Learn from points, clumps, or both at once.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Points, and means of clumps.
        y : ignored
        groups : array-like of shape (n,), or None
            The group of each row, by any name; None is one group.
        counts : array-like of shape (n,), or None
            Points that each row stands for.
        covariances : array-like of shape (m, n_features, n_features), (m, n_features (n_features + 1) / 2) or
            (m, n_features), or None
            Of the first m rows' points about their mean: whole, the lower triangles, or variances. Other rows have
            none. `MemoryBoundedMixture.clumps_` gives "count", "mean" and one of the last two forms.

        Raises ValueError where a setting, a shape or a value is wrong; nothing changes then.
        """
        check_settings(
            c_width=self.c_width,
            concentration=self.concentration,
            tolerance=self.tolerance,
            max_clusters=self.max_clusters,
            n_drawn=1 if self.n_drawn is None else self.n_drawn,
            n_init=self.n_init,
            n_jobs=self.n_jobs,
        )
        if self.weights not in WEIGHTS:
            raise ValueError(f"weights: {self.weights!r} is not one of {sorted(WEIGHTS)}")
        data = Data.check(X, counts, covariances, type(self).__name__)
        names, index = group_index(groups, len(data.x))
        order = np.argsort(index, kind="stable")
        unit = 1.0 if self.is_whitened else data.widest_variance()
        search = Search(
            prior=GaussPrior(data.x.shape[1], self.c_width * unit),
            context=GroupWeights(WEIGHTS[self.weights], self.concentration),
            tolerance=self.tolerance,
            max_clusters=self.max_clusters,
            is_sparse=self.sparse,
        )
        n_drawn = None if data.spreads is None else self.n_drawn
        with threads(self.n_jobs) as pool:
            whole = data.items(index, len(names), order, pool)
            items = whole if n_drawn is None else whole.drawn(n_drawn, self.seed)
            fit = best_search(items, search, self.n_init, self.seed)
            found = fit.expected if n_drawn is None else expect(whole, fit.clusters, fit.step.log_weights)
        by_size = np.argsort(-fit.clusters.count, kind="stable")
        self.n_features_in_ = data.x.shape[1]
        # What was drawn of a group stands for all of it.
        scale = np.ones(len(names)) if n_drawn is None else whole.per_parent() / np.maximum(items.per_parent(), 1.0)
        self._take(data.mean, names, search, fit, by_size, scale)
        self.labels_ = np.empty(len(data.x), np.int64)
        self.labels_[order] = np.argsort(by_size)[found.q.argmax(axis=0)]
        return self

    def _take(
        self, shift: np.ndarray, names: np.ndarray, search: Search, fit: Fit, by_size: np.ndarray, scale: np.ndarray
    ) -> None:
        """Keep what the fit found, its clusters by size; `scale` turns what each group had in the fit into its own."""
        self._shift = shift
        self._clusters = Clusters(search.prior, fit.clusters.moments[by_size])
        self._log_weights = fit.step.log_weights[:, by_size]
        rule = WEIGHTS[self.weights]
        self.groups_, self.counts_ = names, fit.expected.mass[:, by_size] * scale[:, None]
        self.weights_ = rule(self.counts_, self.concentration).mean
        pooled = rule(self.counts_.sum(axis=0, keepdims=True), self.concentration)
        self._pooled = (pooled.log_mean, pooled.mean)
        self.n_clusters_ = len(by_size)
        self.means_ = self._clusters.mean + self._shift
        self.covariances_ = self._clusters.covariance
        self.free_energies_ = fit.free_energies
        self.free_energy_ = fit.free_energy

    def fit_predict(self, X: np.ndarray, y: Any = None, **given: Any) -> np.ndarray:
        """Return `labels_` after `fit`."""
        return self.fit(X, y, **given).labels_

    def _asked(self, X: Any, groups: Any) -> tuple[Items, np.ndarray]:
        """Return rows to be asked about, and which weights each has: its group's, or the last, those of all groups."""
        if "n_features_in_" not in vars(self):
            raise not_fitted("GroupedMixture has seen no rows yet: fit it first")
        x = check_rows(X, self.n_features_in_, type(self).__name__).astype(np.float64)
        if groups is None:
            parents = np.full(len(x), 0 if len(self.groups_) == 1 else len(self.groups_))
        else:
            given = np.asarray(groups)
            if given.shape != (len(x),):
                raise ValueError(f"groups: shape {given.shape} is not ({len(x)},), one for each row")
            place = np.minimum(np.searchsorted(self.groups_, given), len(self.groups_) - 1)
            parents = np.where(self.groups_[place] == given, place, len(self.groups_))
        return Items(x - self._shift, parents, len(self.groups_) + 1), parents

    def predict_proba(self, X: np.ndarray, groups: Any = None) -> np.ndarray:
        """Return q(z) of rows, (n, K) float64, by their groups' weights; a group never seen has those of all."""
        items, _ = self._asked(X, groups)
        table = np.concatenate([self._log_weights, self._pooled[0]])
        coefficients = self._clusters.coefficients()

        def work(part: slice, sums: np.ndarray) -> np.ndarray:
            logs = coefficients @ sums
            add_weights(logs, items, part, table)
            normalise(logs)
            return logs.T

        return np.concatenate([np.empty((0, self.n_clusters_)), *items.each(work)])

    def predict(self, X: np.ndarray, groups: Any = None) -> np.ndarray:
        """Return the most probable cluster of rows, (n,) int64."""
        return self.predict_proba(X, groups).argmax(axis=1)

    def score_samples(self, X: np.ndarray, groups: Any = None) -> np.ndarray:
        """Return the log density of rows by the expected weights, means and precisions, (n,) float64 (4.14)."""
        items, parents = self._asked(X, groups)
        table = np.concatenate([self.weights_, self._pooled[1]])
        factor = np.linalg.cholesky(self._clusters.covariance)
        half_log_det = np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)
        logs = np.empty((self.n_clusters_, len(items)))
        for k in range(self.n_clusters_):
            z = np.linalg.solve(factor[k], (items.x - self._clusters.mean[k]).T)
            logs[k] = -0.5 * (z * z).sum(axis=0) - half_log_det[k] - 0.5 * items.n_dims * np.log(2.0 * np.pi)
        logs += np.log(np.maximum(table[parents].T, np.finfo(float).tiny))
        return np.logaddexp.reduce(logs, axis=0)

    def score(self, X: np.ndarray, y: Any = None, groups: Any = None) -> float:
        """Return the mean of `score_samples`, nats a row."""
        return float(self.score_samples(X, groups).mean())

    def __sklearn_is_fitted__(self) -> bool:
        return "n_features_in_" in vars(self)
