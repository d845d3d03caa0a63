"""From whatever a camera or file holds to 8-bit BGR, by a scale that is fixed per camera; and to the working size.

Called by the sources (PixelScale, to_bgr) and agent/sources/capture.py (fit_box). Never scales by a frame's own
minimum and maximum: a dark frame must stay dark.
"""

import cv2
import numpy as np

from stillwatch.settings import SourceConfig

if hasattr(cv2, "utils") and hasattr(cv2.utils, "logging"):  # decoders complain on stderr; we raise instead
    cv2.utils.logging.setLogLevel(cv2.utils.logging.LOG_LEVEL_SILENT)

BAYER_CODES = {
    "rggb": cv2.COLOR_BayerRGGB2BGR,
    "bggr": cv2.COLOR_BayerBGGR2BGR,
    "grbg": cv2.COLOR_BayerGRBG2BGR,
    "gbrg": cv2.COLOR_BayerGBRG2BGR,
}
DEPTHS_16 = (4095.0, 16383.0, 65535.0)  # white of 12, 14 and 16 bits; 10-bit cameras set source.white_level
DEPTHS_FLOAT = (1.0, 255.0, 65535.0)
CLIPPED_SHARE = 0.005  # more of a frame above white means that the learnt depth was too small


class PixelScale:
    """Black and white level of one camera: configured, or learnt once from the first frame's depth.

    A learnt white is the smallest depth of the sensor's type that holds the frame; it is widened, never narrowed,
    when later frames clip. `name` changes with it, which starts a new stream epoch.
    """

    def __init__(self, config: SourceConfig):
        self._black = config.black_level
        self._white = config.white_level
        self._configured = config.white_level > 0.0
        self._bayer = BAYER_CODES.get(config.bayer)

    @property
    def name(self) -> str:
        """The scale in words, part of a frame's pixel format; empty while nothing but 8 bits was seen."""
        return f"white{self._white:g}" if self._white else ""

    def to_bgr(self, image: np.ndarray) -> np.ndarray:
        """Return the image as (height, width, 3) uint8 BGR; itself where it is that already.

        Parameters
        ----------
        image : ndarray of shape (height, width) or (height, width, 1 to 4)
            Any integer or float type; grey, Bayer (as configured), BGR or BGRA (alpha is ignored).

        Raises
        ------
        ValueError
            For any other shape or type.
        """
        if image.ndim == 3 and image.shape[2] in (1, 2):
            image = image[:, :, 0]
        if image.ndim not in (2, 3) or image.size == 0 or (image.ndim == 3 and image.shape[2] not in (3, 4)):
            raise ValueError(f"pixels of shape {image.shape} are neither grey nor colour")
        if image.dtype != np.uint8 or self._configured or self._black > 0.0:
            image = self._to_8_bit(image)
        if image.ndim == 2:
            code = cv2.COLOR_GRAY2BGR if self._bayer is None or min(image.shape) < 2 else self._bayer
            return cv2.cvtColor(image, code)
        return cv2.cvtColor(image, cv2.COLOR_BGRA2BGR) if image.shape[2] == 4 else image

    def _to_8_bit(self, image: np.ndarray) -> np.ndarray:
        if image.dtype.kind not in "buif":
            raise ValueError(f"pixels of type {image.dtype} are not numbers")
        values = image.astype(np.float32)
        if image.dtype.kind == "f":
            # Limits, not zero: an overflow is bright, and what was never measured is black.
            np.nan_to_num(values, copy=False, nan=0.0, posinf=float(np.finfo(np.float32).max), neginf=0.0)
        if not self._configured:
            self._learn_white(values, image.dtype)
        gain = 255.0 / max(self._white - self._black, 1e-6)
        return np.clip((values - self._black) * gain + 0.5, 0.0, 255.0).astype(np.uint8)

    def _learn_white(self, values: np.ndarray, dtype: np.dtype) -> None:
        depths = (255.0,) if dtype.itemsize == 1 else DEPTHS_FLOAT if dtype.kind == "f" else DEPTHS_16
        clipped = CLIPPED_SHARE * values.size if self._white else 0.0
        for white in depths:
            if white >= self._white and np.count_nonzero(values > white) <= clipped:
                self._white = white
                return
        self._white = max(self._white, depths[-1])


def box_size(width: int, height: int, box_width: int, box_height: int) -> tuple[int, int]:
    """Return (width, height) of a frame fitted into the box, keeping its shape and never enlarging it."""
    scale = min(box_width / width, box_height / height, 1.0)
    return max(1, round(width * scale)), max(1, round(height * scale))


def fit_box(colour: np.ndarray, size: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Return new read-only (grey, colour) arrays of `size` (width, height) from a BGR image.

    Area averaging (no aliasing), then ITU-R BT.601 grey of the scaled colours.
    """
    if (colour.shape[1], colour.shape[0]) == size:
        scaled = np.array(colour, order="C")
    else:
        scaled = cv2.resize(colour, size, interpolation=cv2.INTER_AREA)
    grey = cv2.cvtColor(scaled, cv2.COLOR_BGR2GRAY)
    scaled.flags.writeable = False
    grey.flags.writeable = False
    return grey, scaled
