"""A station keeps what arrives in a folder of its own, or ends before it listens."""

import json

import pytest

from stillwatch.base import ExitCode
from stillwatch.tools.cli import main
from stillwatch.tools.shared import hold_out
from stillwatch.transport.disk import FolderLock

STATIONS = {
    "ground": ["ground", "tcp://127.0.0.1:9", "--seconds", "0", "--out"],
    "ground-thin": ["ground-thin", "--listen", "udp://127.0.0.1:0", "--preset", "lte", "--seconds", "0", "--out"],
}


@pytest.mark.parametrize("station", STATIONS)
def test_a_place_where_no_folder_can_be_ends_the_station_at_once(station, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main([*STATIONS[station], str(tmp_path / "file")]) == ExitCode.CONFIG
    assert "is a file; give another folder" in capsys.readouterr().err


@pytest.mark.parametrize("station", STATIONS)
def test_an_agents_own_run_is_no_place_for_what_a_station_hears(station, tmp_path, capsys):
    (tmp_path / "run.json").write_text(json.dumps({"role": "agent", "agent": "cam1"}))
    assert main([*STATIONS[station], str(tmp_path)]) == ExitCode.CONFIG
    assert "is an agent's own run" in capsys.readouterr().err
    FolderLock(tmp_path, "an agent").release()


@pytest.mark.parametrize("station", STATIONS)
def test_a_second_station_in_the_same_folder_is_told_who_holds_it(station, tmp_path, capsys):
    held = hold_out(str(tmp_path), "a ground station that listens to tcp://cam:5570")
    assert main([*STATIONS[station], str(tmp_path)]) == ExitCode.CONFIG
    assert "a ground station that listens to tcp://cam:5570" in capsys.readouterr().err
    held.release()
    main([*STATIONS[station], str(tmp_path)])
    FolderLock(tmp_path, "the next").release()
