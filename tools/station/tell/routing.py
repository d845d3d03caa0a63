"""Which alerts go out by which way: put into the ways' queues in the very transaction that enters the alert.

Called by tools/station/ingest for every phase that is new. It sends nothing itself.
"""

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import Connection

from stillwatch.runs import utc_text
from stillwatch.tools.station.settings import TellSection
from stillwatch.tools.station.store import FOLDER, AlertHeard, AlertTaken, Store


class Router:
    """Puts notifications into queues.

    Parameters
    ----------
    ways : mapping of str to TellSection
        By name.
    wall_ns : callable
    """

    def __init__(self, ways: Mapping[str, TellSection], wall_ns: Callable[[], int] = time.time_ns):
        self._ways, self._wall_ns = dict(ways), wall_ns

    def route(self, store: Store, connection: Connection, heard: AlertHeard, taken: AlertTaken) -> None:
        """Queue what this phase of an alert is to tell; nothing of one that is muted or that was read from a folder.

        Each phase is told once a way, whatever plane brings it: the uid is made of the alert and the phase.
        """
        if heard.plane == FOLDER or taken.is_muted:
            return
        phase = "end" if heard.phase == "single" else heard.phase
        if taken.is_new and phase != "new":
            phase = "new" if heard.phase != "end" else "end"
        for name, way in self._ways.items():
            if wanted(way, heard, phase):
                now_ns = self._wall_ns()
                uid = f"{heard.agent}-{taken.id}-{phase}" + (f"-{heard.key}" if phase == "update" else "")
                body = message_of(uid, heard, taken, phase)
                values = {"uid": uid, "channel": name, "alert": taken.id, "agent": heard.agent, "phase": phase}
                store.enqueue(connection, values | {"body": body, "created_ns": now_ns, "due_ns": now_ns})


def wanted(way: TellSection, heard: AlertHeard, phase: str) -> bool:
    """Whether a way's filters let a phase of an alert through."""
    return (
        phase in way.phases
        and (not way.agents or heard.agent in way.agents)
        and (not way.kinds or heard.fields.get("kind", "") in way.kinds)
        and heard.severity >= way.least_severity
    )


def message_of(uid: str, heard: AlertHeard, taken: AlertTaken, phase: str) -> str:
    """Return what every way tells, as JSON: the id to tell doubles by, the alert as the store has it by now."""
    names = ("kind", "duration_s", "frame", "rarity", "watched_s", "judged", "visits", "alike", "here", "peak",
             "x", "y", "latitude", "longitude", "depth_m")  # fmt: skip
    said: dict[str, Any] = {name: heard.fields[name] for name in names if heard.fields.get(name) is not None}
    body = {
        "id": uid,
        "alert": taken.id,
        "agent": heard.agent,
        "event": heard.event,
        "phase": phase,
        "plane": heard.plane,
        "severity": round(heard.severity, 3),
        "at": utc_text(heard.at_ns),
        "start": utc_text(heard.start_ns),
        **said,
    }
    return json.dumps(body, sort_keys=True)
