"""The saved form of a topic model: a mixture's, and the documents of its words. And how labels become documents.

Called by agent/learn/topics/topics.py. It must not learn.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from stillwatch.base import Array, SnapshotError, State, check_arrays
from stillwatch.kernels.topics import LEAST_ALPHA, PARTS
from stillwatch.learn.mixture import saved as mixture
from stillwatch.learn.mixture.families import Family
from stillwatch.learn.topics.build import TopicBuilder
from stillwatch.learn.topics.documents import Documents
from stillwatch.learn.topics.words import Words

VERSION = 1
WHERE = "topics state"
OWN = (
    "topics_version", "group", "spread", "group_words", "group_size", "alpha", "pending_group", "far_group", "open",
)  # fmt: skip


class Open(NamedTuple):
    """The document that words go on with: the caller's number, and its document group; -1 before the first."""

    label: int
    group: int


NOTHING_OPEN = Open(0, -1)


def runs_of(groups: Any, n: int, label: int) -> Iterator[tuple[int, int, int]]:
    """Yield (first row, row after the last, label) of each run of equal numbers; all rows are `label`'s without any.

    Raises ValueError where `groups` is not a whole number for each of the n rows.
    """
    if groups is None:
        labels = np.full(n, label, np.int64)
    else:
        labels = np.asarray(groups)
        if labels.shape != (n,) or (n and labels.dtype.kind not in "iu"):
            raise ValueError(
                f"groups: shape {labels.shape} of {labels.dtype}, must be a whole number for each of {n} rows"
            )
        labels = labels.astype(np.int64)
    ends = [*(np.flatnonzero(np.diff(labels)) + 1).tolist(), n]
    starts = [0, *ends[:-1]] if n else []
    return iter([(low, high, int(labels[low])) for low, high in zip(starts, ends, strict=False)])


def arrays_of(words: Words, documents: Documents, builder: TopicBuilder) -> State:
    """Return copies of words, documents and topics, by their names in a state."""
    k, n, c, s = builder.n_components, words.n_items, words.n_clumps, documents.n_groups
    own = {
        "version": np.array(mixture.VERSION),
        "topics_version": np.array(VERSION),
        "group": words.group[c:n].copy(),
        "spread": words.spread[:c].astype(np.int64),
        "group_words": documents.words[:s, :k].copy(),
        "group_size": documents.size[:s].copy(),
        "alpha": documents.alpha[:k].copy(),
    }
    return own | mixture.arrays_of(words, builder)


def take_arrays(state: State, words: Words, documents: Documents, builder: TopicBuilder) -> None:
    """Become what `arrays_of` returned, in a state that `check_state` has passed."""
    mixture.take_arrays(state, words, builder)
    c, n, k, s = words.n_clumps, words.n_items, builder.n_components, len(state["group_size"])
    words.group[c:n] = state["group"]
    words.spread[:c] = state["spread"]
    documents.n_groups = s
    documents.words[:s] = 0.0
    documents.words[:s, :k] = state["group_words"]
    documents.size[:s] = state["group_size"]
    documents.alpha[:] = 0.0
    documents.alpha[:k] = state["alpha"]
    if k:
        documents.expect(k)


def check_state(state: State, config: np.ndarray, family: Family, room: mixture.Room, n_groups: int) -> None:
    """Raise SnapshotError unless the state is of these settings, fits the room, and its values can be."""
    theirs = {name: array for name, array in state.items() if name not in OWN}
    mixture.check_state(theirs, config, family, room)
    n, c, k = len(state["x"]), len(state["second"]), len(state["component_count"])
    s = (np.shape(state.get("group_size", 0))[:1] or (0,))[0]
    last = max(s - 1, 0)
    arrays = {
        "topics_version": Array(np.int64, (), low=VERSION, high=VERSION),
        "group": Array(np.int64, (n - c,), low=0, high=last),
        "spread": Array(np.int64, (c, n_groups), low=0, high=PARTS),
        "group_words": Array(np.float64, (s, k), low=0.0),
        "group_size": Array(np.float64, (s,), low=float(np.finfo(np.float64).tiny)),
        "alpha": Array(np.float64, (k,), low=LEAST_ALPHA),
        "pending_group": Array(np.int64, (len(state["pending"]),), low=0, high=last),
        "far_group": Array(np.int64, (len(state["far"]),), low=0, high=last),
        "open": Array(np.int64, (2,)),
    }
    check_arrays({name: array for name, array in state.items() if name in OWN}, arrays, WHERE)
    if s > 2 * n_groups or not -1 <= int(state["open"][1]) <= s - 1:
        raise SnapshotError(f"{WHERE}: {s} document groups, of which {int(state['open'][1])} is open, cannot be")
    if (state["spread"].sum(axis=1) != PARTS).any() or state["spread"][:, s:].any():
        raise SnapshotError(f"{WHERE}: the document groups of a clump do not add up")
    if s == 0 and n + len(state["pending"]) + len(state["far"]):
        raise SnapshotError(f"{WHERE}: words of no document")
