"""A long run takes no more memory at its end than soon after its start: 20,000 frames of a looped clip."""

import json
import os
import subprocess
import sys

import pytest
from data_location import data_dir

from stillwatch.transport.disk.run_folder import open_run

FRAMES = int(os.environ.get("STILLWATCH_SOAK_FRAMES", "20000"))
WARM_FRAMES = 2000
MOST_GROWTH = 0.02


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_resident_memory_after_20000_frames_is_that_after_2000(tmp_path, capsys):
    clip = data_dir("surveillance", "car_overhead.mp4")
    loops = -(-FRAMES // 377)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "stillwatch.tools.cli",
            "run",
            "--source",
            f"{clip}?loop={loops}",
            "--out",
            str(tmp_path / "run"),
            "--set",
            "publish.endpoint=",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    run = open_run(tmp_path / "run")
    held = [(m.frames, m.rss_bytes) for _, m in run.messages({"status"}) if m.frames >= WARM_FRAMES]
    warm, last = held[0], held[-1]
    growth = last[1] / warm[1] - 1.0
    with capsys.disabled():
        figures = {"frames": [warm[0], last[0]], "rss_mb": [round(h[1] / 1e6, 1) for h in (warm, last)]}
        print(json.dumps({**figures, "growth": round(growth, 4), "summary": run.summary["hash"]}))
    assert last[0] > 0.9 * FRAMES
    assert growth <= MOST_GROWTH
