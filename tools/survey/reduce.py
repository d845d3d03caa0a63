"""Principal coordinates of descriptors too many and too wide for memory, and whitened ones of segments.

Called by tools/survey/command.py and the survey experiments.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

N_DIMS = 20  # where clustering no longer gains (thesis 3.5)
SEGMENT_DIMS = 15
# Subspace iteration: twice as many directions as are kept, until those kept have long settled.
OVERSAMPLED, ROUNDS = 2, 8


@dataclass(frozen=True)
class Axes:
    """Principal axes: rows become (rows - mean) @ basis.

    Attributes
    ----------
    mean : ndarray of shape (width,), float32
    basis : ndarray of shape (width, n_dims), float32, orthonormal columns, most variance first
    """

    mean: np.ndarray
    basis: np.ndarray

    def project(self, rows: np.ndarray) -> np.ndarray:
        """Return rows' coordinates, (n, n_dims) float64."""
        return ((rows.astype(np.float32) - self.mean) @ self.basis).astype(np.float64)


def principal_axes(blocks: Callable[[], Iterator[np.ndarray]], n_dims: int = N_DIMS, seed: int = 0) -> Axes:
    """Return the axes of most variance by subspace iteration, at most `n_dims` of them.

    Parameters
    ----------
    blocks : () -> iterator of ndarray of shape (m, width), any float
        The rows, a block at a time; asked for once a round, so that they may lie on disk.
    n_dims, seed : int

    Raises ValueError where there are no rows.
    """
    n, total = 0, 0.0
    for block in blocks():
        n += len(block)
        total = total + block.sum(axis=0, dtype=np.float64)
    if not n:
        raise ValueError("no rows to find principal components of")
    mean = np.asarray(total / n, np.float32)
    rng = np.random.default_rng(seed)
    basis = rng.normal(size=(len(mean), min(OVERSAMPLED * n_dims, n, len(mean)))).astype(np.float32)
    for _ in range(ROUNDS):
        turned = np.zeros_like(basis)
        for block in blocks():
            centred = block.astype(np.float32) - mean
            turned += centred.T @ (centred @ basis)
        basis = np.linalg.qr(turned)[0]
    square = np.zeros((basis.shape[1], basis.shape[1]))
    for block in blocks():
        rows = Axes(mean, basis).project(block)
        square += rows.T @ rows
    directions = np.linalg.eigh(square)[1][:, ::-1][:, : min(n_dims, n, len(mean))]
    return Axes(mean, basis @ directions.astype(np.float32))


def principal_coordinates(blocks: Callable[[], Iterator[np.ndarray]], n_dims: int = N_DIMS, seed: int = 0):
    """Return rows projected on their own `principal_axes`, (n, at most n_dims) float64; blocks as there."""
    axes = principal_axes(blocks, n_dims, seed)
    return np.concatenate([axes.project(block) for block in blocks()])


def whitened(rows: np.ndarray, n_dims: int = SEGMENT_DIMS) -> np.ndarray:
    """Return the leading principal coordinates of rows, each of variance 1, (n, at most n_dims) float64.

    Components of no variance are left out; at least one column is left.
    """
    centred = rows.astype(np.float64) - rows.mean(axis=0, dtype=np.float64)
    variances, directions = np.linalg.eigh(centred.T @ centred / max(len(rows), 1))
    order = np.argsort(-variances)[:n_dims]
    order = order[variances[order] > 1e-9 * max(variances.max(), 1e-300)] if variances.max() > 0.0 else order[:1]
    return centred @ directions[:, order] / np.sqrt(np.maximum(variances[order], 1e-300))
