"""What the gate looks at in a frame: a small grey thumbnail and a handful of numbers.

Called by gate.py once a frame. Keeps no state; knows nothing of thresholds.
"""

from dataclasses import dataclass

import cv2
import numpy as np

THUMB_WIDTH, THUMB_HEIGHT = 80, 60  # field notes 9 and 46: the size their thresholds were measured at
CELL_PX = 10  # of the thumbnail
BLOCK_PX = 8
FLAT_RANGE = 2  # grey levels: decoders fill with one value, a later lossy stage moves it by one
GREY_FILL = (125, 131)  # around 128, which decoders fill lost blocks with


@dataclass(frozen=True, slots=True)
class Measures:
    """One frame in numbers.

    Attributes
    ----------
    thumb : ndarray of shape (at most 60, at most 80), float32
        Area-averaged grey.
    mean, low, high : float
        Grey levels: mean, 5th and 95th percentile of the thumbnail.
    chroma : float
        Mean over pixels of the largest minus the smallest colour channel of the thumbnail.
    sharpness : float
        Mean absolute Laplacian at the working size over the thumbnail's standard deviation (plus one).
    detail : float
        Share of thumbnail cells that hold structure rather than one tone and averaged noise.
    grey_fill : float
        Share of 8x8 blocks filled with decoder grey.
    """

    thumb: np.ndarray
    mean: float
    low: float
    high: float
    chroma: float
    sharpness: float
    detail: float
    grey_fill: float


def measure(grey: np.ndarray, colour: np.ndarray) -> Measures:
    """Measure a frame: grey (height, width) uint8 and colour (height, width, 3) uint8 of at least 16x16."""
    size = (min(THUMB_WIDTH, grey.shape[1]), min(THUMB_HEIGHT, grey.shape[0]))
    small = cv2.resize(colour, size, interpolation=cv2.INTER_AREA)
    thumb = cv2.resize(grey.astype(np.float32), size, interpolation=cv2.INTER_AREA)
    mean = float(thumb.mean())
    low, high = np.percentile(thumb, (5.0, 95.0))
    spread = small.max(axis=2).astype(np.int16) - small.min(axis=2)
    laplacian = cv2.Laplacian(grey, cv2.CV_16S, ksize=1)
    sharpness = cv2.norm(laplacian, cv2.NORM_L1) / grey.size / (float(thumb.std()) + 1.0)
    return Measures(thumb, mean, float(low), float(high), float(spread.mean()), sharpness,
                    _detail(thumb, mean), _grey_fill(grey))


def _cells(image: np.ndarray, side: int) -> np.ndarray:
    """Return a view of shape (rows, side, columns, side), the remainder cut off."""
    rows, columns = max(1, image.shape[0] // side), max(1, image.shape[1] // side)
    height, width = min(side, image.shape[0]), min(side, image.shape[1])
    return image[: rows * height, : columns * width].reshape(rows, height, columns, width)


def _detail(thumb: np.ndarray, mean: float) -> float:
    # Dim scenes have little contrast and little noise; bright flat ones (a hand, paint) have shading and both.
    floor = min(0.75 + 0.02 * mean, 3.0)
    return float((_cells(thumb, CELL_PX).std(axis=(1, 3)) > floor).mean())


def _grey_fill(grey: np.ndarray) -> float:
    blocks = _cells(grey, BLOCK_PX)
    most, least = blocks.max(axis=(1, 3)), blocks.min(axis=(1, 3))
    return float(((most - least <= FLAT_RANGE) & (least >= GREY_FILL[0]) & (most <= GREY_FILL[1])).mean())
