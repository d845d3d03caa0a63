"""One descriptor of a whole frame: a spatial pyramid of pooled HOG cells and of Lab colour moments.

Called by agent/features/extractor.py. It must not reduce or remember descriptors, nor see a masked pixel.
"""

import cv2
import numpy as np

from stillwatch.features.hog import CellHog
from stillwatch.kernels.pictures import means_of_blocks, powers_of_colours, takes_blocks

LEVELS = (1, 2, 4)  # regions along each side: 21 in all (Lazebnik, Schmid and Ponce 2006)
COLOUR_LEVELS = (1, 2)
CELL_PX, CELL_DIMS, COLOUR_DIMS = 8, 31, 9
CELL_CONTRAST = 20.0  # grey levels between pixels two apart; with 1, cells of noise outweigh what is in the picture
COLOUR_SIDE_PX = 96  # colour moments do not need more: the longer side of the picture that they are taken of


def pyramid_regions(rows: int, columns: int, levels: tuple[int, ...]) -> list[tuple[slice, slice]]:
    """Return the pyramid's regions as slices of a (rows, columns) grid; the coarsest first, none empty."""
    regions = []
    for level in levels:
        for r in range(level):
            for c in range(level):
                top, left = r * rows // level, c * columns // level
                bottom, right = (r + 1) * rows // level, (c + 1) * columns // level
                regions.append((slice(top, max(bottom, top + 1)), slice(left, max(right, left + 1))))
    return regions


def grey_world(bgr: np.ndarray, visible: np.ndarray) -> np.ndarray:
    """Return the picture with each channel's mean log set to that of all channels, uint8.

    Water takes a constant share of each colour per metre: a shift of the log image, which this removes
    (grey-world on logarithms). Only visible pixels count.
    """
    log = np.log1p(bgr.astype(np.float32))
    if not visible.any():
        return bgr
    means = log[visible].mean(axis=0)
    return np.clip(np.expm1(log + (means.mean() - means)), 0, 255).round().astype(np.uint8)


def pooling_matrix(visible: np.ndarray, regions: list[tuple[slice, slice]]) -> np.ndarray:
    """Return (n_regions, n_cells) float32 whose rows average the visible cells of each region; zeros where none is."""
    rows = []
    for region in regions:
        inside = np.zeros(visible.shape, np.float32)
        inside[region] = visible[region]
        rows.append(inside.ravel() / max(inside.sum(), 1.0))
    return np.stack(rows)


class FrameDescriptor:
    """Computes the raw descriptor of one frame into a buffer of its own.

    Parameters
    ----------
    masked : ndarray of shape (height, width), bool
        Its shape is that of the frames. Cells with a masked pixel count in no region.
    colour_constancy : bool
        Remove the water's colour cast before colour is measured.

    Attributes
    ----------
    out : ndarray of shape (n_dims,), float32
        Mean of Felzenszwalb's 31 values in each of 21 regions, then 9 colour moments in each of 5.
    """

    n_regions, n_colour_regions = sum(n * n for n in LEVELS), sum(n * n for n in COLOUR_LEVELS)
    n_dims = CELL_DIMS * n_regions + COLOUR_DIMS * n_colour_regions

    def __init__(self, masked: np.ndarray, colour_constancy: bool):
        height, width = masked.shape
        self._constancy = colour_constancy
        self.out = np.zeros(self.n_dims, np.float32)
        self._pooled = self.out[: CELL_DIMS * self.n_regions].reshape(self.n_regions, CELL_DIMS)
        self._moments = self.out[CELL_DIMS * self.n_regions :].reshape(self.n_colour_regions, COLOUR_DIMS)
        self._hog = CellHog(height, width, CELL_PX, CELL_CONTRAST)
        rows, columns = self._hog.grid_shape
        visible = np.zeros((rows, columns), np.bool_)
        for r, c in np.ndindex(rows, columns):
            visible[r, c] = not masked[r * CELL_PX : (r + 1) * CELL_PX, c * CELL_PX : (c + 1) * CELL_PX].any()
        self._pooling = pooling_matrix(visible, pyramid_regions(rows, columns, LEVELS))
        factor = -(-max(height, width) // COLOUR_SIDE_PX)  # whole, as cv2 averages whole blocks several times faster
        self._block = (min(factor, height), min(factor, width))
        self._size = (width // self._block[1], height // self._block[0])
        self._crop = (self._size[1] * self._block[0], self._size[0] * self._block[1])
        self._visible = self._shrink(masked.astype(np.float32)) == 0
        regions = pyramid_regions(self._size[1], self._size[0], COLOUR_LEVELS)
        self._colour_pooling = pooling_matrix(self._visible, regions).astype(np.float64)
        self._powers = np.zeros((self._visible.size, COLOUR_DIMS))

    def compute(self, grey: np.ndarray, colour: np.ndarray) -> np.ndarray:
        """Describe a frame; grey (height, width) and BGR (height, width, 3) uint8. Returns `out`."""
        np.matmul(self._pooling, self._hog.compute(grey), out=self._pooled)
        small = self._shrink(colour)
        if self._constancy:
            small = grey_world(small, self._visible)
        lab = cv2.cvtColor(small.astype(np.float32) / 255, cv2.COLOR_BGR2LAB)
        colour_moments(lab, self._colour_pooling, self._powers, self._moments)
        return self.out

    def _shrink(self, image: np.ndarray) -> np.ndarray:
        """Return the mean of whole blocks of pixels; what is left over at the right and the bottom is dropped."""
        if image.dtype == np.uint8 and takes_blocks(*self._block):
            return means_of_blocks(image, (self._size[1], self._size[0]), self._block)
        return cv2.resize(image[: self._crop[0], : self._crop[1]], self._size, interpolation=cv2.INTER_AREA)

    def memory_bytes(self) -> int:
        """Return the bytes of all buffers and tables at this frame shape."""
        return (
            self.out.nbytes
            + self._hog.memory_bytes()
            + self._pooling.nbytes
            + self._powers.nbytes
            + (self._colour_pooling.nbytes + self._visible.nbytes)
        )


def colour_moments(small: np.ndarray, pooling: np.ndarray, powers: np.ndarray, out: np.ndarray) -> None:
    """Write mean, deviation and cube root of the third central moment of L, a and b in each region.

    Parameters
    ----------
    small : ndarray of shape (height, width, 3), float32
        Lab, 0 to 100.
    pooling : ndarray of shape (n_regions, height * width), float64
        Rows average over a region's visible pixels.
    powers : ndarray of shape (height * width, 9), float64, workspace
        float64, as the moments are found from means of powers.
    out : ndarray of shape (n_regions, 9), float32, in hundredths of Lab's units; zeros where nothing is visible

    References
    ----------
    Stricker and Orengo, Similarity of color images, SPIE 2420, 1995, equation 5.
    """
    powers_of_colours(small.reshape(-1, 3), 0.01, powers)
    means = pooling @ powers
    first, second, third = means[:, :3], means[:, 3:6], means[:, 6:]
    variance = np.maximum(second - first * first, 0.0)
    out[:, :3], out[:, 3:6] = first, np.sqrt(variance)
    out[:, 6:] = np.cbrt(third - first * (3.0 * variance + first * first))
