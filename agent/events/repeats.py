"""Events that were there before: told twice, then counted. A hedge that flickers, a beam that sweeps, a bus.

Called by agent/events/life.py with every rare frame of an event. It must not judge frames: what is novel in one
stays so.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from stillwatch.base import Recorded, record_bytes, saved, saved_array
from stillwatch.events.news import is_news
from stillwatch.events.rules import (
    EVENT_AXES,
    EVENT_BLOCKS,
    EVENT_STATES,
    GROWN,
    NS,
    ONE_STATE,
    OTHER_S,
    SAME_CHROMA,
    SAME_LAYOUT,
    SAME_LIGHT,
    SAME_LOOK,
    STEADY_STATE,
    UNSETTLED_S,
)
from stillwatch.novelty import Score, block_sums
from stillwatch.settings import EventsConfig

_N_BLOCKS = EVENT_BLOCKS * EVENT_BLOCKS


@dataclass(frozen=True, slots=True)
class Sign:
    """What an event looks like in one frame.

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
class _States:
    """What events looked like, in columns, and the open event.

    layout, look, colour: of the first frame that looked so. count: events that did, 0 in a free row; seen_ns: when the
    last one did; longest_ns: longest time between two, 0 after the first; lasted_ns: of the longest of them. counted:
    the open event is one of them. usual: it began as others did and is not news. within_ns: the longest of those;
    other_ns: since when it looks like none of them, -1 while it does.
    """

    layout: np.ndarray = saved_array((EVENT_STATES, _N_BLOCKS), np.float32)
    look: np.ndarray = saved_array((EVENT_STATES, EVENT_AXES), np.float32)
    colour: np.ndarray = saved_array((EVENT_STATES, 3), np.float32)
    count: np.ndarray = saved_array((EVENT_STATES,), np.int64, low=0)
    seen_ns: np.ndarray = saved_array((EVENT_STATES,), np.int64, low=0)
    longest_ns: np.ndarray = saved_array((EVENT_STATES,), np.int64, low=0)
    lasted_ns: np.ndarray = saved_array((EVENT_STATES,), np.int64, low=0)
    counted: np.ndarray = saved_array((EVENT_STATES,), np.bool_)
    usual: bool = saved(False)
    within_ns: int = saved(0, low=0)
    other_ns: int = saved(-1, low=-1)


class Repeats(Recorded):
    """Remembers where in the picture events were novel and what was novel there, frame by frame, and counts them.

    An event that begins as one looked before, in any of its frames, is the same again: it is told a second time, then
    counted, unless it was away for longer than ever. A spell of the same weather begins anywhere in its course. It is
    told after all where it lasts longer than those before by GROWN, and where it looks like none of them for OTHER_S:
    somebody came into it. In the first UNSETTLED_S of watching everything is told: who comes every few seconds
    cannot be told from news yet. `tell` = "every" has none of it, "first_of_kind" counts all but the first.

    Parameters
    ----------
    config : EventsConfig
    """

    _where = "repeats"

    def __init__(self, config: EventsConfig):
        self._tell = config.tell
        self._states = _States()

    def see(self, score: Score, t_ns: int) -> None:
        """Take the next rare frame of an event, the first one if none is open."""
        states, sign = self._states, sign_of(score)
        if sign is None:
            return
        apart = self._apart(sign)
        before = (apart <= 1.0) & (states.count > states.counted)
        if before.any():
            if not states.counted.any():  # it begins
                states.usual = self._is_counted(before, t_ns, score.precedents.watched_s)
                states.within_ns = int(states.lasted_ns[before].max())
            states.other_ns = -1
        elif states.other_ns < 0:
            states.other_ns = t_ns
        self._note(sign, apart, t_ns)

    def _is_counted(self, before: np.ndarray, t_ns: int, watched_s: float) -> bool:
        """Return whether an event that begins as others looked is counted, by how long there was none.

        What looks a little other each time, as rain does, has many rows: the times between two lie between them, too.
        """
        states = self._states
        if watched_s < UNSETTLED_S:
            return False
        if self._tell == "first_of_kind":
            return True
        seen_ns = np.sort(states.seen_ns[before])
        longest_ns = max(int(states.longest_ns[before].max()), int(np.diff(seen_ns).max(initial=0)))
        return not is_news(self._tell, t_ns - int(seen_ns[-1]), longest_ns)

    def _note(self, sign: Sign, apart: np.ndarray, t_ns: int) -> None:
        """Count the open event for what it looks like now; what it never looked like takes the least needed row."""
        states = self._states
        row = int(np.argmin(apart))
        if apart[row] > ONE_STATE:
            age_ns = (t_ns - states.seen_ns) / np.clip(states.count, 1, STEADY_STATE)
            row = int(np.argmax(np.where(states.count > 0, age_ns, np.inf)))
            states.layout[row], states.look[row], states.colour[row] = sign.layout, sign.look, sign.colour
            states.count[row] = states.longest_ns[row] = states.lasted_ns[row] = 0
            states.counted[row] = False
        if not states.counted[row]:
            if states.count[row]:
                states.longest_ns[row] = max(states.longest_ns[row], t_ns - states.seen_ns[row])
            states.count[row] += 1
            states.counted[row] = True
        states.seen_ns[row] = max(t_ns, 0)

    def is_usual(self, t_ns: int, lasted_ns: int) -> bool:
        """Return whether the open event, so long by now, is to be counted, not told."""
        states = self._states
        is_other = states.other_ns >= 0 and t_ns - states.other_ns >= OTHER_S * NS
        return states.usual and not is_other and lasted_ns <= max(GROWN * states.within_ns, NS)

    def end(self, lasted_ns: int) -> None:
        """End the open event, so long."""
        states = self._states
        states.lasted_ns[states.counted] = np.maximum(states.lasted_ns[states.counted], lasted_ns)
        states.counted[:] = False
        states.usual, states.within_ns, states.other_ns = False, 0, -1

    def _apart(self, sign: Sign) -> np.ndarray:
        """Return how far a sign is from each state, in units of what is the same; infinity from a free row."""
        states = self._states
        layout = (1.0 - states.layout @ sign.layout) / (1.0 - SAME_LAYOUT)
        length = max(float(np.linalg.norm(sign.look)), 1e-12)
        look = np.linalg.norm(states.look - sign.look, axis=1) / (SAME_LOOK * length)
        colour = np.abs(states.colour - sign.colour)
        light, chroma = colour[:, 0] / SAME_LIGHT, colour[:, 1:].max(axis=1) / SAME_CHROMA
        return np.where(states.count > 0, np.maximum.reduce([layout, look, light, chroma]), np.inf)

    def _record(self) -> Any:
        return self._states

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes of the table."""
        return {"repeats": record_bytes(self._states)}
