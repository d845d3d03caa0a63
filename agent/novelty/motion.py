"""Finds out by itself whether the camera stands still or moves: once, from the first accepted frames.

Called by agent/novelty/score.py. It must not change its mind: what is learnt afterwards depends on the answer.
"""

import cv2
import numpy as np

from stillwatch.base import SnapshotError, State

DECISION_FRAMES = 12  # as many as the encoder's warm-up takes: nothing waits for the answer
WIDTH, HEIGHT = 80, 60  # coarse enough that the shake of a mast is a fraction of a pixel
BLOCK = 10
LEAST_TEXTURE = 1.5  # grey levels of deviation: below it a block shows no motion
FIRST_LAG = 4  # frames: a slow vehicle needs some to leave its place
KEPT_SHARE = 0.5  # a block that keeps less of its structure has moved


class CameraMotion:
    """Compares each early frame with the first, block by block, by correlation (no gain or offset can mislead it).

    A block has moved when its correlation with the same place in the first frame is below KEPT_SHARE. People and
    cars move some blocks, a moving camera nearly all that have texture: the camera moves where at least half of
    the textured blocks did, over the frames from FIRST_LAG on. Without texture it counts as fixed.

    Attributes
    ----------
    decided : bool
    moving : bool
        Meaningful once decided.
    """

    def __init__(self, camera: str):
        """`camera`: "fixed" or "moving" (decided at once), or "auto"."""
        self.moving = camera == "moving"
        self.decided = camera != "auto"
        self._first = np.zeros((HEIGHT, WIDTH), np.float32)
        self._n_frames = 0
        self._moved = 0.0
        self._textured = 0.0

    @property
    def progress(self) -> float:
        """Share of the frames needed for the decision."""
        return 1.0 if self.decided else self._n_frames / DECISION_FRAMES

    def observe(self, grey: np.ndarray) -> None:
        """Take the next accepted frame, (height, width) uint8; nothing more once decided."""
        if self.decided:
            return
        small = cv2.resize(grey, (WIDTH, HEIGHT), interpolation=cv2.INTER_AREA).astype(np.float32)
        if self._n_frames == 0:
            self._first[:] = small
        elif self._n_frames >= FIRST_LAG:
            moved, textured = blocks_moved(self._first, small)
            self._moved += moved
            self._textured += textured
        self._n_frames += 1
        if self._n_frames == DECISION_FRAMES:
            self.moving = self._textured > 0 and self._moved >= 0.5 * self._textured
            self.decided = True

    def state(self) -> State:
        numbers = [self.decided, self.moving, self._n_frames, self._moved, self._textured]
        return {"numbers": np.array(numbers, np.float64), "first": self._first.copy()}

    def restore(self, state: State) -> None:
        """Go on from `state`; SnapshotError, and no change, where it does not fit."""
        numbers, first = state.get("numbers"), state.get("first")
        if numbers is None or numbers.shape != (5,) or first is None or first.shape != (HEIGHT, WIDTH):
            raise SnapshotError("motion: the saved state has another shape")
        self.decided, self.moving, self._n_frames = bool(numbers[0]), bool(numbers[1]), int(numbers[2])
        self._moved, self._textured = float(numbers[3]), float(numbers[4])
        self._first[:] = first

    def memory_bytes(self) -> int:
        return self._first.nbytes


def blocks_moved(first: np.ndarray, now: np.ndarray) -> tuple[int, int]:
    """Return how many blocks of two (HEIGHT, WIDTH) float32 pictures moved, and how many have texture at all."""
    rows, columns = HEIGHT // BLOCK, WIDTH // BLOCK
    blocks = [
        picture.reshape(rows, BLOCK, columns, BLOCK).transpose(0, 2, 1, 3).reshape(rows * columns, BLOCK * BLOCK)
        for picture in (first, now)
    ]
    a, b = (block - block.mean(axis=1, keepdims=True) for block in blocks)
    spread_a, spread_b = a.std(axis=1), b.std(axis=1)
    textured = spread_a > LEAST_TEXTURE  # of the first frame: what covers a place later is texture that moved
    product = np.maximum(spread_a * spread_b, LEAST_TEXTURE * LEAST_TEXTURE)
    correlation = (a * b).mean(axis=1) / product
    return int((textured & (correlation < KEPT_SHARE)).sum()), int(textured.sum())
