"""The threads of a part of the station: started with it, asked to end with it, and waited for.

Used by ingest/ingest.py and tell/teller.py. What a thread does when its work fails is the work's own business.
"""

import threading
from collections.abc import Callable
from typing import Any


class Workers:
    """Threads that work until they are asked to stop.

    kind : what their names begin with;  stop : set when they are to end
    """

    def __init__(self, kind: str, stop: threading.Event):
        self._kind, self._stop = kind, stop
        self._threads: list[threading.Thread] = []

    def start(self, name: str, work: Callable[..., None], *given: Any) -> None:
        """Begin a work, in a thread that does not keep the process alive."""
        thread = threading.Thread(target=work, args=given, name=f"{self._kind}-{name}", daemon=True)
        thread.start()
        self._threads.append(thread)

    def stop(self, timeout_s: float) -> None:
        """Ask all of them to end, and wait for each at most so long."""
        self._stop.set()
        for thread in self._threads:
            thread.join(timeout_s)
