"""Files of pictures under any name: OpenCV itself opens no name that is not UTF-8, and ends the process instead.

Called by commands that read or write pictures one by one.
"""

import pathlib
from collections.abc import Sequence

import numpy as np


def read_image(path: pathlib.Path | str, *, grey: bool = False) -> np.ndarray | None:
    """Return a picture as BGR, (h, w, 3) uint8, or grey, (h, w) uint8; None where it cannot be read.

    cv2.error where it has more pixels than OpenCV may decode.
    """
    import cv2

    try:
        coded = np.fromfile(path, np.uint8)
    except OSError:
        return None
    if not len(coded):
        return None
    return cv2.imdecode(coded, cv2.IMREAD_GRAYSCALE if grey else cv2.IMREAD_COLOR)


def write_image(path: pathlib.Path, image: np.ndarray, options: Sequence[int] = ()) -> None:
    """Write a picture in the form that the name ends with; OSError where the disk does not take it."""
    import cv2

    path.write_bytes(cv2.imencode(path.suffix, image, options)[1].tobytes())
