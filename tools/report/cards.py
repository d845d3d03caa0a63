"""One event as a card: its picture with outlines, what it is, where, when, how rare, how long, what raised it.

Called by tools/report/events.py and tools/report/compare.py. Figures that only a maker of models reads are folded away.
"""

from stillwatch.base import UsageError
from stillwatch.runs import most_often
from stillwatch.settings import EventsConfig, recorded_config
from stillwatch.tools.report import charts as c
from stillwatch.tools.report.data import Event, ReportData
from stillwatch.tools.report.in_view import topic_layer, topic_name
from stillwatch.tools.shared import words
from stillwatch.transport.wire import PATCH_MODEL, EventKind
from stillwatch.transport.wire import messages as m

Numbers = dict[tuple[str, int, int], str]  # what each event is called, by its key


def events_config(data: ReportData) -> EventsConfig:
    """Return the thresholds that the run had; the defaults where its config cannot be read."""
    try:
        return recorded_config(data.run.config_text).events
    except UsageError:
        return EventsConfig()


def numbers_of(data: ReportData) -> Numbers:
    """Return what each event is called: the agent's own number, behind that of its run where two runs share numbers."""
    ids = [event.id for event in data.events]
    if len(set(ids)) == len(ids):
        return {event.key: str(event.id) for event in data.events}
    starts = list(dict.fromkeys(event.key[:2] for event in data.events))
    return {event.key: f"{starts.index(event.key[:2]) + 1}.{event.id}" for event in data.events}


def event_card(data: ReportData, event: Event, n: str) -> str:
    """Return the card of the event that is called `n`."""
    shown = event.best or event.last
    about = _about(event)
    alt = f"Frame {shown.picture_frame}: {about}" if shown.picture_frame >= 0 else about
    segments = topic_layer(data, shown.topic_map, shown.map_topics)
    outlined = c.picture(shown.thumbnail, event.boxes, alt=alt, opens=True, layer=segments)
    switch = (
        f"<input type='checkbox' id='topics-{n}'><label for='topics-{n}'>colour its topics</label>" if segments else ""
    )
    history = event.first.history if event.first.history is not None else event.last.history
    values = [] if history is None else [float(v) for v in history]
    spark = (
        f"<div class='sparkline'>{c.spark(values)}<small>how rare each of the {len(values)} frames before the alert was"
        "</small></div>"
        if len(values) > 1
        else ""
    )
    title = words.title_of(event.first.alert_kind)
    return (
        f"<article class='event' id='event-{n}'>{switch}<div class='picture'>{outlined}</div>"
        f"<div class='severity' title='severity {event.severity:.2f} of 1'>"
        f"<i style='width:{100 * event.severity:.0f}%'></i></div>"
        f"<div class='text'><h4>Event {n}: {c.esc(title[0].lower() + title[1:])}</h4>"
        f"<p class='when'>{c.esc(_when(data, event))}</p><p>{c.esc(_facts(event))}</p>"
        f"{_unusual(data, event)}{_of_kind(data, event)}"
        f"<p>{c.esc(words.why(event.first.alert_kind, events_config(data)))}</p>{_resembles(data, event)}{spark}"
        f"{_details(data, event, shown)}</div></article>"
    )


def _about(event: Event) -> str:
    shown = event.best or event.last
    title = words.title_of(event.first.alert_kind).lower()
    there = words.where(shown.x, shown.y, shown.boxes)
    return f"{title}, {there}" if there else title


def _facts(event: Event) -> str:
    shown = event.best or event.last
    facts = []
    there = words.where(shown.x, shown.y, shown.boxes)
    facts += [there] * bool(there)
    facts += [event.how_rare] * bool(event.how_rare)
    if not event.ended:
        facts.append("no end received")
    elif event.duration_s > 0:
        facts.append(f"lasted {words.duration(event.duration_s)}")
    nav = words.position(event.first.nav)
    text = ", ".join(facts + [nav] * bool(nav))
    return f"{text[0].upper()}{text[1:]}." if text else ""


def _of_kind(data: ReportData, event: Event) -> str:
    """Say of which kind of visits it is, where that is shown."""
    number = event.last.visit_kind
    if number not in data.kinds:
        return ""
    n = words.count(data.kinds[number].last.count, "visit")
    name = c.esc(data.kinds[number].last.label or f"kind {number}")
    return f"<p>Of <a href='#kind-{number}'>{name}</a>: {n} in all.</p>"


def _unusual(data: ReportData, event: Event) -> str:
    """Say of which topic an unusual view shows more than it usually does."""
    if event.first.topic < 0:
        return ""
    return f"<p>More than usual of <b>{topic_name(data, event.first.topic)}</b>.</p>"


def _when(data: ReportData, event: Event) -> str:
    """Return when it began: by the stream's time and the frame, and by UTC where the two run alike."""
    when = [words.moment(event.x_ns / 1e9)]
    if event.first.start_frame >= 0:
        when.append(f"frame {event.first.start_frame}")
    if data.is_live:
        when.insert(0, words.utc(_wall_ns(event)))
    return " \u00b7 ".join(when)


def _wall_ns(event: Event) -> int:
    return event.first.wall_ns - max(event.first.t_ns - event.first.start_t_ns, 0)


def _resembles(data: ReportData, event: Event) -> str:
    """Say what known thing it is most like, with the picture or the name that there is."""
    parts = []
    patches = data.last_model.get(PATCH_MODEL)
    component = (event.best or event.last).component
    if patches is not None and str(component) in patches.labels:
        parts.append(f"<p>Most like what you named <b>{c.esc(patches.labels[str(component)])}</b>.</p>")
    if event.nearest is not None and event.nearest.thumbnail:
        when = f"frame {event.nearest.exemplar_frame}"
        known = c.picture(event.nearest.thumbnail, alt=f"{when}, kept before it")
        parts.append(
            f"<div class='like'><div class='picture'>{known}</div>"
            f"<p>The most alike view among those kept before: {c.esc(when)}.</p></div>"
        )
    return "".join(parts)


def _details(data: ReportData, event: Event, shown: m.Alert) -> str:
    rows = [
        ("Picture and outlines", _picture_time(data, event, shown)),
        ("Told", f"{words.utc(event.first.wall_ns)}, frame {event.first.frame}"),
        ("Severity", f"{event.severity:.2f} of 1"),
        ("Highest score", f"{event.last.peak:.2f} deviations above the usual" if event.last.peak is not None else ""),
        ("Nearest component", str(shown.component) if shown.component >= 0 else ""),
        ("Kind", event.first.alert_kind),
        ("Run", event.key[0]),
    ]
    rows[4:4] = _rarity(event)
    body = "".join(f"<tr><td>{name}</td><td>{c.esc(value)}</td></tr>" for name, value in rows if value)
    return f"<details><summary>Details</summary><table>{body}</table></details>"


def _rarity(event: Event) -> list[tuple[str, str]]:
    """Return what was counted before it, and how often such a thing can come by that."""
    told = event.told
    if event.first.alert_kind not in (EventKind.NOVEL, EventKind.UNUSUAL_VIEW) or told["watched_s"] is None:
        return []
    counts = [f"{words.number(told['judged'])} frames"] if told["judged"] is not None else []
    counts += [words.count(told["visits"], "visit")] if told["visits"] is not None else []
    counts += [f"{told['alike']} of its kind"] if told["alike"] is not None else []
    counts += [f"{told['here']} to its place"] if told["here"] is not None else []
    text = f"{words.duration(told['watched_s'])}: {', '.join(counts)}"
    limit = "" if told["alike"] is None else most_often(told["alike"], told["watched_s"])
    return [("Watched before it", text), ("So often at most", limit)]


def _picture_time(data: ReportData, event: Event, shown: m.Alert) -> str:
    if shown.picture_frame < 0:
        return ""
    after_s = (event.x_ns + shown.picture_t_ns - event.first.start_t_ns) / 1e9
    return f"of frame {shown.picture_frame}, {words.moment(after_s)}: the best so far"
