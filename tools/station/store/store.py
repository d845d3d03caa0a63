"""The station's store: opened, checked, brought to this version; a damaged file is set aside, never written to again.

Handed to page, ingest and tell. All queries are methods of `Store`.
"""

import datetime
import fcntl
import os
import pathlib
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import func, select

from stillwatch.tools.station.store.agents import AgentQueries
from stillwatch.tools.station.store.alerts import AlertQueries
from stillwatch.tools.station.store.connection import DAMAGED, FAILED, StoreError
from stillwatch.tools.station.store.migrations import migrate
from stillwatch.tools.station.store.queue import QueueQueries
from stillwatch.tools.station.store.retention import RetentionQueries
from stillwatch.tools.station.store.scores import ScoreQueries
from stillwatch.tools.station.store.tables import ALERTS
from stillwatch.tools.station.store.taking import TakingQueries
from stillwatch.tools.station.store.users import UserQueries

_HEAD = b"SQLite format 3\x00"
WHOLE_CHECK_BYTES = 500_000_000  # a larger file gets the quick check at a start: no look into every index


class Store(AgentQueries, AlertQueries, ScoreQueries, TakingQueries, QueueQueries, UserQueries, RetentionQueries):
    """Everything that the station keeps. Made by `open_store`; any thread may use it.

    Attributes
    ----------
    said : list of str
        What people should know of it, in words: each file that was set aside.
    """

    def __init__(self, address: str):
        super().__init__(address)
        self.said: list[str] = []
        self._eye: int | None = None  # open on the file for as long as SQLite is: see `fault`
        self._looks = threading.Lock()

    @contextmanager
    def owned(self) -> Iterator[None]:
        """Keep a SQLite store to this process; StoreError where another station has it. A server's is shared."""
        if self.path is None:
            yield
            return
        lock = os.open(self.path.with_name(f"{self.path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise StoreError(
                f"store {self.path}: another station uses it: stop it, or name another store", FAILED
            ) from None
        except OSError:
            pass  # a disk that knows no locks
        try:
            yield
        finally:
            os.close(lock)

    def fault(self, *, is_whole: bool = False) -> str:
        """Return in words what is wrong with the SQLite file while the station uses it, or nothing.

        What SQLite holds in memory hides a damaged file until it reads the page again, and for good where a checkpoint
        writes over it; so the file itself is looked at: whether it is there, is the one that was opened, and begins as
        a store does. `is_whole`: every page of it too, with its indexes.

        The look is through a descriptor that stays open: to close one takes all locks of this process from the file,
        SQLite's too [1]_. Whoever closed a connection elsewhere then took itself for the last one and removed the log
        under us, and what was stored from there on was lost with this process.

        References
        ----------
        .. [1] SQLite, How To Corrupt An SQLite Database File, section 2.2: POSIX advisory locks canceled by a separate
           thread doing close().
        """
        if self.path is None:
            return ""
        self.is_suspect &= not is_whole
        try:
            found = _identity(self.path.stat())
            with self._looks:
                is_other = self._eye is not None and found != _identity(os.fstat(self._eye))
                head = _HEAD if self._eye is None else os.pread(self._eye, len(_HEAD), 0)
        except FileNotFoundError:
            return f"store {self.path} is gone"
        except OSError:
            return ""  # whoever uses it next says why
        if is_other:
            return f"store {self.path} was replaced by another file while the station used it"
        if head != _HEAD and head:
            return f"store {self.path} is damaged: it no longer begins as one"
        return damage_of(self.path) if is_whole else ""

    def begin_anew(self, fault: str, begun: int) -> None:
        """Set a damaged SQLite file aside and begin a new one in its place; `said` tells it from then on.

        `begun` is the store's when the fault was met: where somebody else has begun anew since, nothing is done.

        Raises
        ------
        StoreError, OSError
            The file cannot be moved, or no new one made.
        """
        assert self.path is not None, "a server's database is not ours to move"
        with self.alone():
            if begun != self.begun:
                return
            self.engine.dispose()
            aside = set_aside(self.path)
            self.begun += 1
            self.said.append(f"{fault}; it was set aside as {aside} and a new store begun")
            migrate(self)
            self.note_file()

    def note_file(self) -> None:
        """Know the file again that is open now."""
        if self.path is None:
            return
        with self._looks:
            if self._eye is not None and _identity(os.fstat(self._eye)) == _identity(self.path.stat()):
                return
            self._shut_eye()
            self._eye = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)

    def close(self) -> None:
        """Close every connection that nobody uses, and behind them what looks at the file."""
        super().close()
        with self._looks:
            self._shut_eye()

    def _shut_eye(self) -> None:
        if self._eye is not None:
            os.close(self._eye)
        self._eye = None

    def alert_count(self) -> int:
        """Return how many alerts are kept."""
        return self.count(select(func.count()).select_from(ALERTS))


def open_store(address: str) -> tuple[Store, str]:
    """Return the store at a path or postgresql:// address, made where there is none, and what is to be said of it.

    A SQLite file that is damaged is set aside under a name with the time, and a new one begun: the second value says so
    (else it is empty).

    Raises
    ------
    StoreError
        The place cannot be written, the server is not there, or the store is of a later version.
    """
    store = Store(address)
    said = ""
    try:
        if store.path is not None:
            store.path.parent.mkdir(parents=True, exist_ok=True)
            fault = damage_of(store.path)
            if fault:
                said = f"{fault}; it was set aside as {set_aside(store.path)} and a new store begun"
        migrate(store)
        store.note_file()
    except OSError as error:
        store.close()
        raise StoreError(f"store {store.name}: {error.strerror}", "failed") from error
    except StoreError as error:
        store.close()
        if error.cause == DAMAGED and store.path is not None and not said:
            said = f"{error}; it was set aside as {set_aside(store.path)} and a new store begun"
            store = Store(address)
            migrate(store)
            store.note_file()
            return store, said
        raise
    return store, said


def damage_of(path: pathlib.Path) -> str:
    """Return what is wrong with a SQLite file, in words, or nothing; a file that is not there is whole."""
    if not path.exists() or path.stat().st_size == 0:
        return ""
    check = "integrity_check(3)" if path.stat().st_size <= WHOLE_CHECK_BYTES else "quick_check(3)"
    try:
        connection = sqlite3.connect(path, timeout=5.0)
        try:
            found = [str(row[0]) for row in connection.execute(f"PRAGMA {check}")]
        finally:
            connection.close()
    except sqlite3.OperationalError:
        return ""  # locked or not to be opened: whoever opens it next says why
    except sqlite3.DatabaseError as error:
        return f"store {path} is damaged: {error}"
    return "" if found == ["ok"] else f"store {path} is damaged: {'; '.join(found)[:200]}"


def set_aside(path: pathlib.Path) -> pathlib.Path:
    """Rename a damaged file, and the log that belongs to it; return its new name."""
    stamp = datetime.datetime.now(datetime.UTC).strftime("%Y%m%dT%H%M%SZ")
    aside = path.with_name(f"{path.name}.damaged-{stamp}")
    number = 1
    while aside.exists():
        number += 1
        aside = path.with_name(f"{path.name}.damaged-{stamp}-{number}")
    for suffix in ("", "-wal", "-shm"):  # a file that is gone may have left its log, which fits no other
        beside = path.with_name(path.name + suffix)
        if beside.exists():
            os.replace(beside, aside.with_name(aside.name + suffix))
    return aside


def _identity(stat: os.stat_result) -> tuple[int, int]:
    return stat.st_dev, stat.st_ino
