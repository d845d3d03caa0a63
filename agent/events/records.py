"""What is told of an event, and its highest moment.

Made by agent/events/life.py, read by agent/pipeline/summaries.py. It must not decide when anything is told.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from stillwatch.base import Array, SnapshotError, State, check_arrays, split_off, with_prefix
from stillwatch.events.rules import RAISED_SEVERITY, SEVERITY_PER_DECADE
from stillwatch.novelty import Precedents, Score
from stillwatch.transport.wire import EventKind

Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class EventRecord:
    """One message about an event.

    id: stable, never used again. phase: new, update,
    end. severity: 0 to 1, from the rarity at the peak. peak, rarity: score and "one frame in N" at the peak.
    component: id of the nearest known component of the patch mixture, or -1.
    history: rarities of the last scored frames, oldest first, (HISTORY,) float32.
    topic: id of the topic that makes the view unusual, or -1. precedents: what came before it, in counts.
    """

    id: int
    kind: EventKind
    phase: str
    severity: float
    start_sequence: int
    start_t_ns: int
    duration_s: float
    peak: float
    rarity: float
    component: int
    history: np.ndarray
    topic: int = -1
    precedents: Precedents = Precedents()


@dataclass(frozen=True, slots=True)
class Peak:
    """The most novel frame of an event so far; `box` is that of its strongest region, as shares of the frame."""

    value: float = 0.0
    rarity: float = 1.0
    component: int = -1
    box: Box | None = None
    precedents: Precedents = Precedents()

    def higher(self, score: Score) -> "Peak":
        """Return the peak after one more frame."""
        if score.value <= self.value and (self.box is not None or not score.boxes):
            return replace(self, precedents=self.precedents.or_known(score.precedents))
        box = score.boxes[0] if score.boxes else None
        return Peak(score.value, score.rarity, score.component, box, score.precedents.or_known(self.precedents))

    def state(self) -> State:
        """Return the peak as arrays; the box is NaN where there is none."""
        return {
            "value": np.array(self.value, np.float64),
            "rarity": np.array(self.rarity, np.float64),
            "component": np.array(self.component, np.int64),
            "box": np.array(self.box if self.box is not None else [math.nan] * 4, np.float64),
            **with_prefix("precedents", self.precedents.state()),
        }

    @classmethod
    def from_state(cls, state: State, where: str) -> "Peak":
        """Return the peak that was saved; SnapshotError where the state is not one."""
        theirs, own = split_off("precedents", state)
        precedents = Precedents.from_state(theirs, where)
        check_arrays(
            own,
            {
                "value": Array(np.float64, ()),
                "rarity": Array(np.float64, (), low=1.0),
                "component": Array(np.int64, (), low=-1),
                "box": Array(np.float64, (4,), low=0.0, high=1.0, nan=True),
            },
            where,
        )
        x0, y0, x1, y1 = box = tuple(float(value) for value in state["box"])
        unknown = [math.isnan(value) for value in box]
        if any(unknown) != all(unknown):
            raise SnapshotError(f"{where}: box {box} is half known")
        known = None if any(unknown) else (x0, y0, x1, y1)
        return cls(float(state["value"]), float(state["rarity"]), int(state["component"]), known, precedents)


def severity_of(rarity: float, raised_at: float) -> float:
    """Return 0 to 1: 0.2 where an alert is just raised, 1 from ten thousand times rarer on, by the logarithm."""
    if rarity <= raised_at:
        return RAISED_SEVERITY * max(math.log(max(rarity, 1.0)), 0.0) / max(math.log(raised_at), 1e-9)
    return min(RAISED_SEVERITY + SEVERITY_PER_DECADE * math.log10(rarity / raised_at), 1.0)


def overlap(a: Sequence[float] | np.ndarray, b: Sequence[float] | np.ndarray) -> float:
    """Return the area that two boxes share, as a share of the smaller one."""
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0.0 or height <= 0.0:
        return 0.0
    smaller = min((a[2] - a[0]) * (a[3] - a[1]), (b[2] - b[0]) * (b[3] - b[1]))
    return float(width * height / smaller) if smaller > 0.0 else 0.0
