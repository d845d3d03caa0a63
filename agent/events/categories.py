"""Follows components of the patch mixture as things that come, stay, go and return: what became known, what is gone.

Called by agent/events/life.py with every scored frame. It must not raise alerts itself: it names what happened.
"""

import numpy as np

from stillwatch.base import SnapshotError, State
from stillwatch.epochs import Models
from stillwatch.novelty import Score
from stillwatch.settings import EventsConfig
from stillwatch.transport.wire import EventKind

CAPACITY = 512  # components followed; the ones not seen for longest give way
LASTING_EPOCHS = 4  # models that a component must live through to be a category
LEAST_PATCHES = 4  # in one frame, to count as seen: a stray patch is no thing
BIRTH_EPOCHS = 2  # models after an event's last frame: the one that learnt it may still be under way at the first
SETTLED_EPOCHS = 8  # models before which everything is new, and nothing is news
RARE = 0.05  # share of frames: a category seen more often does not return
ALWAYS = 0.98  # share of frames: a place seen less often does not vanish
WATCHED_S = 60.0  # how long something must have been there before its absence means anything
PRESENCE_FRAMES = 600  # frames over which presence is averaged
NS = 1_000_000_000

_COLUMNS = ("id", "born_ns", "seen_ns", "frames", "epochs", "from_event", "told", "gone", "run")
_ID, _BORN, _SEEN, _FRAMES, _EPOCHS, _FROM_EVENT, _TOLD, _GONE, _RUN = range(len(_COLUMNS))


class CategoryLife:
    """One row for each component that is or was in the model, in a table of fixed size."""

    def __init__(self, config: EventsConfig):
        self._config = config
        self._table = np.full((CAPACITY, len(_COLUMNS)), 0, np.int64)
        self._table[:, _ID] = -1
        self._presence = np.zeros(CAPACITY)
        # Epoch seen last, models seen, how many of them when an event that no category was told of was open last (-1:
        # none), whether one is open.
        self._numbers = np.array([-1, 0, -1, 0], np.int64)

    def update(self, t_ns: int, score: Score, models: Models, in_event: bool) -> list[tuple[EventKind, int]]:
        """Take one scored frame; return (kind, component id) of what happened: new_category, returned, vanished."""
        if in_event and (self._numbers[2] >= 0 or not self._numbers[3]):
            self._numbers[2] = self._numbers[1]
        self._numbers[3] = in_event
        happened: list[tuple[EventKind, int]] = []
        ids = models.patches.ids
        if models.epoch != self._numbers[0]:
            happened += self._model_changed(t_ns, ids, models.epoch)
        rows = self._rows_of(ids)
        counts = np.bincount(score.labels[score.labels >= 0], minlength=len(ids))[: len(ids)]
        is_seen = counts >= LEAST_PATCHES
        known = rows >= 0
        happened += self._returned(t_ns, rows[known & is_seen])
        self._take_note(t_ns, rows[known], is_seen[known])
        happened += self._vanished(t_ns, rows[known & ~is_seen])
        return happened

    def _rows_of(self, ids: np.ndarray) -> np.ndarray:
        """Return the table's row of each component, -1 where it has none."""
        order = np.argsort(self._table[:, _ID], kind="stable")
        place = np.searchsorted(self._table[order, _ID], ids)
        rows = order[np.minimum(place, CAPACITY - 1)]
        return np.where(self._table[rows, _ID] == ids, rows, -1)

    def _model_changed(self, t_ns: int, ids: np.ndarray, epoch: int) -> list[tuple[EventKind, int]]:
        """Enter new components, count the life of old ones, drop those that the model dropped."""
        self._numbers[0], self._numbers[1] = epoch, self._numbers[1] + 1
        table = self._table
        table[~np.isin(table[:, _ID], ids), _ID] = -1
        settled = self._numbers[1] > SETTLED_EPOCHS
        recent = self._numbers[2] >= 0 and self._numbers[1] - self._numbers[2] <= BIRTH_EPOCHS
        for new in ids[~np.isin(ids, table[:, _ID])]:
            free = np.flatnonzero(table[:, _ID] < 0)
            row = int(free[0]) if len(free) else int(np.argmin(table[:, _SEEN]))
            table[row] = 0
            table[row, (_ID, _BORN, _SEEN)] = new, t_ns, t_ns
            table[row, _FROM_EVENT] = settled and recent
            self._presence[row] = 0.0
        alive = table[:, _ID] >= 0
        table[alive, _EPOCHS] += 1
        grown = alive & (table[:, _FROM_EVENT] > 0) & (table[:, _TOLD] == 0) & (table[:, _EPOCHS] >= LASTING_EPOCHS)
        grown &= table[:, _FRAMES] > 0
        if not grown.any():
            return []
        # One thing learnt is often several components: it is told once an event, by the one seen most.
        table[:, _FROM_EVENT], self._numbers[2] = 0, -1
        table[grown, _TOLD] = 1
        rows = np.flatnonzero(grown)
        most = rows[np.argmax(table[rows, _FRAMES])]
        return [(EventKind.NEW_CATEGORY, int(table[most, _ID]))]

    def _returned(self, t_ns: int, rows: np.ndarray) -> list[tuple[EventKind, int]]:
        """Categories that were rare and away, and are seen again for `min_frames` frames."""
        table = self._table
        away = t_ns - table[rows, _SEEN] >= WATCHED_S * NS
        back = rows[(table[rows, _EPOCHS] >= LASTING_EPOCHS) & (self._presence[rows] < RARE)]
        back = back[(table[back, _RUN] > 0) | away[np.isin(rows, back)]]
        table[back, _RUN] += 1
        due = back[table[back, _RUN] == self._config.min_frames]
        due = due[table[due, _FRAMES] > 0]
        if not len(due):
            return []
        return [(EventKind.RETURNED, int(table[due[np.argmax(table[due, _FRAMES])], _ID]))]

    def _take_note(self, t_ns: int, rows: np.ndarray, is_seen: np.ndarray) -> None:
        table = self._table
        share = 1.0 / np.minimum(table[rows, _FRAMES] + 1.0, PRESENCE_FRAMES)
        age = np.minimum((t_ns - table[rows, _BORN]) / NS, WATCHED_S) / WATCHED_S
        self._presence[rows] += np.where(age < 1.0, share, 1.0 / PRESENCE_FRAMES) * (is_seen - self._presence[rows])
        seen, absent = rows[is_seen], rows[~is_seen]
        table[seen, _SEEN] = t_ns
        table[seen, _FRAMES] += 1
        table[seen, _GONE] = 0
        table[absent, _RUN] = 0

    def _vanished(self, t_ns: int, rows: np.ndarray) -> list[tuple[EventKind, int]]:
        """What was there in nearly every frame for a minute and more, and has been away for `vanish_s`."""
        table = self._table
        usual = (self._presence[rows] >= ALWAYS - 0.1) & (table[rows, _FRAMES] >= PRESENCE_FRAMES // 2)
        watched = table[rows, _SEEN] - table[rows, _BORN] >= WATCHED_S * NS
        gone = rows[usual & watched & (table[rows, _GONE] == 0)]
        gone = gone[t_ns - table[gone, _SEEN] >= self._config.vanish_s * NS]
        table[gone, _GONE] = 1
        if not len(gone):
            return []
        return [(EventKind.VANISHED, int(table[gone[np.argmax(table[gone, _FRAMES])], _ID]))]

    def state(self) -> State:
        return {"table": self._table.copy(), "presence": self._presence.copy(), "numbers": self._numbers.copy()}

    def restore(self, state: State) -> None:
        """Go on from `state`; SnapshotError, and no change, where it does not fit."""
        for name, own in (("table", self._table), ("presence", self._presence), ("numbers", self._numbers)):
            if name not in state or state[name].shape != own.shape:
                raise SnapshotError(f"categories: {name} is absent or has another shape")
        self._table[:], self._presence[:] = state["table"], state["presence"]
        self._numbers[:] = state["numbers"]

    def memory_bytes(self) -> int:
        return self._table.nbytes + self._presence.nbytes + self._numbers.nbytes
