"""Whether an agent is well, and its figures: each moves with what it is named after, and none leaves the machine."""

import json
import re
import urllib.error
import urllib.request

import numpy as np
import pytest
from places import ROOT

from stillwatch.base import VirtualClock
from stillwatch.outlet import METRICS, MetricsCarrier, judge
from stillwatch.settings import load_config
from stillwatch.transport.wire import Alert, Scores, Status

HEAD = {"agent": "cam1", "run": "r", "boot": "b", "epoch": 1, "sequence": 0, "t_ns": 0, "mono_ns": 0, "wall_ns": 0}


def status(**fields):
    return Status(**HEAD | {"state": "live", "frame_age_s": 0.1, "frames": 7, "disk_free_bytes": 10**9} | fields)


def scores(*rarities):
    n = len(rarities)
    offsets, flags = np.zeros(n, np.int16), np.full(n, 8, np.uint8)
    return Scores(**HEAD, first=0, offsets=offsets, flags=flags, rarities=np.array(rarities, np.float32))


@pytest.mark.parametrize(
    ("change", "age_s", "ended", "reason"),
    [
        ({}, 0.0, False, None),
        ({"state": "dark"}, 0.0, False, None),
        ({"state": "frozen"}, 0.0, False, "source is frozen"),
        ({"state": "connecting", "frame_age_s": None}, 0.0, False, "no frame yet"),
        ({"frame_age_s": 31.0}, 0.0, False, "no new frame for 31 s"),
        ({}, 31.0, False, "no status for 31 s"),
        ({"disk_free_bytes": 1}, 0.0, False, "1 bytes free"),
        ({}, 3.0, True, "the run has ended"),
    ],
)
def test_an_agent_is_well_only_while_new_frames_come(change, age_s, ended, reason):
    verdict = judge(status(**change), age_s, ended=ended)
    assert verdict.ok == (reason is None)
    assert reason is None or reason in "; ".join(verdict.reasons)


def test_an_agent_never_heard_of_is_not_well():
    assert not judge(None, 0.0).ok


def fetched(port, path):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_figures_and_health_are_those_of_the_last_messages():
    pytest.importorskip("prometheus_client")
    clock = VirtualClock()
    own = {
        "source_total": {"reconnects": 3},
        "backlog_alerts": 2,
        "connections_total": {"accepted": 9},
        "stage_seconds_total": {"gate": 1.5},
        "queue_length": {"frames": 3},
    }
    carrier = MetricsCarrier(("127.0.0.1", 0), clock, lambda: own)
    carrier.open()
    try:
        assert fetched(carrier.port, "/healthz")[0] == 503
        carrier.carry("status", b"", status(refused={"dark": 4}, dropped=5, suppressed={"budget": 6}))
        carrier.carry("scores", b"", scores(7.0, 120.0))
        carrier.carry("alert", b"", Alert(**HEAD, id=1, phase="new", start_frame=0, start_t_ns=0, duration_s=0.0))
        code, text = fetched(carrier.port, "/metrics")
        assert code == 200
        for line in (
            "stillwatch_up 1.0",
            "stillwatch_frames_total 7.0",
            'stillwatch_frames_refused_total{reason="dark"} 4.0',
            "stillwatch_frames_dropped_total 5.0",
            'stillwatch_alerts_suppressed_total{why="budget"} 6.0',
            'stillwatch_source_total{what="reconnects"} 3.0',
            "stillwatch_novelty_rarity 120.0",
            'stillwatch_alerts_kind_total{kind="novelty"} 1.0',
            "stillwatch_backlog_alerts 2.0",
            'stillwatch_connections_total{what="accepted"} 9.0',
            'stillwatch_stage_seconds_total{stage="gate"} 1.5',
            'stillwatch_queue_length{queue="frames"} 3.0',
        ):
            assert line in text.splitlines()
        assert fetched(carrier.port, "/healthz")[0] == 200
        clock.advance_ns(31 * 10**9)
        code, body = fetched(carrier.port, "/healthz")
        assert (code, json.loads(body)["ok"]) == (503, False)
        assert fetched(carrier.port, "/etc/passwd")[0] == 404
    finally:
        carrier.close()


def test_a_taken_port_is_tried_again_and_stops_nothing():
    clock = VirtualClock()
    first = MetricsCarrier(("127.0.0.1", 0), clock)
    first.open()
    second = MetricsCarrier(("127.0.0.1", first.port), clock)
    second.open()
    assert second.port == 0
    second.carry("status", b"", status())
    first.close()
    clock.advance_ns(6 * 10**9)
    second.poll()
    assert second.port > 0
    second.close()


@pytest.mark.parametrize("endpoint", ["0.0.0.0:9570", "cam.example:9570", "127.0.0.1"])
def test_figures_are_for_this_machine_alone(endpoint):
    from stillwatch.base import ConfigError

    with pytest.raises(ConfigError, match="metrics.endpoint"):
        load_config(None, [f'metrics.endpoint="{endpoint}"'])


def test_the_dashboard_shows_only_what_there_is():
    text = (ROOT / "configs" / "grafana-dashboard.json").read_text()
    json.loads(text)
    shown = set(re.findall(r"stillwatch_(\w+)", text))
    assert shown <= {name for name, *_ in METRICS}
    assert len(shown) > 15
