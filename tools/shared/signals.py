"""Turns SIGINT, SIGTERM and SIGHUP into a clean end, or SIGHUP into a reading of the config.

Called by commands that run until told to stop.
"""

import signal
import threading
from typing import Any


def stop_on_signals(stop: threading.Event, reload: threading.Event | None = None) -> None:
    """Set `stop` on the first SIGINT, SIGTERM or SIGHUP; a second one ends the process at once, as users expect.

    With `reload`, SIGHUP sets that instead, as service managers expect.
    """

    def handle(number: int, _frame: Any) -> None:
        if stop.is_set():
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, handle)
    if reload is not None:
        signal.signal(signal.SIGHUP, lambda _number, _frame: reload.set())
