"""A picture of each kind of visits, cut out where it was seen, with the times at which its kind came.

Called by agent/pipeline/pipeline.py with every scored frame. It must not decide what is told of an event.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stillwatch.base import Frame, Recorded, record_bytes, saved_array
from stillwatch.describing import encode_within, scaled
from stillwatch.novelty import MAX_KINDS, MAX_VISITS, Kind, Over, Sighting

PICTURE_BYTES = 4096
PICTURE_PX = 160
BESIDE = 0.35  # of its size is shown around a thing, on each side: a thing alone says nothing of where it is
LARGER = 1.2  # times as strongly as in the picture kept: less is not worth another one
TIMES = 64  # visits of a kind whose times are kept
TOLD_AT_LEAST = 48  # visits more than were told: told again, even where they are not twice as many

Box = tuple[float, float, float, float]


@dataclass
class _Held:
    """Pictures of the visits under way, in columns of fixed size, and of the kinds, with the ends of their visits.

    A row's id is -1 where it is free. size: bytes of the picture, 0 without one. times: ends of a kind's newest visits,
    stream time, the oldest first, -1 before there were so many. shown: visits of a kind when its picture was taken.
    """

    visit: np.ndarray = saved_array((MAX_VISITS,), np.int64, fill=-1, low=-1)
    visit_frame: np.ndarray = saved_array((MAX_VISITS,), np.int64, low=0)
    visit_t_ns: np.ndarray = saved_array((MAX_VISITS,), np.int64, low=0)
    visit_level: np.ndarray = saved_array((MAX_VISITS,), np.float64, low=0.0)
    visit_box: np.ndarray = saved_array((MAX_VISITS, 4), np.float64, low=0.0, high=1.0)
    visit_size: np.ndarray = saved_array((MAX_VISITS,), np.int64, low=0, high=PICTURE_BYTES)
    visit_jpeg: np.ndarray = saved_array((MAX_VISITS, PICTURE_BYTES), np.uint8)
    kind: np.ndarray = saved_array((MAX_KINDS,), np.int64, fill=-1, low=-1)
    kind_frame: np.ndarray = saved_array((MAX_KINDS,), np.int64, low=0)
    kind_t_ns: np.ndarray = saved_array((MAX_KINDS,), np.int64, low=0)
    kind_box: np.ndarray = saved_array((MAX_KINDS, 4), np.float64, low=0.0, high=1.0)
    kind_size: np.ndarray = saved_array((MAX_KINDS,), np.int64, low=0, high=PICTURE_BYTES)
    kind_jpeg: np.ndarray = saved_array((MAX_KINDS, PICTURE_BYTES), np.uint8)
    shown: np.ndarray = saved_array((MAX_KINDS,), np.int64, low=0)
    times: np.ndarray = saved_array((MAX_KINDS, TIMES), np.int64, fill=-1, low=-1)


@dataclass(frozen=True, slots=True)
class PicturedKind:
    """A kind of visits as it is told. times: ends of its newest visits, stream time. frame, t_ns, box: of `jpeg`."""

    kind: Kind
    times: np.ndarray
    frame: int
    t_ns: int
    box: Box
    jpeg: bytes


class KindPictures(Recorded):
    """Keeps one picture a kind: of its first visit, and of a later one each time that its visits have doubled."""

    _where = "pictures of kinds"

    def __init__(self) -> None:
        self._held = _Held()
        self._told: dict[int, int] = {}  # visits of each kind when it was told; not part of what was learnt

    def update(
        self, frame: Frame, sightings: Sequence[Sighting], over: Sequence[Over], grid_shape: tuple[int, int]
    ) -> None:
        """Take one scored frame: who is seen whole in it, and which visits it has ended."""
        for sighting in sightings:
            if sighting.visit >= 0 and sighting.whole:
                self._take(frame, sighting, grid_shape)
        for visit in over:
            self._end(visit)

    def _take(self, frame: Frame, sighting: Sighting, grid_shape: tuple[int, int]) -> None:
        """Keep the frame as a visit's picture where it shows it more strongly than the one kept."""
        held = self._held
        (rows,) = np.nonzero(held.visit == sighting.visit)
        if len(rows) and sighting.level < LARGER * held.visit_level[rows[0]]:
            return
        if len(rows):
            row = int(rows[0])
        else:  # where all are taken, the oldest is of a visit that novelty has given up
            free = np.flatnonzero(held.visit < 0)
            row = int(free[0]) if len(free) else int(held.visit.argmin())
        box = _around(sighting.box, grid_shape)
        jpeg = encode_within(scaled(_cut(frame.colour, box), PICTURE_PX), PICTURE_BYTES)
        held.visit[row], held.visit_level[row] = sighting.visit, sighting.level
        held.visit_frame[row], held.visit_t_ns[row], held.visit_box[row] = frame.sequence, max(frame.t_ns, 0), box
        held.visit_size[row] = len(jpeg)
        held.visit_jpeg[row, : len(jpeg)] = np.frombuffer(jpeg, np.uint8)

    def _end(self, visit: Over) -> None:
        """Count a visit to its kind, and give the kind its picture where it is time for one."""
        held = self._held
        row = int(found[0]) if len(found := np.flatnonzero(held.visit == visit.number)) else -1
        if visit.kind >= 0:
            place = self._place_of(visit.kind)
            held.times[place, :-1] = held.times[place, 1:]
            held.times[place, -1] = visit.seen_ns
            held.shown[place] += 1
            n = int(held.shown[place])
            if row >= 0 and held.visit_size[row] and (not held.kind_size[place] or n & (n - 1) == 0):
                for name in ("frame", "t_ns", "box", "size", "jpeg"):
                    getattr(held, f"kind_{name}")[place] = getattr(held, f"visit_{name}")[row]
        if row >= 0:
            held.visit[row] = -1

    def _place_of(self, kind: int) -> int:
        """Return the row of a kind; of a new one a free row, or that of the kind that came longest ago."""
        held = self._held
        if len(found := np.flatnonzero(held.kind == kind)):
            return int(found[0])
        free = np.flatnonzero(held.kind < 0)
        place = int(free[0]) if len(free) else int(held.times[:, -1].argmin())
        held.kind[place], held.kind_size[place], held.shown[place], held.times[place] = kind, 0, 0, -1
        return place

    def tell(self, kinds: Sequence[Kind], *, at_once: bool) -> tuple[list[PicturedKind], list[int]]:
        """Return the kinds that are to be told, those with a picture alone, and ids that are remembered no more.

        at_once : tell whatever came since; else a kind is told again when twice as many came, or TOLD_AT_LEAST more
        """
        known = {kind.id for kind in kinds}
        gone = sorted(set(self._told) - known)
        for number in gone:
            del self._told[number]
        self._held.kind[~np.isin(self._held.kind, list(known))] = -1
        due = [kind for kind in kinds if self._is_due(kind, at_once)]
        told = [pictured for kind in due if (pictured := self._pictured(kind)) is not None]
        self._told |= {one.kind.id: one.kind.count for one in told}
        return told, gone

    def forget(self) -> None:
        """Tell everything again."""
        self._told = {}

    def _is_due(self, kind: Kind, at_once: bool) -> bool:
        before = self._told.get(kind.id, 0)
        return kind.count > before if at_once else kind.count >= min(2 * before, before + TOLD_AT_LEAST) + (not before)

    def _pictured(self, kind: Kind) -> PicturedKind | None:
        held = self._held
        found = np.flatnonzero(held.kind == kind.id)
        if not len(found) or not held.kind_size[found[0]]:
            return None
        row = int(found[0])
        times = held.times[row]
        x0, y0, x1, y1 = (float(value) for value in held.kind_box[row])
        jpeg = held.kind_jpeg[row, : held.kind_size[row]].tobytes()
        frame, t_ns = int(held.kind_frame[row]), int(held.kind_t_ns[row])
        return PicturedKind(kind, times[times >= 0].copy(), frame, t_ns, (x0, y0, x1, y1), jpeg)

    def _record(self) -> Any:
        return self._held

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes of all pictures and times."""
        return {"pictures of kinds": record_bytes(self._held)}


def _around(box: Box, grid_shape: tuple[int, int]) -> Box:
    """Return what is shown of a thing: a box in patches (top, left, bottom, right) with what is beside, as shares."""
    (top, left, bottom, right), (rows, columns) = box, grid_shape
    beside = BESIDE * max(bottom - top, right - left)
    x0, x1 = ((left - beside) / columns, (right + beside) / columns)
    y0, y1 = ((top - beside) / rows, (bottom + beside) / rows)
    return max(x0, 0.0), max(y0, 0.0), min(x1, 1.0), min(y1, 1.0)


def _cut(colour: np.ndarray, box: Box) -> np.ndarray:
    """Return a box (shares) of a picture; all of it where patches are wider than that."""
    height, width = colour.shape[:2]
    x0, y0 = int(box[0] * width), int(box[1] * height)
    return colour[y0 : max(int(np.ceil(box[3] * height)), y0 + 1), x0 : max(int(np.ceil(box[2] * width)), x0 + 1)]
