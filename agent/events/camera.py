"""Which view the camera has, as news: knocked to one that it never had, once; and put right, which is none.

Called by agent/events/life.py with every scored frame. It must not look at pictures: which view a frame is of, it is
told.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Any

from stillwatch.base import Recorded, record_bytes, saved
from stillwatch.events.rules import NS, ONE_CHANGE_S


class Turn(Enum):
    """What became of the view with a frame: nothing, one that was seen before, one that never was."""

    NONE = 0
    BACK = 1
    NEW = 2


@dataclass
class _Seen:
    """Number of the view in sight, -1 before the first, the highest so far, and when the whole picture was last told to
    have changed, stream time, -1 before that.
    """

    view: int = saved(-1, low=-1)
    highest: int = saved(-1, low=-1)
    told_ns: int = saved(-1, low=-1)


class CameraView(Recorded):
    """Says of each frame whether its view is another than the last one's."""

    _where = "camera view"

    def __init__(self) -> None:
        self._seen = _Seen()

    def update(self, view: int) -> Turn:
        """Take the number of the next frame's view."""
        seen, before = self._seen, self._seen.view
        is_new = view > seen.highest
        seen.view, seen.highest = view, max(seen.highest, view)
        if view == before or before < 0:
            return Turn.NONE
        return Turn.NEW if is_new else Turn.BACK

    def tell(self, t_ns: int) -> bool:
        """Note that a change of the whole picture is about to be told; return False where one was just now."""
        before, self._seen.told_ns = self._seen.told_ns, t_ns
        return before < 0 or not 0 <= t_ns - before < ONE_CHANGE_S * NS

    def _record(self) -> Any:
        return self._seen

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes of its numbers."""
        return {"camera view": record_bytes(self._seen)}
