"""The words in which every command and page speaks of events: what happened, where, when, how rare, how long.

Used by run, ground, report, compare and the commands that export. It must not read files or know pages.
"""

import datetime
from collections.abc import Sequence

import numpy as np

from stillwatch.runs import counts_of, how_rare
from stillwatch.settings import EventsConfig
from stillwatch.transport.wire import Alert, Clumps, EventKind, Position

NEARLY_ALL = 0.75  # of the picture in one box: to say which third it lies in would mislead
_THIN_SPACE = "\u202f"
TITLES = {
    EventKind.NOVEL: "Something new",
    EventKind.NEW_CATEGORY: "A new kind of thing stays",
    EventKind.RETURNED: "Something rare is back",
    EventKind.VANISHED: "Something usual is gone",
    EventKind.SCENE_CHANGE: "The whole view changed",
    EventKind.UNUSUAL_VIEW: "An unusual view",
    EventKind.VIEW_CHANGED: "The camera has another view",
}


def title_of(kind: str) -> str:
    """Return what an event is, for people; the kind itself where it is a later version's."""
    found = EventKind(kind)
    return TITLES.get(found) or kind.replace("_", " ").capitalize()


def why(kind: str, events: EventsConfig | None = None) -> str:
    """Return which rule raises events of a kind; with the agent's own thresholds where they are known."""
    frames, rare, away = "several", "the agent's threshold", "for long"
    if events is not None:
        frames, rare = str(events.min_frames), f"the threshold of one in {number(events.raise_rarity)}"
        away = f"for {duration(events.vanish_s)}"
    rules = {
        EventKind.NOVEL: f"Raised because {frames} frames in a row stood out further than {rare}.",
        EventKind.NEW_CATEGORY: "Raised because something that came in an event was learnt and is still there, however "
        "rare it is.",
        EventKind.RETURNED: "Raised because something seldom seen, away for a minute or more, is back, however rare "
        "it is.",
        EventKind.VANISHED: f"Raised because what was in nearly every frame has been away {away}.",
        EventKind.SCENE_CHANGE: "Raised because nearly all of the view changed at once and stayed so: light, or the "
        "camera.",
        EventKind.UNUSUAL_VIEW: f"Raised because {frames} looks in a row showed shares of topics rarer than {rare}, "
        "each part of them known.",
        EventKind.VIEW_CHANGED: "Raised because what stays in the picture is elsewhere in it, or none of it is found: "
        "the camera was knocked, turned or moved. What was usual before is kept, for when it is put right.",
    }
    return rules.get(EventKind(kind), f"Raised by the agent's rule “{kind.replace('_', ' ')}”.")


def position(nav: Position | None) -> str:
    """Return where the camera was; empty where that is not known."""
    if nav is None:
        return ""
    parts = []
    if nav.latitude is not None and nav.longitude is not None:
        parts.append(f"{nav.latitude:.5f}, {nav.longitude:.5f}")
    for value, text in ((nav.depth_m, "m deep"), (nav.altitude_m, "m above ground")):
        if value is not None:
            parts.append(f"{value:.1f} {text}")
    return ", ".join(parts)


def duration(seconds: float) -> str:
    """Return a length of time in words of at most two units."""
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, hours = int(seconds // 60), int(seconds // 3600)
    if hours < 1:
        return f"{minutes} min {int(seconds % 60)} s"
    return f"{hours} h {minutes % 60} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"


def number(value: float) -> str:
    """Return a count with thin spaces between thousands."""
    return f"{value:,.0f}".replace(",", _THIN_SPACE)


def count(n: int, what: str) -> str:
    """Return how many there are of something whose plural takes an s."""
    return f"{n} {what}{'' if n == 1 else 's'}"


def unsure(why: str) -> str:
    """Return why an agent is not to be relied on yet, as its status names it; empty where it is."""
    return {"busy_start": "learning, busy start", "weather": "weather, hardly judged"}.get(why, why.replace("_", " "))


def clock_time(seconds: float) -> str:
    """Return a time for an axis: minutes and seconds, hours before them where there are some, tenths where needed."""
    seconds = max(seconds, 0.0)
    if seconds >= 3600:
        return f"{int(seconds // 3600)}:{int(seconds // 60) % 60:02d}:{int(seconds) % 60:02d}"
    tenth = f".{int(seconds * 10) % 10}" if seconds % 1 > 0.05 and seconds < 60 else ""
    return f"{int(seconds // 60)}:{int(seconds) % 60:02d}{tenth}"


def moment(seconds: float) -> str:
    """Return when in a stream something was, to a tenth of a second."""
    tenths = round(max(seconds, 0.0) * 10)
    minutes, rest = divmod(tenths, 600)
    hours = f"{minutes // 60}:{minutes % 60:02d}" if minutes >= 60 else str(minutes)
    return f"{hours}:{rest // 10:02d}.{rest % 10}"


def is_over_at_once(alert: Alert) -> bool:
    """Whether this is the end of something that lasts no time: its beginning has said all."""
    return alert.phase == "end" and alert.duration_s == 0


def utc(wall_ns: int) -> str:
    """Return a time of day in UTC."""
    return datetime.datetime.fromtimestamp(wall_ns / 1e9, tz=datetime.UTC).strftime("%H:%M:%S UTC")


def place(x: float, y: float) -> str:
    """Return where in the picture (x, y) is, shares of width and height, by thirds."""
    across = ("left", "", "right")[min(int(3 * x), 2)]
    down = ("upper", "", "lower")[min(int(3 * y), 2)]
    if across and down:
        return f"{down} {across}"
    return across or {"upper": "top", "lower": "bottom"}.get(down, "centre")


def where(x: float | None, y: float | None, boxes: Sequence[Sequence[float]] | np.ndarray | None) -> str:
    """Return where in the picture an event is: by thirds, or all of it by its main box; empty where that is not known.

    `boxes` are (x0, y0, x1, y1) as shares of the picture, the main one first.
    """
    if boxes is not None and len(boxes):
        x0, y0, x1, y1 = (float(value) for value in boxes[0])
        if (x1 - x0) * (y1 - y0) >= NEARLY_ALL:
            return "nearly the whole view"
    return "" if x is None or y is None else place(x, y)


def alert_line(alert: Alert, stream_s: float | None = None) -> str:
    """Return one line for a person: when, which event, what, where, how rare, how long.

    `stream_s` is the time into the stream at which it was told, where that is known.
    """
    when = [moment(stream_s)] if stream_s is not None else []
    when += [f"frame {alert.frame}"] if alert.frame >= 0 else []
    parts = ["  ".join([*when, utc(alert.wall_ns)]), f"event {alert.id}"]
    parts.append(f"{_verb(alert)}{title_of(alert.alert_kind).lower()}")
    there = where(alert.x, alert.y, alert.boxes)
    parts += [there] * (bool(there) and alert.phase != "end")
    rare = how_rare({"kind": alert.alert_kind, "rarity": alert.rarity, **counts_of(alert)})
    parts += [rare] * bool(rare)
    if alert.phase != "new" and alert.duration_s > 0:
        parts.append(f"for {duration(alert.duration_s)}")
    nav = alert.nav
    if nav is not None and nav.latitude is not None and nav.longitude is not None:
        parts.append(f"{nav.latitude:.5f} {nav.longitude:.5f}")
    if nav is not None and nav.depth_m is not None:
        parts.append(f"{nav.depth_m:.1f} m deep")
    return "  ".join(parts)


def held(clumps: Clumps) -> str:
    """Return what a mixture keeps of its data, what of its memory that takes, and how much of it was sent."""
    parts = [f"{number(clumps.n_clumps)} clumps", f"{number(clumps.n_singlets)} singlets"]
    if clumps.memory:
        shares = [clumps.clump_points / clumps.memory, clumps.n_singlets / clumps.memory]
        parts = [f"{part} ({share:.0%} of memory)" for part, share in zip(parts, shares, strict=True)]
        parts.append(f"the epoch {number(clumps.epoch_size)} samples ({clumps.epoch_size / clumps.memory:.0%})")
    counts = f"{number(float(clumps.counts.sum()))} samples"
    if clumps.total:
        counts += f" of {number(clumps.total)}"
    n = clumps.n_clumps + clumps.n_singlets
    return f"{', '.join(parts)}; sent: {number(len(clumps.counts))} of {number(n)}, which stand for {counts}"


def _verb(alert: Alert) -> str:
    return {"new": "", "update": "still: ", "end": "over: "}.get(alert.phase, f"{alert.phase}: ")
