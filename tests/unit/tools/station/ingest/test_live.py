"""The live plane: agents come, go, restart, flood and lie; each is shown as what it is, and none harms another."""

import contextlib
import time
import zlib

import numpy as np
import pytest
import zmq
from agent_doubles import AgentDouble, jpeg
from hearing import hearing, limits, until

from stillwatch.transport.live import generate_keys, load_server_keys
from stillwatch.transport.wire import (
    DICTIONARY,
    Alert,
    Exemplar,
    Headers,
    LogNotice,
    TransportError,
    VisitKind,
    decode,
    encode,
)

NOISE = b"\xc1" + b"\x00" * 64


def bomb():
    """Return 100 kB that would become 100 MB."""
    return packed_again(bytes(100_000_000))


def packed_again(plain):
    """Return bytes as the wire's compact form has them."""
    coder = zlib.compressobj(9, wbits=-15, zdict=DICTIONARY)
    return b"\xc1" + coder.compress(plain) + coder.flush()


def path_like():
    """Return alerts of agents whose names are ways to files, as bytes that are messages but for that."""
    known = "a" * 16
    header = Headers(known, "run1", "boot1", 1).next(Alert, t_ns=0, mono_ns=0, wall_ns=0, frame=0)
    packed = encode(Alert(**header, id=0, phase="new", severity=0.5))
    plain = zlib.decompressobj(wbits=-15, zdict=DICTIONARY).decompress(packed[1:])
    assert plain.count(known.encode()) == 1
    names = (known.encode(), b"../../etc/passwd", b"/../../../../tmp", b"cam1/../../../..")
    sound, *others = [packed_again(plain.replace(known.encode(), name)) for name in names]
    assert decode(sound).agent == known
    return others


@contextlib.contextmanager
def agents(tmp_path, *names, **more):
    made = [AgentDouble(name, f"ipc://{tmp_path}/{name}", **more).serve() for name in names]
    try:
        yield made
    finally:
        for agent in made:
            agent.close()


def joined(station, *doubles):
    """Publish heartbeats until the station hears each: what is sent from now on arrives."""
    for double in doubles:
        until(lambda double=double: double.status() and (station.store.agent(double.agent) or {}).get("link") == "live")


def test_alerts_scores_and_state_of_many_agents_are_kept(tmp_path):
    with agents(tmp_path, "cam1", "cam2") as (one, two), hearing(tmp_path / "s.db", one, two) as station:
        joined(station, one, two)
        one.scores(20)
        one.alert(1, thumbnail=jpeg(), picture_frame=15)
        two.alert(1, "end", duration_s=3.0)
        until(lambda: len(station.alerts()) == 2)
        one.status(frames=20, rate_hz=9.5)
        until(lambda: station.agent("cam1")["frames"] == 20)
    first = {row["agent"]: row for row in station.alerts()}
    assert (first["cam1"]["has_picture"], first["cam2"]["phase"]) == (True, "end")
    assert len(station.store.scores("cam1", 0, 2**62)) == 20


def test_an_alert_is_told_after_it_is_in_the_store(tmp_path):
    with agents(tmp_path, "cam1") as (agent,), hearing(tmp_path / "s.db", agent) as station:
        joined(station, agent)
        agent.alert(5)
        until(lambda: [news for news in station.bulletin.since(0)[0] if news.kind == "alert"])
        (news,) = [news for news in station.bulletin.since(0)[0] if news.kind == "alert"]
        assert station.store.alert(news.id)["event"] == 5


def test_a_late_joiner_gets_what_was_told_before_it_came_once(tmp_path):
    with agents(tmp_path, "cam1") as (agent,):
        agent.alert(1)
        agent.alert(2)
        for _ in range(2):  # the second start reads the same snapshot again
            with hearing(tmp_path / "s.db", agent) as station:
                until(lambda station=station: len(station.alerts()) == 2)
        assert [row["event"] for row in station.alerts()] == [1, 2]


def test_an_agent_that_is_removed_is_gone_with_all_it_told_and_may_come_back(tmp_path):
    with agents(tmp_path, "cam1", "cam2") as (one, two), hearing(tmp_path / "s.db", two) as station:
        station.ingest.add_agent(one.endpoint, "")
        joined(station, one, two)
        one.alert(1)
        two.alert(1)
        until(lambda: len(station.alerts()) == 2)
        station.ingest.remove_agent("cam1")
        one.alert(2)
        assert station.store.agent("cam1") is None
        assert [row["agent"] for row in station.alerts()] == ["cam2"]
        assert one.endpoint not in station.store.told_agents()
        station.ingest.add_agent(one.endpoint, "")
        until(lambda: len(station.alerts()) == 3)  # what it keeps for late joiners comes again


def test_an_agent_of_the_settings_is_not_removed_in_the_page(tmp_path):
    with agents(tmp_path, "cam1") as (agent,), hearing(tmp_path / "s.db", agent) as station:
        joined(station, agent)
        with pytest.raises(TransportError, match=r"\[agents.cam1\]"):
            station.ingest.remove_agent("cam1")
        with pytest.raises(TransportError, match="nothing is known of cam9"):
            station.ingest.remove_agent("cam9")
        assert station.store.agent("cam1") is not None


def test_an_agent_that_restarts_is_heard_again(tmp_path):
    with agents(tmp_path, "cam1") as (agent,), hearing(tmp_path / "s.db", agent) as station:
        joined(station, agent)
        agent.alert(1)
        until(station.alerts)
        agent.close()
        again = AgentDouble("cam1", agent.endpoint, epoch=2, run="run2").serve()
        try:
            until(lambda: again.status() and station.agent("cam1")["run"] == "run2")
            again.alert(1)
            until(lambda: len(station.alerts()) == 2)
        finally:
            again.close()


def test_messages_that_did_not_arrive_are_said_to_be_missing(tmp_path):
    with agents(tmp_path, "cam1") as (agent,), hearing(tmp_path / "s.db", agent) as station:
        joined(station, agent)
        agent.scores(5)
        until(lambda: agent.status() and station.agent("cam1")["frame"] >= 5)
        for _ in range(3):
            agent.headers.next(LogNotice, t_ns=0, mono_ns=0, wall_ns=0)  # made, and never sent
        agent.status()
        gap = until(lambda: station.store.gaps("cam1"))[0]
        assert (gap["kind"], gap["last"] - gap["first"] + 1) == ("log", 3)
        until(lambda: station.agent("cam1")["lost"] == 3)


@pytest.mark.parametrize(
    ("n", "pause_s"), [(600, 0.001), pytest.param(10_000, 0.004, marks=[pytest.mark.soak, pytest.mark.timeout(600)])]
)
def test_one_agent_that_tells_alerts_without_end_harms_no_other(tmp_path, n, pause_s):
    """In full, ten thousand within a minute."""
    with agents(tmp_path, "bad", "good") as (bad, good):
        with hearing(tmp_path / "s.db", bad, good, **limits(alerts_a_minute=6.0)) as station:
            joined(station, bad, good)
            began = time.monotonic()
            for number in range(n):
                bad.alert(number, thumbnail=jpeg(320, 240))
                time.sleep(pause_s)  # slower than its own publisher would lose them
                if number % (n // 6) == 0:
                    good.alert(number)
            print(f"{n} alerts in {time.monotonic() - began:.0f} s")
            until(lambda: sum(row["agent"] == "good" for row in station.alerts()) >= 6)
            late_s = [(r["received_ns"] - r["told_ns"]) / 1e9 for r in station.alerts() if r["agent"] == "good"]
            print(f"the other's alerts were heard after {max(late_s):.2f} s at most")
            until(lambda: bad.status() and station.agent("bad")["trouble"])
            row = until(lambda: bad.status() and (row := station.agent("bad"))["withheld"] > 100 and row)
            assert sum(row["agent"] == "bad" for row in station.alerts()) <= 40
            assert "more alerts than" in row["trouble"]
            assert station.agent("good")["trouble"] == ""
            assert [notice["code"] for notice in station.store.notices("bad")].count("withheld") == 1


def test_a_clock_in_2099_is_not_believed_and_that_is_said(tmp_path):
    with agents(tmp_path, "cam1", wall_offset_s=73 * 365.25 * 86_400) as (agent,):
        with hearing(tmp_path / "s.db", agent) as station:
            joined(station, agent)
            agent.alert(1)
            (alert,) = until(station.alerts)
            until(lambda: agent.status() and station.agent("cam1")["trouble"])
            assert alert["clock_is_wrong"]
            assert abs(alert["at_ns"] - alert["received_ns"]) < 10**9
            assert "73 years ahead" in station.agent("cam1")["trouble"]


def test_texts_and_pictures_of_an_agent_are_made_harmless(tmp_path):
    with agents(tmp_path, "cam1") as (agent,), hearing(tmp_path / "s.db", agent) as station:
        joined(station, agent)
        agent.alert(1, alert_kind="\x1b[2J\u202e<script>", thumbnail=b"\xff\xd8\xff no picture")
        agent.send(LogNotice, code="../../etc/passwd", text="\x00\x1b]0;x\x07")
        agent.send(Exemplar, id=3, label="\u2066x", thumbnail=jpeg())
        (alert,) = until(station.alerts)
        notices = until(lambda: [row for row in station.store.notices("cam1") if "passwd" in row["code"]])
        exemplar = until(lambda: station.store.exemplar("cam1", 3))
    for text in (alert["kind"], notices[0]["text"], exemplar["label"]):
        assert text.isprintable() or "\ufffd" in text
        assert not set(text) & set("\x00\x1b\x07\u202e\u2066")
    assert not alert["has_picture"]
    assert exemplar["picture"].startswith(b"\xff\xd8")


def test_kinds_of_visits_are_kept_with_their_times_and_forgotten_with_the_agent(tmp_path):
    with agents(tmp_path, "cam1") as (agent,), hearing(tmp_path / "s.db", agent) as station:
        joined(station, agent)
        told = {"count": 2, "watched_s": 60.0, "label": "\u2066van", "thumbnail": jpeg()}
        ends = {"first_t_ns": time.time_ns() - 50 * 10**9, "last_t_ns": time.time_ns() - 20 * 10**9}
        agent.send(VisitKind, id=3, **told, **ends)
        agent.send(VisitKind, id=4, count=1)
        kind = until(lambda: len(station.store.kinds("cam1")) == 2 and station.store.kind("cam1", 3))
        assert (kind["count"], kind["label"], kind["picture"][:2]) == (2, "\ufffdvan", b"\xff\xd8")
        assert abs(kind["first_ns"] - ends["first_t_ns"]) < 10**9
        assert abs(kind["last_ns"] - ends["last_t_ns"]) < 10**9
        agent.send(VisitKind, id=-1, removed=np.array([3], np.int64))
        until(lambda: [row["kind"] for row in station.store.kinds("cam1")] == [4])


def test_bytes_that_are_no_messages_are_counted_and_said(tmp_path):
    class Liar:
        agent, endpoint = "cam1", f"ipc://{tmp_path}/liar"

    with zmq.Context() as context, context.socket(zmq.PUB) as socket, agents(tmp_path, "good") as (good,):
        socket.bind(Liar.endpoint)
        payloads = (bomb(), NOISE, b"", *path_like())
        with hearing(tmp_path / "s.db", Liar, good) as station:
            joined(station, good)

            def is_said():
                for payload in payloads:
                    socket.send_multipart([b"v2/cam1/alert/", payload])
                return "cannot be read" in (station.store.agent("cam1") or {"trouble": ""})["trouble"]

            until(is_said)
            good.alert(1)
            until(station.alerts)
            assert [row["agent"] for row in station.store.agents()] == ["cam1", "good"]
            assert [row["agent"] for row in station.alerts()] == ["good"]
        socket.close(0)


def test_an_agent_is_added_while_the_station_runs_and_known_at_the_next_start(tmp_path):
    with agents(tmp_path, "cam9") as (agent,):
        with hearing(tmp_path / "s.db") as station:
            station.ingest.add_agent(agent.endpoint, "")
            with pytest.raises(TransportError, match="already"):
                station.ingest.add_agent(agent.endpoint, "")
            until(lambda: agent.status() and station.store.agent("cam9"))
            assert station.ingest.control_of("cam9") == (f"{agent.endpoint}.control", None)
        with hearing(tmp_path / "s.db") as station:
            assert [told.agent for told in station.ingest.told().values()] == ["cam9"]


@pytest.mark.parametrize("endpoint", ["http://x", "tcp://host", "ipc://", "tcp://a b:1", "inproc://x", ""])
def test_what_is_no_endpoint_is_refused(tmp_path, endpoint):
    with hearing(tmp_path / "s.db") as station, pytest.raises(TransportError):
        station.ingest.add_agent(endpoint, "")


def test_a_stranger_cannot_take_an_agents_name(tmp_path):
    (tmp_path / "x").mkdir()
    with agents(tmp_path, "cam1") as (agent,), agents(tmp_path / "x", "cam1") as (stranger,):
        with hearing(tmp_path / "s.db", agent) as station:
            joined(station, agent)
            station.ingest.add_agent(stranger.endpoint, "")
            until(lambda: stranger.status() and any("calls itself cam1" in text for text in station.ingest.troubles()))
            stranger.alert(66)
            agent.alert(1)
            until(station.alerts)
            assert [row["event"] for row in station.alerts()] == [1]


def test_an_agent_with_keys_is_heard_by_a_station_with_keys(tmp_path):
    for name in ("agent", "station"):
        generate_keys(tmp_path, name)
    (tmp_path / "allow.toml").write_text("[data]\n" + (tmp_path / "station.pub").read_text())
    server_keys = load_server_keys(str(tmp_path / "agent.key"), str(tmp_path / "allow.toml"))
    agent = AgentDouble("cam1", "tcp://127.0.0.1:0", keys=server_keys).serve()
    try:
        key, server = str(tmp_path / "station.key"), str(tmp_path / "agent.pub")
        with hearing(tmp_path / "s.db", **limits(key=key)) as station:
            station.ingest.add_agent(agent.endpoint, server)
            until(lambda: agent.status() and station.store.agent("cam1"))
            assert station.ingest.control_of("cam1")[1] is not None
    finally:
        agent.close()


def test_an_agent_that_is_not_there_is_said_to_be_so(tmp_path):
    class Nobody:
        agent, endpoint = "cam1", "tcp://127.0.0.1:9"

    with hearing(tmp_path / "s.db", Nobody) as station:
        row = until(lambda: (row := station.store.agent("cam1")) and row["link_detail"] and row)
        assert (row["link"], row["link_detail"]) == ("connecting", "connection refused")
