"""How far patches of a moving camera usually are from what it remembers, place by place of its view.

Called by agent/novelty/strangeness.py, outside of events. It must not know what is remembered, nor what is an event.
"""

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
    EARLY_USUAL_FRAMES,
    FARTHEST,
    FARTHEST_TAUGHT,
    HIGHEST,
    LEAST_DEVIATION,
    LEAST_PLACE_DEVIATION,
    USUAL_FRAMES,
    USUAL_PLACE_FRAMES,
    USUAL_REACH,
)


@dataclass(slots=True)
class _View:
    """The grid, rows and columns, 0 before the first frame; frames learnt from; what is usual anywhere."""

    rows: int = saved(0, low=0)
    columns: int = saved(0, low=0)
    frames: int = saved(0, low=0, high=USUAL_FRAMES)
    middle: float = saved(0.0, low=0.0, high=FARTHEST)
    deviation: float = saved(0.0, low=0.0, high=FARTHEST)


class UsualDistances(Restorable):
    """Mean and deviation of the distances of patches, at each place of the view and anywhere.

    A camera that moves has no places of the world, but its view has parts: a robot that looks ahead always has the
    horizon in the middle, what is near and passes quickly below, and the sky above. What is far there says
    nothing of what is far here. Until a place is known, what holds anywhere holds for it.

    Parameters
    ----------
    capacity : int
        Most places of a view.
    """

    def __init__(self, capacity: int):
        self._mean, self._variance = np.zeros(capacity), np.zeros(capacity)
        self._view = _View()

    def deviations(self, distances: np.ndarray, out: np.ndarray) -> None:
        """Write by how many deviations each distance is above the usual of its place; 0 before that is known.

        distances, out : ndarray of shape (rows, columns), float32
        """
        view = self._view
        if view.frames == 0 or distances.shape != (view.rows, view.columns):
            out[:] = 0.0
            return
        mean, variance = self._tables()
        trust = view.frames / (view.frames + USUAL_PLACE_FRAMES)
        usual = view.middle + trust * (mean - view.middle)
        spread = np.sqrt((1.0 - trust) * view.deviation**2 + trust * variance)
        np.clip((distances - usual) / np.maximum(spread, self._least), -HIGHEST, HIGHEST, out=out)

    @property
    def _least(self) -> float:
        """The least deviation that a place may have."""
        return max(LEAST_PLACE_DEVIATION * self._view.deviation, LEAST_DEVIATION)

    def learn(self, distances: np.ndarray, valid: np.ndarray) -> None:
        """Let a frame's distances, (rows, columns) float32, teach what is usual; valid : the same shape, bool.

        A grid of another shape makes all that was known void. A masked place is taken for what is usual anywhere.
        """
        if not valid.any():
            return
        if distances.shape != (self._view.rows, self._view.columns):
            self._view = _View(*distances.shape)
            self._mean[:], self._variance[:] = 0.0, 0.0
        view = self._view
        low, middle, high = (float(value) for value in np.quantile(distances[valid], (0.25, 0.5, 0.75)))
        view.frames = min(view.frames + 1, USUAL_FRAMES)
        view.middle += (middle - view.middle) / view.frames
        view.deviation += ((high - low) / 1.349 - view.deviation) / view.frames  # as of a normal law's quartiles
        self._learn_places(np.where(valid, distances, middle))

    def _learn_places(self, distances: np.ndarray) -> None:
        """Move each place's moments; what lies far above teaches no more than what lies a little above."""
        view = self._view
        mean, variance = self._tables()
        if view.frames > 1:
            early = FARTHEST_TAUGHT * view.deviation if view.frames < EARLY_USUAL_FRAMES else 0.0
            spread = np.maximum(np.sqrt(variance), self._least)  # a place that never varied may begin to
            distances = np.minimum(distances, mean + FARTHEST_TAUGHT * spread + early)
            squares = (distances - mean) ** 2
            variance += (_around(squares) - variance) / view.frames
        mean += (_around(distances) - mean) / view.frames

    def _tables(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the means and variances of the places as tables, (rows, columns) float64, views."""
        shape = (self._view.rows, self._view.columns)
        n = shape[0] * shape[1]
        return self._mean[:n].reshape(shape), self._variance[:n].reshape(shape)

    def state(self) -> State:
        """Return what is usual, as copies."""
        n = self._view.rows * self._view.columns
        places = {"mean": self._mean[:n].copy(), "variance": self._variance[:n].copy()}
        return with_prefix("view", record_state(self._view)) | places

    def prepare(self, state: State) -> Commit:
        """Validate `state` and return its commit; SnapshotError, and no change, where it does not fit."""
        view = _View()
        own, arrays = split_off("view", state)
        prepare_record(view, own, "usual distances")()
        n = view.rows * view.columns
        check_room(n, len(self._mean), "usual distances")
        highest = {"mean": FARTHEST, "variance": FARTHEST**2}
        places = {name: Array(np.float64, (n,), low=0.0, high=high) for name, high in highest.items()}
        check_arrays(arrays, places, "usual distances")
        mean, variance = arrays["mean"].copy(), arrays["variance"].copy()

        def commit() -> None:
            self._view = view
            self._mean[:n], self._variance[:n] = mean, variance

        return commit

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes of all arrays."""
        return {"usual distances": self._mean.nbytes + self._variance.nbytes}


def _around(table: np.ndarray) -> np.ndarray:
    """Return the mean of each place and those around it, of values from 0 on: by itself a place is known late."""
    blurred = np.asarray(cv2.blur(table, USUAL_REACH, borderType=cv2.BORDER_REFLECT))
    return np.maximum(blurred, 0.0)  # its running sums leave -1e-17 where an even part follows
