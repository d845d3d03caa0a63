"""Views that are rare here as a whole: a boulder field where sand is usual, even where every patch of it is known.

Called by agent/events/life.py with what is in view, where that was looked at. It must not look at patches.
"""

from dataclasses import dataclass
from typing import Any

from stillwatch.base import Recorded, record_bytes, saved
from stillwatch.contents import Contents
from stillwatch.settings import EventsConfig


@dataclass
class _Rare:
    """Rare looks in a row, and whether they were told."""

    frames: int = saved(0, low=0)
    told: bool = saved(False)


class UnusualViews(Recorded):
    """Tells of a rare view once, when `min_frames` looks in a row were as rare as an alert must be.

    The next is told after one that is not rare any more, by `clear_rarity`.

    Parameters
    ----------
    config : EventsConfig
    """

    _where = "unusual views"

    def __init__(self, config: EventsConfig):
        self._config = config
        self._rare = _Rare()

    def update(self, contents: Contents, *, in_event: bool) -> bool:
        """Return whether the view that was looked at is to be told; while an event is open, nothing is begun."""
        rare, config = self._rare, self._config
        if contents.rarity < config.clear_rarity:
            rare.frames, rare.told = 0, False
        rare.frames += contents.rarity >= config.raise_rarity
        if rare.told or in_event or rare.frames < config.min_frames:
            return False
        rare.told = True
        return True

    def _record(self) -> Any:
        return self._rare

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes of its numbers."""
        return {"unusual views": record_bytes(self._rare)}
