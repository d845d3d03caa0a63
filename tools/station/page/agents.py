"""Agents on the page: the fleet, one agent now, its strip, what is normal there, its health, its days.

Called by tools/station/page/app.py. A gap is drawn as a gap, and what an agent did not tell is not guessed.
"""

import datetime
import json
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup
from starlette.responses import HTMLResponse, RedirectResponse, Response

from stillwatch.settings import EventsConfig
from stillwatch.tools.report import charts
from stillwatch.tools.shared import words
from stillwatch.tools.station.access import Refused
from stillwatch.tools.station.page import drawing, wording
from stillwatch.tools.station.page.alerts import newest_of, outlines, position_of, shown_alert
from stillwatch.tools.station.page.asking import Ask
from stillwatch.tools.station.page.learnt import in_view, visits
from stillwatch.tools.station.page.wording import cleaned
from stillwatch.tools.station.store import MOST_WAITING

NS = 10**9
DAY_NS = 86_400 * NS
STRIP_POINTS = 600
SPANS = (("600", "10 min"), ("3600", "hour"), ("21600", "6 hours"), ("86400", "day"), ("604800", "week"))
MOST_MOMENTS = 60
SILENT_S = 15.0
Row = Mapping[str, Any]


def fleet(ask: Ask) -> Response:
    """Show every agent."""
    return ask.page("fleet.html", page="fleet", query=ask.query(), **_fleet(ask), **newest_of(ask))


def fleet_part(ask: Ask) -> Response:
    """Return the fleet alone."""
    return ask.page("part_fleet.html", **_fleet(ask))


def _fleet(ask: Ask) -> dict[str, Any]:
    services, q = ask.services, ask.text("q").lower()
    rows = services.agents.get()
    chosen = [row for row in rows if q in row["agent"] or q in row["source_uri"].lower()]
    sparks = services.sparklines.get()
    now_ns = services.wall_ns()
    n_heard = sum(bool(row["heard_ns"]) and not _is_silent(row, now_ns) for row in rows)
    n_waiting = sum(row["waiting"] for row in rows)
    lead = f"{wording.plural(len(rows), 'agent')}, {n_heard} heard now. "
    lead += "At least " if any(row["waiting"] >= MOST_WAITING for row in rows) else ""
    lead += (
        f"{wording.plural(n_waiting, 'alert waits', 'alerts wait')} to be looked at."
        if n_waiting
        else "No alert waits."
    )
    return {
        "agents": [_card(row, sparks.get(row["agent"], []), now_ns) for row in chosen],
        "n_agents": len(rows),
        "q": q,
        "lead": lead if rows else "This station hears nobody yet.",
        "can_add": services.add_agent is not None,
    }


def _is_silent(row: Row, now_ns: int) -> bool:
    if row["link"] in ("folder", "thin") or not row["heard_ns"]:
        return False
    return row["link"] == "silent" or now_ns - row["heard_ns"] > SILENT_S * NS


def _card(row: Row, spark: Sequence[float | None], now_ns: int) -> dict[str, Any]:
    agent = row["agent"]
    return {
        "id": agent,
        "state": _state(row, now_ns),
        "is_quiet": _is_silent(row, now_ns),
        "what": _what(row),
        "link": _link(row),
        "heard_ns": row["heard_ns"],
        "picture": _picture(row),
        "spark": drawing.sparkline(spark, text=f"Novelty of {agent} in the last minutes: {_now(row)}"),
        "now": _now(row),
        "waiting": row["waiting"],
        "trouble": row["trouble"],
    }


def _picture(row: Row) -> str:
    return f"/agents/{row['agent']}/picture.jpg?t={row['picture_ns']}" if row["picture_ns"] else ""


def _state(row: Row, now_ns: int) -> str:
    if _is_silent(row, now_ns):
        return "silent"
    if row["state"] == "live" and row["learning"] < 1.0:
        return "learning"
    return row["state"] or row["link"] or "unknown"


def _what(row: Row) -> str:
    kind = row["source_kind"].replace("_", " ")
    return f"{kind}: {row['source_uri']}" if row["source_uri"] and kind else row["source_uri"] or kind or "not told yet"


def _link(row: Row) -> str:
    names = {"live": "live link", "thin": "thin link", "folder": "run folder", "silent": "live link, silent"}
    text = names.get(row["link"], row["link"] or "no link")
    return f"{text} ({row['link_detail']})" if row["link_detail"] else text


def _now(row: Row) -> str:
    if row["rarity"] is not None and row["rarity"] >= EventsConfig().clear_rarity:
        return "something unusual now"
    if row["rarity"] is not None:
        return "nothing unusual now"
    return f"learning, {row['learning']:.0%}" if row["learning"] < 1.0 and row["score_ns"] else "no score yet"


def _agent(ask: Ask) -> Row:
    row = ask.services.store.agent(ask.agent())
    if row is None:
        raise Refused(404, "There is no such agent.")
    return row


def show(ask: Ask) -> Response:
    """Show one agent."""
    row, span = _agent(ask), _span(ask)
    return ask.page(
        "agent.html",
        page="fleet",
        a=_now_of(ask, row) | _rest_of(ask, row),
        span=span,
        spans=SPANS,
        strip=_strip(ask, row, int(span)),
        has_view=ask.services.control_of(row["agent"]) is not None,
        can_remove=ask.services.remove_agent is not None,
        strip_every=1000 if span == "600" else 5000,
    )


def shot(ask: Ask) -> Response:
    """Return the newest picture of one agent that came by itself."""
    return ask.page("part_agent_shot.html", a=_now_of(ask, _agent(ask)))


def now(ask: Ask) -> Response:
    """Return the state of one agent alone."""
    return ask.page("part_agent_now.html", a=_now_of(ask, _agent(ask)))


def rest(ask: Ask) -> Response:
    """Return what changes seldom of one agent alone."""
    return ask.page("part_agent_rest.html", a=_rest_of(ask, _agent(ask)))


def strip(ask: Ask) -> Response:
    """Return one agent's strip alone."""
    return HTMLResponse(_strip(ask, _agent(ask), int(_span(ask))))


def _span(ask: Ask) -> str:
    span = ask.text("span", 8)
    return span if span in dict(SPANS) else SPANS[0][0]


def _now_of(ask: Ask, row: Row) -> dict[str, Any]:
    agent, now_ns = row["agent"], ask.services.wall_ns()
    state = _state(row, now_ns)
    lead = f"{_now(row)[:1].upper()}{_now(row)[1:]}."
    if state == "silent":
        lead = "Nothing has been heard of it lately."
    elif not row["heard_ns"]:
        lead = "Nothing has been heard of it yet. An agent's first start on a machine takes about half a minute."
    frame = f", frame {row['picture_frame']}" if row["picture_frame"] >= 0 else ""
    troubles = [row["trouble"]] * bool(row["trouble"])
    return {
        "id": agent,
        "state": state,
        "what": _what(row),
        "link": _link(row),
        "heard_ns": row["heard_ns"],
        "lead": lead,
        "troubles": troubles,
        "picture": _picture(row),
        "boxes": outlines(row["picture_boxes"]),
        "picture_alt": f"Newest picture of {agent}{frame}",
        "picture_note": _picture_note(row),
        "picture_ns": row["picture_ns"],
        "facts": _now_facts(row),
    }


def _picture_note(row: Row) -> str:
    if not row["picture_ns"]:
        return "No picture has come yet. Agents send them with alerts and with frames that stand for what is normal."
    frame = f"frame {row['picture_frame']}, " if row["picture_frame"] >= 0 else ""
    of = "of an alert" if row["picture_alert"] >= 0 else "that stands for what is normal"
    return f"The newest picture that came: {frame}{of}"


def _now_facts(row: Row) -> list[tuple[str, str, str]]:
    is_scored = row["novelty"] is not None
    told = _status(row).get("unsure", "")
    unsure = told if isinstance(told, str) and row["learning"] >= 1.0 else ""
    return [
        ("Novelty now", f"{row['novelty']:.1f}" if is_scored else "", "deviations above the usual" * is_scored),
        ("Frames", words.number(row["frames"]), f"{row['rate_hz']:.1f} a second" if row["rate_hz"] else ""),
        ("Alerts to look at", wording.waiting(row["waiting"]), ""),
        ("Learning", f"{row['learning']:.0%}" if row["learning"] < 1.0 else "", ""),
        ("Not sure", cleaned(words.unsure(unsure), 64), "alerts may be missing, or wrong" if unsure else ""),
        ("Did not come", words.number(row["lost"]) if row["lost"] else "", "messages"),
        ("Held back", words.number(row["withheld"]) if row["withheld"] else "", "alerts too fast for the station"),
        ("Where", words.position(position_of(row)), ""),
    ]


def _rest_of(ask: Ask, row: Row) -> dict[str, Any]:
    agent, store = row["agent"], ask.services.store
    return {
        "id": agent,
        "heard_ns": row["heard_ns"],
        "in_view": in_view(store, agent),
        "exemplars": [_exemplar(agent, item) for item in store.exemplars(agent) if item["role"] == "frame"][:60],
        "visits": visits(store, agent),
        "health": _health(row),
        "gaps": [
            {
                "wall_ns": gap["received_ns"],
                "kind": gap["kind"].replace("_", " "),
                "missed": gap["last"] - gap["first"] + 1,
            }
            for gap in store.gaps(agent, limit=20)
        ],
        "notices": [
            {"code": n["code"].replace("_", " "), "text": n["text"], "count": n["count"], "wall_ns": n["at_ns"]}
            for n in store.notices(agent, limit=20)
        ],
    }


def _exemplar(agent: str, item: Row) -> dict[str, Any]:
    facts = [f"stands for {item['share']:.0%} of frames"] * (item["share"] > 0)
    facts += [f"frame {item['frame']}"] * (item["frame"] >= 0)
    text = ", ".join(facts)
    return {
        "picture": f"/agents/{agent}/exemplars/{item['exemplar']}.jpg" if item["has_picture"] else "",
        "alt": f"Exemplar {item['exemplar']} of {agent}, {text}",
        "share": item["share"],
        "text": f"{item['label']}: {text}" if item["label"] else text,
    }


def _status(row: Row) -> dict[str, Any]:
    """Return the newest status; empty where it cannot be read."""
    try:
        status = json.loads(row["status"] or "{}")
    except ValueError:
        status = {}
    return status if isinstance(status, dict) else {}


def _health(row: Row) -> list[tuple[str, str]]:
    """Return what the newest status says, in words; only what it says."""
    status = _status(row)
    rows = [("State", f"{row['state']} {row['state_detail']}".strip())]
    for name, key, text in (
        ("Frames a second", "rate_hz", lambda v: f"{v:.1f}"),
        ("Age of the newest frame", "frame_age_s", words.duration),
        ("Temperature", "temperature_c", lambda v: f"{v:.0f} °C"),
        ("Memory", "rss_bytes", charts.n_bytes),
        ("CPU", "cpu_seconds", lambda v: f"{words.duration(v)} used"),
        ("Disk free", "disk_free_bytes", charts.n_bytes),
        ("Lost before the pipeline", "dropped", lambda v: f"{words.number(v)} frames" if v else ""),
    ):
        value = status.get(key)
        if isinstance(value, int | float):
            rows.append((name, text(value)))
    for name, key in (("Refused frames", "refused"), ("Alerts not raised", "suppressed"), ("Versions", "versions")):
        value = status.get(key)
        if isinstance(value, dict) and value:
            rows.append((name, ", ".join(f"{k.replace('_', ' ')} {v}" for k, v in sorted(value.items()))))
    if row["clock_off_s"] is not None and abs(row["clock_off_s"]) > 1.0:
        way = "ahead of" if row["clock_off_s"] > 0 else "behind"
        rows.append(("Clock", f"{words.duration(abs(row['clock_off_s']))} {way} the station's"))
    rows.append(("Run", row["run"]))
    return [(name, cleaned(value, 300)) for name, value in rows if value]


def _strip(ask: Ask, row: Row, seconds: int) -> Markup:
    end_ns = ask.services.wall_ns()
    shown = _strip_of(ask, row["agent"], end_ns - seconds * NS, end_ns)
    text = f"Novelty of {row['agent']} in the last {words.duration(seconds)}"
    return drawing.strip(shown, label=_labeller(seconds), text=text) + drawing.key()


def _strip_of(ask: Ask, agent: str, start_ns: int, end_ns: int) -> drawing.Strip:
    """Return the stretch of an agent's scores with its events."""
    store = ask.services.store
    bins = store.score_strip(agent, start_ns, end_ns, STRIP_POINTS)
    width = (end_ns - start_ns) // STRIP_POINTS
    points: list[tuple[int, float | None]] = []
    stretches: list[drawing.Stretch] = []
    limit = max(3 * width, 5 * NS)
    last_end = None
    for item in bins:
        if last_end is not None and item["at_ns"] - last_end > limit:
            points.append((last_end, None))
            stretches.append(drawing.Stretch(last_end, item["at_ns"], "nothing", "nothing received"))
        if item["rarity"] is not None:
            points.append(((item["at_ns"] + item["end_ns"]) // 2, item["rarity"]))
        elif item["n_learning"] or item["n_refused"]:
            points.append((item["at_ns"], None))
            name = "learning" if item["n_learning"] >= item["n_refused"] else "refused"
            _extend(stretches, name, item["at_ns"], item["end_ns"], limit)
        last_end = item["end_ns"]
    alerts = store.alerts_within(agent, start_ns, end_ns, most=200)
    marks = []
    for row in alerts:
        shown = shown_alert(row)
        stop = shown["start_ns"] + int((row["duration_s"] or 0.0) * NS)
        stretches.append(drawing.Stretch(shown["start_ns"], stop, "span", shown["title"]))
        title = f"{shown['title']} at {wording.utc(shown['start_ns'])}"
        marks.append(drawing.Mark(shown["start_ns"], title, shown["address"]))
    return drawing.Strip(start_ns, end_ns, points, stretches, marks[:80])


def _extend(stretches: list[drawing.Stretch], name: str, start_ns: int, end_ns: int, limit: int) -> None:
    """Add a band, or make the one before longer."""
    if stretches and stretches[-1].name == name and start_ns - stretches[-1].end_ns <= limit:
        start_ns = stretches.pop().start_ns
    title = "learning, no score" if name == "learning" else drawing.REFUSED_WORDS
    stretches.append(drawing.Stretch(start_ns, end_ns, name, title))


def _labeller(seconds: int):
    form = "%d %b" if seconds > 2 * 86_400 else "%H:%M" if seconds > 1200 else "%H:%M:%S"

    def label(at_ns: int) -> str:
        moment = wording.moment_of(at_ns)
        return moment.strftime(form) if moment else ""

    return label


def day(ask: Ask) -> Response:
    """Show one day of an agent as a strip and its moments, to be played."""
    row = _agent(ask)
    today = datetime.datetime.fromtimestamp(ask.services.wall_ns() / NS, datetime.UTC).date()
    date = _date(ask.text("date", 10), today)
    start_ns = int(datetime.datetime(date.year, date.month, date.day, tzinfo=datetime.UTC).timestamp()) * NS
    end_ns = start_ns + DAY_NS
    store, agent = ask.services.store, row["agent"]
    alerts = store.alerts_within(agent, start_ns, end_ns - 1, most=1000)
    rarest = sorted(alerts, key=lambda a: (-(a["severity"] or 0.0), -(a["rarity"] or 0.0)))[:MOST_MOMENTS]
    moments = sorted((_moment(alert, start_ns) for alert in rarest), key=lambda m: m["wall_ns"])
    shown = _strip_of(ask, agent, start_ns, end_ns)
    text = f"Novelty of {agent} on {date.isoformat()}"
    one = datetime.timedelta(days=1)
    return ask.page(
        "day.html",
        page="fleet",
        agent=agent,
        day=date.isoformat(),
        day_words=f"{date.day} {date.strftime('%B %Y')}",
        before=(date - one).isoformat() if date > datetime.date(1970, 1, 2) else date.isoformat(),
        after=(date + one).isoformat() if date < today else "",
        lead=f"{wording.plural(len(alerts), 'alert')} on this day." if len(alerts) < 1000 else "1,000 alerts or more.",
        strip=drawing.strip(shown, label=_labeller(86_400), text=text, has_cursor=True) + drawing.key(),
        moments=moments,
        n_more=len(alerts) - len(rarest),
        from_ns=start_ns,
        to_ns=end_ns,
    )


def _date(text: str, today: datetime.date) -> datetime.date:
    if not text:
        return today
    try:
        date = datetime.date.fromisoformat(text)
    except ValueError:
        raise Refused(400, "A day is written as 2026-11-28.") from None
    if not 1970 <= date.year <= 2200:
        raise Refused(400, "Days from 1970 to 2200 are known here.")
    return date


def _moment(alert: Row, start_ns: int) -> dict[str, Any]:
    shown = shown_alert(alert)
    x = 100 * (shown["start_ns"] - start_ns) / DAY_NS
    return shown | {"x": f"{min(max(x, 0.0), 100.0):.2f}", "wall_ns": shown["start_ns"]}


def remove(ask: Ask) -> Response:
    """Let the station hear an agent no more, and delete what it keeps of it; its name is typed, so that none slips."""
    agent = _agent(ask)["agent"]
    if ask.field("name", 32) != agent:
        raise Refused(400, f"Type {agent} to remove it: nothing was removed.")
    if ask.services.remove_agent is None:
        raise Refused(409, "This station hears nobody: there is nothing to remove.")
    ask.services.remove_agent(agent)
    ask.record("remove agent", agent)
    ask.services.tell("agent", agent)
    return RedirectResponse("/", status_code=303)


def add(ask: Ask) -> Response:
    """Let the station hear another agent."""
    endpoint, server = ask.field("endpoint", 200), ask.field("server", 200)
    if not endpoint.startswith(("tcp://", "ipc://")):
        raise Refused(400, "Write where an agent publishes, as tcp://HOST:PORT or ipc://PATH.")
    if ask.services.add_agent is None:
        raise Refused(409, "This station takes its agents from its settings alone: write it there.")
    ask.services.add_agent(endpoint, server)
    ask.record("add agent", endpoint, server)
    return RedirectResponse("/", status_code=303)
