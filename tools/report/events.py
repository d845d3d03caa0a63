"""The pictures of a report: events, kinds of visits, and exemplars: what is normal, apart from what is kept of events.

Called by tools/report/page.py and tools/report/compare.py. It must show a picture only if it is a JPEG, and text
escaped.
"""

import datetime

from stillwatch.runs import span
from stillwatch.tools.report import charts as c
from stillwatch.tools.report.cards import Numbers, event_card
from stillwatch.tools.report.data import KindSeen, ReportData
from stillwatch.tools.report.in_view import topic_layer
from stillwatch.tools.report.learners import GALLERIES, gallery_view, in_order
from stillwatch.tools.report.timeline import moment_label
from stillwatch.tools.shared import words
from stillwatch.transport.wire import messages as m

MAX_CARDS = 60
MAX_ROWS = 48  # kinds of visits
STRIP_PX = (240, 22)  # width, height of the strip
BY_HOUR_NS = 36 * 3600 * 10**9  # of longer live runs the strip is of the hours of the day


def events_section(data: ReportData, label: c.Label, numbered: Numbers) -> str:
    if not data.events:
        scored = sum(item.count for _, item in data.curve.items())
        text = (
            f"No alert was raised. All {words.number(scored)} scored frames stayed within what this camera had learnt."
            if scored
            else "No alert was raised."
        )
        return f"<h2>Events</h2><div class='empty'>{text}</div>"
    ranked = sorted(data.events, key=lambda event: (-event.severity, -event.rarity))
    shown = sorted(ranked[:MAX_CARDS], key=lambda event: event.x_ns)
    cards = "".join(event_card(data, event, numbered[event.key]) for event in shown)
    rest = sorted(ranked[MAX_CARDS:], key=lambda event: event.x_ns)
    more = ""
    if rest:
        rows = "".join(
            f"<tr id='event-{numbered[e.key]}'><td class='n'>{numbered[e.key]}</td><td>{c.esc(label(e.x_ns))}</td>"
            f"<td>{c.esc(words.title_of(e.first.alert_kind))}</td><td>{words.duration(e.duration_s)}</td>"
            f"<td>{c.esc(e.how_rare)}</td></tr>"
            for e in rest
        )
        more = (
            f"<details><summary>{len(rest)} lesser events</summary><div class='scroll'><table><tr><th class='n'>No."
            "</th><th>Start</th><th>Kind</th><th>Lasted</th><th>How rare</th></tr>"
            f"{rows}</table></div></details>"
        )
    if data.events_left_out:
        more += f"<p class='note'>{words.number(data.events_left_out)} further events are not listed.</p>"
    return (
        "<h2>Events</h2><p class='note'>Outlined is what looked new, the main thing thickest; picture and outlines are "
        "of one frame, the best that was told. Point at a picture to see it without outlines, click to see it large; "
        "coloured is what the agent took each part of the view for, and the bar below is how severe the event was. "
        "Events have the agent's own numbers, the same in every command; one that is missing was told to nobody.</p>"
        f"<div class='events'>{cards}</div>{more}"
    )


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
    if not view.is_normal:
        return f"{title}<p class='note'>{c.esc(view.note)}</p>{_figures(data, role, ranked, label)}"
    during = {item.id for item in ranked if any(e.holds(item.run, item.exemplar_t_ns) for e in data.events)}
    usual = [item for item in ranked if item.id not in during]
    events = [item for item in ranked if item.id in during]
    shown = _figures(data, role, usual, label) if usual else f"<div class='empty'>{view.nothing_usual}</div>"
    more = ""
    if events:
        count = "One frame" if len(events) == 1 else f"{len(events)} frames"
        more = (
            f"<details><summary>{count} that the agent keeps of events</summary>"
            f"{_figures(data, role, events, label)}</details>"
        )
    return f"{title}<p class='note'>{c.esc(view.note)}</p>{shown}{more}"


def _figures(data: ReportData, role: str, items: list[m.Exemplar], label: c.Label) -> str:
    """Return the pictures; where any tells which part of it shows which topic, with a switch that shows so."""
    figures, is_segmented = "", False
    for item in items:
        share = f"<div class='share'><i style='width:{100 * item.share:.0f}%'></i></div>" if item.share else ""
        note = f"stands for {item.share:.0%} of {gallery_view(role).unit}" if item.share else ""
        named = f"<b>{c.esc(item.label)}</b><br>" if item.label else ""
        facts = [note] * bool(note) + [f"frame {item.exemplar_frame}"] * (item.exemplar_frame >= 0)
        facts.append(f"chosen {label(data.exemplar_x[item.id])}")
        alt = f"Exemplar {item.id}, frame {item.exemplar_frame}"
        segments = topic_layer(data, item.topic_map, item.map_topics)
        is_segmented = is_segmented or bool(segments)
        shown = c.picture(item.thumbnail, alt=alt, opens=True, layer=segments)
        figures += (
            f"<figure><div class='picture'>{shown}</div>{share}"
            f"<figcaption>{named}{c.esc(', '.join(facts))}</figcaption></figure>"
        )
    gallery = f"<div class='gallery'>{figures}</div>"
    if not is_segmented:
        return gallery
    name = f"topics-{role}-{items[0].id}"
    switch = f"<input type='checkbox' id='{c.esc(name)}'><label for='{c.esc(name)}'>colour their topics</label>"
    return f"<div class='segmented'>{switch}{gallery}</div>"


def visits_section(data: ReportData, label: c.Label) -> str:
    """Show the kinds, the most frequent first; nothing where no kind was told."""
    kinds = sorted(data.kinds.values(), key=lambda kind: (-kind.last.count, kind.last.id))
    if not kinds:
        return ""
    by_hour = data.is_live and data.span_ns > BY_HOUR_NS
    over = "the hours of the day, UTC" if by_hour else "the time that was watched"
    note = (
        "Who came and went while the camera stood still, and was seen whole, told apart by shape and look: a kind. The "
        f"strip shows when each came, over {over}. Kinds that come often are counted and raise no alert. Name one by "
        "<code>stillwatch control ENDPOINT label_component which=visits component=NUMBER label=NAME</code>."
    )
    watched_s = max(kind.last.watched_s or 0.0 for kind in kinds)  # as told last, by whichever
    rows = [_row(data, kind, watched_s, by_hour) for kind in kinds[:MAX_ROWS]]
    often = sum(kind.last.count > 1 for kind in kinds[:MAX_ROWS])
    shown, once = "".join(rows[:often]), "".join(rows[often:])
    if once:
        is_open = " open" if not often else ""
        head = f"<summary>{words.count(len(rows) - often, 'kind')} of one visit</summary>"
        once = f"<details{is_open}>{head}<div class='visits'>{once}</div></details>"
    return f"<h2>Kinds of visits</h2><p class='note'>{note}</p><div class='visits'>{shown}</div>{once}"


def kind_name(data: ReportData, number: int) -> str:
    """Return what a kind is called, escaped: the name that a person gave it, else its number."""
    seen = data.kinds.get(number)
    return c.esc((seen.last.label if seen is not None else "") or f"kind {number}")


def _row(data: ReportData, kind: KindSeen, watched_s: float, by_hour: bool) -> str:
    told, label = kind.last, moment_label(data)
    shown = c.picture(
        told.thumbnail, alt=f"A visit of kind {told.id}, cut out of frame {told.picture_frame}", opens=True
    )
    often = f"once in {span(watched_s / told.count)}" if watched_s and told.count > 1 else "once so far"
    first, last = (label(x) for x in (kind.first_x, kind.last_x))
    when = f"at {first}" if told.count == 1 else f"first {first}, last {last}"
    name = kind_name(data, told.id)
    return (
        f"<article class='visit' id='kind-{told.id}'><div class='picture'>{shown}</div><div class='text'>"
        f"<h4>{name[0].upper()}{name[1:]}: {c.esc(words.count(told.count, 'visit'))}</h4>"
        f"<p>{c.esc(often)}; {c.esc(when)}</p>{_strip(data, kind, by_hour)}</div></article>"
    )


def _strip(data: ReportData, kind: KindSeen, by_hour: bool) -> str:
    """Draw when visits ended, as marks over the run or as a bar an hour of the day."""
    width, height = STRIP_PX
    if by_hour:
        hours = [0] * 24
        for x in kind.xs:
            at = datetime.datetime.fromtimestamp((data.first_wall_ns + x) / 1e9, datetime.UTC)
            hours[at.hour] += 1
        top = max(hours) or 1
        marks = "".join(
            f"<rect x='{10 * hour}' y='{height - height * n / top:.1f}' width='9' height='{height * n / top:.1f}'/>"
            for hour, n in enumerate(hours)
            if n
        )
        text = ", ".join(f"{hour} h: {n}" for hour, n in enumerate(hours) if n)
    else:
        ends = max(data.span_ns, 1)
        places = sorted({round((width - 2) * x / ends) for x in kind.xs})
        marks = "".join(f"<rect x='{place}' y='3' width='2' height='{height - 6}'/>" for place in places)
        text = f"{len(kind.xs)} visits"
    return (
        f"<svg class='strip' viewBox='0 0 {width} {height}' preserveAspectRatio='none' role='img' "
        f"aria-label='{c.esc(text)}'>{marks}</svg>"
    )
