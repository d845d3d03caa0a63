"""Areas of the picture that are never looked at, from polygons in normalised coordinates and a PNG.

Called by agent/features/extractor.py. It must not look at pixels: a mask is fixed for one frame shape.
"""

import pathlib
from collections.abc import Sequence

import cv2
import numpy as np

from stillwatch.base import ConfigError

Polygons = Sequence[Sequence[tuple[float, float]]]


def rasterise(polygons: Polygons, mask_png: str, height: int, width: int) -> np.ndarray:
    """Return the masked pixels of a frame, bool (height, width).

    A pixel is masked if its centre is in a polygon (x, y in [0, 1] of width and height) or if the PNG, scaled to the
    frame, is white there (128 or more).

    Raises
    ------
    ConfigError
        A polygon has fewer than three corners, or the PNG cannot be read.
    """
    masked = np.zeros((height, width), np.uint8)
    for number, polygon in enumerate(polygons):
        if len(polygon) < 3:
            raise ConfigError([f"features.mask[{number}]: {len(polygon)} corners, at least 3 are needed"])
        corners = np.array(polygon, np.float64) * (width, height) - 0.5
        cv2.fillPoly(masked, [np.round(corners * 256).astype(np.int32)], 1, shift=8)
    if mask_png:
        white = cv2.resize(_read_png(mask_png), (width, height), interpolation=cv2.INTER_NEAREST)
        return (masked > 0) | (white > 0)
    return masked > 0


def _read_png(path: str) -> np.ndarray:
    """Return a PNG's white pixels as uint8 0 or 1."""
    try:
        data = np.frombuffer(pathlib.Path(path).read_bytes(), np.uint8)
    except OSError as error:
        raise ConfigError([f"features.mask_png: {path}: {error.strerror}; give a PNG, white where to look"]) from None
    image = cv2.imdecode(data, cv2.IMREAD_GRAYSCALE) if data.size else None
    if image is None:
        raise ConfigError([f"features.mask_png: {path}: not an image; give a PNG, white where to look"])
    return (image >= 128).astype(np.uint8)


class MaskFill:
    """Replaces masked pixels by their nearest visible ones, so that nothing masked can reach a descriptor.

    Blanking them would make an edge at the mask's border that never was there.
    """

    def __init__(self, masked: np.ndarray):
        self._target = np.flatnonzero(masked)
        self._source = np.zeros(0, np.int64)
        if len(self._target) and not masked.all():
            _, labels = cv2.distanceTransformWithLabels(
                masked.astype(np.uint8), cv2.DIST_L2, 5, labelType=cv2.DIST_LABEL_PIXEL
            )
            place_of_label = np.zeros(labels.max() + 1, np.int64)
            visible = np.flatnonzero(~masked)
            place_of_label[labels.ravel()[visible]] = visible
            self._source = place_of_label[labels.ravel()[self._target]]
        self._grey = np.zeros(masked.shape, np.uint8)
        self._colour = np.zeros((*masked.shape, 3), np.uint8)

    def apply(self, grey: np.ndarray, colour: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return both pictures filled, in buffers valid until the next call; as they are when nothing is masked."""
        if not len(self._target):
            return grey, colour
        return self._fill(grey, self._grey), self._fill(colour, self._colour)

    def _fill(self, image: np.ndarray, out: np.ndarray) -> np.ndarray:
        np.copyto(out, image)
        flat = out.reshape(out.shape[0] * out.shape[1], -1)
        flat[self._target] = flat[self._source] if len(self._source) else 0
        return out

    def memory_bytes(self) -> int:
        """Return the bytes of the filled copies and of the table of masked pixels."""
        return self._grey.nbytes + self._colour.nbytes + self._target.nbytes + self._source.nbytes


def patches_clear_of(masked: np.ndarray, rows: np.ndarray, columns: np.ndarray, size_px: int) -> np.ndarray:
    """Return for each grid position whether the square of side `size_px` around it has no masked pixel, (n,) bool."""
    sums = cv2.integral(masked.astype(np.uint8))
    height, width = masked.shape
    top, left = np.clip(rows - size_px // 2, 0, height), np.clip(columns - size_px // 2, 0, width)
    bottom, right = np.clip(rows + size_px // 2, 0, height), np.clip(columns + size_px // 2, 0, width)
    inside = (
        sums[np.ix_(bottom, right)] - sums[np.ix_(top, right)] - sums[np.ix_(bottom, left)] + sums[np.ix_(top, left)]
    )
    return (inside == 0).ravel()
