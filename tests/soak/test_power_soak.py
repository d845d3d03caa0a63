"""Two hundred kills of a recording agent, and of a recorder alone: nothing but the last moment is ever lost."""

import json
import subprocess

import numpy as np
import pytest
from power_processes import agent_command, check_after_kill, kill_at_random, recorder_command
from recordings import make_video

from stillwatch.transport.disk.record_log import read_records

pytestmark = pytest.mark.soak

KILLS = 200


@pytest.mark.timeout(7200)
def test_two_hundred_kills_of_a_recorder_leave_no_frame_out(tmp_path):
    video = make_video(tmp_path / "v.mkv", frames=60)
    folder = tmp_path / "rec"
    rng = np.random.default_rng(0)
    taken = 0
    for _ in range(KILLS):
        killed_ns = kill_at_random(recorder_command(video, folder), folder, rng)
        frames = check_after_kill(folder, killed_ns)
        assert len(frames) > taken
        taken = len(frames)
    sequences = [record.sequence for record in read_records(folder)]
    assert sequences == list(range(len(sequences)))


@pytest.mark.timeout(7200)
def test_two_hundred_kills(tmp_path):
    video = make_video(tmp_path / "v.mkv", frames=600)
    folder = tmp_path / "rec"
    rng = np.random.default_rng(2)
    command = agent_command("record", f"{video}?loop=1000", folder)
    for _ in range(KILLS):
        check_after_kill(folder, kill_at_random(command, folder, rng))
    done = subprocess.run(agent_command("replay", folder, "--json")[:6], check=False, capture_output=True, text=True)
    assert json.loads(done.stdout)["equal"] is True, done.stderr
