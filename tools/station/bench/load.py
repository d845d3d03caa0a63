"""A fleet, a station and those who look at it, each in its own process or thread; what came, when, at what cost.

Used by `bench station`. An alert's delay is from the making of its message to the moment at which a page that is open
has the list with it in hand: over the link, into the store, through the event stream, as HTML.
"""

import json
import pathlib
import re
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np

from stillwatch.tools.station.bench import fleet
from stillwatch.tools.station.bench.served import Served, fetch
from stillwatch.tools.station.store import AlertFilter, Store, open_store

LOOK_S = 10.0  # from one look at memory to the next, if the time holds enough of them
PARTS = 6  # of the time: of each the least memory is told
FLAT = 0.02  # the last part's least may be above that of the first third's end by this share
FLAT_FROM_S = 1800.0  # before, caches and the last ten minutes' sparklines still fill
FLEET_EVERY_S = 2.0  # as the page does
SETTLE_S = 12.0  # a stretch of scores and a heartbeat later, all is there
_ITEM = re.compile(rb'data-item="/alerts/(\d+)"')
Row = dict[str, Any]


def load_row(folder: pathlib.Path, n: int, seconds: float, hz: float, alerts_an_hour: float) -> Row:
    """Run a fleet beside a station; return one row.

    `lost`: messages that the station missed, by its own count; `*_kept` of `*_sent`: what stands in its store.
    `cpu` is the share of one core while the fleet tells. `rss_third_mb`, `rss_end_mb`, `rss_most_mb`: after a third of
    the time, at its end, the most since. `rss_least_mb`: the least of each sixth of the time, since what waits for a
    moment's disk or processor comes on top and goes again; `is_flat`: the last sixth's is at most 2 % above that of the
    third, where the time is half an hour or more (else None).
    """
    sections = "".join(
        f'[agents.{fleet.name_of(i)}]\nendpoint = "ipc://{folder}/{fleet.name_of(i)}"\n' for i in range(n)
    )
    settings = f'[station]\nstore = "{folder}/station.db"\n{sections}'
    with Served(folder, settings) as station:
        readers = Readers(station)
        command = [sys.executable, "-m", "stillwatch.tools.station.bench.fleet", str(folder)]
        numbers = [str(n), str(seconds), str(hz), str(alerts_an_hour)]
        with subprocess.Popen([*command, *numbers], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            if process.stdout.readline() != "ready\n":
                raise RuntimeError("the fleet did not start")
            time.sleep(fleet.JOIN_S)
            began, cpu_s, memory = time.monotonic(), station.cpu_s(), []
            looks = PARTS * max(round(seconds / LOOK_S / PARTS), 3)
            for look in range(1, looks + 1):
                time.sleep(max(began + seconds * look / looks - time.monotonic(), 0.0))
                memory.append(station.rss_mb())
            used_s, passed_s = station.cpu_s() - cpu_s, time.monotonic() - began
            sent = json.loads(process.stdout.read())
        time.sleep(SETTLE_S)
        readers.stop()
    store, _ = open_store(str(folder / "station.db"))
    try:
        kept = _kept(store, readers.shown)
    finally:
        store.close()
    messages = sum(sent["sent"].values())
    row = {"what": "load", "agents": n, "seconds": passed_s, "messages_per_s": messages / passed_s}
    row |= {"scores_sent": round(hz) * sent["sent"].get("scores", 0), "alerts_sent": sent["alerts"], **kept}
    row |= {"cpu": used_s / passed_s, "cpu_ms_per_message": 1e3 * used_s / messages}
    row |= memory_row(memory, passed_s)
    row["fleet_page_median_ms"] = float(np.median(readers.fleet_ms))
    return row | {"fleet_page_most_ms": max(readers.fleet_ms)}


def memory_row(memory: list[float], seconds: float) -> Row:
    """Return what `load_row` tells of the memory (MB) at regular looks over a time; a multiple of PARTS of them."""
    third = memory[len(memory) // 3 :]
    least = [min(part) for part in np.split(np.array(memory), PARTS)]
    is_flat = bool(least[-1] <= (1.0 + FLAT) * least[PARTS // 3]) if seconds >= FLAT_FROM_S else None
    row: Row = {"rss_third_mb": third[0], "rss_end_mb": third[-1], "rss_most_mb": max(third)}
    return row | {"rss_least_mb": [round(float(value), 1) for value in least], "is_flat": is_flat}


def _kept(store: Store, shown: dict[int, float]) -> Row:
    """Return what the store has, and how long after its making each alert was on the page."""
    rows, place = store.agents(), None
    made_s: dict[int, float] = {}
    while page := store.alerts(AlertFilter(), before=place, limit=1000):
        made_s |= {row["id"]: row["at_ns"] / 1e9 for row in page}
        place = page[-1]["at_ns"], page[-1]["id"]
    delays = [shown[alert] - at_s for alert, at_s in made_s.items() if alert in shown]
    parts = [part for row in rows for part in store.score_strip(row["agent"], 0, 2**62, 1)]
    found = {
        "lost": sum(row["lost"] for row in rows),
        "agents_heard": sum(row["heard_ns"] > 0 for row in rows),
        "scores_kept": sum(part["n"] for part in parts),
        "alerts_kept": len(made_s),
        "alerts_shown": len(delays),
    }
    names = (("median", 50), ("p99", 99), ("most", 100))
    return found | {f"delay_{name}_s": float(np.percentile(delays, q)) if delays else None for name, q in names}


class Readers:
    """One who has the list of alerts open, and one who has the fleet open."""

    def __init__(self, station: Served):
        self._station = station
        self.shown: dict[int, float] = {}  # alert: wall clock (s) at which the list had it
        self.fleet_ms: list[float] = []
        self._stop = threading.Event()
        works = (self._read_alerts, self._read_fleet)
        self._threads = [threading.Thread(target=work, daemon=True) for work in works]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Close the pages."""
        self._stop.set()
        for thread in self._threads:
            thread.join(20.0)  # the stream says at least every 15 s that it is there

    def _read_alerts(self) -> None:
        feed, connection = self._station.connection(), self._station.connection()
        feed.request("GET", "/live")
        stream = feed.getresponse()
        while not self._stop.is_set() and (line := stream.readline()):
            if line.startswith(b"data:") and (b'"alert"' in line or line.strip() == b"data: 1"):
                body = fetch(connection, "/parts/alerts")[1]
                now_s = time.time()
                for found in _ITEM.finditer(body):
                    self.shown.setdefault(int(found[1]), now_s)
        stream.close()
        feed.close()
        connection.close()

    def _read_fleet(self) -> None:
        connection = self._station.connection()
        while not self._stop.wait(FLEET_EVERY_S):
            self.fleet_ms.append(fetch(connection, "/parts/fleet")[2])
        connection.close()
