"""One writer for a folder: a lock that the system takes back when its holder ends, however it ends.

Taken by agents on their run folder and recording, and by ground stations on theirs. It must not stop a run on a disk
that knows no locks.
"""

import errno
import fcntl
import json
import os
import pathlib

from stillwatch.transport.wire import LogError

LOCK_NAME = ".lock"
_MOST_BYTES = 1000


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
        self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                other = _holder(self._fd)
                os.close(self._fd)
                raise FolderInUse(f"{folder}: in use by {other}") from None
            return  # the disk knows no locks: network and some memory cards
        try:
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, json.dumps({"pid": os.getpid(), "holder": holder}).encode()[:_MOST_BYTES], 0)
        except OSError:
            pass  # a full disk: held all the same, only without a name

    def release(self) -> None:
        """Let others have the folder; may be called twice."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _holder(fd: int) -> str:
    """Return who wrote the lock file, in words."""
    try:
        said = json.loads(os.pread(fd, _MOST_BYTES, 0))
        return f"process {int(said['pid'])}, {said['holder']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
