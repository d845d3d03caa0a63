"""What was in view: shares of topics over time with pictures as legend, a table of topics, the track by topic.

Called by tools/report/page.py and tools/report/cards.py. It must keep a topic's colour the same wherever it appears.
"""

import math
from collections.abc import Iterator
from functools import partial

import numpy as np

from stillwatch.tools.report import charts as c
from stillwatch.tools.report.data import ReportData
from stillwatch.tools.report.learners import EXAMPLE_ROLES, TOPIC_PREFIX
from stillwatch.tools.shared import words
from stillwatch.transport.wire import TOPIC_MODEL

MAX_TOPICS = 24  # rows of the table
IN_LEGEND = 8
LEAST_SHARE = 0.01  # of what was in view: a topic with less has no place in the legend
MAP_PX = 360
PIE_PX = 7  # radius of a place on the map
LEAST_SECTOR = 0.05  # of a pie: less is too thin to be seen


def in_view_section(data: ReportData, label: c.Label, moment: c.Label) -> str:
    """Show what was in view, `label` naming times of the axis; nothing where no shares were told."""
    mean = data.shares.mean()
    if not mean:
        return ""
    chart = c.stacked_chart(data.shares.points(), span_ns=data.span_ns, label=label, name=partial(topic_name, data))
    note = (
        "How much of the view each kind of ground or thing took, as the agent tells them apart: a topic. Name one by "
        f"<code>stillwatch control ENDPOINT label_component which={TOPIC_MODEL} component=NUMBER label=NAME</code>."
    )
    return (
        f"<h2>What was in view</h2><p class='note'>{note}</p>{chart}{_legend(data, mean)}{_track(data)}"
        f"{_table(data, mean, moment)}"
    )


def topic_name(data: ReportData, topic: int) -> str:
    """Return what a topic is called, escaped: the name that a person gave it, else its number."""
    model = data.last_model.get(TOPIC_MODEL)
    return c.esc((model.labels.get(str(topic), "") if model is not None else "") or f"topic {topic}")


def _legend(data: ReportData, mean: dict[int, float]) -> str:
    shown = [topic for topic, share in mean.items() if share >= LEAST_SHARE][:IN_LEGEND]
    figures = "".join(
        f"<figure><div class='picture'>{_crop(data, topic, 'most_typical')}</div><figcaption>{_swatch(topic)}"
        f"{topic_name(data, topic)}, {mean[topic]:.0%}</figcaption></figure>"
        for topic in shown
    )
    return f"<div class='gallery topics'>{figures}</div>"


def _swatch(topic: int) -> str:
    return f"<i class='swatch' style='background:{c.component_colour(topic)}'></i>"


def _crop(data: ReportData, topic: int, role: str) -> str:
    found = data.topic_pictures.get((topic, TOPIC_PREFIX + role))
    if found is None:
        return "<span class='nopicture'>no picture received</span>"
    return c.picture(found.thumbnail, alt=f"Topic {topic}: {role.replace('_', ' ')}, frame {found.exemplar_frame}")


def _table(data: ReportData, mean: dict[int, float], moment: c.Label) -> str:
    rows = ""
    for topic in list(mean)[:MAX_TOPICS]:
        pictures = "".join(f"<td><div class='picture'>{_crop(data, topic, role)}</div></td>" for role in EXAMPLE_ROLES)
        seen = [moment(when[topic]) if topic in when else "" for when in (data.shares.first, data.shares.last)]
        bar = f"<div class='share'><i style='width:{100 * mean[topic]:.0f}%'></i></div>"
        name = f"<b>{_swatch(topic)}{topic_name(data, topic)}</b>{bar}{mean[topic]:.1%} of the view"
        name += f"<span class='narrow'>number {topic}<br>{c.esc(seen[0])} to {c.esc(seen[1])}</span>"
        cells = f"<td class='n wide'>{topic}</td>" + "".join(f"<td class='wide'>{c.esc(text)}</td>" for text in seen)
        rows += f"<tr><td class='kind'>{name}</td>{pictures}{cells}</tr>"
    heads = "".join(f"<th>{name}</th>" for name in EXAMPLE_ROLES.values())
    seen_heads = "<th class='wide'>First seen</th><th class='wide'>Last seen</th>"
    head = f"<tr><th></th>{heads}<th class='n wide'>Number</th>{seen_heads}</tr>"
    more = len(mean) - MAX_TOPICS
    rest = f"<p class='note'>and {words.number(more)} lesser topics</p>" if more > 0 else ""
    return (
        f"<details open><summary>Topics</summary><div class='scroll tall'><table class='scenes topics'>{head}{rows}"
        f"</table></div>{rest}</details>"
    )


def _track(data: ReportData) -> str:
    """Draw where the camera went, each place as a pie of the topics seen there; nothing without positions."""
    places = data.shares.places
    if len(places) < 2:
        return ""
    latitude, longitude = (np.array([place[i] for place in places]) for i in (0, 1))
    x = (longitude - longitude.min()) * math.cos(math.radians(float(latitude.mean())))  # north is up, metres alike
    y = latitude.max() - latitude
    extent = max(float(x.max()), float(y.max()), 1e-9)
    x, y = 10 + (MAP_PX - 20) * x / extent, 10 + (MAP_PX - 20) * y / extent
    marks = "".join(_pie(data, *mark) for mark in _apart(x, y, [shares for _, _, shares in places]))
    wide, tall = float(x.max()) + 10, float(y.max()) + 10
    metres = extent * 111_320
    return (
        "<h3>Along the track</h3><p class='note'>What the camera saw at each place, as shares of its view; north is "
        f"up, {words.number(metres)} m across.</p>"
        f"<svg class='track' viewBox='0 0 {wide:.0f} {tall:.0f}' style='width:{wide:.0f}px'>{marks}</svg>"
    )


def _apart(x: np.ndarray, y: np.ndarray, shares: list[dict[int, float]]) -> Iterator[tuple[float, float, dict]]:
    """Yield x, y and mean shares, largest first, of stretches of the track whose pies do not hide each other."""
    first = 0
    for i in range(1, len(x) + 1):
        if i < len(x) and math.hypot(x[i] - x[first], y[i] - y[first]) < 2 * PIE_PX:
            continue
        sums: dict[int, float] = {}
        for seen in shares[first:i]:
            for topic, share in seen.items():
                sums[topic] = sums.get(topic, 0.0) + share / (i - first)
        yield float(x[first]), float(y[first]), dict(sorted(sums.items(), key=lambda item: -item[1]))
        first = i


def _pie(data: ReportData, x: float, y: float, shares: dict[int, float]) -> str:
    """Return one place: a disc of its largest topic, under a sector of each other one that can be seen."""
    if not shares:
        return ""
    said = ", ".join(f"{topic_name(data, topic)} {share:.0%}" for topic, share in shares.items())
    main, *others = shares
    disc = f"<circle cx='{x:.1f}' cy='{y:.1f}' r='{PIE_PX}' style='fill:{c.component_colour(main)}'/>"
    turn = 0.0
    for topic in others:
        if shares[topic] < LEAST_SECTOR:
            break
        ends = [2.0 * math.pi * t for t in (turn, turn + shares[topic])]
        (ax, ay), (bx, by) = ((x + PIE_PX * math.sin(angle), y - PIE_PX * math.cos(angle)) for angle in ends)
        disc += (
            f"<path d='M{x:.1f} {y:.1f}L{ax:.1f} {ay:.1f}A{PIE_PX} {PIE_PX} 0 0 1 {bx:.1f} {by:.1f}Z' "
            f"style='fill:{c.component_colour(topic)}'/>"
        )
        turn += shares[topic]
    return f"<g>{disc}<title>{said}</title></g>"


def topic_layer(data: ReportData, topic_map: np.ndarray | None, ids: np.ndarray | None) -> str:
    """Return a layer over a picture that shows which part of it is of which topic; empty where that is not known."""
    if topic_map is None or ids is None or not topic_map.size:
        return ""
    rows, columns = topic_map.shape
    known = ids.tolist()
    cells = ""
    for y, row in enumerate(topic_map.tolist()):
        x = 0
        while x < columns:
            end = next((k for k in range(x, columns) if row[k] != row[x]), columns)
            if row[x] < len(known):
                topic = known[row[x]]
                cells += (
                    f"<rect x='{x}' y='{y}' width='{end - x}' height='1' style='fill:{c.component_colour(topic)}'>"
                    f"<title>{topic_name(data, topic)}</title></rect>"
                )
            x = end
    return (
        f"<svg class='segments' viewBox='0 0 {columns} {rows}' preserveAspectRatio='none' aria-hidden='true'>"
        f"{cells}</svg>"
    )
