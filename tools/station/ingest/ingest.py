"""The ears of a station as one: which agents are heard, by whom, what is wrong with it.

Started with the station; read by the page through `troubles`, `control_of` and `add_agent`.
"""

import dataclasses
import json
import logging
import re
import threading
from collections.abc import Callable

from stillwatch.base import Clock
from stillwatch.tools.station.bulletin import Bulletin
from stillwatch.tools.station.ingest.folders import FolderEar
from stillwatch.tools.station.ingest.live import LiveEar, Told
from stillwatch.tools.station.ingest.scribe import Scribe
from stillwatch.tools.station.ingest.thin import Modem, ThinEar
from stillwatch.tools.station.settings import StationSettings, ThinSection
from stillwatch.tools.station.store import Claims, Store, StoreError
from stillwatch.tools.station.tell import Router
from stillwatch.tools.station.workers import Workers
from stillwatch.transport.live import ClientKeys, derived_endpoint, load_client_keys
from stillwatch.transport.wire import TransportError

_log = logging.getLogger("stillwatch.station")
FOLLOW_S = 5.0
WHOLE_S = 86_400.0  # from one look at every page of the store to the next
ROUNDS = 12  # of them between two looks at what is too much
STEPS_A_TIME = 20
MOST_TOLD = 1000
LETS_GO_NS = 5_000_000_000
_ENDPOINT = re.compile(r"(tcp://[A-Za-z0-9_.:*\[\]-]{1,200}:\d{1,5}|ipc:///?[A-Za-z0-9_./-]{1,90})")


class Ingest:
    """Hears everything that the settings name and the page was told of.

    Raises TransportError at the start for keys that cannot be read.
    """

    def __init__(self, settings: StationSettings, store: Store, bulletin: Bulletin, clock: Clock):
        self._settings, self._store, self._bulletin, self._clock = settings, store, bulletin, clock
        self._router = Router(settings.tell, clock.wall_ns)
        self._claims = Claims(store)
        self._turn = threading.Lock()
        self._told = {told.endpoint: told for told in map(self._of_settings, settings.agents)}
        self._of_file = frozenset(self._told)
        for endpoint, value in store.told_agents().items():
            self._remember(endpoint, value)
        self._begun = store.begun
        self._scribes = {name: Scribe(store, bulletin, self._router, clock) for name in ("live", "thin", "folders")}
        rate = settings.station.alerts_a_minute
        self.live = LiveEar(
            self._scribes["live"], self._claims, clock, told=self.told, named=self._named, alerts_a_minute=rate
        )
        self.thin = ThinEar(settings.thin, self._scribes["thin"], self._claims, clock, self._modem)
        self.folders = FolderEar(settings.station.folders, store, self._scribes["folders"], clock)
        self._stop = threading.Event()
        self._workers = Workers("station", self._stop)
        self._fault = ""

    def start(self) -> None:
        """Begin to hear, in threads."""
        works: dict[str, Callable[[threading.Event], None]] = {"live": self.live.run, "house": self._keep_house}
        if self._settings.thin:
            works["thin"] = self.thin.run
        if self._settings.station.folders:
            works["folders"] = self.folders.run
        for name, work in works.items():
            self._workers.start(name, self._guarded, name, work)

    def stop(self, timeout_s: float = 10.0) -> None:
        """Write what is left, and end."""
        self._workers.stop(timeout_s)
        self._claims.close()

    def told(self) -> dict[str, Told]:
        """Return the agents of the live plane, by endpoint."""
        with self._turn:
            return dict(self._told)

    def troubles(self) -> list[str]:
        """Return what people should know, in words."""
        found = [self._fault] * bool(self._fault) + self._store.said
        for scribe in self._scribes.values():
            found += [text for text in scribe.troubles() if text not in found]
        return found + self.live.troubles() + self.thin.troubles()

    def control_of(self, agent: str) -> tuple[str, ClientKeys | None] | None:
        """Return where an agent takes commands and the keys for it, or None for one that is not on the live plane."""
        for told in self.told().values():
            if told.agent == agent:
                return told.control, told.keys
        return None

    def add_agent(self, endpoint: str, server: str) -> None:
        """Hear another agent from now on, with the path of its public key or none.

        Raises
        ------
        TransportError
            The endpoint is none, is heard already, or the keys cannot be read.
        """
        if not _ENDPOINT.fullmatch(endpoint):
            raise TransportError(
                f"{endpoint[:80]!r} is neither tcp://HOST:PORT nor ipc://PATH; write it as one of them"
            )
        with self._turn:
            if endpoint in self._told:
                raise TransportError(f"{endpoint} is heard already; give another")
            if len(self._told) >= MOST_TOLD:
                raise TransportError(f"{len(self._told)} agents are told already, limit {MOST_TOLD}")
            made = self._made(endpoint, server)
        self._keep_told(made)  # first: who is not there is dropped
        with self._turn:
            self._told[endpoint] = made
        self._bulletin.post("station")

    def remove_agent(self, agent: str) -> None:
        """Hear an agent no more, and delete what is kept of it.

        Raises
        ------
        TransportError
            The settings name it, or nothing is known of it.
        """
        named = [
            how for how, names in (("agents", self._settings.agents), ("thin", self._settings.thin)) if agent in names
        ]
        if named:
            raise TransportError(
                f"{agent} is heard because the settings have [{named[0]}.{agent}]: take that out first"
            )
        with self._turn:
            endpoints = [endpoint for endpoint, told in self._told.items() if told.agent == agent]
            for endpoint in endpoints:
                del self._told[endpoint]
        for endpoint in endpoints:
            self._store.untell_agent(endpoint)
            self._wait_until_unheard(endpoint)
        if not self._store.remove_agent(agent) and not endpoints:
            raise TransportError(f"nothing is known of {agent}; there are: GET /api/v1/agents")
        self._bulletin.post("station")

    def _wait_until_unheard(self, endpoint: str) -> None:
        """Wait for the ear to let go: what it still has it writes first."""
        until_ns = self._clock.monotonic_ns() + LETS_GO_NS
        while self.live.hears(endpoint) and self._clock.monotonic_ns() < until_ns and not self._stop.wait(0.02):
            pass

    def _of_settings(self, name: str) -> Told:
        section = self._settings.agents[name]
        keys = None
        if section.server:
            keys = load_client_keys(section.key or self._settings.station.key, section.server)
        control = section.control or derived_endpoint(section.endpoint, "control")
        return Told(section.endpoint, name, control, keys)

    def _made(self, endpoint: str, server: str, agent: str = "") -> Told:
        keys = load_client_keys(self._settings.station.key, server) if server else None
        return Told(endpoint, agent, derived_endpoint(endpoint, "control"), keys, server)

    def _remember(self, endpoint: str, value: str) -> None:
        """Take what the page was told before this start; what does not fit any more is said and left alone."""
        known = self._told.get(endpoint)
        if (known is not None and known.agent) or not self._settings.station.agents_from_page:
            return
        try:
            told = json.loads(value)
            self._told[endpoint] = self._made(endpoint, str(told.get("server", "")), str(told.get("agent", "")))
        except (ValueError, AttributeError, TransportError) as error:
            _log.warning("agent at %s, told of in the page, is not heard: %s", endpoint, error)

    def _named(self, endpoint: str, agent: str) -> bool:
        """Note what an agent calls itself; False where another is called so."""
        with self._turn:
            told = self._told.get(endpoint)
            names = {other.agent for other in self._told.values() if other.endpoint != endpoint}
            if told is None or agent in names or agent in self._settings.thin:
                return False
            told = self._told[endpoint] = dataclasses.replace(told, agent=agent)
        try:
            self._keep_told(told)
        except StoreError as error:
            _log.warning("the name of the agent at %s is not kept: %s", endpoint, error)
        return True

    def _keep_told(self, told: Told) -> None:
        """Let the next start know an agent that the page was told of."""
        self._store.tell_agent(told.endpoint, json.dumps({"server": told.server, "agent": told.agent}))

    def _modem(self, name: str, section: ThinSection) -> Modem:
        rate = self._settings.station.alerts_a_minute
        return Modem(name, section, self._store, self._bulletin, self._router, self._clock, rate)

    def _guarded(self, name: str, work: Callable[[threading.Event], None]) -> None:
        """Let an ear's own mistake end nothing but its turn: said, begun again."""
        while not self._stop.is_set():
            try:
                work(self._stop)
            except Exception as error:  # noqa: BLE001 - a fault of ours must not end the hearing for good
                _log.exception("the station's %s ear failed; it begins again", name)
                self._fault = f"The station's {name} ear failed ({type(error).__name__}: {error}) and began again."
                self._stop.wait(1.0)

    def _follow_others(self) -> None:
        """Hear what other stations of the same store were told of, and drop what was removed there."""
        known = self._store.told_agents()
        with self._turn:
            gone = [
                told for endpoint, told in self._told.items() if endpoint not in known and endpoint not in self._of_file
            ]
            for told in gone:
                del self._told[told.endpoint]
        for told in gone:
            self._wait_until_unheard(told.endpoint)
            if told.agent:
                self._store.remove_agent(told.agent)  # what we wrote of it since
        for endpoint, value in known.items():
            self._remember(endpoint, value)

    def _look_at_the_store(self, *, is_whole: bool) -> None:
        """Set the store's file aside where something happened to it that nobody has met; tell a new one of the agents
        that the page was told of."""
        begun = self._store.begun
        if fault := self._store.fault(is_whole=is_whole or self._store.is_suspect):
            self._scribes["live"].begin_anew(fault, begun)
        if self._begun != self._store.begun:
            self._begun = self._store.begun
            for endpoint, told in self.told().items():
                if endpoint not in self._of_file:
                    self._keep_told(told)

    def _keep_house(self, stop: threading.Event) -> None:
        """Let go of what is too old or too much, once a minute, in small steps; follow other stations in between."""
        section, rounds = self._settings.station, 0
        while not stop.wait(FOLLOW_S):
            rounds += 1
            try:
                if self._store.path is None:
                    self._follow_others()
                else:
                    self._look_at_the_store(is_whole=rounds % round(WHOLE_S / FOLLOW_S) == 0)
                if rounds % ROUNDS:
                    continue
                for _ in range(STEPS_A_TIME):
                    now_ns = self._clock.wall_ns()
                    gone = self._store.forget_old(now_ns, score_days=section.score_days, alert_days=section.alert_days)
                    gone += self._store.make_room(section.max_bytes)
                    if not gone or stop.wait(0.05):
                        break
                self._store.trim_audit()
                self._store.trim_notifications(self._clock.wall_ns())
            except StoreError as error:
                _log.warning("keeping house waits: %s", error)
