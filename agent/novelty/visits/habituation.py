"""What visitors usually look like here, patch by patch: who comes all day long is no news, even if never seen whole.

Called by agent/novelty/places/unlikeness.py. It must not follow anybody: what touches, parts or is cut off by the edge
is as well known as what passes by itself.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import cv2
import numpy as np

from stillwatch.base import Recorded, record_bytes, saved, saved_array
from stillwatch.features import Rows
from stillwatch.kernels import patch_memory as kernels
from stillwatch.novelty.rules import (
    HABITUATED_S,
    HABITUATION_BEGINS_S,
    LEAST_MARK_UNIT,
    LIKE_ITSELF,
    MARK_DEVIATION,
    MARK_LIGHT,
    MARK_PLACE,
    MARK_REACH,
    MARK_SMOOTHING,
    MARK_UNIT_PRIOR,
    MARKED_SECONDS,
    MARKS,
    MOST_MARKS,
    NS,
    UNLIKE_ITSELF,
    UNUSUAL_SHARE,
    USUAL_SHARE,
)
from stillwatch.novelty.sampling import place_of_next
from stillwatch.novelty.visits.sightings import Sighting

MARK_DIMS = 7  # two ratios of colours and the light, how each varies around, the row of the picture
_NOBODY = 1e3  # a mark that nothing is like
_UNIT_MEMORY = 200  # frames that a unit is an average over


@dataclass
class _Seen:
    """Some seconds of all in which somebody was there, with marks of who that was, and how long that was.

    kept: marks of those seconds, a column each, MARKS a second. held: seconds of them. offered: seconds, up to the
    horizon; turns: seconds and frames, all: each has a generator of its own. now, last: marks of the second under way
    and of the one before; now_s, last_s: which seconds those are, -1 before the first. n_now: marks that were offered.
    unit: logarithm of the distance from a thing to itself a second ago; unit_n: of how many frames. total_s: seconds
    that were watched; watched_s, present_s: those and those in which somebody was there, with half-lives. t_ns: stream
    time of the last frame.
    """

    kept: np.ndarray = saved_array((MARK_DIMS, MARKED_SECONDS * MARKS), np.float32, fill=_NOBODY)
    now: np.ndarray = saved_array((MARK_DIMS, MARKS), np.float32, fill=_NOBODY)
    last: np.ndarray = saved_array((MARK_DIMS, MARKS), np.float32, fill=_NOBODY)
    held: int = saved(0, low=0, high=MARKED_SECONDS)
    offered: int = saved(0, low=0)
    turns: int = saved(0, low=0)
    now_s: int = saved(-1, low=-1)
    last_s: int = saved(-1, low=-1)
    n_now: int = saved(0, low=0)
    unit: float = saved(math.log(MARK_DEVIATION))
    unit_n: int = saved(MARK_UNIT_PRIOR, low=0, high=_UNIT_MEMORY)
    total_s: float = saved(0.0, low=0.0)
    watched_s: float = saved(0.0, low=0.0)
    present_s: float = saved(0.0, low=0.0)
    t_ns: int = saved(-1, low=-1)


class Habituation(Recorded):
    """Says of each patch of a visitor in what share of the time something like it was in view, at its height.

    A mark is what a patch and those around it of the same thing look like: colour, light, how both vary, and its row of
    the picture. Marks of a uniform sample of all seconds in which somebody was there are kept.
    Two marks are alike when they are about as near as a thing is to itself a second later, under this camera's
    noise and weather.

    Parameters
    ----------
    halflife_s : float
        Of what is remembered.
    seed : int
    """

    _where = "habituation"

    def __init__(self, halflife_s: float, seed: int):
        self._halflife_s, self._seed = halflife_s, seed
        self._seen = _Seen()
        self._squares = np.zeros(MARKED_SECONDS * MARKS, np.float32)
        self._distances = np.zeros((MOST_MARKS, MARKED_SECONDS), np.float32)

    def reset(self) -> None:
        """Forget everything: the grid has another shape, or the camera another view."""
        self._seen = _Seen()

    def mark(self, sightings: Sequence[Sighting], rows: Rows) -> list[Sighting]:
        """Return the sightings with their marks, at most MOST_MARKS in all; it teaches nothing."""
        if not sightings:
            return []
        everybody = np.sort(np.concatenate([sighting.patches for sighting in sightings]))
        marks = _marks_of(everybody, rows)
        thinned = np.zeros(len(rows.plain), bool)
        thinned[everybody[np.linspace(0, len(everybody) - 1, min(len(everybody), MOST_MARKS)).astype(int)]] = True
        found = []
        for sighting in sightings:
            marked = sighting.patches[thinned[sighting.patches]]
            found.append(replace(sighting, marked=marked, marks=marks[marked]))
        return found

    def familiar(self, sightings: Sequence[Sighting], grid_shape: tuple[int, int], out: np.ndarray) -> None:
        """Write how usual each place's visitor is, (n,) float32, 0 to 1; 0 where nobody is, and beside a visitor his.

        sightings : as `mark` returns them
        """
        out[:] = 0.0
        seen = self._seen
        ramp = (seen.total_s - HABITUATION_BEGINS_S) / (HABITUATED_S - HABITUATION_BEGINS_S)
        if not sightings or not seen.held or ramp <= 0.0:
            return
        weights = np.zeros(len(out), np.float32)
        for sighting in sightings:
            if len(sighting.marked):
                share = self._share_of_time(sighting.marks)
                usual = np.clip((share - UNUSUAL_SHARE) / (USUAL_SHARE - UNUSUAL_SHARE), 0.0, 1.0)
                out[sighting.marked], weights[sighting.marked] = min(ramp, 1.0) * usual, 1.0
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
        distances = self._distances[: len(marks), : seen.held]
        kernels.nearest_of_groups(marks, seen.kept, seen.held, MARKS, self._squares, self._distances[: len(marks)])
        alike = (UNLIKE_ITSELF - distances / np.float32(math.exp(seen.unit))) / (UNLIKE_ITSELF - LIKE_ITSELF)
        share = np.clip(alike, 0.0, 1.0).mean(axis=1, dtype=np.float64)
        return (share * seen.present_s / max(seen.watched_s, 1.0)).astype(np.float32)

    def learn(self, sightings: Sequence[Sighting], t_ns: int) -> None:
        """Take note of who was there in the frame at stream time `t_ns`, with the marks that `mark` gave them."""
        seen = self._seen
        elapsed_s = min(max(t_ns - seen.t_ns, 0) / NS, 1.0) if seen.t_ns >= 0 else 0.0
        kept = 0.5 ** (elapsed_s / self._halflife_s)
        seen.t_ns = t_ns
        seen.total_s += elapsed_s
        seen.watched_s = seen.watched_s * kept + elapsed_s
        marks = np.concatenate([sighting.marks for sighting in sightings]) if sightings else np.zeros((0, MARK_DIMS))
        seen.present_s = seen.present_s * kept + (elapsed_s if len(marks) else 0.0)
        if not len(marks):
            return
        second = t_ns // NS
        if second != seen.now_s:
            self._end_second(int(second))
        if seen.now_s - seen.last_s == 1:
            self._compare(marks)
        rng = self._generator()
        for mark in rng.permutation(len(marks))[:MARKS]:
            place = place_of_next(seen.n_now, MARKS, seen.n_now, lambda: rng)
            seen.n_now += 1
            if place < MARKS:
                seen.now[:, place] = marks[mark]

    def _end_second(self, second: int) -> None:
        """Offer the second that is over to the sample, and begin another."""
        seen = self._seen
        if seen.n_now:
            horizon = max(round(self._halflife_s), MARKED_SECONDS)
            place = place_of_next(seen.held, MARKED_SECONDS, seen.offered, self._generator, horizon)
            seen.offered = min(seen.offered + 1, horizon)
            if place < MARKED_SECONDS:
                seen.kept[:, place * MARKS : (place + 1) * MARKS] = seen.now
                seen.held = max(seen.held, place + 1)
        seen.last[:], seen.last_s = seen.now, seen.now_s
        seen.now[:], seen.n_now, seen.now_s = _NOBODY, 0, second

    def _compare(self, marks: np.ndarray) -> None:
        """Let the unit follow how far who is there is from who was there a second ago."""
        seen = self._seen
        distances = np.zeros(len(marks), np.float32)
        kernels.nearest_kept(marks, seen.last, MARKS, self._squares, distances)
        unit = math.log(max(float(np.median(distances)), LEAST_MARK_UNIT))
        seen.unit_n = min(seen.unit_n + 1, _UNIT_MEMORY)
        seen.unit += (unit - seen.unit) / seen.unit_n

    def _generator(self) -> np.random.Generator:
        self._seen.turns += 1
        return np.random.default_rng([self._seed, self._seen.turns])

    def _record(self) -> _Seen:
        return self._seen

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes of all arrays."""
        return {"habituation": record_bytes(self._seen) + self._squares.nbytes + self._distances.nbytes}


def _marks_of(patches: np.ndarray, rows: Rows) -> np.ndarray:
    """Return the marks of patches, (n, MARK_DIMS) float32 of the whole grid; elsewhere they mean nothing.

    What is around a patch counts where it is one of `patches`: the ground beside a visitor is none of them.
    """
    n, grid = len(rows.plain), rows.grid_shape
    inside = np.zeros(n, np.float32)
    inside[patches] = 1.0
    colours = np.empty((n, 3), np.float32)
    colours[:, :2], colours[:, 2] = rows.colours[:, 1:], MARK_LIGHT * rows.colours[:, 0]
    size = (MARK_REACH, MARK_REACH)

    def around(values: np.ndarray) -> np.ndarray:
        return cv2.blur((values * inside[:, None]).reshape(*grid, 3), size, borderType=cv2.BORDER_CONSTANT)

    share = cv2.blur(inside.reshape(grid), size, borderType=cv2.BORDER_CONSTANT)[..., None] + np.float32(1e-6)
    mean = around(colours) / share
    deviation = np.sqrt(np.maximum(around(colours * colours) / share - mean * mean, 0.0))
    height = np.repeat(np.arange(grid[0], dtype=np.float32) * np.float32(MARK_PLACE / grid[0]), grid[1])
    return np.concatenate([mean.reshape(n, 3), deviation.reshape(n, 3), height[:, None]], axis=1)
