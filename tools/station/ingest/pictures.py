"""Pictures of agents, decoded and encoded again: what a browser gets was made here, whatever came.

Used by every ear of tools/station/ingest. The size that a picture claims is read before any decoder sees it, so that a
small file cannot ask for much memory.
"""

import cv2
import numpy as np

from stillwatch.tools.station.store import Picture

MOST_BYTES = 200_000
MOST_PIXELS = 4_000_000
LONGEST_SIDE = 1280
QUALITY = 88
_SIZES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}  # JPEG's markers of a frame


def safe_picture(data: bytes, *, frame: int, at_ns: int, boxes: list[list[float]]) -> Picture | None:
    """Return a JPEG as the station encodes it, or None: no JPEG, damaged, too large."""
    size = jpeg_size(data) if len(data) <= MOST_BYTES else None
    if size is None or not 0 < size[0] * size[1] <= MOST_PIXELS:
        return None
    try:
        pixels = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    except cv2.error:
        return None
    return None if pixels is None else encoded(pixels, frame=frame, at_ns=at_ns, boxes=boxes)


def encoded(pixels: np.ndarray, *, frame: int, at_ns: int, boxes: list[list[float]]) -> Picture | None:
    """Return pixels (grey or BGR, uint8) as a picture of the store, no longer than LONGEST_SIDE."""
    height, width = pixels.shape[:2]
    scale = LONGEST_SIDE / max(height, width)
    if scale < 1.0:
        size = (max(round(width * scale), 1), max(round(height * scale), 1))
        pixels = cv2.resize(pixels, size, interpolation=cv2.INTER_AREA)
    is_done, data = cv2.imencode(".jpg", pixels, [cv2.IMWRITE_JPEG_QUALITY, QUALITY])
    if not is_done:
        return None
    height, width = pixels.shape[:2]
    return Picture(data.tobytes(), "image/jpeg", width, height, frame, at_ns, boxes)


def jpeg_size(data: bytes) -> tuple[int, int] | None:
    """Return (width, height) that a JPEG's header claims, or None: no JPEG, or no frame header in it."""
    if data[:2] != b"\xff\xd8":
        return None
    at = 2
    while at + 9 <= len(data):
        if data[at] != 0xFF:
            return None
        marker = data[at + 1]
        if marker == 0xFF:  # fill
            at += 1
        elif marker in _SIZES:
            return int.from_bytes(data[at + 7 : at + 9], "big"), int.from_bytes(data[at + 5 : at + 7], "big")
        elif marker == 0x01 or 0xD0 <= marker <= 0xD8:
            at += 2
        else:
            at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return None
