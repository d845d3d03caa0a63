"""Result files that a command line names: written whole or not at all, so that a full disk leaves the earlier one.

Called by every command that writes a page, a table or a picture where the user said.
"""

import os
import pathlib

from stillwatch.base import UsageError, shown
from stillwatch.transport.disk import write_durably


def write_result(path: pathlib.Path | str, data: bytes | str, remedy: str = "with --out") -> None:
    """Replace `path` by the data, text as UTF-8; a pipe or a device (/dev/stdout) takes it as it comes.

    UsageError, with what to do, where it cannot be written; then an earlier file is still there.
    """
    path = pathlib.Path(path)
    coded = shown(data).encode() if isinstance(data, str) else data
    try:
        if path.exists() and not path.is_file():
            with open(path, "wb") as taker:
                taker.write(coded)
        else:
            write_durably(os.path.realpath(path), coded)  # through a link, which stays one
    except OSError as error:
        raise UsageError(f"{path}: not written: {error.strerror or error}; name another place {remedy}") from error
