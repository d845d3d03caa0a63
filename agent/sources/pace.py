"""Holds back frames that come faster than they were taken: a file or a world as a camera would show it.

Called by agent/sources/video.py and agent/sources/synthetic.py. It leaves nothing out.
"""

from stillwatch.base import Clock
from stillwatch.sources.timestamps import NS

LONGEST_WAIT_S = 2.0  # for one frame: an end must not wait for it longer


class Pace:
    """No frame comes earlier than its time stamp says, by a clock that the first frame starts."""

    def __init__(self, clock: Clock):
        self._clock = clock
        self._began: tuple[int, int] | None = None  # monotonic and stream time of the first frame

    def wait_for(self, source_ns: int | None) -> None:
        """Wait until the frame stamped `source_ns` is due; at once where it has no stamp."""
        if source_ns is None:
            return
        now_ns = self._clock.monotonic_ns()
        self._began = self._began or (now_ns, source_ns)
        early_ns = (source_ns - self._began[1]) - (now_ns - self._began[0])
        if early_ns > 0:
            self._clock.sleep(min(early_ns / NS, LONGEST_WAIT_S))
