"""The novelty curve of a report: rarity and raw score over time, with events, learning, refusals and gaps marked.

Called by tools/report/page.py and tools/report/compare.py. It must draw a gap as a gap, never as a line.
"""

import datetime
import json
import math
from collections.abc import Sequence

from stillwatch.runs import MOST_RARE
from stillwatch.tools.report import charts as c
from stillwatch.tools.report.cards import Numbers, events_config
from stillwatch.tools.report.data import Bin, ReportData
from stillwatch.tools.shared import words

MAX_FLAGS = 40
WIDEST_FLAG = 7.0  # per cent of the curve: a number of two digits on a telephone
HEIGHT = 240
Bins = list[tuple[int, Bin]]


def moment_label(data: ReportData) -> c.Label:
    """Return the function that names one moment, as `run` does: UTC of live sources, else time into the recording."""
    if not data.is_live:
        return lambda x_ns: words.moment(x_ns / 1e9)

    def clock(x_ns: int) -> str:
        when = data.first_wall_ns + x_ns
        day = datetime.datetime.fromtimestamp(when / 1e9, datetime.UTC).strftime("%d %b ")
        return (day if data.span_ns > 12 * 3600 * 10**9 else "") + words.utc(when)

    return clock


def labeller(data: ReportData) -> c.Label:
    """Return the function that names the times of an axis: UTC of live sources, else time into the recording."""
    if not data.is_live:
        return lambda x_ns: words.clock_time(x_ns / 1e9)

    def clock(x_ns: int) -> str:
        moment = datetime.datetime.fromtimestamp((data.first_wall_ns + x_ns) / 1e9, datetime.UTC)
        if data.span_ns > 36 * 3600 * 10**9:
            return moment.strftime("%d %b %H:%M")
        return moment.strftime("%H:%M:%S" if data.span_ns < 600 * 10**9 else "%H:%M")

    return clock


def timeline_section(data: ReportData, label: c.Label, numbered: Numbers) -> str:
    bins = data.curve.items()
    if not any(item.count for _, item in bins):
        why = "The model was still learning what is normal." if bins else "No score was received."
        return f"<h2>Novelty over time</h2><div class='empty'>No frame was scored. {why}</div>"
    rarity = _rarity_plot(data, label, numbered, bins)
    score = _score_plot(data, label, numbered, bins)
    events = events_config(data)
    switch = (
        "<div class='switch'><button aria-pressed='true' data-show='by-rarity'>By the rule</button>"
        "<button aria-pressed='false' data-show='by-score'>Raw score</button></div>"
    )
    key = (
        "<div class='key'><span><i style='background:var(--novel-soft)'></i>event</span>"
        "<span><i style='background:var(--faint);opacity:.5'></i>learning, no score</span>"
        "<span><i style='background:var(--bad-soft)'></i>refused by the gate</span>"
        "<span><i style='background:repeating-linear-gradient(135deg,var(--faint) 0 2px,transparent 2px 5px)'></i>"
        "nothing received</span></div>"
        f"<div class='key'>{_threshold_key('', 'an alert is raised above', events.raise_rarity)}"
        f"{_threshold_key(' low', 'an open event goes on above', events.clear_rarity)}</div>"
    )
    ribbons = (
        f"<div class='ribbons'><b>view</b>{c.ribbon(data.gate, data.span_ns, 'good')}"
        f"<b>source</b>{c.ribbon([s for s in data.source], data.span_ns, '')}</div>"
        "<div class='key'><span>view: whether the picture could be judged; source: whether frames came; dark marks say "
        "what was wrong when pointed at</span></div>"
    )
    return (
        "<h2>Novelty over time</h2><p class='note'>How far each moment stood out from what this camera had seen "
        "before, on the scale of the rule that raises alerts: 1 in N frames by a law fitted to what was seen; beyond "
        "what was watched it counts nothing. Numbers lead to the events below; alerts without a frame so rare have "
        "rules of their own, told there.</p>"
        f"{switch}<div id='by-rarity'>{rarity}</div>"
        f"<div id='by-score' hidden>{score}</div>{key}{ribbons}"
    )


def _rarity_plot(data: ReportData, label: c.Label, numbered: Numbers, bins: Bins) -> str:
    events = events_config(data)
    raised, cleared = events.raise_rarity, events.clear_rarity
    top = max(min(max((item.rarity for _, item in bins), default=1.0), MOST_RARE), raised) * 1.6
    decades = math.log10(top)

    def y_of(value: float) -> float:
        return HEIGHT * (1 - math.log10(min(max(value, 1.0), MOST_RARE)) / decades)

    points = [(x, y_of(item.rarity)) for x, item in bins if item.count]
    ticks = [(y_of(10**k), f"1 in {words.number(10**k)}" if k else "all") for k in range(int(decades) + 1)]
    lines = "".join(
        f"<line class='threshold{name}' x1='0' x2='1000' y1='{y_of(at):.1f}' y2='{y_of(at):.1f}'/>"
        for name, at in (("", raised), (" low", cleared))
    )
    return _curve(data, label, numbered, bins, points, ticks, lines)


def _threshold_key(name: str, text: str, at: float) -> str:
    """Explain a dashed line below the plot: over the curve, its words could not be read."""
    return f"<span><i class='threshold{name}'></i>{text}: 1 in {words.number(at)}</span>"


def _score_plot(data: ReportData, label: c.Label, numbered: Numbers, bins: Bins) -> str:
    scored = [(x, item) for x, item in bins if item.count]
    low = min(item.total / item.count for _, item in scored)
    high = max(item.high for _, item in scored)
    scale = (high - low) or 1.0
    points = [(x, 6 + (HEIGHT - 6) * (1 - (item.high - low) / scale)) for x, item in scored]
    ticks = [(6 + (HEIGHT - 6) * (1 - share), f"{low + share * scale:.3g}") for share in (0.0, 0.25, 0.5, 0.75, 1.0)]
    return _curve(data, label, numbered, bins, points, ticks, "")


def _curve(
    data: ReportData,
    label: c.Label,
    numbered: Numbers,
    bins: Bins,
    points: list,
    ticks: Sequence[tuple[float, str]],
    lines: str,
) -> str:
    """Draw the curve with `lines` (SVG) over it."""
    span, moment = max(data.span_ns, 1), moment_label(data)
    spacing = max(4 * _typical_step(bins), 3 * data.curve.width_ns)
    placed = [(1000 * x / span, y) for x, y in c.with_breaks(points, spacing)]
    shades = _shades(data, bins, span, spacing)
    spans = "".join(
        f"<rect class='eventspan' x='{1000 * event.x_ns / span:.1f}' y='0' height='{HEIGHT}' "
        f"width='{max(1000 * event.duration_s * 1e9 / span, 1.5):.1f}'/>"
        for event in data.events
    )
    restarts = "".join(
        f"<line class='grid' style='stroke:var(--ink)' x1='{1000 * x / span:.1f}' y1='0' y2='{HEIGHT}' "
        f"x2='{1000 * x / span:.1f}'/>"
        for x in data.restarts
    )
    body = (
        f"{shades}{spans}{restarts}<path class='fill' d='{c.area(placed, HEIGHT)}'/>"
        f"<path class='line' d='{c.path(placed)}'/>{lines}"
    )
    tips = {
        "x": [round(1000 * x / span, 1) for x, item in bins if item.seen],
        "t": [_tip(moment, x, item) for x, item in bins if item.seen],
    }
    script = f"<script type='application/json'>{json.dumps(tips).replace('<', chr(92) + 'u003c')}</script>"
    extra = _flags(data, moment, numbered, span) + "<div class='cursor'></div><div class='tip'></div>"
    plot = c.plot(body, height=HEIGHT, span_ns=span, label=label, y_ticks=ticks, extra=extra)
    return f"<div class='timeline'>{plot}{script}</div>"


def _typical_step(bins: Bins) -> int:
    steps = sorted(b - a for (a, _), (b, _) in zip(bins, bins[1:], strict=False))
    return steps[len(steps) // 2] if steps else 0


def _shades(data: ReportData, bins: Bins, span: int, spacing: int) -> str:
    """Draw stretches that were learning or refused, and stretches from which nothing came."""
    out, start, current = "", 0, ""
    half = data.curve.width_ns // 2
    for i, (x, item) in enumerate(bins):
        after = bins[i + 1][0] if i + 1 < len(bins) else x
        name = _shade_of(item)
        if name != current:
            start, current = x - half, name
        goes_on = i + 1 < len(bins) and after - x <= spacing and _shade_of(bins[i + 1][1]) == name
        if name and not goes_on:
            out += _shade(name, start, min(after, x + spacing), span)
            current = ""
        if after - x > spacing:
            out += _shade("hatch", x, after, span)
    return out


def _shade_of(item: Bin) -> str:
    if item.count:
        return ""
    return "refused" if item.refused else "shade" if item.learning else ""


def _shade(name: str, start: int, end: int, span: int) -> str:
    x = max(1000 * start / span, 0)
    return f"<rect class='{name}' x='{x:.1f}' y='0' width='{1000 * end / span - x:.1f}' height='{HEIGHT}'/>"


def _tip(moment: c.Label, x: int, item) -> list[str]:
    lines = [moment(x)]
    if item.count:
        lines.append(f"score {item.high:.2f}")
    elif item.learning:
        lines.append("learning")
    if item.refused:
        lines.append(f"{item.refused} of {item.seen} frames refused")
    return lines


def _flags(data: ReportData, moment: c.Label, numbered: Numbers, span: int) -> str:
    """Number the events above the curve; where they would touch, the rarer one keeps its number.

    There are two rows of numbers, for those that touch on a telephone.
    """
    rows: tuple[list[float], list[float]] = [], []
    dots: list[float] = []
    out = ""
    for event in sorted(data.events, key=lambda event: -event.rarity):
        at = 100 * event.x_ns / span
        free = [not any(abs(at - other) < WIDEST_FLAG for other in row) for row in rows]
        crowded = not any(free) or sum(map(len, rows)) >= MAX_FLAGS
        if crowded and any(abs(at - other) < 0.4 for other in (*rows[0], *dots)):
            continue
        (dots if crowded else rows[free.index(True)]).append(at)
        text = "" if crowded else numbered[event.key]
        kind = "flag dot" if crowded else "flag" if free[0] else "flag above"
        out += (
            f"<a class='{kind}' href='#event-{numbered[event.key]}' style='left:{at:.2f}%' "
            f"title='Event {numbered[event.key]} at {c.esc(moment(event.x_ns))}'>{text}</a>"
        )
    return out
