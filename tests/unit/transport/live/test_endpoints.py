"""Where an agent's sockets are, and whom they let in."""

import pytest

from stillwatch.base.clock import RealClock
from stillwatch.transport.live.endpoints import derived_endpoint, is_private
from stillwatch.transport.live.publisher import Publisher
from stillwatch.transport.wire.errors import EncodeError, TransportError
from stillwatch.transport.wire.topics import topic_bytes

pytestmark = pytest.mark.usefixtures("tracked_zmq")


@pytest.mark.parametrize(
    ("endpoint", "snapshot", "control"),
    [
        ("tcp://127.0.0.1:5570", "tcp://127.0.0.1:5571", "tcp://127.0.0.1:5572"),
        ("tcp://[::1]:5570", "tcp://[::1]:5571", "tcp://[::1]:5572"),
        ("ipc:///run/cam1", "ipc:///run/cam1.snapshot", "ipc:///run/cam1.control"),
    ],
)
def test_snapshot_and_control_are_beside_the_data(endpoint, snapshot, control):
    assert derived_endpoint(endpoint, "snapshot") == snapshot
    assert derived_endpoint(endpoint, "control") == control


@pytest.mark.parametrize(
    "endpoint", ["", "udp://x:1", "tcp://x", "tcp://:5570", "tcp://x:port", "tcp://x:65534", "ipc://"]
)
def test_malformed_endpoint_is_refused(endpoint):
    with pytest.raises(TransportError):
        derived_endpoint(endpoint, "snapshot")


@pytest.mark.parametrize(
    ("endpoint", "private"),
    [
        ("tcp://127.0.0.1:1", True), ("tcp://127.1.2.3:1", True), ("tcp://[::1]:1", True), ("tcp://localhost:1", True),
        ("ipc:///tmp/x", True), ("tcp://*:1", False), ("tcp://0.0.0.0:1", False), ("tcp://10.0.0.1:1", False),
        ("tcp://eth0:1", False), ("tcp://[::]:1", False),
    ],
)  # fmt: skip
def test_only_loopback_and_ipc_are_private(endpoint, private):
    assert is_private(endpoint) is private


def test_port_in_use_is_an_error_that_names_it_and_leaves_nothing_open():
    first = Publisher("tcp://127.0.0.1:0", "cam1", control="auto", clock=RealClock())
    first.open()
    second = Publisher(first.bound_endpoint, "cam1")
    with pytest.raises(TransportError, match="cannot bind tcp://127.0.0.1"):
        second.open()
    assert set(first.endpoints) == {"data", "snapshot", "control"}
    first.close()
    first.close()


def test_payload_of_another_kind_or_agent_is_not_published():
    from wire_examples import examples

    from stillwatch.transport.wire.codec import encode

    publisher = Publisher("tcp://127.0.0.1:0", "cam2")
    publisher.open()
    with pytest.raises(EncodeError, match="status of cam1, not score of cam2"):
        publisher.send("score", encode(examples()["status"]))
    with pytest.raises(EncodeError, match="payload for score"):
        publisher.send("score", b"junk")
    publisher.close()


def test_topic_ends_with_its_terminator_and_must_be_known():
    assert topic_bytes("cam1", "score") == b"v2/cam1/score/"
    assert topic_bytes("cam1") == b"v2/cam1/"
    with pytest.raises(EncodeError, match="gossip"):
        topic_bytes("cam1", "gossip")
