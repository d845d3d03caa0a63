"""Clips of a whole run: of a file's packets, of frames where there are none, beside a recorder, and afterwards."""

import json

import av
import cv2
import pytest
from data_location import data_dir

from stillwatch.base import RealClock
from stillwatch.process import RunOptions, run_agent
from stillwatch.settings import load_config
from stillwatch.tools import cli

pytestmark = pytest.mark.slow


def run(folder, source, *more, record=None):
    settings = ["clips.ring_bytes=8000000", 'publish.endpoint=""', f'source.uri="{source}"', *more]
    return run_agent(load_config(None, settings), RunOptions(out=folder, record=record), RealClock())


def frames_of(file):
    with av.open(str(file)) as clip:
        return clip.streams.video[0].codec_context.name, sum(1 for _ in clip.decode(video=0))


def red_pixels(picture):
    """Return how many pixels of a BGR picture are far redder than blue and green."""
    blue, green, red = cv2.split(picture)
    return int(((cv2.subtract(red, blue) > 90) & (cv2.subtract(red, green) > 90)).sum())


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """The car clip's first event, run with clips and a recorder: (run folder, recording)."""
    folder = tmp_path_factory.mktemp("clips")
    car = data_dir("surveillance", "car_overhead.mp4")
    cut = folder / "car.mp4"
    with av.open(str(car)) as source, av.open(str(cut), "w") as out:
        video = source.streams.video[0]
        track = out.add_stream_from_template(video)
        for at, packet in enumerate(source.demux(video)):
            if packet.size and at < 130:
                packet.stream = track
                out.mux(packet)
    result = run(folder / "run", cut, record=folder / "recording")
    assert result.counts.alerts == 1
    return folder / "run", folder / "recording"


def test_each_alert_of_a_file_has_a_clip_of_its_own_packets(recorded):
    summary = json.loads((recorded[0] / "summary.json").read_text())
    assert summary["clips"] == {"written": 1, "lost": 0, "missed": 0}
    codec, frames = frames_of(recorded[0] / "clips" / "0.mp4")
    assert codec == "h264"
    assert 120 <= frames <= 130  # from the file's first key frame, 5 s before the event at 4.9 s, to its end


def test_a_recording_gives_the_same_clips_afterwards(recorded, capsys, tmp_path):
    assert cli.main(["clips", str(recorded[1]), "--out", str(tmp_path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [clip["alert"] for clip in told["clips"]] == [0]
    assert told["missed"] == []
    live, after = frames_of(recorded[0] / "clips" / "0.mp4"), frames_of(tmp_path / "0.mp4")
    assert after[0] == live[0]
    assert abs(after[1] - live[1]) <= 5


def test_an_overlay_shows_the_same_seconds_with_what_was_found_drawn_in(recorded, capsys, tmp_path):
    assert cli.main(["clips", str(recorded[1]), "--out", str(tmp_path), "--overlay", "--alert", "0"]) == 0
    with av.open(str(tmp_path / "0-overlay.mp4")) as clip:
        red = [red_pixels(frame.to_ndarray(format="bgr24")) for frame in clip.decode(video=0)]
    assert 100 <= len(red) <= 130
    assert min(red[:40]) == red[0] < max(red), "outlines appear once the event has begun"


def test_frames_of_a_source_without_packets_become_a_clip_of_jpegs(tmp_path):
    result = run(tmp_path / "run", "synthetic:room?n_frames=160&seed=1")
    assert result.counts.alerts >= 1
    codec, frames = frames_of(tmp_path / "run" / "clips" / "0.mp4")
    assert codec == "mjpeg"
    assert frames > 50


def test_clips_of_what_is_no_recording_are_refused_with_what_to_do(recorded, capsys):
    assert cli.main(["clips", str(recorded[0])]) == 2
    assert "run with --record" in capsys.readouterr().err
    assert cli.main(["clips", str(recorded[1]), "--alert", "5"]) == 2
    assert "it has 0" in capsys.readouterr().err
    assert cli.main(["clips", str(recorded[1]), "--before", "700"]) == 2
    assert "0 to 600 seconds" in capsys.readouterr().err
