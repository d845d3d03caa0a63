"""A station in a process of its own that is killed: it hears one agent, and writes down what it told.

`station_process.py STORE ENDPOINT JOURNAL`: a line "shown UID" for each alert after its news, "sent ID" for each
notification. It ends when its standard input does.
"""

import os
import signal
import sys
import threading

from stillwatch.base import RealClock
from stillwatch.tools.station.bulletin import Bulletin
from stillwatch.tools.station.ingest import Ingest
from stillwatch.tools.station.settings import AgentSection, StationSection, StationSettings, TellSection
from stillwatch.tools.station.store import open_store
from stillwatch.tools.station.tell import Teller


class Journal:
    """A way out that writes the ids it was given."""

    def __init__(self, path):
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(self, word, text):
        os.write(self._file, f"{word} {text}\n".encode())

    def send(self, message):
        self.note("sent", message.uid)

    def close(self):
        pass


def main(address, endpoint, path):
    store, said = open_store(address)
    if said:
        print(said, file=sys.stderr)
        raise SystemExit(3)
    bulletin, journal = Bulletin(), Journal(path)
    settings = StationSettings(
        station=StationSection(alerts_a_minute=60_000.0),
        agents={"cam1": AgentSection(endpoint=endpoint)},
        tell={"journal": TellSection(kind="command", command=["-"], phases=("new", "end"))},
    )
    with store.owned():
        ingest = Ingest(settings, store, bulletin, RealClock())
        teller = Teller(settings.tell, store, bulletin, RealClock(), name="s", make=lambda *_: journal)
        ingest.start()
        teller.start()
        threading.Thread(target=lambda: (sys.stdin.read(), os.kill(os.getpid(), signal.SIGKILL)), daemon=True).start()
        print("ready", flush=True)
        seen = 0
        while True:
            bulletin.wait(seen, 1.0)
            news, _ = bulletin.since(seen)
            for item in news:
                seen = item.number
                if item.kind in ("alert", "alert_update"):
                    found = store.alert(item.id)
                    journal.note("shown", "nothing" if found is None else f"{found['uid']}")


if __name__ == "__main__":
    main(*sys.argv[1:])
