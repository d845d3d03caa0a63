"""What patches a moving camera has seen: a sample of all of them, with no place, and how near others usually come.

Called by agent/novelty/strangeness.py. It must not decide what is an event, nor leave events out.
"""

from dataclasses import dataclass

import numpy as np

from stillwatch.base import (
    Array,
    Commit,
    Restorable,
    SnapshotError,
    State,
    check_arrays,
    prepare_record,
    record_state,
    saved,
    split_off,
    with_prefix,
)
from stillwatch.kernels import patch_memory as kernels
from stillwatch.novelty.rules import (
    HIGHEST,
    KEPT_ROWS,
    KEPT_ROWS_PER_FRAME,
    LEAST_DEVIATION,
    NS,
    SAMPLE_S,
    USUAL_FRAMES,
)
from stillwatch.novelty.sampling import place_of_next


@dataclass(slots=True)
class _Counts:
    """Rows kept and offered, when the next frame is taken (ns), and what distance is usual, over `frames`."""

    kept: int = saved(0, low=0, high=KEPT_ROWS)
    seen: int = saved(0, low=0)  # up to the horizon
    offered: int = saved(0, low=0)  # frames, all: each has a generator of its own
    sample_ns: int = saved(0, low=0)
    frames: int = saved(0, low=0, high=USUAL_FRAMES)
    usual: float = saved(0.0, low=0.0)
    deviation: float = saved(0.0, low=0.0)


class PatchMemory(Restorable):
    """Says how far a patch is from its nearest neighbour among a sample of all that was watched [1]_.

    The sample is uniform, some rows of a frame every `SAMPLE_S`: ground that goes on is known after a
    few frames, what is passed once is a few rows of thousands. Events are sampled like all else.

    Parameters
    ----------
    n_dims : int
    horizon_s : float
        Stream time after which old rows begin to give way.
    seed : int

    References
    ----------
    .. [1] S. Ramaswamy, R. Rastogi and K. Shim, SIGMOD 2000, 427-438: distance to the k-th nearest neighbour, k = 1.
    """

    def __init__(self, n_dims: int, *, horizon_s: float, seed: int):
        self._columns = np.zeros((n_dims, KEPT_ROWS), np.float32)
        self._squares = np.zeros(KEPT_ROWS, np.float32)
        self._horizon = max(round(horizon_s / SAMPLE_S), 1) * KEPT_ROWS_PER_FRAME
        self._seed = seed
        self._now = _Counts()

    @property
    def rows(self) -> np.ndarray:
        """What is kept, (n, n_dims) float32, C order, a copy."""
        return np.ascontiguousarray(self._columns[:, : self._now.kept].T)

    def distances(self, rows: np.ndarray, out: np.ndarray) -> None:
        """Write the distance of each row, (n, n_dims) float32 in C order, to the nearest kept; 0 while none is."""
        if self._now.kept == 0:
            out[:] = 0.0
        else:
            kernels.nearest_kept(rows, self._columns, self._now.kept, self._squares, out)

    def deviations(self, distances: np.ndarray, out: np.ndarray) -> None:
        """Write by how many deviations each distance is above the usual; both (n,) float32; 0 before that is known."""
        now = self._now
        if now.frames == 0:
            out[:] = 0.0
        else:
            np.clip((distances - now.usual) / max(now.deviation, LEAST_DEVIATION), -HIGHEST, HIGHEST, out=out)

    def learn(self, rows: np.ndarray, distances: np.ndarray | None, t_ns: int) -> None:
        """Let some rows of the frame at stream time `t_ns` into the sample, and its distances into the usual ones.

        rows : ndarray of shape (n, n_dims), float32, of valid patches;  distances : (n,) float32, None where unknown
        """
        now = self._now
        if distances is not None and len(distances):
            low, middle, high = (float(value) for value in np.quantile(distances, (0.25, 0.5, 0.75)))
            now.frames = min(now.frames + 1, USUAL_FRAMES)
            now.usual += (middle - now.usual) / now.frames
            now.deviation += ((high - low) / 1.349 - now.deviation) / now.frames  # as of a normal law's quartiles
        if now.offered == 0 or t_ns >= now.sample_ns:
            now.sample_ns = max(t_ns, 0) + round(SAMPLE_S * NS)
            self._sample(rows)

    def _sample(self, rows: np.ndarray) -> None:
        now = self._now
        rng = np.random.default_rng([self._seed, now.offered])
        for row in rng.choice(len(rows), min(KEPT_ROWS_PER_FRAME, len(rows)), replace=False, shuffle=False):
            place = place_of_next(now.kept, KEPT_ROWS, now.seen, lambda: rng, self._horizon)
            if place < KEPT_ROWS:
                self._columns[:, place] = rows[row]
            now.kept, now.seen = min(now.kept + 1, KEPT_ROWS), min(now.seen + 1, self._horizon)
        now.offered += 1

    def state(self) -> State:
        """Return the kept rows and what is usual, as copies."""
        return with_prefix("counts", record_state(self._now)) | {"rows": self.rows}

    def prepare(self, state: State) -> Commit:
        """Validate `state` and return its commit; SnapshotError, and no change, where it does not fit."""
        counts = _Counts()
        own, arrays = split_off("counts", state)
        prepare_record(counts, own, "patch memory")()
        check_arrays(arrays, {"rows": Array(np.float32, (counts.kept, len(self._columns)))}, "patch memory")
        if counts.seen < counts.kept or counts.seen > self._horizon:
            raise SnapshotError(f"patch memory: {counts.kept} rows of {counts.seen}, of at most {self._horizon}")
        rows = arrays["rows"].copy()

        def commit() -> None:
            self._now = counts
            self._columns[:, : counts.kept] = rows.T

        return commit

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes of all arrays."""
        return {"patch memory": self._columns.nbytes + self._squares.nbytes}
