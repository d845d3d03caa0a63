"""Owners of the HOG kernels: plan their tables for one image shape and hold their buffers.

Called by agent/features/frame_descriptor.py, tools and tests. They must not pool, reduce or mask cells.
"""

import math

import numpy as np

from stillwatch.features.dense_sift import check_image, kernel_image, padded_taps, read_only
from stillwatch.kernels import hog
from stillwatch.kernels.orientations import PLACES


def _mirror(index: np.ndarray, length: int) -> np.ndarray:
    """Reflect indices into [0, length) without repeating the edge."""
    if length == 1:
        return np.zeros_like(index)
    folded = np.abs(index) % (2 * length - 2)
    return np.minimum(folded, 2 * length - 2 - folded)


Taps = list[tuple[np.ndarray, np.ndarray]]  # for each bin along one side: pixel offsets and weights


def _make_plan(cell_px: int, n_rows: int, n_columns: int, width: int, taps: Taps) -> hog.HogPlan:
    """Return the plan whose output (r, c) starts at pixel (r, c) * cell_px."""
    low, high = min(int(o[0]) for o, _ in taps), max(int(o[-1]) for o, _ in taps)
    before = -(low // cell_px)
    n = -(-(n_columns + before + high // cell_px) // PLACES) * PLACES
    places = np.arange(-1, cell_px + 1)[:, None] + cell_px * (np.arange(n) - before)
    inside = (places[1:-1] >= 0) & (places[1:-1] < width)
    padded = [padded_taps(offsets, weights) for offsets, weights in taps]
    offsets = np.stack([o for o, _ in padded])
    return hog.HogPlan(
        columns=read_only(_mirror(places, width).ravel()),
        inside=read_only(inside.astype(np.float32)),
        starts=read_only((offsets % cell_px) * (hog.GROUP * n) + before + offsets // cell_px),
        offsets=read_only(offsets),
        weights=read_only(np.stack([w for _, w in padded])),
        shape=read_only(np.array([n_rows, n_columns, high - low + 1, low, high], np.int64)),
    )


def _make_workspace(plan: hog.HogPlan, k: int) -> hog.HogWorkspace:
    cell, n = plan.inside.shape
    n_bins, n_taps = plan.starts.shape
    return hog.HogWorkspace(
        phased=np.zeros(3 * (cell + 2) * n, np.float32),
        angle=np.zeros(cell * n, np.float32),
        magnitude=np.zeros(cell * n, np.float32),
        planes=np.zeros(cell * hog.GROUP * n, np.float32),
        pooled=np.zeros(int(plan.shape[2]) * n_bins * k * n, np.float32),
        starts=np.zeros(n_taps, np.int64),
        used=np.zeros(n_taps, np.float32),
        bins=np.zeros(n_bins * n_bins * k * n, np.float32),
        sums=np.zeros((4, n), np.float32),
        done=np.zeros(2, np.int64),
    )


class BlockHog:
    """Dalal-Triggs HOG of a whole image: all blocks of 2 x 2 cells, one cell apart.

    Attributes
    ----------
    grid_shape : (block rows, block columns), possibly 0
    out : ndarray of shape (n_blocks, 36), float32
    """

    def __init__(self, height: int, width: int, cell_px: int = 8, gamma: bool = True):
        self.shape, self._gamma = (height, width), gamma
        self.grid_shape = (max(height // cell_px - 1, 0), max(width // cell_px - 1, 0))
        pixels = np.arange(2 * cell_px)
        gaussian = np.exp(-0.5 * ((pixels - cell_px) / (0.5 * cell_px)) ** 2)  # OpenCV's, half a pixel off centre
        triangles = [np.maximum(0.0, 1.0 - np.abs((pixels + 0.5) / cell_px - 0.5 - b)) for b in range(2)]
        taps = [(pixels[t > 0], (t * gaussian)[t > 0]) for t in triangles]
        self._plan = _make_plan(cell_px, *self.grid_shape, width, taps)
        self._workspace = _make_workspace(self._plan, hog.UNSIGNED)
        self.out = np.zeros((math.prod(self.grid_shape), hog.BLOCK), np.float32)

    def compute(self, image: np.ndarray) -> np.ndarray:
        """Describe one image of the planned shape; ValueError as `check_image`. Returns `out`."""
        check_image(image, self.shape)
        self.compute_rows(image, 0, self.grid_shape[0], self._workspace)
        return self.out

    def compute_rows(self, image: np.ndarray, first: int, last: int, workspace: hog.HogWorkspace) -> None:
        """Describe the block rows first to last - 1 with a workspace of the caller's: for threads.

        Bits do not depend on how rows are split. The image is not checked.
        """
        if len(self.out):
            hog.hog_blocks(kernel_image(image), first, last, self._gamma, self._plan, self.out, workspace)

    def new_workspace(self) -> hog.HogWorkspace:
        """Return scratch for one more thread."""
        return _make_workspace(self._plan, hog.UNSIGNED)


class CellHog:
    """Felzenszwalb's 31 values for every cell of an image.

    Parameters
    ----------
    contrast : float
        Grey levels between pixels two apart: cells with less gradient than this everywhere are not scaled up.

    Attributes
    ----------
    grid_shape : (cell rows, cell columns), at least 1 x 1
    out : ndarray of shape (n_cells, 31), float32
    """

    def __init__(self, height: int, width: int, cell_px: int = 8, contrast: float = 1.0):
        self.shape = (height, width)
        self.grid_shape = (max(height // cell_px, 1), max(width // cell_px, 1))
        offsets = np.arange(-(cell_px // 2), cell_px + (cell_px + 1) // 2)
        weights = np.maximum(0.0, 1.0 - np.abs((offsets + 0.5) / cell_px - 0.5))
        self._plan = _make_plan(cell_px, *self.grid_shape, width, [(offsets, weights)])
        self._workspace = _make_workspace(self._plan, hog.SIGNED)
        self._epsilon = np.float32(max(contrast * cell_px**2, 1e-2) ** 2)
        n_rows, n = self.grid_shape[0], self._plan.inside.shape[1]
        self._cells, self._energy = np.zeros((n_rows, hog.SIGNED * n), np.float32), np.zeros((n_rows, n), np.float32)
        self._norms, self._planes = np.zeros((4, n), np.float32), np.zeros((hog.CELL, n), np.float32)
        self.out = np.zeros((math.prod(self.grid_shape), hog.CELL), np.float32)

    def compute(self, image: np.ndarray) -> np.ndarray:
        """Describe one image of the planned shape; ValueError as `check_image`. Returns `out`."""
        check_image(image, self.shape)
        hog.hog_cells(kernel_image(image), self._plan, self._cells, self._energy, self._workspace)
        hog.felzenszwalb(
            self._cells, self._energy, self.grid_shape[1], self._epsilon, self._norms, self._planes, self.out
        )
        return self.out

    def memory_bytes(self) -> int:
        """Return the bytes of all buffers and tables."""
        arrays = (*self._plan, *self._workspace, self._cells, self._energy, self._norms, self._planes, self.out)
        return sum(array.nbytes for array in arrays)
