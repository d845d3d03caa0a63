"""A million frames through one process leave its memory where it was: recording, clips, subscriber, reloads and all.

STILLWATCH_SOAK_MILLION_FRAMES: how many after a restart. STILLWATCH_SOAK_MILLION_SIZE: of the pictures, 64x48 if not
said; at 32x32 a frame takes a sixth less, and nothing is large enough for an alert. Small pictures and models let one
core take some 300 a second; what grows by a frame, an event, an epoch, a file, a checkpoint or a reload does so at any
size.
"""

import json
import os
import time

import numpy as np
import pytest
from million import CLIP_FRAMES, Millions

from stillwatch.transport.disk import open_run

FRAMES = int(os.environ.get("STILLWATCH_SOAK_MILLION_FRAMES", "1000000"))
BEFORE_RESTART = CLIP_FRAMES
WARM_FRAMES = min(100_000, FRAMES // 5)
MOST_GROWTH = 1.02
RELOAD_EVERY_S = 30.0


def slope(rows, name):
    """Return growth a frame of the least of each tenth: what learning takes for a while is not growth."""
    parts = np.array_split([(row["frames"], row[name]) for row in rows], min(10, len(rows)))
    least = [min(part, key=lambda row: row[1]) for part in parts]
    return round(float(np.polyfit(*np.array(least, float).T, 1)[0]), 2)


@pytest.mark.soak
@pytest.mark.timeout(40_000)
def test_a_million_frames_leave_memory_where_it_was(tmp_path, capsys):
    with Millions(tmp_path, BEFORE_RESTART + FRAMES) as agent:
        codes, reloaded = [], time.monotonic()
        while agent.process.poll() is None:
            time.sleep(1.0)
            agent.scrape()
            for row in agent.news():
                with capsys.disabled():
                    print(json.dumps(row), flush=True)
                if not codes and row["frames"] >= BEFORE_RESTART:
                    codes.append(agent.stop())
                    agent.start()
            if time.monotonic() - reloaded > RELOAD_EVERY_S:
                reloaded = time.monotonic()
                agent.reload()
        codes.append(agent.process.wait())
        warm = [row for row in agent.told if row["frames"] >= BEFORE_RESTART + WARM_FRAMES]
    found = {name: slope(warm, name) for name in ("resident", "in_use", "blocks")}
    with capsys.disabled():
        print(json.dumps({"growth_a_frame": found, "codes": codes, "reloads": agent.reloads, "heard": agent.heard}))
    tenth = max(len(warm) // 10, 1)
    least = [min(row["resident"] for row in part) for part in (warm[:tenth], warm[-tenth:])]
    assert codes == [0, 0]
    assert open_run(tmp_path / "run").summary["frames"] >= FRAMES
    assert agent.heard > 0
    assert agent.scraped > 0
    assert least[1] <= least[0] * MOST_GROWTH
