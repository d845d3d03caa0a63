"""Views that are rare here as a whole: a boulder field where sand is usual, even where every patch of it is known.

Called by agent/events/life.py with what is in view, where that was looked at. It must not look at patches.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from stillwatch.base import Recorded, record_bytes, saved, saved_array
from stillwatch.contents import Contents
from stillwatch.events.news import is_news
from stillwatch.events.rules import KNOWN_TOPICS
from stillwatch.settings import EventsConfig


@dataclass
class _Rare:
    """Rare looks in a row, and whether they were judged to be news or not.

    topic: of views that were rare, the one that was most above its usual share, -1 in a free place; seen_ns: stream
    time when that was so last; longest_ns: longest time between two, 0 after the first.
    """

    frames: int = saved(0, low=0)
    told: bool = saved(False)
    topic: np.ndarray = saved_array((KNOWN_TOPICS,), np.int64, fill=-1, low=-1)
    seen_ns: np.ndarray = saved_array((KNOWN_TOPICS,), np.int64, low=0)
    longest_ns: np.ndarray = saved_array((KNOWN_TOPICS,), np.int64, low=0)


class UnusualViews(Recorded):
    """Tells of a rare view once, when `min_frames` looks in a row were as rare as an alert must be.

    The next is told after one that is not rare any more, by `clear_rarity`. Where the camera stands, a view that is
    rare for the same topic as an earlier one is told as returns are: the first time, and then when that was away for
    longer than ever (`tell`). Over ground that a camera passes, it is another place each time.

    Parameters
    ----------
    config : EventsConfig
    """

    _where = "unusual views"

    def __init__(self, config: EventsConfig):
        self._config = config
        self._rare = _Rare()

    def update(self, contents: Contents, t_ns: int, *, in_event: bool, view_stays: bool) -> bool:
        """Return whether the view that was looked at is to be told; while an event is open, nothing is begun."""
        rare, config = self._rare, self._config
        if contents.rarity < config.clear_rarity:
            rare.frames, rare.told = 0, False
        rare.frames += contents.rarity >= config.raise_rarity
        if rare.told or in_event or rare.frames < config.min_frames:
            return False
        rare.told = True
        return self._note(contents.topic, t_ns) or not view_stays

    def _note(self, topic: int, t_ns: int) -> bool:
        """Remember that a view was rare for a topic; return whether that is news."""
        rare = self._rare
        places = np.flatnonzero(rare.topic == topic)
        if not len(places):
            place = int(np.argmin(rare.seen_ns))
            rare.topic[place], rare.seen_ns[place], rare.longest_ns[place] = topic, t_ns, 0
            return True
        place = int(places[0])
        away_ns = t_ns - rare.seen_ns[place]
        news = is_news(self._config.tell, away_ns, rare.longest_ns[place])
        rare.seen_ns[place], rare.longest_ns[place] = t_ns, max(rare.longest_ns[place], away_ns)
        return bool(news)

    def _record(self) -> Any:
        return self._rare

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes of its numbers."""
        return {"unusual views": record_bytes(self._rare)}
