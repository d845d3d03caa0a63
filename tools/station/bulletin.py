"""News inside the station: what changed, told to pages and notifications after it is on the disk.

Posted by tools/station/ingest, read by tools/station/page and tools/station/tell. It holds no data, only where to look.
"""

import asyncio
import threading
from collections import deque
from dataclasses import dataclass

KEPT = 4096  # news; who falls behind further looks at everything anew


@dataclass(frozen=True, slots=True)
class News:
    """One change. `kind`: alert, alert_update, picture, scores, agent, act, queue, station; `id`: the alert's, or 0."""

    number: int
    kind: str
    agent: str
    id: int = 0


class Bulletin:
    """A ring of the newest changes. Any thread posts; readers poll, wait in a thread, or await.

    A reader keeps the number of the last news that it saw; `since` says whether some in between are gone.
    """

    def __init__(self, kept: int = KEPT):
        self._ring: deque[News] = deque(maxlen=kept)
        self._number = 0
        self._changed = threading.Condition()
        self._waiters: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()

    @property
    def number(self) -> int:
        """Number of the newest news; 0 before any."""
        return self._number

    def post(self, kind: str, agent: str = "", id: int = 0) -> None:
        """Tell of a change that can be read from the store."""
        with self._changed:
            self._number += 1
            self._ring.append(News(self._number, kind, agent, id))
            self._changed.notify_all()
            waiters = list(self._waiters)
        for loop, event in waiters:
            try:
                loop.call_soon_threadsafe(event.set)
            except RuntimeError:  # its loop has ended
                with self._changed:
                    self._waiters.discard((loop, event))

    def since(self, number: int) -> tuple[list[News], bool]:
        """Return the news after `number`, oldest first, and whether all of them are there."""
        with self._changed:
            missed = self._number - number
            if missed <= 0:
                return [], True
            found = [news for news in list(self._ring)[-min(missed, len(self._ring)) :] if news.number > number]
            return found, len(found) == missed

    def wait(self, number: int, timeout_s: float) -> bool:
        """Wait in a thread until there are news after `number`; False after the time."""
        with self._changed:
            return self._changed.wait_for(lambda: self._number > number, timeout_s)

    async def wait_async(self, number: int, timeout_s: float) -> bool:
        """Await news after `number`; False after the time."""
        event = asyncio.Event()
        waiter = (asyncio.get_running_loop(), event)
        with self._changed:
            if self._number > number:
                return True
            self._waiters.add(waiter)
        try:
            await asyncio.wait_for(event.wait(), timeout_s)
        except TimeoutError:
            return False
        finally:
            with self._changed:
                self._waiters.discard(waiter)
        return True
