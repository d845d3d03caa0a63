"""One truth about what did not arrive: what the station prints, keeps, and what the report of its folder says."""

import re
import threading
import time

import pytest
from live_agent import Agent

from stillwatch.tools.ground import GroundStation
from stillwatch.tools.report.data import read_report
from stillwatch.transport.disk import open_run

pytestmark = [pytest.mark.usefixtures("tracked_zmq"), pytest.mark.slow]
SENT_WITHIN_S = 30.0


def heard(tmp_path, capsys, n_models):
    """Return what a station prints that hears heartbeats, models faster than they find room, and scores."""
    with Agent(f"ipc://{tmp_path}/live") as agent:
        station = GroundStation(agent.endpoints["data"], keys=None, agent=None, out=str(tmp_path / "ground"))
        stop = threading.Event()
        thread = threading.Thread(target=station.listen, args=(stop,), kwargs={"until_end": False, "seconds": None})
        thread.start()

        def beat_until(condition):
            end = time.monotonic() + SENT_WITHIN_S
            while not condition():
                assert time.monotonic() < end, station.received
                agent.ask(do="send", kind="status")
                time.sleep(0.05)

        try:
            beat_until(lambda: station.received["status"] > 2)
            agent.ask(do="send", kind="model", count=n_models, size=250_000)
            before = station.received["status"]
            beat_until(lambda: station.received["status"] > before + 2)  # the last models wait still
            agent.ask(do="send", kind="score", count=70, pause_s=0.01)
            beat_until(lambda: station.received["model"] == 3)
            before = station.received["status"]
            beat_until(lambda: station.received["status"] > before + 2)
        finally:
            stop.set()
            thread.join()
    return capsys.readouterr().err


def told(said):
    return sum(int(number) for number in re.findall(r"^gap: (\d+) ", said, re.MULTILINE))


def agreed(tmp_path, said):
    """Return what is lost by kind, once all who tell it agree: a loaded machine may lose scores besides."""
    lost = open_run(tmp_path / "ground").summary["gaps"]
    assert told(said) == sum(lost.values())
    assert (f", {sum(lost.values())} lost" if lost else "no gap since the first") in said
    assert read_report(tmp_path / "ground").missed == lost
    return lost


def test_what_came_late_is_no_gap_anywhere(tmp_path, capsys):
    assert "model" not in agreed(tmp_path, heard(tmp_path, capsys, n_models=3))


def test_what_was_lost_is_the_same_number_everywhere(tmp_path, capsys):
    """Four models where two find room at once: the fourth replaces the third, which is never sent."""
    assert agreed(tmp_path, heard(tmp_path, capsys, n_models=4))["model"] == 1
