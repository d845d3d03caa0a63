"""Lays out the report of one run or ground folder: what happened, first; how it was seen, then; how it ran, last.

Called by tools/report.py. It must show text from peers only escaped, pictures only if they are JPEGs, and use
nothing outside the page.
"""

import base64
import datetime
import json
import math
import tomllib
from collections.abc import Callable, Sequence

import numpy as np

from stillwatch.agent.config import EventsConfig
from stillwatch.tools import report_charts as c
from stillwatch.tools.report_data import Event, ReportData
from stillwatch.tools.report_style import page
from stillwatch.transport import messages as m

MAX_CARDS = 60
MAX_FLAGS = 40
LEARNER_NAMES = {"patches": "Patches: what small parts of the view look like",
                 "scenes": "Scenes: what the whole view looks like"}  # fmt: skip


def render(data: ReportData) -> str:
    """Return the whole report as one HTML document."""
    label = _labeller(data)
    numbered = {event.key: i + 1 for i, event in enumerate(data.events)}
    parts = [
        _head(data), _facts(data), _warnings(data), _timeline(data, label, numbered), _events(data, label, numbered),
        _gallery(data, label), _components(data, label), _refusals(data), _link(data), _health(data, label),
        _provenance(data),
    ]  # fmt: skip
    return page(c.esc(f"Stillwatch report: {data.agent or data.run.path.name}"), "".join(parts))


def _labeller(data: ReportData) -> c.Label:
    """Return the function that names a time: UTC clock for live sources, time into the recording for files."""
    if not data.is_live:
        return _elapsed

    def clock(x_ns: int) -> str:
        moment = datetime.datetime.fromtimestamp((data.first_wall_ns + x_ns) / 1e9, datetime.UTC)
        if data.span_ns > 36 * 3600 * 10**9:
            return moment.strftime("%d %b %H:%M")
        return moment.strftime("%H:%M:%S" if data.span_ns < 600 * 10**9 else "%H:%M")

    return clock


def _elapsed(x_ns: int) -> str:
    seconds = x_ns / 1e9
    if seconds >= 3600:
        return f"{int(seconds // 3600)}:{int(seconds // 60) % 60:02d}:{int(seconds) % 60:02d}"
    tenth = f".{int(seconds * 10) % 10}" if seconds % 1 > 0.05 and seconds < 60 else ""
    return f"{int(seconds // 60)}:{int(seconds) % 60:02d}{tenth}"


def _utc(wall_ns: int) -> str:
    return datetime.datetime.fromtimestamp(wall_ns / 1e9, datetime.UTC).strftime("%d %B %Y, %H:%M:%S UTC").lstrip("0")


# -- the head ------------------------------------------------------------------------------------------------------


def _totals(data: ReportData) -> dict:
    """Return the run's counts: its summary, else its newest heartbeat, else what was received."""
    if data.summary:
        return data.summary
    status = data.status
    if status is not None:
        return {"frames": status.frames, "accepted": status.accepted, "refused": status.refused,
                "dropped": status.dropped, "alerts": status.alerts}  # fmt: skip
    return {"frames": data.received.get("score", 0), "alerts": len(data.events)}


def _head(data: ReportData) -> str:
    totals = _totals(data)
    status = data.status
    source = c.esc(status.source_uri or status.source_kind) if status and status.source_uri else ""
    meta = [source, c.esc(_utc(data.first_wall_ns)) if data.first_wall_ns else "",
            f"run {c.esc(data.runs[-1])}" if data.runs else "",
            "" if data.summary else "not ended, or its end was not received"]  # fmt: skip
    spans = "".join(f"<span>{item}</span>" for item in meta if item)
    return (f"<header><h1>{c.esc(data.agent or data.run.path.name)}</h1><p class='meta'>{spans}</p></header>"
            f"<p class='lead'>{_lead(data, totals)}</p>")  # fmt: skip


def _lead(data: ReportData, totals: dict) -> str:
    """Return the two sentences that a person in a hurry needs."""
    frames = int(totals.get("frames", 0))
    watched = c.duration(data.span_ns / 1e9)
    if not frames:
        return "No frame has been seen yet."
    novel = [event for event in data.events if event.first.alert_kind in ("novel", "novelty")]
    text = f"Watched for {watched}, {c.number(frames)} frames. "
    if not data.events:
        return text + "Nothing was out of the ordinary."
    worst = max(data.events, key=lambda event: (event.rarity, event.severity))
    count = "One event" if len(novel) == 1 else f"{len(novel)} events" if novel else "No event"
    text += f"<b>{count}</b> looked new"
    others = len(data.events) - len(novel)
    if others:
        text += f", and {others} other alert{'s' if others > 1 else ''} concerned the view itself"
    text += "."
    if worst.rarity > 1:
        text += f" The rarest moment, at {_labeller(data)(worst.x_ns)}, was one frame in {c.number(worst.rarity)}."
    return text


def _facts(data: ReportData) -> str:
    totals = _totals(data)
    frames, accepted = int(totals.get("frames", 0)), totals.get("accepted")
    refused = sum(dict(totals.get("refused") or {}).values())
    dropped = int(totals.get("dropped", 0) or 0)
    status = data.status
    sent = sum(data.received_bytes.values()) or (sum(status.tx_bytes.values()) if status else 0)
    facts = [
        ("Watched", c.duration(data.span_ns / 1e9), f"{c.number(frames)} frames"),
        ("Alerts", c.number(totals.get("alerts", len(data.events))), _suppressed(status)),
        ("Taught the model", f"{accepted / frames:.1%}" if accepted is not None and frames else "none yet",
         f"{c.number(refused)} refused"),
        ("Dropped", c.number(dropped), f"{dropped / (frames + dropped):.2%} of frames" if dropped else "no frame lost"),
        ("Messages", c.n_bytes(sent), f"{c.number(sum(data.received.values()))} in this folder"),
        ("Memory", c.n_bytes(status.rss_bytes) if status and status.rss_bytes else "not told",
         f"{c.n_bytes(status.memory_bytes)} planned" if status and status.memory_bytes else ""),
    ]  # fmt: skip
    cells = "".join(f"<div><dt>{c.esc(name)}</dt><dd>{c.esc(value)}<small>{c.esc(note)}</small></dd></div>"
                    for name, value, note in facts)  # fmt: skip
    return f"<dl class='facts'>{cells}</dl>"


def _suppressed(status: m.Status | None) -> str:
    held = sum(status.suppressed.values()) if status else 0
    return f"{c.number(held)} held back" if held else "none held back"


def _warnings(data: ReportData) -> str:
    """Say what a reader must know before trusting the rest; nothing where all is well."""
    rows = []
    missed = sum(data.missed.values())
    if missed:
        got = sum(data.received.values())
        worst = ", ".join(f"{c.number(n)} of {kind}" for kind, n in sorted(data.missed.items(), key=lambda i: -i[1])[:4])
        rows.append(f"{c.number(missed)} messages ({missed / (missed + got):.1%}) did not arrive: {c.esc(worst)}.")
    if data.gaps:
        longest = max(b - a for a, b in data.gaps) / 1e9
        count = "One stretch" if len(data.gaps) == 1 else f"{len(data.gaps)} stretches"
        rows.append(f"{count} without any message, the longest {c.duration(longest)}.")
    if data.restarts:
        rows.append("The agent started again " + ("once." if len(data.restarts) == 1 else f"{len(data.restarts)} times."))
    for gap in data.run.gaps[:5]:
        rows.append(f"{c.number(gap.get('lost_records', 0))} records were not written: {c.esc(gap.get('reason', ''))}.")
    if data.run.damage:
        rows.append(f"The log has {len(data.run.damage)} damaged place(s), the first: {c.esc(data.run.damage[0])}. "
                    "Everything else was read.")  # fmt: skip
    if data.run.unreadable:
        rows.append(f"{data.run.unreadable} messages are of a version that this program cannot read.")
    if not rows:
        return ""
    return "<div class='warn'>What is missing here<ul>" + "".join(f"<li>{row}</li>" for row in rows) + "</ul></div>"


# -- the novelty curve ---------------------------------------------------------------------------------------------


def _thresholds(data: ReportData) -> tuple[float, float]:
    """Return the rarities at which alerts are raised and cleared, from the run's config or the defaults."""
    defaults = EventsConfig()
    try:
        events = tomllib.loads(data.run.config_text).get("events", {})
        return float(events.get("raise_rarity", defaults.raise_rarity)), float(
            events.get("clear_rarity", defaults.clear_rarity)
        )
    except (tomllib.TOMLDecodeError, TypeError, ValueError, AttributeError):
        return defaults.raise_rarity, defaults.clear_rarity


def _timeline(data: ReportData, label: c.Label, numbered: dict) -> str:
    bins = data.curve.items()
    if not any(item.count for _, item in bins):
        why = "The model was still learning what is normal." if bins else "No score was received."
        return f"<h2>Novelty over time</h2><div class='empty'>No frame was scored. {why}</div>"
    rarity = _rarity_plot(data, label, numbered, bins)
    score = _score_plot(data, label, numbered, bins)
    switch = ("<div class='switch'><button aria-pressed='true' data-show='by-rarity'>Rarity</button>"
              "<button aria-pressed='false' data-show='by-score'>Raw score</button></div>")  # fmt: skip
    key = ("<div class='key'><span><i style='background:var(--novel-soft)'></i>event</span>"
           "<span><i style='background:var(--faint);opacity:.5'></i>learning, no score</span>"
           "<span><i style='background:repeating-linear-gradient(135deg,var(--faint) 0 2px,transparent 2px 5px)'></i>"
           "nothing received</span><span><i style='border-top:1px dashed var(--novel);height:4px'></i>"
           "alerts are raised above</span></div>")  # fmt: skip
    ribbons = (f"<div class='ribbons'><b>view</b>{c.ribbon(data.gate, data.span_ns, 'good')}"
               f"<b>source</b>{c.ribbon([s for s in data.source], data.span_ns, '')}</div>")  # fmt: skip
    return (
        "<h2>Novelty over time</h2><p class='note'>How rare each moment was, against what this camera had seen before. "
        f"Numbers lead to the events below.</p>{switch}<div id='by-rarity'>{rarity}</div>"
        f"<div id='by-score' hidden>{score}</div>{key}{ribbons}"
    )


def _rarity_plot(data: ReportData, label: c.Label, numbered: dict, bins: list) -> str:
    height = 240
    raised, cleared = _thresholds(data)
    top = max(max((item.rarity for _, item in bins), default=1.0), raised) * 1.6
    decades = math.log10(top)

    def y_of(value: float) -> float:
        return height * (1 - math.log10(max(value, 1.0)) / decades)

    points = [(x, y_of(item.rarity)) for x, item in bins if item.count]
    ticks = [(y_of(10**k), "every frame" if k == 0 else f"1 in {c.number(10**k)}") for k in range(int(decades) + 1)]
    ticks = [(y, text if "every" not in text else "all") for y, text in ticks]
    lines = (f"<line class='threshold' x1='0' x2='1000' y1='{y_of(raised):.1f}' y2='{y_of(raised):.1f}'/>"
             f"<line class='threshold low' x1='0' x2='1000' y1='{y_of(cleared):.1f}' y2='{y_of(cleared):.1f}'/>")  # fmt: skip
    return _curve(data, label, numbered, bins, points, ticks, height, lines)


def _score_plot(data: ReportData, label: c.Label, numbered: dict, bins: list) -> str:
    height = 240
    scored = [(x, item) for x, item in bins if item.count]
    low = min(item.total / item.count for _, item in scored)
    high = max(item.high for _, item in scored)
    scale = (high - low) or 1.0
    points = [(x, 6 + (height - 6) * (1 - (item.high - low) / scale)) for x, item in scored]
    ticks = [(6 + (height - 6) * (1 - share), f"{low + share * scale:.3g}") for share in (0.0, 0.25, 0.5, 0.75, 1.0)]
    return _curve(data, label, numbered, bins, points, ticks, height, "")


def _curve(
    data: ReportData, label: c.Label, numbered: dict, bins: list, points: list, ticks: Sequence[tuple[float, str]],
    height: int, lines: str,
) -> str:  # fmt: skip
    span = max(data.span_ns, 1)
    spacing = max(4 * _typical_step(bins), 3 * data.curve.width_ns)
    placed = [(1000 * x / span, y) for x, y in c.with_breaks(points, spacing)]
    shades = _shades(data, bins, span, height, spacing)
    spans = "".join(
        f"<rect class='eventspan' x='{1000 * event.x_ns / span:.1f}' y='0' height='{height}' "
        f"width='{max(1000 * event.duration_s * 1e9 / span, 1.5):.1f}'/>" for event in data.events
    )  # fmt: skip
    restarts = "".join(f"<line class='grid' style='stroke:var(--ink)' x1='{1000 * x / span:.1f}' y1='0' y2='{height}' "
                       f"x2='{1000 * x / span:.1f}'/>" for x in data.restarts)  # fmt: skip
    body = (f"{shades}{spans}{restarts}<path class='fill' d='{c.area(placed, height)}'/>"
            f"<path class='line' d='{c.path(placed)}'/>{lines}")  # fmt: skip
    tips = {"x": [round(1000 * x / span, 1) for x, item in bins if item.seen],
            "t": [_tip(label, x, item) for x, item in bins if item.seen]}  # fmt: skip
    script = f"<script type='application/json'>{json.dumps(tips).replace('<', '&lt;')}</script>"
    extra = _flags(data, label, numbered, span) + "<div class='cursor'></div><div class='tip'></div>"
    plot = c.plot(body, height=height, span_ns=span, label=label, y_ticks=ticks, extra=extra)
    return f"<div class='timeline'>{plot}{script}</div>"


def _typical_step(bins: list) -> int:
    steps = sorted(b - a for (a, _), (b, _) in zip(bins, bins[1:], strict=False))
    return steps[len(steps) // 2] if steps else 0


def _shades(data: ReportData, bins: list, span: int, height: int, spacing: int) -> str:
    """Draw stretches that were learning, and stretches from which nothing came."""
    out, start = "", None
    edges = [*bins, (span + 1, None)]
    for (x, item), (after, following) in zip(edges, edges[1:], strict=False):
        learning = item is not None and item.learning and not item.count
        if learning and start is None:
            start = x - data.curve.width_ns // 2
        goes_on = following is not None and following.learning and not following.count
        if start is not None and not goes_on:
            out += _shade("shade", start, x + data.curve.width_ns // 2, span, height)
            start = None
        if following is not None and after - x > spacing:
            out += _shade("hatch", x, after, span, height)
    return out


def _shade(name: str, start: int, end: int, span: int, height: int) -> str:
    x = max(1000 * start / span, 0)
    return f"<rect class='{name}' x='{x:.1f}' y='0' width='{1000 * end / span - x:.1f}' height='{height}'/>"


def _tip(label: c.Label, x: int, item) -> list[str]:
    lines = [label(x)]
    if item.count:
        lines.append(f"score {item.high:.2f}" + (f", one frame in {c.number(item.rarity)}" if item.rarity > 1 else ""))
    elif item.learning:
        lines.append("learning")
    if item.refused:
        lines.append(f"{item.refused} of {item.seen} frames refused")
    return lines


def _flags(data: ReportData, label: c.Label, numbered: dict, span: int) -> str:
    """Number the events above the curve; where they would touch, the rarer one keeps its number."""
    places: list[float] = []
    out = ""
    for event in sorted(data.events, key=lambda event: -event.rarity):
        at = 100 * event.x_ns / span
        crowded = any(abs(at - other) < 2.2 for other in places) or len(places) >= MAX_FLAGS
        if crowded and any(abs(at - other) < 0.4 for other in places):
            continue
        places.append(at)
        text = "" if crowded else str(numbered[event.key])
        out += (f"<a class='flag{' dot' if crowded else ''}' href='#event-{numbered[event.key]}' style='left:{at:.2f}%' "
                f"title='Event {numbered[event.key]} at {c.esc(label(event.x_ns))}'>{text}</a>")  # fmt: skip
    return out


# -- events and exemplars ------------------------------------------------------------------------------------------


def _events(data: ReportData, label: c.Label, numbered: dict) -> str:
    if not data.events:
        scored = sum(item.count for _, item in data.curve.items())
        text = (f"No alert was raised. All {c.number(scored)} scored frames stayed within what this camera had learnt."
                if scored else "No alert was raised.")  # fmt: skip
        return f"<h2>Events</h2><div class='empty'>{text}</div>"
    ranked = sorted(data.events, key=lambda event: (-event.severity, -event.rarity))
    shown = sorted(ranked[:MAX_CARDS], key=lambda event: event.x_ns)
    cards = "".join(_card(event, numbered[event.key], label) for event in shown)
    rest = sorted(ranked[MAX_CARDS:], key=lambda event: event.x_ns)
    more = ""
    if rest:
        rows = "".join(
            f"<tr id='event-{numbered[e.key]}'><td class='n'>{numbered[e.key]}</td><td>{c.esc(label(e.x_ns))}</td>"
            f"<td>{c.esc(_kind(e))}</td><td>{c.duration(e.duration_s)}</td><td class='n'>{c.number(e.rarity)}</td></tr>"
            for e in rest
        )
        more = (f"<details><summary>{len(rest)} lesser events</summary><div class='scroll'><table><tr><th class='n'>No."
                "</th><th>Start</th><th>Kind</th><th>Lasted</th><th class='n'>One frame in</th></tr>"
                f"{rows}</table></div></details>")  # fmt: skip
    if data.events_left_out:
        more += f"<p class='note'>{c.number(data.events_left_out)} further events are not listed.</p>"
    return ("<h2>Events</h2><p class='note'>The outlined patches are those that looked new. Point at a picture to see "
            f"it without outlines.</p><div class='events'>{cards}</div>{more}")  # fmt: skip


def _kind(event: Event) -> str:
    kind = event.first.alert_kind
    return {"novel": "Novelty", "novelty": "Novelty"}.get(kind, kind.replace("_", " ").capitalize())


def _card(event: Event, n: int, label: c.Label) -> str:
    alert = event.best or event.last
    history = event.first.history if event.first.history is not None else event.last.history
    values = [] if history is None else [float(v) for v in history]
    facts = [f"lasted {c.duration(event.duration_s)}" if event.ended else "no end received"]
    if event.rarity > 1:
        facts.append(f"one frame in {c.number(event.rarity)}")
    if alert.component >= 0:
        facts.append(f"nearest component {alert.component}")
    nav = _position(event.first.nav)
    return (
        f"<article class='event' id='event-{n}'><div class='picture'>{_picture(alert.thumbnail, alert.boxes)}</div>"
        f"<div class='severity' title='severity {event.severity:.2f}'><i style='width:{100 * event.severity:.0f}%'></i>"
        f"</div><div class='text'><h4>{n}. {c.esc(_kind(event))}<span>{c.esc(label(event.x_ns))}</span></h4>"
        f"<p>{c.esc(', '.join(facts))}</p>{f'<p>{c.esc(nav)}</p>' if nav else ''}{c.spark(values)}</div></article>"
    )


def _position(nav: m.Position | None) -> str:
    if nav is None:
        return ""
    parts = []
    if nav.latitude is not None and nav.longitude is not None:
        parts.append(f"{nav.latitude:.5f}, {nav.longitude:.5f}")
    for value, text in ((nav.depth_m, "m deep"), (nav.altitude_m, "m above ground")):
        if value is not None:
            parts.append(f"{value:.1f} {text}")
    return ", ".join(parts)


def _picture(jpeg: bytes, boxes: np.ndarray | None = None) -> str:
    if jpeg[:2] != b"\xff\xd8":
        return "<span class='nopicture'>no picture received</span>"
    outlines = ""
    for x0, y0, x1, y1 in [] if boxes is None else np.clip(boxes, 0, 1).tolist():
        place = f"x='{x0:.4f}' y='{y0:.4f}' width='{max(x1 - x0, 0):.4f}' height='{max(y1 - y0, 0):.4f}'"
        outlines += f"<g><rect {place}/><rect {place}/></g>"
    layer = f"<svg viewBox='0 0 1 1' preserveAspectRatio='none' aria-hidden='true'>{outlines}</svg>" if outlines else ""
    return f"<img loading='lazy' alt='' src='data:image/jpeg;base64,{base64.b64encode(jpeg).decode()}'>{layer}"


def _gallery(data: ReportData, label: c.Label) -> str:
    title = "<h2>What is normal here</h2>"
    if not data.exemplars:
        return f"{title}<div class='empty'>No exemplar was received: none had been chosen yet, or the link was too thin.</div>"
    ranked = sorted(data.exemplars.values(), key=lambda item: (-item.share, item.id))
    figures = ""
    for item in ranked:
        share = f"<div class='share'><i style='width:{100 * item.share:.0f}%'></i></div>" if item.share else ""
        note = f"{item.share:.0%} of frames" if item.share else f"frame {item.exemplar_frame}"
        named = f"<b>{c.esc(item.label)}</b><br>" if item.label else ""
        figures += (f"<figure><div class='picture'>{_picture(item.thumbnail)}</div>{share}<figcaption>{named}{note}, "
                    f"chosen {c.esc(label(data.exemplar_x[item.id]))}</figcaption></figure>")  # fmt: skip
    return (f"{title}<p class='note'>Frames that the agent chose to stand for what it has seen.</p>"
            f"<div class='gallery'>{figures}</div>")  # fmt: skip


# -- the model -----------------------------------------------------------------------------------------------------


def _components(data: ReportData, label: c.Label) -> str:
    if not data.models:
        return "<h2>What was learnt</h2><div class='empty'>No model was received: the first epoch had not ended.</div>"
    out = "<h2>What was learnt</h2><p class='note'>The share of each mixture component over time. A colour is one "
    out += "component, from its birth to its end.</p>"
    for which in ("patches", "scenes"):
        if which in data.models:
            out += _mixture(data, which, label)
    return out


def _mixture(data: ReportData, which: str, label: c.Label) -> str:
    points = data.models[which].all()
    model = data.last_model[which]
    total = float(model.counts.sum()) or 1.0
    rows = ""
    for identity, count in zip(model.ids.tolist()[:12], model.counts.tolist()[:12], strict=True):
        picture = _component_picture(data, identity) if which == "scenes" else ""
        rows += (f"<tr><td><i class='swatch' style='background:{c.component_colour(identity)}'></i>{identity}</td>"
                 f"<td class='n'>{count / total:.1%}</td><td class='n'>{c.number(count)}</td>{picture}</tr>")  # fmt: skip
    facts = [f"{model.n_components} components", f"{model.clumps} clumps", f"{model.model_epoch} epochs"]
    if model.free_energy is not None:
        facts.append(f"free energy {model.free_energy:.2f} nats a sample")
    energy = [(x, e) for x, _, _, _, e, _, _ in points if e is not None]
    curve = c.line_chart(energy, span_ns=data.span_ns, label=label, show=lambda v: f"{v:.1f}", floor=None)
    stacked = c.stacked_chart([p[:3] for p in points], span_ns=data.span_ns, label=label)
    head = "<tr><th>Component</th><th class='n'>Share</th><th class='n'>Samples</th></tr>"
    inner = f"<h3>Free energy, nats a sample</h3>{curve}" if len(energy) > 1 else ""
    return (f"<h3>{LEARNER_NAMES[which]}</h3><p class='note'>{c.esc(', '.join(facts))}</p>{stacked}"
            f"<details><summary>Largest components and free energy</summary><div class='two'><div class='scroll'><table>"
            f"{head}{rows}</table></div><div>{inner}</div></div></details>")  # fmt: skip


def _component_picture(data: ReportData, identity: int) -> str:
    return "<td>" + ", ".join(c.esc(e.label) for e in data.exemplars.values() if e.component == identity and e.label) + "</td>"


# -- how it ran ----------------------------------------------------------------------------------------------------


def _refusals(data: ReportData) -> str:
    totals = _totals(data)
    refused = sorted(dict(totals.get("refused") or {}).items(), key=lambda item: -item[1])
    rows = [(reason.replace("_", " "), float(n), c.number(n)) for reason, n in refused]
    dropped = int(totals.get("dropped", 0) or 0)
    if dropped:
        rows.append(("dropped before the pipeline", float(dropped), c.number(dropped)))
    body = c.bars(rows) if rows else "<div class='empty'>Every frame was looked at, and every one could teach the model.</div>"
    notices = ""
    if data.notices:
        label = _labeller(data)
        lines = "".join(f"<tr><td>{c.esc(label(x))}</td><td>{c.esc(n.level)}</td><td>{c.esc(n.code)}</td>"
                        f"<td>{c.esc(n.text)}</td></tr>" for x, n in data.notices[-200:])  # fmt: skip
        notices = (f"<h3>Notices</h3><div class='scroll'><table><tr><th>When</th><th>Level</th><th>Code</th><th>Text</th>"
                   f"</tr>{lines}</table></div>")  # fmt: skip
    return f"<h2>Drops and refusals</h2><p class='note'>Frames that taught the model nothing, by reason.</p>{body}{notices}"


def _link(data: ReportData) -> str:
    status = data.status
    sent = sorted((status.tx_bytes if status else {}).items(), key=lambda item: -item[1])
    rows = [(name, float(n), c.n_bytes(n)) for name, n in sent]
    hours = data.span_ns / 3.6e12
    note = f"{c.n_bytes(sum(n for _, n in sent) / hours)} an hour." if sent and hours > 0 else ""
    kinds = sorted(data.received.items(), key=lambda item: -item[1])
    body = "".join(
        f"<tr><td>{c.esc(kind)}</td><td class='n'>{c.number(n)}</td><td class='n'>{c.number(data.missed.get(kind, 0))}</td>"
        f"<td class='n'>{c.number((status.drops if status else {}).get(kind, 0))}</td></tr>" for kind, n in kinds
    )  # fmt: skip
    table = ("<div class='scroll'><table><tr><th>Message</th><th class='n'>Here</th><th class='n'>Missing</th>"
             f"<th class='n'>Dropped by the sender</th></tr>{body}</table></div>")  # fmt: skip
    left = f"<h3>Bytes sent, by link or kind</h3>{c.bars(rows)}" if rows else "<h3>Bytes sent</h3><p>Not told.</p>"
    return (f"<h2>The link</h2><p class='note'>{note}</p><div class='two'><div>{left}</div>"
            f"<div><h3>Messages</h3>{table}</div></div>")  # fmt: skip


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
        series = [(x, float(value(s))) for x, s in points if value(s) is not None]
        if len(series) > 1 and any(v for _, v in series):
            chart = c.line_chart(series, span_ns=data.span_ns, label=label, show=text, floor=floor)
            out += f"<div><h3>{name}</h3>{chart}</div>"
    return f"<h2>The machine</h2><div class='two'>{out}</div>" if out else ""


def _provenance(data: ReportData) -> str:
    status, run = data.status, data.run
    totals = _totals(data)
    rows = [("Hash of the learned state", totals.get("hash") or (status.model_hash if status else "")),
            ("Hash of the encoder", status.encoder_hash if status else ""),
            ("Hash of the config", run.config_hash or (status.config_hash if status else "")),
            ("Runs", ", ".join(dict.fromkeys(data.runs))), ("Folder", run.path.name)]  # fmt: skip
    versions = run.info.get("versions") or (status.versions if status else {})
    if isinstance(versions, dict) and versions:
        rows.append(("Versions", ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))))
    body = "".join(f"<tr><td>{c.esc(name)}</td><td><code>{c.esc(value)}</code></td></tr>" for name, value in rows if value)
    config = f"<details><summary>Config</summary><pre>{c.esc(run.config_text)}</pre></details>" if run.config_text else ""
    return f"<h2>Where this comes from</h2><table>{body}</table>{config}"
