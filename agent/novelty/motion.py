"""Finds out by itself whether the camera stands still or moves, and again when that changes.

Called by agent/pipeline/pipeline.py with every accepted frame. It must not waver: a stop, a gust, somebody close to the
lens is no other kind of camera.
"""

import math
from dataclasses import dataclass

import numpy as np

from stillwatch.base import (
    FIXED,
    MOVING,
    UNDECIDED,
    CameraRule,
    Commit,
    Restorable,
    SnapshotError,
    State,
    prepare_record,
    record_bytes,
    record_state,
    saved,
    saved_array,
)
from stillwatch.features import shrunk
from stillwatch.gate import compare_blocks
from stillwatch.novelty.rules import (
    AGREED_WINDOWS,
    DECISION_FRAMES,
    DISSENT_WINDOWS,
    FIRST_LAG,
    HEIGHT,
    MOVED_SHARE,
    NS,
    STILL_SHARE,
    STOPPED_WINDOWS,
    WIDTH,
    WINDOW_S,
)


@dataclass
class _Seen:
    """What the frames of a window showed, and what is believed.

    n_frames: of the window so far. n_moved, n_textured: blocks, over all its frames compared with its first. first_ns:
    stream time of that. agreed: windows that said what is believed, since it is. dissent: by how many more the last
    ones said otherwise than said so.
    """

    decided: bool = saved(False)
    moving: bool = saved(False)
    n_frames: int = saved(0, low=0)
    n_moved: int = saved(0, low=0)
    n_textured: int = saved(0, low=0)
    agreed: int = saved(0, low=0)
    dissent: int = saved(0, low=0)
    first_ns: int = saved(0, low=0)
    first: np.ndarray = saved_array((HEIGHT, WIDTH), np.float32, low=0.0, high=255.0)


class CameraMotion(Restorable):
    """Compares the frames of a window with its first, block by block (agent/gate/blocks.py).

    People and cars move some blocks, a moving camera nearly all that have texture; snow and rain take from every block
    where it is, but it is not found elsewhere. The camera moves where at least MOVED_SHARE of the textured blocks did,
    over the frames of the window from FIRST_LAG on, and stands still below STILL_SHARE. Without texture it counts as
    fixed. The first window has DECISION_FRAMES, so that nothing waits for the answer; later ones last WINDOW_S as
    well, and only after DISSENT_WINDOWS more that say otherwise than do not is the camera of another kind; after so
    many more the longer it was of this one: what says so by chance, as flicker on bare ground does, does sooner or
    later. A vehicle that stops goes on: it must stand for as many windows as it went, up to STOPPED_WINDOWS.
    """

    def __init__(self, camera: str):
        """`camera`: "fixed" or "moving" (decided for ever), or "auto"."""
        self._is_set = camera != "auto"
        self._seen = _Seen(decided=self._is_set, moving=camera == "moving")

    @property
    def rule(self) -> CameraRule:
        """What follows from what is known of the camera so far."""
        if not self._seen.decided:
            return UNDECIDED
        return MOVING if self._seen.moving else FIXED

    def observe(self, grey: np.ndarray, t_ns: int) -> CameraRule:
        """Take the next frame, (height, width) uint8 at stream time `t_ns`; return the rule it is to be judged by."""
        if not self._is_set:
            self._compare(grey, t_ns)
        return self.rule

    def _compare(self, grey: np.ndarray, t_ns: int) -> None:
        seen = self._seen
        # Once the kind is known there is time: every few frames are enough.
        is_first, is_due = seen.n_frames == 0, not seen.decided or seen.n_frames % FIRST_LAG == 0
        if is_first or (seen.n_frames >= FIRST_LAG and is_due):
            small = shrunk(grey, HEIGHT, WIDTH).astype(np.float32)
            if is_first:
                seen.first[:], seen.first_ns = small, max(t_ns, 0)
            else:
                blocks = compare_blocks(seen.first, small)
                seen.n_moved += blocks.moved
                seen.n_textured += blocks.textured
        seen.n_frames += 1
        lasted = t_ns - seen.first_ns >= WINDOW_S * NS or not seen.decided
        if seen.n_frames >= DECISION_FRAMES and lasted:
            self._decide(seen.n_moved / max(seen.n_textured, 1))

    def _decide(self, share: float) -> None:
        """Believe what the share of moved blocks says, at once in the first window, and begin the next."""
        seen = self._seen
        says_otherwise = share < STILL_SHARE if seen.moving else share >= MOVED_SHARE
        if not seen.decided:
            seen.decided, seen.moving = True, share >= MOVED_SHARE
        elif says_otherwise:
            seen.dissent += 1
            if seen.dissent >= _needed(seen.moving, seen.agreed):
                seen.moving, seen.dissent, seen.agreed = not seen.moving, 0, 0
        else:
            seen.agreed, seen.dissent = seen.agreed + 1, max(seen.dissent - 1, 0)
        seen.n_frames = seen.n_moved = seen.n_textured = 0

    def state(self) -> State:
        """Return what was seen, as copies."""
        return record_state(self._seen)

    def prepare(self, state: State) -> Commit:
        """Validate `state` and return its commit; SnapshotError, and no change, where it does not fit."""
        commit = prepare_record(self._seen, state, "camera")
        dissent, needed = int(state["dissent"]), _needed(bool(state["moving"]), int(state["agreed"]))
        if dissent >= needed:
            raise SnapshotError(f"camera: dissent is {dissent}, must be below {needed:g}")
        return commit

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes of the first picture and the counts."""
        return {"camera motion": record_bytes(self._seen)}


def _needed(moving: bool, agreed: int) -> float:
    """Return by how many more windows must say otherwise than do not, after `agreed` that said what is believed."""
    least = min(max(agreed, DISSENT_WINDOWS), STOPPED_WINDOWS) if moving else DISSENT_WINDOWS
    return least * (1.0 + math.log2(1.0 + agreed // AGREED_WINDOWS))
