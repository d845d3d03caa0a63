"""The store's form as numbered steps: a new store is made at the newest, an older one is taken there step by step.

Called by tools/station/store/store.py at each start. A step that was released never changes: another one follows it.
"""

from collections.abc import Callable

from sqlalchemy import Connection, Table, inspect, select
from sqlalchemy.schema import CreateColumn

from stillwatch.tools.station.store.connection import FAILED, Connected, StoreError
from stillwatch.tools.station.store.tables import ALERTS, EXEMPLARS, KINDS, META, METADATA, MUTES

Step = Callable[[Connection], None]
_LOCK = 0x5711_0001  # PostgreSQL: one process migrates at a time


def _add_columns(table: Table, *names: str) -> Step:
    """Return a step that adds columns with their defaults, but for those that came with the whole table before."""

    def step(connection: Connection) -> None:
        known = {column["name"] for column in inspect(connection).get_columns(table.name)}
        for name in names:
            if name in known:
                continue
            form = CreateColumn(table.c[name]).compile(dialect=connection.dialect)
            connection.exec_driver_sql(f"ALTER TABLE {table.name} ADD COLUMN {form}")

    return step


def _add_table(table: Table) -> Step:
    """Return a step that adds a table."""

    def step(connection: Connection) -> None:
        table.create(connection)

    return step


# Step n takes a store of version n to n + 1. Version 1 is the first that was released: METADATA as a whole.
STEPS: tuple[Step, ...] = (
    _add_columns(ALERTS, "watched_s", "judged", "visits", "alike", "here"),
    _add_columns(MUTES, "place"),
    _add_table(KINDS),
    _add_columns(KINDS, "run"),
    _add_columns(EXEMPLARS, "run"),
)
VERSION = 1 + len(STEPS)


def migrate(connected: Connected) -> int:
    """Bring the store to this program's version; return the version that it had (0: it was empty).

    Raises
    ------
    StoreError
        The store is of a later version: nothing is changed.
    """
    with connected.writing() as connection:
        if connected.is_postgresql:
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
        found = _version(connection)
        if found > VERSION:
            text = f"store {connected.name} is of version {found}; this program knows {VERSION}: it is left as it is"
            raise StoreError(text, FAILED)
        if found == 0:
            METADATA.create_all(connection)
        for step in STEPS[found - 1 :] if found else ():
            step(connection)
        connection.execute(connected.upsert(META, {"key": "version", "value": str(VERSION)}, ["key"]))
    return found


def _version(connection: Connection) -> int:
    if not inspect(connection).has_table(META.name):
        return 0
    value = connection.execute(select(META.c.value).where(META.c.key == "version")).scalar()
    return int(value or 0)
