"""The only place that reads a clock. One Clock is made in agent/process/app.py and passed in everywhere.

`monotonic_ns` drives timers of capture, sockets and watchdogs; `wall_ns` is for display and records only.
Nothing after the gate may depend on either: it reads Frame.t_ns.
"""

import time
from typing import Protocol


class Clock(Protocol):
    """Monotonic nanoseconds, UTC wall nanoseconds, and a sleep that can be virtual."""

    def monotonic_ns(self) -> int: ...

    def wall_ns(self) -> int: ...

    def thread_cpu_s(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...


class RealClock:
    """The machine's clocks."""

    def monotonic_ns(self) -> int:
        return time.monotonic_ns()

    def wall_ns(self) -> int:
        return time.time_ns()

    def thread_cpu_s(self) -> float:
        """CPU seconds of the calling thread: what a piece of work cost, whatever else the machine did."""
        return time.thread_time()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class VirtualClock:
    """A clock moved by its owner: replays and tests. `sleep` advances it and returns at once."""

    def __init__(self, mono_ns: int = 0, wall_ns: int = 0):
        self._mono_ns = mono_ns
        self._wall_ns = wall_ns

    def monotonic_ns(self) -> int:
        return self._mono_ns

    def wall_ns(self) -> int:
        return self._wall_ns

    def thread_cpu_s(self) -> float:
        return 0.0

    def sleep(self, seconds: float) -> None:
        self.advance_ns(int(seconds * 1e9))

    def advance_ns(self, delta_ns: int) -> None:
        """Move both clocks forward; a negative step is refused, as monotonic time never goes back."""
        if delta_ns < 0:
            raise ValueError(f"clock step {delta_ns} ns is negative")
        self._mono_ns += delta_ns
        self._wall_ns += delta_ns

    def step_wall_ns(self, delta_ns: int) -> None:
        """Step the wall clock alone, in either direction, as NTP or an operator does."""
        self._wall_ns += delta_ns


class Laps:
    """Adds up where a frame's time goes: from its making to the first `stage`, from there to the next, and so on.

    Parameters
    ----------
    seconds : dict of str to float
        Changed: seconds of the monotonic clock by stage.
    clock : Clock
    """

    def __init__(self, seconds: dict[str, float], clock: Clock):
        self._seconds, self._clock = seconds, clock
        self._since_ns = clock.monotonic_ns()

    def stage(self, name: str) -> None:
        """A stage has ended: the time since the one before is its."""
        now_ns = self._clock.monotonic_ns()
        self._seconds[name] = self._seconds.get(name, 0.0) + (now_ns - self._since_ns) / 1e9
        self._since_ns = now_ns
