"""A Gaussian as small integers, relative to another one: steps are shares of its own standard deviations.

Called by transport/mirror/vehicle.py and transport/mirror/ground.py, which send the integers. Both ends must get the
same state from the same integers and reference; nothing here may depend on what is not sent.

With V = (W' W)^-1 and W lower triangular, z = W (x - m) is white. Row i of W holds 1 / s_i on the diagonal, where
s_i is the spread of x_i given x_1 .. x_(i-1), and minus the regression on those left of it (Pourahmadi,
Biometrika 86, 1999). Errors of one step then move z by about that step, whatever the correlations: that is why W
is sent and not V. Row by row: log2 s_i, the row's W_ij sigma_j, and the mean in units of z. Each row needs the rows
before it alone, so that a beginning is a whole Gaussian of the first dimensions.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

SPREAD, REGRESSION, MEAN = 0, 1, 2  # classes of integers
STEPS = ((0.5, 0.25, 0.5), (0.04, 0.04, 0.04))  # by level and class
COARSE, FINE = 0, 1  # levels
LOG_LIMIT = 60.0  # of log2 of a spread


@dataclass(frozen=True, slots=True)
class Gaussian:
    """Mean (d,), log2 spreads (d,) and W (d, d) lower triangular; W is None where the covariance is diagonal."""

    mean: np.ndarray
    log_spread: np.ndarray
    whitener: np.ndarray | None

    @property
    def n_dims(self) -> int:
        return len(self.mean)


def origin(n_dims: int, is_full: bool) -> Gaussian:
    """Return the reference of a component that nothing is known of: zero mean, unit spread, no correlation."""
    return Gaussian(np.zeros(n_dims), np.zeros(n_dims), np.zeros((n_dims, n_dims)) if is_full else None)


def from_moments(mean: np.ndarray, covariance: np.ndarray) -> Gaussian:
    """Return the Gaussian of a mean (d,) and variances (d,) or a covariance matrix (d, d), positive definite.

    A matrix that rounding has left indefinite gets the least jitter that helps.
    """
    mean = np.asarray(mean, np.float64)
    covariance = np.asarray(covariance, np.float64)
    if covariance.ndim == 1:
        spread = np.sqrt(np.maximum(covariance, 4.0**-LOG_LIMIT))
        return Gaussian(mean, np.log2(spread), None)
    whitener = np.tril(np.linalg.inv(_factor(covariance)))
    return Gaussian(mean, -np.log2(np.diag(whitener)), whitener)


def all_from_moments(means: np.ndarray, covariances: np.ndarray) -> list[Gaussian]:
    """Return the Gaussians of means (k, d) and variances (k, d) or covariance matrices (k, d, d), as `from_moments`."""
    if covariances.ndim == 2:
        log_spreads = np.log2(np.sqrt(np.maximum(covariances, 4.0**-LOG_LIMIT)))
        return [Gaussian(mean, log_spread, None) for mean, log_spread in zip(means, log_spreads, strict=True)]
    try:
        whiteners = np.tril(np.linalg.inv(np.linalg.cholesky(covariances)))
    except np.linalg.LinAlgError:  # one of them needs jitter
        return [from_moments(mean, covariance) for mean, covariance in zip(means, covariances, strict=True)]
    log_spreads = -np.log2(np.diagonal(whiteners, axis1=1, axis2=2))
    return [Gaussian(*parts) for parts in zip(means, log_spreads, whiteners, strict=True)]


def _factor(covariance: np.ndarray) -> np.ndarray:
    """Return the Cholesky factor, of the diagonal alone where no jitter up to the variances themselves helps."""
    n_dims = len(covariance)
    variance = max(float(np.trace(covariance)) / n_dims, 4.0**-LOG_LIMIT)
    for jitter in (0.0, *(variance * 10.0**power for power in range(-12, 1))):
        try:
            return np.linalg.cholesky(covariance + jitter * np.eye(n_dims))
        except np.linalg.LinAlgError:
            continue
    return np.diag(np.sqrt(np.maximum(np.diag(covariance), variance)))


def covariance_of(gaussian: Gaussian) -> np.ndarray:
    """Return variances (d,) or the covariance matrix (d, d)."""
    if gaussian.whitener is None:
        return 4.0**gaussian.log_spread
    factor = np.linalg.inv(gaussian.whitener)
    return factor @ factor.T


def divergence(target: Gaussian, known: Gaussian) -> float:
    """Return KL(target || known) in nats: what believing `known` costs."""
    return float(divergences([target], [known])[0])


def divergences(targets: Sequence[Gaussian], known: Sequence[Gaussian]) -> np.ndarray:
    """Return KL(target || known) of each pair in nats, (n,) float64; all are diagonal, or none is."""
    if not targets:
        return np.zeros(0)
    shifts = np.array([one.mean for one in targets]) - np.array([one.mean for one in known])
    logs, known_logs = (np.array([one.log_spread for one in of]) for of in (targets, known))
    spreads = (known_logs - logs).sum(axis=1) * np.log(2.0)
    pairs = ((one.whitener, other.whitener) for one, other in zip(targets, known, strict=True))
    whiteners = [(one, other) for one, other in pairs if one is not None and other is not None]
    with np.errstate(over="ignore"):
        if not whiteners:
            ratios = (4.0 ** (logs - known_logs)).sum(axis=1)
            distances = ((shifts * 2.0**-known_logs) ** 2).sum(axis=1)
        else:
            ratios = np.array([(np.linalg.solve(one.T, other.T) ** 2).sum() for one, other in whiteners])
            distances = np.array(
                [((other @ shift) ** 2).sum() for (_, other), shift in zip(whiteners, shifts, strict=True)]
            )
    return np.maximum(0.0, spreads + 0.5 * (ratios - targets[0].n_dims + distances))


@functools.cache
def classes(n_dims: int, is_full: bool) -> np.ndarray:
    """Return the class of each integer in the order sent, uint8."""
    rows = [[SPREAD] + [REGRESSION] * (row if is_full else 0) + [MEAN] for row in range(n_dims)]
    order = np.array([label for row in rows for label in row], np.uint8)
    order.flags.writeable = False
    return order


def n_rows(n_integers: int, n_dims: int, is_full: bool) -> int:
    """Return how many whole rows the first `n_integers` make."""
    ends = np.flatnonzero(classes(n_dims, is_full) == MEAN)
    return int(np.searchsorted(ends, n_integers, side="left")) if n_integers else 0


def quantise(target: Gaussian, reference: Gaussian, level: int, is_new: bool) -> np.ndarray:
    """Return the integers (int64) that lead from `reference` to within half a step of `target`.

    `is_new` codes each spread relative to the one before it, as a new component's are alike.
    """
    walk = _Walk(reference, level, is_new)
    values: list[int] = []
    for row in range(target.n_dims):
        values += walk.nearest(row, target)
    return np.array(values, np.int64)


def reconstruct(values: np.ndarray, reference: Gaussian, level: int, is_new: bool) -> Gaussian:
    """Return the Gaussian that whole rows of integers lead to; later rows stay as in the reference."""
    walk = _Walk(reference, level, is_new)
    is_full = reference.whitener is not None
    start = 0
    for row in range(n_rows(len(values), reference.n_dims, is_full)):
        size = 2 + (row if is_full else 0)
        walk.step(row, [int(value) for value in values[start : start + size]])
        start += size
    return walk.result()


class _Walk:
    """Goes through the rows, holding what both ends know so far."""

    def __init__(self, reference: Gaussian, level: int, is_new: bool):
        self._reference, self._is_new = reference, is_new
        self._spread_step, self._regression_step, self._mean_step = STEPS[level]
        d = reference.n_dims
        self._mean, self._log = reference.mean.copy(), reference.log_spread.copy()
        self._is_full = reference.whitener is not None
        self._whitener = reference.whitener.copy() if reference.whitener is not None else np.zeros((0, 0))
        self._factor = np.zeros((d, d)) if self._is_full else np.zeros((0, 0))
        self._sigma = np.zeros(d)

    def step(self, row: int, values: list[int]) -> None:
        """Apply one row's integers: spread, regression, mean."""
        self._set_spread(row, values[0])
        if self._is_full:
            self._set_regression(row, np.array(values[1:-1], np.float64))
        self._set_mean(row, values[-1])

    def nearest(self, row: int, target: Gaussian) -> list[int]:
        """Return the row's best integers, and apply them: each rounds what the earlier ones have left."""
        base = self._spread_base(row)
        values = [round((float(target.log_spread[row]) - base) / self._spread_step)]
        self._set_spread(row, values[0])
        if self._is_full:
            assert target.whitener is not None
            assert self._reference.whitener is not None
            stretch = 2.0 ** float(target.log_spread[row] - self._log[row])
            wanted = target.whitener[row, :row] * stretch - self._reference.whitener[row, :row]
            regression = np.rint(wanted * self._sigma[:row] / self._regression_step)
            values += [int(value) for value in regression]
            self._set_regression(row, regression)
        left = (float(target.mean[row]) - self._reference.mean[row]) * 2.0 ** -self._log[row]
        left += self._moved(row, target.mean)  # the true mean's: so that errors of earlier rows do not add up in z
        values.append(round(left / self._mean_step))
        self._set_mean(row, values[-1])
        return values

    def result(self) -> Gaussian:
        """Return the Gaussian as known now."""
        return Gaussian(self._mean, self._log, self._whitener if self._is_full else None)

    def _spread_base(self, row: int) -> float:
        return float(self._log[row - 1]) if self._is_new and row else float(self._reference.log_spread[row])

    def _set_spread(self, row: int, value: int) -> None:
        log = self._spread_base(row) + value * self._spread_step
        self._log[row] = min(max(log, -LOG_LIMIT), LOG_LIMIT)

    def _set_regression(self, row: int, values: np.ndarray) -> None:
        assert self._reference.whitener is not None
        spread = 2.0 ** self._log[row]
        change = values * self._regression_step / self._sigma[:row]
        self._whitener[row, :row] = self._reference.whitener[row, :row] + change
        self._whitener[row, row] = 1.0 / spread
        self._factor[row, :row] = -spread * (self._whitener[row, :row] @ self._factor[:row, :row])
        self._factor[row, row] = spread
        self._sigma[row] = np.sqrt(self._factor[row, : row + 1] @ self._factor[row, : row + 1])

    def _moved(self, row: int, mean: np.ndarray) -> float:
        """Return what the shift from the reference to `mean` in the earlier dimensions adds to this row of z."""
        if not self._is_full:
            return 0.0
        return float(self._whitener[row, :row] @ (mean[:row] - self._reference.mean[:row]))

    def _set_mean(self, row: int, value: int) -> None:
        shift = (value * self._mean_step - self._moved(row, self._mean)) * 2.0 ** self._log[row]
        self._mean[row] = self._reference.mean[row] + shift
