"""The console script: exit codes from one table, JSON from one encoder, any file name, any locale, any streams."""

import json
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest
from places import ROOT

from stillwatch.base import ExitCode
from stillwatch.tools.cli import COMMANDS, build_parser, main
from stillwatch.tools.shared import json_text

CLI = [sys.executable, "-m", "stillwatch.tools.cli"]
# What each command is called with where an input is a path that is not there; "" stands for that path. Behind # is the
# number of another such call of the same command.
READERS = {
    "run": ["", "--out", "OUT"],
    "run#2": ["--source", "", "--out", "OUT"],
    "run#3": ["recording:", "--out", "OUT"],
    "report": [""],
    "events": [""],
    "scores": [""],
    "topics": [""],
    "find": ["", "--like", "THERE"],
    "find#2": ["THERE", "--like", ""],
    "clips": [""],
    "mask": [""],
    "mask#2": ["synthetic:room", "--config", ""],
    "record": ["", "OUT"],
    "record#2": ["synthetic:room", "OUT", "--config", ""],
    "replay": [""],
    "replay#2": ["THERE", "--config", ""],
    "ground": ["tcp://127.0.0.1:9", "--key", "", "--server", ""],
    "ground-thin": ["--preset", "lte", "--listen", "udp://127.0.0.1:0", "--out", "OUT", "--key-file", ""],
    "control": ["tcp://127.0.0.1:9", "status", "--key", "", "--server", ""],
    "station": [""],
    "station user": ["list", "--config", ""],
    "station test-notify": [""],
    "survey": ["", "--out", "OUT"],
    "survey#2": ["THERE", "--out", "OUT", "--labels", ""],
    "survey#3": ["THERE", "--out", "OUT", "--nav", ""],
    "survey#4": ["THERE", "--out", "OUT", "--encoders", ""],
    "compare": ["", ""],
    "inspect": [""],
    "recover": ["", "OUT"],
    "export": ["", "OUT"],
    "import": ["", "OUT"],
    "health": [""],
    "doctor": [""],
    "service": ["install", "name", "", "--units", "OUT"],
    "service#2": ["install", "name", "CONFIG", "--units", "OUT", "--credential", "id="],
    "check-config": [""],
    "complete-config": [""],
    "fit-encoder": ["", "--out", "OUT"],
    "fit-dictionary": ["--data", "", "--out", "OUT"],
    "faults": ["--data", ""],
    "evaluate novelty": ["synthetic:room", ""],
    "evaluate novelty#2": ["", "EVENTS"],
    "evaluate suite": ["--config", ""],
    "evaluate suite#2": ["--data", ""],
    "bench detectors": ["", "EVENTS"],
    "bench files": [""],
    "bench features": ["--data", ""],
    "experiment survey-scenes": [""],
}
# Those that read no path of the user's; experiments other than survey-scenes take --data alone, in one place.
WITHOUT_PATHS = {
    "demo", "keygen", "linksim", "warm-up", "reference", "thin-page", "wire-page", "bench mixture", "bench transport",
    "bench pipeline", "bench station", "bench find", "bench survey",
}  # fmt: skip


def test_the_table_of_absent_paths_has_every_command():
    named = {name.partition("#")[0] for name in READERS} | WITHOUT_PATHS
    assert {name for name in COMMANDS if not name.startswith("experiment ")} - named == set()


@pytest.mark.parametrize("command", READERS)
def test_a_path_that_is_not_there_is_bad_usage_in_every_command(command, tmp_path, capsys):
    absent = tmp_path / "absent"
    places = {"OUT": tmp_path / "OUT", "THERE": tmp_path / "there", "CONFIG": tmp_path / "there" / "a.toml"}
    places["EVENTS"] = tmp_path / "there" / "events.json"
    places["THERE"].mkdir()
    places["CONFIG"].touch()
    places["EVENTS"].write_text('{"files": {"absent": {"events": [{"start": 5, "end": 9}]}}}')
    words = [f"{word}{absent}" if word in ("", "recording:", "id=") else word for word in READERS[command]]
    call = [*command.partition("#")[0].split(), *(str(places.get(word, word)) for word in words)]
    assert main(call) == ExitCode.USAGE
    captured = capsys.readouterr()
    assert str(absent) in captured.err
    assert len(captured.err.splitlines()) == 1
    assert captured.out == ""
    assert not (tmp_path / "OUT").exists()


def test_a_source_that_is_not_there_is_bad_usage(tmp_path, capsys):
    for uri in (f"{tmp_path}/absent.mp4", f"{tmp_path}/*.png"):
        assert main(["run", "--source", uri, "--out", str(tmp_path / "out")]) == ExitCode.USAGE
        assert uri in capsys.readouterr().err


def test_what_is_watched_may_stand_alone(tmp_path, capsys):
    """`stillwatch clip.mp4` and `run clip.mp4` are runs on a source."""
    clip = tmp_path / "clip.mp4"
    clip.write_bytes(b"no video")
    for words in ([str(clip)], ["run", str(clip)], ["run", "--source", str(clip)]):
        assert main([*words, "--out", str(tmp_path / "out")]) == ExitCode.SOURCE
        assert str(clip) in capsys.readouterr().err


def test_a_word_that_is_no_command_gets_the_nearest_one(capsys):
    assert main(["evnts"]) == ExitCode.USAGE
    assert (
        capsys.readouterr().err
        == "stillwatch: 'evnts' is no command, and no file or folder here; did you mean 'events'?\n"
    )
    assert main(["absent.mp4"]) == ExitCode.USAGE
    assert capsys.readouterr().err.startswith("stillwatch: absent.mp4: no such file or folder; ")


def test_a_command_of_a_group_given_by_itself_is_told_its_group(capsys):
    assert main(["survey-scenes", "somewhere"]) == 2
    assert "did you mean 'experiment survey-scenes'?" in capsys.readouterr().err


def test_without_a_word_it_says_what_there_is(capsys):
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == 0
    assert "run" in capsys.readouterr().out


def test_a_run_has_one_source_and_one_config(tmp_path, capsys):
    for name in ("a.toml", "b.toml", "c.mp4", "d.mp4"):
        (tmp_path / name).touch()
    for kind, pair in (("configs", ("a.toml", "b.toml")), ("sources", ("c.mp4", "d.mp4"))):
        assert main(["run", *(str(tmp_path / name) for name in pair)]) == ExitCode.USAGE
        told = capsys.readouterr().err
        assert f"two {kind}" in told
        assert all(str(tmp_path / name) in told for name in pair)


def test_the_readme_shows_the_exit_codes():
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \|", (ROOT / "README.md").read_text(), re.M)
    assert rows == [(str(int(code)), code.name) for code in ExitCode]


def test_json_has_plain_numbers_and_null_for_what_is_none():
    value = {
        "f": np.float32(0.5),
        "i": np.int64(3),
        "b": np.bool_(True),
        "nan": float("nan"),
        "inf": np.float64("inf"),
        "array": np.array([[1.0, np.nan]]),
        "path": pathlib.Path("/a"),
        "rows": ({1: "caf\udce9"},),
        "code": ExitCode.SOURCE,
    }
    assert json.loads(json_text(value)) == {
        "f": 0.5,
        "i": 3,
        "b": True,
        "nan": None,
        "inf": None,
        "array": [[1.0, None]],
        "path": "/a",
        "rows": [{"1": "caf\\xe9"}],
        "code": 3,
    }


def test_what_has_no_form_in_json_is_refused():
    with pytest.raises(TypeError, match="object"):
        json_text({"x": object()})


def test_no_command_prints_json_by_another_way():
    breaches = [
        str(path)
        for path in (ROOT / "tools").rglob("*.py")
        if re.search(r"print\([^)]*json\.(dumps|encode)", path.read_text())
    ]
    assert not breaches


def test_every_command_can_be_asked_for_help(capsys):
    for command in COMMANDS:
        with pytest.raises(SystemExit) as ended:
            build_parser(command.split()).parse_args([*command.split(), "--help"])
        assert ended.value.code == 0
        assert "usage: stillwatch" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "environment"),
    [
        ("b\u00e4r.png".encode(), {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
        (b"b\xe4r.png", {"LC_ALL": "C"}),
    ],
)
def test_any_file_name_is_read_in_any_locale(tmp_path, environment, name):
    import cv2

    coded = cv2.imencode(".png", np.random.default_rng(0).integers(0, 255, (48, 64, 3), np.uint8))[1].tobytes()
    path = os.fsencode(tmp_path) + b"/" + name
    with open(path, "wb") as file:
        file.write(coded)
    done = subprocess.run(
        [*CLI, "run", "--source", path, "--out", tmp_path / "out", "--set", "publish.endpoint="],
        env={**os.environ, **environment},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "out" / "summary.json").read_bytes())["frames"] == 1
    source = json.loads((tmp_path / "out" / "run.json").read_bytes())["source"]
    assert source.endswith(("/b\u00e4r.png", "/b\\xe4r.png"))
    absent = subprocess.run([*CLI, "inspect", path + b"\xff"], env={**os.environ, **environment}, capture_output=True)
    assert absent.returncode == ExitCode.USAGE
    assert rb"r.png\xff: no such file" in absent.stderr


def test_a_process_without_standard_streams_runs(tmp_path):
    code = (
        "import os, sys\nfor n in (0, 1, 2): os.close(n)\n"
        f"os.execv(sys.executable, [sys.executable, '-m', 'stillwatch.tools.cli', 'inspect', {str(tmp_path / 'x')!r}])"
    )
    done = subprocess.run([sys.executable, "-c", code], timeout=60, check=False)
    assert done.returncode == ExitCode.USAGE


def test_a_password_is_not_shown_by_a_fault_of_ours(monkeypatch, capsys):
    from stillwatch.base import register_uri
    from stillwatch.tools import cli

    register_uri("rtsp://u:open-sesame-9@cam/x")

    def broken(argv):
        raise ZeroDivisionError("open-sesame-9")

    monkeypatch.setattr(cli, "build_parser", broken)
    assert main(["run"]) == ExitCode.FAULT
    said = capsys.readouterr().err
    assert "ZeroDivisionError" in said
    assert "sesame" not in said


@pytest.mark.parametrize("code", [0, 3])
def test_a_process_ends_with_its_code_while_abandoned_threads_are_inside_opencv(code):
    """They take the interpreter's lock when they return: at a usual end the process died of a signal instead."""
    script = (
        "import atexit, sys, threading, time, cv2, numpy as np; from stillwatch.tools.cli import leave\n"
        "picture = cv2.imencode('.png', np.zeros((900, 1200, 3), np.uint8))[1]\n"
        "def decode():\n"
        "    while True: cv2.imdecode(picture, 1)\n"
        "def last_words():\n"
        "    said.wait(); time.sleep(0.3); print('waited for', flush=True)\n"
        "said = threading.Event()\n"
        "for work, daemon in ((decode, True), (decode, True), (last_words, False)):\n"
        "    threading.Thread(target=work, daemon=daemon).start()\n"
        "atexit.register(print, 'and told at the end')\n"
        "print('said before', end=' '); said.set()\n"
        f"leave({code})"
    )
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (code, "")
        assert done.stdout.split("\n") == ["said before waited for", "and told at the end", ""]
