"""Capture: files lose nothing, live sources keep the newest, and nothing that hangs or flaps gets in the way."""

import os
import threading
import time

import pytest
from capture_sources import FastClock, ScriptedSource, drain, idle, lost, raw, wait_until

from stillwatch.base.errors import SourceError
from stillwatch.base.frame import FrameFlag, Nav
from stillwatch.base.source_state import SourceState
from stillwatch.settings.config import SourceConfig
from stillwatch.sources import capture as capture_module
from stillwatch.sources.base import RecordedStamp
from stillwatch.sources.capture import MOST_ABANDONED, Capture

MS = 1_000_000


@pytest.fixture
def quick(monkeypatch):
    """A supervisor that looks often, for clocks that run fast."""
    monkeypatch.setattr(capture_module, "TICK_S", 0.005)
    monkeypatch.setattr(capture_module, "RETIRE_WAIT_S", 0.05)


def file_capture(script, config=None, **options):
    capture = Capture(lambda: ScriptedSource(script, live=False), config or SourceConfig(), FastClock(), **options)
    capture.start()
    return capture


def live_capture(scripts, config=None, *, speed=1.0, on_open=None, **options):
    """Each attempt plays the next script; the last one is repeated."""
    scripts = list(scripts)

    def make():
        script = scripts.pop(0) if len(scripts) > 1 else scripts[0]
        return ScriptedSource(script() if callable(script) else script, live=True, on_open=on_open)

    # Capture makes one source for its description before the first attempt: it is the one that is then opened.
    return Capture(make, config or SourceConfig(), FastClock(speed), **options)


def test_a_file_blocks_and_loses_nothing():
    capture = file_capture([raw(i) for i in range(50)], SourceConfig(ring_frames=2))
    time.sleep(0.1)
    frames = drain(capture)
    assert [frame.sequence for frame in frames] == list(range(50))
    assert [int(frame.grey[0, 0]) for frame in frames] == list(range(50))
    assert capture.counters()["dropped"] == 0
    assert capture.error is None
    assert capture.state is SourceState.ENDED


def test_stream_time_of_a_file_is_that_of_its_stamps():
    frames = drain(file_capture([raw(i, source_ns=(7 + i) * 40 * MS) for i in range(4)]))
    assert [frame.t_ns for frame in frames] == [0, 40 * MS, 80 * MS, 120 * MS]
    assert [frame.source_ns for frame in frames] == [280 * MS, 320 * MS, 360 * MS, 400 * MS]


def test_a_live_source_keeps_the_newest_frames_and_counts_the_others():
    done = threading.Event()
    script = [*[raw(i) for i in range(20)], lambda: (done.set(), idle())[1], *[idle] * 2000]
    capture = live_capture([script], SourceConfig(ring_frames=4))
    capture.start()
    assert done.wait(5.0)
    frames = [capture.next(0.1) for _ in range(4)]
    assert [frame.sequence for frame in frames] == [16, 17, 18, 19]
    assert capture.counters()["dropped"] == 16
    assert capture.next(0.02) is None
    assert not capture.ended
    capture.stop()


def test_live_time_is_arrival_and_always_increases():
    capture = live_capture([[*[raw(0, source_ns=5)] * 30, *[idle] * 1000]], SourceConfig(ring_frames=64))
    capture.start()
    times = [capture.next(2.0).t_ns for _ in range(30)]
    assert all(b > a for a, b in zip(times, times[1:], strict=False))
    assert times[-1] < 5_000_000_000
    capture.stop()


def test_an_error_after_some_frames_is_told_after_the_last_of_them():
    capture = file_capture([raw(0), raw(1), SourceError("x: truncated: 2 of 9 frames", partial=True)])
    assert len(drain(capture)) == 2
    assert capture.error.partial
    assert str(capture.error) == "x: truncated: 2 of 9 frames"


def test_unexpected_errors_of_a_source_become_one_line():
    capture = file_capture([raw(0), ValueError("odd plane")])
    drain(capture)
    assert str(capture.error) == "scripted: ValueError: odd plane"


def test_a_change_of_size_or_format_starts_an_epoch():
    other = raw(3)
    other.pixel_format = "gray16le"
    frames = drain(file_capture([raw(0), raw(1, size=(80, 60)), raw(2, size=(80, 60)), other]))
    assert [frame.epoch for frame in frames] == [0, 1, 1, 2]
    assert frames[1].grey.shape == (60, 80)


def test_frames_are_scaled_into_the_box_and_marked():
    config = SourceConfig(width=64, height=64)
    frames = drain(file_capture([raw(9, size=(256, 128), flags=FrameFlag.DAMAGED)], config))
    assert frames[0].colour.shape == (32, 64, 3)
    assert frames[0].flags & FrameFlag.DAMAGED


def test_frames_too_small_to_describe_are_counted_and_explained():
    capture = file_capture([raw(i, size=(8, 8)) for i in range(3)])
    assert drain(capture) == []
    assert "3 of 3 frames are smaller than 16x16" in str(capture.error)
    assert capture.counters()["too_small"] == 3


def test_decimation_counts_in_the_sequence():
    capture = file_capture([raw(i) for i in range(50)], SourceConfig(rate_hz=5.0))
    assert [frame.sequence for frame in drain(capture)] == list(range(0, 50, 5))
    assert capture.counters()["decimated"] == 40


def test_recorded_stamps_pass_unchanged():
    stamp = RecordedStamp(123, 456, 789, 42, 3, Nav(depth_m=9.0))
    frame = raw(0)
    frame.recorded = stamp
    out = drain(file_capture([frame]))[0]
    assert (out.t_ns, out.mono_ns, out.wall_ns, out.sequence, out.epoch, out.nav) == (123, 456, 789, 42, 3, stamp.nav)


def test_nav_is_asked_for_each_frame():
    frames = drain(file_capture([raw(0), raw(1)], nav_at=lambda t_ns, wall_ns: Nav(depth_m=t_ns / 1e6)))
    assert [frame.nav.depth_m for frame in frames] == [0.0, 40.0]


def test_a_lost_live_source_is_opened_again_and_time_and_sequence_go_on(quick):
    capture = live_capture([[raw(0), raw(1), lost()], [raw(2), *[idle] * 5000]], speed=50.0)
    capture.start()
    frames = [capture.next(5.0) for _ in range(3)]
    assert [frame.sequence for frame in frames] == [0, 1, 2]
    assert frames[2].t_ns > frames[1].t_ns
    assert capture.counters()["reconnects"] == 1
    capture.stop()


def test_a_live_source_that_cannot_be_opened_fails_visibly_and_is_never_given_up(quick):
    attempts = []

    def refuse():
        attempts.append(1)
        if len(attempts) < 8:
            raise SourceError("scripted: refused")

    capture = live_capture([lambda: [raw(0), *[idle] * 5000]], on_open=refuse, speed=200.0)
    capture.start()
    wait_until(lambda: capture.state is SourceState.FAILED)
    assert capture.next(10.0) is not None
    assert capture.state is SourceState.LIVE
    assert capture.counters()["open_failures"] == 7
    capture.stop()


def test_a_hung_open_is_abandoned_and_blocks_nobody(quick):
    release = threading.Event()
    hangs = [release.wait]

    def maybe_hang():
        if hangs:
            hangs.pop()()

    config = SourceConfig(open_timeout_s=1.0)
    capture = live_capture([lambda: [raw(0), *[idle] * 5000]], config, on_open=maybe_hang, speed=20.0)
    capture.start()
    began = time.monotonic()
    assert capture.next(0.05) is None
    assert time.monotonic() - began < 1.0
    assert capture.next(10.0) is not None
    assert capture.counters()["hangs"] == 1
    capture.stop()
    release.set()


def test_a_hung_read_is_abandoned_and_its_late_frame_is_not_delivered(quick):
    release = threading.Event()

    def late():
        release.wait()
        return raw(99)

    capture = live_capture([[raw(0), late], [raw(1), *[idle] * 5000]], SourceConfig(stall_timeout_s=1.0), speed=20.0)
    capture.start()
    assert int(capture.next(5.0).grey[0, 0]) == 0
    assert int(capture.next(5.0).grey[0, 0]) == 1
    release.set()
    assert capture.next(0.2) is None
    capture.stop()


def test_too_many_hung_threads_end_the_capture(quick):
    release = threading.Event()
    config = SourceConfig(open_timeout_s=1.0)
    capture = live_capture([[]], config, on_open=release.wait, speed=100.0)
    capture.start()
    drain(capture, 20.0)
    assert f"{MOST_ABANDONED} capture threads hang" in str(capture.error)
    release.set()


def test_a_file_that_hangs_is_an_error(quick):
    release = threading.Event()
    source = ScriptedSource([], live=False, on_open=release.wait)
    capture = Capture(lambda: source, SourceConfig(open_timeout_s=1.0), FastClock(20.0))
    capture.start()
    drain(capture)
    assert "no answer for" in str(capture.error)
    release.set()


def test_a_slow_start_is_not_a_stall(quick):
    slow = [*[idle] * 40, raw(0), *[idle] * 5000]  # 0.2 s at 20 times: four stall times out, well within the start's
    capture = live_capture([slow], SourceConfig(open_timeout_s=60.0, stall_timeout_s=1.0), speed=20.0)
    capture.start()
    assert capture.next(5.0) is not None
    assert capture.counters()["open_failures"] == 0
    capture.stop()


def test_a_stall_is_seen_and_the_source_reopened(quick):
    capture = live_capture(
        [[raw(0), *[idle] * 5000], [raw(1), *[idle] * 5000]], SourceConfig(stall_timeout_s=1.0), speed=20.0
    )
    capture.start()
    assert capture.next(5.0) is not None
    wait_until(lambda: capture.state is SourceState.STALLED)
    assert int(capture.next(10.0).grey[0, 0]) == 1
    assert capture.counters()["stalls"] >= 1
    capture.stop()


def test_the_age_of_the_last_frame_goes_on_over_attempts(quick):
    capture = live_capture([[raw(0), lost()], [lost()]], speed=50.0)
    capture.start()
    assert capture.next(5.0) is not None
    wait_until(lambda: capture.last_frame_age_s() > 10.0)
    capture.stop()


def test_reopening_on_request(quick):
    capture = live_capture([[raw(0), *[idle] * 5000], [raw(1), *[idle] * 5000]], speed=50.0)
    capture.start()
    assert int(capture.next(5.0).grey[0, 0]) == 0
    capture.request_reopen()
    assert int(capture.next(5.0).grey[0, 0]) == 1
    capture.stop()


def test_stop_returns_at_once_whatever_the_source_does():
    release = threading.Event()
    capture = live_capture([[]], on_open=release.wait)
    capture.start()
    time.sleep(0.05)
    began = time.monotonic()
    capture.stop()
    assert time.monotonic() - began < 2.0
    wait_until(lambda: capture.ended, 2.0)
    release.set()


def test_the_longest_pause_leaves_time_to_be_live_within_ten_seconds():
    from stillwatch.sources.live import PROBE_TIMEOUT_S

    # Worst case: a probe begins just before the camera returns, then the longest pause, then a normal opening.
    longest_pause_s = SourceConfig().reconnect_cap_s * (1.0 + capture_module.JITTER)
    assert PROBE_TIMEOUT_S + longest_pause_s + 2.0 < 10.0


class FlappingSource(ScriptedSource):
    """Holds a file open, as a real one holds its socket; gives two frames and is lost."""

    def __init__(self):
        super().__init__([raw(0, size=(640, 480)), raw(1, size=(640, 480)), lost()], live=True)
        self._file = None

    def open(self):
        self._file = open(os.devnull)

    def close(self):
        if self._file is not None:
            self._file.close()


def resident_bytes():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.slow
def test_two_hundred_flaps_leak_no_thread_file_or_memory(quick):
    threads, files = threading.active_count(), len(os.listdir("/proc/self/fd"))
    capture = Capture(FlappingSource, SourceConfig(), FastClock(2000.0))
    capture.start()
    samples = {}
    end = time.monotonic() + 60.0
    while (count := capture.counters()["reconnects"]) < 200:
        assert time.monotonic() < end, f"{count} flaps"
        capture.next(0.02)
        samples[count] = resident_bytes()
    capture.stop()
    # The floor: between flaps the allocator keeps up to a ring of frames, or does not.
    early = min(size for count, size in samples.items() if 50 <= count < 100)
    assert (
        min(size for count, size in samples.items() if count >= 150) - early < 8_000_000
    )  # 150 leaked frames are 200 MB
    assert len(os.listdir("/proc/self/fd")) <= files
    wait_until(lambda: threading.active_count() <= threads, 5.0)
