"""One line on the terminal that shows how a run goes, without getting into the way of other lines.

Called by run, demo and other commands that take a while. It must write nothing where nobody watches.
"""

from __future__ import annotations

import shutil
import sys
import threading
from typing import TYPE_CHECKING, TextIO

from stillwatch.tools.shared import words

if TYPE_CHECKING:  # of every command's start it would be a second and a half: the agent, numba, OpenCV
    from stillwatch.process import Progress


class ProgressLine:
    """Draws over itself on stderr; `say` prints whole lines above it. May be called from several threads."""

    def __init__(self, *, enabled: bool):
        self._enabled = enabled
        self._lock = threading.Lock()
        self._shown = ""

    def update(self, progress: Progress) -> None:
        """Show the present state."""
        self.show(progress_text(progress))

    def show(self, text: str) -> None:
        """Replace the line by `text`."""
        if not self._enabled:
            return
        with self._lock:
            width = shutil.get_terminal_size().columns - 1
            self._shown = text[:width]
            sys.stderr.write(f"\r\x1b[2K{self._shown}")
            sys.stderr.flush()

    def say(self, text: str, to: TextIO | None = None) -> None:
        """Print one line on stdout, or where told, above the progress."""
        stream = sys.stdout if to is None else to
        with self._lock:
            if self._enabled:
                sys.stderr.write("\r\x1b[2K")
                sys.stderr.flush()
            stream.write(text + "\n")
            stream.flush()
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


def progress_text(progress: Progress) -> str:
    """Return the state of a run in one line: how far, how fast, how long yet, how much it knows, what it raised."""
    counts, share = progress.counts, progress.share
    rate = counts.frames / progress.seconds if progress.seconds > 0 else 0.0
    parts = [progress.state] if share is None else [f"{100 * share:.0f} %"]
    parts += [f"{counts.frames} frames", f"{rate:.0f}/s"]
    if share is not None and 0.01 < share < 1.0 and progress.seconds > 1.0:
        parts.append(f"{words.duration(progress.seconds * (1.0 - share) / share)} left")
    watching = words.unsure(progress.unsure) or "watching"
    parts.append(watching if progress.learning >= 1.0 else f"learning {100 * progress.learning:.0f} %")
    parts.append(f"{words.count(counts.events, 'event')}, {words.count(counts.alerts, 'alert')}")
    parts += [f"{counts.dropped} dropped"] * bool(counts.dropped)
    return "  ".join(parts)
