"""Empties the queues: each way in a thread of its own, tried again with growing pauses, given up at last, never lost.

Started with the station. A message is marked as sent after it was handed over: who is killed in between sends it again,
under the same id.
"""

import logging
import random
import threading
from collections.abc import Callable, Mapping
from typing import Any

from stillwatch.base import Clock
from stillwatch.tools.station.bulletin import Bulletin
from stillwatch.tools.station.settings import TellSection
from stillwatch.tools.station.store import Claims, Store, StoreError
from stillwatch.tools.station.tell.mqtt import Mqtt
from stillwatch.tools.station.tell.ways import Command, Email, NotSent, Outgoing, Way, Webhook
from stillwatch.tools.station.workers import Workers

_log = logging.getLogger("stillwatch.station")
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 1800.0
LOOK_S = 0.5
AT_ONCE = 16


def make_way(section: TellSection, station: str) -> Way:
    """Return the way of a section."""
    match section.kind:
        case "webhook":
            return Webhook(section)
        case "mqtt":
            return Mqtt(section, station)
        case "email":
            return Email(section, station)
    return Command(section)


def pause_s(tries: int, random_share: float) -> float:
    """Return how long to wait after so many tries: doubling from a second to half an hour, from half to all of it."""
    longest = min(FIRST_PAUSE_S * 2.0 ** min(tries, 30), LONGEST_PAUSE_S)
    return longest * (0.5 + 0.5 * random_share)


class Teller:
    """Tells others what the queues hold.

    Parameters
    ----------
    sections : mapping of str to TellSection
        The ways out, by name.
    name : str
        The station's.
    """

    def __init__(
        self,
        sections: Mapping[str, TellSection],
        store: Store,
        bulletin: Bulletin,
        clock: Clock,
        *,
        name: str,
        make: Callable[[TellSection, str], Way] = make_way,
    ):
        self._sections, self._store, self._bulletin, self._clock = dict(sections), store, bulletin, clock
        self._name, self._make = name, make
        self._claims = Claims(store)
        self._stop = threading.Event()
        self._workers = Workers("tell", self._stop)
        self._faults: dict[str, str] = {}

    def start(self) -> None:
        """Begin to tell, in threads."""
        for name, section in self._sections.items():
            self._workers.start(name, self._tell, name, section)

    def stop(self, timeout_s: float = 5.0) -> None:
        """End; what is not sent yet is sent by the next process."""
        self._workers.stop(timeout_s)
        self._claims.close()

    def channels(self) -> list[dict[str, str]]:
        """Return the ways out in words: name, how."""
        return [{"name": name, "how": _words(section)} for name, section in sorted(self._sections.items())]

    def troubles(self) -> list[str]:
        """Return the ways by which nothing goes out now."""
        return [f"Notifications by {name} wait: {text}" for name, text in sorted(self._faults.items())]

    def _tell(self, name: str, section: TellSection) -> None:
        way: Way | None = None
        seen = 0
        try:
            while not self._stop.is_set():
                seen = self._bulletin.number
                try:
                    if self._claims.check() and self._claims.hold(f"tell {name}"):
                        way = way or self._make(section, self._name)
                        if self._send_due(name, section, way):
                            continue
                except StoreError as error:
                    _log.warning("notifications by %s wait: %s", name, error)
                self._bulletin.wait(seen, LOOK_S)
                self._stop.wait(0.05)
        finally:
            if way is not None:
                way.close()

    def _send_due(self, name: str, section: TellSection, way: Way) -> bool:
        """Send what is due; whether there was something."""
        due = self._store.due_notifications(name, self._clock.wall_ns(), limit=AT_ONCE)
        for row in due:
            if self._stop.is_set():
                return False
            self._send(name, section, way, row)
        return bool(due)

    def _send(self, name: str, section: TellSection, way: Way, row: Mapping[str, Any]) -> None:
        try:
            picture = self._store.alert_picture(row["alert"]) if section.kind == "email" and row["alert"] else None
            message = Outgoing(row["uid"], row["body"], picture["picture"] if picture else b"")
            try:
                way.send(message)
            except (ValueError, KeyError, TypeError) as error:  # a fault of ours: one message must not end the others
                raise NotSent(f"{type(error).__name__}: {error}") from error
        except NotSent as error:
            self._faults[name] = str(error)
            if error.is_final or row["tries"] + 1 >= section.tries:
                _log.error("notification %s by %s is given up: %s", row["uid"], name, error)
                self._store.notification_dead(row["id"], str(error))
            else:
                pause_ns = int(pause_s(row["tries"], random.random()) * 1e9)
                self._store.notification_failed(row["id"], str(error), self._clock.wall_ns() + pause_ns)
            self._bulletin.post("queue")
            return
        self._faults.pop(name, None)
        self._store.notification_sent(row["id"])
        self._bulletin.post("queue")


def _words(section: TellSection) -> str:
    """Return where a way leads, without its secrets."""
    where = {
        "webhook": section.url.partition("?")[0],
        "mqtt": f"{section.host}, topics {section.topic}/…",
        "email": f"to {', '.join(section.to)} by {section.host}",
        "command": " ".join(section.command[:1]),
    }[section.kind]
    return f"{section.kind}: {where}"
