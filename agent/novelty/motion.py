"""Finds out by itself whether the camera stands still or moves: once, from the first accepted frames.

Called by agent/pipeline/pipeline.py with every accepted frame. It must not change its mind: what is learnt
afterwards depends on the answer.
"""

from dataclasses import dataclass

import cv2
import numpy as np

from stillwatch.base import (
    FIXED,
    MOVING,
    UNDECIDED,
    CameraRule,
    Commit,
    Restorable,
    State,
    prepare_record,
    record_bytes,
    record_state,
    saved,
    saved_array,
)
from stillwatch.novelty.rules import (
    BLOCK,
    DECISION_FRAMES,
    FIRST_LAG,
    HEIGHT,
    KEPT_SHARE,
    LEAST_TEXTURE,
    MOVED_SHARE,
    WIDTH,
)


@dataclass
class _Seen:
    """What the early frames showed. n_moved, n_textured: blocks, over all frames compared with the first."""

    decided: bool = saved(False)
    moving: bool = saved(False)
    n_frames: int = saved(0, low=0, high=DECISION_FRAMES)
    n_moved: int = saved(0, low=0)
    n_textured: int = saved(0, low=0)
    first: np.ndarray = saved_array((HEIGHT, WIDTH), np.float32, low=0.0, high=255.0)


class CameraMotion(Restorable):
    """Compares each early frame with the first, block by block, by correlation (no gain or offset can mislead it).

    A block has moved when its correlation with the same place in the first frame is below KEPT_SHARE. People and
    cars move some blocks, a moving camera nearly all that have texture: the camera moves where at least half of
    the textured blocks did, over the frames from FIRST_LAG on. Without texture it counts as fixed.
    """

    def __init__(self, camera: str):
        """`camera`: "fixed" or "moving" (decided at once), or "auto"."""
        self._seen = _Seen(decided=camera != "auto", moving=camera == "moving")

    @property
    def rule(self) -> CameraRule:
        """What follows from what is known of the camera so far."""
        if not self._seen.decided:
            return UNDECIDED
        return MOVING if self._seen.moving else FIXED

    def observe(self, grey: np.ndarray) -> CameraRule:
        """Take the next accepted frame, (height, width) uint8, and return the rule it is to be judged by.

        Nothing is looked at any more once the kind of camera is decided.
        """
        if not self._seen.decided:
            self._compare(grey)
        return self.rule

    def _compare(self, grey: np.ndarray) -> None:
        seen = self._seen
        small = cv2.resize(grey, (WIDTH, HEIGHT), interpolation=cv2.INTER_AREA).astype(np.float32)
        if seen.n_frames == 0:
            seen.first[:] = small
        elif seen.n_frames >= FIRST_LAG:
            moved, textured = blocks_moved(seen.first, small)
            seen.n_moved += moved
            seen.n_textured += textured
        seen.n_frames += 1
        if seen.n_frames == DECISION_FRAMES:
            seen.moving = seen.n_textured > 0 and seen.n_moved >= MOVED_SHARE * seen.n_textured
            seen.decided = True

    def state(self) -> State:
        """Return what was seen, as copies."""
        return record_state(self._seen)

    def prepare(self, state: State) -> Commit:
        """Validate `state` and return its commit; SnapshotError, and no change, where it does not fit."""
        return prepare_record(self._seen, state, "camera")

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes of the first picture and the counts."""
        return {"camera motion": record_bytes(self._seen)}


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
