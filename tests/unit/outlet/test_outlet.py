"""The outlet keeps order, loses nothing for files, drops the oldest for live sources, and waits for no peer."""

import threading

import pytest

from stillwatch.base.clock import RealClock
from stillwatch.outlet.outlet import Outlet
from stillwatch.transport.wire.errors import TransportError
from stillwatch.transport.wire.messages import Alert, Headers, LogNotice, Score, Status
from stillwatch.transport.wire.topics import TOPICS

HEADERS = Headers("cam1", "run", "boot", 1)


def message(kind, **fields):
    return kind(**HEADERS.next(kind, t_ns=0, mono_ns=0, wall_ns=0), **fields)


class Collector:
    """A carrier that keeps what it gets, on whatever thread, and can be held up."""

    def __init__(self):
        self.got = []
        self.threads = set()
        self.closed = False
        self.go = threading.Event()
        self.go.set()

    def open(self):
        self.threads.add(threading.get_ident())

    def carry(self, kind, payload, message):
        self.go.wait(10)
        self.threads.add(threading.get_ident())
        self.got.append((kind, message.sequence))

    def poll(self):
        self.threads.add(threading.get_ident())

    def close(self):
        self.threads.add(threading.get_ident())
        self.closed = True


class Taken(Collector):
    def open(self):
        raise TransportError("endpoint tcp://127.0.0.1:1 is in use")


def outlet(*carriers, **options):
    return Outlet(list(carriers), RealClock(), **{"lossless": True, "heartbeat": None, **options})


def test_messages_of_all_kinds_leave_in_the_order_they_came():
    collector = Collector()
    out = outlet(collector)
    out.start()
    sent = []
    for i in range(200):
        kind = (Score, LogNotice, Alert)[i % 3]
        fields = {Score: {}, LogNotice: {"code": "x"}, Alert: {"id": i, "phase": "new"}}[kind]
        sent.append(message(kind, **fields))
        out.send(sent[-1])
    assert out.close(10)
    assert [seq for _, seq in collector.got] == [m.sequence for m in sent]
    assert collector.closed


def test_every_carrier_is_used_by_one_thread_only():
    collector = Collector()
    out = outlet(collector)
    out.start()
    out.send(message(Score))
    out.close(10)
    assert len(collector.threads) == 1
    assert threading.get_ident() not in collector.threads


def test_a_slow_carrier_makes_a_file_wait_and_loses_nothing():
    collector = Collector()
    collector.go.clear()
    out = outlet(collector)
    out.start()
    n = 2 * TOPICS["score"].queue + 10
    sender = threading.Thread(target=lambda: [out.send(message(Score)) for _ in range(n)])
    sender.start()
    sender.join(0.3)
    assert sender.is_alive(), "the queue took more than its length"
    collector.go.set()
    sender.join(10)
    out.close(10)
    assert len(collector.got) == n
    assert out.drops == {}


def test_a_slow_carrier_costs_a_live_source_its_oldest_messages_counted():
    collector = Collector()
    collector.go.clear()
    out = outlet(collector, lossless=False)
    out.start()
    out.send(message(Score))
    n = 3 * TOPICS["score"].queue
    for _ in range(n):
        out.send(message(Score))
    collector.go.set()
    out.close(10)
    assert out.drops["score"] > 0
    assert len(collector.got) + out.drops["score"] == n + 1
    sequences = [seq for _, seq in collector.got]
    assert sequences == sorted(sequences)
    assert sequences[-1] == HEADERS.sequences()["score"] - 1, "the newest was kept"


def test_a_heartbeat_tells_no_message_that_still_waits():
    collector, told = Collector(), []

    def beat(was_heard):
        if len(told) < 20:
            out.send(message(Score))  # as the pipeline's thread may, while the heartbeat is made
        told.append(out.sequences.get("score"))
        return message(Status, state="live")

    out = outlet(collector, heartbeat=beat, heartbeat_s=0.0)
    first = HEADERS.sequences().get("score", 0)
    out.start()
    out.send(message(Score))
    while len(told) < 20:
        threading.Event().wait(0.01)
    out.close(10)
    scores = [sequence for kind, sequence in collector.got if kind == "score"]
    assert scores == list(range(first, first + len(scores)))
    places = [at for at, (kind, _) in enumerate(collector.got) if kind == "status"]
    for following, place in zip(told, places, strict=False):
        before = [sequence for kind, sequence in collector.got[:place] if kind == "score"]
        assert following == (before[-1] + 1 if before else None)


def test_an_endpoint_that_is_taken_is_told_to_who_starts():
    first = Collector()
    out = outlet(first, Taken())
    with pytest.raises(TransportError, match="in use"):
        out.start()
    assert first.closed


def test_a_message_that_breaks_its_schema_is_counted_and_the_rest_goes_on():
    collector = Collector()
    out = outlet(collector)
    out.start()
    out.send(message(Score, value=float("nan")))
    out.send(message(Score, value=1.0))
    out.close(10)
    assert out.refused == {"score": 1}
    assert len(collector.got) == 1


def test_heartbeats_come_by_themselves():
    collector = Collector()
    out = outlet(collector, heartbeat=lambda was_heard: message(Status, state="live"), heartbeat_s=0.01)
    out.start()
    deadline = threading.Event()
    while len(collector.got) < 3 and not deadline.wait(0.02):
        pass
    out.close(10)
    assert [kind for kind, _ in collector.got[:3]] == ["status"] * 3
