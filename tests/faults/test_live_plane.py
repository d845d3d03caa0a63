"""The live plane against late, slow, stopped, restarted and half-open peers. Publishers run in their own process."""

import signal
import subprocess
import sys
import time

import msgpack
import pytest
import zmq
from live_agent import Agent

from stillwatch.base.clock import RealClock
from stillwatch.transport.live.control import ControlClient
from stillwatch.transport.live.subscriber import Gap, Received, Subscriber
from stillwatch.transport.wire.errors import TransportError

pytestmark = [pytest.mark.usefixtures("tracked_zmq"), pytest.mark.slow]
LATE_JOINER_S = 1.0
STALLED_BYTES = 2_000_000


@pytest.fixture
def agent():
    with Agent() as running:
        yield running


@pytest.fixture
def join():
    """Return a function that opens a subscriber; all are closed in the end."""
    opened = []

    def open_one(endpoint, **options):
        subscriber = Subscriber(endpoint, clock=RealClock(), **options)
        opened.append(subscriber)
        subscriber.open()
        return subscriber

    yield open_one
    for subscriber in opened:
        subscriber.close()


def test_station_of_schema_1_is_told_in_words_that_it_can_read(agent):
    agent.ask(do="send", kind="status")
    with zmq.Context() as context, context.socket(zmq.SUB) as old:
        old.setsockopt(zmq.SUBSCRIBE, b"v1/")
        old.connect(agent.endpoints["data"])
        assert old.poll(5000)
        topic, payload = old.recv_multipart()
        notice = msgpack.unpackb(payload)
        assert topic == f"v1/{notice['agent']}/log/".encode()
        assert (notice["schema"], notice["level"], notice["code"]) == (1, "error", "schema")
        agent.ask(do="send", kind="status", count=3)
        assert not old.poll(300)


def drain(subscriber, *, until=lambda items: False, seconds=5.0):
    """Receive until the condition holds or the time is over; return all that came."""
    items, end = [], time.perf_counter() + seconds
    while not until(items) and time.perf_counter() < end:
        item = subscriber.recv(50)
        if item is not None:
            items.append(item)
    return items


def drain_beating(subscriber, agent, *, until):
    """Receive until the condition holds, with the heartbeats of a real agent: they tell what no later message does."""
    items = []
    for _ in range(200):
        items += drain(subscriber, seconds=0.1)
        if until(items):
            break
        agent.ask(do="send", kind="status")
    return items


def send_scores(subscriber, agent, count):
    """Let it send scores a few at a time, as agents do, and return all that comes: a burst may fill a queue."""
    items = []
    for _ in range(count // 10):
        agent.ask(do="send", kind="score", count=10)
        items += drain(subscriber, until=lambda more: len(sequences(more, "score")) == 10, seconds=0.5)
    return items


def ready(subscriber, agent):
    """Wait until the snapshot is there and a message made since has come: only then is nothing lost by joining."""
    drain(subscriber, until=lambda _: subscriber.is_complete)
    assert subscriber.is_complete
    for _ in range(50):
        agent.ask(do="send", kind="status")
        if any(isinstance(item, Received) and item.age_s is not None for item in drain(subscriber, seconds=0.1)):
            return subscriber
    raise AssertionError("no live message came")


def sequences(items, kind):
    return [item.message.sequence for item in items if isinstance(item, Received) and item.kind == kind]


def lost(items, kind):
    gaps = [item for item in items if isinstance(item, Gap) and item.kind == kind]
    return [sequence for gap in gaps for sequence in range(gap.first, gap.last + 1)]


def test_late_joiner_is_complete_within_a_second(agent, join):
    agent.ask(do="send", kind="status")
    agent.ask(do="send", kind="model", size=100_000)
    agent.ask(do="send", kind="exemplar", count=40, size=8000)
    agent.ask(do="send", kind="alert", count=20, size=8000)
    agent.ask(do="send", kind="clumps", size=60_000)
    start = time.perf_counter()
    subscriber = join(agent.endpoints["data"])
    items = drain(subscriber, until=lambda _: subscriber.is_complete)
    assert subscriber.is_complete
    assert time.perf_counter() - start < LATE_JOINER_S
    items += drain(subscriber, seconds=0.3)
    assert sorted(item.message.id for item in items if item.kind == "exemplar") == list(range(40))
    assert sorted(item.message.id for item in items if item.kind == "alert") == list(range(4, 20))  # Topic.keep
    assert len(sequences(items, "status")) == len(sequences(items, "model")) == len(sequences(items, "clumps")) == 1


def test_messages_arrive_once_and_in_order_after_joining(agent, join):
    subscriber = ready(join(agent.endpoints["data"], agent="cam1"), agent)
    agent.ask(do="send", kind="score", count=50)
    items = drain(subscriber, until=lambda items: len(sequences(items, "score")) >= 50)
    assert sequences(items, "score") == list(range(50))
    assert subscriber.gaps == {}
    assert all(item.age_s < 1.0 for item in items if item.kind == "score")


def test_agent_whose_id_begins_alike_is_not_received(agent, join):
    subscriber = join(agent.endpoints["data"], agent="cam")
    agent.ask(do="send", kind="score", count=5, pause_s=0.02)
    assert drain(subscriber, seconds=0.5) == []


def test_gap_in_the_stream_is_reported_with_its_sequences(agent, join):
    subscriber = ready(join(agent.endpoints["data"]), agent)
    agent.ask(do="send", kind="score", count=3)
    agent.ask(do="send", kind="score", count=2, skip=4)
    items = drain(subscriber, until=lambda items: 8 in sequences(items, "score"))
    assert lost(items, "score") == [3, 4, 5, 6]
    assert subscriber.gaps == {"score": 4}


def test_loss_that_no_later_message_reveals_is_reported_at_the_next_heartbeat(agent, join):
    subscriber = ready(join(agent.endpoints["data"]), agent)
    agent.ask(do="send", kind="score", count=2)
    agent.ask(do="send", kind="score", count=0, skip=3)
    agent.ask(do="send", kind="status")
    items = drain(subscriber, until=lambda items: any(isinstance(item, Gap) for item in items))
    assert lost(items, "score") == [2, 3, 4]


def test_last_value_lost_on_the_way_comes_with_the_snapshot_asked_for(agent, join):
    """A subscriber stopped while alerts were published: its queue overflows, the snapshot heals what is kept."""
    subscriber = ready(join(agent.endpoints["data"]), agent)
    agent.ask(do="send", kind="score", count=6_000)  # nobody receives meanwhile: all queues overflow
    agent.ask(do="send", kind="alert", count=3, first_id=7)

    def is_all(items):
        return len(sequences(items, "score") + lost(items, "score")) == 6_000 and len(sequences(items, "alert")) == 3

    items = drain_beating(subscriber, agent, until=is_all)
    assert sorted(sequences(items, "alert")) == [0, 1, 2]
    assert sorted(sequences(items, "score") + lost(items, "score")) == list(range(6_000))
    assert subscriber.gaps["score"] == len(lost(items, "score")) > 0
    assert "alert" not in subscriber.gaps


def test_a_model_that_is_held_back_is_late_and_no_gap(agent, join):
    """Three models where two find room: the third goes out after other messages, heartbeats come between."""
    subscriber = ready(join(agent.endpoints["data"]), agent)
    asked = subscriber.resyncs
    agent.ask(do="send", kind="model", count=3, size=250_000)
    agent.ask(do="send", kind="status", count=3)
    items = drain(subscriber, until=lambda items: len(sequences(items, "status")) >= 3)
    assert sequences(items, "model") == [0, 1]
    items += send_scores(subscriber, agent, 70)
    items += drain_beating(subscriber, agent, until=lambda more: len(sequences(items + more, "score")) == 70)
    items += drain(subscriber, until=lambda more: sequences(items + more, "model") == [0, 1, 2])
    assert sequences(items, "model") == [0, 1, 2]
    assert [item for item in items if isinstance(item, Gap)] == []
    assert (subscriber.gaps, subscriber.resyncs, agent.ask(do="drops")) == ({}, asked, {})


def test_a_model_that_a_newer_one_replaced_before_it_was_sent_is_one_gap_for_everybody(agent, join):
    subscriber = ready(join(agent.endpoints["data"]), agent)
    agent.ask(do="send", kind="model", count=4, size=250_000)
    items = send_scores(subscriber, agent, 70)
    items += drain_beating(subscriber, agent, until=lambda more: lost(items + more, "model"))
    assert (sequences(items, "model"), lost(items, "model")) == ([0, 1, 3], [2])
    assert subscriber.gaps == agent.ask(do="drops") == {"model": 1}


def test_restarted_agent_is_followed_without_false_gaps(join, tmp_path):
    endpoint = f"ipc://{tmp_path}/agent"
    with Agent(endpoint, epoch=1) as first:
        subscriber = ready(join(endpoint), first)
        first.ask(do="send", kind="score", count=5)
        items = drain(subscriber, until=lambda items: len(sequences(items, "score")) == 5)
        assert sequences(items, "score") == [0, 1, 2, 3, 4]
    with Agent(endpoint, epoch=2) as second:
        for _ in range(40):
            second.ask(do="send", kind="score", pause_s=0.05)
            items = drain(subscriber, seconds=0.1)
            if sequences(items, "score"):
                break
        assert sequences(items, "score")
        assert all(item.message.epoch == 2 for item in items if isinstance(item, Received))


def test_stalled_subscriber_costs_little_memory_and_nobody_elses_messages(agent, join):
    """Alerts and models as large as allowed: far more than a count of messages alone would bound."""
    live = ready(join(agent.endpoints["data"]), agent)

    def load(first_id):
        got = []
        for at in range(60):
            agent.ask(do="send", kind="alert", count=2, size=11_000, first_id=first_id + 2 * at)
            agent.ask(do="send", kind="model", count=1, size=300_000)
            got += sequences(drain(live, until=lambda items: len(sequences(items, "alert")) >= 2), "alert")
        return got

    assert load(0) == list(range(120))  # last values and the allocator have what they need
    with Stalled(agent.endpoints["data"]) as stalled:
        agent.ask(do="send", kind="status")
        stalled.stop()
        before = agent.ask(do="rss")
        assert load(120) == list(range(120, 240))
        assert agent.ask(do="rss") - before < STALLED_BYTES
        assert agent.ask(do="drops")["alert"] > 0  # counted, as the heartbeat will say


class Stalled:
    """A subscriber in its own process that subscribes to all, and is then stopped with SIGSTOP."""

    def __init__(self, endpoint):
        code = (
            "import sys, time, zmq\ns = zmq.Context().socket(zmq.SUB)\ns.setsockopt(zmq.RCVHWM, 1)\n"
            "s.setsockopt(zmq.RCVBUF, 4096)\ns.setsockopt(zmq.SUBSCRIBE, b'')\ns.connect(sys.argv[1])\n"
            "s.recv_multipart()\nprint('ready', flush=True)\ntime.sleep(600)"
        )
        self._process = subprocess.Popen([sys.executable, "-c", code, endpoint], stdout=subprocess.PIPE)

    def __enter__(self):
        time.sleep(0.5)  # until it has subscribed
        return self

    def stop(self):
        assert self._process.stdout.readline() == b"ready\n"
        self._process.send_signal(signal.SIGSTOP)

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait(10)
        self._process.stdout.close()


def test_half_open_connection_is_made_anew(agent, join):
    subscriber = ready(join(agent.endpoints["data"], silence_s=0.5), agent)
    agent.process.send_signal(signal.SIGSTOP)
    drain(subscriber, until=lambda _: subscriber.reconnects >= 1)
    assert subscriber.reconnects >= 1
    assert subscriber.silent_s >= 0.5
    agent.process.send_signal(signal.SIGCONT)
    agent.ask(do="send", kind="score")
    items = drain(subscriber, until=lambda _: subscriber.silent_s < 0.5)
    for _ in range(50):
        agent.ask(do="send", kind="status")
        items += drain(subscriber, seconds=0.1)
        if sequences(items, "score") + lost(items, "score"):
            break
    assert sequences(items, "score") + lost(items, "score") == [0]  # got, or known to be lost


def test_subscriber_that_is_too_late_begins_anew(agent, join):
    subscriber = ready(join(agent.endpoints["data"], max_age_s=2.0), agent)
    agent.ask(do="send", kind="score", count=3)
    drain(subscriber, until=lambda items: len(sequences(items, "score")) == 3)
    agent.ask(do="send", kind="score", age_s=3.0)
    drain(subscriber, until=lambda _: subscriber.reconnects == 1)
    assert subscriber.reconnects == 1


@pytest.fixture
def client(agent):
    opened = ControlClient(agent.endpoints["control"], clock=RealClock())
    opened.open()
    yield opened
    opened.close()


def test_command_is_carried_out_once_however_often_it_is_sent(agent, client):
    first = client.request("status", request_id="same-id-1")
    again = client.request("status", request_id="same-id-1")
    assert first.ok
    assert again == first
    assert first.attachment == b"\xff"
    assert agent.ask(do="carried_out") == ["status"]


@pytest.mark.parametrize(
    ("command", "arguments", "words"),
    [
        ("self_destruct", {}, "unknown"),
        ("set_alert_budget", {}, "alerts_per_hour"),
        ("set_alert_budget", {"alerts_per_hour": -1.0}, "alerts_per_hour"),
        ("set_nav", {"latitude": 91.0}, "latitude"),
        ("set_nav", {"speed": 1.0}, "unknown"),
        ("request_exemplar", {"id": "1"}, "id"),
    ],
)
def test_bad_command_gets_an_error_and_reaches_nobody(agent, client, command, arguments, words):
    reply = client.request(command, arguments)
    assert not reply.ok
    assert words in reply.error
    assert agent.ask(do="carried_out") == []


def test_id_used_for_another_command_is_refused(client):
    assert client.request("status", request_id="same-id-2").ok
    assert "another command" in client.request("snapshot", request_id="same-id-2").error


def test_command_that_nobody_answers_ends_at_its_deadline_with_an_error(agent, client):
    start = time.perf_counter()
    with pytest.raises(TransportError, match="no answer to flush"):
        client.request("flush", timeout_s=1.0, retry_s=0.4, request_id="same-id-3")
    assert time.perf_counter() - start < 2.0
    assert "deadline" in client.request("flush", request_id="same-id-3").error
    assert agent.ask(do="carried_out") == ["flush"]
    assert client.request("status").ok


FLOOD = """
import threading, time, zmq
from stillwatch.base import RealClock
from stillwatch.transport.live import Subscriber, endpoints
endpoints.HEARTBEAT_MS, endpoints.HEARTBEAT_TIMEOUT_MS, endpoints.RECONNECT_MS = 100, 200, 20
with zmq.Context() as context, context.socket(zmq.XPUB) as data, context.socket(zmq.ROUTER) as pages:
    for socket, endpoint in ((data, ENDPOINT), (pages, ENDPOINT + ".snapshot")):
        socket.setsockopt(zmq.LINGER, 0)
        socket.bind(endpoint)
    over = threading.Event()

    def flood():
        joined = b""
        while not over.wait(0.0005):
            data.send_multipart([b"v2/", bytes(2000)])
            while data.poll(0):
                data.recv()
            while pages.poll(0):
                joined = pages.recv_multipart()[0]
            if joined:
                pages.send_multipart([joined, bytes(2000)])

    thread = threading.Thread(target=flood)
    thread.start()
    subscriber = Subscriber(ENDPOINT, clock=RealClock(), queue=2)
    subscriber.open()
    for _ in range(5):
        until = time.monotonic() + 0.5
        while time.monotonic() < until:
            subscriber.recv(10)
        time.sleep(0.7)
    over.set()
    thread.join()
    subscriber.close()
    print(sorted(subscriber.refused))
"""


def test_one_who_floods_a_slow_reader_and_is_given_up_as_silent_does_not_end_the_reader(tmp_path):
    """libzmq ends the process where a full queue outlives its connection: a station of 200 agents died of it."""
    program = FLOOD.replace("ENDPOINT", repr(f"ipc://{tmp_path}/cam"))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "['damaged', 'page']\n", "")
