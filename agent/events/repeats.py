"""Events that were there before: told some times, then counted. A hedge that flickers, a beam that sweeps, a bus.

Called by agent/events/life.py as an event begins and ends. It must not judge frames: what is novel in one stays so.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from stillwatch.base import Recorded, record_bytes, saved, saved_array
from stillwatch.events.news import is_news
from stillwatch.events.rules import (
    EVENT_AXES,
    EVENT_BLOCKS,
    EVENT_KINDS,
    GROWN,
    HABITUAL,
    NS,
    SAME_CHROMA,
    SAME_LAYOUT,
    SAME_LIGHT,
    SAME_LOOK,
    UNSETTLED_S,
)
from stillwatch.novelty import Score, block_sums
from stillwatch.settings import EventsConfig

_N_BLOCKS = EVENT_BLOCKS * EVENT_BLOCKS


@dataclass(frozen=True, slots=True)
class Sign:
    """What an event looks like as it begins.

    layout : ndarray of shape (EVENT_BLOCKS ** 2,), float64
        Novelty in each block of the picture, of length 1.
    look : ndarray of shape (EVENT_AXES,), float64
        Mean row of what is novel, the first values.
    colour : ndarray of shape (3,), float64
        Mean logarithms of its green, blue over green and red over green.
    """

    layout: np.ndarray
    look: np.ndarray
    colour: np.ndarray


def sign_of(score: Score) -> Sign | None:
    """Return what is novel in a frame looks like; None where nothing is, and under a camera that moves."""
    rows, novelty = score.rows, score.patch_map.astype(np.float64)
    if rows is None or not rows.rule.view_stays or not (novelty > 0.0).any():
        return None
    layout = block_sums(novelty, EVENT_BLOCKS)
    padded = np.zeros(_N_BLOCKS)
    padded[: layout.size] = layout.ravel() / np.linalg.norm(layout)
    weights = novelty.ravel() / novelty.sum()
    look, axes = np.zeros(EVENT_AXES), min(EVENT_AXES, rows.plain.shape[1])
    look[:axes] = weights @ rows.plain[:, :axes]
    return Sign(padded, look, weights @ rows.colours)


@dataclass
class _Kinds:
    """Kinds of events, in columns, and the open event.

    layout, look, colour: running means of their signs. count: events, 0 in a free row. seen_ns: end of the last one;
    longest_ns: longest time between two, 0 after the first. lasted_ns, highest: of the longest and highest one.
    kind: row of the open event's kind, -1 where it has none. usual: it is one of those that are counted.
    """

    layout: np.ndarray = saved_array((EVENT_KINDS, _N_BLOCKS), np.float64)
    look: np.ndarray = saved_array((EVENT_KINDS, EVENT_AXES), np.float64)
    colour: np.ndarray = saved_array((EVENT_KINDS, 3), np.float64)
    count: np.ndarray = saved_array((EVENT_KINDS,), np.int64, low=0)
    seen_ns: np.ndarray = saved_array((EVENT_KINDS,), np.int64, low=0)
    longest_ns: np.ndarray = saved_array((EVENT_KINDS,), np.int64, low=0)
    lasted_ns: np.ndarray = saved_array((EVENT_KINDS,), np.int64, low=0)
    highest: np.ndarray = saved_array((EVENT_KINDS,), np.float64, low=0.0)
    kind: int = saved(-1, low=-1, high=EVENT_KINDS - 1)
    usual: bool = saved(False)


class Repeats(Recorded):
    """Knows kinds of events by where in the picture they begin and what is novel there, and counts them.

    After HABITUAL events of a kind the next is counted, not told, unless the kind was away for longer than ever, or
    the event lasts longer or is more novel than those before by GROWN. In the first UNSETTLED_S of watching everything
    is told: who comes every few seconds cannot be told from news yet. `tell` = "every" has none of it,
    "first_of_kind" counts all but the first.

    Parameters
    ----------
    config : EventsConfig
    """

    _where = "repeats"

    def __init__(self, config: EventsConfig):
        self._tell = config.tell
        self._kinds = _Kinds()

    def begin(self, score: Score, t_ns: int) -> None:
        """Take an event that begins with a frame: find its kind, or make one."""
        kinds, sign = self._kinds, sign_of(score)
        kinds.kind, kinds.usual = -1, False
        if sign is None:
            return
        row = self._like(sign)
        if row < 0:
            row = int(np.argmin(np.where(kinds.count > 0, kinds.seen_ns, -1)))
            kinds.count[row] = kinds.longest_ns[row] = kinds.lasted_ns[row] = 0
            kinds.highest[row] = 0.0
        kinds.kind = row
        away_ns = t_ns - kinds.seen_ns[row]
        kinds.usual = self._is_counted(row, away_ns, score.precedents.watched_s)
        if kinds.count[row]:
            kinds.longest_ns[row] = max(kinds.longest_ns[row], away_ns)
        share = 1.0 / min(kinds.count[row] + 1, HABITUAL)
        for mean, value in ((kinds.layout, sign.layout), (kinds.look, sign.look), (kinds.colour, sign.colour)):
            mean[row] += share * (value - mean[row])

    def _is_counted(self, row: int, away_ns: int, watched_s: float) -> bool:
        """Return whether an event of a kind is counted, by how many there were and how long none was."""
        kinds = self._kinds
        match self._tell:
            case "every":
                return False
            case "first_of_kind":
                return bool(kinds.count[row] >= 1)
            case _:
                known = watched_s >= UNSETTLED_S and kinds.count[row] >= HABITUAL
                return bool(known and not is_news("rare", away_ns, kinds.longest_ns[row]))

    def is_usual(self, lasted_ns: int, peak: float) -> bool:
        """Return whether the open event, so long and so novel by now, is to be counted, not told."""
        kinds, row = self._kinds, self._kinds.kind
        if not kinds.usual:
            return False
        return bool(lasted_ns <= max(GROWN * kinds.lasted_ns[row], NS) and peak <= GROWN * kinds.highest[row])

    def end(self, t_ns: int, lasted_ns: int, peak: float) -> None:
        """Count the open event, which was seen last at a stream time."""
        kinds, row = self._kinds, self._kinds.kind
        if row < 0:
            return
        kinds.count[row] += 1
        kinds.seen_ns[row] = t_ns
        kinds.lasted_ns[row] = max(kinds.lasted_ns[row], lasted_ns)
        kinds.highest[row] = max(kinds.highest[row], peak)
        kinds.kind, kinds.usual = -1, False

    def _like(self, sign: Sign) -> int:
        """Return the row of the kind that an event is most like in layout; -1 where it is like none."""
        kinds = self._kinds
        norms = np.maximum(np.linalg.norm(kinds.layout, axis=1), 1e-12)
        layout = kinds.layout @ sign.layout / norms
        apart = np.abs(kinds.colour - sign.colour)
        like = (kinds.count > 0) & (layout >= SAME_LAYOUT)
        like &= np.linalg.norm(kinds.look - sign.look, axis=1) <= SAME_LOOK * np.linalg.norm(sign.look)
        like &= (apart[:, 0] <= SAME_LIGHT) & (apart[:, 1:].max(axis=1) <= SAME_CHROMA)
        return int(np.argmax(np.where(like, layout, -math.inf))) if like.any() else -1

    def _record(self) -> Any:
        return self._kinds

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes of the table."""
        return {"repeats": record_bytes(self._kinds)}
