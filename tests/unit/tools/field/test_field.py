"""Health, doctor, service and log lines: what they say, and that they change nothing they should not."""

import json
import logging
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time

import pytest
from recordings import make_video

from stillwatch.base import ExitCode, UsageError, VirtualClock
from stillwatch.tools.cli import main
from stillwatch.tools.field.doctor import mounted, times_slowed
from stillwatch.tools.field.probe import keys_row, stamps_row
from stillwatch.tools.field.unit import Service, unit_text
from stillwatch.tools.shared.logs import JournalLine, JsonLine, NotOften
from stillwatch.transport.disk import RunFolder
from stillwatch.transport.wire import Status, encode


class WallClock(VirtualClock):
    def wall_ns(self):
        return time.time_ns()


def run_folder(path, **fields):
    folder = RunFolder(path, WallClock())
    folder.write_config("", "h", agent="cam1", role="agent", source="x")
    head = {"agent": "cam1", "run": "r", "boot": "b", "epoch": 1, "sequence": 0, "t_ns": 0, "mono_ns": 0}
    message = Status(**head | {"wall_ns": time.time_ns(), "state": "live", "frame_age_s": 0.2, "alerts": 3} | fields)
    folder.write("status", encode(message))
    return folder


@pytest.mark.parametrize(
    ("fields", "code", "word"),
    [({}, 0, "well, live"), ({"wall_ns": 1}, 1, "no status for"), ({"state": "failed"}, 1, "source is failed")],
)
def test_health_of_a_run_folder_is_one_line_and_a_code(tmp_path, capsys, fields, code, word):
    run_folder(tmp_path, **fields).close()
    assert main(["health", str(tmp_path)]) == code
    said = capsys.readouterr().out
    assert word in said
    assert len(said.splitlines()) == 1
    assert main(["health", str(tmp_path), "--json"]) == code
    assert set(json.loads(capsys.readouterr().out)) == {
        "ok",
        "state",
        "last_frame_age_s",
        "alerts",
        "reasons",
        "unsure",
    }


def test_a_run_that_has_ended_is_not_well(tmp_path, capsys):
    run_folder(tmp_path).finish({})
    assert main(["health", str(tmp_path)]) == ExitCode.NO
    assert "the run has ended" in capsys.readouterr().out


def test_health_of_an_endpoint_where_nobody_is_says_why(capsys):
    assert main(["health", "tcp://127.0.0.1:9", "--wait", "0.2"]) == ExitCode.NO
    assert "refused" in capsys.readouterr().out


def test_the_doctor_says_what_is_wrong_with_its_remedy_and_changes_nothing(tmp_path, capsys):
    config = tmp_path / "a.toml"
    config.write_text('[source]\nuri = "rtsp://u:s3cret-word@127.0.0.1:9/x"\n[publish]\nendpoint = ""\n')
    code = main(["doctor", str(config), "--out", str(tmp_path / "runs"), "--json"])
    said = capsys.readouterr().out
    rows = {row["check"]: row for row in json.loads(said)["rows"]}
    assert code == ExitCode.NO
    assert {"config", "python", "cpu", "kernels", "clock", "heat", "disk", "memory"} <= set(rows)
    assert {"keys", "ports", "source", "service"} <= set(rows)
    assert not rows["source"]["ok"]
    assert "cannot connect" in rows["source"]["found"]
    assert all(row["remedy"] for row in rows.values() if not row["ok"])
    assert "s3cret-word" not in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.toml"]


def test_the_doctor_finds_kernels_missing_and_compiles_none(tmp_path):
    config, cache = tmp_path / "a.toml", tmp_path / "cache"
    config.write_text('[source]\nuri = "synthetic:room"\n[publish]\nendpoint = ""\n')
    call = [sys.executable, "-m", "stillwatch.tools.cli", "doctor", str(config), "--out", str(tmp_path), "--json"]
    environment = {**os.environ, "STILLWATCH_CACHE_DIR": str(cache), "NUMBA_DISABLE_JIT": "0"}
    done = subprocess.run(call, env=environment, capture_output=True, text=True, timeout=120, check=False)
    rows = {row["check"]: row for row in json.loads(done.stdout)["rows"]}
    assert not rows["kernels"]["ok"]
    assert "warm-up" in rows["kernels"]["remedy"]
    assert rows["memory"]["ok"]
    assert [path for path in cache.rglob("*") if path.is_file()] == []


def test_the_doctor_looks_at_stamps_and_key_frames_of_a_source(tmp_path, capsys):
    config = tmp_path / "a.toml"
    clip = make_video(tmp_path / "clip.mp4", frames=60)
    config.write_text(f'[source]\nuri = "{clip}"\n[publish]\nendpoint = ""\n')
    main(["doctor", str(config), "--out", str(tmp_path), "--json"])
    rows = {row["check"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    assert rows["source"]["ok"]
    assert rows["time stamps"]["found"].endswith("all rise")
    assert rows["key frames"]["ok"]


def test_the_doctor_names_a_port_that_is_taken_whoever_wants_it(tmp_path, capsys):
    config = tmp_path / "a.toml"
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        config.write_text(
            f'[source]\nuri = "synthetic:room"\n[publish]\nendpoint = ""\n[metrics]\nendpoint = "127.0.0.1:{port}"\n'
        )
        main(["doctor", str(config), "--out", str(tmp_path), "--json"])
    row = next(row for row in json.loads(capsys.readouterr().out)["rows"] if row["check"] == "ports")
    assert not row["ok"]
    assert f"{port} (Address already in use)" in row["found"]
    assert "metrics.endpoint" in row["remedy"]


def test_a_file_system_in_memory_is_called_one(tmp_path):
    table = tmp_path / "mounts"
    table.write_text("a / ext4 rw 0 0\nb /run tmpfs rw 0 0\nc /mnt/my\\040disk vfat rw 0 0\n")
    assert mounted(pathlib.Path("/var/lib"), str(table)) == ", ext4 on /"
    assert mounted(pathlib.Path("/run/x"), str(table)) == ", tmpfs on /run: GONE AT THE NEXT BOOT"
    assert mounted(pathlib.Path("/mnt/my disk/y"), str(table)) == ", vfat on /mnt/my disk"
    assert mounted(pathlib.Path("/x"), str(tmp_path / "none")) == ""


@pytest.mark.parametrize(
    ("stamps", "ok", "word"),
    [
        ([0, 40, 80], True, "all rise"),
        ([0, 40, 40], False, "1 of 3 stand still"),
        ([0, None, 80], False, "1 of 3 frames"),
    ],
)
def test_stamps_must_rise(stamps, ok, word):
    row = stamps_row(stamps)
    assert (row.ok, word in row.found) == (ok, True)


@pytest.mark.parametrize(
    ("keys", "packets", "ok", "word"),
    [
        ([1, 51, 101], 110, True, "one in 50 frames (2.0 s)"),
        ([1, 501], 510, False, "20.0 s"),
        ([1], 600, False, "1 in 600"),
    ],
)
def test_key_frames_must_not_be_far_apart(keys, packets, ok, word):
    row = keys_row(keys, packets, 25.0)
    assert (row.ok, word in row.found) == (ok, True)
    assert "2 s" in row.remedy


def test_a_processor_that_was_slowed_down_is_counted(tmp_path):
    count = tmp_path / "devices/system/cpu/cpu1/thermal_throttle/core_throttle_count"
    assert times_slowed(tmp_path) == 0
    count.parent.mkdir(parents=True)
    count.write_text("7\n")
    assert times_slowed(tmp_path) == 7


def test_the_doctor_of_a_bad_config_checks_the_machine_all_the_same(tmp_path, capsys):
    config = tmp_path / "a.toml"
    config.write_text("[source]\nwidth = 1\n")
    assert main(["doctor", str(config), "--out", str(tmp_path)]) == ExitCode.NO
    said = capsys.readouterr().out
    assert "BAD  config" in said
    assert "ok   clock" in said


def test_the_doctor_finds_every_fault_that_check_config_lists(tmp_path, capsys):
    config = tmp_path / "a.toml"
    config.write_text('[source]\nuri = "synthetic:moon"\n[link]\npreset = "lte"\nendpoint = "modem:7"\n')
    assert main(["check-config", str(config)]) == ExitCode.CONFIG
    listed = capsys.readouterr().err
    assert main(["doctor", str(config), "--out", str(tmp_path), "--json"]) == ExitCode.NO
    rows = {row["check"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    for told in (listed, rows["config"]["found"]):
        assert "moon" in told
        assert "link.endpoint: 'modem:7' is not udp://HOST:PORT" in told


def unit(tmp_path, **fields):
    return unit_text(Service("harbour", tmp_path / "c.toml", 400_000_000, **fields))


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd here")
@pytest.mark.parametrize("camera", [False, True])
def test_systemd_takes_the_unit_and_finds_it_hardened(tmp_path, camera):
    path = tmp_path / "stillwatch-harbour.service"
    path.write_text(unit(tmp_path, camera=camera, credentials=(("camera", "/etc/hostname"),)))
    verified = subprocess.run(["systemd-analyze", "verify", path], capture_output=True, text=True, check=False)
    assert not [line for line in verified.stderr.splitlines() if path.name in line], verified.stderr
    judged = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold=35", path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert judged.returncode == 0, judged.stdout[-300:]


def test_the_unit_does_not_restart_what_would_only_fail_again(tmp_path):
    text = unit(tmp_path)
    assert f"RestartPreventExitStatus={int(ExitCode.CONFIG)} {int(ExitCode.USAGE)}\n" in text
    assert "MemoryMax=500000000\n" in text


@pytest.mark.parametrize(
    ("name", "config"), [("a b", "/c"), ("../x", "/c"), ("ok", "relative"), ("ok", "/with space"), ("ok", "/%h")]
)
def test_what_systemd_would_take_for_something_else_is_refused(name, config):
    with pytest.raises(UsageError):
        unit_text(Service(name, config, 1))


def test_a_service_is_installed_shown_and_removed(tmp_path, capsys):
    config = tmp_path / "c.toml"
    config.write_text('[source]\nuri = "v4l2:/dev/video0"\n')
    call = ["harbour", "--units", str(tmp_path)]
    assert main(["service", "install", "harbour", str(config), "--units", str(tmp_path)]) == 0
    written = (tmp_path / "stillwatch-harbour.service").read_text()
    assert "DeviceAllow=char-video4linux" in written
    assert "systemctl enable --now stillwatch-harbour.service" in capsys.readouterr().out
    assert main(["service", "remove", *call]) == 0
    assert not (tmp_path / "stillwatch-harbour.service").exists()
    assert main(["service", "remove", *call]) == ExitCode.USAGE
    assert main(["service", "install", *call]) == ExitCode.USAGE


def record(text, level=logging.WARNING):
    return logging.LogRecord("a.b", level, "f", 1, text, (), None)


def test_a_repeated_line_comes_once_a_minute_with_how_often_it_came():
    clock = VirtualClock()
    rule = NotOften(clock)
    assert [rule.filter(record("lost")) for _ in range(4)] == [True, False, False, False]
    assert rule.filter(record("another"))
    clock.advance_ns(60 * 10**9)
    again = record("lost")
    assert rule.filter(again)
    assert again.getMessage() == "lost (3 times more since)"


def test_a_json_line_is_one_object_whatever_the_text():
    line = JsonLine().format(record('two\nlines "x" \udce9'))
    assert len(line.splitlines()) == 1
    assert json.loads(line)["message"] == 'two\nlines "x" \\xe9'
    assert json.loads(line)["level"] == "warning"


@pytest.mark.parametrize(("level", "priority"), [(logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6)])
def test_a_line_for_the_journal_has_its_priority_on_each_line(level, priority):
    assert JournalLine("%(message)s").format(record("a\nb", level)) == f"<{priority}>a\n<{priority}>b"
