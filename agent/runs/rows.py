"""Events as rows of plain values, under the names that every command and export uses.

Used by agent/runs/run.py and by `run --json`. It must not read files.
"""

import datetime
from typing import Any

from stillwatch.runs.rareness import how_rare
from stillwatch.transport.wire import Alert


def utc_text(wall_ns: int) -> str:
    """Return a moment as ISO 8601 in UTC, to the millisecond."""
    moment = datetime.datetime.fromtimestamp(wall_ns / 1e9, tz=datetime.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def alert_row(alert: Alert, stream_s: float | None) -> dict[str, Any]:
    """Return one alert as it is told now.

    id, kind, phase; t_utc: when this was told; stream_s: when its first novel frame came, in seconds into the stream,
    or None where the stream's beginning is not known (`stream_s` here: when this was told); frame, end_frame: its
    first novel frame, and its last once it has ended, else None; duration_s; severity: 0 to 1; how_rare: in words, by
    what was counted; rarity: one frame in so many by the rule that raised it, a scale and no count; watched_s: seconds
    that were judged before it; judged: frames; visits: that were over; alike: of them, of its kind; here: of them, to
    its place; each None where that is not known; visit_kind: id of its kind of visits, or None; score: highest so far;
    x, y: centre of the main outline, shares; boxes: outlines, [[x0, y0, x1, y1], ...]; picture_frame: which they are
    of; nearest: the exemplar's id, or None.
    """
    before_ns = max(alert.t_ns - alert.start_t_ns, 0)
    ended = alert.phase == "end"
    row = {
        "id": alert.id,
        "kind": alert.alert_kind,
        "phase": alert.phase,
        "t_utc": utc_text(alert.wall_ns),
        "stream_s": None if stream_s is None else round(stream_s - before_ns / 1e9, 3),
        "frame": alert.start_frame if alert.start_frame >= 0 else None,
        "end_frame": alert.frame if ended and alert.frame >= 0 else None,
        "duration_s": round(alert.duration_s, 3),
        "severity": round(alert.severity, 3),
        "rarity": alert.rarity,
        "score": alert.peak,
        "x": alert.x,
        "y": alert.y,
        "boxes": [] if alert.boxes is None else [[round(float(v), 4) for v in box] for box in alert.boxes],
        "picture_frame": alert.picture_frame if alert.picture_frame >= 0 else None,
        "nearest": alert.exemplar if alert.exemplar >= 0 else None,
        **counts_of(alert),
    }
    return row | {"how_rare": how_rare(row)}


def counts_of(alert: Alert) -> dict[str, Any]:
    """Return what came before an alert, in counts, under the names of its row; None for what is not known."""
    names = ("judged", "visits", "alike", "here", "visit_kind")
    known = {name: value if (value := getattr(alert, name)) >= 0 else None for name in names}
    return {"watched_s": None if alert.watched_s is None else round(alert.watched_s, 3), **known}
