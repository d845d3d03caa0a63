"""What a saved mixture must look like: names, types, shapes and ranges of its arrays, and what must agree among them.

Called by agent/learn/mixture/mixture.py before it takes a state over. It must not learn.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from stillwatch.base import Array, SnapshotError, State, check_arrays
from stillwatch.learn.mixture.build import ModelBuilder
from stillwatch.learn.mixture.families import Family
from stillwatch.learn.mixture.items import Items

VERSION = 4
LARGEST = float(np.finfo(np.float64).max)
STATISTICS = ("count", "mean", "scatter")  # of a component
WHERE = "mixture state"  # of messages about one that is refused


class Totals(NamedTuple):
    """The counters of a state, in the order of its array `totals`."""

    epoch: int
    n_seen: int
    refused: int
    next_id: int
    identity_epoch: int
    widened: int

    @classmethod
    def of(cls, array: np.ndarray) -> "Totals":
        return cls(*(int(value) for value in array))


@dataclass(frozen=True)
class Room:
    """What a learner has room for."""

    n_dims: int
    items: int
    clumps: int
    components: int
    waiting: int  # rows of an epoch: fewer wait
    is_told_apart: bool = False  # whether the model is told by statistics of its own


def width_of(state: State) -> int:
    """Return the width of the rows that a state is about."""
    x = np.asarray(state.get("x", 0))
    if x.ndim != 2 or not x.shape[1]:
        raise SnapshotError(f"{WHERE}: x is missing or has shape {x.shape}, must be (n, n_features)")
    return x.shape[1]


def arrays_of(items: Items, builder: ModelBuilder) -> State:
    """Return copies of what is held and of the components, by their names in a state."""
    k, moments, who = builder.n_components, builder.family.moments, builder.identities
    own = builder.told is not moments
    told = {f"told_{name}": getattr(builder.told, name)[:k].copy() for name in STATISTICS} if own else {}
    return told | {
        "x": items.x[: items.n_items].copy(),
        "counts": items.counts[: items.n_items].copy(),
        "second": items.second[: items.n_clumps].copy(),
        "codes": items.codes[: items.n_clumps].copy(),
        "component_count": moments.count[:k].copy(),
        "component_mean": moments.mean[:k].copy(),
        "component_scatter": moments.scatter[:k].copy(),
        "component_id": who.id[:k].copy(),
        "component_born": who.born_epoch[:k].copy(),
        "component_tried": builder.tried[:k].copy(),
    }


def take_arrays(state: State, items: Items, builder: ModelBuilder) -> None:
    """Become what `arrays_of` returned, in a state that `check_state` has passed."""
    items.n_items, items.n_clumps = len(state["x"]), len(state["second"])
    items.x[: items.n_items] = state["x"]
    items.counts[: items.n_items] = state["counts"]
    items.second[: items.n_clumps] = state["second"]
    items.codes[: items.n_clumps] = state["codes"]
    k = builder.n_components = len(state["component_count"])
    moments, who = builder.family.moments, builder.identities
    moments.count[:k], moments.mean[:k] = state["component_count"], state["component_mean"]
    moments.scatter[:k] = state["component_scatter"]
    who.id[:k], who.born_epoch[:k] = state["component_id"], state["component_born"]
    builder.tried[:k] = state["component_tried"]
    builder.family.fit_all(k)
    for name in STATISTICS:
        if builder.told is not moments:
            getattr(builder.told, name)[:k] = state[f"told_{name}"]


def check_state(state: State, config: np.ndarray, family: Family, room: Room) -> None:
    """Raise SnapshotError unless the state is of these settings, fits the room, and its values can be."""
    _check_origin(state, config)
    (n,), (c,), (k,), (waiting,), (far,) = (
        np.shape(state.get(name, 0))[:1] or (0,) for name in ("x", "second", "component_count", "pending", "far")
    )
    d, fitted = room.n_dims, (room.n_dims,) if k else (0,)
    arrays = {
        "version": Array(np.int64, ()),
        "config": Array(np.float64, config.shape),
        "pending": Array(np.float64, (waiting, d)),
        "far": Array(np.float64, (far, d)),
        "shift": Array(np.float64, fitted),
        "scale": Array(np.float64, fitted, low=float(np.finfo(np.float64).tiny)),
        "x": Array(np.float32, (n, d)),
        "counts": Array(np.float64, (n,), low=0.0),
        "second": Array(np.float32, (c, family.n_second)),
        "codes": Array(np.int8, (c, family.n_codes)),
        "component_count": Array(np.float64, (k,), low=0.0),
        "component_mean": Array(np.float64, (k, d)),
        "component_scatter": Array(np.float64, (k, family.n_packed)),
        "component_id": Array(np.int64, (k,), low=0),
        "component_born": Array(np.int64, (k,), low=0),
        "component_tried": Array(np.float64, (k,), low=0.0),
        "totals": Array(np.int64, (len(Totals._fields),), low=0),
        "free_energy": Array(np.float64, (), low=-LARGEST, high=LARGEST, nan=True),  # NaN before the first epoch
    }
    if room.is_told_apart:
        arrays |= {
            name.replace("component", "told"): arrays[name] for name in (f"component_{part}" for part in STATISTICS)
        }
    check_arrays(state, arrays, WHERE)
    if k > room.components or c > min(n, room.clumps) or n > room.items:
        raise SnapshotError(f"{WHERE}: {k} components, {c} clumps and {n} items do not fit together")
    if waiting + far >= room.waiting:
        raise SnapshotError(f"{WHERE}: {waiting + far} rows wait for an epoch of {room.waiting}")
    ids, next_id = state["component_id"], Totals.of(state["totals"]).next_id
    if len(np.unique(ids)) != k or (k and ids.max() >= next_id):
        raise SnapshotError(f"{WHERE}: a component id appears twice, or was never given out")


def _check_origin(state: State, config: np.ndarray) -> None:
    version = state.get("version")
    if version is not None and np.shape(version) == () and version != VERSION:
        raise SnapshotError(f"{WHERE}: version {version}, this program reads {VERSION}")
    given = state.get("config")
    if given is not None and np.shape(given) == config.shape and not np.array_equal(given, config):
        raise SnapshotError(f"{WHERE}: it belongs to other settings than this learner's")
