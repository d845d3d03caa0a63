"""Events and scores as other programs take them: CSV, JSON, an edit list, time codes."""

import csv
import io
import json

import pytest
from run_folders import make_run

from stillwatch.base import ExitCode, UsageError
from stillwatch.runs import Table
from stillwatch.tools.cli import main
from stillwatch.tools.tables.formats import edit_list, time_codes


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return str(make_run(tmp_path_factory.mktemp("run")))


def spans(*pairs):
    rows = [
        {"id": i, "kind": "novel", "stream_s": start, "duration_s": end - start} for i, (start, end) in enumerate(pairs)
    ]
    return Table("events", ["id", "kind", "stream_s", "duration_s"], rows)


def test_json_is_one_object_of_rows(run, capsys):
    assert main(["events", run, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["id"] for row in rows] == [0, 1, 2]
    assert {"kind", "phase", "t_utc", "stream_s", "frame", "end_frame", "rarity", "score", "boxes"} <= set(rows[0])


def test_csv_reads_back_to_the_same_values(run, capsys):
    assert main(["events", run, "--csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert main(["events", run, "--json"]) == 0
    same = json.loads(capsys.readouterr().out)["rows"]
    assert [float(row["rarity"]) for row in rows] == [row["rarity"] for row in same]
    assert [json.loads(row["boxes"]) for row in rows] == [row["boxes"] for row in same]


def test_scores_have_a_row_a_frame(run, capsys):
    assert main(["scores", run, "--csv"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1 + 900


def test_without_a_form_it_is_for_people(run, capsys):
    assert main(["events", run]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first == "0:26.0  frame 260  event 0  something new  left  one frame in 4 000  for 4.0 s"


def test_topics_are_for_people_and_for_programs(tmp_path, capsys):
    run = str(make_run(tmp_path, n_frames=150, topics=True))
    assert main(["topics", run]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "0:10.0  frame 100       75% topic 0  25% topic 1"
    assert main(["topics", run, "--csv"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "frame,t_utc,stream_s,topic,name,share,latitude,longitude,run"


def test_time_codes_are_start_and_end_of_every_event_and_last_a_second_at_least():
    assert time_codes(spans((51.7, 62.0), (3725.25, 3725.25))) == [
        "00:00:51.700", "00:01:02.000", "01:02:05.250", "01:02:06.250",
    ]  # fmt: skip


def test_an_edit_list_cuts_every_event_out_of_the_clip_one_behind_the_other():
    text = "".join(edit_list(spans((2.0, 4.0), (60.5, 61.5)), 10.0, "door.mp4"))
    assert "001  AX       V     C        00:00:02:00 00:00:04:00 00:00:00:00 00:00:02:00" in text
    assert "002  AX       V     C        00:01:00:05 00:01:01:05 00:00:02:00 00:00:03:00" in text
    assert text.count("* FROM CLIP NAME: door.mp4") == 2


def test_an_edit_list_refuses_more_events_than_it_can_number():
    with pytest.raises(UsageError, match="1000 events.*999"):
        list(edit_list(spans(*[(0.0, 1.0)] * 1000), 25.0, "x"))


def test_a_rate_that_is_none_is_refused(run, capsys):
    assert main(["events", run, "--edl", "--fps", "0"]) == ExitCode.USAGE
    assert "--fps: 0 is not a rate in [1, 1000]" in capsys.readouterr().err
