"""A uniform sample of fixed size from everything a stream has shown: the validation set W of StreamGreedy.

Called by agent/learn/exemplars/stream_greedy.py. It must not keep a random state: the caller gives one generator a
block.
"""

import numpy as np

from stillwatch.base import Array, Commit, SnapshotError, State, check_arrays


class Reservoir:
    """Reservoir sampling (Vitter 1985, algorithm R), a block at a time.

    Parameters
    ----------
    capacity : int
        |W|, rows.
    n_dims : int

    Attributes
    ----------
    rows : ndarray of shape (capacity, n_dims), float32
        The first `count` are in use.
    row_numbers : ndarray of shape (capacity,), int64
        Where in the stream each row was.
    """

    def __init__(self, capacity: int, n_dims: int):
        self.rows = np.zeros((capacity, n_dims), np.float32)
        self.row_numbers = np.full(capacity, -1, np.int64)
        self.count = 0

    def offer(self, rows: np.ndarray, first_row: int, rng: np.random.Generator) -> np.ndarray:
        """Offer the rows numbered first_row, first_row + 1, ... and return the slots that now hold another row.

        After n rows of the stream each of them is held with probability min(1, capacity / n).
        """
        capacity, n = len(self.rows), len(rows)
        n_free = min(capacity - self.count, n)
        numbers = first_row + np.arange(n, dtype=np.int64)
        slots = (rng.random(n) * (numbers + 1)).astype(np.int64)
        slots[:n_free] = self.count + np.arange(n_free)
        chosen = np.flatnonzero(slots < capacity)
        # a slot drawn twice in one block keeps the later row, as it would row by row
        slots, last = np.unique(slots[chosen][::-1], return_index=True)
        chosen = chosen[::-1][last]
        self.rows[slots] = rows[chosen]
        self.row_numbers[slots] = numbers[chosen]
        self.count += n_free
        return slots

    def permute(self, order: np.ndarray) -> None:
        """Reorder the rows in use: the new slot i holds what slot order[i] held. Any order is as good a sample."""
        self.rows[: self.count] = self.rows[order]
        self.row_numbers[: self.count] = self.row_numbers[order]

    def state(self) -> State:
        return {"rows": self.rows[: self.count].copy(), "row_numbers": self.row_numbers[: self.count].copy()}

    def prepare(self, state: State, where: str) -> Commit:
        """Validate a state of at most `capacity` rows and return its commit."""
        (n,) = np.shape(state.get("rows", 0))[:1] or (0,)
        rows = Array(np.float32, (n, self.rows.shape[1]))
        check_arrays(state, {"rows": rows, "row_numbers": Array(np.int64, (n,), low=0)}, where)
        if n > len(self.rows):
            raise SnapshotError(f"{where}: {n} rows, there is room for {len(self.rows)}")
        held, numbers = np.array(state["rows"]), np.array(state["row_numbers"])

        def take_over() -> None:
            self.count = n
            self.rows[:n], self.row_numbers[:n] = held, numbers

        return take_over

    def memory_bytes(self) -> int:
        return self.rows.nbytes + self.row_numbers.nbytes
