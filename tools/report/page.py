"""Lays out the report of one run or ground folder: what happened, first; how it was seen, then; how it ran, last.

Called by tools/report/command.py. It must show text from peers only escaped, pictures only if they are JPEGs, and use
nothing outside the page.
"""

import datetime
from collections import Counter
from collections.abc import Callable

from stillwatch.tools.report import charts as c
from stillwatch.tools.report.cards import numbers_of
from stillwatch.tools.report.data import ReportData
from stillwatch.tools.report.events import events_section, gallery_section, visits_section
from stillwatch.tools.report.in_view import in_view_section
from stillwatch.tools.report.messages import message_sections
from stillwatch.tools.report.model import components_section
from stillwatch.tools.report.style import page
from stillwatch.tools.report.timeline import labeller, moment_label, timeline_section
from stillwatch.tools.shared import words
from stillwatch.transport.wire import EventKind
from stillwatch.transport.wire import messages as m

_HELD_BACK = {
    "budget": "over the hour's budget",
    "cooldown": "too soon after another",
    "small": "too small",
    "repeated": "the same as before",
}


def render(data: ReportData) -> str:
    """Return the whole report as one HTML document."""
    label, moment = labeller(data), moment_label(data)
    numbered = numbers_of(data)
    parts = [
        _head(data),
        _facts(data),
        _warnings(data),
        timeline_section(data, label, numbered),
        events_section(data, moment, numbered),
        visits_section(data, label),
        in_view_section(data, label, moment),
        gallery_section(data, moment),
        components_section(data, label),
        message_sections(data, moment),
        _refusals(data),
        _link(data),
        _health(data, label),
        _provenance(data),
    ]
    return page(c.esc(f"Stillwatch report: {title_of(data)}"), "".join(parts))


def _utc(wall_ns: int) -> str:
    return datetime.datetime.fromtimestamp(wall_ns / 1e9, datetime.UTC).strftime("%d %B %Y, %H:%M:%S UTC").lstrip("0")


def _totals(data: ReportData) -> dict:
    """Return the run's counts: its summary, else its newest heartbeat, else what was received."""
    if data.summary:
        return data.summary
    status = data.status
    if status is not None:
        return {
            "frames": status.frames,
            "accepted": status.accepted,
            "refused": status.refused,
            "dropped": status.dropped,
            "alerts": status.alerts,
        }
    return {"frames": data.received.get("score", 0), "alerts": len(data.events)}


def _head(data: ReportData) -> str:
    totals = _totals(data)
    status = data.status
    source = c.esc(status.source_uri) if status and status.source_uri else ""
    name = title_of(data)
    meta = [
        source,
        f"agent {c.esc(data.agent)}" if data.agent and data.agent != name else "",
        c.esc(_utc(data.first_wall_ns)) if data.first_wall_ns else "",
        f"run {c.esc(data.runs[-1])}" if data.runs else "",
        "" if data.summary else "not ended, or its end was not received",
    ]
    spans = "".join(f"<span>{item}</span>" for item in meta if item)
    return (
        f"<header><h1>{c.esc(name)}</h1><p class='meta'>{spans}</p></header><p class='lead'>{_lead(data, totals)}</p>"
    )


def title_of(data: ReportData) -> str:
    """Return what a report is of: the file that was watched, by its name; a camera by its agent's."""
    status = data.status
    if status is not None and status.source_kind in ("file", "images", "folder") and status.source_uri:
        return status.source_uri.partition("?")[0].rstrip("/").rpartition("/")[2]
    return data.agent or data.run.path.name


def _lead(data: ReportData, totals: dict) -> str:
    """Return the two sentences that a person in a hurry needs."""
    frames = int(totals.get("frames", 0))
    watched = words.duration(data.watched_ns / 1e9)
    if not frames:
        return "No frame has been seen yet."
    if not data.events:
        verdict = "Nothing was out of the ordinary."
        if (unsure := unsure_of(data)) and unsure[-1][1] == "unsure":
            verdict = "Nothing was told, but the agent was not sure to the end: it still learnt what is usual here."
        return f"Watched for {watched}, {words.number(frames)} frames. {verdict}"
    counts = Counter(_group(event.first.alert_kind) for event in data.events)
    told = []
    if counts["novel"]:
        told.append(_plural(counts["novel"], "One event looked new", "{} events looked new"))
    if counts["category"]:
        told.append(_plural(counts["category"], "one new kind of thing stayed", "{} new kinds of thing stayed"))
    if counts["unusual"]:
        told.append(_plural(counts["unusual"], "one view was unusual as a whole", "{} views were unusual as a whole"))
    if counts["view"]:
        told.append(_plural(counts["view"], "one alert was about the view", "{} alerts were about the view"))
    text = "; ".join(told)
    worst = max(data.events, key=lambda event: (event.rarity, event.severity))
    rarest = ""
    if worst.how_rare:
        rarest = f" What stood out most began at {moment_label(data)(worst.x_ns)}: {c.esc(worst.how_rare)}."
    return f"Watched for {watched}, {words.number(frames)} frames. <b>{text[0].upper()}{text[1:]}.</b>{rarest}"


def _group(kind: str) -> str:
    groups = {EventKind.NOVEL: "novel", EventKind.NEW_CATEGORY: "category", EventKind.UNUSUAL_VIEW: "unusual"}
    return groups.get(EventKind(kind), "view")


def _plural(n: int, one: str, many: str) -> str:
    return one if n == 1 else many.format(n)


def _facts(data: ReportData) -> str:
    totals = _totals(data)
    frames, accepted = int(totals.get("frames", 0)), totals.get("accepted")
    refused = sum(dict(totals.get("refused") or {}).values())
    dropped = int(totals.get("dropped", 0) or 0)
    status = data.status
    sent = sum(data.received_bytes.values())
    facts = [
        ("Watched", words.duration(data.watched_ns / 1e9), f"{words.number(frames)} frames"),
        ("Alerts", words.number(totals.get("alerts", len(data.events))), _suppressed(status)),
        (
            "Learnt from",
            f"{accepted / frames:.1%}" if accepted is not None and frames else "none yet",
            f"{words.number(refused)} refused",
        ),
        (
            "Dropped",
            words.number(dropped),
            f"{dropped / (frames + dropped):.2%} of frames" if dropped else "no frame lost",
        ),
        ("Messages", c.n_bytes(sent), f"{words.number(sum(data.received.values()))} in this folder"),
        (
            "Memory",
            c.n_bytes(status.rss_bytes) if status and status.rss_bytes else "not told",
            f"{c.n_bytes(status.memory_bytes)} of it for what is learnt" if status and status.memory_bytes else "",
        ),
    ]
    cells = "".join(
        f"<div><dt>{c.esc(name)}</dt><dd>{c.esc(value)}<small>{c.esc(note)}</small></dd></div>"
        for name, value, note in facts
    )
    return f"<dl class='facts'>{cells}</dl>"


def _suppressed(status: m.Status | None) -> str:
    """Say how many events nobody was told of, and for which causes."""
    held = {cause: n for cause, n in status.suppressed.items() if n} if status else {}
    causes = ", ".join(f"{words.number(n)} {_HELD_BACK.get(cause, cause)}" for cause, n in sorted(held.items()))
    return f"held back: {causes}" if held else "none held back"


def _warnings(data: ReportData) -> str:
    """Say what a reader must know before trusting the rest; nothing where all is well."""
    rows = []
    missed = sum(data.missed.values())
    if missed:
        got = sum(data.received.values())
        most = sorted(data.missed.items(), key=lambda item: -item[1])[:4]
        worst = ", ".join(f"{words.number(n)} of {kind}" for kind, n in most)
        rows.append(f"{words.number(missed)} messages ({missed / (missed + got):.1%}) did not arrive: {c.esc(worst)}.")
    if data.gaps:
        longest = max(b - a for a, b in data.gaps) / 1e9
        count = "One stretch" if len(data.gaps) == 1 else f"{len(data.gaps)} stretches"
        rows.append(f"{count} without any message, the longest {words.duration(longest)}.")
    if data.restarts:
        times = "once" if len(data.restarts) == 1 else f"{len(data.restarts)} times"
        rows.append(f"The agent started again {times}.")
    for gap in data.run.gaps[:5]:
        rows.append(
            f"{words.number(gap.get('lost_records', 0))} records were not written: {c.esc(gap.get('reason', ''))}."
        )
    if data.run.damage:
        rows.append(
            f"The log has {len(data.run.damage)} damaged place(s), the first: {c.esc(data.run.damage[0])}. "
            "Everything else was read."
        )
    if data.run.unreadable:
        rows.append(f"{data.run.unreadable} messages are of a version that this program cannot read.")
    rows += _unsure_rows(data)
    if not rows:
        return ""
    return (
        "<div class='warn'>What is missing here, or uncertain<ul>"
        + "".join(f"<li>{row}</li>" for row in rows)
        + "</ul></div>"
    )


def unsure_of(data: ReportData) -> list[tuple[int, str, str]]:
    """Return when the agent said that it was unsure, or sure again: (x, unsure or sure, its words), in order."""
    return [(x, notice.code, notice.text) for x, notice in data.notices if notice.code in ("unsure", "sure")]


def _unsure_rows(data: ReportData) -> list[str]:
    """Say from when to when the agent was not sure, and why; what was told then may be wrong, and things be missing."""
    label, rows = moment_label(data), []
    told = unsure_of(data)
    for place, (x, code, text) in enumerate(told):
        if code == "unsure":
            after = [until for until, later, _ in told[place:] if later == "sure"]
            until = f"until {label(after[0])}" if after else "to the end"
            rows.append(f"From {c.esc(label(x))} {c.esc(until)} the agent was not sure: {c.esc(text)}.")
    return rows


def _refusals(data: ReportData) -> str:
    totals = _totals(data)
    refused = sorted(dict(totals.get("refused") or {}).items(), key=lambda item: -item[1])
    rows = [(reason.replace("_", " "), float(n), words.number(n)) for reason, n in refused]
    dropped = int(totals.get("dropped", 0) or 0)
    if dropped:
        rows.append(("dropped before the pipeline", float(dropped), words.number(dropped)))
    body = c.bars(rows) if rows else "<div class='empty'>Every frame was looked at, and could teach the model.</div>"
    notices = ""
    if data.notices:
        label = moment_label(data)
        lines = "".join(
            f"<tr><td>{c.esc(label(x))}</td><td>{c.esc(n.level)}</td><td>{c.esc(n.code)}</td>"
            f"<td>{c.esc(n.text)}</td></tr>"
            for x, n in data.notices[-200:]
        )
        notices = (
            "<h3>Notices</h3><div class='scroll'><table class='notices'><tr><th>When</th><th>Level</th><th>Code</th>"
            f"<th>Text</th></tr>{lines}</table></div>"
        )
    note = "<p class='note'>Frames that taught the model nothing, by reason.</p>" if rows else ""
    return f"<h2>Drops and refusals</h2>{note}{body}{notices}"


def _link(data: ReportData) -> str:
    status = data.status
    told = (status.tx_bytes if status else {}) or data.received_bytes
    sent = sorted(told.items(), key=lambda item: -item[1])
    rows = [(name, float(n), c.n_bytes(n)) for name, n in sent]
    hours = data.watched_ns / 3.6e12
    rate = f"{c.n_bytes(sum(n for _, n in sent) / hours)} an hour" if sent and hours > 0 else ""
    who = "sent to all that listened" if status and status.tx_bytes else "of messages, as they are in this folder"
    note = f"<p class='note'>{rate}, {who}.</p>" if rate else ""
    kinds = sorted(data.received.items(), key=lambda item: -item[1])
    drops = status.drops if status else {}
    body = "".join(
        f"<tr><td>{c.esc(kind)}</td><td class='n'>{words.number(n)}</td>"
        f"<td class='n'>{words.number(data.missed.get(kind, 0))}</td>"
        f"<td class='n'>{words.number(drops.get(kind, 0))}</td></tr>"
        for kind, n in kinds
    )
    table = (
        "<div class='scroll'><table><tr><th>Message</th><th class='n'>Here</th><th class='n'>Missing</th>"
        f"<th class='n'>Dropped by the sender</th></tr>{body}</table></div>"
    )
    left = f"<h3>Bytes, by link or kind</h3>{c.bars(rows)}"
    return f"<h2>The link</h2>{note}<div class='two'><div>{left}</div><div><h3>Messages</h3>{table}</div></div>"


def _health(data: ReportData, label: c.Label) -> str:
    points = data.statuses.all()
    if not points:
        return ""
    show: list[tuple[str, Callable[[m.Status], float | None], Callable[[float], str], float | None]] = [
        ("Resident memory", lambda s: s.rss_bytes or None, c.n_bytes, 0.0),
        ("Frames a second", lambda s: s.rate_hz, lambda v: f"{v:.1f}", 0.0),
        ("Temperature, °C", lambda s: s.temperature_c, lambda v: f"{v:.0f}", None),
        ("Disk free", lambda s: s.disk_free_bytes, c.n_bytes, 0.0),
        ("Age of the newest frame, s", lambda s: s.frame_age_s, lambda v: f"{v:.2g}", 0.0),
    ]
    out = ""
    for name, value, text, floor in show:
        series = [(x, float(v)) for x, s in points if (v := value(s)) is not None]
        if len(series) > 1 and any(v for _, v in series):
            chart = c.line_chart(series, span_ns=data.span_ns, label=label, show=text, floor=floor)
            out += f"<div><h3>{name}</h3>{chart}</div>"
    return f"<h2>The machine</h2><div class='two'>{out}</div>" if out else ""


def _provenance(data: ReportData) -> str:
    status, run = data.status, data.run
    totals = _totals(data)
    rows = [
        ("Hash of the learned state", totals.get("hash") or (status.model_hash if status else "")),
        ("Hash of the encoder", status.encoder_hash if status else ""),
        ("Hash of the config", run.config_hash or (status.config_hash if status else "")),
        ("Runs", ", ".join(dict.fromkeys(data.runs))),
        ("Folder", run.path.name),
    ]
    versions = run.info.get("versions") or (status.versions if status else {})
    if isinstance(versions, dict) and versions:
        rows.append(("Versions", ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))))
    body = "".join(
        f"<tr><td>{c.esc(name)}</td><td><code>{c.esc(value)}</code></td></tr>" for name, value in rows if value
    )
    text = run.config_text
    config = f"<details><summary>Config</summary><pre>{c.esc(text)}</pre></details>" if text else ""
    return f"<h2>Where this comes from</h2><table class='facts-table'>{body}</table>{config}"
