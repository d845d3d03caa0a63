"""Two hundred kills of a recording agent: nothing but the last moment is ever lost."""

import json
import subprocess

import numpy as np
import pytest
from power_processes import agent_command, check_after_kill, kill_at_random
from recordings import make_video

pytestmark = pytest.mark.soak

KILLS = 200


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
