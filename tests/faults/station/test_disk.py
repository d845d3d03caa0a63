"""A station on a real full disk goes on hearing and showing, says why nothing is stored, and stores again by itself."""

import contextlib
import time

import pytest
from agent_doubles import AgentDouble, jpeg
from hearing import hearing, until
from power_processes import small_disk

from stillwatch.tools.station.store import StoreError


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


@pytest.mark.slow
def test_a_file_that_is_damaged_while_the_station_runs_is_set_aside(tmp_path):
    with doubles(tmp_path, "cam1") as (agent,), hearing(tmp_path / "s.db", agent) as station:
        until(lambda: agent.status() and (station.store.agent("cam1") or {}).get("link") == "live")
        agent.alert(0)
        until(station.alerts)
        with (tmp_path / "s.db").open("r+b") as file:
            file.write(b"\xa5" * 8192)
        with contextlib.suppress(FileNotFoundError):
            (tmp_path / "s.db-wal").write_bytes(b"")
        number = 0

        def is_anew():
            nonlocal number
            number += 1
            agent.alert(number)
            return list(tmp_path.glob("s.db.damaged-*"))

        until(is_anew)

        def is_kept():
            agent.alert(number + 1)
            with contextlib.suppress(StoreError):  # between the old file and the new one
                return station.alerts()

        until(is_kept)
