"""Bytes that travel with rows (a thumbnail, a frame number, times), in slots of fixed size allocated once.

Called by agent/learn/exemplars/stream_greedy.py and agent/learn/exemplars/components.py. It must not look inside a
payload.
"""

from collections.abc import Sequence

import numpy as np

from stillwatch.base import Array, Commit, SnapshotError, State, check_arrays

Payloads = Sequence[bytes | None] | np.ndarray


def check_payloads(payload: Payloads | None, n_rows: int, limit: int) -> None:
    """Raise ValueError unless there is one payload (or None) a row, each of at most `limit` bytes.

    An array is taken too: uint8 of shape (n_rows, n_bytes), one row of bytes each.
    """
    if payload is None:
        return
    if len(payload) != n_rows:
        raise ValueError(f"payload: {len(payload)} given for {n_rows} rows")
    if isinstance(payload, np.ndarray):
        if payload.ndim != 2 or payload.dtype != np.uint8:
            raise ValueError(f"payload: an array must be uint8 of two dimensions, not {payload.dtype}{payload.shape}")
        longest = payload.shape[1]
    else:
        longest = max((len(p) for p in payload if p is not None), default=0)
    if longest > limit:
        raise ValueError(f"payload: {longest} bytes are more than payload_bytes = {limit}")


class PayloadStore:
    """`capacity` slots of `limit` bytes each; an empty slot reads as b"".

    Writers give payloads that `check_payloads` has passed.
    """

    def __init__(self, capacity: int, limit: int):
        self._bytes = np.zeros((capacity, limit), np.uint8)
        self._lengths = np.zeros(capacity, np.int64)

    def put(self, slot: int, payload: bytes | np.ndarray | None) -> None:
        """Copy a payload in; None empties the slot."""
        given = np.frombuffer(payload or b"", np.uint8) if not isinstance(payload, np.ndarray) else payload
        self._bytes[slot, : len(given)] = given
        self._lengths[slot] = len(given)

    def get(self, slot: int) -> bytes:
        return self._bytes[slot, : self._lengths[slot]].tobytes()

    def copy_from(self, other: "PayloadStore", source: int, slot: int) -> None:
        """Copy one slot of another store of the same limit."""
        n = other._lengths[source]
        self._bytes[slot, :n] = other._bytes[source, :n]
        self._lengths[slot] = n

    def state(self, count: int) -> State:
        """Return the first `count` payloads end to end, and their lengths."""
        joined = b"".join(self.get(slot) for slot in range(count))
        return {"payload": np.frombuffer(joined, np.uint8).copy(), "payload_lengths": self._lengths[:count].copy()}

    def prepare(self, state: State, count: int, where: str) -> Commit:
        """Validate a state with `count` payloads and return its commit."""
        limit = self._bytes.shape[1]
        lengths = Array(np.int64, (count,), low=0, high=limit)
        check_arrays(state, {"payload": Array(np.uint8, (None,)), "payload_lengths": lengths}, where)
        joined, ends = np.array(state["payload"]), np.cumsum(state["payload_lengths"])
        if len(joined) != (ends[-1] if count else 0):
            raise SnapshotError(f"{where}: {len(joined)} bytes, the lengths say {ends[-1] if count else 0}")

        def take_over() -> None:
            for slot, payload in enumerate(np.split(joined, ends[:-1]) if count else ()):
                self.put(slot, payload)

        return take_over

    def memory_bytes(self) -> int:
        return self._bytes.nbytes + self._lengths.nbytes
