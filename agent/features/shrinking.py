"""Pictures made smaller by averaging areas, as OpenCV does it, whole blocks of pixels by a kernel of our own.

Called by agent/features and agent/describing. It must not choose a size.
"""

import cv2
import numpy as np

from stillwatch.kernels.pictures import means_of_blocks, takes_blocks


def shrunk(image: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """Return a picture, (height, width) or (height, width, 3) uint8, at (rows, columns): the mean of what each covers.

    The bits are those of OpenCV's INTER_AREA, which takes two to three times as long where areas are whole blocks.
    """
    height, width = image.shape[:2]
    down, across = height // rows, width // columns
    if (rows * down, columns * across) == (height, width) and takes_blocks(down, across):
        return means_of_blocks(image, (rows, columns), (down, across))
    return np.asarray(cv2.resize(image, (columns, rows), interpolation=cv2.INTER_AREA))
