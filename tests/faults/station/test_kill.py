"""kill -9 at random: no alert that was shown is gone, none is doubled, each notification goes out once or more."""

import pathlib
import random
import subprocess
import sys
import threading
import time
from collections import Counter

import pytest
import station_process
from agent_doubles import AgentDouble

from stillwatch.tools.station.store import open_store

PACE_S = 0.004


class Teeming:
    """An agent that tells an alert every few milliseconds, and ends most of them."""

    def __init__(self, endpoint):
        self.agent = AgentDouble("cam1", endpoint)
        self.stop = threading.Event()
        self.number = 0
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self):
        while not self.stop.is_set():
            self.agent.alert(self.number)
            if self.number % 3:
                self.agent.alert(self.number, "end", duration_s=0.1)
            if self.number % 100 == 0:
                self.agent.status()
            self.number += 1
            for _ in range(4):
                self.agent.publisher.poll(1)
            time.sleep(PACE_S)

    def close(self):
        self.stop.set()
        self.thread.join()
        self.agent.close()


def started(store, endpoint, journal):
    command = [sys.executable, station_process.__file__, str(store), endpoint, str(journal)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n", process.wait(10)
    return process


def words(journal: pathlib.Path, word: str) -> Counter:
    lines = journal.read_text().splitlines() if journal.exists() else []
    return Counter(line.split(" ", 1)[1] for line in lines if line.startswith(word + " "))


def kill_many_times(tmp_path, times, seed):
    """Kill a station so often while alerts come; return what it showed and sent, and its store's alerts."""
    rng = random.Random(seed)
    agent = Teeming(f"ipc://{tmp_path}/cam1")
    store, journal = tmp_path / "s.db", tmp_path / "journal"
    try:
        for _ in range(times):
            process = started(store, agent.agent.endpoint, journal)
            time.sleep(rng.uniform(0.05, 1.5))
            process.kill()
            process.wait()
            process.stdin.close()
            process.stdout.close()
        process = started(store, agent.agent.endpoint, journal)
        until_queue_is_empty(store)
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()
    finally:
        agent.close()
    opened, said = open_store(str(store))
    assert said == ""
    alerts = opened.alerts(limit=1_000_000)
    waiting = {row["uid"] for row in opened.due_notifications("journal", 2**62, limit=1_000_000)}
    opened.close()
    return words(journal, "shown"), words(journal, "sent"), alerts, waiting


def until_queue_is_empty(store, within_s=30.0):
    opened, _ = open_store(str(store))
    end = time.monotonic() + within_s
    while time.monotonic() < end and opened.channel_counts().get("journal", {}).get("waiting", 0) > 50:
        time.sleep(0.1)
    opened.close()


def check(shown, sent, alerts, waiting):
    kept = Counter(row["uid"] for row in alerts)
    assert shown
    assert "nothing" not in shown
    assert set(shown) <= set(kept), "an alert that was shown is gone"
    assert set(kept.values()) == {1}, "an alert is doubled"
    events = Counter((row["run"], row["epoch"], row["event"]) for row in alerts)
    assert set(events.values()) == {1}
    told = {f"cam1-{row['id']}-new" for row in alerts} | {f"cam1-{row['id']}-end" for row in alerts}
    assert set(sent) <= told
    for row in alerts:
        uids = {f"cam1-{row['id']}-{phase}" for phase in ("new", "end")}
        assert uids & (set(sent) | waiting), "an alert of which nobody was told"


@pytest.mark.slow
def test_a_killed_station_loses_and_doubles_nothing(tmp_path):
    check(*kill_many_times(tmp_path, 3, seed=1))


@pytest.mark.soak
def test_a_station_killed_a_hundred_times_loses_and_doubles_nothing(tmp_path):
    shown, sent, alerts, waiting = kill_many_times(tmp_path, 100, seed=2)
    print(f"{len(alerts)} alerts kept, {sum(shown.values())} shown, {sum(sent.values())} sent of {len(sent)} ids")
    check(shown, sent, alerts, waiting)
