"""Sparse Gaussian-process regression on a stream: StreamGreedy's active set with its targets, and predictions.

Called by users and experiments. It must not learn hyper-parameters: those are given.
"""

from typing import Literal

import numpy as np

from stillwatch.base import NotFittedError, State
from stillwatch.learn.exemplars.stream_greedy import StreamGreedy


class GaussianProcessActiveSet:
    """Predict from k rows of a stream, chosen by F_V ("variance") or F_H ("entropy"): a subset-of-data process.

    The prior mean is zero: centre the targets. Neither objective looks at targets; they travel with the rows.

    Parameters
    ----------
    n_dims, k, block, validation, minimum_gain, stop_after, seed
        As in `StreamGreedy`.
    lengthscales : array of shape (n_dims,)
    signal_variance, noise_variance : float
        Hyper-parameters of k(x, x') = signal_variance exp(-1/2 sum_j (x_j - x'_j)^2 / lengthscale_j^2) and the noise.
    objective : "variance" or "entropy"

    References
    ----------
    .. [1] R. Gomes, A. Krause, Budgeted nonparametric learning from data streams, ICML 2010, section 3: equation
       numbers here are the paper's.
    """

    def __init__(
        self,
        n_dims: int,
        *,
        k: int,
        lengthscales: np.ndarray,
        signal_variance: float = 1.0,
        noise_variance: float = 0.01,
        objective: Literal["variance", "entropy"] = "variance",
        block: int = 500,
        validation: int = 2000,
        minimum_gain: float = 0.0,
        stop_after: int | None = None,
        seed: int = 0,
    ):
        if objective not in ("variance", "entropy"):
            raise ValueError(f"objective: {objective!r} is none of variance, entropy")
        self.active_set = StreamGreedy(
            n_dims,
            k=k,
            objective=objective,
            block=block,
            validation=validation,
            minimum_gain=minimum_gain,
            stop_after=stop_after,
            payload_bytes=8,
            lengthscales=lengthscales,
            signal_variance=signal_variance,
            noise_variance=noise_variance,
            seed=seed,
        )

    def partial_fit(self, X: np.ndarray, y: np.ndarray) -> "GaussianProcessActiveSet":
        """Take rows and their targets from the stream.

        Parameters
        ----------
        X : array of shape (n, n_dims)
        y : array of shape (n,), finite

        Raises ValueError for bad rows or targets; nothing is learnt from any row of the call.
        """
        targets = np.ascontiguousarray(y, np.float64)
        if targets.shape != np.shape(X)[:1] or not np.isfinite(targets).all():
            raise ValueError(f"y: shape {targets.shape}, must be {np.shape(X)[:1]} and finite")
        self.active_set.partial_fit(X, targets.astype("<f8").view(np.uint8).reshape(len(targets), 8))
        return self

    def flush(self) -> "GaussianProcessActiveSet":
        """Learn the rows that wait for a full block."""
        self.active_set.flush()
        return self

    @property
    def targets_(self) -> np.ndarray:
        """Targets of the active set, (n_held,) float64."""
        return np.frombuffer(b"".join(self.active_set.payloads()), "<f8").astype(np.float64)

    def predict(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return predictive mean (3.1) and variance (3.2) of the function at each row, each (n,) float64.

        Add noise_variance for the variance of a new observation. Changes nothing the learner depends on.
        Raises NotFittedError before the first row of the active set, ValueError for bad rows.
        """
        X = self.active_set.check(X)
        if self.active_set.n_held_ == 0:
            raise NotFittedError("GaussianProcessActiveSet holds no row yet: give it rows first")
        process = self.active_set.process
        precision = process.precision()
        weights = precision @ self.targets_
        mean, variance = np.empty(len(X)), np.empty(len(X))
        active = process.scaled(self.active_set.exemplars_)
        for start in range(0, len(X), self.active_set.block):
            part = slice(start, start + self.active_set.block)
            cross = process.covariance(process.scaled(X[part]), active)
            mean[part] = cross @ weights
            variance[part] = process.signal_variance - np.einsum("ij,ij->i", cross @ precision, cross)
        return mean, np.maximum(variance, 0.0)

    def state(self) -> State:
        """Return the active set's state, targets included."""
        return self.active_set.state()

    def restore(self, state: State) -> None:
        """As `StreamGreedy.restore`."""
        self.active_set.restore(state)

    def memory_bytes(self) -> int:
        return self.active_set.memory_bytes()
