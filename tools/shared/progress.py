"""One line on the terminal that shows how a run goes, without getting into the way of other lines.

Called by run, demo and other commands that take a while. It must write nothing where nobody watches.
"""

import shutil
import sys
import threading

from stillwatch.process import Progress


class ProgressLine:
    """Draws over itself on stderr; `say` prints whole lines above it. May be called from several threads."""

    def __init__(self, *, enabled: bool):
        self._enabled = enabled
        self._lock = threading.Lock()
        self._shown = ""

    def update(self, progress: Progress) -> None:
        """Show the present state."""
        counts = progress.counts
        rate = counts.frames / progress.seconds if progress.seconds > 0 else 0.0
        parts = [progress.state, f"{counts.frames} frames", f"{rate:.0f}/s"]
        parts.append("watching" if progress.learning >= 1.0 else f"learning {100 * progress.learning:.0f} %")
        parts.append(f"{counts.events} events, {counts.alerts} alerts")
        if counts.dropped:
            parts.append(f"{counts.dropped} dropped")
        self.show("  ".join(parts))

    def show(self, text: str) -> None:
        """Replace the line by `text`."""
        if not self._enabled:
            return
        with self._lock:
            width = shutil.get_terminal_size().columns - 1
            self._shown = text[:width]
            sys.stderr.write(f"\r\x1b[2K{self._shown}")
            sys.stderr.flush()

    def say(self, text: str) -> None:
        """Print one line on stdout, above the progress."""
        with self._lock:
            if self._enabled:
                sys.stderr.write("\r\x1b[2K")
                sys.stderr.flush()
            sys.stdout.write(text + "\n")
            sys.stdout.flush()
            if self._enabled:
                sys.stderr.write(self._shown)
                sys.stderr.flush()

    def clear(self) -> None:
        """Take the line away."""
        if self._enabled:
            with self._lock:
                sys.stderr.write("\r\x1b[2K")
                sys.stderr.flush()
                self._shown = ""
