"""Turns SIGINT and SIGTERM into a clean end.

Called by commands that run until told to stop.
"""

import signal
import threading
from typing import Any


def stop_on_signals(stop: threading.Event) -> None:
    """Set `stop` on the first SIGINT or SIGTERM; a second one ends the process at once, as users expect."""

    def handle(number: int, _frame: Any) -> None:
        if stop.is_set():
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handle)
