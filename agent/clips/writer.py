"""Writes clips into a folder, on a thread of its own: neither a camera nor the pipeline waits for a disk.

Made by agent/clips/clips.py. The folder holds no more bytes than it was given: the oldest clips go first.
"""

import logging
import os
import pathlib
import queue
import threading
from contextlib import suppress

from stillwatch.clips.cutter import Clip
from stillwatch.clips.mp4 import write_mp4

logger = logging.getLogger(__name__)

SUFFIX = ".mp4"
_UNFINISHED = ".part"
WAIT_S = 60.0  # a disk that takes longer is broken
_WAITING = 1  # clips that wait while one is being written


class ClipWriter:
    """Takes clips with `put`, and counts what could not be written.

    Parameters
    ----------
    folder : Path
        Made with the first clip.
    max_bytes : int
    waits : bool
        Whether `put` waits for the disk, or a clip is lost that comes while others wait.
    """

    def __init__(self, folder: pathlib.Path, max_bytes: int, *, waits: bool):
        self._folder, self._max_bytes, self._waits = folder, max_bytes, waits
        self.written = 0
        self.lost = 0
        self._queue: queue.Queue[Clip | None] = queue.Queue(_WAITING)
        self._thread = threading.Thread(target=self._run, name="clips", daemon=True)
        self._thread.start()

    def put(self, clip: Clip) -> None:
        """Have a clip written."""
        try:
            self._queue.put(clip, block=self._waits, timeout=WAIT_S)
        except queue.Full:
            self.lost += 1

    def close(self, timeout_s: float) -> None:
        """Write what waits, if that takes no longer than this."""
        with suppress(queue.Full):
            self._queue.put(None, timeout=timeout_s)
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while (clip := self._queue.get()) is not None:
            try:
                write_clip(self._folder, clip)
                self.written += 1
                keep_newest(self._folder, self._max_bytes)
            except (OSError, ValueError) as error:
                self.lost += 1
                logger.warning("clip of alert %d not written: %s", clip.alert, error)


def write_clip(folder: pathlib.Path, clip: Clip) -> pathlib.Path:
    """Write a clip whole, or nothing; return its path. Raises OSError, ValueError."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{clip.alert}{SUFFIX}"
    unfinished = folder / f"{clip.alert}{_UNFINISHED}"
    try:
        write_mp4(unfinished, clip.stream, clip.packets)
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
    return path


def keep_newest(folder: pathlib.Path, max_bytes: int) -> None:
    """Delete the oldest clips of a folder until the rest fit; the newest stays."""
    clips = sorted(folder.glob(f"*{SUFFIX}"), key=lambda path: path.stat().st_mtime_ns)
    sizes = [path.stat().st_size for path in clips]
    total = sum(sizes)
    for path, size in zip(clips[:-1], sizes, strict=False):
        if total <= max_bytes:
            return
        path.unlink(missing_ok=True)
        total -= size
