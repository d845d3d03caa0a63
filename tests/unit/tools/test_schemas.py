"""What commands print with --json is JSON that any reader takes, of the form that is published."""

import json
import pathlib

import pytest
from places import ROOT
from printed import LONG_CALLS, of_schema
from recordings import make_video
from run_folders import make_run

from stillwatch.tools.cli import COMMANDS, main
from stillwatch.tools.pages.reference import arguments_of
from stillwatch.tools.pages.schemas import SCHEMAS

SMALL = [
    "source.width=160",
    "source.height=120",
    'publish.endpoint=""',
    "patches.memory=1200",
    "learning.first_epoch_frames=6",
    "encoder.warmup_frames=6",
    "features.step_px=12",
]
# OUT: a new path; RUN: a recording of a small run, which is a run folder as well; TOLD: a run folder with events.
CALLS = {
    "check-config": [str(ROOT / "configs" / "demo.toml")],
    "clips": ["RUN"],
    "compare": ["RUN", "TOLD"],
    "doctor": ["--out", "OUT"],
    "events": ["TOLD"],
    "health": ["RUN"],
    "inspect": ["RUN"],
    "recover": ["RUN", "OUT"],
    "replay": ["RUN"],
    "scores": ["TOLD"],
    "topics": ["TOLD"],
    "warm-up": [],
}


def settings():
    return [word for setting in SMALL for word in ("--set", setting)]


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    folder = tmp_path_factory.mktemp("json")
    video = make_video(folder / "clip.mp4", frames=30)
    assert main(["record", str(video), str(folder / "run"), "-q", *settings()]) == 0
    make_run(folder / "told", topics=True)
    return {"RUN": str(folder / "run"), "TOLD": str(folder / "told"), "VIDEO": str(video)}


@pytest.mark.parametrize("command", CALLS)
def test_a_command_prints_one_object_of_its_schema(command, places, tmp_path, capsys):
    places = {**places, "OUT": str(tmp_path / "out")}
    main([command, *(places.get(word, word) for word in CALLS[command]), "--json"])
    of_schema(command, capsys.readouterr().out)


@pytest.mark.parametrize("name", ["checkpoint", "recording"])
def test_one_file_is_inspected_in_the_same_form(name, places, capsys):
    from stillwatch.restart import checkpoint

    run = places["RUN"]
    logs = sorted(pathlib.Path(run).glob("recording-*.swlog"))
    files = {"checkpoint": checkpoint.files(f"{run}/checkpoints")[-1], "recording": logs[-1]}
    assert main(["inspect", str(files[name]), "--json"]) == 0
    assert of_schema("inspect", capsys.readouterr().out)["whole"] is True


@pytest.mark.parametrize("line", ["width = 1", "uri = 'rtsp://user:word@ho st:99999/x'", "uri = 'synthetic:moon'"])
def test_what_is_wrong_with_a_config_has_the_same_form(line, tmp_path, capsys):
    (tmp_path / "a.toml").write_text(f"[source]\n{line}\n")
    assert main(["check-config", str(tmp_path / "a.toml"), "--json"]) == 78
    assert of_schema("check-config", capsys.readouterr().out)["errors"]


@pytest.mark.parametrize(("command", "where"), [("run", ["--out"]), ("record", [])])
def test_a_run_prints_one_object_a_line(command, where, places, tmp_path, capsys):
    assert main([command, places["VIDEO"], *where, str(tmp_path / "run"), "--json", *settings()]) == 0
    lines = [of_schema(command, line) for line in capsys.readouterr().out.splitlines()]
    assert [line["what"] for line in lines if line["what"] in ("end", "alert")][-1] == "end"


def test_an_alert_of_a_run_has_the_form_of_the_schema(capsys):
    from stillwatch.tools.shared import RunVoice
    from stillwatch.transport.wire import Alert

    head = {"agent": "a", "run": "r", "boot": "b", "epoch": 1, "sequence": 0, "t_ns": 0, "mono_ns": 0, "wall_ns": 0}
    RunVoice(as_json=True).message(Alert(**head, id=1, phase="new", start_frame=0, start_t_ns=0, duration_s=0.0))
    assert of_schema("run", capsys.readouterr().out)["what"] == "alert"


def test_an_event_shows_its_picture_and_its_clip(places, capsys):
    clip = f"{places['TOLD']}/clips/1.mp4"
    pathlib.Path(clip).parent.mkdir(exist_ok=True)
    pathlib.Path(clip).touch()
    main(["events", places["TOLD"], "--json"])
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["clip"] for row in rows] == [None, clip, None]
    assert all(row["picture"].startswith("data:image/jpeg;base64,/9j/") for row in rows)


def test_every_command_with_json_has_a_schema_and_a_test_that_holds_it_to_it():
    with_json = {command for command in COMMANDS if any(w.startswith("--json") for w, _ in arguments_of(command))}
    assert set(SCHEMAS) == with_json
    tests = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py") if "of_schema" in path.read_text())
    assert [command for command in with_json - {*CALLS, *LONG_CALLS} if f'"{command}"' not in tests] == []


def test_the_schemas_are_printed_for_other_programs(capsys):
    import jsonschema

    assert main(["reference", "schema"]) == 0
    printed = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator.check_schema(printed)
    assert printed["$defs"] == SCHEMAS
