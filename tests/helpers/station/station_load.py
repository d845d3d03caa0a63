"""A station in a process of its own under the load of a fleet, and what it measured of itself.

`station_load.py STORE FOLDER N SECONDS`: hears N agents of agent_doubles.py at ipc endpoints in FOLDER. It prints
JSON: alerts and their latency from the making of a message to the news of it, messages lost, memory, share of a core.
"""

import json
import os
import pathlib
import resource
import subprocess
import sys
import time

import agent_doubles

from stillwatch.base import RealClock
from stillwatch.tools.station.bulletin import Bulletin
from stillwatch.tools.station.ingest import Ingest
from stillwatch.tools.station.settings import AgentSection, StationSettings
from stillwatch.tools.station.store import open_store


def rss_bytes():
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def main(address, folder, n, seconds):
    store, _ = open_store(address)
    bulletin = Bulletin(kept=100_000)
    agents = {f"cam{i:03d}": AgentSection(endpoint=f"ipc://{folder}/cam{i:03d}") for i in range(n)}
    ingest = Ingest(StationSettings(agents=agents), store, bulletin, RealClock())
    ingest.start()
    print("ready", flush=True)
    began, seen, latencies, memory = time.monotonic(), 0, [], []
    next_look = began
    while time.monotonic() < began + seconds:
        bulletin.wait(seen, 0.5)
        news, is_all = bulletin.since(seen)
        assert is_all
        now_ns = time.time_ns()
        for item in news:
            seen = item.number
            if item.kind == "alert":
                latencies.append((now_ns - store.alert(item.id)["at_ns"]) / 1e9)
        if time.monotonic() >= next_look:
            next_look += max(seconds / 60, 1.0)
            memory.append(rss_bytes())
    usage = resource.getrusage(resource.RUSAGE_SELF)
    ingest.stop()
    rows = store.agents()
    latencies.sort()
    told = {
        "alerts": store.alert_count(),
        "latency_s": {name: latencies[int(share * (len(latencies) - 1))] for name, share in
                      (("median", 0.5), ("p99", 0.99), ("most", 1.0))} if latencies else {},
        "lost": sum(row["lost"] for row in rows),
        "agents_heard": sum(row["heard_ns"] > 0 for row in rows),
        "scores": sum(part["n"] for row in rows for part in store.score_strip(row["agent"], 0, 2**62, 1)),
        "messages": ingest.live.messages,
        "memory_mb": [round(value / 1e6, 1) for value in memory],
        "cpu_share": (usage.ru_utime + usage.ru_stime) / seconds,
        "store_mb": round(store.bytes_used() / 1e6, 1),
    }  # fmt: skip
    store.close()
    print(json.dumps(told), flush=True)


def run(folder, n, seconds, hz, alerts_an_hour):
    """Run a fleet and a station beside it; return what each says."""
    begin = [sys.executable, agent_doubles.__file__, str(folder), str(n), str(seconds), str(hz), str(alerts_an_hour)]
    hear = [
        sys.executable,
        __file__,
        str(folder / "s.db"),
        str(folder),
        str(n),
        str(seconds + agent_doubles.JOIN_S + 15),
    ]
    with subprocess.Popen(hear, stdout=subprocess.PIPE, text=True) as station:
        assert station.stdout.readline() == "ready\n"
        with subprocess.Popen(begin, stdout=subprocess.PIPE, text=True) as fleet:
            assert fleet.stdout.readline() == "ready\n"
            sent = json.loads(fleet.stdout.read())
        return sent, json.loads(station.stdout.read())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
