"""Whole-picture descriptors for surveys ashore: dense SIFT, sparse codes, a pyramid of their maxima (ScSPM).

Called by tools/survey/. The dictionary was learnt on other pictures and ships with the package; `stillwatch
fit-dictionary` makes it again. It must not reduce descriptors: the survey fits its own projection.
"""

import importlib.resources

import numpy as np

from stillwatch.features.dense_sift import DESCRIPTOR_DIMS, DenseSift
from stillwatch.kernels import sparse_code

# Thesis chapter 3: patches of 16 px every 8 px, 10 atoms a patch, cells of 4 x 4, 2 x 2 and 1 x 1.
STEP_PX, BIN_PX, N_ATOMS = 8, 4, 10
SIDE = 4
N_CELLS = SIDE * SIDE + 4 + 1
# Mean gradient, grey levels between pixels two apart, from which a patch counts in full; one of less contrast counts
# by its part of it: noise in a sky is no texture. So has the SIFT of Lazebnik et al. 2006 that the thesis uses: what it
# leaves unnormalised, of a norm below 1, has this mean gradient.
FULL_CONTRAST = 3.0
# Correlations of what is left below this are rounding.
LEAST_CORRELATION = 1e-4


def shipped_dictionary() -> np.ndarray:
    """Return the dictionary of the package, (n_atoms, 128) float32, rows of length 1."""
    with importlib.resources.files("stillwatch.features").joinpath("dictionary.npz").open("rb") as file:
        atoms = np.load(file)["atoms"].astype(np.float32)
    return atoms / np.linalg.norm(atoms, axis=1, keepdims=True)


def patch_descriptor(height: int, width: int) -> DenseSift:
    """Return the dense SIFT that dictionaries are learnt on and pictures up to a box are described by."""
    return DenseSift(height, width, step_px=STEP_PX, bin_px=(BIN_PX,))


class SparseCodePyramid:
    """ScSPM of grey pictures up to a box (Yang et al. 2009; Steinberg 2013, chapter 3), coded by OMP.

    Parameters
    ----------
    height, width : int
        The box.
    dictionary : ndarray of shape (n_atoms, 128), float32, rows of length 1; None is the shipped one.

    Attributes
    ----------
    n_dims : int
        21 cells by n_atoms: the 4 x 4 cells row by row, then 2 x 2, then the whole picture.
    """

    def __init__(self, height: int, width: int, dictionary: np.ndarray | None = None):
        dictionary = shipped_dictionary() if dictionary is None else dictionary
        if dictionary.ndim != 2 or dictionary.shape[1] != DESCRIPTOR_DIMS or not np.isfinite(dictionary).all():
            raise ValueError(f"dictionary: shape {dictionary.shape} is not (n_atoms, {DESCRIPTOR_DIMS}), or not finite")
        self._columns = np.ascontiguousarray(dictionary.T, np.float32)
        self._gram = np.ascontiguousarray(self._columns.T @ self._columns)
        self._sift = patch_descriptor(height, width)
        n = len(dictionary)
        self.n_dims = N_CELLS * n
        self._alphas = np.empty((self._sift.capacity, n), np.float32)
        self._pooled = np.empty((SIDE * SIDE, n), np.float32)
        self._basis, self._triangle = np.empty((N_ATOMS, n), np.float32), np.empty((N_ATOMS, N_ATOMS), np.float32)
        self._atoms, self._coefficients = np.empty(N_ATOMS, np.int32), np.empty(N_ATOMS, np.float32)

    def describe(self, grey: np.ndarray) -> np.ndarray:
        """Return the descriptor of a picture, (n_dims,) float32 of length 1, or all zeros where nothing has texture.

        grey : ndarray of shape (height, width), uint8, inside the box

        Raises ValueError where the picture does not fit.
        """
        if grey.shape != self._sift.shape:
            self._sift.reshape(*grey.shape)
        patches = self._sift.compute(grey)
        contrast = np.minimum(self._sift.energy * np.float32(1.0 / FULL_CONTRAST), np.float32(1.0))
        patches *= contrast[:, None]
        alphas = np.matmul(patches, self._columns, out=self._alphas[: len(patches)])
        self._pooled[:] = 0.0
        sparse_code.code_and_pool(
            alphas,
            self._gram,
            np.where(self._sift.flat, -1, self._cells(*grey.shape)),
            N_ATOMS,
            np.float32(LEAST_CORRELATION),
            self._basis,
            self._triangle,
            self._atoms,
            self._coefficients,
            self._pooled,
        )
        fine = self._pooled.reshape(SIDE, SIDE, -1)
        half = fine.reshape(2, 2, 2, 2, -1).max(axis=(1, 3))
        whole = np.concatenate([fine.ravel(), half.ravel(), half.max(axis=(0, 1))])
        length = float(np.linalg.norm(whole))
        return whole / np.float32(length) if length > 0.0 else whole

    def _cells(self, height: int, width: int) -> np.ndarray:
        """Return the cell of each patch by its centre, (n,) int64."""
        rows = np.minimum(self._sift.rows * SIDE // height, SIDE - 1)
        columns = np.minimum(self._sift.columns * SIDE // width, SIDE - 1)
        return (rows[:, None] * SIDE + columns).ravel()
