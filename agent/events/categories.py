"""Follows components of the patch mixture as things that come, stay, go and return: what became known, what is gone.

Called by agent/events/life.py with every scored frame. It must not raise alerts itself: it names what happened.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from stillwatch.base import Recorded, record_bytes, saved, saved_array
from stillwatch.epochs import PATCHES, Models
from stillwatch.events.rules import (
    ALWAYS,
    BIRTH_EPOCHS,
    FOLLOWED,
    LASTING_EPOCHS,
    LEAST_PATCHES,
    LONGER_AWAY,
    NS,
    PRESENCE_FRAMES,
    RARE,
    SETTLED_EPOCHS,
    WATCHED_S,
)
from stillwatch.novelty import Score
from stillwatch.settings import EventsConfig
from stillwatch.transport.wire import EventKind


@dataclass
class _Followed:
    """One row for each component that is or was in the model, in columns of fixed size; and where the models are.

    id: of the component, -1 in a free row. born_ns, seen_ns: stream time when it was entered, when it was seen last.
    frames: labelled ones in which it was seen. epochs: models it lived through. from_event: it was born right after an
    event. told: it was news already. gone: its absence was news already. run: frames in a row since it came back from
    an absence of away_ns; longest_ns: longest absence that it came back from before, 0 without one; missed_ns: longest
    that was told and that it came back from. presence: share of
    frames in which it is seen, lately; usual: what that was when it was seen last.
    epoch: of the model seen last. n_models: seen so far. event_models: how many of them when an event that no
    category was told of was open last, -1 without one. in_event: whether one is open.
    """

    id: np.ndarray = saved_array((FOLLOWED,), np.int64, fill=-1, low=-1)
    born_ns: np.ndarray = saved_array((FOLLOWED,), np.int64, low=0)
    seen_ns: np.ndarray = saved_array((FOLLOWED,), np.int64, low=0)
    frames: np.ndarray = saved_array((FOLLOWED,), np.int64, low=0)
    epochs: np.ndarray = saved_array((FOLLOWED,), np.int64, low=0)
    from_event: np.ndarray = saved_array((FOLLOWED,), np.bool_)
    told: np.ndarray = saved_array((FOLLOWED,), np.bool_)
    gone: np.ndarray = saved_array((FOLLOWED,), np.bool_)
    run: np.ndarray = saved_array((FOLLOWED,), np.int64, low=0)
    away_ns: np.ndarray = saved_array((FOLLOWED,), np.int64, low=0)
    longest_ns: np.ndarray = saved_array((FOLLOWED,), np.int64, low=0)
    missed_ns: np.ndarray = saved_array((FOLLOWED,), np.int64, low=0)
    presence: np.ndarray = saved_array((FOLLOWED,), np.float64, low=0.0, high=1.0)
    usual: np.ndarray = saved_array((FOLLOWED,), np.float64, low=0.0, high=1.0)
    epoch: int = saved(-1, low=-1)
    n_models: int = saved(0, low=0)
    event_models: int = saved(-1, low=-1)
    in_event: bool = saved(False)


class CategoryLife(Recorded):
    """Says what became of the components, in a table of fixed size."""

    _where = "categories"

    def __init__(self, config: EventsConfig):
        self._config = config
        self._followed = _Followed()

    def update(self, t_ns: int, score: Score, models: Models, in_event: bool) -> list[tuple[EventKind, int]]:
        """Take one scored frame; return (kind, component id) of what happened: new_category, returned, vanished.

        Nothing is told while an event is open: the alert tells of it. A new category and an absence are told after it,
        a return is not.
        """
        followed = self._followed
        if in_event and (followed.event_models >= 0 or not followed.in_event):
            followed.event_models = followed.n_models
        followed.in_event = in_event
        happened: list[tuple[EventKind, int]] = []
        ids = models[PATCHES].ids
        if models.epoch != followed.epoch:
            happened += self._model_changed(t_ns, ids, models.epoch)
        if score.labels is None:
            return happened
        rows = self._rows_of(ids)
        counts = np.bincount(score.labels[score.labels >= 0], minlength=len(ids))[: len(ids)]
        is_seen = counts >= LEAST_PATCHES
        known = rows >= 0
        happened += self._returned(t_ns, rows[known & is_seen])
        self._take_note(t_ns, rows[known], is_seen[known])
        return happened + self._vanished(t_ns, rows[known & ~is_seen])

    def _rows_of(self, ids: np.ndarray) -> np.ndarray:
        """Return the table's row of each component, -1 where it has none."""
        own = self._followed.id
        order = np.argsort(own, kind="stable")
        place = np.searchsorted(own[order], ids)
        rows = order[np.minimum(place, FOLLOWED - 1)]
        return np.where(own[rows] == ids, rows, -1)

    def _model_changed(self, t_ns: int, ids: np.ndarray, epoch: int) -> list[tuple[EventKind, int]]:
        """Enter new components, count the life of old ones, drop those that the model dropped."""
        followed = self._followed
        followed.epoch, followed.n_models = epoch, followed.n_models + 1
        followed.id[~np.isin(followed.id, ids)] = -1
        for new in ids[~np.isin(ids, followed.id)]:
            self._enter(int(new), t_ns)
        alive = followed.id >= 0
        followed.epochs[alive] += 1
        grown = alive & followed.from_event & ~followed.told & (followed.epochs >= LASTING_EPOCHS)
        grown &= followed.frames > 0
        if followed.in_event or not grown.any():
            return []
        # One thing learnt is often several components: it is told once an event, by the one seen most.
        followed.from_event[:], followed.event_models = False, -1
        followed.told[grown] = True
        return [(EventKind.NEW_CATEGORY, self._most_seen(np.flatnonzero(grown)))]

    def _enter(self, component: int, t_ns: int) -> None:
        """Give a new component a free row, or that of the one not seen for longest."""
        followed = self._followed
        free = np.flatnonzero(followed.id < 0)
        row = int(free[0]) if len(free) else int(np.argmin(followed.seen_ns))
        settled = followed.n_models > SETTLED_EPOCHS
        recent = followed.event_models >= 0 and followed.n_models - followed.event_models <= BIRTH_EPOCHS
        followed.id[row], followed.born_ns[row], followed.seen_ns[row] = component, t_ns, t_ns
        followed.frames[row] = followed.epochs[row] = followed.run[row] = 0
        followed.from_event[row], followed.told[row], followed.gone[row] = settled and recent, False, False
        followed.presence[row] = followed.usual[row] = 0.0
        followed.away_ns[row] = followed.longest_ns[row] = followed.missed_ns[row] = 0

    def _most_seen(self, rows: np.ndarray) -> int:
        """Return the id of the component that was seen in most frames."""
        return int(self._followed.id[rows[np.argmax(self._followed.frames[rows])]])

    def _returned(self, t_ns: int, rows: np.ndarray) -> list[tuple[EventKind, int]]:
        """Categories that were rare and away, and are seen again for `min_frames` labelled frames.

        What comes again and again is told the first time, and then after it was away for longer than ever
        (`tell`: only the first time, or every time).
        """
        followed = self._followed
        away_ns = t_ns - followed.seen_ns[rows]
        fits = (followed.epochs[rows] >= LASTING_EPOCHS) & (followed.presence[rows] < RARE)
        begins = fits & (away_ns >= WATCHED_S * NS)
        followed.away_ns[rows[begins]] = away_ns[begins]
        back = rows[fits & ((followed.run[rows] > 0) | begins)]
        followed.run[back] += 1
        due = back[(followed.run[back] == self._config.min_frames) & (followed.frames[back] > 0)]
        longest = followed.longest_ns[due]
        is_news = self._is_news(followed.away_ns[due], longest)
        followed.longest_ns[due] = np.maximum(longest, followed.away_ns[due])
        told = due[is_news]
        return [(EventKind.RETURNED, self._most_seen(told))] if len(told) and not followed.in_event else []

    def _is_news(self, away_ns: np.ndarray, longest_ns: np.ndarray) -> np.ndarray:
        """Return which absences are news by `tell`, (n,) bool, given the longest before each, 0 without one."""
        match self._config.tell:
            case "every":
                return np.ones(len(away_ns), bool)
            case "first_of_kind":
                return np.asarray(longest_ns == 0)
            case _:
                return away_ns > LONGER_AWAY * longest_ns

    def _take_note(self, t_ns: int, rows: np.ndarray, is_seen: np.ndarray) -> None:
        """Keep who was seen in this frame."""
        followed = self._followed
        share = 1.0 / np.minimum(followed.frames[rows] + 1.0, PRESENCE_FRAMES)
        age = np.minimum((t_ns - followed.born_ns[rows]) / NS, WATCHED_S) / WATCHED_S
        pace = np.where(age < 1.0, share, 1.0 / PRESENCE_FRAMES)
        followed.presence[rows] += pace * (is_seen - followed.presence[rows])
        seen, absent = rows[is_seen], rows[~is_seen]
        back = seen[followed.gone[seen]]
        followed.missed_ns[back] = np.maximum(followed.missed_ns[back], t_ns - followed.seen_ns[back])
        followed.seen_ns[seen], followed.usual[seen] = t_ns, followed.presence[seen]
        followed.frames[seen] += 1
        followed.gone[seen] = False
        followed.run[absent] = 0

    def _vanished(self, t_ns: int, rows: np.ndarray) -> list[tuple[EventKind, int]]:
        """What was there in nearly every frame for a minute and more, and has been away for `vanish_s`.

        What goes again and again is told as returns are (`_returned`): the first time, and then when it is away for
        longer than ever.
        """
        followed = self._followed
        if followed.in_event:
            return []
        usual = (followed.usual[rows] >= ALWAYS) & (followed.frames[rows] >= PRESENCE_FRAMES // 2)
        watched = followed.seen_ns[rows] - followed.born_ns[rows] >= WATCHED_S * NS
        gone = rows[usual & watched & ~followed.gone[rows]]
        away_ns, missed_ns = t_ns - followed.seen_ns[gone], followed.missed_ns[gone]
        gone = gone[self._is_news(away_ns, missed_ns) & (away_ns >= self._config.vanish_s * NS)]
        followed.gone[gone] = True
        return [(EventKind.VANISHED, self._most_seen(gone))] if len(gone) else []

    def _record(self) -> Any:
        return self._followed

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes of the table."""
        return {"categories": record_bytes(self._followed)}
