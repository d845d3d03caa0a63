"""A station that hears, without its page: for tests in this process."""

import contextlib
import time

from stillwatch.base import RealClock
from stillwatch.tools.station.bulletin import Bulletin
from stillwatch.tools.station.ingest import Ingest
from stillwatch.tools.station.settings import AgentSection, StationSection, StationSettings
from stillwatch.tools.station.store import open_store

WITHIN_S = 60.0


def until(true, within_s=WITHIN_S):
    """Wait until something is true, and return it; fail after a minute."""
    end = time.monotonic() + within_s
    while not (found := true()):
        if time.monotonic() > end:
            raise AssertionError(f"not so within {within_s:g} s")
        time.sleep(0.02)
    return found


class Hearing:
    """Store, bulletin and ears."""

    def __init__(self, address, settings):
        self.store, self.said = open_store(address)
        self.bulletin = Bulletin()
        self.ingest = Ingest(settings, self.store, self.bulletin, RealClock())
        self.ingest.start()

    def alerts(self):
        """All alerts, oldest first."""
        return self.store.alerts(limit=10_000)[::-1]

    def agent(self, agent):
        """An agent's row, once there is one."""
        return until(lambda: self.store.agent(agent))

    def close(self):
        """Stop hearing."""
        self.ingest.stop()
        self.store.close()


@contextlib.contextmanager
def hearing(address, *agents, **sections):
    """Yield a station that hears agent doubles, and whatever else the sections say."""
    heard = {agent.agent: AgentSection(endpoint=agent.endpoint) for agent in agents}
    station = Hearing(str(address), StationSettings(agents=heard, **sections))
    try:
        yield station
    finally:
        station.close()


def limits(**station):
    """A [station] section."""
    return {"station": StationSection(**station)}
