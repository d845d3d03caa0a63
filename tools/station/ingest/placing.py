"""Messages of agents as rows of the store: times that can be believed, texts that are short and plain, alerts.

Used by every ear of tools/station/ingest. Nothing an agent says is taken as it is: neither its clock, nor its texts.
"""

import json
import math
import re
from typing import Any

from stillwatch.tools.station.store import MOST_BOXES, THIN, AlertHeard
from stillwatch.transport.thin import EARLIEST_NS, ThinAlert
from stillwatch.transport.wire import Alert, Position

FUTURE_NS = 300 * 1_000_000_000  # a clock may be so far ahead of ours; beyond it, it is wrong
MOST_HISTORY = 128
_ODD = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def plain(text: str, longest: int = 256) -> str:
    """Return an agent's text without control characters (terminal escapes, NUL), marks that turn writing around and
    lone surrogates, cut to length."""
    return _ODD.sub("\ufffd", text[:longest])


def placed(wall_ns: int, received_ns: int) -> tuple[int, bool]:
    """Return when something was, and whether the agent's clock was believed: not where it is ahead of ours by more than
    five minutes or before 2020; then it is when it came."""
    is_believed = EARLIEST_NS <= wall_ns <= received_ns + FUTURE_NS
    return (wall_ns, True) if is_believed else (received_ns, False)


def alert_of(message: Alert, plane: str, received_ns: int) -> AlertHeard:
    """Return an alert of the live plane or a run folder, without its picture."""
    at_ns, is_believed = placed(message.wall_ns, received_ns)
    lasted_ns = min(max(message.t_ns - message.start_t_ns, 0), 30 * 86_400 * 10**9)
    boxes = [] if message.boxes is None else message.boxes[:MOST_BOXES].astype(float).round(4).tolist()
    history = [] if message.history is None else message.history[-MOST_HISTORY:].astype(float).round(4).tolist()
    return AlertHeard(
        agent=message.agent,
        plane=plane,
        uid=f"{plain(message.run, 64)}:{message.epoch}:{message.id}",
        key=str(message.sequence),
        event=message.id,
        phase=message.phase,
        severity=message.severity,
        at_ns=at_ns,
        start_ns=at_ns - lasted_ns,
        own_ns=message.wall_ns,
        own_start_ns=message.wall_ns - lasted_ns,
        received_ns=received_ns,
        clock_is_wrong=not is_believed,
        fields={
            "run": plain(message.run, 64),
            "epoch": message.epoch,
            "kind": plain(message.alert_kind, 64),
            "duration_s": message.duration_s,
            "frame": message.frame,
            "start_frame": message.start_frame,
            "peak": message.peak,
            "rarity": message.rarity,
            "watched_s": message.watched_s,
            "judged": message.judged,
            "visits": message.visits,
            "alike": message.alike,
            "here": message.here,
            "x": message.x,
            "y": message.y,
            "boxes": json.dumps(boxes),
            "picture_frame": message.picture_frame,
            "component": message.component,
            "exemplar": message.exemplar,
            "history": json.dumps(history),
            **position_of(message.nav),
        },
    )


def position_of(nav: Position | None) -> dict[str, float | None]:
    """Return a position's columns; empty where there is none."""
    if nav is None:
        return {}
    names = ("latitude", "longitude", "depth_m", "altitude_m", "heading_deg")
    return {name: value for name in names if (value := getattr(nav, name)) is not None}


def thin_alert_of(agent: str, alert: ThinAlert, key: str, received_ns: int) -> AlertHeard:
    """Return an alert of a thin link; `key` tells its delivery from every other."""
    at_ns, is_believed = placed(alert.wall_ns, received_ns)
    fields: dict[str, Any] = {"kind": str(alert.kind.value)}
    if alert.box is not None:
        x, y, width, height = alert.box
        corners = [x - width / 2, y - height / 2, x + width / 2, y + height / 2]
        fields |= {"x": min(max(x, 0.0), 1.0), "y": min(max(y, 0.0), 1.0)}
        fields["boxes"] = json.dumps([[round(min(max(corner, 0.0), 1.0), 4) for corner in corners]])
    for name in ("rarity", "latitude", "longitude", "depth_m", "altitude_m"):
        if math.isfinite(value := getattr(alert, name)):
            fields[name] = value
    return AlertHeard(
        agent=agent,
        plane=THIN,
        uid="",
        key=key,
        event=alert.event,
        phase=alert.life,
        severity=alert.severity / 7,
        at_ns=at_ns,
        start_ns=at_ns,
        own_ns=alert.wall_ns,
        own_start_ns=0,
        received_ns=received_ns,
        clock_is_wrong=bool(alert.wall_ns) and not is_believed,
        fields=fields,
    )
