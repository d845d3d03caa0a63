"""Real processes and real file systems for tests of power cuts and failing disks.

Run as a program it is a recorder without a pipeline, cheap enough to be killed many times.
"""

import contextlib
import os
import pathlib
import subprocess
import sys
import time

import numpy as np
import pytest

from stillwatch.transport.disk import recording as r
from stillwatch.transport.disk.record_format import Damage
from stillwatch.transport.disk.recording import read_recording

SMALL = (
    "source.width=160",
    "source.height=120",
    'publish.endpoint=""',
    "storage.min_free_bytes=0",
    "patches.memory=1200",
    "learning.first_epoch_frames=6",
    "encoder.warmup_frames=6",
    "features.step_px=12",
    "storage.checkpoint_every_s=1.0",
    "storage.max_file_bytes=200000",
)


def agent_command(*arguments) -> list[str]:
    settings = [part for setting in SMALL for part in ("--set", setting)]
    return [sys.executable, "-m", "stillwatch.tools.cli", *map(str, arguments), *settings]


def recorder_command(video, folder) -> list[str]:
    return [sys.executable, str(pathlib.Path(__file__)), str(video), str(folder)]


def start(command) -> subprocess.Popen:
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def frame_records(folder) -> list[r.FrameRecord]:
    """Return the frames of a recording, [] where there is none yet."""
    if not list(pathlib.Path(folder).glob("recording-*.swlog")):
        return []
    return [body for _, body in read_recording(folder) if isinstance(body, r.FrameRecord)]


def wait_for(condition, seconds=90.0, every_s=0.02):
    """Wait until `condition()` is true, and return its value."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(every_s)
    raise AssertionError(f"did not happen within {seconds} s")


def log_bytes(folder) -> int:
    total = 0
    for path in pathlib.Path(folder).glob("*.swlog"):
        with contextlib.suppress(FileNotFoundError):
            total += path.stat().st_size
    return total


def kill_at_random(command, folder, rng) -> int:
    """Start, let it write, kill -9 at a random moment; return the monotonic ns of the kill."""
    before = log_bytes(folder)
    process = start(command)
    try:
        wait_for(lambda: log_bytes(folder) > before + 20_000 or process.poll() is not None)
        assert process.poll() is None, process.stderr.read()
        time.sleep(float(rng.uniform(0.0, 0.5)))
    finally:
        killed_ns = time.monotonic_ns()
        process.kill()
        process.communicate()
    return killed_ns


def check_after_kill(folder, killed_ns) -> list[r.FrameRecord]:
    """Assert that everything up to a second before the kill is there and whole; return the frames."""
    damage: list[Damage] = []
    frames = [b for _, b in read_recording(folder, damage=damage) if isinstance(b, r.FrameRecord)]
    assert all(item.reason == "torn end" for item in damage)
    assert killed_ns - frames[-1].mono_ns < 1_000_000_000
    return frames


@contextlib.contextmanager
def small_disk(folder, megabytes=4, options=""):
    """Mount a tmpfs of a few megabytes; skip the test where that is not allowed."""
    folder.mkdir(exist_ok=True)
    mount_tmpfs(folder, megabytes, options)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False, capture_output=True)


def mount_tmpfs(folder, megabytes=4, options=""):
    extra = f",{options}" if options else ""
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m{extra}", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting a tmpfs is not allowed here")


def _record(video: str, folder: str) -> None:
    from recordings import storage_config

    from stillwatch.base.clock import RealClock
    from stillwatch.restart.recorder import Recorder
    from stillwatch.sources.capture import Capture
    from stillwatch.sources.registry import open_source
    from stillwatch.transport.disk.recording import Session

    clock, config = RealClock(), storage_config(max_file_bytes=200_000)
    recorder = Recorder(pathlib.Path(folder), config, clock, Session(agent="cam1", run=f"{os.getpid()}"))
    uri = f"{video}?loop=100000"
    capture = Capture(lambda: recorder.tap(open_source(uri, config.source, clock)), config.source, clock)
    capture.start()
    rng = np.random.default_rng(os.getpid())
    while (frame := capture.next(5.0)) is not None:
        recorder.frame(frame)
        recorder.decision(frame, accepted=True, value=float(rng.random()))


if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).parent))
    _record(*sys.argv[1:])
