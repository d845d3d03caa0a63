"""Paths that a command line names.

Called by the arguments of every command that reads a file or folder, and by those that keep what others send. One rule:
what is not there is bad usage; where nothing can be kept, the config is at fault.
"""

import os
import pathlib

from stillwatch.base import ConfigError, UsageError, absent
from stillwatch.settings import Problem
from stillwatch.transport.disk import FolderLock, hold_folder, info_of
from stillwatch.transport.wire import LogError


def existing_source(text: str) -> str:
    """Return what names a source as given; UsageError where it is a path alone (no scheme, no pattern) to nothing."""
    return text if any(mark in text for mark in ":*?[") else existing(text)


def existing(text: str) -> str:
    """Return the path as given; UsageError, so exit code 2, where there is no such file or folder."""
    if not os.path.exists(text):
        raise UsageError(absent(text))
    return text


def hold_out(out: str, holder: str) -> FolderLock | None:
    """Hold a station's folder for this process; ConfigError where it is no folder to keep what arrives in.

    None on a disk that is full at present: it is written once there is room.
    """
    path = pathlib.Path(out)
    try:
        lock = hold_folder(path, holder, needed=True)
    except LogError as error:
        raise ConfigError([Problem("ground", "--out", out, str(error))]) from None
    if info_of(path).get("role") == "agent":
        if lock is not None:
            lock.release()
        raise ConfigError([Problem("ground", "--out", out, f"{out} is an agent's own run: give another folder")])
    return lock
