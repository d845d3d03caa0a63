"""Motion detectors by DVR-Scan's rule: what begins an event, what ends it, what a program's answer means."""

import subprocess
import sys

import numpy as np
import pytest
from capture_sources import frame_of
from data_location import data_dir

from stillwatch.base import AgentError, UsageError
from stillwatch.tools.bench.detectors import alerts_of, measured, program_of, time_codes
from stillwatch.tools.evaluate import Truth

RATE = 20


class Scripted:
    """A detector whose score is the next of a list."""

    def __init__(self, scores):
        self._scores = iter(scores)

    def score(self, frame, seen=None):
        return next(self._scores)


def alerts(*stretches):
    """Alerts of stretches (frames, score) one behind the other."""
    scores = [score for n, score in stretches for _ in range(n)]
    picture = np.zeros((8, 8, 3), np.uint8)
    frames = [frame_of(picture, i / RATE, sequence=i) for i in range(len(scores))]
    return alerts_of(frames, Scripted(scores), 0.5)


def test_an_event_begins_with_a_tenth_of_a_second_of_motion_in_a_row():
    assert alerts((10, 0), (2, 1), (10, 0)) == []  # 0.05 s from its first to its last frame
    assert alerts((10, 0), (3, 1), (10, 0)) == [12]


def test_pauses_of_two_seconds_belong_to_it_and_longer_ones_do_not():
    assert alerts((3, 1), (39, 0), (3, 1)) == [2]
    assert alerts((3, 1), (41, 0), (3, 1)) == [2, 46]


def test_dvr_scans_answer_is_pairs_of_time_codes():
    assert time_codes("[DVR-Scan] x\n00:00:51.700,00:01:02.000,01:02:05.250,01:02:06.250\n") == [
        51.7, 62.0, 3725.25, 3726.25,
    ]  # fmt: skip


@pytest.fixture
def clip_of_nothing(tmp_path):
    """A config of a short synthetic road."""
    from stillwatch.settings import load_config

    settings = ["source.width=160", "source.height=120", "patches.memory=600", "scenes.memory=60"]
    return load_config(None, ['source.uri="synthetic:road?n_frames=24&width=160&height=120"', *settings])


@pytest.mark.slow
def test_every_method_has_a_row_and_an_absent_program_says_how_to_get_it(clip_of_nothing):
    rows = measured(clip_of_nothing, Truth(((5, 9),), 2), None)
    assert [row["method"] for row in rows] == ["stillwatch", "dvr-scan", "mog2", "knn", "difference"]
    assert {row["events_total"] for row in rows} == {1}
    assert rows[1]["events_found"] is None
    assert "'stillwatch[bench]'" in rows[1]["note"]


def _program(folder, text):
    folder.mkdir(exist_ok=True)
    made = folder / "dvr-scan"
    made.write_text(text)
    made.chmod(0o755)
    return str(made)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("\x00", "cannot be run"),
        ("#!/bin/sh\necho cat 9.1\n", "does not answer"),
        ("#!/bin/sh\nexit 3\n", "exit code 3"),
    ],
)
def test_a_program_that_is_no_dvr_scan_is_named_before_anything_runs(tmp_path, text, told):
    program = _program(tmp_path, text)
    with pytest.raises(AgentError, match=told) as raised:
        program_of(program)
    assert program in str(raised.value)


def test_a_program_that_is_absent_is_named():
    with pytest.raises(UsageError, match="--dvr-scan: no-such-program is no program"):
        program_of("no-such-program")


def test_the_one_of_this_environment_is_found_though_it_is_not_activated(tmp_path, monkeypatch):
    ours = _program(tmp_path / "environment", "#!/bin/sh\n")
    _program(tmp_path / "path", "#!/bin/sh\n")
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "environment" / "python"))
    assert program_of(None) == ours


@pytest.mark.slow
def test_dvr_scan_of_the_extra_finds_the_road_clips_first_car():
    """The real program, with this environment's OpenCV."""
    pytest.importorskip("dvr_scan")
    clip = data_dir("surveillance", "car_overhead.mp4")
    program = program_of(program_of(None))  # named, it must be one too
    told = subprocess.run([program, "-q", "-i", clip, "-so", "-tb", "0s"], capture_output=True, text=True, check=True)
    assert time_codes(told.stdout) == [4.32, 11.6, 14.4, 30.16]
