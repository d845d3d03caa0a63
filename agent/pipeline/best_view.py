"""Keeps the one frame that shows the open event best: its picture, its outlines and its time belong together.

Called by agent/pipeline/pipeline.py with every scored frame. It must not decide when anything is told.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import cv2
import numpy as np

from stillwatch.base import (
    Array,
    Commit,
    Frame,
    Restorable,
    SnapshotError,
    State,
    check_arrays,
    with_prefix,
    without_prefix,
)
from stillwatch.contents import NO_TOPIC, Contents
from stillwatch.describing import encode_within, scaled
from stillwatch.events import EventRecord
from stillwatch.novelty import Region, Score
from stillwatch.settings import ExemplarsConfig
from stillwatch.transport.wire import EventKind

MAX_BOXES = 5  # things outlined: more are no places to look at
LEAST_SHARE = 0.1  # of the main thing's weight: less is a blade of grass that moved along
MOST_PICTURES = 3  # of one event; the last is kept for its end
BETTER = 1.25  # times as heavy or as sharp as the picture told before: less is not worth another one
AS_LARGE = 0.8  # of the heaviest so far: among frames that show the thing so large, the sharpest is kept

NOTHING, NOBODY = np.zeros((0, 0), np.uint8), np.zeros(0, np.int64)  # of a frame whose contents are not known

Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Thing:
    """Regions that belong together. box: as shares of the frame; centre: x, y, by weight; weight: their sum."""

    box: Box
    centre: tuple[float, float]
    weight: float


@dataclass(frozen=True, slots=True)
class View:
    """What one frame shows of an event. boxes: the main one first; position: its centre; jpeg: may be empty.

    segments : ndarray of shape (rows, columns), uint8: places in `topics` over the whole frame, NO_TOPIC where none is
    topics : ndarray of shape (K,), int64: ids
    """

    sequence: int
    t_ns: int
    boxes: tuple[Box, ...]
    position: tuple[float, float] | None
    jpeg: bytes
    segments: np.ndarray = field(compare=False)
    topics: np.ndarray = field(compare=False)


def things_of(regions: Sequence[Region], reach: tuple[float, float]) -> list[Thing]:
    """Return regions merged where their boxes are at most `reach` (x, y, shares) apart, the heaviest first.

    At most MAX_BOXES, none lighter than LEAST_SHARE of the first.
    """
    things = [Thing(region.box, region.centre, region.weight) for region in regions]
    i = 0
    while i < len(things):
        other = next((k for k in range(i + 1, len(things)) if _near(things[i].box, things[k].box, reach)), -1)
        if other < 0:
            i += 1
        else:
            things[i] = _joined(things[i], things.pop(other))
            i = 0
    things.sort(key=lambda thing: -thing.weight)
    return [thing for thing in things if thing.weight >= LEAST_SHARE * things[0].weight][:MAX_BOXES]


def _near(a: Box, b: Box, reach: tuple[float, float]) -> bool:
    gaps = [max(a[i], b[i]) - min(a[i + 2], b[i + 2]) for i in (0, 1)]
    return all(gap <= limit for gap, limit in zip(gaps, reach, strict=True))


def _joined(a: Thing, b: Thing) -> Thing:
    weight = a.weight + b.weight
    x, y = ((a.weight * p + b.weight * q) / weight for p, q in zip(a.centre, b.centre, strict=True))
    low, high = np.minimum(a.box[:2], b.box[:2]), np.maximum(a.box[2:], b.box[2:])
    return Thing((float(low[0]), float(low[1]), float(high[0]), float(high[1])), (x, y), weight)


class BestView(Restorable):
    """Of the frames of the open event: the sharpest of those that show its main thing nearly as large as any.

    Parameters
    ----------
    config : ExemplarsConfig
        Width and bytes of the pictures of exemplars: those of alerts are twice as wide.
    step_px : int
        Between patches: regions one step apart are one thing.
    """

    def __init__(self, config: ExemplarsConfig, step_px: int):
        self._width_px, self._max_bytes, self._step_px = 2 * config.thumbnail_px, config.thumbnail_bytes, step_px
        self._start = -1  # first frame of the open event, -1 without one
        self._heaviest = self._weight = self._sharpness = 0.0
        self._view: View | None = None
        self._picture = np.zeros((0, 0, 3), np.uint8)
        self._told: View | None = None  # the view whose picture was told last, without it
        self._told_weight = self._told_sharpness = 0.0
        self._n_pictures = 0

    def tell(
        self,
        records: Sequence[EventRecord],
        frame: Frame,
        score: Score | None,
        since: int,
        in_view: Callable[[], Contents | None] = lambda: None,
    ) -> list[View]:
        """Take one frame; return the view that goes with each record.

        Parameters
        ----------
        records : sequence of EventRecord
            What is told now.
        frame, score : Frame, Score or None
            None where the gate refused the frame: it shows nothing.
        since : int
            First frame of the event that is open or about to be; -1 where there is none.
        in_view : callable
            Returns what is in view in the frame, None where that is not known; asked for frames alone that are shown.
        """
        ended = [self._best(self._view, record) if self._view and self._closes(record) else None for record in records]
        if since != self._start:
            self._begin(since)
        if since >= 0 and score is not None and score.regions:
            self._look(frame, score, in_view)
        return [
            self._view_for(record, frame, score, in_view) if view is None else view
            for view, record in zip(ended, records, strict=True)
        ]

    def _closes(self, record: EventRecord) -> bool:
        return record.phase == "end" and record.kind is EventKind.NOVEL and record.start_sequence == self._start

    def _view_for(
        self, record: EventRecord, frame: Frame, score: Score | None, in_view: Callable[[], Contents | None]
    ) -> View:
        if record.kind is EventKind.NOVEL and record.start_sequence == self._start and self._view is not None:
            return self._best(self._view, record)
        things = things_of(score.regions if score is not None else [], self._reach(frame))
        is_new = record.phase == "new"  # later ones look alike: what changes is kept as the view
        jpeg = encode_within(scaled(frame.colour, self._width_px), self._max_bytes) if is_new else b""
        return _view(frame, things, jpeg, in_view())

    def _best(self, view: View, record: EventRecord) -> View:
        """Return the kept view with its picture where that is news, else the one told before: boxes are of pictures."""
        if self._told is not None and not self._is_news(view, record):
            return self._told
        self._told, self._told_weight, self._told_sharpness = view, self._weight, self._sharpness
        self._n_pictures += 1
        return replace(view, jpeg=encode_within(self._picture, self._max_bytes))

    def _is_news(self, view: View, record: EventRecord) -> bool:
        """Return whether the kept view is worth another picture."""
        assert self._told is not None
        if record.phase == "new":
            return True
        room = MOST_PICTURES - (record.phase == "update")
        is_better = self._weight >= BETTER * self._told_weight or self._sharpness >= BETTER * max(
            self._told_sharpness, 1e-9
        )
        return view.sequence != self._told.sequence and self._n_pictures < room and is_better

    def _begin(self, since: int) -> None:
        self._start, self._heaviest, self._weight, self._sharpness = since, 0.0, 0.0, 0.0
        self._view, self._picture = None, np.zeros((0, 0, 3), np.uint8)
        self._told, self._told_weight, self._told_sharpness, self._n_pictures = None, 0.0, 0.0, 0

    def _look(self, frame: Frame, score: Score, in_view: Callable[[], Contents | None]) -> None:
        """Keep the frame where it shows the event better than the one kept."""
        things = things_of(score.regions, self._reach(frame))
        weight = things[0].weight
        self._heaviest = max(self._heaviest, weight)
        if weight < AS_LARGE * self._heaviest:
            return
        sharpness = sharpness_of(frame.grey, things[0].box)
        if self._weight >= AS_LARGE * self._heaviest and sharpness <= self._sharpness:
            return
        self._weight, self._sharpness = weight, sharpness
        self._view, self._picture = _view(frame, things, b"", in_view()), scaled(frame.colour, self._width_px).copy()

    def _reach(self, frame: Frame) -> tuple[float, float]:
        height, width = frame.grey.shape
        return self._step_px / width, self._step_px / height

    # -- state -----------------------------------------------------------------------------------------------

    def state(self) -> State:
        """Return the frame that is kept and the one told, as arrays; no boxes and no pixels where there is none."""
        weights = [self._heaviest, self._weight, self._sharpness, self._told_weight, self._told_sharpness]
        return {
            "numbers": np.array(weights, np.float64),
            "start": np.array(self._start, np.int64),
            "pictures": np.array(self._n_pictures, np.int64),
            "picture": self._picture.copy(),
            **with_prefix("kept", _arrays_of(self._view)),
            **with_prefix("told", _arrays_of(self._told)),
        }

    def prepare(self, state: State) -> Commit:
        """Validate `state` and return its commit; SnapshotError, and no change, where it does not fit."""
        wanted = {
            "numbers": Array(np.float64, (5,), low=0.0),
            "start": Array(np.int64, (), low=-1),
            "pictures": Array(np.int64, (), low=0),
            "picture": Array(np.uint8, (None, None, 3)),
        }
        wanted |= {f"{view}.{name}": array for view in ("kept", "told") for name, array in _VIEW.items()}
        check_arrays(state, wanted, "view of the event")
        picture = np.array(state["picture"])
        if picture.shape[1] > self._width_px:
            raise SnapshotError(
                f"view of the event: picture is {picture.shape[1]} pixels wide, must be at most {self._width_px}"
            )
        kept, told = (_view_of(without_prefix(name, state)) for name in ("kept", "told"))
        if kept is not None and not picture.size:
            raise SnapshotError(f"view of the event: no picture of frame {kept.sequence}")
        heaviest, weight, sharpness, told_weight, told_sharpness = (float(value) for value in state["numbers"])
        start, n_pictures = int(state["start"]), int(state["pictures"])

        def commit() -> None:
            self._heaviest, self._weight, self._sharpness = heaviest, weight, sharpness
            self._start, self._view, self._picture = start, kept, picture
            self._told, self._told_weight, self._told_sharpness = told, told_weight, told_sharpness
            self._n_pictures = n_pictures

        return commit

    def memory_bytes(self) -> dict[str, int]:
        """Return the most that the picture takes: square at worst, as cameras go."""
        return {"view of the event": 3 * self._width_px**2}


# A saved view: a sequence of -1 where there is none, a position that is not a number where it is not known.
_VIEW = {
    "frame": Array(np.int64, (2,), low=-1),
    "boxes": Array(np.float64, (None, 4), low=0.0, high=1.0),
    "position": Array(np.float64, (2,), low=0.0, high=1.0, nan=True),
    "segments": Array(np.uint8, (None, None)),
    "topics": Array(np.int64, (None,), low=0),
}


def _arrays_of(view: View | None) -> State:
    position = (np.nan, np.nan) if view is None or view.position is None else view.position
    return {
        "frame": np.array([-1, 0] if view is None else [view.sequence, view.t_ns], np.int64),
        "boxes": np.array([] if view is None else view.boxes, np.float64).reshape(-1, 4),
        "position": np.array(position, np.float64),
        "segments": np.array(NOTHING if view is None else view.segments),
        "topics": np.array(NOBODY if view is None else view.topics),
    }


def _view_of(state: State) -> View | None:
    """Return a saved view, None where there is none; SnapshotError where it cannot be."""
    if len(state["boxes"]) > MAX_BOXES:
        raise SnapshotError(f"view of the event: {len(state['boxes'])} boxes, must be at most {MAX_BOXES}")
    sequence, t_ns = (int(value) for value in state["frame"])
    x, y = (float(value) for value in state["position"])
    if np.isnan(x) != np.isnan(y):
        raise SnapshotError(f"view of the event: position ({x}, {y}) is half known")
    boxes = tuple((float(a), float(b), float(c), float(d)) for a, b, c, d in state["boxes"])
    shown = np.array(state["segments"]), np.array(state["topics"])
    return View(sequence, t_ns, boxes, None if np.isnan(x) else (x, y), b"", *shown) if sequence >= 0 else None


def _view(frame: Frame, things: list[Thing], jpeg: bytes, contents: Contents | None) -> View:
    position = things[0].centre if things else None
    segments, topics = NOTHING, NOBODY
    if contents is not None:
        segments = np.where(contents.labels < 0, NO_TOPIC, contents.labels).astype(np.uint8)
        topics = contents.ids
    return View(frame.sequence, frame.t_ns, tuple(thing.box for thing in things), position, jpeg, segments, topics)


def sharpness_of(grey: np.ndarray, box: Box) -> float:
    """Return the mean square of the Laplacian within a box of a uint8 picture: motion and focus lower it alike.

    Exact whatever the machine: the Laplacian of bytes is of whole numbers.
    """
    height, width = grey.shape
    x0, y0 = int(box[0] * width), int(box[1] * height)
    x1, y1 = max(int(np.ceil(box[2] * width)), x0 + 1), max(int(np.ceil(box[3] * height)), y0 + 1)
    edges = cv2.Laplacian(np.ascontiguousarray(grey[y0:y1, x0:x1]), cv2.CV_16S).astype(np.int64)
    return float(np.square(edges).sum() / edges.size) if edges.size else 0.0
