"""Stores for the station's tests: one of each database."""

import postgres_server
import pytest

from stillwatch.tools.station.store import open_store


@pytest.fixture(scope="session")
def postgres():
    """The folder of a PostgreSQL server's socket, started once a test process."""
    if postgres_server.find("initdb") is None or postgres_server.find("pg_ctl") is None:
        pytest.skip(postgres_server.MISSING)
    with postgres_server.running_server() as folder:
        yield folder


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request, tmp_path):
    """Where an empty store may be made, once on each database."""
    if request.param == "sqlite":
        return str(tmp_path / "station.db")
    return postgres_server.new_database(request.getfixturevalue("postgres"))


@pytest.fixture
def store(address):
    """An empty store on each database."""
    opened, _ = open_store(address)
    yield opened
    opened.close()


@pytest.fixture
def sqlite_store(tmp_path):
    """An empty SQLite store: for what no database changes."""
    opened, _ = open_store(str(tmp_path / "station.db"))
    yield opened
    opened.close()
