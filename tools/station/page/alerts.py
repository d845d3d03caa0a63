"""Alerts on the page: the list with its filters, one alert with its picture and words, and what people do with it.

Called by tools/station/page/app.py. Outlines are shown on the very frame that they were told of, on no other.
"""

import json
import math
from collections.abc import Mapping
from typing import Any

from starlette.responses import RedirectResponse, Response

from stillwatch.runs import how_rare, most_often
from stillwatch.tools.shared import words
from stillwatch.tools.station.access import Refused
from stillwatch.tools.station.page import drawing, wording
from stillwatch.tools.station.page.asking import AGENT, LARGEST, Ask
from stillwatch.tools.station.page.learnt import component_name
from stillwatch.tools.station.page.wording import cleaned
from stillwatch.tools.station.store import MOST_BOXES, AlertFilter
from stillwatch.transport.wire import EventKind, Position

PAGE_SIZE = 48
NEWEST = 8  # beside the fleet
MOST_FRAMES = 24
SPANS = (("", "ever"), ("1h", "an hour ago"), ("24h", "a day ago"), ("7d", "a week ago"), ("30d", "30 days ago"))
_HOURS = {"1h": 1, "24h": 24, "7d": 168, "30d": 720}
KINDS = [str(kind) for kind in EventKind if kind is not EventKind.OTHER]
MOST_MUTE_HOURS = 24 * 366
Row = Mapping[str, Any]


def index(ask: Ask) -> Response:
    """Show the list with its filters."""
    problems: list[str] = []
    values = _listed(ask, problems)
    services = ask.services
    return ask.page(
        "alerts.html",
        page="alerts",
        agent_ids=[row["agent"] for row in services.agents.get()],
        kinds=KINDS,
        spans=SPANS,
        labels=services.labels.get(),
        problems=problems,
        **values,
    )


def part(ask: Ask) -> Response:
    """Return the list alone, for a page that shows it already."""
    return ask.page("part_alerts.html", **_listed(ask, []))


def newest(ask: Ask) -> Response:
    """Return the newest alerts that wait, for the fleet's page."""
    return ask.page("part_newest.html", **newest_of(ask))


def newest_of(ask: Ask) -> dict[str, Any]:
    """Return what the list of the newest alerts shows."""
    rows = ask.services.store.alerts(AlertFilter(waiting=True), limit=NEWEST)
    return {"alerts": [shown_alert(row) for row in rows]}


def waiting(ask: Ask) -> Response:
    """Return how many alerts nobody has acknowledged."""
    return ask.page("part_waiting.html")


def _listed(ask: Ask, problems: list[str]) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "agent": ask.text("agent", 32),
        "kind": ask.text("kind", 32),
        "since": ask.text("since", 8),
        "label": ask.text("label", 64),
        "useful": ask.text("useful", 1),
        "open": ask.text("open", 1) == "1",
    }
    if shown["agent"] and not AGENT.fullmatch(shown["agent"]):
        problems.append("No agent can have that name: every agent is shown.")
        shown["agent"] = ""
    before = place_of("before", ask.text("before", 60))
    wanted = filter_of(shown, ask.services.wall_ns())
    rows = ask.services.store.alerts(wanted, before=before, limit=PAGE_SIZE + 1)
    last = rows[PAGE_SIZE - 1] if len(rows) > PAGE_SIZE else None
    return {
        "alerts": [shown_alert(row) for row in rows[:PAGE_SIZE]],
        "filters": shown,
        "before": before,
        "is_filtered": any(shown.values()),
        "query": ask.query(),
        "older": "/alerts" + ask.query(before=f"{last['at_ns']}.{last['id']}") if last else "",
    }


def filter_of(shown: Mapping[str, Any], now_ns: int) -> AlertFilter:
    """Return what the store is asked for."""
    hours = _HOURS.get(shown["since"])
    return AlertFilter(
        agent=shown["agent"],
        kind=shown["kind"],
        from_ns=now_ns - hours * 3600 * 10**9 if hours else 0,
        label=shown["label"],
        useful={"1": True, "0": False}.get(shown["useful"]),
        waiting=True if shown["open"] else None,
    )


def place_of(name: str, text: str) -> tuple[int, int] | None:
    """Return the place in a list that an address names: (at_ns, id)."""
    if not text:
        return None
    at, _, identity = text.partition(".")
    digits = at.removeprefix("-"), identity
    is_known = all(part.isascii() and part.isdigit() and len(part) < 20 for part in digits)
    if not is_known or max(abs(int(at)), int(identity)) > LARGEST:
        raise Refused(400, f"{name} must be a place that an earlier page named.")
    return int(at), int(identity)


def shown_alert(row: Row) -> dict[str, Any]:
    """Return what every view of an alert says of it."""
    title = cleaned(words.title_of(row["kind"]), 80)
    x, y = row["x"], row["y"]
    where = words.where(x, y, boxes_of(row["boxes"]))
    about = title + (f", {where}" if where else "")
    frame = row["picture_frame"]
    return {
        "id": row["event"],
        "address": f"/alerts/{row['id']}",
        "agent": row["agent"],
        "title": title,
        "place": where,
        "rarity": wording.unbroken(how_rare(row)),
        "severity": min(max(row["severity"] or 0.0, 0.0), 1.0),
        "start_ns": row["start_ns"] or row["at_ns"],
        "frame": row["start_frame"],
        "picture": f"/alerts/{row['id']}/picture.jpg?f={frame}" if row["has_picture"] else "",
        "boxes": outlines(row["boxes"]) if row["has_picture"] else [],
        "alt": f"Frame {frame} of {row['agent']}: {about}" if frame >= 0 else f"{row['agent']}: {about}",
        "is_going_on": row["phase"] != "end",
        "is_open": not row["acknowledged_ns"],
        "is_muted": bool(row["is_muted"]),
        "acknowledged_by": row["acknowledged_by"],
        "acknowledged_ns": row["acknowledged_ns"],
        "useful": row["useful"],
        "label": row["label"],
    }


def boxes_of(text: str) -> list[list[float]]:
    """Return boxes of JSON [[x0, y0, x1, y1], …], within the picture; what is no box is left out."""
    try:
        given = json.loads(text or "[]")
        rows = [[float(v) for v in box] for box in given[:MOST_BOXES] if isinstance(box, list)]
    except (ValueError, TypeError):
        return []
    rows = [row for row in rows if len(row) == 4 and all(map(math.isfinite, row))]
    return [[min(max(v, 0.0), 1.0) for v in row] for row in rows]


def outlines(text: str) -> list[tuple[str, str, str, str]]:
    """Return boxes as (x, y, width, height) of a unit square, in digits."""
    return [
        (f"{x0:.4f}", f"{y0:.4f}", f"{max(x1 - x0, 0.0):.4f}", f"{max(y1 - y0, 0.0):.4f}")
        for x0, y0, x1, y1 in boxes_of(text)
    ]


def _alert(ask: Ask) -> Row:
    row = ask.services.store.alert(ask.id())
    if row is None:
        raise Refused(404, "There is no such alert. It may have been too old to be kept.")
    return row


def show(ask: Ask) -> Response:
    """Show one alert."""
    row, services = _alert(ask), ask.services
    place = (row["at_ns"], row["id"])
    newer = services.store.newer_alerts(after=place, limit=1)
    older = services.store.alerts(before=place, limit=1)
    mutes = services.store.mutes(services.wall_ns())
    return ask.page(
        "alert.html",
        page="alerts",
        e=_whole(ask, row),
        newer=f"/alerts/{newer[-1]['id']}" if newer else "",
        older=f"/alerts/{older[0]['id']}" if older else "",
        labels=services.labels.get(),
        mutes=[shown_mute(mute) for mute in mutes if mute["agent"] in ("", row["agent"])],
        acts=[_act(act) for act in row["events"]],
    )


def story(ask: Ask) -> Response:
    """Return one alert's picture and words alone."""
    return ask.page("part_alert.html", e=_whole(ask, _alert(ask)))


def _whole(ask: Ask, row: Row) -> dict[str, Any]:
    store, shown = ask.services.store, shown_alert(row)
    history = _numbers(row["history"])
    nearest = store.exemplar(row["agent"], row["exemplar"]) if row["exemplar"] >= 0 else None
    has_nearest = nearest is not None and bool(nearest["picture"])
    return shown | {
        "lead": _lead(row, shown),
        "why": words.why(row["kind"]),
        "picture_note": _picture_note(row),
        "likeness": _likeness(ask, row, nearest),
        "nearest_picture": f"/agents/{row['agent']}/exemplars/{row['exemplar']}.jpg" if has_nearest else "",
        "nearest_frame": nearest["frame"] if nearest else -1,
        "facts": _facts(row, shown),
        "spark": drawing.history(history, text=f"{len(history)} scores before it was told"),
        "n_history": len(history),
        "frames": [_frame(row, frame) for frame in row["pictures"][-MOST_FRAMES:]],
        "clip": f"/alerts/{row['id']}/clip" if row["clip"] else "",
        "updates": [_update(row, update) for update in row["updates"]],
    }


def _lead(row: Row, shown: Mapping[str, Any]) -> str:
    """Return in one sentence what it was, where and how rare."""
    likeness = {
        EventKind.NOVEL: "Like nothing that this agent knows at this place",
        EventKind.NEW_CATEGORY: "It came, stayed, and is learnt by now",
        EventKind.RETURNED: "It was seen before, seldom, and was away",
        EventKind.VANISHED: "What nearly every frame held is away",
        EventKind.SCENE_CHANGE: "Nearly all of the view at once",
        EventKind.VIEW_CHANGED: "The camera looks elsewhere: what is usual here is learnt anew",
    }.get(EventKind(row["kind"]), "")
    where = f"at the {shown['place']} of the picture" if shown["place"] else ""
    rest = ", ".join(part for part in (where, shown["rarity"]) if part)
    text = ": ".join(part for part in (likeness, rest) if part)
    length = row["duration_s"] or 0.0
    end = "It is still going on" if shown["is_going_on"] else f"It lasted {words.duration(length)}" if length else ""
    return f"{text[:1].upper()}{text[1:]}." * bool(text) + f" {end}." * bool(end)


def _picture_note(row: Row) -> str:
    if not row["has_picture"]:
        return "No picture of it has come: the link was too thin, or it was told by a modem."
    return f"Picture and outlines are of frame {row['picture_frame']}: the best that was told." * (
        row["picture_frame"] >= 0
    )


def _likeness(ask: Ask, row: Row, nearest: Row | None) -> str:
    """Return what known thing it is most like: a person's name for it, or the frame that stands for it."""
    name = component_name(ask.services.store, row["agent"], row["component"])
    if name:
        return f"Nearest known: “{name}”."
    if nearest is not None and nearest["label"]:
        return f"Nearest known: “{nearest['label']}”."
    if nearest is not None:
        return f"Of what was known, the whole frame is most like frame {nearest['frame']}."
    return ""


def _facts(row: Row, shown: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    nav = position_of(row)
    peak = f"{row['peak']:.2f}" if row["peak"] is not None else ""
    limit = most_often(row["alike"], row["watched_s"]) if row["watched_s"] else ""
    clock = "by the station's clock: the agent's is wrong" if row["clock_is_wrong"] else ""
    after = (row["received_ns"] - row["at_ns"]) / 1e9
    return [
        ("How rare", shown["rarity"], limit),
        ("Highest score", peak, "deviations above the usual" if peak else ""),
        ("Severity", f"{shown['severity']:.2f}", "of 1"),
        ("Lasted", words.duration(row["duration_s"] or 0.0), ""),
        ("Heard", f"after {words.duration(max(after, 0.0))}" if not clock else "", ", ".join(_planes(row["planes"]))),
        ("Time", clock, ""),
        ("Where", words.position(nav), ""),
    ]


def position_of(row: Row) -> Position:
    """Return where the camera was."""
    names = ("latitude", "longitude", "depth_m", "altitude_m", "heading_deg")
    return Position(**{name: row[name] for name in names})


def _planes(text: str) -> list[str]:
    return [{"live": "live", "thin": "thin link", "folder": "run folder"}.get(p, p) for p in text.split(",") if p]


def _frame(row: Row, frame: Row) -> dict[str, Any]:
    return {
        "picture": f"/alerts/{row['id']}/pictures/{frame['id']}.jpg",
        "boxes": outlines(frame["boxes"]),
        "alt": f"Frame {frame['frame']} of {row['agent']}, as told in phase {frame['phase']}",
        "phase": {"new": "first told", "update": "still", "end": "over"}.get(frame["phase"], frame["phase"]),
        "frame": frame["frame"],
        "wall_ns": frame["at_ns"],
    }


def _update(row: Row, update: Row) -> dict[str, Any]:
    lasted = (update["at_ns"] - row["start_ns"]) / 1e9 if row["start_ns"] else 0.0
    return {
        "wall_ns": update["at_ns"],
        "frame": update["frame"],
        "phase": update["phase"],
        "lasted": words.duration(max(lasted, 0.0)),
        "severity": f"{update['severity']:.2f}",
        "plane": ", ".join(_planes(update["plane"])),
    }


def _numbers(text: str) -> list[float]:
    try:
        return [float(value) for value in json.loads(text or "[]")][:512]
    except (ValueError, TypeError):
        return []


def _act(act: Row) -> dict[str, Any]:
    said = {
        "acknowledge": "acknowledged it",
        "useful": "found it useful" if act["text"] == "yes" else "found it not useful",
        "label": f"labelled it “{act['text']}”" if act["text"] else "took the label away",
        "note": f"noted: {act['text']}",
        "mute": f"muted this here {act['text']}",
    }
    return {"who": act["user"], "text": said.get(act["act"], act["act"]), "wall_ns": act["at_ns"]}


def shown_mute(mute: Row) -> dict[str, Any]:
    """Return what a list of mutes says of one."""
    what = words.title_of(mute["kind"]) if mute["kind"] else "Everything"
    return {
        "id": mute["id"],
        "what": f"“{what}” at {mute['agent'] or 'every agent'}" + f", {mute['place']}" * bool(mute["place"]),
        "until_ns": mute["until_ns"],
        "by": mute["user"],
    }


def acknowledge(ask: Ask) -> Response:
    """Take an alert off the list of those that wait."""
    row = _alert(ask)
    ask.services.store.acknowledge(row["id"], ask.visitor.name, ask.services.wall_ns())
    return _done(ask, row, "acknowledge")


def judge(ask: Ask) -> Response:
    """Say whether an alert was worth telling."""
    row = _alert(ask)
    given = ask.field("useful", 1)
    if given not in ("0", "1"):
        raise Refused(400, "Write 1 for useful or 0 for not.")
    ask.services.store.set_useful(row["id"], ask.visitor.name, ask.services.wall_ns(), given == "1")
    return _done(ask, row, "useful" if given == "1" else "not useful")


def label(ask: Ask) -> Response:
    """Give an alert a person's name; an empty one takes it away."""
    row = _alert(ask)
    text = ask.field("label", 64)
    ask.services.store.set_label(row["id"], ask.visitor.name, ask.services.wall_ns(), text)
    return _done(ask, row, "label", text)


def note(ask: Ask) -> Response:
    """Write a note beside an alert."""
    row = _alert(ask)
    text = ask.field("note", 2000)
    if not text:
        raise Refused(400, "A note needs words.")
    ask.services.store.add_note(row["id"], ask.visitor.name, ask.services.wall_ns(), text)
    return _done(ask, row, "note", text)


def mute(ask: Ask) -> Response:
    """Keep alerts like this one off the list of those that wait, for some hours: of this agent, of its kind or (`kind`
    is "any") of all, at its place in the picture (`place` is "here") or anywhere."""
    row = _alert(ask)
    hours = ask.field_number("hours", 1, MOST_MUTE_HOURS)
    now_ns = ask.services.wall_ns()
    until_ns = now_ns + hours * 3600 * 10**9
    kind = "" if ask.form.get("kind") == "any" else row["kind"]
    place = shown_alert(row)["place"] if ask.form.get("place") == "here" else ""
    ask.services.store.add_mute(
        agent=row["agent"], kind=kind, place=place, user=ask.visitor.name, now_ns=now_ns, until_ns=until_ns
    )
    what = " ".join([kind or "everything", *([f"at the {place}"] if place else [])])
    return _done(ask, row, "mute", f"{what} until {wording.utc(until_ns)}")


def end_mute(ask: Ask) -> Response:
    """End a mute before its time."""
    if not ask.services.store.end_mute(ask.id(), ask.services.wall_ns()):
        raise Refused(404, "There is no such mute.")
    ask.record("end mute", str(ask.id()))
    ask.services.tell("act", "", ask.id())
    return ask.back("/notifications")


def _done(ask: Ask, row: Row, act: str, detail: str = "") -> Response:
    ask.record(act, f"{row['agent']} alert {row['id']}", detail)
    ask.services.tell("act", row["agent"], row["id"])
    if ask.form.get("back"):
        return ask.back("/alerts")
    return RedirectResponse(f"/alerts/{row['id']}", status_code=303)
