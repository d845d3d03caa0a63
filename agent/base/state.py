"""One hash for learned state, used live, in recordings and in replays.

Called by pipeline, checkpoint and encoders. It hashes bits, not values: -0.0 and 0.0 differ.
"""

import hashlib

import numpy as np

from stillwatch.base.errors import SnapshotError

State = dict[str, np.ndarray]


def state_hash(state: State) -> str:
    """Return 16 hex digits over names, dtypes, shapes and bytes of a flat state, whatever its order."""
    digest = hashlib.sha256()
    for name in sorted(state):
        array = np.ascontiguousarray(state[name])
        digest.update(f"{name}|{array.dtype.str}|{np.shape(state[name])}|".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()[:16]


def require(state: State, names: tuple[str, ...], where: str) -> None:
    """Raise SnapshotError unless a saved state has all these arrays: it is of another version or of something else."""
    missing = [name for name in names if name not in state]
    if missing:
        raise SnapshotError(f"{where}: the saved state has no {', '.join(missing)}")


def with_prefix(prefix: str, state: State) -> State:
    """Return the same arrays under dotted names, so that stages' states can live in one flat set."""
    return {f"{prefix}.{name}": array for name, array in state.items()}


def without_prefix(prefix: str, state: State) -> State:
    """Return the arrays that `with_prefix` named so, under their own names."""
    head = f"{prefix}."
    return {name[len(head) :]: array for name, array in state.items() if name.startswith(head)}
