"""The capture thread: a source read into a fixed ring, reopened when it fails, abandoned when it hangs.

Made by agent/process/app.py; the pipeline thread calls `next`. Live sources keep the newest frames and count what
they drop; files block and lose nothing. Nothing here may block the pipeline for longer than it asked.
"""

import logging
import random
import threading
from collections import Counter, deque
from collections.abc import Callable

import numpy as np

from stillwatch.base import NO_NAV, AgentError, Clock, Frame, FrameFlag, Nav, SourceError, SourceState
from stillwatch.settings import SourceConfig
from stillwatch.sources.base import RawFrame, Source, SourceInfo
from stillwatch.sources.pixels import box_size, fit_box
from stillwatch.sources.timestamps import NS, Decimator, StampRepair

log = logging.getLogger(__name__)

FIRST_PAUSE_S = 1.0
JITTER = 0.2
GOOD_AFTER_NS = 60 * NS  # this long without a fault, and the pauses start from the first again
FAILED_AFTER = 3  # attempts in a row without a frame
HANG_GRACE_NS = 2 * NS  # libav's own time-outs come first; they leave nothing behind
MOST_ABANDONED = 8
TICK_S = 0.25
LOG_EVERY_NS = 60 * NS
SMALLEST_SIDE_PX = 16  # one SIFT patch
STOP_WAIT_S = 1.0
RETIRE_WAIT_S = 0.5  # for a reader to return before it is left behind


class FrameMaker:
    """Turn raw frames into Frames: stream time, sequence, epoch, decimation, working size. One thread's."""

    def __init__(
        self,
        config: SourceConfig,
        clock: Clock,
        live: bool,
        first_sequence: int,
        nav_at: Callable[[int, int], Nav] | None,
    ):
        self._config = config
        self._clock = clock
        self._live = live
        self._nav_at = nav_at
        self._repair = StampRepair(config.fallback_rate_hz)
        self._decimator = Decimator(config.rate_hz)
        self._sequence = first_sequence
        self._start_ns = clock.monotonic_ns()
        self._last_t_ns = -1
        self._epoch = 0
        self._format: tuple | None = None
        self.counts: Counter[str] = Counter()

    def make(self, raw: RawFrame) -> Frame | None:
        """Return the frame at its working size; None where it is decimated away or too small to describe."""
        mono_ns, wall_ns = self._clock.monotonic_ns(), self._clock.wall_ns()
        t_ns, flags, stepped = self._repair.repair(raw.source_ns)
        if self._live:
            t_ns = max(mono_ns - self._start_ns, self._last_t_ns + 1)
        sequence = self._sequence
        self._sequence += 1
        self._note_epoch(raw, stepped)
        flags |= raw.flags
        epoch, nav = self._epoch, NO_NAV
        if raw.recorded is not None:
            stamp = raw.recorded
            t_ns, mono_ns, wall_ns, sequence = stamp.t_ns, stamp.mono_ns, stamp.wall_ns, stamp.sequence
            epoch, nav, flags = stamp.epoch, stamp.nav, raw.flags
            self._sequence = sequence + 1
        elif self._nav_at is not None:
            nav = self._nav_at(t_ns, wall_ns)
        self._last_t_ns = t_ns
        if raw.recorded is None and not self._decimator.keeps(t_ns):
            self.counts["decimated"] += 1
            return None
        arrays = self._scaled(raw)
        if arrays is None:
            return None
        self.counts["damaged"] += bool(flags & FrameFlag.DAMAGED)
        self.counts["time_repaired"] += bool(flags & (FrameFlag.TIME_REPAIRED | FrameFlag.TIME_SYNTHETIC))
        return Frame(*arrays, raw.source_ns, t_ns, mono_ns, wall_ns, sequence, epoch, flags, nav, raw.decoded)

    def _note_epoch(self, raw: RawFrame, stepped: bool) -> None:
        form = (raw.colour.shape, raw.pixel_format)
        if self._format is not None and (form != self._format or (stepped and not self._live)):
            self._epoch += 1
            self.counts["epochs"] += 1
            log.info(
                "stream epoch %d: %dx%d %s", self._epoch, raw.colour.shape[1], raw.colour.shape[0], raw.pixel_format
            )
        self._format = form

    def _scaled(self, raw: RawFrame) -> tuple[np.ndarray, np.ndarray] | None:
        """Return (grey, colour) at the working size, None where that is too small to describe."""
        height, width = raw.colour.shape[:2]
        size = box_size(width, height, self._config.width, self._config.height)
        if min(size) < SMALLEST_SIDE_PX:
            self.counts["too_small"] += 1
            return None
        return fit_box(raw.colour, size)


class _Reader:
    """One attempt: a thread that opens its source and reads until the end, a fault, or until it is abandoned."""

    def __init__(self, capture: "Capture", source: Source, number: int):
        self.source = source
        self.opened = False
        self.frames = 0
        self.finished = False
        self.error: SourceError | None = None
        self.busy_ns: int | None = None  # since when a call into the source lasts; None outside of one
        self.last_frame_ns = self.started_ns = capture.clock.monotonic_ns()
        self.abandoned = threading.Event()
        self._capture = capture
        self.thread = threading.Thread(target=self._run, name=f"capture-read-{number}", daemon=True)

    def _run(self) -> None:
        try:
            self._call(self.source.open)
            self.opened = True
            while not self.abandoned.is_set():
                raw = self._call(self.source.read)
                if raw is None:
                    break
                if isinstance(raw, RawFrame) and not self._capture.take(self, raw):
                    break
        except SourceError as error:
            # Without its traceback, which holds this reader and its last frame in a cycle.
            self.error = error.with_traceback(None)
        except (OSError, ValueError, MemoryError) as error:
            self.error = SourceError(
                f"{self.source.info.uri}: {type(error).__name__}: {error}", partial=self.frames > 0
            )
        finally:
            self._close()
            self.finished = True
            self._capture.wake()

    def _call(self, function: Callable):
        self.busy_ns = self._capture.clock.monotonic_ns()
        try:
            return function()
        finally:
            self.busy_ns = None

    def _close(self) -> None:
        self.busy_ns = self._capture.clock.monotonic_ns()
        try:
            self.source.close()
        except (OSError, ValueError) as error:
            log.debug("closing: %s", error)
        finally:
            self.busy_ns = None


class Capture:
    """A source as the pipeline sees it: `next` gives frames, `state`, `counters` and `error` tell the rest.

    Parameters
    ----------
    make_source : callable
        Returns a new, unopened source; called for every attempt.
    config : SourceConfig
    clock : Clock
    first_sequence : int
        Number of the first frame; a run that goes on after a restart passes the next one.
    nav_at : callable(t_ns, wall_ns) -> Nav, optional
        Position of the vehicle at a frame's time (agent/sources/nav.py).
    seed : int
        Of the jitter of reconnection pauses only.
    """

    def __init__(
        self,
        make_source: Callable[[], Source],
        config: SourceConfig,
        clock: Clock,
        *,
        first_sequence: int = 0,
        nav_at: Callable[[int, int], Nav] | None = None,
        seed: int = 0,
    ):
        self.clock = clock
        self._make_source = make_source
        self._config = config
        source = make_source()
        self.info: SourceInfo = source.info
        self.live = source.live
        self.error: SourceError | None = None
        self._first_source: Source | None = source
        self._maker = FrameMaker(config, clock, source.live, first_sequence, nav_at)
        self._ring: deque[Frame] = deque()
        self._changed = threading.Condition()
        self._making = threading.Lock()
        self._last_frame_ns = clock.monotonic_ns()
        self._reader: _Reader | None = None
        self._state = SourceState.CONNECTING
        self._stopping = False
        self._done = False
        self._reopen = False
        self._counts: Counter[str] = Counter()
        self._past: Counter[str] = Counter()  # counters of readers that are gone
        self._abandoned: list[_Reader] = []
        self._random = random.Random(seed)
        self._logged_ns: dict[str, int] = {}
        self._thread = threading.Thread(target=self._supervise, name="capture", daemon=True)

    def start(self) -> None:
        """Start the capture threads; returns at once."""
        self._thread.start()

    def next(self, timeout_s: float) -> Frame | None:
        """Return the oldest frame in the ring; None after `timeout_s` without one, or at the end (see `ended`)."""
        with self._changed:
            self._changed.wait_for(lambda: self._ring or self._done, timeout_s)
            if not self._ring:
                return None
            frame = self._ring.popleft()
            if len(self._ring) == self._config.ring_frames // 2:  # a reader of files decodes some at each turn
                self._changed.notify_all()
            return frame

    @property
    def ended(self) -> bool:
        """True once the source has ended (or was given up, or stopped) and every frame of the ring was taken."""
        with self._changed:
            return self._done and not self._ring

    @property
    def state(self) -> SourceState:
        return SourceState.ENDED if self.ended else self._state

    @property
    def n_waiting(self) -> int:
        """Frames in the ring."""
        return len(self._ring)

    def request_reopen(self) -> None:
        """Close and reopen a live source, as for a camera that has shown the same picture for too long."""
        with self._changed:
            self._reopen = self.live
            self._changed.notify_all()

    def counters(self) -> dict[str, int]:
        """Return counts since the start.

        frames (kept for the pipeline), dropped, decimated, damaged, too_small, time_repaired, epochs, reconnects,
        stalls, open_failures, hangs (threads abandoned), undecodable, damaged_packets.
        """
        with self._changed:
            counts = {
                name: 0
                for name in (
                    "frames",
                    "dropped",
                    "reconnects",
                    "stalls",
                    "damaged",
                    "undecodable",
                    "decimated",
                    "too_small",
                    "time_repaired",
                    "epochs",
                    "open_failures",
                    "hangs",
                    "damaged_packets",
                )
            }
            for part in (self._counts, self._maker.counts, self._past):
                for name, count in part.items():
                    counts[name] = counts.get(name, 0) + count
            if self._reader is not None:
                for name, count in self._reader.source.counters().items():
                    counts[name] = counts.get(name, 0) + count
            return counts

    def last_frame_age_s(self) -> float:
        """Return seconds since the last new frame arrived, or since the start."""
        return (self.clock.monotonic_ns() - self._last_frame_ns) / NS

    def stop(self) -> None:
        """Stop reading; returns within about a second whatever the source does. `next` may drain the ring."""
        with self._changed:
            self._stopping = True
            if self._reader is not None:
                self._reader.abandoned.set()
            self._changed.notify_all()
        if self._thread.ident is not None:
            self._thread.join(STOP_WAIT_S)

    # The reader's side.

    def wake(self) -> None:
        """Tell the supervisor and a waiting `next` that something changed."""
        with self._changed:
            self._changed.notify_all()

    def take(self, reader: _Reader, raw: RawFrame) -> bool:
        """Put a raw frame into the ring; False when its reader should stop. Called by reader threads only."""
        with self._making:  # a reader that was given up may still be here when the next one comes
            if reader.abandoned.is_set():
                return False
            frame = self._maker.make(raw)
        reader.last_frame_ns = self._last_frame_ns = self.clock.monotonic_ns()
        reader.frames += 1
        with self._changed:
            if reader.abandoned.is_set():
                return False
            self._state = SourceState.LIVE
            return True if frame is None else self._push(reader, frame)

    def _push(self, reader: _Reader, frame: Frame) -> bool:
        while len(self._ring) >= self._config.ring_frames:
            if self.live:
                self._ring.popleft()
                self._counts["dropped"] += 1
                break
            self._changed.wait(TICK_S)
            if reader.abandoned.is_set():
                return False
        self._ring.append(frame)
        self._counts["frames"] += 1
        if len(self._ring) == 1:  # `next` may wait for it
            self._changed.notify_all()
        return True

    # The supervisor's side.

    def _supervise(self) -> None:
        pauses = fruitless = number = 0
        while not self._stopping:
            number += 1
            reader = self._start_reader(number)
            if reader is None:
                break
            started_ns = self.clock.monotonic_ns()
            self._watch(reader)
            self._retire(reader)
            if self._stopping or not self._goes_on(reader):
                break
            if reader.frames and self.clock.monotonic_ns() - started_ns >= GOOD_AFTER_NS:
                pauses = 0
            pauses += 1
            fruitless = 0 if reader.frames else fruitless + 1
            self._note_failure(reader, fruitless)
            self._pause(pauses)
        with self._changed:
            self._done = True
            self._changed.notify_all()

    def _start_reader(self, number: int) -> _Reader | None:
        source, self._first_source = self._first_source, None
        try:
            source = source or self._make_source()
        except AgentError as error:
            self.error = error if isinstance(error, SourceError) else SourceError(str(error))
            return None
        reader = _Reader(self, source, number)
        with self._changed:
            self._reader = reader
            self.info = source.info
            if self._stopping:
                return None
        reader.thread.start()
        return reader

    def _watch(self, reader: _Reader) -> None:
        """Return when the reader has finished, or hangs, or should be replaced."""
        while not reader.finished and not self._stopping:
            with self._changed:
                self._changed.wait(TICK_S)
                reopen, self._reopen = self._reopen, False
            if reopen and reader.frames:
                reader.error = SourceError(f"{reader.source.info.uri}: reopened on request")
                return
            now_ns = self.clock.monotonic_ns()
            limit_ns = round(NS * (self._config.stall_timeout_s if reader.frames else self._config.open_timeout_s))
            busy_ns = reader.busy_ns
            if busy_ns is not None and now_ns - busy_ns > limit_ns + HANG_GRACE_NS:
                reader.error = SourceError(
                    f"{reader.source.info.uri}: no answer for {(now_ns - busy_ns) / NS:.1f} s",
                    partial=reader.frames > 0,
                )
                return
            if self.live and now_ns - reader.last_frame_ns > limit_ns and not self._waits_well(reader, limit_ns):
                return

    def _waits_well(self, reader: _Reader, limit_ns: int) -> bool:
        """Handle a live source without a new frame for its limit; True where it may go on waiting."""
        info = reader.source.info
        if reader.frames and self._state is not SourceState.STALLED:
            self._state = SourceState.STALLED
            self._counts["stalls"] += 1
            self._warn("stalled", "%s: no new frame for %.1f s", info.uri, limit_ns / NS)
        if info.kind == "folder":  # a folder that is not being filled is no fault that reopening mends
            return True
        if not reader.frames:
            codec = f" (codec {info.codec})" if info.codec else ""
            reader.error = SourceError(
                f"{info.uri}: no frame within source.open_timeout_s = {self._config.open_timeout_s:g}{codec}"
            )
        elif self.clock.monotonic_ns() - reader.last_frame_ns <= limit_ns + HANG_GRACE_NS:
            return True
        return False

    def _retire(self, reader: _Reader) -> None:
        """Take leave of a reader; one that does not return from a call is left behind, and counted."""
        reader.abandoned.set()
        self.wake()
        reader.thread.join(RETIRE_WAIT_S)
        with self._changed:
            self._past.update(reader.source.counters())
            self._reader = None
        self._abandoned = [old for old in self._abandoned if old.thread.is_alive()]
        if reader.thread.is_alive():
            self._abandoned.append(reader)
            self._counts["hangs"] += 1

    def _goes_on(self, reader: _Reader) -> bool:
        """Say whether to try again; sets `error` where not. Live sources are never given up, hung threads are."""
        if not self.live:
            self.error = reader.error or self._nothing_usable(reader)
            return False
        if len(self._abandoned) >= MOST_ABANDONED:
            self.error = SourceError(
                f"{self.info.uri}: {MOST_ABANDONED} capture threads hang in the driver or library; "
                "start the agent anew",
                partial=self._counts["frames"] > 0,
            )
            return False
        return True

    def _nothing_usable(self, reader: _Reader) -> SourceError | None:
        small = self._maker.counts["too_small"]
        if not small:
            return None
        side = SMALLEST_SIDE_PX
        return SourceError(
            f"{self.info.uri}: {small} of {reader.frames} frames are smaller than {side}x{side} pixels, "
            "the least that can be judged; give larger ones",
            partial=self._counts["frames"] > 0,
        )

    def _note_failure(self, reader: _Reader, fruitless: int) -> None:
        if reader.frames:
            self._counts["reconnects"] += 1
        else:
            self._counts["open_failures"] += 1
        text = str(reader.error) if reader.error is not None else f"{self.info.uri}: the stream ended"
        self._warn("lost" if reader.frames else "open", "%s; trying again", text)
        self._state = SourceState.FAILED if fruitless >= FAILED_AFTER else SourceState.CONNECTING

    def _pause(self, pauses: int) -> None:
        longest = min(FIRST_PAUSE_S * 2.0 ** min(pauses - 1, 10), self._config.reconnect_cap_s)
        seconds = longest * self._random.uniform(1.0 - JITTER, 1.0 + JITTER)
        end_ns = self.clock.monotonic_ns() + round(seconds * NS)
        with self._changed:
            while not self._stopping and (left_ns := end_ns - self.clock.monotonic_ns()) > 0:
                self._changed.wait(min(left_ns / NS, TICK_S))

    def _warn(self, cause: str, text: str, *args: object) -> None:
        """Log a warning, each cause at most once a minute."""
        now_ns = self.clock.monotonic_ns()
        if now_ns - self._logged_ns.get(cause, -LOG_EVERY_NS) >= LOG_EVERY_NS:
            self._logged_ns[cause] = now_ns
            log.warning(text, *args)
