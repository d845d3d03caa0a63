"""Damage that no decoder reports: a sudden jump in how much edges lie on the macroblock grid.

Called by agent/sources/video.py with every decoded frame at its native size, where the grid still is 16 pixels. Must
not be asked about scaled frames.
"""

import cv2
import numpy as np

GRID_PX = 16
LEAST_SIDE_PX = 64
ROWS_LOOKED_AT = 120
JUMP_RATIO = 1.8  # of the usual; clean clips stay within 1.6 of their median (ok_mjpeg_raw_stream)
LEAST = 2.5  # clean H.264, HEVC, VP9 and AV1 stay below 2.3; damaged frames reach 3 to 20
KNOWN_AFTER = 8  # frames
RISE, FALL = 0.1, 0.002  # the usual follows the worst ordinary frames: rate control makes some groups poor
BELIEVED_AFTER = 25  # a jump that lasts for so many frames in a row is an encoder short of bits, not damage


class BlockinessJump:
    """Compare each frame's blockiness with what is usual for the stream."""

    def __init__(self) -> None:
        self._usual = 0.0
        self._known = 0
        self._in_a_row = 0
        self._shape: tuple[int, ...] = ()

    def is_damaged(self, colour: np.ndarray) -> bool:
        """Say whether this frame, (height, width, 3) uint8, shows blocks as the stream does not usually."""
        if min(colour.shape[:2]) < LEAST_SIDE_PX:
            return False
        if colour.shape != self._shape:
            self._shape, self._known, self._in_a_row = colour.shape, 0, 0
        now = blockiness(colour)
        if self._known >= KNOWN_AFTER and now > max(LEAST, JUMP_RATIO * self._usual):
            self._in_a_row += 1
            if self._in_a_row < BELIEVED_AFTER:
                return True
            self._known = 0
        self._in_a_row = 0
        self._known += 1
        share = RISE if now > self._usual else FALL
        self._usual += max(share, 1.0 / self._known) * (now - self._usual)
        return False


def blockiness(colour: np.ndarray) -> float:
    """Return the mean step over macroblock borders relative to that at other places, the larger of both directions.

    The green channel stands for brightness. About 1 for pictures without blocks; half a grey level is added to
    both sides, so that flat pictures give 1 and not noise.
    """
    height, width = colour.shape[:2]
    rows = np.ascontiguousarray(colour[:: max(1, height // ROWS_LOOKED_AT), :, 1])
    columns = np.ascontiguousarray(colour[:, :: max(1, width // ROWS_LOOKED_AT), 1])
    across = cv2.reduce(cv2.absdiff(rows[:, 1:], rows[:, :-1]), 0, cv2.REDUCE_SUM, dtype=cv2.CV_32S)
    down = cv2.reduce(cv2.absdiff(columns[1:], columns[:-1]), 1, cv2.REDUCE_SUM, dtype=cv2.CV_32S)
    return max(_border_ratio(across.ravel() / len(rows)), _border_ratio(down.ravel() / columns.shape[1]))


def _border_ratio(steps: np.ndarray) -> float:
    """Return how much larger steps are at the grid's lines; `steps`, (n,) float64, are the means along each line."""
    whole = steps[: steps.size // GRID_PX * GRID_PX].reshape(-1, GRID_PX)
    # Medians over the grid's lines: an object's edge may lie along one of them, lost blocks lie along most.
    places = _medians(whole)
    return (float(places[GRID_PX - 1]) + 0.5) / (float(_medians(places)) + 0.5)


def _medians(values: np.ndarray) -> np.ndarray:
    """Return the median of each column, as np.median, which takes longer to begin than to sort so few values."""
    ordered = np.sort(values, axis=0)
    return (ordered[(len(values) - 1) // 2] + ordered[len(values) // 2]) / 2.0
