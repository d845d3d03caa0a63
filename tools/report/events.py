"""The pictures of a report: events with their outlined patches, and the exemplars.

Called by tools/report/page.py and tools/report/compare.py. It must show a picture only if it is a JPEG, and text
escaped.
"""

import base64

import numpy as np

from stillwatch.tools.report import charts as c
from stillwatch.tools.report.data import Event, ReportData
from stillwatch.tools.report.learners import GALLERIES, gallery_view, in_order
from stillwatch.transport.wire import EventKind
from stillwatch.transport.wire import messages as m

MAX_CARDS = 60


def events_section(data: ReportData, label: c.Label, numbered: dict) -> str:
    if not data.events:
        scored = sum(item.count for _, item in data.curve.items())
        text = (
            f"No alert was raised. All {c.number(scored)} scored frames stayed within what this camera had learnt."
            if scored
            else "No alert was raised."
        )
        return f"<h2>Events</h2><div class='empty'>{text}</div>"
    ranked = sorted(data.events, key=lambda event: (-event.severity, -event.rarity))
    shown = sorted(ranked[:MAX_CARDS], key=lambda event: event.x_ns)
    cards = "".join(event_card(event, numbered[event.key], label) for event in shown)
    rest = sorted(ranked[MAX_CARDS:], key=lambda event: event.x_ns)
    more = ""
    if rest:
        rows = "".join(
            f"<tr id='event-{numbered[e.key]}'><td class='n'>{numbered[e.key]}</td><td>{c.esc(label(e.x_ns))}</td>"
            f"<td>{c.esc(_kind(e))}</td><td>{c.duration(e.duration_s)}</td><td class='n'>{c.rarity(e.rarity)}</td></tr>"
            for e in rest
        )
        more = (
            f"<details><summary>{len(rest)} lesser events</summary><div class='scroll'><table><tr><th class='n'>No."
            "</th><th>Start</th><th>Kind</th><th>Lasted</th><th class='n'>One frame in</th></tr>"
            f"{rows}</table></div></details>"
        )
    if data.events_left_out:
        more += f"<p class='note'>{c.number(data.events_left_out)} further events are not listed.</p>"
    return (
        "<h2>Events</h2><p class='note'>The outlined patches are those that looked new. Point at a picture to see "
        f"it without outlines.</p><div class='events'>{cards}</div>{more}"
    )


def _kind(event: Event) -> str:
    name = event.first.alert_kind  # as sent, where it is a later version's
    return "Novelty" if EventKind(name) is EventKind.NOVEL else name.replace("_", " ").capitalize()


def event_card(event: Event, n: int, label: c.Label) -> str:
    alert = event.best or event.last
    history = event.first.history if event.first.history is not None else event.last.history
    values = [] if history is None else [float(v) for v in history]
    facts = [] if event.ended else ["no end received"]
    if event.ended and event.duration_s > 0:
        facts.append(f"lasted {c.duration(event.duration_s)}")
    if event.rarity >= 10:
        facts.append(f"one frame in {c.rarity(event.rarity)}")
    if alert.component >= 0:
        facts.append(f"nearest component {alert.component}")
    nav = _position(event.first.nav)
    return (
        f"<article class='event' id='event-{n}'><div class='picture'>{picture(alert.thumbnail, alert.boxes)}</div>"
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


def picture(jpeg: bytes, boxes: np.ndarray | None = None) -> str:
    if jpeg[:2] != b"\xff\xd8":
        return "<span class='nopicture'>no picture received</span>"
    outlines = ""
    for x0, y0, x1, y1 in [] if boxes is None else np.clip(boxes, 0, 1).tolist():
        place = f"x='{x0:.4f}' y='{y0:.4f}' width='{max(x1 - x0, 0):.4f}' height='{max(y1 - y0, 0):.4f}'"
        outlines += f"<g><rect {place}/><rect {place}/></g>"
    layer = f"<svg viewBox='0 0 1 1' preserveAspectRatio='none' aria-hidden='true'>{outlines}</svg>" if outlines else ""
    return f"<img loading='lazy' alt='' src='data:image/jpeg;base64,{base64.b64encode(jpeg).decode()}'>{layer}"


def gallery_section(data: ReportData, label: c.Label) -> str:
    """Show the exemplars of every learner that chose some."""
    return "".join(_gallery(data, role, label) for role in in_order({*data.galleries, *GALLERIES}, GALLERIES))


def _gallery(data: ReportData, role: str, label: c.Label) -> str:
    view = gallery_view(role)
    title = f"<h2>{c.esc(view.title)}</h2>"
    held = data.galleries.get(role)
    if not held:
        return f"{title}<div class='empty'>{view.missing}</div>" if view.missing else ""
    ranked = sorted(held.values(), key=lambda item: (-item.share, item.id))
    figures = ""
    for item in ranked:
        share = f"<div class='share'><i style='width:{100 * item.share:.0f}%'></i></div>" if item.share else ""
        note = f"{item.share:.0%} of {view.unit}" if item.share else f"frame {item.exemplar_frame}"
        named = f"<b>{c.esc(item.label)}</b><br>" if item.label else ""
        figures += (
            f"<figure><div class='picture'>{picture(item.thumbnail)}</div>{share}<figcaption>{named}{note}, "
            f"chosen {c.esc(label(data.exemplar_x[item.id]))}</figcaption></figure>"
        )
    return f"{title}<p class='note'>{c.esc(view.note)}</p><div class='gallery'>{figures}</div>"
