"""`stillwatch bench station`: its rows say what came of a small fleet, and each page of a small store."""

import time

import pytest
from printed import of_schema

from stillwatch.base import UsageError
from stillwatch.tools.cli import main
from stillwatch.tools.station.bench import fleet
from stillwatch.tools.station.bench.load import memory_row
from stillwatch.tools.station.bench.served import Served
from stillwatch.tools.station.bench.size import page_rows
from stillwatch.tools.station.store import open_store


def rows(capsys, *options):
    assert main(["bench", "station", "--json", *options]) == 0
    return of_schema("bench station", capsys.readouterr().out)["rows"]


def test_a_small_fleet_is_heard_whole_and_its_alerts_reach_the_page(capsys, monkeypatch):
    monkeypatch.setattr("stillwatch.tools.station.bench.load.SETTLE_S", 1.0)
    sizes = ("--agents", "3", "--seconds", "4", "--alerts-an-hour", "1800")
    (row,) = rows(capsys, "--only", "load", *sizes)
    assert (row["agents_heard"], row["lost"]) == (3, 0)
    assert row["scores_kept"] == row["scores_sent"] > 60
    assert row["alerts_shown"] == row["alerts_kept"] == row["alerts_sent"] > 0
    assert 0 < row["cpu"]
    assert row["delay_median_s"] <= row["delay_p99_s"] <= row["delay_most_s"]
    assert row["is_flat"] is None  # four seconds say nothing of that
    assert max(row["rss_least_mb"][2:]) <= row["rss_most_mb"] + 0.05  # the least ones are told to a tenth


HOUR_S = 3600.0


@pytest.mark.parametrize(
    ("memory", "is_flat"),
    [
        ([100.0] * 120 + [150.0] * 240, True),  # it fills, then stays
        ([150.0] * 359 + [151.0], True),
        ([150.0, 150.0, 150.0, 190.0] * 90, True),  # what waits for a moment comes and goes
        ([150.0 + 8.0 * k / 360 for k in range(360)], False),  # 8 MB an hour
        ([150.0] * 300 + [154.0] * 60, False),
    ],
)
def test_memory_is_flat_where_the_least_of_the_last_ten_minutes_is_that_of_the_third_ten(memory, is_flat):
    row = memory_row(memory, HOUR_S)
    assert row["is_flat"] is is_flat
    assert row["rss_least_mb"][0] == min(memory[:60])


def test_a_station_that_ended_gives_no_figures(tmp_path):
    with Served(tmp_path, f'[station]\nstore = "{tmp_path}/s.db"\n') as station:
        assert station.rss_mb() > 20
        station.stop()
        with pytest.raises(RuntimeError, match="ended with 0"):
            station.rss_mb()
        with pytest.raises(RuntimeError, match="ended with 0"):
            station.cpu_s()


def test_every_page_of_a_store_is_timed(capsys):
    found = rows(capsys, "--only", "pages", "--agents", "8", "--scores", "8000", "--alerts", "300", "--times", "2")
    pages = {row["page"] for row in found}
    assert {"/", f"/agents/{fleet.name_of(7)}", "/alerts", "/map", "/metrics"} <= pages
    assert all(0 < row["median_ms"] <= row["most_ms"] for row in found)


def test_a_store_that_was_filled_is_served_again_with_scores_up_to_now(tmp_path, capsys):
    address = str(tmp_path / "s.db")
    size = ("--only", "pages", "--agents", "8", "--scores", "8000", "--alerts", "100", "--times", "1")
    first = rows(capsys, *size, "--store", address)
    again = rows(capsys, *size, "--store", address)
    assert [row["page"].partition("?")[0] for row in first] == [row["page"].partition("?")[0] for row in again]
    store, _ = open_store(address)
    assert store.alert_count() == 100
    assert store.score_days("cam000")[1] > time.time_ns() - 60 * 10**9
    store.close()


def test_a_store_that_holds_something_is_not_filled(tmp_path):
    address = str(tmp_path / "s.db")
    store, _ = open_store(address)
    with store.writing() as connection:
        store.take_agent(connection, "cam1", {})
    store.close()
    with pytest.raises(UsageError, match="it is not empty"):
        page_rows(tmp_path, address, 1, 50, 1, 1)
