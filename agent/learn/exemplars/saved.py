"""What a saved StreamGreedy must look like, its parts aside: names, types, shapes and ranges of its own arrays.

Called by agent/learn/exemplars/stream_greedy.py before it takes a state over. It must not change the learner.
"""

import numpy as np

from stillwatch.base import Array, SnapshotError, State, check_arrays, without_prefix

WHERE = "exemplars"  # of messages about a state that is refused
PARTS = ("reservoir", "objective", "payloads", "validation", "waiting")
COUNTERS = (
    "n_seen", "n_learnt", "n_blocks", "n_swaps", "version", "next_id", "version_before", "idle_blocks", "is_fixed",
)  # fmt: skip


def width_of(state: State) -> int:
    """Return the width of the rows that a state is about."""
    exemplars = np.asarray(state.get("exemplars", 0))
    if exemplars.ndim != 2 or not exemplars.shape[1]:
        raise SnapshotError(f"{WHERE}: exemplars are missing or have shape {exemplars.shape}, must be (n_held, d)")
    return int(exemplars.shape[1])


def count_of(state: State, name: str) -> int:
    """Return the length of an array of a state; 0 where it is missing or has none."""
    return int((np.shape(state.get(name, 0))[:1] or (0,))[0])


def split_state(state: State) -> tuple[State, dict[str, State]]:
    """Return the learner's own arrays, and the states of its parts by name."""
    own = {name: array for name, array in state.items() if name.partition(".")[0] not in PARTS or "." not in name}
    return own, {name: without_prefix(name, state) for name in PARTS}


def check_own(own: State, identity: np.ndarray, n_dims: int) -> None:
    """Raise SnapshotError unless the learner's own arrays are of its settings, and their values can be."""
    given = own.get("identity")
    if given is not None and not np.array_equal(given, identity):
        raise SnapshotError(f"{WHERE}: the state belongs to other settings of StreamGreedy")
    held, waiting = count_of(own, "exemplars"), count_of(own, "buffer")
    slots = Array(np.int64, (held,), low=0)
    arrays = {name: Array(np.int64, (), low=0) for name in COUNTERS}
    arrays |= {"identity": Array(np.uint8, identity.shape), "ids": slots, "rows": slots, "adopted": slots}
    arrays |= {"exemplars": Array(np.float32, (held, n_dims)), "buffer": Array(np.float32, (waiting, n_dims))}
    check_arrays(own, arrays, WHERE)
    if len({row.tobytes() for row in own["exemplars"]}) != held:
        raise SnapshotError(f"{WHERE}: two exemplars are equal")
    if len(np.unique(own["ids"])) != held or (held and own["ids"].max() >= own["next_id"]):
        raise SnapshotError(f"{WHERE}: an id appears twice, or was never given out")
