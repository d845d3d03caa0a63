"""`stillwatch bench transport`: its rows have the stated names, and the figures that the product promises."""

import argparse

import pytest
from printed import of_schema

from stillwatch.base import UsageError
from stillwatch.tools.bench import transport as bench_transport
from stillwatch.transport.thin.presets import PRESETS


def rows_of(capsys, *options):
    parser = argparse.ArgumentParser()
    bench_transport.add_arguments(parser)
    assert bench_transport.main(parser.parse_args(["--json", *options])) == 0
    return of_schema("bench transport", capsys.readouterr().out)["rows"]


@pytest.mark.slow
def test_live_rows_measure_a_publisher_in_another_process(capsys):
    rows = rows_of(capsys, "--only", "live", "--seconds", "0.5")
    assert [(row["kind"], row["rate_hz"]) for row in rows] == [
        ("score", None),
        ("score", 200.0),
        ("alert", None),
        ("alert", 20.0),
    ]
    for row in rows:
        assert row["messages_per_s"] > 0
        assert 0 < row["p50_ms"] <= row["p95_ms"] <= row["p99_ms"] <= row["max_ms"]


@pytest.mark.slow
def test_a_live_row_shorter_than_the_gap_between_messages_waits_for_one(capsys):
    rows = rows_of(capsys, "--only", "live", "--seconds", "0.001")
    assert all(row["p50_ms"] > 0 and row["messages_per_s"] > 0 for row in rows)


@pytest.mark.parametrize("seconds", ["0", "-1", "nan"])
def test_a_live_row_of_no_length_is_refused(capsys, seconds):
    with pytest.raises(UsageError, match=f"--seconds: {seconds} is not above 0"):
        rows_of(capsys, "--only", "live", "--seconds", seconds)


@pytest.mark.slow
def test_a_dive_on_each_preset_loses_no_alert_and_stays_in_its_budget(capsys):
    rows = rows_of(capsys, "--only", "dive", "--hours", "0.5")
    assert [row["preset"] for row in rows] == list(PRESETS)
    for row in rows:
        assert row["arrived"] == row["alerts"] > 0
        assert row["most_bytes_10_min"] <= row["budget_10_min"]


@pytest.mark.slow
def test_the_mirror_meets_its_bars_by_its_own_bytes(capsys):
    rows = rows_of(capsys, "--only", "mirror")
    for name, limit in (("diagonal_100x20", 5000), ("full_30x20", 8000)):
        curve = [row for row in rows if row["model"] == name]
        assert [row["received_bytes"] for row in curve] == sorted(row["received_bytes"] for row in curve)
        assert max(row["assigned_as_vehicle"] for row in curve if row["received_bytes"] <= limit) >= 0.99
