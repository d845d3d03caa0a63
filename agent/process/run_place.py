"""The run folder as a run finds it: writable, nobody else's, and of the same camera as before.

Called by agent/process/app.py before anything is opened. It must not write over what another run left there.
"""

import errno
import json
import pathlib
from typing import Any

from stillwatch.base import ConfigError
from stillwatch.settings import Problem
from stillwatch.transport.disk import FolderInUse, FolderLock

# What will not go away by waiting; a full, read-only or absent disk may.
_LASTING = (errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EEXIST, errno.ENAMETOOLONG, errno.ELOOP)


def take_folder(path: pathlib.Path, key: str, holder: str, *, needed: bool) -> FolderLock | None:
    """Make the folder and hold it for this process; None where its disk takes nothing at present.

    `needed`: a disk that takes nothing at the start is refused as well. Raises ConfigError (exit code 78).
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        return FolderLock(path, holder)
    except FolderInUse as error:
        raise ConfigError([Problem("run", key, str(path), f"{error}: stop it, or give another folder")]) from None
    except OSError as error:
        if needed and error.errno not in (errno.ENOSPC, errno.EDQUOT) or error.errno in _LASTING:
            why = "is a file" if error.errno == errno.EEXIST else f"cannot be written: {error.strerror}"
            message = f"{why}; give another folder"
            raise ConfigError([Problem("run", key, str(path), f"{path} {message}")]) from None
        return None


def check_same_camera(path: pathlib.Path, agent: str, source: str) -> None:
    """Raise ConfigError where the folder holds a run of another camera: its model and its report would mix both."""
    before = _read(path / "run.json")
    problems = []
    for name, now in (("agent", agent), ("source", source)):
        then = before.get(name, now)
        if then != now and before.get("role") == "agent":
            message = f"{path} holds a run of {name} {then}, not of {now}: give another --out"
            problems.append(Problem("run", "--out", str(path), message))
    if problems:
        raise ConfigError(problems)


def _read(path: pathlib.Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
