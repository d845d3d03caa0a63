"""What a report says of kinds of visits, of how rare events were, and of how far to believe it."""

import numpy as np
from run_folders import RunMaker, thumbnail

from stillwatch.runs import open_run
from stillwatch.tools.cli import main
from stillwatch.tools.report.data import read_report
from stillwatch.tools.report.page import render
from stillwatch.transport.wire import messages as m

S = 10**9


def run_of(path, *messages):
    """Write a run of 100 s in which these (kind, fields) are told at the end of the first second each."""
    maker = RunMaker(path)
    maker.folder.write_config("", "", agent="cam1", run="r", live=False)
    maker.send(m.Score, 0, value=1.0, rarity=2.0)
    maker.t_ns += S
    for kind, fields in messages:
        maker.send(kind, 10, **fields)
    maker.t_ns += 99 * S
    maker.send(m.Score, 1000, value=1.0, rarity=2.0)
    maker.folder.close()
    return maker.folder.path


def visits(number, count, *, seconds, **fields):
    shown = {"picture_frame": 30, "picture_t_ns": 3 * S, "thumbnail": thumbnail(3, True), "watched_s": 96.0}
    times = np.array([int(at * S) for at in seconds], np.int64)
    told = {"first_t_ns": int(seconds[0] * S), "last_t_ns": int(seconds[-1] * S), "times": times}
    return m.VisitKind, {"id": number, "count": count, **told, **shown, **fields}


def page_of(path):
    return render(read_report(path))


def test_a_kind_of_visits_has_a_picture_how_many_how_often_and_when(tmp_path):
    told = visits(3, 2, seconds=[20, 50]), visits(3, 4, seconds=[70, 90], first_t_ns=20 * S)
    page = page_of(run_of(tmp_path, *told, visits(5, 1, seconds=[60])))
    assert page.count("<article class='visit'") == 2
    assert "Kind 3: 4 visits" in page
    assert "once in 24 seconds; first 0:20.0, last 1:30.0" in page
    assert "once so far; at 1:00" in page
    strip = page.split("id='kind-3'")[1].split("</svg>")[0]
    assert strip.count("<rect") == 4  # those told first and those told later


def test_a_kind_is_called_what_a_person_named_it_and_no_markup_of_theirs_gets_in(tmp_path):
    page = page_of(run_of(tmp_path, visits(3, 2, seconds=[20, 50], label="<b>van</b>")))
    assert "&lt;b&gt;van&lt;/b&gt;: 2 visits" in page


def test_without_kinds_there_is_no_section(tmp_path):
    assert "Kinds of visits" not in page_of(run_of(tmp_path))


def test_an_event_leads_to_its_kind_and_is_rare_by_what_was_counted(tmp_path):
    counted = {"watched_s": 180.0, "judged": 1800, "visits": 11, "alike": 0, "here": 2, "visit_kind": 3}
    event = {"id": 0, "alert_kind": "novel", "phase": "end", "rarity": 1e6, "start_frame": 9, "duration_s": 1.0}
    page = page_of(run_of(tmp_path, visits(3, 1, seconds=[20]), (m.Alert, event | counted)))
    assert "Never seen before in 3 minutes" in page
    assert "3 min 0 s: 1\u202f800 frames, 11 visits, 0 of its kind, 2 to its place" in page
    assert "once in 60 seconds at most, with 95% certainty" in page
    assert "Of <a href='#kind-3'>kind 3</a>: 1 visit in all." in page
    assert "one frame in" not in page


def test_a_report_says_from_when_to_when_the_agent_was_not_sure(tmp_path):
    unsure = m.LogNotice, {"code": "unsure", "text": "learning, busy start: something moved"}
    path = run_of(tmp_path / "a", unsure, (m.LogNotice, {"code": "sure", "text": "sure from here on"}))
    assert "From 0:01.0 until 0:01.0 the agent was not sure: learning, busy start" in page_of(path)
    assert "Nothing was out of the ordinary." in page_of(path)
    open_end = page_of(run_of(tmp_path / "b", unsure))
    assert "From 0:01.0 to the end the agent was not sure" in open_end
    assert "Nothing was out of the ordinary." not in open_end


def test_kinds_are_a_table_and_pictures_in_python(tmp_path):
    run = open_run(run_of(tmp_path, visits(3, 4, seconds=[20, 50]), visits(5, 1, seconds=[60], label="van")))
    first, second = run.kinds()
    assert first == {
        "kind": 3, "name": None, "visits": 4, "first_s": 20.0, "last_s": 50.0, "picture_frame": 30, "run": first["run"],
        "once_in_s": 24.0,
    }  # fmt: skip
    assert (second["name"], second["visits"]) == ("van", 1)
    assert run.kind_pictures()[5][:2] == b"\xff\xd8"


def test_the_command_lists_kinds_and_refuses_an_edit_list_of_them(tmp_path, capsys):
    path = str(run_of(tmp_path, visits(3, 4, seconds=[20, 50])))
    assert main(["events", path, "--kinds"]) == 0
    assert capsys.readouterr().out == "kind 3  4 visits  once in 24 seconds  first 0:20.0, last 0:50.0\n"
    assert main(["events", path, "--kinds", "--edl"]) == 2
    assert "--kinds: kinds of visits have no edit list" in capsys.readouterr().err
