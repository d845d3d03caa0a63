"""Segments of a picture: which pixels belong together, and a descriptor of each.

Called by tools/survey/describe.py and the page. One picture has the same segments wherever and whenever it is asked.
"""

import importlib.util

import cv2
import numpy as np

SUPERPIXELS, PATCHES, NONE = "slic", "patches", "none"
# About as many as the thesis has (5.4.1).
N_SUPERPIXELS, COMPACTNESS = 50, 10.0
GRID = (6, 8)
N_COLOURS = 3


def best_segments() -> str:
    """Return SUPERPIXELS where scikit-image is installed, else PATCHES."""
    return SUPERPIXELS if importlib.util.find_spec("skimage") is not None else PATCHES


def segment_map(image: np.ndarray, kind: str) -> np.ndarray:
    """Return the segment of each pixel, (height, width) int64, from 0 without gaps.

    image : (height, width, 3) uint8 BGR;  kind : SUPERPIXELS (SLIC, Achanta et al. 2012) or PATCHES, cells of a grid
    """
    height, width = image.shape[:2]
    if kind == PATCHES:
        rows = np.arange(height) * GRID[0] // height
        columns = np.arange(width) * GRID[1] // width
        cells = rows[:, None] * GRID[1] + columns
    else:
        from skimage.segmentation import slic

        cells = slic(image[:, :, ::-1], n_segments=N_SUPERPIXELS, compactness=COMPACTNESS, start_label=0)
    _, place = np.unique(cells, return_inverse=True)
    return place.reshape(height, width).astype(np.int64)


def describe_segments(
    image: np.ndarray, cells: np.ndarray, patches: np.ndarray, rows: np.ndarray, columns: np.ndarray
) -> np.ndarray:
    """Return mean SIFT, and mean and deviation of Lab colour, of each segment, (n_segments, 134) float16.

    Parameters
    ----------
    image : ndarray of shape (height, width, 3), uint8, BGR;  cells : its `segment_map`
    patches : ndarray of shape (n, 128), float32: SIFT of patches, by row and column
    rows, columns : centres of the patches' rows and columns, pixels

    A segment that holds no patch's centre has the patch nearest to its own.
    """
    n = int(cells.max()) + 1
    rows, columns = rows.astype(int), columns.astype(int)
    of_patch = cells[rows[:, None], columns].ravel()
    sums = np.zeros((n, patches.shape[1]), np.float32)
    np.add.at(sums, of_patch, patches)
    held = np.bincount(of_patch, minlength=n)
    flat = cells.ravel()
    area = np.bincount(flat, minlength=n)
    for bare in np.flatnonzero(held == 0):
        y, x = (places.mean() for places in np.nonzero(cells == bare))
        sums[bare] = patches[np.abs(rows - y).argmin() * len(columns) + np.abs(columns - x).argmin()]
    sums /= np.maximum(held, 1)[:, None]
    lab = cv2.cvtColor(image, cv2.COLOR_BGR2LAB).reshape(-1, N_COLOURS) / 255.0
    mean = np.stack([np.bincount(flat, lab[:, c], n) / area for c in range(N_COLOURS)], axis=1)
    square = np.stack([np.bincount(flat, lab[:, c] ** 2, n) / area for c in range(N_COLOURS)], axis=1)
    spread = np.sqrt(np.maximum(square - mean * mean, 0.0))
    return np.concatenate([sums, mean, spread], axis=1).astype(np.float16)
