"""Collects the scores of a second, so that a live plane pays one header a second and not one a frame.

Called by agent/pipeline/summaries.py. Counted in stream time: a replay makes the same batches.
"""

from collections.abc import Callable, Iterator
from typing import Any

from stillwatch.transport.wire import messages as m
from stillwatch.transport.wire import scores_message

SPAN_NS = 1_000_000_000
MOST_FRAMES = 128
LONGEST_NS = 3_000_000_000  # between the first and the last: what the offsets of a batch can say


class ScoreBatch:
    """The scores that wait. `head` makes the header of a batch whose last frame has these times and this number."""

    def __init__(self, head: Callable[..., dict[str, Any]]):
        self._head = head
        self._waiting: list[m.Score] = []
        self._first = 0  # scores sent before those that wait
        self._before_ns: int | None = None  # stream time of the score before the newest

    def add(self, score: m.Score) -> Iterator[m.Scores]:
        """Take a score; yield the batch where the next one would come over a second after the first."""
        if self._waiting and not self._waiting[-1].t_ns <= score.t_ns <= self._waiting[0].t_ns + LONGEST_NS:
            yield from self.flush()  # time has begun anew, or stood still
        self._waiting.append(score)
        step = 0 if self._before_ns is None else score.t_ns - self._before_ns  # that the next one is expected after
        self._before_ns = score.t_ns
        if score.t_ns - self._waiting[0].t_ns + step >= SPAN_NS or len(self._waiting) >= MOST_FRAMES:
            yield from self.flush()

    def flush(self) -> Iterator[m.Scores]:
        """Yield what waits, if anything does."""
        if self._waiting:
            last = self._waiting[-1]
            header = self._head(
                t_ns=last.t_ns, mono_ns=last.mono_ns, wall_ns=last.wall_ns, source_ns=last.source_ns, frame=last.frame
            )
            yield scores_message(self._first, self._waiting, header)
            self._first += len(self._waiting)
            self._waiting = []
