"""What visitors usually look like here, patch by patch: who comes all day long is no news, even if never seen whole.

Called by agent/novelty/places/unlikeness.py. It must not follow anybody: what touches, parts or is cut off by the edge
is as well known as what passes by itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import cv2
import numpy as np

from stillwatch.base import Commit, Composed, RecordPart, Stage, State, saved, saved_array
from stillwatch.features import Rows
from stillwatch.kernels import patch_memory as kernels
from stillwatch.novelty.rules import (
    AXES,
    AXES_S,
    HABITUATED_S,
    HABITUATION_BEGINS_S,
    LIKE_ITSELF,
    MARK_REACH,
    MARK_SMOOTHING,
    MARKED_SECONDS,
    MARKS,
    MOST_MARKS,
    NS,
    UNLIKE_ITSELF,
    UNUSUAL_SHARE,
    USUAL_SHARE,
)
from stillwatch.novelty.sampling import place_of_next, places_of_next
from stillwatch.novelty.visits.discriminants import Discriminants
from stillwatch.novelty.visits.sightings import Sighting

_COLOURS, _HEIGHTS = 6, 1  # values of a mark: two ratios of colours and the light, how each varies around; its height


@dataclass
class _Seen:
    """Some seconds of all in which somebody was there, with marks of who that was, and how long that was.

    kept: marks of those seconds, a row each, MARKS a second. now, last: marks of the second under way and of the one
    before. held: seconds that are kept. offered: seconds, up to the horizon; turns: seconds and frames, all: each has a
    generator of its own. who_now, who_last: numbers of the visits that those marks are of. now_s, last_s: which seconds
    those are, -1 before the first. n_now: marks that were offered. total_s: seconds that were watched; watched_s,
    present_s: those and those in which somebody was there, with half-lives. t_ns: stream time of the last frame.
    found_ns: when the axes were looked for.
    """

    kept: np.ndarray
    now: np.ndarray
    last: np.ndarray
    who_now: np.ndarray = saved_array((MARKS,), np.int64, fill=-1, low=-1)
    who_last: np.ndarray = saved_array((MARKS,), np.int64, fill=-1, low=-1)
    held: int = saved(0, low=0, high=MARKED_SECONDS)
    offered: int = saved(0, low=0)
    turns: int = saved(0, low=0)
    now_s: int = saved(-1, low=-1)
    last_s: int = saved(-1, low=-1)
    n_now: int = saved(0, low=0)
    total_s: float = saved(0.0, low=0.0)
    watched_s: float = saved(0.0, low=0.0)
    present_s: float = saved(0.0, low=0.0)
    t_ns: int = saved(-1, low=-1)
    found_ns: int = saved(-1, low=-1)


class Habituation(Composed):
    """Says of each patch of a visitor in what share of the time something like it was in view, at its height.

    A mark is what a patch and those around it of the same thing look like: colour, light, how both vary, its row of
    the picture and the mean of its descriptors. Marks of a uniform sample of all seconds in which somebody was there
    are kept. Two marks are alike when they are about as near as a thing is to itself a second later, along the axes
    that tell visitors apart (discriminants.py).

    Parameters
    ----------
    n_patch_dims : int
        Of a row without context.
    halflife_s : float
        Of what is remembered.
    seed : int
    """

    _where = "habituation"

    def __init__(self, n_patch_dims: int, halflife_s: float, seed: int):
        self._halflife_s, self._seed = halflife_s, seed
        self._n_dims = _COLOURS + _HEIGHTS + n_patch_dims
        self._axes = Discriminants(self._n_dims)
        self._along: np.ndarray | None = None  # what is kept, along the axes, a column each; None where either is new
        self._squares = np.zeros(MARKED_SECONDS * MARKS, np.float32)
        self._distances = np.zeros((MOST_MARKS, MARKED_SECONDS), np.float32)
        self.reset()

    def reset(self) -> None:
        """Forget everything: the grid has another shape, or the camera another view."""
        kept, now, last = (np.zeros((n, self._n_dims), np.float32) for n in (MARKED_SECONDS * MARKS, MARKS, MARKS))
        self._seen = _Seen(kept, now, last)
        self._axes.reset()
        self._along = None

    @property
    def settled(self) -> float:
        """How far it may be believed who is usual, 0 to 1: after some minutes of watching."""
        if not self._axes.known:
            return 0.0
        ramp = (self._seen.total_s - HABITUATION_BEGINS_S) / (HABITUATED_S - HABITUATION_BEGINS_S)
        return min(max(ramp, 0.0), 1.0)

    def mark(self, sightings: Sequence[Sighting], rows: Rows) -> list[Sighting]:
        """Return the sightings with their marks, at most MOST_MARKS in all; it teaches nothing."""
        if not sightings:
            return []
        everybody = np.sort(np.concatenate([sighting.patches for sighting in sightings]))
        marks = marks_of(everybody, rows)
        thinned = np.zeros(len(rows.plain), bool)
        thinned[everybody[np.linspace(0, len(everybody) - 1, min(len(everybody), MOST_MARKS)).astype(int)]] = True
        found = []
        for sighting in sightings:
            marked = sighting.patches[thinned[sighting.patches]]
            found.append(replace(sighting, marked=marked, marks=marks[np.searchsorted(everybody, marked)]))
        return found

    def familiar(self, sightings: Sequence[Sighting], grid_shape: tuple[int, int], out: np.ndarray) -> None:
        """Write how usual each place's visitor is, (n,) float32, 0 to 1; 0 where nobody is, and beside a visitor his.

        sightings : as `mark` returns them
        """
        out[:] = 0.0
        settled = self.settled
        if not sightings or not self._seen.held or settled <= 0.0:
            return
        weights = np.zeros(len(out), np.float32)
        for sighting in sightings:
            if len(sighting.marked):
                share = self._share_of_time(sighting.marks)
                usual = np.clip((share - UNUSUAL_SHARE) / (USUAL_SHARE - UNUSUAL_SHARE), 0.0, 1.0)
                out[sighting.marked], weights[sighting.marked] = settled * usual, 1.0
        near = (MARK_SMOOTHING, MARK_SMOOTHING)
        told, told_by = (
            cv2.blur(values.reshape(grid_shape), near, borderType=cv2.BORDER_CONSTANT).ravel()
            for values in (out, weights)
        )
        np.divide(told, told_by, out=out, where=told_by > 1e-6)
        out[told_by <= 1e-6] = 0.0

    def _share_of_time(self, marks: np.ndarray) -> np.ndarray:
        """Return the share of all that was watched in which something like each mark was there, (m,) float32."""
        seen = self._seen
        if self._along is None:
            self._along = np.ascontiguousarray(self._axes.along_axes(seen.kept[: seen.held * MARKS]).T)
        distances, rows = self._distances[: len(marks)], self._axes.along_axes(marks)
        kernels.nearest_of_groups(rows, self._along, seen.held, MARKS, self._squares, distances)
        alike = (UNLIKE_ITSELF - distances[:, : seen.held]) / (UNLIKE_ITSELF - LIKE_ITSELF)
        share = np.clip(alike, 0.0, 1.0).mean(axis=1, dtype=np.float64)
        return (share * seen.present_s / max(seen.watched_s, 1.0)).astype(np.float32)

    def learn(self, sightings: Sequence[Sighting], rows: Rows, t_ns: int) -> None:
        """Take note of who was there in the frame at stream time `t_ns`, with the marks that `mark` gave them."""
        seen = self._seen
        elapsed_s = min(max(t_ns - seen.t_ns, 0) / NS, 1.0) if seen.t_ns >= 0 else 0.0
        remembered = 0.5 ** (elapsed_s / self._halflife_s)
        seen.t_ns = t_ns
        seen.total_s += elapsed_s
        seen.watched_s = seen.watched_s * remembered + elapsed_s
        marks, who = _all_marks(sightings)
        seen.present_s = seen.present_s * remembered + (elapsed_s if len(marks) else 0.0)
        if not len(marks):
            return
        if seen.found_ns < 0 or t_ns - seen.found_ns >= AXES_S * NS:
            seen.found_ns = t_ns
            self._axes.learn_place(marks_of(np.flatnonzero(rows.valid), rows))
            self._axes.find()
            self._along = None
        second = t_ns // NS
        if second != seen.now_s:
            self._end_second(int(second))
        rng = self._generator()
        drawn = rng.permutation(len(marks))[:MARKS]
        self._axes.learn_visitors(marks[drawn])
        if seen.now_s - seen.last_s == 1:
            self._compare(marks[drawn], who[drawn])
        places = places_of_next(len(drawn), MARKS, seen.n_now, rng)
        seen.n_now += len(drawn)
        kept = np.flatnonzero(places < MARKS)  # of two at one place the later stays
        seen.now[places[kept]], seen.who_now[places[kept]] = marks[drawn[kept]], who[drawn[kept]]

    def _end_second(self, second: int) -> None:
        """Offer the second that is over to the sample, and begin another."""
        seen = self._seen
        if seen.n_now:
            n = min(seen.n_now, MARKS)
            for filled in (seen.now, seen.who_now):  # where few were seen, they fill the room by turns
                filled[n:] = filled[np.arange(MARKS - n) % n]
            horizon = max(round(self._halflife_s), MARKED_SECONDS)
            place = place_of_next(seen.held, MARKED_SECONDS, seen.offered, self._generator, horizon)
            seen.offered = min(seen.offered + 1, horizon)
            if place < MARKED_SECONDS:
                seen.kept[place * MARKS : (place + 1) * MARKS] = seen.now
                seen.held, self._along = max(seen.held, place + 1), None
        seen.last[:], seen.who_last[:], seen.last_s = seen.now, seen.who_now, seen.now_s
        seen.n_now, seen.now_s = 0, second

    def _compare(self, marks: np.ndarray, who: np.ndarray) -> None:
        """Learn how far things are from themselves a second ago: from the nearest mark of the same visit."""
        seen, spread = self._seen, self._axes.spread
        ours, theirs = np.nonzero((who[:, None] == seen.who_last[None, :]) & (who[:, None] >= 0))
        steps = marks[ours] - seen.last[theirs]
        squares = np.full((len(marks), len(seen.last)), np.inf)
        squares[ours, theirs] = ((steps / spread) ** 2).sum(axis=1)
        nearest = squares.argmin(axis=1)
        found = np.flatnonzero(np.isfinite(squares[np.arange(len(marks)), nearest]))
        self._axes.learn_itself(marks[found] - seen.last[nearest[found]])

    def _generator(self) -> np.random.Generator:
        self._seen.turns += 1
        return np.random.default_rng([self._seed, self._seen.turns])

    # -- state -----------------------------------------------------------------------------------------------

    def _parts(self) -> dict[str, Stage]:
        return {"seen": RecordPart(self._seen, "habituation: seen"), "axes": self._axes}

    def prepare(self, state: State) -> Commit:
        """Validate `state` and return its commit; SnapshotError, and no change, where it does not fit."""
        take_parts = super().prepare(state)

        def commit() -> None:
            take_parts()
            self._along = None

        return commit

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes of all arrays, what is kept along the axes among them."""
        along = 4 * AXES * MARKED_SECONDS * MARKS
        return {"habituation": self.parts_bytes() + along + self._squares.nbytes + self._distances.nbytes}


def _all_marks(sightings: Sequence[Sighting]) -> tuple[np.ndarray, np.ndarray]:
    """Return the marks of all sightings, (m, n_dims), and the numbers of the visits that they are of, -1 of several."""
    if not sightings:
        return np.zeros((0, 0), np.float32), np.zeros(0, np.int64)
    who = np.repeat([sighting.visit for sighting in sightings], [len(sighting.marks) for sighting in sightings])
    return np.concatenate([sighting.marks for sighting in sightings]), who


def marks_of(patches: np.ndarray, rows: Rows) -> np.ndarray:
    """Return the marks of patches, (m, n_dims) float32.

    What is around a patch counts where it is one of `patches`: the ground beside a visitor is none of them.

    patches : ndarray of shape (m,), int64, rising, at least one
    """
    columns = rows.grid_shape[1]
    top, bottom = int(patches[0]) // columns, int(patches[-1]) // columns + 1
    band, at = slice(top * columns, bottom * columns), patches - top * columns  # rows of the grid that hold them all
    inside = np.zeros((len(rows.plain[band]), 1), np.float32)
    inside[at] = 1.0
    colours = rows.colours[band][:, [1, 2, 0]]
    values = np.concatenate([inside, colours, colours * colours, rows.plain[band]], axis=1) * inside
    shape, size = (bottom - top, columns, -1), (MARK_REACH, MARK_REACH)
    sums = cv2.blur(values.reshape(shape), size, borderType=cv2.BORDER_CONSTANT).reshape(len(values), -1)[at]
    means = sums[:, 1:] / (sums[:, :1] + np.float32(1e-6))
    colour, square, row = means[:, :3], means[:, 3:6], means[:, 6:]
    deviation = np.sqrt(np.maximum(square - colour * colour, 0.0))
    height = (patches // columns).astype(np.float32) / np.float32(rows.grid_shape[0])
    return np.concatenate([colour, deviation, height[:, None], row], axis=1)
