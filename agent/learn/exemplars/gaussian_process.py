"""Sparse Gaussian-process regression on a stream: StreamGreedy's active set with its targets, and predictions.

Called by users and experiments. It must not learn hyper-parameters: those are given.
"""

from typing import Any, Literal, Self

import numpy as np

from stillwatch.base import Commit, State
from stillwatch.learn.base import Estimator, not_fitted
from stillwatch.learn.exemplars.saved import width_of
from stillwatch.learn.exemplars.stream_greedy import StreamGreedy


class GaussianProcessActiveSet(Estimator):
    """Predict from k rows of a stream, chosen by F_V ("variance") or F_H ("entropy"): a subset-of-data process.

    The prior mean is zero: centre the targets. Neither objective looks at targets; they travel with the rows.

    Parameters
    ----------
    k, block, validation, minimum_gain, stop_after, seed
        As in `StreamGreedy`.
    lengthscales : float, or array of shape (n_features,)
    signal_variance, noise_variance : float
        Hyper-parameters of k(x, x') = signal_variance exp(-1/2 sum_j (x_j - x'_j)^2 / lengthscale_j^2) and the noise.
    objective : "variance" or "entropy"

    Attributes
    ----------
    n_features_in_ : int
        Width of the rows: that of the first ones, or what `allocate` was given.
    active_set_ : StreamGreedy
        The rows held: `exemplars_`, where in the stream they were, the utility.
    targets_ : ndarray of shape (n_held,), float64

    References
    ----------
    .. [1] R. Gomes, A. Krause, Budgeted nonparametric learning from data streams, ICML 2010, section 3: equation
       numbers here are the paper's.

    Examples
    --------
    >>> import numpy as np
    >>> from stillwatch.learn import GaussianProcessActiveSet
    >>> X = np.random.default_rng(0).uniform(-3.0, 3.0, (500, 1))
    >>> model = GaussianProcessActiveSet(k=12, block=50, validation=200).fit(X, np.sin(X[:, 0]))
    >>> mean, deviation = model.predict([[0.5], [40.0]], return_std=True)
    >>> np.abs(np.round(mean - np.sin([0.5, 0.0]), 1)).tolist(), np.round(deviation, 1).tolist()
    ([0.0, 0.0], [0.1, 1.0])
    """

    _estimator_kind = "regressor"

    def __init__(
        self,
        *,
        k: int = 100,
        lengthscales: Any = 1.0,
        signal_variance: float = 1.0,
        noise_variance: float = 0.01,
        objective: Literal["variance", "entropy"] = "variance",
        block: int = 500,
        validation: int = 2000,
        minimum_gain: float = 0.0,
        stop_after: int | None = None,
        seed: int = 0,
    ):
        self.k = k
        self.lengthscales = lengthscales
        self.signal_variance = signal_variance
        self.noise_variance = noise_variance
        self.objective = objective
        self.block = block
        self.validation = validation
        self.minimum_gain = minimum_gain
        self.stop_after = stop_after
        self.seed = seed

    def _allocate(self) -> None:
        if self.objective not in ("variance", "entropy"):
            raise ValueError(f"objective: {self.objective!r} is none of variance, entropy")
        self.active_set_ = StreamGreedy(payload_bytes=8, **self.get_params()).allocate(self.n_features_in_)

    def partial_fit(self, X: np.ndarray, y: Any = None) -> Self:
        """Take rows and their targets from the stream.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        y : array-like of shape (n,) or (n, 1), finite

        Raises ValueError for bad rows or targets; nothing is learnt from any row of the call.
        """
        if y is None:
            raise ValueError("y: GaussianProcessActiveSet requires y to be passed, but the target y is None")
        if not self._is_allocated:
            self._become(self._fresh(self._rows(X).shape[1]).partial_fit(X, y))
            return self
        rows = self._rows_to_learn(X)
        targets = np.ascontiguousarray(y, np.float64)
        targets = targets[:, 0] if targets.ndim == 2 and targets.shape[1] == 1 else targets
        if targets.shape != (len(rows),) or not np.isfinite(targets).all():
            raise ValueError(f"y: shape {targets.shape}, must be ({len(rows)},) and finite: no NaN, no infinity")
        self.active_set_.partial_fit(rows, payload=targets.astype("<f8").view(np.uint8).reshape(len(targets), 8))
        return self

    def flush(self) -> Self:
        """Learn the rows that wait for a full block."""
        if self._is_allocated:
            self.active_set_.flush()
        return self

    @property
    def targets_(self) -> np.ndarray:
        """Targets of the active set, (n_held,) float64."""
        self._require_memory()
        return np.frombuffer(b"".join(self.active_set_.payloads()), "<f8").astype(np.float64)

    def predict(self, X: np.ndarray, return_std: bool = False) -> Any:
        """Return the predictive mean (3.1) of the function at each row, (n,) float64; changes nothing.

        With `return_std`, a pair: the mean, and the function's standard deviation (3.2), (n,) float64. Square it and
        add noise_variance for the variance of a new observation.

        Raises NotFittedError before the first row of the active set, ValueError for bad rows.
        """
        rows = self._rows(X)
        self._require_memory()
        rows = self.active_set_.check(rows)
        if self.active_set_.n_held_ == 0:
            raise not_fitted("GaussianProcessActiveSet holds no row yet: give it rows first")
        process = self.active_set_.process_
        precision = process.precision()
        weights = precision @ self.targets_
        mean, variance = np.empty(len(rows)), np.empty(len(rows))
        active = process.scaled(self.active_set_.exemplars_)
        for start in range(0, len(rows), self.active_set_.block):
            part = slice(start, start + self.active_set_.block)
            cross = process.covariance(process.scaled(rows[part]), active)
            mean[part] = cross @ weights
            variance[part] = process.signal_variance - np.einsum("ij,ij->i", cross @ precision, cross)
        return (mean, np.sqrt(np.maximum(variance, 0.0))) if return_std else mean

    def score(self, X: np.ndarray, y: Any) -> float:
        """Return R^2 of the predictive mean: 1 less the squared errors' share of the targets' spread."""
        targets = np.asarray(y, np.float64).ravel()
        spread = np.square(targets - targets.mean()).sum()
        return 1.0 - float(np.square(self.predict(X) - targets).sum() / spread)

    def summary(self) -> dict[str, np.ndarray]:
        """Return the active set as arrays: id, row (n_held,) int64, exemplar (n_held, d) float32, target (n_held,)."""
        self._require_memory()
        return self.active_set_.summary() | {"target": self.targets_}

    def __sklearn_is_fitted__(self) -> bool:
        return self._is_allocated and self.active_set_.__sklearn_is_fitted__()

    def state(self) -> State:
        """Return the active set's state, targets included."""
        self._require_memory()
        return self.active_set_.state()

    def _prepare(self, state: State) -> Commit:
        return self.active_set_.prepare(state)

    def _width_of(self, state: State) -> int:
        return width_of(state)

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes of all arrays by part; the same from the first row to the last."""
        self._require_memory()
        return self.active_set_.memory_bytes()
