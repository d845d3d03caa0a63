"""A station on a real full disk goes on hearing and showing, says why nothing is stored, and stores again by itself."""

import contextlib
import json
import pathlib
import sqlite3
import time

import pytest
from agent_doubles import AgentDouble, jpeg
from hearing import hearing, until
from power_processes import small_disk
from store_examples import T0, full_alert, score_rows, take

from stillwatch.tools.station.store import DAMAGED, Sparks, StoreError, open_store


@contextlib.contextmanager
def doubles(tmp_path, *names):
    made = [AgentDouble(name, f"ipc://{tmp_path}/{name}").serve() for name in names]
    try:
        yield made
    finally:
        for agent in made:
            agent.close()


@pytest.mark.slow
def test_a_full_disk_loses_no_alert_and_ends_by_itself(tmp_path):
    (tmp_path / "disk").mkdir()
    with small_disk(tmp_path / "disk", 6) as disk, doubles(tmp_path, "cam1") as (agent,):
        with hearing(disk / "s.db", agent) as station:
            until(lambda: agent.status() and (station.store.agent("cam1") or {}).get("link") == "live")
            agent.alert(0)
            until(station.alerts)
            ballast = disk / "ballast"
            with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
                while True:
                    file.write(b"x" * 4096)
            number = 0

            def is_said():
                nonlocal number
                number += 1
                agent.alert(number, thumbnail=jpeg(64, 48))
                return station.ingest.troubles()

            told = until(is_said)
            assert "disk is full" in told[0].lower()
            until(lambda: any("Not stored yet: cam1, event" in line for line in station.ingest.troubles()))
            assert station.alerts()[0]["event"] == 0
            time.sleep(0.2)
            ballast.unlink()
            until(lambda: len(station.alerts()) == number + 1)
            until(lambda: station.ingest.troubles() == [])
            assert [row["event"] for row in station.alerts()] == list(range(number + 1))


def spoil_head(path):
    with path.open("r+b") as file:
        file.write(b"\xa5" * 8192)


def spoil_inside(path):
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (path.stat().st_size - 4096))


def exchange(path):
    path.rename(path.with_name("taken"))
    sqlite3.connect(path).execute("CREATE TABLE other (x)").connection.close()


def is_live(station):
    with contextlib.suppress(StoreError):  # between the old file and the new one
        return (station.store.agent("cam1") or {}).get("link") == "live"


@pytest.fixture
def looks_often(monkeypatch):
    """The house looks at its file more often than each five seconds."""
    monkeypatch.setattr("stillwatch.tools.station.ingest.ingest.FOLLOW_S", 0.1)


@pytest.mark.slow
@pytest.mark.usefixtures("looks_often")
@pytest.mark.parametrize("harm", [spoil_head, pathlib.Path.unlink, pytest.param(exchange, marks=pytest.mark.soak)])
def test_a_file_that_is_spoilt_under_a_station_is_set_aside_though_nobody_reads_it(tmp_path, harm):
    """Its pages lie in SQLite's memory, and a checkpoint may write over the damage: only a look at the file is sure."""
    with doubles(tmp_path, "cam1", "cam2") as (agent, added), hearing(tmp_path / "s.db", agent) as station:
        station.ingest.add_agent(added.endpoint, "")
        until(lambda: agent.status() and is_live(station))
        until(lambda: added.status() and station.store.agent("cam2"))
        agent.alert(0)
        until(station.alerts)
        assert station.ingest.troubles() == []
        harm(tmp_path / "s.db")
        until(station.ingest.troubles)
        until(lambda: agent.status() and is_live(station))
        agent.alert(1)
        until(lambda: [row["event"] for row in station.alerts()][-1:] == [1])
        (told,) = station.ingest.troubles()
        assert "was set aside as" in told
        assert str(tmp_path / "s.db") in told
        assert station.store.agent("cam1")["endpoint"] == agent.endpoint, "what was known of it is told again"
        assert [json.loads(value)["agent"] for value in station.store.told_agents().values()] == ["cam2"]
        assert bool(list(tmp_path.glob("s.db.damaged-*Z"))) == (harm is not pathlib.Path.unlink)
    with hearing(tmp_path / "s.db") as station:
        assert station.said == ""
        assert station.alerts()[-1]["event"] == 1


@pytest.mark.slow
@pytest.mark.usefixtures("looks_often")
def test_a_page_that_cannot_be_read_lets_the_house_look_at_every_page(tmp_path):
    with hearing(tmp_path / "s.db") as station:
        with station.store.writing() as connection:
            for n in range(100):
                station.store.take_alert(connection, full_alert(event=n))
        station.store.close()  # what SQLite holds in memory
        spoil_inside(tmp_path / "s.db")
        with pytest.raises(StoreError) as caught:
            station.alerts()
        assert caught.value.cause == DAMAGED
        until(station.ingest.troubles)
        until(lambda: is_live(station) is False)
        assert station.alerts() == []
        assert list(tmp_path.glob("s.db.damaged-*Z"))


def test_a_store_is_begun_anew_once_for_all_who_met_the_same_fault(tmp_path):
    store, _ = open_store(str(tmp_path / "s.db"))
    sparks = Sparks(store, 10**18, 1)
    with store.writing() as connection:
        for n in range(3):
            store.take_scores(connection, "cam1", f"r{n}", score_rows(10))
    assert list(sparks.lines(T0 + 10**12)) == ["cam1"]
    store.begin_anew("it was spoilt", 0)
    take(store, full_alert())
    store.begin_anew("it was spoilt", 0)
    assert len(store.alerts()) == 1
    assert (store.begun, len(store.said)) == (1, 1)
    with store.writing() as connection:
        store.take_scores(connection, "cam2", "r", score_rows(10))
    assert list(sparks.lines(T0 + 10**12)) == ["cam2"], "numbers of the new file are lower than those of the old"
    store.close()
