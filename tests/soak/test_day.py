"""A day at 5 frames a second in less than a day, in which everything befalls an agent again and again.

Cameras lost, silent and back, clock steps, a disk that fills and is freed, reloads; SIGTERM after a third of it, a
power cut after two. STILLWATCH_SOAK_DAY_HOURS are the agent's own hours; STILLWATCH_SOAK_DAY_SPEED, how many of its
seconds one of ours has: a machine that is too slow for it drops frames, of which there are fewer then.
"""

import json
import os
import signal
import time

import pytest
from day import RATE_HZ, Day, account, pictures
from power_processes import small_disk
from rtsp_server import RtspServer, encode_h264

from stillwatch.tools.report import write_report
from stillwatch.transport.disk import open_run

HOURS = float(os.environ.get("STILLWATCH_SOAK_DAY_HOURS", "24"))
SPEED = float(os.environ.get("STILLWATCH_SOAK_DAY_SPEED", "20"))
WARM_FRAMES = 6000  # by then an agent of this size has taken what it keeps: 307 MB, 288 at frame 1500
MOST_GROWTH = 1.02
SPAN_S = 400.0  # of the agent's, between two of what befalls it


@pytest.mark.soak
@pytest.mark.timeout(40_000)
def test_a_day_leaves_no_memory_descriptor_thread_or_hour_behind(tmp_path, capsys):
    units = encode_h264(pictures(), rate=25)
    with (
        small_disk(tmp_path / "disk", megabytes=600) as disk,
        RtspServer(units, rate_hz=SPEED * RATE_HZ) as server,
        Day(tmp_path, disk, server, SPEED) as day,
    ):
        befalls = [day.nothing, day.camera_lost, day.clock_step, day.nothing, day.reload, day.camera_silent]
        befalls += [day.nothing, day.disk_full]
        restarts = {1: day.stop, 2: day.power_cut}  # by the third of the day after which they come
        began, turn = time.monotonic(), 0
        while (gone := (time.monotonic() - began) * SPEED / 3600 / HOURS) < 1.0:
            time.sleep(SPAN_S / SPEED)
            assert day.process.poll() is None, day.said.read_text()[-2000:]
            restarts.pop(int(3 * gone), befalls[turn % len(befalls)])()
            turn += 1
        time.sleep(SPAN_S / SPEED)
        day.end(signal.SIGTERM)
        found = account(open_run(disk / "run"), WARM_FRAMES)
        page = write_report(disk / "run", tmp_path / "report.html").read_text("utf-8")
    with capsys.disabled():
        print(json.dumps({"turns": turn, "codes": day.codes, "held": day.held, **found}))
    assert set(day.codes) <= {0, -signal.SIGKILL}
    assert day.codes[-1] == 0
    assert all(last <= first * MOST_GROWTH for first, last in found["least_mb"])
    assert found["hours_without_word"] == []
    assert found["states_out_of_time"] == 0
    assert found["hours"] >= int(HOURS)
    assert "config_read" in found["notices"]
    assert "Watched for" in page
    for held in zip(*day.held, strict=True):  # descriptors, threads: but for a camera that is just being opened
        assert max(held) - min(held) <= 3
