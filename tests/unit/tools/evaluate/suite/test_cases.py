"""Cases, their truths worked out by hand, and what the command prints."""

import numpy as np
import pytest
from data_location import data_dir
from printed import of_schema

from stillwatch.base import UsageError
from stillwatch.settings import Config
from stillwatch.tools.cli import build_parser
from stillwatch.tools.evaluate.metrics import match
from stillwatch.tools.evaluate.suite import cases
from stillwatch.tools.evaluate.suite.cases import Case, after_start, looped_truth, starts_of, thinned, truth_from
from stillwatch.tools.evaluate.suite.clips import Clip, Stream, stamp_ns
from stillwatch.tools.evaluate.suite.command import above_on_every_group, alerts_in_a_day, by_group, main, summary
from stillwatch.tools.evaluate.suite.runner import frames
from stillwatch.tools.evaluate.suite.worlds import MadeWorld
from stillwatch.tools.evaluate.truth import Truth


def test_laps_of_a_clip_count_events_from_two_minutes_on():
    # 100 frames at 1 Hz, an event at 40-49, from frame 30 for 185 frames: lap 0 shows it at 40, lap 1 at 140, lap 2
    # at 240, after the end at 214. Two minutes are over at frame 150, so that none counts; seams are at 100 and 200.
    truth = looped_truth(Truth(((40, 49),), 2), 100, 1.0, 30, 215)
    assert truth == Truth((), 2, unjudged=((40, 49), (100, 101), (140, 149), (200, 201)), judged_from=150)
    # From frame 15 two minutes are over at 135: the showing at 140 counts.
    truth = looped_truth(Truth(((40, 49),), 2), 100, 1.0, 15, 200)
    assert truth.spans == ((140, 149),)


def test_an_event_that_begins_soon_after_a_start_is_not_judged():
    truth = after_start(Truth(((5, 12), (20, 25), (40, 50)), 2), start=10, settle=15)
    assert truth == Truth(((40, 50),), 2, unjudged=((5, 12), (20, 25)))


def test_a_settled_world_is_asked_for_what_begins_after_its_first_minutes():
    truth = Truth(((40, 49), (95, 105), (120, 130)), 2, unjudged=((10, 20),)).from_frame(100)
    # The event at 95 reaches over the border: nobody is asked for it, nor for anything before.
    assert truth == Truth(((120, 130),), 2, unjudged=((0, 105),), asked_from=100)
    assert truth.judged(np.array([50, 104, 106, 125])).tolist() == [False, False, True, True]
    assert match([10, 60, 99, 110, 121], truth).false_alerts == (110,)


def test_settled_worlds_are_of_a_fixed_camera_and_last():
    data = data_dir("surveillance").parent
    made = cases.cases_of(data, ("settled",), range(0, 12), 0, 0, 1)
    assert [case.name for case in made] == ["settled 0", "settled 3", "settled 6"]  # 9 is one of a camera that pans
    truth = cases.stream_of(made[0], data).truth
    assert truth.spans
    assert all(1500 <= first < cases.SETTLED_FRAMES for first, _ in truth.spans)


def test_a_knocked_world_is_asked_for_what_begins_in_either_view_once_that_was_seen():
    data = data_dir("surveillance").parent
    (made,) = cases.cases_of(data, ("knocked",), range(0, 3), 0, 0, 1)
    truth = cases.stream_of(made, data).truth
    numbers = [first for first, _ in truth.spans]
    assert any(1150 <= first < 1750 for first in numbers)
    assert any(1900 <= first < cases.SETTLED_FRAMES for first in numbers)
    assert all(1150 <= first < 1750 or 1900 <= first for first in numbers)
    assert not truth.judged(np.array([0, 999, 1149, 1750, 1899])).any()


SEGMENTS = {
    "fps": 10.0,
    "segments": [
        {"start": 0, "end": 79, "scene": "sand", "first_time": True},
        {"start": 80, "end": 139, "scene": "gravel", "first_time": True},
        {"start": 140, "end": 199, "scene": "sand", "first_time": False},
    ],
}


def test_what_is_first_shown_depends_on_the_start():
    clip = Clip("c", np.zeros((200, 1, 1, 3), np.uint8), SEGMENTS)
    assert truth_from(clip, 0).spans == ((80, 103),)
    assert truth_from(clip, 100).spans == ((140, 163),)  # gravel is in view at the start; sand was never shown


def test_starts_are_every_two_seconds_while_an_event_can_still_count():
    entry = {"fps": 10.0, "events": [{"start": 150, "end": 160}]}
    # Every 20 frames; the last event begins at 150, 80 frames after a start at 70 at the latest.
    assert starts_of(Clip("c", np.zeros((200, 1, 1, 3), np.uint8), entry)) == [20, 40, 60]
    assert thinned([1, 2, 3, 4, 5], 3) == [1, 3, 5]
    assert thinned([1, 2], 0) == [1, 2]


def test_frames_carry_the_numbers_of_their_clip_and_stream_time_from_the_start():
    def pictures():
        for number in range(6, 16, 3):
            yield number, np.full((32, 40, 3), number, np.uint8), stamp_ns(number - 6, 10.0)

    shown = list(frames(Stream("s", 10.0, Truth((), 2), pictures), Config()))
    assert [frame.sequence for frame in shown] == [6, 9, 12, 15]
    assert [frame.t_ns for frame in shown] == [0, 300_000_000, 600_000_000, 900_000_000]


def test_every_start_transform_and_seed_is_a_case():
    data = data_dir("surveillance").parent
    made = cases.cases_of(data, ("transform", "made"), range(1000, 1003), 0, 0, 1)
    assert [case.name for case in made if case.group == "made"] == ["world 1000", "world 1001", "world 1002"]
    assert {case.transform for case in made if case.group == "transform"} == set(cases.TRANSFORMS)


def test_quiet_hours_are_shared_out_among_places():
    quiet = cases.cases_of(data_dir("surveillance").parent, ("moving", "quiet"), range(3), 0, 0, 1, quiet_hours=6.0)
    assert [case.name for case in quiet] == [f"{kind} {seed}" for kind in ("voyage", "quiet") for seed in range(3)]
    assert sum(case.hours for case in quiet) == 6.0


def test_a_group_where_any_baseline_ranks_as_well_is_not_above_it():
    above = {"mean_auc": 0.8, "baselines_mean_auc": {"knn": 0.7, "mog2": None}}
    level = {"mean_auc": 0.7, "baselines_mean_auc": {"knn": 0.7}}
    alone = {"mean_auc": 0.7, "baselines_mean_auc": {}}
    assert above_on_every_group({"real": above, "made": alone}) is True
    assert above_on_every_group({"real": above, "made": level}) is False
    assert above_on_every_group({"made": alone}) is None


def test_quiet_alerts_are_told_for_a_day():
    assert alerts_in_a_day({"quiet": {"false_alerts": 2, "other_alerts": 1, "hours": 6.0}}) == 12.0
    assert alerts_in_a_day({}) is None


def row(group, clip, found, total, false, hours, auc):
    return {
        "group": group,
        "clip": clip,
        "events_found": found,
        "events_total": total,
        "false_alerts": false,
        "other_alerts": 3,
        "hours": hours,
        "auc": auc,
        "baselines": {},
    }


def test_a_summary_adds_up_and_leaves_out_what_has_no_area():
    rows = [row("start", "a@1", 1, 2, 1, 0.25, 0.8), row("start", "a@1 loop", 3, 4, 2, 0.25, None)]
    whole = summary(rows)
    assert (whole["found"], whole["total"], whole["false_alerts_per_hour"], whole["mean_auc"]) == (4, 6, 6.0, 0.8)
    assert whole["other_alerts"] == 6
    assert by_group(rows)["start, looped"]["found"] == 3
    assert "made" not in by_group(rows)


def run_command(*words):
    parser = build_parser(["evaluate", "suite"])
    return main(parser.parse_args(["evaluate", "suite", *words]))


@pytest.mark.slow
def test_one_world_printed_as_json_has_the_bound_names(capsys, monkeypatch):
    data_dir("caltech")
    monkeypatch.setattr(cases, "make_world", lambda seed, data: MadeWorld(seed, data, 210))
    assert run_command("--groups", "made", "--worlds", "1", "--baselines", "difference", "--json") == 0
    result = of_schema("evaluate suite", capsys.readouterr().out)
    assert {"rows", "found", "total", "false_alerts_per_hour", "mean_auc"} <= set(result)
    names = {"clip", "group", "auc", "events_total", "events_found", "false_alerts", "median_delay_s", "hours"}
    assert names <= set(result["rows"][0])
    assert (result["rows"][0]["clip"], result["rows"][0]["group"]) == ("world 0", "made")
    assert 0.0 <= result["rows"][0]["baselines"]["difference"] <= 1.0


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--groups", "real,toys"], "no group 'toys'"),
        (["--seed", "-1"], "below 0"),
        (["--jobs", "0"], "below 1"),
        (["--hours", "-1"], "below 0"),
    ],
)
def test_a_wrong_option_is_one_clear_line(words, text):
    data_dir("surveillance")
    with pytest.raises(UsageError, match=text):
        run_command(*words)


def test_a_case_is_named_by_what_it_shows():
    assert Case("start", "vtest", 40, looped=True).name == "vtest@40 loop"
    assert Case("transform", "vtest", transform="fog").name == "vtest fog"
