"""The form of saved state: flat arrays by dotted name, one hash over them, and one way to take them back.

Used by every stage, checkpoints, recordings and encoders. A refused state changes nothing: `restore` validates
everything first, down to the last part, and commits after.
"""

import dataclasses
import enum
import hashlib
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from stillwatch.base.errors import SnapshotError

State = dict[str, np.ndarray]
Commit = Callable[[], None]


class Stage(Protocol):
    """A part of the agent with learned or running state.

    `prepare` validates a state and returns what takes it over; it raises SnapshotError and changes nothing where the
    state does not fit. `restore` is `prepare` and its commit. `memory_bytes` names what is held, in bytes.
    """

    def state(self) -> State: ...

    def prepare(self, state: State) -> Commit: ...

    def restore(self, state: State) -> None: ...

    def memory_bytes(self) -> dict[str, int]: ...


class Restorable:
    """Gives a stage its `restore`: the one place where a state that was validated is committed."""

    def prepare(self, state: State) -> Commit:
        """Validate `state` and return its commit; SnapshotError, and no change, where it does not fit."""
        raise NotImplementedError

    def restore(self, state: State) -> None:
        """Go on from `state`; SnapshotError, and no change, where it does not fit."""
        self.prepare(state)()


def prepare_parts(parts: Mapping[str, Stage], state: State, where: str) -> Commit:
    """Validate the states of several parts, saved under their names; the commit takes over all of them."""
    strangers = sorted(name for name in state if name.partition(".")[0] not in parts or "." not in name)
    if strangers:
        raise SnapshotError(f"{where}: the saved state has {', '.join(strangers)} too many")
    commits = [part.prepare(without_prefix(name, state)) for name, part in parts.items()]

    def commit() -> None:
        for take_over in commits:
            take_over()

    return commit


def state_of_parts(parts: Mapping[str, Stage]) -> State:
    """Return the states of several parts under their names."""
    state: State = {}
    for name, part in parts.items():
        state.update(with_prefix(name, part.state()))
    return state


# -- arrays --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Array:
    """What a saved array must be. A length of None is any; `low` and `high` are inclusive; NaN only where allowed."""

    dtype: Any
    shape: tuple[int | None, ...]
    low: float | None = None
    high: float | None = None
    nan: bool = False


def check_arrays(state: State, wanted: Mapping[str, Array], where: str) -> None:
    """Raise SnapshotError unless `state` holds exactly these arrays, each of its type, shape and range."""
    missing, extra = sorted(set(wanted) - set(state)), sorted(set(state) - set(wanted))
    if missing or extra:
        what = [f"no {', '.join(missing)}"] * bool(missing) + [f"{', '.join(extra)} too many"] * bool(extra)
        raise SnapshotError(f"{where}: the saved state has {' and '.join(what)}")
    for name, array in wanted.items():
        _check_array(np.asarray(state[name]), array, f"{where}: {name}")


def check_room(n: int, room: int, where: str) -> None:
    """Raise SnapshotError where a saved state has more places than there is room for."""
    if n > room:
        raise SnapshotError(f"{where}: the saved state has {n} places, there is room for {room}")


def _check_array(given: np.ndarray, wanted: Array, where: str) -> None:
    dtype = np.dtype(wanted.dtype)
    fits = given.ndim == len(wanted.shape) and all(
        length is None or length == n for length, n in zip(wanted.shape, given.shape, strict=True)
    )
    same_kind = given.dtype.kind == dtype.kind if dtype.kind == "U" else given.dtype == dtype
    if not fits or not same_kind:
        shape = tuple("any" if length is None else length for length in wanted.shape)
        raise SnapshotError(f"{where} is {given.dtype} of shape {given.shape}, must be {dtype} of {shape}")
    if dtype.kind == "f" and not wanted.nan and not np.isfinite(given).all():
        raise SnapshotError(f"{where} is not finite")
    known = given[~np.isnan(given)] if dtype.kind == "f" else given
    if known.size and wanted.low is not None and known.min() < wanted.low:
        raise SnapshotError(f"{where} is {known.min()}, must be at least {wanted.low:g}")
    if known.size and wanted.high is not None and known.max() > wanted.high:
        raise SnapshotError(f"{where} is {known.max()}, must be at most {wanted.high:g}")


# -- records: named numbers and arrays of a stage ------------------------------------------------------------

_KINDS: dict[type, Any] = {bool: np.bool_, int: np.int64, float: np.float64}


def saved(default: Any, *, low: float | None = None, high: float | None = None, nan: bool = False) -> Any:
    """Return a dataclass field of a record: a bool, int, float or enum, with the range that a saved one must keep."""
    return dataclasses.field(default=default, metadata={"low": low, "high": high, "nan": nan})


def saved_array(
    shape: tuple[int, ...], dtype: Any, *, fill: float = 0, low: float | None = None, high: float | None = None,
    nan: bool = False,
) -> Any:  # fmt: skip
    """Return a dataclass field of a record: an array of fixed shape, allocated with the record."""
    return dataclasses.field(
        default_factory=lambda: np.full(shape, fill, dtype), metadata={"low": low, "high": high, "nan": nan}
    )


def record_state(record: Any) -> State:
    """Return a record (a dataclass of bools, ints, floats, enums and arrays) as a state, one array a field."""
    state: State = {}
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        if isinstance(value, np.ndarray):
            state[field.name] = value.copy()
        elif isinstance(value, enum.Enum):
            state[field.name] = np.array(list(type(value)).index(value), np.int64)
        else:
            state[field.name] = np.array(value, _KINDS[type(value)])
    return state


def prepare_record(record: Any, state: State, where: str) -> Commit:
    """Validate a state against a record's fields, their shapes and ranges; the commit writes it into the record."""
    hints = typing.get_type_hints(type(record))
    wanted: dict[str, Array] = {}
    for field in dataclasses.fields(record):
        value, kind = getattr(record, field.name), hints[field.name]
        limits = {name: field.metadata[name] for name in ("low", "high", "nan") if name in field.metadata}
        if isinstance(value, np.ndarray):
            wanted[field.name] = Array(value.dtype, value.shape, **limits)
        elif issubclass(kind, enum.Enum):
            wanted[field.name] = Array(np.int64, (), low=0, high=len(kind) - 1)
        else:
            wanted[field.name] = Array(_KINDS[kind], (), **limits)
    check_arrays(state, wanted, where)
    held = {name: np.array(state[name]) for name in wanted}

    def commit() -> None:
        for name, array in held.items():
            if isinstance(getattr(record, name), np.ndarray):
                getattr(record, name)[...] = array
            elif issubclass(hints[name], enum.Enum):
                setattr(record, name, list(hints[name])[int(array)])
            else:
                setattr(record, name, hints[name](array))

    return commit


def record_bytes(record: Any) -> int:
    """Return the bytes of a record's arrays, and 8 for every number."""
    values = [getattr(record, field.name) for field in dataclasses.fields(record)]
    return sum(value.nbytes if isinstance(value, np.ndarray) else 8 for value in values)


class Recorded(Restorable):
    """A stage whose whole state is one record, written in place.

    `_record` gives it; `_where` begins what a refusal says.
    """

    _where: str

    def _record(self) -> Any:
        raise NotImplementedError

    def state(self) -> State:
        """Return everything that what comes later depends on, as copies."""
        return record_state(self._record())

    def prepare(self, state: State) -> Commit:
        """Validate `state` and return its commit; SnapshotError, and no change, where it does not fit."""
        return prepare_record(self._record(), state, self._where)


class RecordPart(Recorded):
    """A record as a part of a stage."""

    def __init__(self, record: Any, where: str):
        self._held = record
        self._where = where

    def _record(self) -> Any:
        return self._held

    def memory_bytes(self) -> dict[str, int]:
        return {self._where: record_bytes(self._held)}


class Composed(Restorable):
    """A stage whose state is that of its parts, each under its name.

    `_parts` gives them, those of a record as RecordPart; `_where` begins what a refusal says.
    """

    _where: str

    def _parts(self) -> dict[str, Stage]:
        raise NotImplementedError

    def state(self) -> State:
        """Return everything that what comes later depends on, as copies."""
        return state_of_parts(self._parts())

    def prepare(self, state: State) -> Commit:
        """Validate `state` and return its commit; SnapshotError, and no change, where it does not fit."""
        return prepare_parts(self._parts(), state, self._where)

    def parts_bytes(self) -> int:
        """Return the bytes of all parts."""
        return sum(sum(part.memory_bytes().values()) for part in self._parts().values())


# -- names and hashes ----------------------------------------------------------------------------------------


class StateDigest:
    """The hash of a state that comes in pieces, by rising name: what stands early is hashed before the rest is known.

    It hashes bits, not values: -0.0 and 0.0 differ.
    """

    def __init__(self) -> None:
        self._digest, self._last = hashlib.sha256(), ""

    def add(self, state: State) -> None:
        """Take a piece in; ValueError where a name does not come after all of those before."""
        for name in sorted(state):
            if name <= self._last:
                raise ValueError(f"{name} is hashed after {self._last}: names must rise")
            self._last = name
            array = np.ascontiguousarray(state[name])
            self._digest.update(f"{name}|{array.dtype.str}|{np.shape(state[name])}|".encode())
            self._digest.update(array.reshape(-1).view(np.uint8).data)

    @property
    def text(self) -> str:
        """16 hex digits over names, dtypes, shapes and bytes of what was added."""
        return self._digest.hexdigest()[:16]


def state_hash(state: State) -> str:
    """Return 16 hex digits over names, dtypes, shapes and bytes of a flat state, whatever its order."""
    digest = StateDigest()
    digest.add(state)
    return digest.text


def with_prefix(prefix: str, state: State) -> State:
    """Return the same arrays under dotted names, so that stages' states can live in one flat set."""
    return {f"{prefix}.{name}": array for name, array in state.items()}


def split_off(prefix: str, state: State) -> tuple[State, State]:
    """Return the arrays that `with_prefix` named so, under their own names, and all the others."""
    return without_prefix(prefix, state), {
        name: array for name, array in state.items() if not name.startswith(f"{prefix}.")
    }


def without_prefix(prefix: str, state: State) -> State:
    """Return the arrays that `with_prefix` named so, under their own names."""
    head = f"{prefix}."
    return {name[len(head) :]: array for name, array in state.items() if name.startswith(head)}
