"""The ear of folders: run folders, ground stations' folders and recordings that were dropped, read and read again.

Made by tools/station/ingest/ingest.py. Reading the same folder again changes nothing: each alert and each score is
known by its run. After a damaged store was set aside, all folders are read into the new one.
"""

import logging
import pathlib
import threading
import time
from collections.abc import Iterator

from stillwatch.base import Clock
from stillwatch.tools.station.ingest.desk import Desk
from stillwatch.tools.station.ingest.placing import plain
from stillwatch.tools.station.ingest.scribe import Scribe
from stillwatch.tools.station.store import FOLDER, Store, StoreError
from stillwatch.transport.disk import RUN_LOGS, log_files, open_run
from stillwatch.transport.wire import LogError, Score

_log = logging.getLogger("stillwatch.station")
LOOK_S = 10.0
A_STEP = 500  # messages of one transaction
DEEPEST = 3
MOST_FOLDERS = 10_000
MOST_CLIPS = 10_000
MOST_RUNS = 64  # agents of one folder: a ground station's holds one


class FolderEar:
    """Reads folders below the given places, whenever their files have changed.

    Parameters
    ----------
    places : sequence of str
        Run folders, or folders of such.
    pause_s : float
        Between two messages' batches: what is heard live goes first.
    """

    def __init__(self, places: list[str], store: Store, scribe: Scribe, clock: Clock, *, pause_s: float = 0.01):
        self._places = [pathlib.Path(place) for place in places]
        self._store, self._scribe, self._clock, self._pause_s = store, scribe, clock, pause_s
        self._not_before: dict[str, float] = {}

    def run(self, stop: threading.Event) -> None:
        """Look again and again until told to stop."""
        while not stop.is_set():
            try:
                self.read_changed(stop)
            except StoreError as error:
                _log.warning("folders wait: %s", error)
            stop.wait(LOOK_S)

    def read_changed(self, stop: threading.Event) -> int:
        """Read every folder whose files have changed; return how many were read."""
        known = {row["path"]: row["signature"] for row in self._store.folders()}
        n_read = 0
        for place in self._places:
            for folder in run_folders(place):
                path, signature = str(folder), signature_of(folder)
                if stop.is_set():
                    return n_read
                if known.get(path) == signature or time.monotonic() < self._not_before.get(path, 0.0):
                    continue
                began = time.monotonic()
                self._read(folder, signature, stop)
                self._not_before[path] = time.monotonic() + max(LOOK_S, 5 * (time.monotonic() - began))
                n_read += 1
        return n_read

    def _read(self, folder: pathlib.Path, signature: str, stop: threading.Event) -> None:
        desks: dict[str, Desk] = {}
        covered: dict[tuple[str, str], list[tuple[int, int]]] = {}
        trouble, n, run = "", 0, None
        try:
            run = open_run(folder)
            for _, message in run.messages():
                n += 1
                if message.agent not in desks and len(desks) >= MOST_RUNS:
                    continue
                desk = desks.setdefault(message.agent, Desk(message.agent, FOLDER, 1.0))
                key = message.agent, plain(message.run, 64)
                if key not in covered:
                    covered[key] = self._store.frames_kept(*key)
                if not (isinstance(message, Score) and _holds(covered[key], message.frame)):
                    desk.take(message, self._clock.wall_ns())
                if n % A_STEP == 0 and not self._commit(desks, stop):
                    return
        except LogError as error:
            trouble = str(error)
        if not self._commit(desks, stop, all_scores=True):
            return
        damage = "; ".join(str(item) for item in run.damage[:3]) if run is not None else ""
        values = {
            "path": str(folder),
            "agent": ", ".join(sorted(desks))[:200],
            "run": ", ".join(sorted({name for _, name in covered}))[:200],
            "read_ns": self._clock.wall_ns(),
            "messages": n,
            "unreadable": run.unreadable if run is not None else 0,
            "signature": signature,
            "trouble": plain(trouble or damage, 500),
        }
        with self._store.writing() as connection:
            self._store.take_folder(connection, values)
            for agent, of_run in covered:
                self._store.take_clips(connection, agent, of_run, clips_of(folder))
        _log.info("read %s: %d messages of %s", folder, n, values["agent"] or "nobody")

    def _commit(self, desks: dict[str, Desk], stop: threading.Event, *, all_scores: bool = False) -> bool:
        """Write, waiting for a store that takes nothing; False where the station ends meanwhile."""
        while not self._scribe.commit(list(desks.values()), all_scores=all_scores):
            if stop.wait(1.0):
                return False
        return not stop.wait(self._pause_s)


def run_folders(place: pathlib.Path, depth: int = 0) -> Iterator[pathlib.Path]:
    """Yield the folders at and below a place that hold messages or a recording; links are not followed."""
    if not place.is_dir() or (depth and place.is_symlink()):
        return
    if any(log_files(place, name) for name in RUN_LOGS):
        yield place
        return
    if depth < DEEPEST:
        for below in sorted(place.iterdir())[:MOST_FOLDERS]:
            yield from run_folders(below, depth + 1)


def clips_of(folder: pathlib.Path) -> dict[int, str]:
    """Return the clips of a run folder by event, as whole paths; links are not followed."""
    files = sorted((folder / "clips").glob("*.mp4"))[:MOST_CLIPS]
    return {int(file.stem): str(file.resolve()) for file in files if _is_clip(file)}


def _is_clip(file: pathlib.Path) -> bool:
    name = file.stem
    return name.isascii() and name.isdigit() and len(name) < 19 and file.is_file() and not file.is_symlink()


def signature_of(folder: pathlib.Path) -> str:
    """Return what changes whenever the folder's logs do."""
    stats = [path.stat() for name in RUN_LOGS for _, path in log_files(folder, name)]
    stats += [path.stat() for path in [folder / "clips"] if path.is_dir()]
    return f"{len(stats)} {sum(stat.st_size for stat in stats)} {max((stat.st_mtime_ns for stat in stats), default=0)}"


def _holds(stretches: list[tuple[int, int]], frame: int) -> bool:
    return any(first <= frame <= last for first, last in stretches)
