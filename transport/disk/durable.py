"""Small files replaced whole: after a crash or power cut there is the old one or the new one, never half of one.

Used by checkpoints, run folders and recordings. It must not hide a disk's refusal: OSError goes to the caller.
"""

import contextlib
import os
import pathlib


def write_durably(path: pathlib.Path | str, data: bytes) -> None:
    """Replace `path` by `data`: temporary file beside it, fsync, rename, fsync of the folder.

    Raises OSError; then no temporary file is left.
    """
    path = pathlib.Path(path)
    temporary = path.with_name(f"{path.name}.tmp")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        os.fsync(fd)
        os.replace(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    finally:
        os.close(fd)
    sync_folder(path.parent)


def sync_folder(folder: pathlib.Path | str) -> None:
    """Force a folder's entries to the disk: a renamed or new file is not safe before this."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
