"""How fast recordings replay, decoding included, on one core."""

import json
import subprocess
import sys
from fractions import Fraction

import pytest
from data_location import data_dir

pytestmark = pytest.mark.perf

LEAST_SPEED = 5.0  # times real time, 320x240 at 10 frames a second
FRAMES = 600


def _clip(path):
    """Write real footage as 320x240 H.264 at 10 frames a second."""
    import av

    source = data_dir("surveillance", "vtest_384x288.mp4")
    with av.open(str(source)) as given, av.open(str(path), "w") as made:
        stream = made.add_stream("libx264", rate=10)
        stream.width, stream.height, stream.pix_fmt = 320, 240, "yuv420p"
        stream.options = {"preset": "veryfast", "crf": "23"}
        for i, frame in enumerate(given.decode(video=0)):
            if i == FRAMES:
                break
            small = frame.reformat(320, 240, "yuv420p")
            small.pts, small.time_base = i, Fraction(1, 10)
            made.mux(stream.encode(small))
        made.mux(stream.encode())
    return path


def _on_one_core(*arguments):
    command = ["taskset", "-c", "1", sys.executable, "-m", "stillwatch.tools.cli", *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)


@pytest.mark.timeout(900)
def test_a_replay_runs_at_least_five_times_as_fast_as_it_was_recorded(tmp_path):
    clip = _clip(tmp_path / "clip.mp4")
    _on_one_core("record", clip, tmp_path / "rec", "--set", 'publish.endpoint=""')
    report = json.loads(_on_one_core("replay", tmp_path / "rec", "--json").stdout)
    print(report)
    assert report["equal"] is True
    assert report["frames"] == FRAMES
    # By CPU seconds: what the wall clock says on a core that is shared says nothing about us.
    assert report["speed"] * report["seconds"] / report["cpu_seconds"] >= LEAST_SPEED
