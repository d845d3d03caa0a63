"""The clock that transport is handed: it never reads one of its own.

Named by live (deadlines, silence), disk (stamps, splits, ages) and thin (outbox, arrivals). It must ask for no more
than these two readings: the agent's clock and a ground tool's both have them.
"""

from typing import Protocol


class Clock(Protocol):
    """Two readings of the caller's clock."""

    def monotonic_ns(self) -> int:
        """Return nanoseconds that never go back: for deadlines, retries and ages within one process."""
        ...

    def wall_ns(self) -> int:
        """Return UTC nanoseconds, which an operator or NTP may step: for stamps alone."""
        ...
