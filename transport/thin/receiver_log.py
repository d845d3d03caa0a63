"""What arrives at the ground, and its log of alerts: each exactly once, whatever is repeated and whoever is killed.

Used by transport/thin/link.py, by one thread. An alert is on the disk before it is acknowledged, and it is looked up
by number and content before it is written.
"""

import logging
import pathlib
from dataclasses import dataclass
from typing import Protocol

import google_crc32c

from stillwatch.transport.base import Clock
from stillwatch.transport.disk import RecordWriter, log_files, read_records
from stillwatch.transport.thin.codec import ALERT_BYTES, decode_alert_record, encode_record
from stillwatch.transport.thin.outbox import FOREVER_S, Number
from stillwatch.transport.thin.records import ComponentPart, ThinAlert, ThinHeartbeat
from stillwatch.transport.wire import LogError

logger = logging.getLogger(__name__)

KIND_ALERT = 16
REMEMBERED = 65_536  # far more than any vehicle has waiting at once: older ones are not repeated any more
_NAME = "received"
_FILE_BYTES = 8_000_000  # over 100,000 alerts, so that the last two files hold all that is to be remembered
_RECENT_NS = 3600 * 1_000_000_000
_Key = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class AlertArrived:
    """An alert that is now in the ground's log, for the first time."""

    agent: int
    alert: ThinAlert


@dataclass(frozen=True, slots=True)
class ThumbnailArrived:
    """More of a thumbnail: `code` is a prefix of transport/thin/thumbnails.py's code, or all of it."""

    agent: int
    number: Number
    code: bytes
    is_complete: bool


@dataclass(frozen=True, slots=True)
class PacketArrived:
    """A packet for the ground's copy of a model: the channel is its number in MODELS."""

    agent: int
    channel: int
    data: bytes


@dataclass(frozen=True, slots=True)
class ComponentArrived:
    """One stage of a component's code."""

    agent: int
    part: ComponentPart


@dataclass(frozen=True, slots=True)
class HeartbeatArrived:
    """How the agent says it is."""

    agent: int
    heartbeat: ThinHeartbeat


@dataclass(frozen=True, slots=True)
class ClumpsArrived:
    """More of the clumps of a model that were asked for: `payload` is a Clumps message of `n_bytes`, once complete."""

    agent: int
    channel: int
    payload: bytes
    n_bytes: int
    is_complete: bool


Arrival = AlertArrived | ThumbnailArrived | PacketArrived | ComponentArrived | HeartbeatArrived | ClumpsArrived


class AlertLog(Protocol):
    """Where a ground keeps alerts, each once, before it acknowledges them: receiver_log.py, or a store."""

    renumbered: int

    @property
    def continued(self) -> bool:
        """Whether there were alerts before this start."""
        ...

    def append(self, agent: int, alert: ThinAlert) -> bool | None:
        """Keep an alert and return True; False if it was there already, None if it could not be kept."""
        ...

    def arrived_lately(self, agent: int, number: Number) -> bool:
        """Tell whether an alert of this number was kept within the last hour."""
        ...


class ReceiverLog:
    """Alerts of any number of agents in one folder, and which ones are there.

    Attributes
    ----------
    duplicates : int
        Alerts that came again and were not written again.
    renumbered : int
        Alerts under a number that another alert had: a vehicle whose outbox was made anew. They are written.
    continued : bool
        There was a log in the folder before.
    """

    def __init__(self, folder: pathlib.Path | str, *, clock: Clock):
        self.folder = pathlib.Path(folder)
        self.duplicates = self.renumbered = 0
        self.continued = bool(log_files(self.folder, _NAME))
        self._clock = clock
        self._known: dict[tuple[_Key, int], None] = {}  # number and CRC of each record, oldest first
        self._arrivals: dict[_Key, int] = {}  # UTC ns of the last arrival of a number, oldest first
        self._read()
        self._is_in_doubt = False
        self._writer = RecordWriter(
            self.folder,
            _NAME,
            clock=clock,
            max_file_bytes=_FILE_BYTES,
            max_file_s=FOREVER_S,
            sync_every_s=0.0,
            on_state=_log_state,
        )

    @property
    def state(self) -> str:
        """The record log's state; while it is not "ok" nothing is taken, so the vehicles keep what they have."""
        return self._writer.state

    def arrived_lately(self, agent: int, number: Number) -> bool:
        """Tell whether an alert of this number was written within the last hour."""
        arrival_ns = self._arrivals.get((agent, *number))
        return arrival_ns is not None and abs(self._clock.wall_ns() - arrival_ns) < _RECENT_NS

    def append(self, agent: int, alert: ThinAlert) -> bool | None:
        """Write an alert and return True; False if it was there already, None if the disk did not take it."""
        if self._is_in_doubt:
            # A write whose sync failed may be on the disk all the same: look before the alert is written again.
            try:
                self._read()
            except LogError:
                return None
            self._is_in_doubt = False
        record = encode_record(alert)
        key = (agent, alert.incarnation, alert.delivery)
        arrival_ns = self._clock.wall_ns()
        if (key, google_crc32c.value(record)) in self._known:
            self.duplicates += 1
            self._arrivals[key] = arrival_ns
            return False
        self.renumbered += key in self._arrivals
        if self._writer.append(KIND_ALERT, bytes([agent]) + record, arrival_ns) < 0:
            self._is_in_doubt = True
            return None
        self._note(agent, record, arrival_ns)
        return True

    def close(self) -> None:
        """Flush and close."""
        self._writer.close()

    def _note(self, agent: int, record: bytes, arrival_ns: int) -> None:
        alert = decode_alert_record(record)
        key = (agent, alert.incarnation, alert.delivery)
        self._known[key, google_crc32c.value(record)] = None
        self._arrivals[key] = arrival_ns
        if len(self._known) > REMEMBERED:
            del self._known[next(iter(self._known))]
        if len(self._arrivals) > REMEMBERED:
            del self._arrivals[next(iter(self._arrivals))]

    def _read(self) -> None:
        """Learn what the last two files hold."""
        files = log_files(self.folder, _NAME)
        if not files:
            return
        try:
            for record in read_records(self.folder, name=_NAME, from_sequence=files[-2:][0][0]):
                if record.kind == KIND_ALERT and len(record.body) == ALERT_BYTES + 1:
                    self._note(record.body[0], record.body[1:], record.t_ns)
        except LogError as error:
            raise LogError(
                f"the received alerts cannot be read, so doubles could not be told: {error}; give another --out"
            ) from error


def _log_state(state: str, message: str) -> None:
    logger.log(logging.INFO if state == "ok" else logging.WARNING, "received alerts: %s", message)
