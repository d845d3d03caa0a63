"""The public model of segments and images together: SCM, and MCM where images have descriptors of their own.

Called by tools/survey/ and by users of the library. It holds all rows while it learns.
"""

from dataclasses import replace
from typing import Any, Self

import numpy as np

from stillwatch.learn.base import Configured, check_rows, not_fitted
from stillwatch.learn.groups.contexts import ImageLabels
from stillwatch.learn.groups.gaussian import Clusters, GaussPrior
from stillwatch.learn.groups.grouped import check_settings
from stillwatch.learn.groups.items import Items
from stillwatch.learn.groups.joining import join_kinds
from stillwatch.learn.groups.rows import Data, group_index, threads
from stillwatch.learn.groups.splitting import Search, search_clusters
from stillwatch.learn.groups.variational import Fit, expect
from stillwatch.learn.groups.weights import WEIGHTS

# A kind of image that explains fewer segments than this is empty, and left out (the author's library).
LEAST_SEGMENTS = 1.0
ROUNDS_OF_PREDICTION = 20


class SimultaneousMixture(Configured):
    """Clusters of segments and kinds of images, learnt together: a kind is a mix of clusters (SCM).

    With a descriptor for each whole image, a kind is a Gaussian over descriptors too (MCM). Groups (dives, albums)
    have their own weights of kinds. Kinds begin at random, `max_kinds` of them, and those without images are left
    out; clusters of segments are split greedily.

    Parameters
    ----------
    weights, concentration
        Prior of a group's weights of kinds, as `GroupedMixture` has it.
    phi : float
        Dirichlet parameter of a kind's mix of clusters. Large gives fewer kinds.
    c_width : float
        C_width of segments, in squared units of the data, which is whitened; `is_whitened=False` measures it by the
        largest eigenvalue of the data's covariance.
    image_width : float
        C_width of descriptors, in units of the largest eigenvalue of their covariance.
    is_whitened : bool
    max_kinds : int
    n_init : int
        Starts. The first, without joins, is the thesis's; each further one draws the kinds anew over the clusters
        found so far, so that kinds form where clusters are known. That of the least free energy is kept.
    join_kinds : bool
        Join two kinds where that lowers the free energy, after each start. Without it a start ends as the thesis's
        does, with kinds that are one in several pieces.
    tolerance, max_clusters, n_jobs
        As `GroupedMixture` has them.
    seed : int
        Of the random starts.

    Attributes
    ----------
    labels_ : ndarray of shape (n_images,), int64
        The kind of each image; kinds are numbered by their images, most first.
    segment_labels_ : ndarray of shape (n,), int64
        The cluster of each row, by size.
    mixes_ : ndarray of shape (T, K), float64
        E[beta_t]: the mix of clusters of each kind.
    groups_, weights_ : names of groups, and E[pi_jt] of shape (J, T)
    means_, covariances_ : of segment clusters, (K, n_features), (K, n_features, n_features)
    kind_means_ : ndarray of shape (T, n_descriptor), or None
    free_energy_, free_energies_, n_features_in_, n_clusters_, n_kinds_

    References
    ----------
    .. [1] D. M. Steinberg, An Unsupervised Approach to Modelling Visual Data, PhD thesis, University of Sydney, 2013,
       chapters 5 and 6, algorithm 5.1.

    Examples
    --------
    Two kinds of pictures of four segments: one of sand alone, one of sand and rock.

    >>> import numpy as np
    >>> from stillwatch.learn import SimultaneousMixture
    >>> rng = np.random.default_rng(0)
    >>> images = np.repeat(np.arange(60), 4)
    >>> is_rock = (images >= 30) & (np.arange(240) % 4 > 1)
    >>> X = np.where(is_rock[:, None], 3.0, -3.0) + rng.normal(size=(240, 2))
    >>> model = SimultaneousMixture(c_width=1.0, max_kinds=5).fit(X, images=images)
    >>> model.n_clusters_, model.n_kinds_, model.mixes_.round(1).tolist()
    (2, 2, [[0.5, 0.5], [1.0, 0.0]])
    """

    _estimator_kind = "clusterer"

    def __init__(
        self,
        *,
        weights: str = "generalised_dirichlet",
        concentration: float = 1.0,
        phi: float = 1.0,
        c_width: float = 1.0,
        image_width: float = 0.05,
        is_whitened: bool = True,
        max_kinds: int = 30,
        n_init: int = 4,
        join_kinds: bool = True,
        tolerance: float = 1e-5,
        max_clusters: int = 200,
        n_jobs: int = 1,
        seed: int = 0,
    ):
        self.weights = weights
        self.concentration = concentration
        self.phi = phi
        self.c_width = c_width
        self.image_width = image_width
        self.is_whitened = is_whitened
        self.max_kinds = max_kinds
        self.n_init = n_init
        self.join_kinds = join_kinds
        self.tolerance = tolerance
        self.max_clusters = max_clusters
        self.n_jobs = n_jobs
        self.seed = seed

    def fit(
        self,
        X: np.ndarray,
        y: Any = None,
        *,
        images: Any = None,
        groups: Any = None,
        descriptors: Any = None,
        counts: Any = None,
        covariances: Any = None,
    ) -> Self:
        """Learn from the segments of images.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Segments, or clumps of them.
        y : ignored
        images : array-like of int, shape (n,), or None
            The image of each row, from 0; None makes an image of each row. Images may have no rows.
        groups : array-like of shape (n_images,), or None
            The group of each image, by any name.
        descriptors : array-like of shape (n_images, n_descriptor), or None
        counts, covariances
            Of rows that are clumps, as `GroupedMixture.fit` takes them.

        Raises ValueError where a setting, a shape or a value is wrong; nothing changes then.
        """
        self._check_settings()
        data = Data.check(X, counts, covariances, type(self).__name__)
        index, n_images = image_index(images, groups, descriptors, len(data.x))
        names, of_group = group_index(groups, n_images)
        whole = None if descriptors is None else Data.check(descriptors, None, None, type(self).__name__)
        # Images in the order of their groups, segments in the order of their images.
        by_group = np.argsort(of_group, kind="stable")
        place = np.argsort(by_group, kind="stable")[index]
        order = np.argsort(place, kind="stable")
        unit = 1.0 if self.is_whitened else data.widest_variance()
        prior = GaussPrior(data.x.shape[1], self.c_width * unit)
        rng = np.random.default_rng(self.seed)
        best: Fit | None = None
        with threads(self.n_jobs) as pool:
            items = data.items(place, n_images, order, pool)
            context = self._context(of_group[by_group], len(names), whole, by_group)
            search = Search(prior, context, self.tolerance, self.max_clusters, False)
            for _ in range(self.n_init):
                found = self._one_start(items, search, n_images, rng, best)
                if best is None or found.free_energy < best.free_energy:
                    best = found
        assert best is not None
        self._take(data, whole, names, context, best, search)
        self.segment_labels_, self.labels_ = np.empty(len(data.x), np.int64), np.empty(n_images, np.int64)
        self.segment_labels_[order] = np.argsort(self._by_size)[best.expected.q.argmax(axis=0)]
        self.labels_[by_group] = np.argsort(self._by_images)[best.step.state.argmax(axis=1)]
        return self

    def _check_settings(self) -> None:
        names = ("c_width", "image_width", "concentration", "phi", "tolerance")
        check_settings(**{name: getattr(self, name) for name in (*names, "max_kinds", "n_init", "n_jobs")})
        if self.weights not in WEIGHTS:
            raise ValueError(f"weights: {self.weights!r} is not one of {sorted(WEIGHTS)}")

    def _context(self, of_group: np.ndarray, n_groups: int, whole: Data | None, by_group: np.ndarray) -> ImageLabels:
        rule = WEIGHTS[self.weights]
        if whole is None:
            return ImageLabels(rule, self.concentration, self.phi, of_group, n_groups)
        prior = GaussPrior(whole.x.shape[1], self.image_width * whole.widest_variance())
        one = np.zeros(len(whole.x), np.int64)
        described = whole.items(one, 1, by_group, None)
        return ImageLabels(rule, self.concentration, self.phi, of_group, n_groups, described, prior)

    def _one_start(self, items: Items, search: Search, n_images: int, rng: np.random.Generator, fit: Fit | None) -> Fit:
        """Return the fit of one random start: search and join kinds in turn, until neither lowers F.

        fit : whose clusters it begins with; None begins with one
        """
        state = rng.random((n_images, self.max_kinds))
        state /= state.sum(axis=1, keepdims=True)
        fit = self._searched(items, search, state, fit)
        while self.join_kinds:
            joined = join_kinds(items, search, fit)
            if joined is fit:
                break
            found = self._searched(items, search, joined.step.state, joined)
            fit = replace(found, free_energies=joined.free_energies + found.free_energies)
        return fit

    def _searched(self, items: Items, search: Search, state: np.ndarray, fit: Fit | None) -> Fit:
        """Return the fit that no split of a cluster improves and that has no empty kind.

        state : q(y) to begin with;  fit : whose clusters it begins with; None begins with one
        """
        tally: list[int] = [0] * (1 if fit is None else len(fit.clusters))
        trace: list[float] = []
        while True:
            fit = search_clusters(items, search, state, fit, tally)
            trace += fit.free_energies
            state = fit.step.state
            is_kept = (state.T @ fit.expected.mass).sum(axis=1) >= LEAST_SEGMENTS
            if is_kept.all() or not is_kept.any():
                return Fit(fit.clusters, fit.step, fit.expected, trace)
            state = state[:, is_kept] / state[:, is_kept].sum(axis=1, keepdims=True)

    def _take(
        self, data: Data, whole: Data | None, names: np.ndarray, context: ImageLabels, fit: Fit, search: Search
    ) -> None:
        """Keep what the fit found: clusters by size, kinds by their images."""
        self._by_size = np.argsort(-fit.clusters.count, kind="stable")
        self._by_images = np.argsort(-fit.step.state.sum(axis=0), kind="stable")
        state, mass = fit.step.state[:, self._by_images], fit.expected.mass[:, self._by_size]
        self.n_features_in_ = data.x.shape[1]
        self._shift, self._search = data.mean, search
        self._clusters = Clusters(search.prior, fit.clusters.moments[self._by_size])
        self._kinds = context.kinds(state)
        self._whole_shift = np.zeros(1) if whole is None else whole.mean
        weights, mixes = context.weights(state), context.mixes(state, mass)
        pooled = context.rule(state.sum(axis=0, keepdims=True), self.concentration)
        self._log_weights = np.concatenate([weights.log_mean, pooled.log_mean])
        self._log_mixes = mixes.log_mean
        self.groups_, self.weights_, self.mixes_ = names, weights.mean, mixes.mean
        self.means_, self.covariances_ = self._clusters.mean + self._shift, self._clusters.covariance
        self.kind_means_ = None if self._kinds is None else self._kinds.mean + self._whole_shift
        self.n_clusters_, self.n_kinds_ = len(self._by_size), len(self._by_images)
        self.free_energies_, self.free_energy_ = fit.free_energies, fit.free_energy

    def fit_predict(self, X: np.ndarray, y: Any = None, **given: Any) -> np.ndarray:
        """Return `labels_` after `fit`: the kind of each image."""
        return self.fit(X, y, **given).labels_

    def predict_proba(
        self, X: np.ndarray, *, images: Any = None, groups: Any = None, descriptors: Any = None
    ) -> np.ndarray:
        """Return q(y) of images, (n_images, T) float64, what was learnt held fixed; the arguments are `fit`'s.

        A group never seen has the weights of all. Descriptors are needed where `fit` had them.
        """
        if "n_features_in_" not in vars(self):
            raise not_fitted("SimultaneousMixture has seen no rows yet: fit it first")
        x = check_rows(X, self.n_features_in_, type(self).__name__).astype(np.float64)
        if (descriptors is None) != (self._kinds is None):
            raise ValueError("descriptors: given to one of fit and predict alone")
        index, n_images = image_index(images, groups, descriptors, len(x))
        last = len(self.groups_)
        if groups is None:
            of_group = np.full(n_images, 0 if last == 1 else last)
        else:
            place = np.minimum(np.searchsorted(self.groups_, groups), last - 1)
            of_group = np.where(self.groups_[place] == np.asarray(groups), place, last)
        base = self._log_weights[of_group]
        if self._kinds is not None:
            w = check_rows(descriptors, self._kinds.prior.n_dims, type(self).__name__) - self._whole_shift
            base = base + (self._kinds.coefficients() @ Items(w, np.zeros(n_images, np.int64), 1).all_sums()).T
        order = np.argsort(index, kind="stable")
        items = Items(x[order] - self._shift, index[order], n_images)
        q = np.full((n_images, self.n_kinds_), 1.0 / self.n_kinds_)
        for _ in range(ROUNDS_OF_PREDICTION):
            before = q
            mass = expect(items, self._clusters, q @ self._log_mixes).mass if len(x) else np.zeros((n_images, 1))
            logs = base + (mass @ self._log_mixes.T if len(x) else 0.0)
            q = np.exp(logs - np.logaddexp.reduce(logs, axis=1)[:, None])
            if np.abs(q - before).max(initial=0.0) < self.tolerance:
                break
        return q

    def predict(self, X: np.ndarray, *, images: Any = None, groups: Any = None, descriptors: Any = None) -> np.ndarray:
        """Return the most probable kind of images, (n_images,) int64; the arguments are `predict_proba`'s."""
        return self.predict_proba(X, images=images, groups=groups, descriptors=descriptors).argmax(axis=1)

    def __sklearn_is_fitted__(self) -> bool:
        return "n_features_in_" in vars(self)


def image_index(images: Any, groups: Any, descriptors: Any, n: int) -> tuple[np.ndarray, int]:
    """Return (the image of each of n rows, number of images), or raise ValueError where the lengths do not agree."""
    index = np.arange(n) if images is None else np.asarray(images)
    if index.shape != (n,) or index.dtype.kind not in "iu" or (n and index.min() < 0):
        raise ValueError(f"images: not {n} whole numbers from 0, one for each row of X")
    least = int(index.max()) + 1 if n else 0
    lengths = {
        name: len(given) for name, given in (("groups", groups), ("descriptors", descriptors)) if given is not None
    }
    n_images = next(iter(lengths.values()), least)
    for name, length in lengths.items():
        if length != n_images or length < least:
            raise ValueError(f"{name}: {length} of them, images reach {least - 1}: one for each image is needed")
    return index.astype(np.int64), n_images
