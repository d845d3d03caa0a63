"""Turns SIGINT, SIGTERM and SIGHUP into a clean end, or SIGHUP into a reading of the config.

Called by commands that run until told to stop.
"""

import signal
import sys
import threading
from typing import Any

STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def end_while_starting() -> None:
    """End at once, and well, where a signal comes before a command has begun its work: there is nothing to save.

    A process that compiles for us goes with us. SIGHUP is for the config then, which is still to be read; but where
    the terminal is gone, so are we. Until `stop_on_signals` takes over.
    """

    def end(number: int, _frame: Any) -> None:
        if number == signal.SIGHUP and not sys.stderr.isatty():
            return
        print("stopped while starting: nothing was watched", file=sys.stderr, flush=True)
        raise SystemExit(0)

    for number in STOPS:
        signal.signal(number, end)


def stop_on_signals(stop: threading.Event, reload: threading.Event | None = None) -> None:
    """Set `stop` on the first SIGINT, SIGTERM or SIGHUP; a second one ends the process at once, as users expect.

    With `reload`, SIGHUP sets that instead, as service managers expect.
    """

    def handle(number: int, _frame: Any) -> None:
        if stop.is_set():
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        stop.set()

    for number in STOPS:
        signal.signal(number, handle)
    if reload is not None:
        signal.signal(signal.SIGHUP, lambda _number, _frame: reload.set())
