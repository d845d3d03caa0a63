"""Queues are emptied in the end: tried again, given up visibly, sent by the next process; filters decide."""

import json

import pytest
from hearing import until
from receivers import Web
from store_examples import T0, full_alert, thin_alert

from stillwatch.base import RealClock
from stillwatch.tools.station.bulletin import Bulletin
from stillwatch.tools.station.settings import TellSection
from stillwatch.tools.station.store import FOLDER
from stillwatch.tools.station.tell import Router, Teller, teller


def told(store, ways, *alerts):
    """Enter alerts with a router; return the queued (channel, uid) pairs."""
    router = Router(ways, lambda: T0)
    for alert in alerts:
        with store.writing() as connection:
            router.route(store, connection, alert, store.take_alert(connection, alert))
    return [(name, row["uid"]) for name in ways for row in store.due_notifications(name, 2**62)]


def test_each_phase_is_told_once_whatever_plane_brings_it(store):
    ways = {"hook": TellSection(phases=("new", "end"))}
    alerts = [thin_alert(), full_alert(), full_alert(phase="end", told_s=9.0), thin_alert(phase="end", told_s=9.0)]
    assert told(store, ways, *alerts) == [("hook", "cam1-1-new"), ("hook", "cam1-1-end")]


def test_filters_are_of_agents_kinds_severity_and_phases(sqlite_store):
    ways = {
        "agent": TellSection(agents=["cam2"]),
        "kind": TellSection(kinds=["returned"]),
        "severe": TellSection(least_severity=0.8),
        "ends": TellSection(phases=("end",)),
    }
    alerts = [
        full_alert(event=1),
        full_alert(event=2, agent="cam2"),
        full_alert(event=3, fields={"kind": "returned"}),
        full_alert(event=4, severity=0.9),
        full_alert(event=1, phase="end", told_s=9.0),
    ]
    assert told(sqlite_store, ways, *alerts) == [
        ("agent", "cam2-2-new"), ("kind", "cam1-3-new"), ("severe", "cam1-4-new"), ("ends", "cam1-1-end"),
    ]  # fmt: skip


def test_muted_alerts_and_old_folders_call_nobody(sqlite_store):
    sqlite_store.add_mute(agent="cam1", kind="", user="ann", now_ns=T0, until_ns=T0 + 10**12)
    ways = {"hook": TellSection()}
    assert told(sqlite_store, ways, full_alert(), full_alert(event=2, agent="cam2", plane=FOLDER)) == []


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(teller, "FIRST_PAUSE_S", 0.02)


def telling(store, **ways):
    made = Teller(ways, store, Bulletin(), RealClock(), name="station")
    made.start()
    return made


def test_a_message_is_sent_again_until_it_is_taken(sqlite_store, quick):
    with Web([500, 500]) as web:
        ways = {"hook": TellSection(kind="webhook", url=web.url)}
        told(sqlite_store, ways, full_alert())
        running = telling(sqlite_store, **ways)
        until(lambda: sqlite_store.channel_counts()["hook"]["done"] == 1)
        running.stop()
        assert running.troubles() == []
    assert [json.loads(body)["id"] for _, body in web.requests] == ["cam1-1-new"] * 3


def test_a_message_that_nobody_takes_is_shown_as_dead_and_can_be_revived(sqlite_store, quick):
    with Web([500, 500, 500]) as web:
        ways = {"hook": TellSection(kind="webhook", url=web.url, tries=3)}
        told(sqlite_store, ways, full_alert())
        running = telling(sqlite_store, **ways)
        (dead,) = until(sqlite_store.dead_notifications)
        assert (dead["uid"], dead["tries"]) == ("cam1-1-new", 3)
        assert "500" in dead["fault"]
        assert any("500" in text for text in running.troubles())
        sqlite_store.revive_notification(dead["id"], 0)
        until(lambda: sqlite_store.channel_counts()["hook"]["done"] == 1)
        running.stop()


def test_a_dead_way_holds_up_no_other(sqlite_store, quick):
    with Web() as web:
        ways = {"dead": TellSection(kind="webhook", url="http://127.0.0.1:9/"), "live": TellSection(url=web.url)}
        told(sqlite_store, ways, *(full_alert(event=n) for n in range(20)))
        running = telling(sqlite_store, **ways)
        until(lambda: sqlite_store.channel_counts()["live"]["done"] == 20)
        assert sqlite_store.channel_counts()["dead"]["done"] == 0
        running.stop()


def test_what_was_not_sent_is_sent_by_the_next_process(sqlite_store, quick):
    ways = {"hook": TellSection(kind="webhook", url="http://127.0.0.1:9/")}
    told(sqlite_store, ways, full_alert())
    running = telling(sqlite_store, **ways)
    until(lambda: sqlite_store.channel_faults())
    running.stop()
    with Web() as web:
        running = telling(sqlite_store, hook=TellSection(url=web.url))
        until(lambda: web.requests)
        running.stop()


def test_pauses_grow_from_a_second_to_half_an_hour_and_differ():
    assert [teller.pause_s(tries, 1.0) for tries in (0, 1, 4, 20)] == [1.0, 2.0, 16.0, 1800.0]
    assert teller.pause_s(4, 0.0) == 8.0
