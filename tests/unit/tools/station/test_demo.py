"""The demonstration's agents are real ones, and can be heard where the station listens."""

import time

import pytest

from stillwatch.tools.station import demo as demonstration
from stillwatch.tools.station.settings import StationSettings
from stillwatch.transport.live import why_unreachable

WITHIN_S = 200.0


@pytest.mark.slow
def test_every_agent_of_the_demonstration_can_be_heard_where_the_station_listens(monkeypatch, tmp_path):
    monkeypatch.setattr(demonstration, "FRAMES", 10_000)  # more than are seen here; millions take long to plan
    demo = demonstration.Demo(str(tmp_path))
    endpoints = [agent.endpoint for agent in demo.settings(StationSettings()).agents.values()]
    demo.start()
    try:
        until = time.monotonic() + WITHIN_S
        while (silent := [why_unreachable(endpoint) for endpoint in endpoints]) != [""] * 3:
            assert time.monotonic() < until, f"{silent}: {[log.read_text()[-300:] for log in tmp_path.glob('*.log')]}"
            time.sleep(0.2)
    finally:
        demo.stop()
