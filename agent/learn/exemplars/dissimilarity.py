"""Dissimilarities d(x, exemplar) of whole blocks: the Euclidean family by matrix products, others by kernels.

Called by agent/learn/exemplars/clustering.py and experiments. It must not assume a metric, nor symmetry.
"""

from collections.abc import Callable

import numpy as np

from stillwatch.kernels import dissimilarity as kernels

# name -> (scale, is_root) of `finish_euclidean`; "chi_square" and the caller's own functions are direct kernels
_EUCLIDEAN = {"sqeuclidean": (1.0, 0), "cosine": (0.5, 0), "hellinger": (0.5, 1)}
_NOT_NEGATIVE = {"hellinger", "chi_square"}
NAMES = ("sqeuclidean", "cosine", "chi_square", "hellinger")


class PreparedRows:
    """Rows in the form that `Dissimilarity.cross` takes them in, with their squared norms."""

    def __init__(self, capacity: int, n_dims: int):
        self.rows = np.zeros((capacity, n_dims), np.float32)
        self.norms = np.zeros(capacity, np.float32)

    def memory_bytes(self) -> int:
        return self.rows.nbytes + self.norms.nbytes


class Dissimilarity:
    """A named dissimilarity, or the caller's numba function of two float32 rows.

    - "sqeuclidean": |x - y|^2. Rows are moved by `shift` first, so that data far from the origin loses no digits.
    - "cosine": 1 - cos(x, y), as half the squared distance of the rows scaled to length one. A zero row stays
      zero: it is at 0 from another zero row and at 1/2 from any other.
    - "hellinger": sqrt(1 - sum_j sqrt(x_j y_j)) for histograms of mass one; rows must not be negative.
    - "chi_square": sum_j (x_j - y_j)^2 / (x_j + y_j) / 2; rows must not be negative.
    - a function: called as function(x, exemplar), it must return a number >= 0; it need not be a metric.

    Parameters
    ----------
    kind : str or numba-compiled function
    n_dims : int
    """

    def __init__(self, kind: str | Callable[..., float], n_dims: int):
        if kind not in NAMES if isinstance(kind, str) else not callable(kind):
            raise ValueError(f"dissimilarity: {kind!r} is none of {', '.join(NAMES)}, nor a numba function")
        self.name = kind if isinstance(kind, str) else getattr(kind, "__name__", "function")
        self.shift = np.zeros(n_dims, np.float32)
        self.not_negative = self.name in _NOT_NEGATIVE
        self._scaling = _EUCLIDEAN.get(kind) if isinstance(kind, str) else None
        if self._scaling is None:
            self._pairwise = kernels.chi_square if kind == "chi_square" else kernels.pairwise_kernel(kind)

    def centre_on(self, rows: np.ndarray) -> None:
        """Set `shift` to the mean of these rows, where the dissimilarity does not change under translation."""
        if self.name == "sqeuclidean" and self._scaling:
            self.shift[:] = rows.mean(axis=0, dtype=np.float64)

    def prepare(self, rows: np.ndarray, out: PreparedRows, at: np.ndarray | slice) -> None:
        """Write the prepared form of (n, n_dims) float32 rows into the places `at` of `out`."""
        if self.name == "hellinger" and self._scaling:
            prepared = np.sqrt(rows)
        elif self.name == "cosine" and self._scaling:
            lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
            prepared = (rows / np.where(lengths > 0.0, lengths, 1.0)[:, None]).astype(np.float32)
        else:
            prepared = rows - self.shift
        norms = np.empty(len(prepared), np.float32)
        kernels.squared_norms(np.ascontiguousarray(prepared), norms)
        out.rows[at] = prepared
        out.norms[at] = norms

    def cross(
        self, exemplars: PreparedRows, at: slice, points: PreparedRows, at_points: slice, out: np.ndarray
    ) -> None:
        """Fill out[j, i] with d(point_i, exemplar_j); `out` is C-contiguous float32 of the slices' lengths."""
        if self._scaling is None:
            self._pairwise(points.rows[at_points], exemplars.rows[at], out)
            return
        np.matmul(exemplars.rows[at], points.rows[at_points].T, out=out)
        kernels.finish_euclidean(exemplars.norms[at], points.norms[at_points], *self._scaling, out)

    def check(self, rows: np.ndarray) -> None:
        """Raise ValueError where rows are outside the dissimilarity's domain."""
        if self.not_negative and len(rows) and rows.min() < 0.0:
            raise ValueError(f"X: {rows.min():g} is negative, and {self.name} takes histograms")
