"""One database behind two doors: `reading()` and `writing()`, for SQLite and PostgreSQL alike.

Every module of queries stands on it. It must not know a table. A full disk, a damaged file and a lost server come
out as `StoreError` with its `cause`, whatever the driver calls them.
"""

import pathlib
import shutil
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Engine, Table, create_engine, event
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.pool import QueuePool

from stillwatch.base import AgentError, ExitCode, scrub

BUSY_S = 15.0
CONNECTIONS = 12  # threads that read at once; more wait for a turn
ROOM_BYTES = 4_000_000  # less is a full disk, whatever SQLite calls what it met there
FULL, FAULTY, DAMAGED, GONE, FAILED = "full", "faulty", "damaged", "gone", "failed"
_SAYS = (
    (FULL, ("disk is full", "no space left", "could not extend file", "file too large")),
    (FAULTY, ("disk i/o error",)),
    (DAMAGED, ("malformed", "not a database", "file is encrypted", "invalid page")),
    (GONE, ("could not connect", "connection refused", "server closed", "connection is lost", "terminat",
            "unable to open", "readonly database", "connection failed")),
)  # fmt: skip


class StoreError(AgentError):
    """The store could not do it. `cause` is full, faulty (the disk), damaged, gone or failed; what was asked is not
    done."""

    exit_code = ExitCode.FAULT

    def __init__(self, message: str, cause: str):
        super().__init__(message)
        self.cause = cause


def cause_of(text: str) -> str:
    """Return what a driver's message means for the station."""
    lower = text.lower()
    return next((cause for cause, words in _SAYS if any(word in lower for word in words)), FAILED)


class Connected:
    """The engine and its two doors. Any thread may use it; one at a time writes.

    Parameters
    ----------
    address : str
        A path of a SQLite file, or postgresql://USER@HOST/NAME.

    Attributes
    ----------
    begun : int
        How often a new file took the place of a damaged one since it was opened: what was known of rows is void then.

    Raises
    ------
    StoreError
        The address is none, or psycopg is not installed.
    """

    def __init__(self, address: str):
        self.is_postgresql = address.startswith(("postgresql://", "postgres://", "postgresql+psycopg://"))
        self.path = None if self.is_postgresql else pathlib.Path(address.removeprefix("sqlite:///"))
        self.name = scrub(address)
        self.begun = 0
        self.is_suspect = False  # something could not be read: the file wants a look
        self._turn = threading.RLock()
        self.engine = self._engine(address)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Yield a connection of which all reads see one state of the store."""
        with self._told(), self.engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Yield a connection whose changes are kept together when the block ends, or not at all."""
        with self._turn, self._told(), self.engine.connect() as connection:
            connection.execution_options(stillwatch_writes=True)
            with connection.begin():
                yield connection

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Let nobody else write."""
        with self._turn:
            yield

    def rows(self, query: Any) -> list[dict[str, Any]]:
        """Return a query's rows as dicts."""
        with self.reading() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]

    def first(self, query: Any) -> dict[str, Any] | None:
        """Return a query's first row, or None."""
        with self.reading() as connection:
            row = connection.execute(query).mappings().first()
            return None if row is None else dict(row)

    def count(self, query: Any) -> int:
        """Return the number that a query gives."""
        with self.reading() as connection:
            return int(connection.execute(query).scalar() or 0)

    def insert(self, table: Table) -> Any:
        """Return the dialect's own insert, which knows conflicts."""
        return (postgresql if self.is_postgresql else sqlite).insert(table)

    def upsert(self, table: Table, values: dict[str, Any], keys: Sequence[str]) -> Any:
        """Return the statement that enters a row, or changes the one of the same keys to the given values."""
        statement = self.insert(table).values(values)
        changed = {name: value for name, value in values.items() if name not in keys}
        if not changed:
            return statement.on_conflict_do_nothing(index_elements=list(keys))
        return statement.on_conflict_do_update(index_elements=list(keys), set_=changed)

    def enter(self, connection: Connection, table: Table, values: dict[str, Any], keys: Sequence[str]) -> bool:
        """Insert a row; False, and nothing changed, where one of the same keys is there."""
        statement = self.insert(table).on_conflict_do_nothing(index_elements=list(keys))
        return connection.execute(statement.returning(*(table.c[key] for key in keys)), values).first() is not None

    def added(self, connection: Connection, table: Table, values: dict[str, Any]) -> int:
        """Insert a row and return its `id`."""
        return int(connection.execute(table.insert().returning(table.c.id), values).scalar_one())

    def close(self) -> None:
        """Close every connection that nobody uses."""
        self.engine.dispose()

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            text = scrub(str(error.orig or error)).strip().splitlines()[0][:300]
            cause = cause_of(text)
            if cause == FAILED and error.connection_invalidated:
                cause = GONE
            if cause == FAULTY and not self._has_room():
                cause = FULL
            self.is_suspect |= cause in (FAULTY, DAMAGED)
            raise StoreError(f"store {self.name}: {text}", cause) from error

    def _has_room(self) -> bool:
        try:
            return self.path is None or shutil.disk_usage(self.path.parent).free >= ROOM_BYTES
        except OSError:
            return True

    def _engine(self, address: str) -> Engine:
        if self.is_postgresql:
            try:
                import psycopg  # noqa: F401
            except ModuleNotFoundError:
                text = f"{self.name}: PostgreSQL needs pip install 'stillwatch[station,postgresql]'"
                raise StoreError(text, FAILED) from None
            place = address.partition("://")[2]
            try:
                return create_engine(f"postgresql+psycopg://{place}", pool_size=CONNECTIONS, pool_pre_ping=True)
            except (ArgumentError, ValueError) as error:
                raise StoreError(f"{self.name}: {scrub(str(error))}", FAILED) from None
        engine = create_engine(
            f"sqlite:///{self.path}",
            poolclass=QueuePool,
            pool_size=CONNECTIONS,
            pool_timeout=BUSY_S,
            connect_args={"timeout": BUSY_S, "check_same_thread": False},
        )
        event.listen(engine, "connect", _set_up_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine


def _set_up_sqlite(connection: sqlite3.Connection, _record: Any) -> None:
    connection.isolation_level = None  # SQLAlchemy says when a transaction begins, not Python's driver
    for pragma in (
        "journal_mode=WAL",
        "synchronous=FULL",  # what was committed stays after a power cut too
        "foreign_keys=ON",
        "cache_size=-4000",  # of each connection: what all of them read lies in the system's cache once
        "mmap_size=0",  # a damaged or cut file raises an error, not SIGBUS
        "journal_size_limit=33554432",
    ):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get("stillwatch_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
