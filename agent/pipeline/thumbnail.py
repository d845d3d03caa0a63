"""Small JPEGs of frames for alerts and exemplars, within a limit of bytes.

Called by agent/pipeline/pipeline.py. It draws nothing into the picture: outlines travel as boxes beside it, so that the
person at the other end can see what is under them.
"""

import cv2
import numpy as np

_QUALITIES = (80, 65, 50, 35, 20, 10)


def jpeg_thumbnail(colour: np.ndarray, width_px: int, max_bytes: int) -> bytes:
    """Return the frame as a JPEG at most `width_px` wide and `max_bytes` long; empty if it cannot be that small.

    Parameters
    ----------
    colour : ndarray of shape (height, width, 3), uint8 BGR
    width_px, max_bytes : int
        The best quality that fits is used; then the picture is halved, twice at most.
    """
    height, width = colour.shape[:2]
    for halving in range(3):
        target = min(width_px, width) >> halving
        if target < 8:
            break
        size = (target, max(1, round(height * target / width)))
        small = colour if size[0] == width else cv2.resize(colour, size, interpolation=cv2.INTER_AREA)
        for quality in _QUALITIES:
            done, data = cv2.imencode(".jpg", small, [cv2.IMWRITE_JPEG_QUALITY, quality])
            if done and len(data) <= max_bytes:
                return data.tobytes()
    return b""
