"""In which directions visitors differ from each other, and from the place, more than one does from himself.

Called by agent/novelty/visits/habituation.py. It must not remember anybody: only how marks vary.
"""

from dataclasses import dataclass

import numpy as np

from stillwatch.base import Recorded, record_bytes, saved_array
from stillwatch.novelty.rules import AXES, LEAST_PAIRS, MARK_RIDGE, MARKS_MEMORY

_VISITORS, _PLACE, _ITSELF = range(3)
_LEAST_VARIANCE = 1e-8  # of a still that is repeated


@dataclass
class _Moments:
    """Sums, sums of products and counts of marks of visitors, of the place, and of steps from a thing to itself.

    axes: (n_dims, AXES), the directions that were found last.
    """

    sums: np.ndarray
    products: np.ndarray
    axes: np.ndarray
    counts: np.ndarray = saved_array((3,), np.float64, low=0.0)


class Discriminants(Recorded):
    """Fisher's linear discriminants [1]_ of marks, learnt without anybody's name.

    What varies within is a thing against itself a second later; what varies in all is the marks of visitors, and those
    of the place, for a visitor of tomorrow may look like anything. Along each axis a thing is one deviation from
    itself, whatever the noise, the weather and the size of the values.

    Parameters
    ----------
    n_dims : int
        Of a mark.

    References
    ----------
    .. [1] R. A. Fisher, Annals of Eugenics 7(2), 1936, 179-188; of more than two kinds: C. R. Rao, Journal of the Royal
       Statistical Society B 10(2), 1948, 159-203.
    """

    _where = "discriminants"

    def __init__(self, n_dims: int):
        self._n_dims = n_dims
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        n = self._n_dims
        self._moments = _Moments(np.zeros((3, n)), np.zeros((3, n, n)), np.zeros((n, AXES)))

    @property
    def known(self) -> bool:
        """Whether enough things were compared with themselves for the axes to mean anything."""
        return bool(self._moments.axes.any())

    @property
    def spread(self) -> np.ndarray:
        """How marks vary in all, one deviation for each value, (n_dims,) float64."""
        return np.sqrt(self._variances())

    def along_axes(self, marks: np.ndarray) -> np.ndarray:
        """Return marks, (m, n_dims), along the axes: (m, AXES) float32."""
        return np.ascontiguousarray(marks.astype(np.float64) @ self._moments.axes, np.float32)

    def learn_visitors(self, marks: np.ndarray) -> None:
        """Take note of what visitors look like; marks : ndarray of shape (m, n_dims)."""
        self._add(_VISITORS, marks)

    def learn_place(self, marks: np.ndarray) -> None:
        """Take note of what the whole picture looks like; marks : ndarray of shape (m, n_dims)."""
        self._add(_PLACE, marks)

    def learn_itself(self, steps: np.ndarray) -> None:
        """Take note of how far things were from themselves; steps : ndarray of shape (m, n_dims)."""
        self._add(_ITSELF, steps)

    def _add(self, which: int, marks: np.ndarray) -> None:
        moments, rows = self._moments, marks.astype(np.float64)
        kept = min(MARKS_MEMORY / max(moments.counts[which] + len(rows), 1.0), 1.0)
        moments.counts[which] = kept * (moments.counts[which] + len(rows))
        moments.sums[which] = kept * (moments.sums[which] + rows.sum(axis=0))
        moments.products[which] = kept * (moments.products[which] + rows.T @ rows)

    def _covariance(self, which: int) -> np.ndarray:
        moments, n = self._moments, max(float(self._moments.counts[which]), 1.0)
        mean = moments.sums[which] / n
        return np.asarray(moments.products[which] / n - np.outer(mean, mean))

    def _variances(self) -> np.ndarray:
        """Return the variance in all of each value, (n_dims,): asked each frame, so without the covariances."""
        moments, both = self._moments, slice(_VISITORS, _PLACE + 1)
        n = np.maximum(moments.counts[both], 1.0)[:, None]
        squares = np.diagonal(moments.products[both], axis1=1, axis2=2)
        return np.asarray(np.maximum((squares / n - (moments.sums[both] / n) ** 2).sum(axis=0), _LEAST_VARIANCE))

    def find(self) -> None:
        """Find the axes anew: the largest ratios of what varies in all to what varies within, the latter being one."""
        if self._moments.counts[_ITSELF] < LEAST_PAIRS:
            return
        in_all = self._covariance(_VISITORS) + self._covariance(_PLACE)
        root = np.linalg.cholesky(self._covariance(_ITSELF) + np.diag(MARK_RIDGE * self._variances()))
        white = np.linalg.solve(root, np.linalg.solve(root, in_all).T)
        _, vectors = np.linalg.eigh(0.5 * (white + white.T))
        best = vectors[:, ::-1][:, :AXES]
        self._moments.axes[:] = 0.0
        self._moments.axes[:, : best.shape[1]] = np.linalg.solve(root.T, best)

    def _record(self) -> _Moments:
        return self._moments

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes of the moments and axes."""
        return {"discriminants": record_bytes(self._moments)}
