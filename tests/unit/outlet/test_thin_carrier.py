"""A link whose port is taken costs no watching: alerts wait in the outbox, and the port is tried again."""

import socket
import time

import pytest

from stillwatch.base.clock import VirtualClock
from stillwatch.process import make_thin_carrier
from stillwatch.settings import Config, LinkConfig
from stillwatch.transport.wire import Alert, LinkError

HEAD = {"agent": "a", "run": "r", "boot": "b", "epoch": 1, "sequence": 0, "t_ns": 0, "mono_ns": 0, "wall_ns": 0}


@pytest.fixture
def taken():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", 0))
        yield other


def carrier(tmp_path, clock, told, *, strict=False, **link):
    config = Config(link=LinkConfig(preset="lte", **{"endpoint": "udp://127.0.0.1:9", **link}))
    say = lambda code, text: told.append((code, text))  # noqa: E731
    return make_thin_carrier(config, clock, beside=tmp_path / "run", strict=strict, on_state=say)


def test_alerts_wait_while_the_port_is_taken_and_it_is_bound_once_it_is_free(tmp_path, taken):
    clock, told, port = VirtualClock(0, 0), [], taken.getsockname()[1]
    link = carrier(tmp_path, clock, told, listen=f"udp://127.0.0.1:{port}")
    link.open()
    link.carry("alert", b"", Alert(**HEAD, id=1, phase="new", start_frame=0, start_t_ns=0, duration_s=0.0))
    link.poll()
    assert (link.backlog, link.tx_bytes) == (1, 0)
    taken.close()
    clock.sleep(6.0)
    ends = time.monotonic() + 10.0
    while len(told) < 2 and time.monotonic() < ends:
        link.poll()
        time.sleep(0.01)
    link.close()
    assert [code for code, _ in told] == ["link_port_taken", "link_port_bound"]
    assert link.tx_bytes > 0
    assert f"127.0.0.1:{port}: Address already in use" in told[0][1]


def test_a_modem_whose_name_is_not_known_is_named_and_waited_for(tmp_path):
    told = []
    link = carrier(tmp_path, VirtualClock(0, 0), told, endpoint="udp://modem.invalid:5000")
    link.open()
    link.poll()
    link.close()
    assert "link endpoint modem.invalid:5000: " in told[0][1]


def test_a_strict_run_ends_where_the_port_is_taken(tmp_path, taken):
    link = carrier(tmp_path, VirtualClock(0, 0), [], strict=True, listen=f"udp://127.0.0.1:{taken.getsockname()[1]}")
    with pytest.raises(LinkError, match="Address already in use"):
        link.open()
