"""Who hears an agent where several stations share one store: whoever holds its lock.

Used by the ears of tools/station/ingest and by tools/station/tell. On PostgreSQL a claim is an advisory lock of one
connection: it ends with the process, however that ends. A SQLite store has one station, which claims everything.
"""

import hashlib
import threading

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from stillwatch.tools.station.store.connection import Connected, StoreError

CLAIM_NS = 5_000_000_000  # from one look at what we may hear to the next
_SPACE = 0x5711  # first of the two numbers of each lock: ours


class Claims:
    """What this process may hear. Any thread may ask; each ear asks for its own agents once in a while."""

    def __init__(self, store: Connected):
        self._store = store
        self._held: set[str] = set()
        self._connection: Connection | None = None
        self._turn = threading.Lock()

    def hold(self, name: str) -> bool:
        """Whether we are the one who hears it: asked for now where nobody does."""
        if not self._store.is_postgresql:
            return True
        with self._turn:
            try:
                if self._connection is None:
                    engine = self._store.engine.execution_options(isolation_level="AUTOCOMMIT")
                    self._connection = engine.connect()
                if name in self._held:
                    return True
                if self._ask("pg_try_advisory_lock", name):
                    self._held.add(name)
                return name in self._held
            except (DBAPIError, StoreError):
                self._lose()
                return False

    def check(self) -> bool:
        """Whether what we hold is still ours: a server that went away gave it to others."""
        if not self._store.is_postgresql:
            return True
        with self._turn:
            if self._connection is None:
                return not self._held
            try:
                self._connection.exec_driver_sql("SELECT 1")
            except DBAPIError:
                self._lose()
                return False
            return True

    def release(self, name: str) -> None:
        """Let another station hear it."""
        with self._turn:
            if name in self._held and self._connection is not None:
                try:
                    self._ask("pg_advisory_unlock", name)
                except DBAPIError:
                    self._lose()
            self._held.discard(name)

    def close(self) -> None:
        """Let go of everything."""
        with self._turn:
            self._lose()

    def _ask(self, function: str, name: str) -> bool:
        assert self._connection is not None
        key = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big", signed=True)
        return bool(self._connection.exec_driver_sql(f"SELECT {function}({_SPACE}, {key})").scalar())

    def _lose(self) -> None:
        """Close the connection, and with it every lock."""
        self._held.clear()
        if self._connection is not None:
            try:
                self._connection.invalidate()
                self._connection.close()
            except DBAPIError:
                pass
            self._connection = None
