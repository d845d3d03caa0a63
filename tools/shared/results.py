"""Result files that a command line names: written whole or not at all, so that a full disk leaves the earlier one.

Called by every command that writes a page, a table or a recording where the user said.
"""

import contextlib
import os
import pathlib
from collections.abc import Iterator
from typing import BinaryIO

from stillwatch.base import UsageError, shown


def write_result(path: pathlib.Path | str, data: bytes | str, remedy: str = "with --out") -> None:
    """Replace `path` by the data, text as UTF-8; else as `result_stream`."""
    with result_stream(path, remedy) as stream:
        stream.write(shown(data).encode() if isinstance(data, str) else data)


@contextlib.contextmanager
def result_stream(path: pathlib.Path | str, remedy: str = "with --out") -> Iterator[BinaryIO]:
    """Yield what a result is written to; it takes the place of `path` once all is written, through a link too.

    A pipe or a device (/dev/stdout) takes it as it comes. UsageError, with what to do, where it cannot be written;
    then, and where its maker fails, an earlier file is still there.
    """
    is_plain = not os.path.exists(path) or os.path.isfile(path)
    target = os.path.realpath(path) if is_plain else path  # what /dev/stdout leads to has no path of its own
    written = f"{target}.tmp" if is_plain else path
    try:
        with open(written, "wb") as stream:
            yield stream
        if is_plain:
            os.replace(written, target)
    except OSError as error:
        raise UsageError(f"{path}: not written: {error.strerror or error}; name another place {remedy}") from error
    finally:
        if is_plain:
            with contextlib.suppress(OSError):  # it is gone where it took its place
                os.unlink(written)
