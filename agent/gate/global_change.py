"""Sudden global change: a light switched, a day/night filter, a strobe, a camera that was knocked.

Called by agent/gate/gate.py. Tells a switch from an auto-exposure's drift by its suddenness, and where the view
does not stay from a new view by its structure. Reads no clock but the frames' own.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import cv2
import numpy as np

from stillwatch.base import CameraRule, Recorded, record_bytes, saved, saved_array
from stillwatch.gate.measures import THUMB_HEIGHT, THUMB_WIDTH, Measures

NS = 1_000_000_000
SUDDEN_NS = 5 * NS  # frames further apart say nothing about suddenness
CELL_CHANGE = 16.0  # grey levels; an auto-exposure moves by at most 10 in 80 ms (car_overhead)
QUICK_NS = NS // 5  # over longer intervals an exposure drifts further, and more is needed to call it sudden:
SLOW_CHANGE = 48.0  # this much over SLOW_NS and beyond
SLOW_NS = NS
CHANGED_SHARE = 0.7
BACK_SHARE = 0.3  # at most this share still differs: the old picture is back
SAME_STRUCTURE = 0.8  # normalised correlation, best of small shifts; hard cuts between views stay below 0.3
COLOUR_LOST = 0.3  # chroma falls below this share of what it was, or rises by its inverse
LEAST_CHROMA = 4.0
LONGEST_HOLD = 6  # times the stay: a picture that never calms down is then what is normal here
KNOWN_VIEWS = 12  # pictures that were normal once: day and night, lamps on and off, presets, as shadows had them


@dataclass
class _Views:
    """The frame before and the last accepted one, and the change that is held back.

    seen, has_normal: whether there is a frame before, an accepted one. previous, normal: their thumbnails.
    holding: a change is held back. begun_ns, since_ns: when it began, and when the picture last changed in it.
    known, known_chroma: pictures that were normal once, and how colourful; known_turn: number of the change that each
    was last part of, 0 in a free place.
    """

    seen: bool = saved(False)
    has_normal: bool = saved(False)
    holding: bool = saved(False)
    since_ns: int = saved(0, low=0)
    begun_ns: int = saved(0, low=0)
    previous_ns: int = saved(0, low=0)
    previous: np.ndarray = saved_array((THUMB_HEIGHT, THUMB_WIDTH), np.float32, low=0.0, high=255.0)
    normal: np.ndarray = saved_array((THUMB_HEIGHT, THUMB_WIDTH), np.float32, low=0.0, high=255.0)
    previous_chroma: float = saved(0.0, low=0.0, high=255.0)
    normal_chroma: float = saved(0.0, low=0.0, high=255.0)
    known: np.ndarray = saved_array((KNOWN_VIEWS, THUMB_HEIGHT, THUMB_WIDTH), np.uint8)
    known_chroma: np.ndarray = saved_array((KNOWN_VIEWS,), np.float64, low=0.0, high=255.0)
    known_turn: np.ndarray = saved_array((KNOWN_VIEWS,), np.int64, low=0)


class Held(NamedTuple):
    """What became of a frame.

    refused: it belongs to a change that is not yet believed. arrived: with it a change is accepted as the new normal.
    known: and that is a picture which was normal before.
    """

    refused: bool
    arrived: bool
    known: bool


class GlobalChange(Recorded):
    """Hold back frames after a sudden change of the whole picture until it is undone or has come to stay.

    The last KNOWN_VIEWS pictures that came to stay are remembered: lights that go on and off show two.
    """

    _where = "gate: global change"

    def __init__(self, stay_ns: int):
        self._stay_ns = stay_ns
        self._views = _Views()

    def forget(self) -> None:
        """Drop what was seen, for a stream that changed its size or format."""
        views = self._views
        views.seen = views.has_normal = views.holding = False
        views.since_ns = views.begun_ns = views.previous_ns = 0
        views.known_turn[:] = 0

    def update(self, now: Measures, t_ns: int, rule: CameraRule) -> Held:
        """Judge a frame that nothing else is wrong with; call `pass_over` for the others."""
        views = self._views
        sudden = views.seen and self._is_sudden(now, t_ns - views.previous_ns, rule)
        back = views.has_normal and self._is_back(now, rule)
        self._remember(now, t_ns)
        if sudden and not back and views.has_normal:
            views.begun_ns = views.begun_ns if views.holding else t_ns
            views.holding, views.since_ns = True, t_ns
        stayed = t_ns - views.since_ns >= self._stay_ns or t_ns - views.begun_ns >= LONGEST_HOLD * self._stay_ns
        arrived = views.holding and not back and stayed
        views.holding = views.holding and not back and not arrived
        known = arrived and self._note_change(now, rule)
        if not views.holding:
            self._accept(now)
        return Held(views.holding, arrived, known)

    def pass_over(self, now: Measures, t_ns: int) -> None:
        """Take note of a frame refused for another reason: a change only counts as staying while it is seen."""
        self._remember(now, t_ns)
        self._views.since_ns = t_ns

    def _remember(self, now: Measures, t_ns: int) -> None:
        rows, columns = now.thumb.shape
        views = self._views
        views.previous[:rows, :columns] = now.thumb
        views.previous_chroma, views.seen, views.previous_ns = now.chroma, True, t_ns

    def _accept(self, now: Measures) -> None:
        rows, columns = now.thumb.shape
        views = self._views
        views.normal[:rows, :columns] = now.thumb
        views.normal_chroma, views.has_normal = now.chroma, True

    def _is_sudden(self, now: Measures, step_ns: int, rule: CameraRule) -> bool:
        if step_ns > SUDDEN_NS:
            return False
        rows, columns = now.thumb.shape
        previous = self._views.previous[:rows, :columns]
        if self._colour_switched(now.chroma, self._views.previous_chroma):
            return rule.view_stays or self._same_structure(now.thumb, previous)
        slow = min(max(step_ns - QUICK_NS, 0) / (SLOW_NS - QUICK_NS), 1.0)
        limit = CELL_CHANGE + slow * (SLOW_CHANGE - CELL_CHANGE)
        if float((np.abs(now.thumb - previous) > limit).mean()) < CHANGED_SHARE:
            return False
        if rule.view_stays:
            return True
        jump = abs(float(np.median(now.thumb)) - float(np.median(previous)))
        return jump > limit and self._same_structure(now.thumb, previous)

    def _note_change(self, now: Measures, rule: CameraRule) -> bool:
        """Remember the picture that was normal until now and the new one; return whether the latter was known."""
        views, (rows, columns) = self._views, now.thumb.shape
        turn, before = int(views.known_turn.max()) + 1, views.normal[:rows, :columns]
        self._remember_view(before, views.normal_chroma, turn, self._place_of(before, views.normal_chroma, rule))
        place = self._place_of(now.thumb, now.chroma, rule)
        self._remember_view(now.thumb, now.chroma, turn, place)
        return place >= 0

    def _place_of(self, thumb: np.ndarray, chroma: float, rule: CameraRule) -> int:
        """Return which of the remembered pictures this one is, the newest first; -1 where it is none of them."""
        views, (rows, columns) = self._views, thumb.shape
        for place in np.argsort(-views.known_turn, kind="stable"):
            known = views.known[place, :rows, :columns]
            if views.known_turn[place] and self._is_like(thumb, chroma, known, views.known_chroma[place], rule):
                return int(place)
        return -1

    def _remember_view(self, thumb: np.ndarray, chroma: float, turn: int, place: int) -> None:
        """Keep a picture at its place; a new one (-1) takes that of the one that was not normal for longest."""
        views, (rows, columns) = self._views, thumb.shape
        place = int(np.argmin(views.known_turn)) if place < 0 else place
        views.known[place, :rows, :columns] = np.rint(thumb)
        views.known_chroma[place], views.known_turn[place] = chroma, turn

    def _is_back(self, now: Measures, rule: CameraRule) -> bool:
        rows, columns = now.thumb.shape
        normal = self._views.normal[:rows, :columns]
        return self._is_like(now.thumb, now.chroma, normal, self._views.normal_chroma, rule)

    def _is_like(
        self, thumb: np.ndarray, chroma: float, other: np.ndarray, other_chroma: float, rule: CameraRule
    ) -> bool:
        """Say whether one picture is another one again, whoever walks through it."""
        if self._colour_switched(chroma, other_chroma):
            return False
        if rule.view_stays:
            return float((np.abs(thumb - other) > CELL_CHANGE).mean()) <= BACK_SHARE
        return abs(float(np.median(thumb)) - float(np.median(other))) <= CELL_CHANGE

    @staticmethod
    def _colour_switched(chroma: float, before: float) -> bool:
        low, high = min(chroma, before), max(chroma, before)
        return high >= LEAST_CHROMA and low < COLOUR_LOST * high

    @staticmethod
    def _same_structure(thumb: np.ndarray, reference: np.ndarray) -> bool:
        """Say whether the middle of the thumbnail is found in the reference, wherever the camera moved it."""
        rows, columns = thumb.shape
        middle = np.ascontiguousarray(thumb[rows // 5 : rows - rows // 5, columns // 5 : columns - columns // 5])
        if float(middle.std()) < 1.0 or float(reference.std()) < 1.0:
            return False
        found = cv2.matchTemplate(np.ascontiguousarray(reference), middle, cv2.TM_CCOEFF_NORMED)
        return float(found.max()) >= SAME_STRUCTURE

    def _record(self) -> Any:
        return self._views

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes of the two pictures and the numbers."""
        return {"global change": record_bytes(self._views)}
