"""How often something unusual comes to each place: a path is not a lawn.

Called by agent/novelty/places/unlikeness.py. It must not know what comes: only where, and for how long.
"""

import math
from dataclasses import dataclass

import cv2
import numpy as np

from stillwatch.base import (
    Array,
    Commit,
    Restorable,
    State,
    check_arrays,
    check_room,
    prepare_record,
    record_state,
    saved,
    split_off,
    with_prefix,
)
from stillwatch.novelty.rules import (
    BUSY_SHARE,
    EMPTY_PRIOR_S,
    EMPTY_SHARE,
    LEAST_WEIGHT,
    NS,
    RARE_SHARE,
    THERE,
    TRAFFIC_PRIOR_S,
    TRAFFIC_REACH,
    VISIT_S,
    WATCHED_PRIOR_S,
)


@dataclass
class _Watched:
    """Seconds watched, and those that were empty, by one decay; the stream time of the last frame, ns."""

    seconds: float = saved(0.0, low=0.0)
    empty_s: float = saved(0.0, low=0.0)
    t_ns: int = saved(-1, low=-1)
    grid_rows: int = saved(0, low=0)
    grid_columns: int = saved(0, low=0)


class Traffic(Restorable):
    """Seconds of something unusual at each place, over all that was watched; each visit counts a moment.

    The weight of a place is the logarithm of how rarely something is there, 1 where it is RARE_SHARE of the time and
    less. Averages over all that was watched, so that the first minutes weigh ever less, and over half-lives later.

    Parameters
    ----------
    capacity : int
        Most places a frame can have.
    halflife_s : float
    """

    def __init__(self, capacity: int, halflife_s: float):
        self._halflife_s = halflife_s
        self._seconds = np.zeros(capacity, np.float32)  # of traffic
        self._left = np.zeros(capacity, np.float32)  # seconds that the visit going on may still count
        self._watched = _Watched()

    def reset(self, grid_shape: tuple[int, int]) -> None:
        """Forget everything: the grid has another shape, or the camera another view."""
        self._watched = _Watched(grid_rows=grid_shape[0], grid_columns=grid_shape[1])
        self._seconds[:], self._left[:] = 0.0, VISIT_S

    @property
    def grid_shape(self) -> tuple[int, int]:
        """Rows and columns of the grid."""
        return self._watched.grid_rows, self._watched.grid_columns

    @property
    def emptiness(self) -> float:
        """How far this is a place where often nothing new is: 1, or one that never rests: 0."""
        share = (self._watched.empty_s + EMPTY_PRIOR_S) / (self._watched.seconds + WATCHED_PRIOR_S)
        return min(max((share - BUSY_SHARE) / (EMPTY_SHARE - BUSY_SHARE), 0.0), 1.0)

    def weights(self, out: np.ndarray) -> None:
        """Write the weight of each place, (n,) float32: LEAST_WEIGHT to 1."""
        rows, columns = self._watched.grid_rows, self._watched.grid_columns
        seconds = self._seconds[: rows * columns].reshape(rows, columns)
        around = cv2.blur(seconds, (TRAFFIC_REACH, TRAFFIC_REACH), borderType=cv2.BORDER_REPLICATE).ravel()
        share = (around + TRAFFIC_PRIOR_S) / (self._watched.seconds + WATCHED_PRIOR_S)
        np.clip(np.log(share) / math.log(RARE_SHARE), max(self.emptiness, LEAST_WEIGHT), 1.0, out=out)

    def learn(self, unlikeness: np.ndarray, empty: float, t_ns: int) -> None:
        """Take note of where something was, in the frame at stream time `t_ns`.

        unlikeness : ndarray of shape (n,), float32, of `PlaceMemory.unlikeness`, averaged over neighbours;
        empty : 0 to 1, how far there was nothing anywhere, or nobody but who usually comes
        """
        n, watched = len(unlikeness), self._watched
        elapsed_s = min(max(t_ns - watched.t_ns, 0) / NS, VISIT_S) if watched.t_ns >= 0 else 0.0
        kept = 0.5 ** (elapsed_s / self._halflife_s)
        watched.t_ns = t_ns
        watched.seconds = watched.seconds * kept + elapsed_s
        watched.empty_s = watched.empty_s * kept + empty * elapsed_s
        seconds, left = self._seconds[:n], self._left[:n]
        here = unlikeness > THERE
        seconds *= np.float32(kept)
        seconds += np.where(here, np.minimum(left, np.float32(elapsed_s)), np.float32(0.0))
        left += np.where(here, np.float32(-elapsed_s), np.float32(elapsed_s))
        np.clip(left, 0.0, VISIT_S, out=left)

    def state(self) -> State:
        """Return the traffic of each place, and how long it was watched."""
        n = self._watched.grid_rows * self._watched.grid_columns
        arrays = {"seconds": self._seconds[:n].copy(), "left": self._left[:n].copy()}
        return arrays | with_prefix("watched", record_state(self._watched))

    def prepare(self, state: State) -> Commit:
        """Validate `state` and return its commit; SnapshotError, and no change, where it does not fit."""
        watched = _Watched()
        counts, arrays = split_off("watched", state)
        prepare_record(watched, counts, "traffic: watched")()
        n = watched.grid_rows * watched.grid_columns
        check_room(n, len(self._seconds), "traffic")
        wanted = {"seconds": Array(np.float32, (n,), low=0.0), "left": Array(np.float32, (n,), 0.0, VISIT_S)}
        check_arrays(arrays, wanted, "traffic")
        seconds, left = arrays["seconds"].copy(), arrays["left"].copy()

        def commit() -> None:
            self._watched = watched
            self._seconds[:n], self._left[:n] = seconds, left

        return commit

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes at the largest frame."""
        return {"traffic": self._seconds.nbytes + self._left.nbytes}
