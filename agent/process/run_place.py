"""The run folder as a run finds it: writable, nobody else's, and of the same camera as before.

Called by agent/process/app.py before anything is opened. It must not write over what another run left there, nor leave
anything of a run that is refused.
"""

import contextlib
import os
import pathlib

from stillwatch.base import ConfigError
from stillwatch.settings import Problem
from stillwatch.transport.disk import FolderLock, hold_folder, info_of
from stillwatch.transport.wire import LogError


class Places:
    """The folders that one run writes into, held for this process."""

    def __init__(self) -> None:
        self._locks: list[FolderLock] = []
        self._made: list[pathlib.Path] = []  # what was not there before, the deepest first

    def take(self, path: pathlib.Path, key: str, holder: str, *, needed: bool) -> None:
        """Make a folder and hold it, as `take_folder` does."""
        self._made[:0] = [folder for folder in (path, *path.parents) if not os.path.lexists(folder)]
        lock = take_folder(path, key, holder, needed=needed)
        if lock is not None:
            self._locks.append(lock)

    def release(self) -> None:
        """Let others have the folders."""
        for lock in self._locks:
            lock.release()

    def undo(self) -> None:
        """Release, and take away what was made: the run is refused. A folder that holds anything stays."""
        for lock in self._locks:
            lock.withdraw()
        for folder in self._made:
            with contextlib.suppress(OSError):
                folder.rmdir()


def take_places(out: pathlib.Path, record: pathlib.Path | None, agent: str, source: str) -> Places:
    """Hold the run folder and the recording's. ConfigError where they are not ours to write; nothing is made then."""
    places, holder = Places(), f"agent {agent} on {source}"
    try:
        places.take(out, "--out", holder, needed=True)
        if record is not None and record.resolve() != out.resolve():
            places.take(record, "--record", holder, needed=False)
        check_same_camera(out, agent, source)
    except ConfigError:
        places.undo()
        raise
    return places


def take_folder(path: pathlib.Path, key: str, holder: str, *, needed: bool) -> FolderLock | None:
    """Make the folder and hold it, as `hold_folder` does; ConfigError (exit code 78) where that is refused."""
    try:
        return hold_folder(path, holder, needed=needed)
    except LogError as error:
        raise ConfigError([Problem("run", key, str(path), str(error))]) from None


def check_same_camera(path: pathlib.Path, agent: str, source: str) -> None:
    """Raise ConfigError where the folder holds a run of another camera: its model and its report would mix both."""
    before = info_of(path)
    problems = []
    if before.get("role") == "ground":
        message = f"{path} holds what a ground station received: give another --out"
        problems.append(Problem("run", "--out", str(path), message))
    for name, now in (("agent", agent), ("source", source)):
        then = before.get(name, now)
        if then != now and before.get("role") == "agent":
            message = f"{path} holds a run of {name} {then}, not of {now}: give another --out"
            problems.append(Problem("run", "--out", str(path), message))
    if problems:
        raise ConfigError(problems)
