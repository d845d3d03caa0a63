"""The JSON interface: agents, alerts, scores, labels, a page at a time; its description; metrics; health.

Called by tools/station/page/app.py. Fields are only added; what one means does not change within v1.
"""

import math
from collections.abc import Mapping
from typing import Any

from starlette.responses import PlainTextResponse, Response

from stillwatch.base import __version__
from stillwatch.runs import how_rare
from stillwatch.tools.station.access import Refused
from stillwatch.tools.station.page.alerts import boxes_of, place_of
from stillwatch.tools.station.page.asking import AGENT, LARGEST, Ask, as_json
from stillwatch.tools.station.page.description import OPERATIONS, openapi
from stillwatch.tools.station.page.wording import iso
from stillwatch.tools.station.store import AlertFilter

MOST_ITEMS, USUAL_ITEMS = 500, 100
SCORE_FIELDS = ("at_ns", "frame", "value", "rarity", "is_learning", "is_refused")
Row = Mapping[str, Any]


def page(ask: Ask) -> Response:
    """Show the interface for people."""
    return ask.page("api.html", page="api", operations=OPERATIONS)


def description(ask: Ask) -> Response:
    """Return the OpenAPI description."""
    return as_json(openapi())


def agents(ask: Ask) -> Response:
    """Return the agents by name."""
    limit, after = ask.number("limit", USUAL_ITEMS, 1, MOST_ITEMS), ask.text("after", 32)
    rows = [row for row in ask.services.agents.get() if row["agent"] > after]
    return _paged(ask, [_agent(row) for row in rows[:limit]], rows[limit - 1]["agent"] if len(rows) > limit else None)


def alerts(ask: Ask) -> Response:
    """Return alerts, newest first."""
    limit = ask.number("limit", USUAL_ITEMS, 1, MOST_ITEMS)
    wanted = AlertFilter(
        agent=_agent_name(ask),
        kind=ask.text("kind", 32),
        from_ns=ask.number("since_ns", 0),
        to_ns=ask.number("until_ns", 0),
        label=ask.text("label", 64),
        useful=_truth(ask, "useful"),
        waiting=_truth(ask, "waiting"),
    )
    after = place_of("after", ask.text("after", 60))
    rows = ask.services.store.alerts(wanted, before=after, limit=limit + 1)
    last = rows[limit - 1] if len(rows) > limit else None
    return _paged(ask, [_alert(row) for row in rows[:limit]], f"{last['at_ns']}.{last['id']}" if last else None)


def alert(ask: Ask) -> Response:
    """Return one alert with what was done about it."""
    row = ask.services.store.alert(ask.id())
    if row is None:
        raise Refused(404, "There is no such alert.")
    acts = [{"at": iso(a["at_ns"]), "user": a["user"], "act": a["act"], "text": a["text"]} for a in row["events"]]
    return as_json(_alert(row) | {"acts": acts})


def scores(ask: Ask) -> Response:
    """Return one agent's scores, newest first."""
    agent = _agent_name(ask)
    if not agent:
        raise Refused(400, "agent is needed: scores are of one agent.")
    limit = ask.number("limit", USUAL_ITEMS, 1, MOST_ITEMS)
    since = ask.number("since_ns", 0)
    until = min(ask.number("until_ns", LARGEST), ask.number("after", LARGEST) - 1)
    found = ask.services.store.scores(agent, since, until, most=limit + 1)[::-1]
    items = [{name: row[name] for name in SCORE_FIELDS} for row in found[:limit]]
    return _paged(ask, items, items[-1]["at_ns"] if len(found) > limit else None)


def labels(ask: Ask) -> Response:
    """Return alerts that people labelled, newest first: what a learner can be taught with."""
    limit = ask.number("limit", USUAL_ITEMS, 1, MOST_ITEMS)
    wanted = AlertFilter(agent=_agent_name(ask), has_label=True)
    rows = ask.services.store.alerts(wanted, before=place_of("after", ask.text("after", 60)), limit=limit + 1)
    last = rows[limit - 1] if len(rows) > limit else None
    items = [
        {
            "alert": row["id"],
            "agent": row["agent"],
            "event": row["event"],
            "run": row["run"],
            "frame": row["start_frame"],
            "start": iso(row["start_ns"]),
            "kind": row["kind"],
            "label": row["label"],
            "useful": row["useful"],
        }
        for row in rows[:limit]
    ]
    return _paged(ask, items, f"{last['at_ns']}.{last['id']}" if last else None)


def metrics(ask: Ask) -> Response:
    """Return the station's figures as Prometheus reads them."""
    services = ask.services
    rows = services.agents.get()
    families: list[tuple[str, str, str, list[tuple[dict[str, str], float]]]] = [
        ("stillwatch_station_info", "gauge", "version", [({"version": __version__}, 1.0)]),
        ("stillwatch_station_readers", "gauge", "pages that listen", [({}, services.feed.readers)]),
    ]
    now_ns = services.wall_ns()
    for name, kind, text, value in (
        ("heard_age_seconds", "gauge", "since the newest message", lambda r: (now_ns - r["heard_ns"]) / 1e9),
        ("frames_total", "counter", "frames of the run", lambda r: r["frames"]),
        ("rate_hertz", "gauge", "frames a second", lambda r: r["rate_hz"]),
        ("rarity", "gauge", "one frame in so many, newest", lambda r: r["rarity"]),
        ("learning", "gauge", "progress to the first model", lambda r: r["learning"]),
        ("messages_lost_total", "counter", "messages that did not arrive", lambda r: r["lost"]),
        ("alerts_withheld_total", "counter", "alerts faster than the station takes", lambda r: r["withheld"]),
        ("alerts_waiting", "gauge", "alerts nobody acknowledged", lambda r: r["waiting"]),
    ):
        found = [({"agent": row["agent"]}, value(row)) for row in rows if value(row) is not None]
        families.append((f"stillwatch_agent_{name}", kind, text, found))
    channels = [({"channel": c["name"]}, c) for c in services.channels()]
    families.append(
        ("stillwatch_notifications_waiting", "gauge", "to be told", [(k, c["waiting"]) for k, c in channels])
    )
    families.append(("stillwatch_notifications_dead", "gauge", "given up", [(k, c["dead"]) for k, c in channels]))
    return PlainTextResponse(_exposition(families), media_type="text/plain; version=0.0.4")


def health(ask: Ask) -> Response:
    """Say in one word whether the station serves and its store answers; the words of the trouble only to users."""
    try:
        ask.services.store.user_count()
    except Exception:  # noqa: BLE001 - whatever the store's fault is, the answer is no
        return as_json({"status": "store does not answer"}, 503)
    return as_json({"status": "ok" if not ask.services.troubles() else "troubled"})


def _exposition(families: list) -> str:
    lines = []
    for name, kind, text, samples in families:
        lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
        for tags, value in samples:
            inner = ",".join(f'{k}="{_escaped(v)}"' for k, v in tags.items())
            lines.append(f"{name}{{{inner}}} {float(value):.10g}" if inner else f"{name} {float(value):.10g}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _paged(ask: Ask, items: list[dict[str, Any]], after: Any) -> Response:
    path = ask.request.url.path
    return as_json({"items": items, "next": None if after is None else path + ask.query(after=after)})


def _agent_name(ask: Ask) -> str:
    name = ask.text("agent", 33)
    if name and not AGENT.fullmatch(name):
        raise Refused(400, "agent is 1 to 32 of a-z 0-9 _ -.")
    return name


def _truth(ask: Ask, name: str) -> bool | None:
    text = ask.text(name, 5)
    if text not in ("", "0", "1", "true", "false"):
        raise Refused(400, f"{name} is 1 or 0.")
    return None if not text else text in ("1", "true")


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _agent(row: Row) -> dict[str, Any]:
    names = (
        "agent", "state", "link", "planes", "learning", "frames", "rate_hz", "source_kind", "source_uri", "run",
        "novelty", "rarity", "frame", "latitude", "longitude", "depth_m", "lost", "withheld", "trouble",
    )  # fmt: skip
    return {name: _finite(row[name]) for name in names} | {"heard": iso(row["heard_ns"]) if row["heard_ns"] else None}


def _alert(row: Row) -> dict[str, Any]:
    names = ("id", "agent", "event", "run", "kind", "phase", "severity", "duration_s", "start_frame", "picture_frame",
             "peak", "rarity", "watched_s", "judged", "visits", "alike", "here",
             "x", "y", "component", "exemplar", "latitude", "longitude", "depth_m", "clock_is_wrong",
             "is_muted", "acknowledged_by", "useful", "label")  # fmt: skip
    out = {name: _finite(row[name]) for name in names}
    return out | {
        "how_rare": how_rare(row),
        "at": iso(row["at_ns"]),
        "start": iso(row["start_ns"]),
        "at_ns": row["at_ns"],
        "boxes": boxes_of(row["boxes"]),
        "picture": f"/alerts/{row['id']}/picture.jpg" if row["has_picture"] else None,
        "acknowledged": iso(row["acknowledged_ns"]) if row["acknowledged_ns"] else None,
        "page": f"/alerts/{row['id']}",
    }
