"""200 agents at ten scores a second take part of a core: nothing lost, alerts within a second, memory flat."""

import json
import os

import pytest
import station_load

SECONDS = float(os.environ.get("STILLWATCH_LOAD_S", "3600"))


@pytest.mark.soak
def test_a_fleet_of_200_is_heard_whole_and_at_once(tmp_path):
    sent, heard = station_load.run(tmp_path, 200, SECONDS, 10.0, 60.0)
    print(json.dumps(sent), json.dumps(heard))
    assert heard["agents_heard"] == 200
    assert heard["lost"] == 0
    assert heard["cpu_share"] < 1.0
    assert heard["alerts"] == sent["alerts"]
    assert heard["scores"] == 10 * sent["sent"]["scores"]
    assert heard["latency_s"]["p99"] < 1.0
    settled = heard["memory_mb"][len(heard["memory_mb"]) // 3 : -1]
    assert max(settled) - settled[0] < 0.1 * settled[0]
