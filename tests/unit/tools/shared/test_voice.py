"""What a run says: alerts on stdout as they happen, all else on stderr, one object a line where asked."""

import io
import json
import pathlib
from types import SimpleNamespace

import pytest
from alerts import alert

from stillwatch.pipeline import RunCounts
from stillwatch.process import Progress, RunResult
from stillwatch.tools.shared import RunVoice
from stillwatch.tools.shared.progress import ProgressLine, progress_text
from stillwatch.transport.wire import LogNotice

COUNTS = RunCounts(300, 290, {"dark": 10}, 2, 4, 3)
HEAD = {"agent": "door", "run": "r", "boot": "b", "epoch": 1, "sequence": 0, "t_ns": 0, "mono_ns": 0, "wall_ns": 0}


def result(**fields):
    about = {"exit_code": 0, "reason": "source ended", "folder": pathlib.Path("runs/x"), "counts": COUNTS, "hash": "ff"}
    return RunResult(**about, **fields)


def test_an_alert_is_one_line_on_stdout(capsys):
    RunVoice().message(alert())
    told = capsys.readouterr()
    assert told.out.count("\n") == 1
    assert "event 3" in told.out
    assert told.err == ""


def test_the_end_says_what_was_seen_and_what_to_do_next(capsys):
    RunVoice().result(result())
    told = capsys.readouterr()
    assert told.out == ""
    assert "300 frames; 290 accepted; refused: 10 dark; 2 dropped; 4 events, 3 alerts" in told.err
    assert "stillwatch report runs/x" in told.err
    assert "stillwatch events runs/x" in told.err


def test_a_source_that_ends_before_anything_could_be_judged_does_not_say_that_nothing_happened(capsys):
    RunVoice().result(result(learning=0.4))
    assert "NOTHING WAS JUDGED: it was still learning" in capsys.readouterr().err


def test_a_source_without_a_usable_frame_says_so(capsys):
    counts = RunCounts(63, 0, {"damaged": 63}, 0, 0, 0)
    RunVoice().result(RunResult(0, "source ended", pathlib.Path("runs/x"), counts, "ff", learning=0.0))
    assert "NOTHING WAS JUDGED: no frame could be used" in capsys.readouterr().err


def test_a_source_that_gave_no_frame_leaves_nothing_to_look_at(capsys):
    RunVoice().result(
        RunResult(3, "x: not a video", pathlib.Path("runs/x"), RunCounts(0, 0, {}, 0, 0, 0), "", learning=0.0)
    )
    assert "stillwatch report" not in capsys.readouterr().err


def test_quiet_says_alerts_and_troubles_alone(capsys):
    voice = RunVoice(quiet=True)
    voice.message(alert())
    voice.note("goes on from 20")
    voice.result(result(waiting_alerts=2))
    told = capsys.readouterr()
    assert len(told.out.splitlines()) == 1
    assert told.err.splitlines() == [
        "2 messages about alerts not acknowledged over the link; the next run of this agent sends them"
    ]


def test_json_is_one_object_a_line_and_no_words(capsys):
    voice = RunVoice(as_json=True)
    voice.message(alert(frame=0))  # frame 0 says when the stream began
    voice.message(LogNotice(**HEAD, level="warning", code="disk_full", text="no room"))
    voice.result(result())
    told = capsys.readouterr()
    objects = [json.loads(line) for line in told.out.splitlines()]
    assert [item["what"] for item in objects] == ["alert", "notice", "end"]
    assert (objects[0]["id"], objects[0]["stream_s"], objects[2]["alerts"]) == (3, 0.0, 3)
    assert told.err == ""


@pytest.mark.parametrize(
    ("share", "words"),
    [(0.25, "25 %  300 frames  30/s  30 s left  watching  4 events, 3 alerts  2 dropped"),
     (None, "live  300 frames  30/s  watching  4 events, 3 alerts  2 dropped")],
)  # fmt: skip
def test_progress_says_how_far_and_how_long_yet_where_an_end_is_known(share, words):
    assert progress_text(Progress(COUNTS, 10.0, 1.0, "live", share)) == words


def test_a_line_said_while_progress_stands_is_not_glued_to_it(monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr("sys.stderr", screen)
    line = ProgressLine(enabled=True)
    line.show("50 %")
    line.say("WARNING: disk", to=screen)
    assert "\r\x1b[2KWARNING: disk\n50 %" in screen.getvalue()


def test_stream_time_is_left_out_where_a_run_began_later(capsys):
    RunVoice().message(alert(frame=517))
    assert capsys.readouterr().out.startswith("frame 517")


def test_a_run_offers_its_callbacks():
    options = SimpleNamespace()
    RunVoice().listen(options)
    assert all(callable(getattr(options, name)) for name in ("on_progress", "on_note", "on_message"))
