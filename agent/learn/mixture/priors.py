"""The unit-free prior: a shift and a spread taken from the first epoch, and the numbers that follow.

Used by agent/learn/mixture/mixture.py and the two families. It must not look at data after the first epoch, unless
most of what comes lies absurdly far outside it.
"""

from dataclasses import dataclass

import numpy as np

# Points further than this many spreads from the shift would swamp every sum: they are refused and counted.
FARTHEST = 1e6


@dataclass(frozen=True)
class Normaliser:
    """Shift and scale between the caller's units and the learner's: z = (x - shift) / scale.

    Attributes
    ----------
    shift, scale : ndarray of shape (n_dims,), float64
        Mean of the first epoch; its deviation, per column (columns may have different units) or overall (the ratios
        between columns matter, and a full prior is invariant to rotation).

    Examples
    --------
    >>> from stillwatch.learn import Normaliser
    >>> units = Normaliser.measure(np.array([[0.0, 100.0], [2.0, 300.0]]), by_column=True)
    >>> units.apply(np.array([[1.0, 400.0]])).tolist()
    [[0.0, 2.0]]
    """

    shift: np.ndarray
    scale: np.ndarray

    @classmethod
    def measure(cls, rows: np.ndarray, *, by_column: bool) -> "Normaliser":
        """Return the normaliser of a first epoch of shape (n, n_dims), float64.

        Rows that lie absurdly far from the median (over 1e6 times the distance of the middle row) take no part: one
        broken row in the first epoch must not decide the units of a life.
        """
        distance = np.abs(rows - np.median(rows, axis=0)).max(axis=1)
        middle = np.median(distance)
        kept = rows[distance <= FARTHEST * middle] if middle > 0.0 else rows
        return cls.of_moments(kept.mean(axis=0), kept.var(axis=0), np.abs(kept).max(axis=0), by_column=by_column)

    @classmethod
    def of_moments(cls, shift: np.ndarray, variance: np.ndarray, size: np.ndarray, *, by_column: bool) -> "Normaliser":
        """Return the normaliser of rows of this mean, variance and largest absolute value, (n_dims,) each."""
        overall = float(variance.mean())
        centre = float(np.abs(shift).max())
        if overall <= (1e-12 * centre) ** 2:
            # Identical rows have no spread; a thousandth of their size is a spread without units, one where all is 0.
            overall = (1e-3 * centre) ** 2 if centre > 0.0 else 1.0
        if by_column:
            # A constant column has no spread of its own: it is given a little of the others'.
            constant = variance <= (1e-9 * size) ** 2
            scale = np.sqrt(np.where(constant, 1e-4 * overall, variance))
        else:
            scale = np.full(len(shift), np.sqrt(overall))
        return cls(shift, scale)

    def is_far(self, rows: np.ndarray) -> np.ndarray:
        """Return which rows of shape (n, n_dims) lie absurdly far out, (n,) bool."""
        return (np.abs(self.apply(rows)) > FARTHEST).any(axis=1)

    def apply(self, rows: np.ndarray) -> np.ndarray:
        """Return rows in the learner's units, float64."""
        return (rows - self.shift) / self.scale

    def widened(self, rows: np.ndarray, *, by_column: bool) -> "Normaliser":
        """Return a normaliser of rows that lie far outside this one, wide enough to hold what this one was about."""
        found = Normaliser.measure(rows, by_column=by_column)
        gap = (self.shift - found.shift) ** 2
        return Normaliser(found.shift, np.sqrt(found.scale**2 + (gap if by_column else gap.mean())))

    @property
    def log_volume(self) -> float:
        """Log of the volume of the learner's unit: subtracted from log densities per point."""
        return float(np.log(self.scale).sum())


def prior_parameters(covariance: str, n_dims: int, strength: float, scale: float) -> np.ndarray:
    """Return the three numbers of the prior in normalised units; its mean is the origin.

    The prior expects each component's covariance to be `scale` times the data's own spread: E[Lambda] = I / scale. The
    full family has kappa_0 = strength, nu_0 = n_dims + 2, S_0 = nu_0 scale I (Normal-inverse-Wishart). The diagonal
    one is the same in one dimension, for each: kappa_0 = strength, a_0 = 3/2, b_0 = a_0 scale (Normal-gamma).
    """
    first = n_dims + 2.0 if covariance == "full" else 1.5
    return np.array([strength, first, first * scale])
