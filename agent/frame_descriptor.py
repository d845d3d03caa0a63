"""One descriptor of a whole frame: a spatial pyramid of pooled HOG cells and of Lab colour moments.

Called by agent/features.py. It must not reduce or remember descriptors, nor see a masked pixel.
"""

import cv2
import numpy as np

LEVELS = (1, 2, 4)  # regions along each side: 21 in all (Lazebnik, Schmid and Ponce 2006)
COLOUR_LEVELS = (1, 2)
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


class FrameDescriptor:
    """Computes the raw descriptor of one frame into a buffer of its own.

    Parameters
    ----------
    colour_constancy : bool
        Remove the water's colour cast before colour is measured.

    Attributes
    ----------
    out : ndarray of shape (n_dims,), float32
    """

    n_dims = 9 * sum(level * level for level in COLOUR_LEVELS)

    def __init__(self, masked: np.ndarray, colour_constancy: bool):
        self._constancy = colour_constancy
        self.out = np.zeros(self.n_dims, np.float32)
        self.reshape(masked)

    def reshape(self, masked: np.ndarray) -> None:
        """Plan for frames of another shape: that of `masked`, bool (height, width)."""
        height, width = masked.shape
        scale = min(1.0, COLOUR_SIDE_PX / max(height, width))
        self._size = (max(1, round(width * scale)), max(1, round(height * scale)))
        self._visible = cv2.resize(masked.astype(np.float32), self._size, interpolation=cv2.INTER_AREA) == 0
        self._regions = pyramid_regions(self._size[1], self._size[0], COLOUR_LEVELS)

    def compute(self, grey: np.ndarray, colour: np.ndarray) -> np.ndarray:
        """Describe a frame; grey (height, width) and BGR (height, width, 3) uint8. Returns `out`."""
        small = cv2.resize(colour, self._size, interpolation=cv2.INTER_AREA).reshape(self._size[1], self._size[0], 3)
        if self._constancy:
            small = grey_world(small, self._visible)
        lab = cv2.cvtColor(small.astype(np.float32) / 255, cv2.COLOR_BGR2LAB) / 100
        for number, (rows, columns) in enumerate(self._regions):
            self.out[9 * number : 9 * number + 9] = colour_moments(lab[rows, columns], self._visible[rows, columns])
        return self.out


def colour_moments(lab: np.ndarray, visible: np.ndarray) -> np.ndarray:
    """Return mean, deviation and cube root of the third moment of each channel over visible pixels, (9,); 0 if none.

    Stricker and Orengo 1995, equation 5.
    """
    pixels = lab[visible]
    if not len(pixels):
        return np.zeros(9, np.float32)
    mean = pixels.mean(axis=0)
    centred = pixels - mean
    return np.concatenate([mean, np.sqrt((centred**2).mean(axis=0)), np.cbrt((centred**3).mean(axis=0))])
