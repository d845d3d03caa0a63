"""One writer for a folder: a lock that the system takes back when its holder ends, however it ends.

Taken by agents on their run folder and recording, and by ground stations on theirs. It must not stop a run on a disk
that knows no locks.
"""

import contextlib
import errno
import fcntl
import json
import os
import pathlib

from stillwatch.transport.wire import LogError

LOCK_NAME = ".lock"
_MOST_BYTES = 1000
# What will not go away by waiting; a full, read-only or absent disk may.
_LASTING = (errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EEXIST, errno.ENAMETOOLONG, errno.ELOOP)


class FolderInUse(LogError):
    """Another process writes into the folder."""


class FolderLock:
    """Holds a folder for this process until `release`, or its end.

    Parameters
    ----------
    folder : path
        Must exist.
    holder : str
        Who we are, for those that we keep out: one line.

    Raises
    ------
    FolderInUse
        Another process holds it; says which.
    OSError
        The folder takes no file.
    """

    def __init__(self, folder: pathlib.Path | str, holder: str):
        self.path = pathlib.Path(folder) / LOCK_NAME
        self._is_ours = not self.path.exists()
        self._fd = self._hold(folder)
        try:
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, json.dumps({"pid": os.getpid(), "holder": holder}).encode()[:_MOST_BYTES], 0)
        except OSError:
            pass  # a full disk: held all the same, only without a name

    def _hold(self, folder: pathlib.Path | str) -> int:
        """Return the descriptor of the locked file."""
        while True:
            fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                    other = _holder(fd)
                    os.close(fd)
                    raise FolderInUse(f"{folder}: in use by {other}") from None
                return fd  # the disk knows no locks: network and some memory cards
            if os.fstat(fd).st_nlink:
                return fd
            os.close(fd)  # withdrawn between our two calls: others would lock another file of this name

    def withdraw(self) -> None:
        """Release, and leave no file where there was none before."""
        if self._is_ours and self._fd >= 0:
            with contextlib.suppress(OSError):
                self.path.unlink()
        self.release()

    def release(self) -> None:
        """Let others have the folder; may be called twice."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def hold_folder(path: pathlib.Path, holder: str, *, needed: bool) -> FolderLock | None:
    """Make the folder and hold it for this process; None where its disk takes nothing at present.

    `needed`: a disk that takes nothing at the start is refused as well. Raises LogError, which says what to do.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        return FolderLock(path, holder)
    except FolderInUse as error:
        raise LogError(f"{error}: stop it, or give another folder") from None
    except OSError as error:
        if needed and error.errno not in (errno.ENOSPC, errno.EDQUOT) or error.errno in _LASTING:
            why = "is a file" if error.errno == errno.EEXIST else f"cannot be written: {error.strerror}"
            raise LogError(f"{path} {why}; give another folder") from None
        return None


def _holder(fd: int) -> str:
    """Return who wrote the lock file, in words."""
    try:
        said = json.loads(os.pread(fd, _MOST_BYTES, 0))
        return f"process {int(said['pid'])}, {said['holder']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
