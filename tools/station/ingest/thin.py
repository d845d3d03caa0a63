"""The ear of thin links: several modems in one thread; an alert is in the store before it is acknowledged.

Made by tools/station/ingest/ingest.py. What the store does not take is not acknowledged, so the vehicle keeps it.
"""

import logging
import select
import threading
from collections import OrderedDict
from collections.abc import Callable

import google_crc32c

from stillwatch.base import Clock
from stillwatch.tools.station.bulletin import Bulletin
from stillwatch.tools.station.ingest.desk import Desk
from stillwatch.tools.station.ingest.pictures import encoded
from stillwatch.tools.station.ingest.placing import placed, thin_alert_of
from stillwatch.tools.station.ingest.scribe import Scribe
from stillwatch.tools.station.settings import ThinSection
from stillwatch.tools.station.store import CLAIM_NS, THIN, Claims, Store, StoreError
from stillwatch.tools.station.tell import Router
from stillwatch.transport.thin import (
    HEADER_BYTES,
    REMEMBERED,
    AlertArrived,
    Arrival,
    HeartbeatArrived,
    ThinAlert,
    ThinCodec,
    ThinHeartbeat,
    ThinPort,
    ThinReceiver,
    ThumbnailArrived,
    decode_thumbnail,
    encode_record,
    find_preset,
    parse_endpoint,
    read_link_key,
)
from stillwatch.transport.wire import DecodeError, TransportError

_log = logging.getLogger("stillwatch.station")
WAIT_S = 0.1
_LATELY_NS = 3600 * 1_000_000_000


class StoredAlerts:
    """The ground's log of a thin link's alerts, in the station's store: what ThinReceiver asks of a log."""

    def __init__(self, agent: str, store: Store, bulletin: Bulletin, router: Router, clock: Clock):
        self.renumbered = 0
        self.trouble = ""
        self._agent, self._store, self._bulletin, self._router, self._clock = agent, store, bulletin, router, clock
        self._arrivals: OrderedDict[tuple[int, int], tuple[int, str]] = OrderedDict()

    @property
    def continued(self) -> bool:
        """Whether this agent's thin link was heard before this start."""
        known = self._store.agent(self._agent)
        return known is not None and THIN in known["planes"].split(",")

    def append(self, agent: int, alert: ThinAlert) -> bool | None:
        """Keep an alert and return True; False if it was there already, None if the store did not take it."""
        received_ns = self._clock.wall_ns()
        key = key_of(alert)
        heard = thin_alert_of(self._agent, alert, key, received_ns)
        try:
            with self._store.writing() as connection:
                taken = self._store.take_alert(connection, heard)
                if taken.is_changed:
                    self._router.route(self._store, connection, heard, taken)
        except StoreError as error:
            self.trouble = f"{error}; the vehicle keeps its alerts until they are stored"
            return None
        self.trouble = ""
        number = (alert.incarnation, alert.delivery)
        self.renumbered += number in self._arrivals and self._arrivals[number][1] != key
        self._arrivals[number] = received_ns, key
        self._arrivals.move_to_end(number)
        if len(self._arrivals) > REMEMBERED:
            self._arrivals.popitem(last=False)
        if taken.is_changed:
            self._bulletin.post("alert" if taken.is_new else "alert_update", self._agent, taken.id)
        return taken.is_changed

    def arrived_lately(self, agent: int, number: tuple[int, int]) -> bool:
        """Tell whether an alert of this number was kept within the last hour."""
        known = self._arrivals.get((number[0], number[1]))
        return known is not None and abs(self._clock.wall_ns() - known[0]) < _LATELY_NS


def key_of(alert: ThinAlert) -> str:
    """Return what tells a delivery from every other: its number, and a checksum for an outbox that was made anew."""
    return f"{alert.incarnation}:{alert.delivery}:{google_crc32c.value(encode_record(alert)):08x}"


class Modem:
    """One thin link: port, receiver, desk."""

    def __init__(
        self,
        agent: str,
        section: ThinSection,
        store: Store,
        bulletin: Bulletin,
        router: Router,
        clock: Clock,
        rate: float,
    ):
        self.agent, self._store, self._bulletin, self._clock = agent, store, bulletin, clock
        self.port = ThinPort(parse_endpoint(section.listen, f"thin.{agent}.listen"))
        try:
            codec = ThinCodec(section.agent_number, read_link_key(section.key_file))
            self.log = StoredAlerts(agent, store, bulletin, router, clock)
            now_ns = clock.monotonic_ns()
            self.receiver = ThinReceiver(find_preset(section.preset).down, codec, self.log, now_ns=now_ns)
        except (TransportError, StoreError):
            self.port.close()
            raise
        self.desk = Desk(agent, THIN, rate)
        self.desk.note_link("thin", f"listens at {section.listen}", clock.wall_ns())
        self._thumbnails: dict[tuple[int, int], tuple[bytes, bool]] = {}

    def step(self) -> None:
        """Take what came, hand over what is to be acknowledged."""
        now_ns = self._clock.monotonic_ns()
        for frame in self.port.receive():
            for item in self.receiver.feed(frame, now_ns):
                self._take(item)
        self._write_thumbnails()
        self.port.send(self.receiver.poll(now_ns))

    def _take(self, item: Arrival) -> None:
        received_ns = self._clock.wall_ns()
        self.desk.note_agent(received_ns, heard_ns=received_ns)
        match item:
            case AlertArrived(_, alert):
                self._note_position(alert.latitude, alert.longitude, alert.depth_m, received_ns)
            case ThumbnailArrived(_, number, code, is_complete) if len(code) >= HEADER_BYTES:
                self._thumbnails[number.incarnation, number.delivery] = code, is_complete
            case HeartbeatArrived(_, beat):
                self._take_heartbeat(beat, received_ns)

    def _take_heartbeat(self, beat: ThinHeartbeat, received_ns: int) -> None:
        told = f"{beat.alerts_waiting} alerts wait aboard, {beat.alerts_lost} were lost there"
        self.desk.note_link("thin", told, received_ns, state=beat.state)
        at_ns, is_believed = placed(beat.wall_ns, received_ns)
        if beat.wall_ns:
            text = "" if is_believed else "its clock is wrong; what it tells is placed by the time at which it came"
            self.desk.trouble("clock", text, received_ns)
        self._note_position(beat.latitude, beat.longitude, beat.depth_m, at_ns)

    def _note_position(self, latitude: float, longitude: float, depth_m: float, at_ns: int) -> None:
        if latitude == latitude and longitude == longitude:  # NaN: not known
            deep = {"depth_m": depth_m} if depth_m == depth_m else {}
            self.desk.note_agent(at_ns, latitude=latitude, longitude=longitude, position_ns=at_ns, **deep)

    def _write_thumbnails(self) -> None:
        """Store what is known of each thumbnail by now; it gets better with every fragment."""
        for number, (code, _) in list(self._thumbnails.items()):
            try:
                pixels = decode_thumbnail(code)
                with self._store.writing() as connection:
                    alert = self._store.thin_alert(connection, self.agent, f"{number[0]}:{number[1]}:")
                    if alert is not None:
                        received_ns = self._clock.wall_ns()
                        picture = encoded(pixels, frame=-1, at_ns=received_ns, boxes=[])
                        if picture is not None:
                            self._store.add_picture(connection, alert, THIN, "new", picture)
                            self._store.take_agent_picture(connection, self.agent, alert, picture)
            except DecodeError:
                alert = None
            except StoreError:
                return  # with the next fragment, or the next turn
            del self._thumbnails[number]
            if alert is not None:
                self._bulletin.post("picture", self.agent, alert)


class ThinEar:
    """Hears every modem of the settings."""

    def __init__(
        self,
        sections: dict[str, ThinSection],
        scribe: Scribe,
        claims: Claims,
        clock: Clock,
        make: Callable[[str, ThinSection], Modem],
    ):
        self._sections, self._scribe, self._claims, self._clock, self._make = sections, scribe, claims, clock, make
        self.modems: dict[str, Modem] = {}
        self._faults: dict[str, str] = {}
        self._claimed_ns = 0

    def run(self, stop: threading.Event) -> None:
        """Hear until told to stop."""
        try:
            while not stop.is_set():
                self._follow()
                ports = [modem.port for modem in self.modems.values()]
                if ports:
                    select.select(ports, [], [], WAIT_S)
                else:
                    stop.wait(WAIT_S)
                for modem in self.modems.values():
                    modem.step()
                self._write()
        finally:
            self._scribe.commit([modem.desk for modem in self.modems.values()])
            for modem in self.modems.values():
                modem.port.close()

    def troubles(self) -> list[str]:
        """Return what is wrong with modems."""
        own = [f"thin.{name}: {modem.log.trouble}" for name, modem in list(self.modems.items()) if modem.log.trouble]
        return own + [f"thin.{name}: {text}" for name, text in self._faults.items()]

    def _write(self) -> None:
        wall_ns = self._clock.wall_ns()
        due = [modem.desk for modem in self.modems.values() if modem.desk.is_due(wall_ns)]
        if due and not self._scribe.is_waiting:
            self._scribe.commit(due)

    def _follow(self) -> None:
        now_ns = self._clock.monotonic_ns()
        if self._claimed_ns and now_ns - self._claimed_ns < CLAIM_NS:
            return
        self._claimed_ns = now_ns
        if not self._claims.check():
            for modem in self.modems.values():
                modem.port.close()
            self.modems.clear()
        for name, section in self._sections.items():
            if name in self.modems or not self._claims.hold(f"thin {section.listen}"):
                continue
            try:
                self.modems[name] = self._make(name, section)
                self._faults.pop(name, None)
            except (TransportError, StoreError) as error:  # a port that is taken, a key that others can read
                self._faults[name] = str(error)
