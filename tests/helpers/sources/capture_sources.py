"""Fake sources and clocks for tests of capture: scripted frames, faults and hangs.

Used by tests of capture and of the gate. Nothing here opens a file or a socket.
"""

import threading
import time
from collections.abc import Callable, Iterable

import numpy as np

from stillwatch.base.errors import SourceError
from stillwatch.base.frame import Frame, FrameFlag
from stillwatch.sources.base import NOTHING_YET, NothingYet, RawFrame, SourceInfo


class FastClock:
    """A clock that runs `speed` times as fast as the machine's."""

    def __init__(self, speed: float = 1.0):
        self._speed = speed
        self._start = time.perf_counter()

    def monotonic_ns(self) -> int:
        return round((time.perf_counter() - self._start) * self._speed * 1e9)

    def wall_ns(self) -> int:
        return self.monotonic_ns()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds / self._speed)


class ScriptedSource:
    """Plays a list: RawFrames, NOTHING_YET, exceptions to raise, callables to call (their result counts)."""

    def __init__(self, script: Iterable, *, live: bool, on_open: Callable[[], None] | None = None):
        self.live = live
        self.info = SourceInfo("scripted", "scripted")
        self._script = iter(script)
        self._on_open = on_open
        self.closed = threading.Event()

    def open(self) -> None:
        if self._on_open is not None:
            self._on_open()

    def read(self) -> RawFrame | NothingYet | None:
        step = next(self._script, None)
        if isinstance(step, Exception):
            raise step
        return step() if callable(step) else step

    def close(self) -> None:
        self.closed.set()

    def counters(self) -> dict[str, int]:
        return {}


def raw(
    number: int = 0,
    *,
    size: tuple[int, int] = (64, 48),
    source_ns: int | None = None,
    flags: FrameFlag = FrameFlag.NONE,
) -> RawFrame:
    """Return a grey frame whose level tells its number."""
    colour = np.full((size[1], size[0], 3), number % 256, np.uint8)
    return RawFrame(colour, number * 40_000_000 if source_ns is None else source_ns, flags, "bgr24")


def idle() -> NothingYet:
    time.sleep(0.005)
    return NOTHING_YET


def lost() -> SourceError:
    return SourceError("scripted: lost")


def frame_of(
    colour: np.ndarray, t_s: float, *, flags: FrameFlag = FrameFlag.NONE, epoch: int = 0, sequence: int = 0
) -> Frame:
    """Return a Frame of a BGR picture at stream time t_s."""
    grey = np.ascontiguousarray(colour @ np.array([0.114, 0.587, 0.299]) + 0.5).astype(np.uint8)
    t_ns = round(t_s * 1e9)
    return Frame(grey, np.ascontiguousarray(colour), t_ns, t_ns, t_ns, t_ns, sequence, epoch, flags)


def drain(capture, timeout_s: float = 10.0) -> list[Frame]:
    """Take frames until the capture has ended; fails the test that hangs."""
    frames, end = [], time.monotonic() + timeout_s
    while not capture.ended:
        assert time.monotonic() < end, f"not ended after {timeout_s} s, state {capture.state}"
        frame = capture.next(0.1)
        if frame is not None:
            frames.append(frame)
    return frames


def wait_until(condition: Callable[[], bool], timeout_s: float = 10.0) -> None:
    """Wait for a condition; fails the test where it does not come."""
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, f"did not happen within {timeout_s} s"
        time.sleep(0.005)
