"""Sudden global change: a light switched, a day/night filter, a strobe, a camera that was knocked.

Called by agent/gate/gate.py. Tells a switch from an auto-exposure's drift by its suddenness, and on a moving camera
from a new view by its structure. Reads no clock but the frames' own.
"""

import cv2
import numpy as np

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


class GlobalChange:
    """Hold back frames after a sudden change of the whole picture until it is undone or has come to stay.

    `update` returns (refused, arrived): refused frames belong to a change that is not yet believed; `arrived` is
    true on the one frame with which a change is accepted as the new normal.
    """

    def __init__(self, stay_ns: int):
        self._stay_ns = stay_ns
        self._previous = np.zeros((THUMB_HEIGHT, THUMB_WIDTH), np.float32)
        self._normal = np.zeros_like(self._previous)  # the last accepted thumbnail
        self._numbers = np.zeros(6, np.int64)  # seen, has_normal, holding, since_ns, previous_ns, begun_ns
        self._chroma = np.zeros(2, np.float64)  # of the previous and the last accepted frame

    def forget(self) -> None:
        """Drop what was seen, for a stream that changed its size or format."""
        self._numbers[:] = 0

    def update(self, now: Measures, t_ns: int, moving: bool | None) -> tuple[bool, bool]:
        """Judge a frame that nothing else is wrong with; call `pass_over` for the others."""
        seen, has_normal, holding, since_ns, previous_ns, begun_ns = (int(value) for value in self._numbers)
        sudden = bool(seen) and self._is_sudden(now, t_ns - previous_ns, moving)
        back = bool(has_normal) and self._is_back(now, moving)
        self._remember(now, t_ns)
        if sudden and not back and has_normal:
            begun_ns = begun_ns if holding else t_ns
            holding, since_ns = 1, t_ns
        stayed = t_ns - since_ns >= self._stay_ns or t_ns - begun_ns >= LONGEST_HOLD * self._stay_ns
        arrived = bool(holding) and not back and stayed
        holding = int(holding and not back and not arrived)
        self._numbers[2:4] = holding, since_ns
        self._numbers[5] = begun_ns
        if not holding:
            self._accept(now)
        return bool(holding), arrived

    def pass_over(self, now: Measures, t_ns: int) -> None:
        """Take note of a frame refused for another reason: a change only counts as staying while it is seen."""
        self._remember(now, t_ns)
        self._numbers[3] = t_ns

    def _remember(self, now: Measures, t_ns: int) -> None:
        rows, columns = now.thumb.shape
        self._previous[:rows, :columns] = now.thumb
        self._chroma[0] = now.chroma
        self._numbers[0], self._numbers[4] = 1, t_ns

    def _accept(self, now: Measures) -> None:
        rows, columns = now.thumb.shape
        self._normal[:rows, :columns] = now.thumb
        self._chroma[1] = now.chroma
        self._numbers[1] = 1

    def _is_sudden(self, now: Measures, step_ns: int, moving: bool | None) -> bool:
        if step_ns > SUDDEN_NS:
            return False
        rows, columns = now.thumb.shape
        previous = self._previous[:rows, :columns]
        if self._colour_switched(now.chroma, float(self._chroma[0])):
            return moving is False or self._same_structure(now.thumb, previous)
        slow = min(max(step_ns - QUICK_NS, 0) / (SLOW_NS - QUICK_NS), 1.0)
        limit = CELL_CHANGE + slow * (SLOW_CHANGE - CELL_CHANGE)
        if float((np.abs(now.thumb - previous) > limit).mean()) < CHANGED_SHARE:
            return False
        if moving is False:
            return True
        jump = abs(float(np.median(now.thumb)) - float(np.median(previous)))
        return jump > limit and self._same_structure(now.thumb, previous)

    def _is_back(self, now: Measures, moving: bool | None) -> bool:
        rows, columns = now.thumb.shape
        normal = self._normal[:rows, :columns]
        if self._colour_switched(now.chroma, float(self._chroma[1])):
            return False
        if moving is False:
            return float((np.abs(now.thumb - normal) > CELL_CHANGE).mean()) <= BACK_SHARE
        return abs(float(np.median(now.thumb)) - float(np.median(normal))) <= CELL_CHANGE

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

    def memory_bytes(self) -> int:
        return self._previous.nbytes + self._normal.nbytes + self._numbers.nbytes + self._chroma.nbytes

    def state(self) -> dict[str, np.ndarray]:
        return {
            "previous": self._previous.copy(),
            "normal": self._normal.copy(),
            "numbers": self._numbers.copy(),
            "chroma": self._chroma.copy(),
        }

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Take over a state that agent/gate/gate.py has checked."""
        self._previous[:], self._normal[:] = state["previous"], state["normal"]
        self._numbers[:], self._chroma[:] = state["numbers"], state["chroma"]
