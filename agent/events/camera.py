"""Which view the camera has, as news: knocked to one that it never had, once; put right, or on a tour, which is none.

Called by agent/events/life.py with every scored frame. It must not look at pictures: which view a frame is of, it is
told.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from stillwatch.base import Recorded, record_bytes, saved, saved_array
from stillwatch.events.rules import NS, ONE_CHANGE_S, TOUR_S, TOUR_VIEWS


class Turn(Enum):
    """What became of the view with a frame: nothing, one that was seen before, one that never was, one of so many that
    the camera must be on a tour.
    """

    NONE = 0
    BACK = 1
    NEW = 2
    TOUR = 3


@dataclass
class _Seen:
    """Number of the view in sight, -1 before the first, the highest so far, and when the whole picture was last told to
    have changed, stream time, -1 before that; turned_ns: of the last turns to new views, the oldest first, -1 before.
    """

    view: int = saved(-1, low=-1)
    highest: int = saved(-1, low=-1)
    told_ns: int = saved(-1, low=-1)
    turned_ns: np.ndarray = saved_array((TOUR_VIEWS,), np.int64, fill=-1, low=-1)


class CameraView(Recorded):
    """Says of each frame whether its view is another than the last one's."""

    _where = "camera view"

    def __init__(self) -> None:
        self._seen = _Seen()

    def update(self, view: int, t_ns: int) -> Turn:
        """Take the number of the view of the frame at stream time `t_ns`."""
        seen, before = self._seen, self._seen.view
        is_new = view > seen.highest
        seen.view, seen.highest = view, max(seen.highest, view)
        if view == before or before < 0:
            return Turn.NONE
        if not is_new:
            return Turn.BACK
        oldest = int(seen.turned_ns[0])
        seen.turned_ns[:-1], seen.turned_ns[-1] = seen.turned_ns[1:], max(t_ns, 0)
        return Turn.TOUR if oldest >= 0 and 0 <= t_ns - oldest < TOUR_S * NS else Turn.NEW

    def tell(self, t_ns: int) -> bool:
        """Note that a change of the whole picture is about to be told; return False where one was just now."""
        before, self._seen.told_ns = self._seen.told_ns, t_ns
        return before < 0 or not 0 <= t_ns - before < ONE_CHANGE_S * NS

    def _record(self) -> Any:
        return self._seen

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes of its numbers."""
        return {"camera view": record_bytes(self._seen)}
