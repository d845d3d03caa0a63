"""Commands: once, bounded, and always answered. The client is a bare DEALER, so that each frame can be chosen."""

import msgpack
import pytest
import zmq

from stillwatch.base.clock import RealClock, VirtualClock
from stillwatch.transport.live.control import MAX_REQUEST_BYTES, MAX_WAITING, REMEMBERED, ControlClient, ControlServer
from stillwatch.transport.wire.errors import TransportError

pytestmark = pytest.mark.usefixtures("tracked_zmq")


@pytest.fixture
def clock():
    return VirtualClock()


@pytest.fixture
def server(clock):
    made = ControlServer("tcp://127.0.0.1:0", clock=clock)
    made.open()
    yield made
    made.close()


@pytest.fixture
def ask(server):
    """Return a function that sends one request and returns (commands it led to, reply or None)."""
    context = zmq.Context()
    socket = context.socket(zmq.DEALER)
    socket.setsockopt(zmq.LINGER, 0)
    socket.connect(server.bound_endpoint)

    def send(payload=None, *, expect_reply=True, **request):
        if payload is None:
            payload = msgpack.packb({"id": "12345678", "command": "status", **request})
        socket.send(payload)
        commands = server.poll(2000)
        reply = msgpack.unpackb(socket.recv()) if expect_reply and socket.poll(2000) else None
        return commands, reply

    send.receive = lambda: msgpack.unpackb(socket.recv()) if socket.poll(2000) else None
    yield send
    socket.close(0)
    context.term()


def test_command_carries_its_arguments_in_their_type(server, ask):
    (command,), _ = ask(command="set_nav", arguments={"latitude": 54, "depth_m": 3.5}, expect_reply=False)
    assert (command.name, command.arguments.latitude, command.arguments.depth_m) == ("set_nav", 54.0, 3.5)
    assert command.arguments.heading_deg is None
    assert server.reply(command, {"accepted": True})
    assert ask.receive() == {"id": "12345678", "ok": True, "error": "", "result": {"accepted": True}, "attachment": b""}


def test_command_is_answered_at_its_deadline_and_the_true_answer_is_kept(server, clock, ask):
    (command,), _ = ask(deadline_s=2.0, expect_reply=False)
    clock.advance_ns(2_100_000_000)
    assert command.is_expired(clock.monotonic_ns())
    server.receive()
    assert "may still be carried out" in ask.receive()["error"]
    assert server.reply(command, {"frames": 3})
    assert ask.receive()["ok"]
    commands, reply = ask()
    assert commands == []
    assert reply["result"] == {"frames": 3}


def test_second_answer_to_a_command_is_not_sent(server, ask):
    (command,), _ = ask(expect_reply=False)
    assert server.reply(command)
    assert not server.reply(command, error="changed my mind")
    assert ask.receive()["ok"]


def test_commands_beyond_what_may_wait_are_told_so(server, ask):
    for at in range(MAX_WAITING):
        assert len(ask(id=f"waiting-{at}", expect_reply=False)[0]) == 1
    commands, reply = ask(id="one-too-many")
    assert commands == []
    assert "try again" in reply["error"]
    assert server.refused == {"busy": 1}


def test_old_answers_are_forgotten_so_that_memory_is_bounded(server, ask):
    for at in range(REMEMBERED + 50):
        (command,), _ = ask(id=f"request-{at}", expect_reply=False)
        server.reply(command)
        ask.receive()
    (first,), _ = ask(id="request-0", expect_reply=False)
    assert first.id == "request-0", "forgotten: asked again, it is a new command"
    commands, reply = ask(id=f"request-{REMEMBERED + 49}")
    assert (commands, reply["ok"]) == ([], True), "remembered: the old answer"


@pytest.mark.parametrize(
    "payload",
    [b"", b"\xc1", b"junk", msgpack.packb({"id": "short", "command": "status"}), msgpack.packb([1]),
     msgpack.packb({"id": "12345678", "command": "status", "deadline_s": -1.0})],
)  # fmt: skip
def test_bytes_that_are_no_request_are_counted_and_get_no_answer(server, ask, payload):
    commands, _ = ask(payload, expect_reply=False)
    assert commands == []
    assert server.refused == {"malformed": 1}


def test_request_longer_than_allowed_never_arrives(server, ask):
    commands, _ = ask(msgpack.packb({"id": "12345678", "command": "x" * MAX_REQUEST_BYTES}), expect_reply=False)
    assert commands == []
    assert server.refused == {}


def test_answer_that_cannot_be_sent_becomes_an_error(server, ask):
    (command,), _ = ask(expect_reply=False)
    server.reply(command, {"value": float("nan")})
    assert "not finite" in ask.receive()["error"]


def test_client_of_an_absent_agent_gives_up_in_time():
    client = ControlClient("tcp://127.0.0.1:1", clock=RealClock())
    client.open()
    with pytest.raises(TransportError, match=r"no answer to status .* within 0.2 s"):
        client.request("status", timeout_s=0.2)
    client.close()
