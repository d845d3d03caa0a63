"""The pictures of a report: the events, and the exemplars: what is normal, apart from what the agent keeps of events.

Called by tools/report/page.py and tools/report/compare.py. It must show a picture only if it is a JPEG, and text
escaped.
"""

from stillwatch.tools.report import charts as c
from stillwatch.tools.report.cards import Numbers, event_card
from stillwatch.tools.report.data import ReportData
from stillwatch.tools.report.learners import GALLERIES, gallery_view, in_order
from stillwatch.tools.shared import words
from stillwatch.transport.wire import messages as m

MAX_CARDS = 60


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
        "of one frame, the best that was told. Point at a picture to see it without outlines, click to see it large. "
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
    figures = ""
    for item in items:
        share = f"<div class='share'><i style='width:{100 * item.share:.0f}%'></i></div>" if item.share else ""
        note = f"stands for {item.share:.0%} of {gallery_view(role).unit}" if item.share else ""
        named = f"<b>{c.esc(item.label)}</b><br>" if item.label else ""
        facts = [note] * bool(note) + [f"frame {item.exemplar_frame}"] * (item.exemplar_frame >= 0)
        facts.append(f"chosen {label(data.exemplar_x[item.id])}")
        alt = f"Exemplar {item.id}, frame {item.exemplar_frame}"
        figures += (
            f"<figure><div class='picture'>{c.picture(item.thumbnail, alt=alt, opens=True)}</div>{share}"
            f"<figcaption>{named}{c.esc(', '.join(facts))}</figcaption></figure>"
        )
    return f"<div class='gallery'>{figures}</div>"
