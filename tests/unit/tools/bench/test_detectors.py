"""Motion detectors by DVR-Scan's rule: what begins an event, what ends it, what a program's answer means."""

import pathlib

import numpy as np
import pytest
from capture_sources import frame_of

from stillwatch.base import UsageError
from stillwatch.tools.bench.detectors import alerts_of, measured, time_codes
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
    rows = measured(clip_of_nothing, Truth(((5, 9),), 2), "no-such-program")
    assert [row["method"] for row in rows] == ["stillwatch", "dvr-scan", "mog2", "knn", "difference"]
    assert {row["events_total"] for row in rows} == {1}
    assert rows[1]["events_found"] is None
    assert "dvr-scan[opencv-headless]" in rows[1]["note"]


def test_a_program_that_cannot_run_is_named(tmp_path, monkeypatch):
    from types import SimpleNamespace

    from stillwatch.tools.bench import detectors

    broken = tmp_path / "dvr-scan"
    broken.write_bytes(b"\x00")
    broken.chmod(0o755)
    config = SimpleNamespace(source=SimpleNamespace(uri="clip.mp4"))
    run = SimpleNamespace(alerts=[], number=np.arange(3), t_ns=np.arange(3) * 10**8)
    monkeypatch.setattr(detectors, "run_pinned", lambda config: run)
    monkeypatch.setattr(detectors, "frames_of", lambda config: [])
    with pytest.raises(UsageError, match=str(pathlib.Path(broken))):
        measured(config, Truth((), 2), str(broken))
