"""The modem's doorway: datagrams both ways, strangers and errors counted, endpoints and keys checked."""

import os
import select
import socket

import pytest

from stillwatch.transport.thin.port import ThinPort, parse_endpoint, read_link_key
from stillwatch.transport.wire.errors import LinkError, SecurityError


@pytest.fixture
def open_port():
    ports = []

    def make(peer=None):
        ports.append(ThinPort(("127.0.0.1", 0), peer))
        return ports[-1]

    yield make
    for port in ports:
        port.close()


def take(port, timeout_s=5.0):
    select.select([port], [], [], timeout_s)
    return port.receive()


def test_frames_cross_both_ways(open_port):
    ground = open_port()
    vehicle = open_port(ground.address)
    assert vehicle.send([b"one"]) == 1
    assert take(ground) == [b"one"]
    ground.send([b"two"])
    assert take(vehicle) == [b"two"]


def test_a_port_that_heard_nobody_sends_nothing(open_port):
    assert open_port().send([b"x"]) == 0


def test_strangers_are_ignored_and_counted(open_port):
    vehicle = open_port(open_port().address)
    stranger = open_port(vehicle.address)
    stranger.send([b"x"])
    assert take(vehicle) == []
    assert vehicle.ignored == 1


def test_a_peer_that_is_not_there_costs_nothing(open_port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as gone:
        gone.bind(("127.0.0.1", 0))
        address = gone.getsockname()
    port = open_port(address)
    for _ in range(5):
        port.send([b"x"])
        assert port.receive() == []


def test_a_taken_address_is_one_clear_error(open_port):
    taken = open_port()
    with pytest.raises(LinkError, match=rf"127.0.0.1:{taken.address[1]}: .*in use"):
        ThinPort(taken.address)


@pytest.mark.parametrize(
    ("endpoint", "expected"), [("udp://127.0.0.1:5580", ("127.0.0.1", 5580)), ("udp://[::1]:7", ("::1", 7))]
)
def test_endpoints_are_read(endpoint, expected):
    assert parse_endpoint(endpoint) == expected


@pytest.mark.parametrize("endpoint", ["", "tcp://a:1", "udp://a", "udp://:5", "udp://a:99999", "udp://a:5/path", "a:5"])
def test_other_endpoints_are_refused(endpoint):
    with pytest.raises(LinkError, match="udp://HOST:PORT"):
        parse_endpoint(endpoint)


def test_a_key_file_is_read_and_no_file_is_no_key(tmp_path):
    path = tmp_path / "link.key"
    path.write_text("ab" * 32 + "\n")
    os.chmod(path, 0o600)
    assert read_link_key(str(path)) == b"\xab" * 32
    assert read_link_key("") == b""


@pytest.mark.parametrize(("text", "mode"), [("ab" * 32, 0o644), ("ab" * 31, 0o600), ("zz" * 32, 0o600), ("", 0o600)])
def test_a_wrong_key_file_is_refused_without_showing_it(tmp_path, text, mode):
    path = tmp_path / "link.key"
    path.write_text(text)
    os.chmod(path, mode)
    with pytest.raises(SecurityError, match="link.key_file") as caught:
        read_link_key(str(path))
    assert not text or text not in str(caught.value)


def test_an_absent_key_file_is_refused(tmp_path):
    with pytest.raises(SecurityError, match="cannot be read"):
        read_link_key(str(tmp_path / "none"))
