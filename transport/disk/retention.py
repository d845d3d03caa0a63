"""Keeps a folder of record logs within its bytes, age and the disk's free space by deleting the oldest files.

Asked by RecordWriter about once a second. It reads the folder each time and trusts no index; files that are not
record logs are never touched, and a file that cannot be deleted is passed over.
"""

import os
import pathlib

from stillwatch.transport.base import Clock
from stillwatch.transport.disk.record_format import log_files

_RESUME_RATIO = 1.1  # free space must exceed the minimum by this before writing begins again, or it would flap


class Retention:
    """Deletes the oldest files of one folder's logs first.

    Age is wall time as it was when this object was made plus monotonic time since, so that a clock stepped by a
    day while running deletes nothing.
    """

    def __init__(
        self,
        folder: pathlib.Path | str,
        *,
        clock: Clock,
        max_bytes: int,
        min_free_bytes: int = 0,
        max_age_s: float = 1e12,
        name: str | None = None,
    ):
        self.folder = pathlib.Path(folder)
        self._name = name
        self._clock = clock
        self._max_bytes = max_bytes
        self._min_free_bytes = min_free_bytes
        self._max_age_s = max_age_s
        self._wall_minus_mono_ns = clock.wall_ns() - clock.monotonic_ns()
        self._was_full = False

    def make_room(self, keep: pathlib.Path | None) -> bool:
        """Delete what the limits ask for, never `keep`; return whether more may be written."""
        files = []
        for _, path in log_files(self.folder, self._name):
            try:
                stat = path.stat()
            except FileNotFoundError:
                continue
            files.append((path, stat.st_size, stat.st_mtime))
        total = sum(size for _, size, _ in files)
        now_s = (self._clock.monotonic_ns() + self._wall_minus_mono_ns) / 1e9
        wanted = self._min_free_bytes * (_RESUME_RATIO if self._was_full else 1.0)
        free = free_bytes(self.folder)
        for path, size, modified_s in files:
            too_old = now_s - modified_s > self._max_age_s
            if path == keep or not (too_old or total > self._max_bytes or free < wanted):
                continue
            if _delete(path):
                total -= size
                free = free_bytes(self.folder)
        self._was_full = free < wanted or total > self._max_bytes
        return not self._was_full


def _delete(path: pathlib.Path) -> bool:
    try:
        path.unlink()
    except OSError:
        return False
    return True


def free_bytes(folder: pathlib.Path) -> int:
    """Return what an ordinary user may still write on the disk of `folder`, which must exist."""
    stat = os.statvfs(folder)
    return stat.f_bavail * stat.f_frsize
