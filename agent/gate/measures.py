"""What the gate looks at in a frame: a small grey thumbnail and a handful of numbers.

Called by agent/gate/gate.py once a frame. Keeps no state; knows nothing of thresholds.
"""

from dataclasses import dataclass

import cv2
import numpy as np

from stillwatch.kernels.pictures import means_of_blocks, takes_blocks

THUMB_WIDTH, THUMB_HEIGHT = 80, 60  # at most; field notes 9 and 46: the size their thresholds were measured at
CELL_PX = 10  # of the thumbnail
BLOCK_PX = 8
GREY_FILL = (126, 130)  # decoders fill lost blocks with 128; scaling and a later lossy stage move it by one


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
        Strength of the strongest edges: the 99.5th percentile of the absolute Laplacian at half the working size,
        over the thumbnail's standard deviation (plus one). Means are useless here: noise outweighs lost edges.
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
    thumb = _shrunk(grey, rounded=False)
    blue, green, red = cv2.split(_shrunk(colour, rounded=True))
    mean = float(thumb.mean())
    ordered = np.sort(thumb, axis=None)
    low, high = ordered[ordered.size // 20], ordered[-1 - ordered.size // 20]
    most, least = cv2.max(cv2.max(blue, green), red), cv2.min(cv2.min(blue, green), red)
    return Measures(
        thumb,
        mean,
        float(low),
        float(high),
        cv2.mean(most)[0] - cv2.mean(least)[0],
        _sharpness(grey, float(thumb.std())),
        _detail(thumb, mean),
        _grey_fill(grey),
    )


def _shrunk(image: np.ndarray, *, rounded: bool) -> np.ndarray:
    """Return the image averaged over squares of a whole number of pixels (fast), remainder cut off.

    Of its own type where `rounded`, else float32.
    """
    height, width = image.shape[:2]
    factor = max(1, -(-width // THUMB_WIDTH), -(-height // THUMB_HEIGHT))
    rows, columns = height // factor, width // factor
    if takes_blocks(factor, factor):
        return means_of_blocks(image, (rows, columns), (factor, factor), rounded=rounded)
    whole = np.ascontiguousarray(image[: rows * factor, : columns * factor], None if rounded else np.float32)
    return np.asarray(cv2.resize(whole, (columns, rows), interpolation=cv2.INTER_AREA))


def _sharpness(grey: np.ndarray, deviation: float) -> float:
    rows, columns = grey.shape[0] // 2, grey.shape[1] // 2
    half = cv2.resize(
        np.ascontiguousarray(grey[: 2 * rows, : 2 * columns]), (columns, rows), interpolation=cv2.INTER_AREA
    )
    edges = np.abs(cv2.Laplacian(half, cv2.CV_16S, ksize=1)).ravel()
    place = edges.size - 1 - edges.size // 200
    return float(np.partition(edges, place)[place]) / (deviation + 1.0)


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
    filled = cv2.inRange(grey, GREY_FILL[0], GREY_FILL[1])
    if cv2.countNonZero(filled) * 20 < grey.size:
        return 0.0
    rows, columns = max(1, grey.shape[0] // BLOCK_PX), max(1, grey.shape[1] // BLOCK_PX)
    blocks = np.ascontiguousarray(filled[: rows * BLOCK_PX, : columns * BLOCK_PX])
    return float((cv2.resize(blocks, (columns, rows), interpolation=cv2.INTER_AREA) == 255).mean())
