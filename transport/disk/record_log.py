"""An append-only log of checksummed records, valid after every record, that outlives crashes and full disks.

Used by run folders, recordings, the outbox and ground stations. It must not raise for what a disk does while
running: it stops, says so once, counts what is lost and begins again by itself.
"""

import errno
import os
import pathlib
import threading
from collections.abc import Callable, Iterator
from typing import Protocol

import msgpack

from stillwatch.transport.base import Clock
from stillwatch.transport.disk.durable import sync_folder
from stillwatch.transport.disk.record_format import (
    FILE_MAGIC,
    FIRST_FREE_KIND,
    HEADER_BYTES,
    KIND_GAP,
    MAX_BODY_BYTES,
    Damage,
    Record,
    encode_header,
    file_name,
    log_files,
    read_file,
)
from stillwatch.transport.wire import LogError

RETRY_S = 2.0
_CHECK_S = 1.0
_RESUME_BYTES = 4 * 1024 * 1024
_STATES = {
    errno.ENOSPC: "disk_full",
    errno.EDQUOT: "disk_full",
    errno.EFBIG: "disk_full",
    errno.EROFS: "read_only",
    errno.EACCES: "read_only",
    errno.EPERM: "read_only",
    errno.ENOENT: "gone",
    errno.ENOTDIR: "gone",
    errno.ENODEV: "gone",
    errno.ESTALE: "gone",
}


class RoomMaker(Protocol):
    """Deletes old files to keep a folder within its limits; transport/disk/retention.py has the one in use."""

    def make_room(self, keep: pathlib.Path | None) -> bool:
        """Return whether more may be written, after deleting what may be deleted, but never `keep`."""
        ...


class RecordWriter:
    """Appends records to the files of one log in one folder.

    Not thread-safe: one thread appends. With `sync_every_s` above 0 a thread of its own calls fdatasync, so that
    a slow card never stalls the appending thread; at 0 every append is on the disk when it returns.

    Parameters
    ----------
    folder, name
        Files are `folder/name-SEQUENCE.swlog`. An existing log is continued: a torn end is cut off first.
    clock
        `wall_ns` stamps records without a time of their own; `monotonic_ns` drives splits and retries.
    max_file_bytes, max_file_s
        A new file is begun when the current one would exceed either.
    sync_every_s
        Most that a power cut may cost, in seconds. A killed process loses nothing: each record is one write.
    preamble
        Called at the head of each new file; its (kind, body) records make the file understandable alone.
    room
        Asked about once a second and at each new file whether there is room to write.
    on_state
        Called with (state, message) at each change of `state`.

    Attributes
    ----------
    state : str
        "ok", "disk_full", "read_only", "gone" (disk or folder) or "failed" (any other I/O error).
    lost_records, lost_bytes : int
        What could not be written since this writer was made. The log itself holds a gap record for each outage.
    sequence : int
        Number of the next record.
    began_file : bool
        Whether the file being written was begun by this writer, with a preamble, not continued.
    """

    def __init__(
        self,
        folder: pathlib.Path | str,
        name: str = "messages",
        *,
        clock: Clock,
        max_file_bytes: int = 16 * 1024 * 1024,
        max_file_s: float = 3600.0,
        sync_every_s: float = 1.0,
        preamble: Callable[[], list[tuple[int, bytes]]] | None = None,
        room: RoomMaker | None = None,
        on_state: Callable[[str, str], None] | None = None,
    ):
        self.folder = pathlib.Path(folder)
        self.name = name
        self.state = "ok"
        self.sequence = 0
        self.lost_records = 0
        self.lost_bytes = 0
        self.written_bytes = 0
        self.began_file = False
        self._clock = clock
        self._max_file_bytes = max_file_bytes
        self._max_file_ns = int(max_file_s * 1e9)
        self._always_sync = sync_every_s == 0.0
        self._preamble = preamble
        self._room = room
        self._on_state = on_state
        self._fd = -1
        self._path: pathlib.Path | None = None
        self._size = 0
        self._opened_ns = self._checked_ns = self._failed_ns = clock.monotonic_ns()
        self._gap: dict[str, int] | None = None
        self._ever_opened = False
        self._closed = False
        self._on_root_disk = True
        self._sync = None if sync_every_s == 0.0 else _SyncThread(sync_every_s)
        self._start()

    def append(self, kind: int, body: bytes, t_ns: int | None = None) -> int:
        """Write one record and return its sequence number, or -1 if it is lost because the disk fails.

        Raises
        ------
        LogError
            The record itself is impossible: reserved kind or a body over 64 MiB.
        """
        if not FIRST_FREE_KIND <= kind <= 0xFFFF or len(body) > MAX_BODY_BYTES:
            raise LogError(
                f"record of kind {kind} and {len(body)} bytes: kinds are {FIRST_FREE_KIND} to 65535, "
                f"bodies at most {MAX_BODY_BYTES} bytes"
            )
        if self._closed:  # by a thread that has not yet heard of the end
            return -1
        stamp = self._clock.wall_ns() if t_ns is None else t_ns
        if not self._ready(len(body)):
            return self._lose(body, stamp)
        try:
            return self._write(kind, body, stamp)
        except OSError as error:
            self._fail(error)
            return self._lose(body, stamp)

    def flush(self) -> bool:
        """Force what is written to the disk; return whether it is there."""
        if self._fd < 0:
            return False
        try:
            os.fdatasync(self._fd)
        except OSError as error:
            self._fail(error)
            return False
        return True

    def close(self) -> None:
        """Flush and close. What is appended afterwards is not written."""
        self._closed = True
        if self._sync is not None:
            self._sync.stop()
        self.flush()
        self._close_file()

    def _start(self) -> None:
        """Find where the log ends and open it; a disk that fails already is a state, not an error."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            files = log_files(self.folder, self.name)
            self.sequence = _end_of_log(files)
            self._open(files[-1][1] if files else None)
        except OSError as error:
            self._fail(error)

    def _ready(self, n_bytes: int) -> bool:
        """Make sure that a file with room for a record is open; return False while the disk fails."""
        now = self._clock.monotonic_ns()
        if self._fd < 0 and now - self._failed_ns < RETRY_S * 1e9:
            return False
        try:
            if self._fd < 0:
                self._failed_ns = now
                self._reopen()
            elif now - self._checked_ns >= _CHECK_S * 1e9:
                self._checked_ns = now
                self._check_disk()
            full = self._size + HEADER_BYTES + n_bytes > self._max_file_bytes and self._size > len(FILE_MAGIC)
            if full or now - self._opened_ns > self._max_file_ns:
                self._close_file()
                self._open(None)
        except OSError as error:
            self._fail(error)
            return False
        return True

    def _check_disk(self) -> None:
        """Raise OSError where the files are no longer ours, a sync failed or the room is used up."""
        if self._sync is not None and self._sync.error is not None:
            error, self._sync.error = self._sync.error, None
            raise error
        assert self._path is not None
        there = os.stat(self._path)
        here = os.fstat(self._fd)
        if (there.st_ino, there.st_dev) != (here.st_ino, here.st_dev):
            raise FileNotFoundError(errno.ENOENT, "the file was replaced", str(self._path))
        if self._room is not None and not self._room.make_room(self._path):
            raise OSError(errno.ENOSPC, "no room left under the storage limits", str(self.folder))

    def _reopen(self) -> None:
        """Begin a new file after a failure, on the same kind of disk, and note the gap in it."""
        if not self._on_root_disk and _disk_of(self.folder) == os.stat("/").st_dev:
            raise FileNotFoundError(errno.ENOENT, "the disk is not mounted", str(self.folder))
        self.folder.mkdir(parents=True, exist_ok=True)
        disk = os.statvfs(self.folder)
        if disk.f_bavail * disk.f_frsize < min(_RESUME_BYTES, disk.f_blocks * disk.f_frsize // 50):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.folder))  # or it would flap
        if not self._ever_opened:  # the log was never seen: it may hold records
            self.sequence = max(self.sequence, _end_of_log(log_files(self.folder, self.name)))
        self._open(None)
        if self._gap is not None:
            gap = self._gap
            body = msgpack.packb({**gap, "reason": self.state})
            self._write(KIND_GAP, body, gap["from_ns"])
            self._gap = None
        lost = self.lost_records
        self._set_state("ok", f"{self.folder}: {self.name} is written again; {lost} records lost so far")

    def _open(self, path: pathlib.Path | None) -> None:
        """Open `path` for appending, or a new file where that is None or over its size."""
        if self._room is not None and not self._room.make_room(path):
            raise OSError(errno.ENOSPC, "no room left under the storage limits", str(self.folder))
        if path is not None and path.stat().st_size >= self._max_file_bytes:
            path = None
        if path is None:
            path = self._unused_path()
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._path = path
        self._size = os.fstat(self._fd).st_size
        if self._size <= len(FILE_MAGIC):  # new, or a file that was never more than begun
            os.ftruncate(self._fd, 0)
            self._size = 0
        self.began_file = self._size == 0
        self._opened_ns = self._checked_ns = self._clock.monotonic_ns()
        if self.began_file:
            self._put([FILE_MAGIC])
            sync_folder(self.folder)
        self._on_root_disk = os.fstat(self._fd).st_dev == os.stat("/").st_dev
        self._ever_opened = True
        if self._sync is not None:
            self._sync.watch(self._fd)
        if self.began_file and self._preamble is not None:
            for kind, body in self._preamble():
                self._write(kind, body, self._clock.wall_ns())

    def _unused_path(self) -> pathlib.Path:
        """Return the next file's path, passing over numbers under which an unreadable file already stands."""
        path = self.folder / file_name(self.name, self.sequence)
        while path.exists() and path.stat().st_size > len(FILE_MAGIC):
            self.sequence += 1
            path = self.folder / file_name(self.name, self.sequence)
        return path

    def _write(self, kind: int, body: bytes, t_ns: int) -> int:
        sequence = self.sequence
        self._put([encode_header(kind, sequence, t_ns, body), body])
        if self._always_sync:
            os.fdatasync(self._fd)
        self.sequence += 1
        return sequence

    def _put(self, parts: list[bytes]) -> None:
        """Write all parts in one call; on a short write cut the file back to where it was and raise ENOSPC."""
        total = sum(len(part) for part in parts)
        written = os.writev(self._fd, parts)
        if written != total:
            os.ftruncate(self._fd, self._size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))
        self._size += total
        self.written_bytes += total

    def _lose(self, body: bytes, t_ns: int) -> int:
        self.lost_records += 1
        self.lost_bytes += len(body)
        if self._gap is None:
            self._gap = {"lost_records": 0, "lost_bytes": 0, "from_ns": t_ns, "to_ns": t_ns}
        self._gap["lost_records"] += 1
        self._gap["lost_bytes"] += len(body)
        self._gap["to_ns"] = t_ns
        return -1

    def _fail(self, error: OSError) -> None:
        self._failed_ns = self._clock.monotonic_ns()
        self._close_file()
        state = _STATES.get(error.errno or 0, "failed")
        self._set_state(state, f"{self.folder}: {self.name} is not written ({error.strerror or error}); will try again")

    def _set_state(self, state: str, message: str) -> None:
        if state != self.state:
            self.state = state
            if self._on_state is not None:
                self._on_state(state, message)

    def _close_file(self) -> None:
        if self._sync is not None:
            self._sync.watch(-1)
        if self._fd >= 0:
            try:
                os.close(self._fd)
            except OSError:
                pass  # the descriptor is gone either way; the failure was or will be met by the next write
            self._fd = -1


class _SyncThread:
    """Calls fdatasync on the file being written, every so often, away from the thread that writes it."""

    def __init__(self, every_s: float):
        self.error: OSError | None = None
        self._every_s = every_s
        self._fd = -1
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="record-sync", daemon=True)
        self._thread.start()

    def watch(self, fd: int) -> None:
        """Sync this descriptor from now on (a copy of it, closed by this thread); -1 for none."""
        copy = os.dup(fd) if fd >= 0 else -1
        with self._lock:
            old, self._fd = self._fd, copy
        if old >= 0:
            self._sync_and_close(old)

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        self.watch(-1)

    def _run(self) -> None:
        while not self._stop.wait(self._every_s):
            with self._lock:
                fd = os.dup(self._fd) if self._fd >= 0 else -1
            if fd >= 0:
                self._sync_and_close(fd)

    def _sync_and_close(self, fd: int) -> None:
        try:
            os.fdatasync(fd)
        except OSError as error:
            self.error = error
        finally:
            os.close(fd)


def read_records(
    path: pathlib.Path | str, *, name: str | None = None, damage: list[Damage] | None = None, from_sequence: int = 0
) -> Iterator[Record]:
    """Yield every whole record of a log file, or of one log in a folder, in order; the log's own records too.

    Parameters
    ----------
    name : str or None
        Which log of the folder; None where the folder holds only one.
    damage : list or None
        Receives a `Damage` for each stretch that could not be read; None ignores damage.
    from_sequence : int
        Skip records before this one; whole files before it are not opened.

    Raises
    ------
    LogError
        No log there, several of them and no name, or a file that cannot be read.
    """
    notes: list[Damage] = [] if damage is None else damage
    path = pathlib.Path(path)
    files = [(0, path)] if path.is_file() else _folder_files(path, name)
    for i, (_, file) in enumerate(files):
        if i + 1 < len(files) and files[i + 1][0] <= from_sequence:
            continue
        try:
            for record in read_file(file, notes):
                if record.sequence >= from_sequence:
                    yield record
        except OSError as error:
            raise LogError(f"{file}: cannot be read: {error.strerror or error}; try a copy on another disk") from error


def _folder_files(folder: pathlib.Path, name: str | None) -> list[tuple[int, pathlib.Path]]:
    files = log_files(folder, name)
    names = {file.name.rpartition("-")[0] for _, file in files}
    if not files:
        raise LogError(
            f"{folder}: holds no record log{f' named {name}' if name else ''}; give what --out or --record named"
        )
    if len(names) > 1:
        raise LogError(f"{folder}: holds several logs ({', '.join(sorted(names))}): say which one")
    return files


def _end_of_log(files: list[tuple[int, pathlib.Path]]) -> int:
    """Return the sequence number after the log's last record, and cut a torn end off its last file."""
    if not files:
        return 0
    first, path = files[-1]
    damage: list[Damage] = []
    following = first
    for record in read_file(path, damage):
        following = max(following, record.sequence + 1)
    for item in damage:
        if item.sequence is not None and item.reason != "torn end":
            following = max(following, item.sequence + 1)
    if damage and damage[-1].reason == "torn end" and damage[-1].end == path.stat().st_size:
        os.truncate(path, damage[-1].offset)
    return following


def _disk_of(path: pathlib.Path) -> int:
    """Return the device of `path`, or of the nearest folder above it that exists."""
    while not path.exists():
        path = path.parent
    return path.stat().st_dev
