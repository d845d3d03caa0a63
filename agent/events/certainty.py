"""Whether the agent may be relied on, and if not, why: while it learns, after a start that was busy, in odd weather.

Called by agent/pipeline/pipeline.py with every scored frame. It changes nothing that is judged or told: it says how far
to believe it.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from stillwatch.base import MOVING, CameraRule, Recorded, record_bytes, saved, saved_array
from stillwatch.events.rules import (
    BUSY_LOOKS,
    CHANGED_CELLS,
    CHANGED_LEVELS,
    ENOUGH_VISITS,
    LONGEST_UNSURE_S,
    LOOK_CELLS,
    LOOK_S,
    NS,
    UNSURE_S,
    WEATHER_S,
)
from stillwatch.novelty import Score


class Unsure(StrEnum):
    """Why what is told, or not told, is not to be relied on yet."""

    SURE = ""
    LEARNING = "learning"  # nothing is judged
    BUSY_START = "busy_start"  # what moved in the learning seconds may pass for usual
    WEATHER = "weather"  # nearly the whole picture looks otherwise: who comes is hardly judged


@dataclass
class _Start:
    """Looks while learning, those of them that differed from the one before, its time and picture; what is believed.

    t_ns: -1 before the first look. why: place in `Unsure` of what was told last. watched_s, visits: known by then.
    in_weather: believed; turned_ns: stream time since which all frames say otherwise, -1 where the last one agrees.
    """

    looks: int = saved(0, low=0)
    moving: int = saved(0, low=0)
    t_ns: int = saved(-1, low=-1)
    why: Unsure = saved(Unsure.LEARNING)
    watched_s: float = saved(0.0, low=0.0)
    visits: int = saved(-1, low=-1)
    in_weather: bool = saved(False)
    turned_ns: int = saved(-1, low=-1)
    last: np.ndarray = saved_array(LOOK_CELLS, np.int64, low=0, high=255)


class Certainty(Recorded):
    """Looks at the learning frames for what moves, and says when enough was seen since.

    A start is busy where in BUSY_LOOKS of the looks, LOOK_S apart, something had moved since the one before. Then what
    was seen at the start is a large part of what is known, for UNSURE_S and until ENOUGH_VISITS are known. Under a
    camera that moves, everything does: it is sure as soon as it scores.
    """

    _where = "certainty"

    def __init__(self) -> None:
        self._start = _Start()

    @property
    def why(self) -> Unsure:
        """Why it is not to be relied on yet; SURE where it is."""
        return self._start.why

    @property
    def busy(self) -> float:
        """Share of the looks at the start in which something moved."""
        return self._start.moving / max(self._start.looks, 1)

    @property
    def text(self) -> str:
        """What that means, in one line for people; empty where it is sure."""
        if self.why is Unsure.LEARNING:
            return "learning: nothing is judged yet"
        if self.why is Unsure.SURE:
            return ""
        if self.why is Unsure.WEATHER:
            return (
                "weather, light or camera: nearly the whole picture looks otherwise, what is new in it is hardly judged"
            )
        return (
            f"learning, busy start: something moved in {self.busy:.0%} of the looks at the first frames, so what "
            f"passed then may count as usual until {UNSURE_S:.0f} s are judged and {ENOUGH_VISITS} visits known"
        )

    def update(self, grey: np.ndarray, score: Score, rule: CameraRule) -> str:
        """Take one accepted frame, (height, width) uint8; return what to say where a busy start begins or ends."""
        start, before = self._start, self._start.why
        if score.learning and before is Unsure.LEARNING:
            self._look(grey, score.t_ns)
            return ""
        start.watched_s = score.precedents.watched_s
        start.visits = max(score.precedents.visits, start.visits)
        known = start.watched_s >= UNSURE_S and start.visits >= ENOUGH_VISITS
        is_known = known or start.watched_s >= LONGEST_UNSURE_S or rule == MOVING
        self._look_for_weather(score)
        start.why = Unsure.WEATHER if start.in_weather else Unsure.SURE
        if not is_known and self.busy >= BUSY_LOOKS:
            start.why = Unsure.BUSY_START
        if start.why is before or Unsure.BUSY_START not in (start.why, before):
            return ""
        if start.why is Unsure.BUSY_START:
            return self.text
        return f"sure from here on: {start.watched_s:.0f} s judged, {max(start.visits, 0)} visits known"

    def _look_for_weather(self, score: Score) -> None:
        """Believe in weather, or in its end, once all frames of WEATHER_S said so."""
        start = self._start
        is_seen = not score.was_judged
        if is_seen == start.in_weather:
            start.turned_ns = -1
        elif start.turned_ns < 0:
            start.turned_ns = score.t_ns
        elif score.t_ns - start.turned_ns >= WEATHER_S * NS:
            start.in_weather, start.turned_ns = is_seen, -1

    def _look(self, grey: np.ndarray, t_ns: int) -> None:
        """Compare a frame with the last look, where that is long enough ago."""
        start = self._start
        if start.t_ns >= 0 and t_ns - start.t_ns < LOOK_S * NS:
            return
        cells = _cells(grey)
        if start.t_ns >= 0:
            changed = int(np.count_nonzero(np.abs(cells - start.last) >= CHANGED_LEVELS))
            start.looks, start.moving = start.looks + 1, start.moving + (changed >= CHANGED_CELLS)
        start.last[:], start.t_ns = cells, t_ns

    def _record(self) -> Any:
        return self._start

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes of the last look and its numbers."""
        return {"certainty": record_bytes(self._start)}


def _cells(grey: np.ndarray) -> np.ndarray:
    """Return the mean grey of each cell of a (height, width) uint8 picture, LOOK_CELLS int64, rounded down."""
    ends = [np.arange(n) * side // n for n, side in zip(LOOK_CELLS, grey.shape, strict=True)]
    sums = np.add.reduceat(np.add.reduceat(grey.astype(np.int64), ends[0], axis=0), ends[1], axis=1)
    sizes = [np.maximum(np.diff(np.append(end, side)), 1) for end, side in zip(ends, grey.shape, strict=True)]
    return np.asarray(sums // np.outer(*sizes), np.int64)
