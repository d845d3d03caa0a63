"""Everything that befalls an agent in months befalls one in seconds, once: tests/soak/test_day.py does it for a day."""

import signal

import pytest
from day import RATE_HZ, Day, account, pictures
from power_processes import small_disk, wait_for
from rtsp_server import RtspServer, encode_h264

from stillwatch.tools.report import write_report
from stillwatch.transport.disk import open_run
from stillwatch.transport.wire.errors import LogError

SPEED = 20.0


@pytest.mark.slow
def test_an_agent_outlives_camera_clock_disk_reload_and_power(tmp_path):
    units = encode_h264(pictures(120), rate=25)
    with (
        small_disk(tmp_path / "disk", megabytes=10) as disk,
        RtspServer(units, rate_hz=SPEED * RATE_HZ) as server,
        Day(tmp_path, disk, server, SPEED) as day,
    ):
        watch_on(disk)
        troubles = (day.clock_step, day.reload, day.camera_silent, day.camera_lost, day.disk_full, day.power_cut)
        for befalls in (*troubles, day.camera_lost):  # once more: what a run that goes on says of its camera, and when
            befalls()
            watch_on(disk)
        day.end(signal.SIGTERM)
        run = open_run(disk / "run")
        found = account(run, 1000)
        page = write_report(disk / "run", tmp_path / "report.html").read_text("utf-8")  # the disk may be full again
    assert day.codes == [-signal.SIGKILL, 0]
    assert found["starts"] == 2
    assert found["hours_without_word"] == []
    assert found["states_out_of_time"] == 0
    assert {"live", "connecting"} <= set(found["states"])
    assert {"config_read", "disk_ok"} <= set(found["notices"])
    assert run.gaps[0]["lost_records"] > 0  # and what was lost is told, where the disk took nothing of its own notice
    assert "Watched for" in page


def watch_on(disk):
    """Wait until more frames are told of: whatever befell it, it watches on."""
    before = scores_of(disk)
    wait_for(lambda: scores_of(disk) > before + 10, every_s=0.2)


def scores_of(disk):
    """Return how many frames the run folder tells of so far."""
    try:
        return sum(1 for _ in open_run(disk / "run").messages({"score"}))
    except LogError:  # it is not there yet
        return 0
