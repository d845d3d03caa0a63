"""Follows components of the patch mixture as things that come, stay, go and return: what became known, what is gone.

Called by agent/events/life.py with every scored frame. It must not raise alerts itself: it names what happened.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from stillwatch.base import Recorded, record_bytes, saved, saved_array
from stillwatch.epochs import PATCHES, Models
from stillwatch.events.news import is_news
from stillwatch.events.rules import (
    ALWAYS,
    BIRTH_EPOCHS,
    CELLS,
    FOLLOWED,
    GAP,
    GAP_LOOKS,
    LASTING_EPOCHS,
    LEAST_PATCHES,
    MOST_MISSING,
    NS,
    PRESENCE_FRAMES,
    RARE,
    SETTLED_EPOCHS,
    STAYS,
    STILL,
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
    that was told and that it came back from. with_most: of its absence nobody was told, most others were missing too.
    presence: share of frames in which it is seen, lately; usual: what that was when it was seen last. where: in what
    share of the frames that show it each cell of the picture does, lately. looks: into its absence so far; gap: it
    left one.
    epoch: of the model seen last. n_models: seen so far. event_models: how many of them when an event that no
    category was told of was open last, -1 without one. in_event: whether one is open. t_ns: stream time of the last
    frame, -1 before the first; blind_ns: so much of it went by while names were not believed. All other times are
    without that.
    """

    id: np.ndarray = saved_array((FOLLOWED,), np.int64, fill=-1, low=-1)
    born_ns: np.ndarray = saved_array((FOLLOWED,), np.int64, low=0)
    seen_ns: np.ndarray = saved_array((FOLLOWED,), np.int64, low=0)
    frames: np.ndarray = saved_array((FOLLOWED,), np.int64, low=0)
    epochs: np.ndarray = saved_array((FOLLOWED,), np.int64, low=0)
    from_event: np.ndarray = saved_array((FOLLOWED,), np.bool_)
    told: np.ndarray = saved_array((FOLLOWED,), np.bool_)
    gone: np.ndarray = saved_array((FOLLOWED,), np.bool_)
    with_most: np.ndarray = saved_array((FOLLOWED,), np.bool_)
    run: np.ndarray = saved_array((FOLLOWED,), np.int64, low=0)
    away_ns: np.ndarray = saved_array((FOLLOWED,), np.int64, low=0)
    longest_ns: np.ndarray = saved_array((FOLLOWED,), np.int64, low=0)
    missed_ns: np.ndarray = saved_array((FOLLOWED,), np.int64, low=0)
    presence: np.ndarray = saved_array((FOLLOWED,), np.float64, low=0.0, high=1.0)
    usual: np.ndarray = saved_array((FOLLOWED,), np.float64, low=0.0, high=1.0)
    where: np.ndarray = saved_array((FOLLOWED, CELLS * CELLS), np.float32, low=0.0, high=1.0)
    looks: np.ndarray = saved_array((FOLLOWED,), np.int64, low=0)
    gap: np.ndarray = saved_array((FOLLOWED,), np.bool_)
    epoch: int = saved(-1, low=-1)
    n_models: int = saved(0, low=0)
    event_models: int = saved(-1, low=-1)
    in_event: bool = saved(False)
    t_ns: int = saved(-1, low=-1)
    blind_ns: int = saved(0, low=0)


@functools.lru_cache(maxsize=1)
def cells_of(grid_shape: tuple[int, ...]) -> np.ndarray:
    """Return the cell of the picture that each patch of a grid is in: (rows * columns,) int64, read only."""
    rows, columns = (np.arange(length) * CELLS // length for length in grid_shape)
    cells = (rows[:, None] * CELLS + columns).ravel()
    cells.setflags(write=False)
    return cells


def _patches_by_cell(score: Score, n_ids: int) -> np.ndarray:
    """Return how many patches of each component every cell of a labelled frame shows, (n_ids, CELLS ** 2) int64."""
    assert score.labels is not None
    named = np.flatnonzero(score.labels >= 0)
    at = score.labels[named] * CELLS**2 + cells_of(score.patch_map.shape)[named]
    return np.bincount(at, minlength=n_ids * CELLS**2).reshape(n_ids, CELLS**2)


ShareLike = Callable[[np.ndarray], tuple[float, float]]


@dataclass(frozen=True, slots=True)
class _InView:
    """A labelled frame, ids of the components that its labels are places of, and who tells how usual places look."""

    score: Score
    ids: np.ndarray
    share_like: ShareLike | None

    @property
    def knows_places(self) -> bool:
        """Whether the camera stands, so that somebody can tell."""
        return self.score.view_stays and self.share_like is not None

    def shares_like(self, components: np.ndarray) -> np.ndarray:
        """Return in what share of all that was watched, and lately, each one's places looked as now, (2, n) float64.

        NaN of whom the frame does not show.
        """
        assert self.share_like is not None
        shares = np.full((2, len(components)), np.nan)
        for n, its in enumerate(self._patches_of(components)):
            patches = np.flatnonzero(its)
            if len(patches) >= LEAST_PATCHES:
                shares[:, n] = self.share_like(patches)
        return shares

    def _patches_of(self, components: np.ndarray) -> np.ndarray:
        """Return which patches are each one's, (n, n_patches) bool."""
        assert self.score.labels is not None
        return np.asarray(self.score.labels == np.argmax(self.ids == components[:, None], axis=1)[:, None])

    def stand_out(self, components: np.ndarray) -> np.ndarray:
        """Return who is seen where the frame is unlike all that was seen there, (n,) bool."""
        its = self._patches_of(components)
        return np.asarray((its & self._unlike).sum(axis=1) >= GAP * its.sum(axis=1))

    def shares_out(self, where: np.ndarray) -> np.ndarray:
        """Return in what share of some things' places the frame is unlike all that was seen there, (n,) float64.

        0 of what has no place of its own.

        where : (n, CELLS ** 2), shares of frames
        """
        its = where[:, cells_of(self.score.patch_map.shape)] >= STAYS
        return np.asarray((its & self._unlike).sum(axis=1) / np.maximum(its.sum(axis=1), 1))

    @property
    def _unlike(self) -> np.ndarray:
        """Patches that are unlike their places, (n_patches,) bool; only where `knows_places`."""
        assert self.score.judgement is not None
        assert self.score.judgement.stands_out is not None
        return self.score.judgement.stands_out


class CategoryLife(Recorded):
    """Says what became of the components, in a table of fixed size."""

    _where = "categories"

    def __init__(self, config: EventsConfig):
        self._config = config
        self._followed = _Followed()

    def update(
        self, t_ns: int, score: Score, models: Models, in_event: bool, share_like: ShareLike | None = None
    ) -> list[tuple[EventKind, int]]:
        """Take one scored frame; return (kind, component id) of what happened: new_category, returned, vanished.

        Nothing is told while an event is open: the alert tells of it. A new category and an absence are told after it,
        a return is not. Frames whose names are not believed, for weather or colours, say nothing of who is there: for
        them no time goes by, and what is learnt then is no category.
        """
        followed = self._followed
        t_ns = self._watched(t_ns, score.was_named)
        if in_event and (followed.event_models >= 0 or not followed.in_event):
            followed.event_models = followed.n_models
        followed.in_event = in_event
        ids = models[PATCHES].ids
        if models.epoch != followed.epoch:
            self._model_changed(t_ns, ids, models.epoch, score.was_named)
        if not score.was_named or score.labels is None:
            return []
        rows = self._rows_of(ids)
        shown = _patches_by_cell(score, len(ids))
        is_seen = shown.sum(axis=1) >= LEAST_PATCHES
        known = rows >= 0
        seen, missing = rows[known & is_seen], rows[known & ~is_seen]
        same_picture = self._is_same_picture(seen, missing)
        in_view = _InView(score, ids, share_like)
        happened = self._grown(in_view)
        happened += self._returned(t_ns, seen, same_picture, in_view)
        self._take_note(t_ns, rows[known], is_seen[known])
        self._note_where(seen, shown[known & is_seen] > 0)
        return happened + self._vanished(t_ns, missing, same_picture, in_view)

    def forget(self) -> None:
        """Know nobody any more: the camera has another view, in which who is always there is somebody else."""
        followed = self._followed
        followed.id[:], followed.epoch, followed.event_models = -1, -1, -1

    def _watched(self, t_ns: int, was_named: bool) -> int:
        """Return the time by which absences are measured: the stream's, but that it stands while nobody is named."""
        followed = self._followed
        if not was_named and followed.t_ns >= 0:
            followed.blind_ns += max(t_ns - followed.t_ns, 0)
        followed.t_ns = t_ns
        return t_ns - followed.blind_ns

    def _rows_of(self, ids: np.ndarray) -> np.ndarray:
        """Return the table's row of each component, -1 where it has none."""
        own = self._followed.id
        order = np.argsort(own, kind="stable")
        place = np.searchsorted(own[order], ids)
        rows = order[np.minimum(place, FOLLOWED - 1)]
        return np.where(own[rows] == ids, rows, -1)

    def _model_changed(self, t_ns: int, ids: np.ndarray, epoch: int, was_named: bool) -> None:
        """Enter new components, count the life of old ones, drop those that the model dropped."""
        followed = self._followed
        followed.epoch, followed.n_models = epoch, followed.n_models + 1
        followed.id[~np.isin(followed.id, ids)] = -1
        for new in ids[~np.isin(ids, followed.id)]:
            self._enter(int(new), t_ns, was_named)
        followed.epochs[followed.id >= 0] += 1

    def _grown(self, in_view: _InView) -> list[tuple[EventKind, int]]:
        """What came in an event, was learnt, and has lasted.

        Where the camera stands it must be seen more often than not, and its places must look as in the last seconds,
        but not as in most of the time: who passes is learnt as well, and what was always there is parted anew.
        """
        followed = self._followed
        grown = (followed.id >= 0) & followed.from_event & ~followed.told & (followed.epochs >= LASTING_EPOCHS)
        grown &= (followed.frames > 0) & ((followed.presence >= STAYS) | (not in_view.score.view_stays))
        rows = np.flatnonzero(grown)
        if followed.in_event or not len(rows):
            return []
        if in_view.knows_places:
            rows = self._staying(rows, in_view)
            if not len(rows):
                return []
        # One thing learnt is often several components: it is told once an event, by the one seen most.
        followed.from_event[:], followed.event_models = False, -1
        followed.told[rows] = True
        return [(EventKind.NEW_CATEGORY, self._most_seen(rows))]

    def _staying(self, rows: np.ndarray, in_view: _InView) -> np.ndarray:
        """Return those rows whose places look as lately and not as before; the others are none for good.

        Who is not in view just now is neither.
        """
        past, recent = in_view.shares_like(self._followed.id[rows])
        stays = (past < STAYS) & (recent >= STILL)
        self._followed.from_event[rows[~stays & ~np.isnan(past)]] = False
        return np.asarray(rows[stays])

    def _enter(self, component: int, t_ns: int, was_named: bool) -> None:
        """Give a new component a free row, or that of the one not seen for longest; what came unnamed is no thing."""
        followed = self._followed
        free = np.flatnonzero(followed.id < 0)
        row = int(free[0]) if len(free) else int(np.argmin(followed.seen_ns))
        settled = followed.n_models > SETTLED_EPOCHS
        recent = followed.event_models >= 0 and followed.n_models - followed.event_models <= BIRTH_EPOCHS
        followed.id[row], followed.born_ns[row], followed.seen_ns[row] = component, t_ns, t_ns
        followed.frames[row] = followed.epochs[row] = followed.run[row] = 0
        followed.from_event[row] = settled and recent and was_named
        followed.told[row] = followed.gone[row] = False
        followed.where[row] = 0.0
        followed.presence[row] = followed.usual[row] = 0.0
        followed.away_ns[row] = followed.longest_ns[row] = followed.missed_ns[row] = 0

    def _most_seen(self, rows: np.ndarray) -> int:
        """Return the id of the component that was seen in most frames."""
        return int(self._followed.id[rows[np.argmax(self._followed.frames[rows])]])

    def _is_same_picture(self, seen: np.ndarray, missing: np.ndarray) -> bool:
        """Return whether most of what is always there is: else nobody came or went, the picture is another."""
        n_missing = self._always(missing).sum()
        return bool(n_missing <= max(MOST_MISSING * (n_missing + self._always(seen).sum()), 1.0))

    def _returned(
        self, t_ns: int, rows: np.ndarray, same_picture: bool, in_view: _InView
    ) -> list[tuple[EventKind, int]]:
        """Categories that were rare and away, and are seen again for `min_frames` labelled frames.

        What comes again and again is told the first time, and then after it was away for longer than ever
        (`tell`: only the first time, or every time). In another picture none is. Nor, where the camera stands, is what
        is seen where nothing stands out, or all looks as in most of the time: patches got another name, nobody came.
        """
        followed = self._followed
        away_ns = t_ns - followed.seen_ns[rows]
        fits = (followed.epochs[rows] >= LASTING_EPOCHS) & (followed.presence[rows] < RARE)
        begins = fits & (away_ns >= WATCHED_S * NS)
        followed.away_ns[rows[begins]] = away_ns[begins]
        back = rows[fits & ((followed.run[rows] > 0) | begins)]
        followed.run[back] += 1
        due = back[(followed.run[back] == self._config.min_frames) & (followed.frames[back] > 0)]
        if in_view.knows_places and len(due):
            due = due[in_view.stand_out(followed.id[due])]
            due = due[~(in_view.shares_like(followed.id[due])[0] >= STAYS)]
        longest = followed.longest_ns[due]
        told = due[is_news(self._config.tell, followed.away_ns[due], longest) & same_picture]
        followed.longest_ns[due] = np.maximum(longest, followed.away_ns[due])
        return [(EventKind.RETURNED, self._most_seen(told))] if len(told) and not followed.in_event else []

    def _take_note(self, t_ns: int, rows: np.ndarray, is_seen: np.ndarray) -> None:
        """Keep who was seen in this frame."""
        followed = self._followed
        share = 1.0 / np.minimum(followed.frames[rows] + 1.0, PRESENCE_FRAMES)
        age = np.minimum((t_ns - followed.born_ns[rows]) / NS, WATCHED_S) / WATCHED_S
        pace = np.where(age < 1.0, share, 1.0 / PRESENCE_FRAMES)
        followed.presence[rows] += pace * (is_seen - followed.presence[rows])
        seen, absent = rows[is_seen], rows[~is_seen]
        back = seen[followed.gone[seen] & ~followed.with_most[seen]]
        followed.missed_ns[back] = np.maximum(followed.missed_ns[back], t_ns - followed.seen_ns[back])
        followed.seen_ns[seen], followed.usual[seen] = t_ns, followed.presence[seen]
        followed.frames[seen] += 1
        followed.gone[seen] = followed.gap[seen] = False
        followed.looks[seen] = 0
        followed.run[absent] = 0

    def _note_where(self, rows: np.ndarray, shown: np.ndarray) -> None:
        """Keep in which cells those who are seen in this frame are; shown : (n, CELLS ** 2) bool, of each row."""
        followed = self._followed
        pace = 1.0 / np.minimum(followed.frames[rows], PRESENCE_FRAMES)  # this frame is counted already
        followed.where[rows] += (pace[:, None] * (shown - followed.where[rows])).astype(np.float32)

    def _vanished(
        self, t_ns: int, rows: np.ndarray, same_picture: bool, in_view: _InView
    ) -> list[tuple[EventKind, int]]:
        """What was there in nearly every frame for a minute and more, and has been away for `vanish_s`.

        What goes again and again is told as returns are (`_returned`): the first time, and then when it is away for
        longer than ever. In another picture no thing went. Nor, where the camera stands, did what left no gap: patches
        got another name.
        """
        followed = self._followed
        missed = rows[self._always(rows) & (followed.seen_ns[rows] - followed.born_ns[rows] >= WATCHED_S * NS)]
        self._look_for_gaps(missed, in_view)
        if followed.in_event:
            return []
        gone = missed[followed.gap[missed] & ~followed.gone[missed]]
        away_ns, missed_ns = t_ns - followed.seen_ns[gone], followed.missed_ns[gone]
        gone = gone[is_news(self._config.tell, away_ns, missed_ns) & (away_ns >= self._config.vanish_s * NS)]
        followed.gone[gone], followed.with_most[gone] = True, not same_picture
        return [(EventKind.VANISHED, self._most_seen(gone))] if len(gone) and same_picture else []

    def _look_for_gaps(self, rows: np.ndarray, in_view: _InView) -> None:
        """Note who left a place that is unlike itself since, in the first looks: an absence soon looks usual."""
        followed = self._followed
        rows = rows[followed.looks[rows] < GAP_LOOKS]
        followed.looks[rows] += 1
        if len(rows):
            followed.gap[rows] |= in_view.shares_out(followed.where[rows]) >= GAP if in_view.knows_places else True

    def _always(self, rows: np.ndarray) -> np.ndarray:
        """Return which of the rows are of what was there in nearly every frame when it was seen last, (n,) bool."""
        followed = self._followed
        return np.asarray((followed.usual[rows] >= ALWAYS) & (followed.frames[rows] >= PRESENCE_FRAMES // 2))

    def _record(self) -> Any:
        return self._followed

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes of the table."""
        return {"categories": record_bytes(self._followed)}
