"""What patches a moving camera has seen: a sample of all of them, with no place, and how far a patch is from it.

Called by agent/novelty/strangeness.py. It must not decide what is an event, nor leave events out.
"""

import math
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
from stillwatch.novelty.rules import KEPT_ROWS, KEPT_ROWS_PER_FRAME, KNOWN_AFTER_S, NS, SAMPLE_S
from stillwatch.novelty.sampling import place_of_next

WAITING = math.ceil(KNOWN_AFTER_S / SAMPLE_S)  # frames that can wait


@dataclass(slots=True)
class _Counts:
    """Rows kept and offered, when the next frame is taken (ns), frames that wait."""

    kept: int = saved(0, low=0, high=KEPT_ROWS)
    seen: int = saved(0, low=0)  # up to the horizon
    offered: int = saved(0, low=0)  # frames, all: each has a generator of its own
    sample_ns: int = saved(0, low=0)
    waiting: int = saved(0, low=0, high=WAITING)


class PatchMemory(Restorable):
    """Says how far a patch is from its nearest neighbour among a sample of all that was watched [1]_.

    The sample is uniform, some rows of a frame every `SAMPLE_S`: ground that goes on is known after a
    few frames, what is passed once is a few rows of thousands. Events are sampled like all else. Rows wait for
    `KNOWN_AFTER_S` before they are kept, with the next frame that is taken: nothing is near to itself while it comes.

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
        self._waiting = np.zeros((WAITING, KEPT_ROWS_PER_FRAME, n_dims), np.float32)
        self._sizes, self._since = np.zeros(WAITING, np.int64), np.zeros(WAITING, np.int64)
        self._horizon = max(round(horizon_s / SAMPLE_S), 1) * KEPT_ROWS_PER_FRAME
        self._seed = seed
        self._now = _Counts()

    @property
    def rows(self) -> np.ndarray:
        """What is kept, (n, n_dims) float32, C order, a copy."""
        return np.ascontiguousarray(self._columns[:, : self._now.kept].T)

    @property
    def knows(self) -> bool:
        """Whether anything is kept that a patch could be near to."""
        return self._now.kept > 0

    def distances(self, rows: np.ndarray, out: np.ndarray) -> None:
        """Write the distance of each row, (n, n_dims) float32 in C order, to the nearest kept; 0 while none is."""
        if self.knows:
            kernels.nearest_kept(rows, self._columns, self._now.kept, self._squares, out)
        else:
            out[:] = 0.0

    def learn(self, rows: np.ndarray, t_ns: int) -> None:
        """Let some rows, (n, n_dims) float32, of the frame at time `t_ns` wait, and those that waited be kept."""
        now = self._now
        if not len(rows) or (now.offered and t_ns < now.sample_ns):
            return
        now.sample_ns = max(t_ns, 0) + round(SAMPLE_S * NS)
        while now.waiting and (now.waiting == WAITING or t_ns - self._since[0] >= KNOWN_AFTER_S * NS):
            self._keep_first()
        rng = np.random.default_rng([self._seed, now.offered])
        chosen = rng.choice(len(rows), min(KEPT_ROWS_PER_FRAME, len(rows)), replace=False, shuffle=False)
        place, now.waiting = now.waiting, now.waiting + 1
        self._waiting[place, : len(chosen)], self._waiting[place, len(chosen) :] = rows[chosen], 0.0
        self._sizes[place], self._since[place] = len(chosen), max(t_ns, 0)
        now.offered += 1

    def _keep_first(self) -> None:
        """Let the frame that waits for longest into the sample."""
        now = self._now
        rng = np.random.default_rng([self._seed, now.offered - now.waiting, 1])
        for row in self._waiting[0, : self._sizes[0]]:
            place = place_of_next(now.kept, KEPT_ROWS, now.seen, lambda: rng, self._horizon)
            if place < KEPT_ROWS:
                self._columns[:, place] = row
            now.kept, now.seen = min(now.kept + 1, KEPT_ROWS), min(now.seen + 1, self._horizon)
        now.waiting -= 1
        for array in (self._waiting, self._sizes, self._since):
            array[: now.waiting] = array[1 : now.waiting + 1]

    def state(self) -> State:
        """Return what is kept and what waits, as copies."""
        n = self._now.waiting
        kept: State = {"rows": self.rows, "waiting": self._waiting[:n].copy()}
        times: State = {"sizes": self._sizes[:n].copy(), "since": self._since[:n].copy()}
        return with_prefix("counts", record_state(self._now)) | kept | times

    def prepare(self, state: State) -> Commit:
        """Validate `state` and return its commit; SnapshotError, and no change, where it does not fit."""
        counts = _Counts()
        own, arrays = split_off("counts", state)
        prepare_record(counts, own, "patch memory")()
        n = counts.waiting
        wanted = {
            "rows": Array(np.float32, (counts.kept, len(self._columns))),
            "waiting": Array(np.float32, (n, *self._waiting.shape[1:])),
            "sizes": Array(np.int64, (n,), low=0, high=KEPT_ROWS_PER_FRAME),
            "since": Array(np.int64, (n,), low=0),
        }
        check_arrays(arrays, wanted, "patch memory")
        if counts.seen < min(counts.kept, self._horizon) or counts.seen > self._horizon or counts.offered < n:
            raise SnapshotError(
                f"patch memory: {counts.kept} rows of {counts.seen}, of at most {self._horizon}; "
                f"{n} of {counts.offered} frames wait"
            )
        kept = {name: array.copy() for name, array in arrays.items()}

        def commit() -> None:
            self._now = counts
            self._columns[:, : counts.kept] = kept["rows"].T
            self._waiting[:n], self._sizes[:n], self._since[:n] = kept["waiting"], kept["sizes"], kept["since"]

        return commit

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes of all arrays."""
        arrays = (self._columns, self._squares, self._waiting, self._sizes, self._since)
        return {"patch memory": sum(array.nbytes for array in arrays)}
