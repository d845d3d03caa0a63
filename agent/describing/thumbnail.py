"""Small JPEGs of frames for alerts and exemplars, within a limit of bytes.

Called by agent/pipeline/pipeline.py and agent/pipeline/best_view.py. It draws nothing into the picture: outlines travel
as boxes beside it, so that the person at the other end can see what is under them.
"""

import cv2
import numpy as np

from stillwatch.features import shrunk

_QUALITIES = (80, 65, 50, 35, 20, 10)
_LEAST_PX = 8  # narrower pictures show nothing


def jpeg_thumbnail(colour: np.ndarray, width_px: int, max_bytes: int) -> bytes:
    """Return the frame as a JPEG at most `width_px` wide and `max_bytes` long; empty if it cannot be that small.

    Parameters
    ----------
    colour : ndarray of shape (height, width, 3), uint8 BGR
    width_px, max_bytes : int
    """
    return encode_within(scaled(colour, width_px), max_bytes)


def scaled(colour: np.ndarray, width_px: int) -> np.ndarray:
    """Return the picture at most `width_px` wide; itself where it is not wider.

    Squares of whole pixels are averaged; the rest, below 1.5 times, is interpolated: in half the time of areas of 2.4
    pixels a side.
    """
    height, width = colour.shape[:2]
    if width <= width_px:
        return colour
    rows = max(1, round(height * width_px / width))
    times = min(width // width_px, height // rows)
    if times < 2:
        return shrunk(colour, rows, width_px)
    whole = colour[: height // times * times, : width // times * times]
    averaged = shrunk(whole, height // times, width // times)
    return np.asarray(cv2.resize(averaged, (width_px, rows), interpolation=cv2.INTER_LINEAR_EXACT))


def crop_around(colour: np.ndarray, centre: tuple[float, float], side_px: int, max_bytes: int) -> bytes:
    """Return a square of the frame as a JPEG, moved into the frame where it reaches beyond; centre: x, y as shares."""
    height, width = colour.shape[:2]
    side = min(side_px, height, width)
    left = min(max(round(centre[0] * width - side / 2), 0), width - side)
    top = min(max(round(centre[1] * height - side / 2), 0), height - side)
    return encode_within(colour[top : top + side, left : left + side], max_bytes)


def encode_within(picture: np.ndarray, max_bytes: int) -> bytes:
    """Return a JPEG of the best quality that fits; then the picture is halved, twice at most; then b""."""
    for _ in range(3):
        if picture.shape[1] < _LEAST_PX:
            break
        for quality in _QUALITIES:
            done, data = cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, quality])
            if done and len(data) <= max_bytes:
                return data.tobytes()
        picture = scaled(picture, picture.shape[1] >> 1)
    return b""
