"""Draws a report's charts as inline SVG with HTML labels, so that text keeps its size at every width; and pictures.

Called by tools/report/page.py and tools/report/compare.py. Each function returns one HTML string; it must not read
files.
"""

import base64
import html
import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np

_STEPS_S = (
    0.1,
    0.2,
    0.5,
    1,
    2,
    5,
    10,
    15,
    30,
    60,
    120,
    300,
    600,
    900,
    1800,
    3600,
    7200,
    10_800,
    21_600,
    43_200,
    86_400,
    172_800,
    604_800,
    2_592_000,
)
WIDTH = 1000.0
# Muted, and each unlike its neighbours: (hue, saturation in %). Beyond them they come again in another lightness.
_HUES = (
    (192, 48),
    (24, 62),
    (255, 30),
    (82, 34),
    (340, 42),
    (46, 58),
    (215, 46),
    (150, 30),
    (8, 45),
    (285, 26),
    (62, 40),
    (172, 42),
    (316, 28),
    (232, 32),
)

Label = Callable[[int], str]


def esc(value: object) -> str:
    """Return text safe inside HTML and attributes: names and reasons come from peers."""
    return html.escape(str(value), quote=True)


def n_bytes(value: float) -> str:
    """Return bytes in decimal units."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if abs(value) < 999.5 or unit == "TB":
            return f"{value:.0f} {unit}" if unit == "B" or value >= 99.5 else f"{value:.1f} {unit}"
        value /= 1000
    raise AssertionError("unreachable")


def component_colour(identity: int) -> str:
    """Return the colour of a component, the same wherever it appears."""
    hue, saturation = _HUES[identity % len(_HUES)]
    return f"hsl({hue} {saturation}% var(--lightness{'' if identity // len(_HUES) % 2 == 0 else '-b'}))"


def time_ticks(span_ns: int, wanted: int = 7) -> list[int]:
    """Return round times from 0 to the span, about `wanted` of them."""
    span_s = max(span_ns / 1e9, 1e-3)
    step = next((s for s in _STEPS_S if span_s / s <= wanted), _STEPS_S[-1])
    return [int(i * step * 1e9) for i in range(int(span_s / step) + 1)]


def plot(
    body: str,
    *,
    height: int,
    span_ns: int,
    label: Label,
    y_ticks: Sequence[tuple[float, str]] = (),
    extra: str = "",
    classes: str = "",
) -> str:
    """Wrap SVG content drawn in a 1000 x `height` box with a time axis below and y labels at the left.

    `y_ticks` are (y in the box, text); `extra` is HTML laid over the plot.
    """
    times = time_ticks(span_ns, 4 if "small" in classes else 7)
    x_marks = "".join(
        f"<line class='grid' x1='{x:.1f}' x2='{x:.1f}' y1='0' y2='{height}'/>"
        for x in (_x(t, span_ns) for t in times[1:])
    )
    y_marks = "".join(f"<line class='grid' x1='0' x2='{WIDTH:.0f}' y1='{y:.1f}' y2='{y:.1f}'/>" for y, _ in y_ticks)
    x_labels = "".join(
        f"<span style='left:{_x(t, span_ns) / 10:.2f}%'>{esc(label(t))}</span>" for t in times if _x(t, span_ns) < 985
    )
    y_labels = "".join(f"<span style='top:{100 * y / height:.1f}%'>{esc(text)}</span>" for y, text in y_ticks)
    return (
        f"<div class='plot {classes}'><div class='y'>{y_labels}</div><div class='area' style='height:{height}px'>"
        f"<svg viewBox='0 0 {WIDTH:.0f} {height}' preserveAspectRatio='none' aria-hidden='true'>{x_marks}{y_marks}"
        f"{body}</svg>{extra}</div><div class='x'>{x_labels}</div></div>"
    )


def _x(t_ns: float, span_ns: int) -> float:
    return WIDTH * t_ns / max(span_ns, 1)


def path(points: Iterable[tuple[float, float]]) -> str:
    """Return the d attribute of a line through points; NaN breaks it."""
    parts, pen = [], "M"
    for x, y in points:
        if math.isnan(y):
            pen = "M"
            continue
        parts.append(f"{pen}{x:.1f} {y:.1f}")
        pen = "L"
    return "".join(parts)


def area(points: Sequence[tuple[float, float]], floor: float) -> str:
    """Return the d attribute of the areas between a line and a floor; NaN ends one area."""
    parts: list[str] = []
    start = 0
    for i in range(len(points) + 1):
        if i == len(points) or math.isnan(points[i][1]):
            if i > start:
                run = points[start:i]
                line = "L".join(f"{x:.1f} {y:.1f}" for x, y in run)
                parts.append(f"M{run[0][0]:.1f} {floor:.1f}L{line}L{run[-1][0]:.1f} {floor:.1f}Z")
            start = i + 1
    return "".join(parts)


def with_breaks(points: Sequence[tuple[int, float]], limit_ns: int) -> list[tuple[float, float]]:
    """Return points with a NaN between neighbours further apart than `limit_ns`: a gap must look like one."""
    out: list[tuple[float, float]] = []
    for i, (x, y) in enumerate(points):
        if i and x - points[i - 1][0] > limit_ns:
            out.append((x - 1, math.nan))
        out.append((x, y))
    return out


def line_chart(
    points: Sequence[tuple[int, float]],
    *,
    span_ns: int,
    label: Label,
    show: Callable[[float], str],
    height: int = 90,
    floor: float | None = 0.0,
) -> str:
    """Draw one quantity over time, from `floor` (None: from just under its lowest) to its highest."""
    values = [y for _, y in points]
    if not values:
        return ""
    low = min(values) if floor is None else min(floor, min(values))
    high = max(values)
    if high - low < 1e-9 * max(abs(high), 1.0):
        high = low + max(abs(low), 1.0) * 0.1
    ticks = [low, (low + high) / 2, high]
    top = 6.0

    def y_of(value: float) -> float:
        return top + (height - top) * (1 - (value - low) / (high - low))

    spacing = span_ns // 8 if len(points) > 20 else span_ns
    placed = [(_x(x, span_ns), y_of(y) if not math.isnan(y) else math.nan) for x, y in with_breaks(points, spacing)]
    body = f"<path class='fill' d='{area(placed, height)}'/><path class='line' d='{path(placed)}'/>"
    y_ticks = [(y_of(value), show(value)) for value in ticks]
    return plot(body, height=height, span_ns=span_ns, label=label, y_ticks=y_ticks, classes="small")


def stacked_chart(
    points: Sequence[tuple[int, np.ndarray, np.ndarray]],
    *,
    span_ns: int,
    label: Label,
    name: Callable[[int], str],
    height: int = 200,
    top: int = 14,
) -> str:
    """Draw the share of each kind over time; the largest by their greatest share, the rest as one band.

    `points` are (x in ns, ids, counts); steps, as a model holds until the next becomes active. `name` gives what an id
    is called where it is pointed at, escaped.
    """
    greatest: dict[int, float] = {}
    shares: list[dict[int, float]] = []
    for _, ids, counts in points:
        total = float(counts.sum()) or 1.0
        shares.append({int(i): float(c) / total for i, c in zip(ids, counts, strict=True)})
        for i, share in shares[-1].items():
            greatest[i] = max(greatest.get(i, 0.0), share)
    chosen = sorted(sorted(greatest, key=lambda i: -greatest[i])[:top])
    edges = [x for x, _, _ in points] + [span_ns]
    base = np.zeros(len(points))
    body = ""
    for identity in [*chosen, -1]:
        if identity >= 0:
            band = np.array([row.get(identity, 0.0) for row in shares])
        else:
            band = 1.0 - base
        upper = base + band
        if band.max(initial=0.0) > 1e-6:
            called = name(identity) if identity >= 0 else "all others"
            body += _band(edges, base, upper, span_ns, height, identity, called)
        base = upper
    ticks = [(height * (1 - v), f"{v:.0%}") for v in (0.0, 0.5, 1.0)]
    return plot(body, height=height, span_ns=span_ns, label=label, y_ticks=ticks, classes="stack")


def _band(
    edges: list[int], low: np.ndarray, high: np.ndarray, span_ns: int, height: int, identity: int, name: str
) -> str:
    """Draw one kind's band as steps."""
    forward = "L".join(
        f"{_x(edges[i + k], span_ns):.1f} {height * (1 - high[i]):.1f}" for i in range(len(high)) for k in (0, 1)
    )
    back = "L".join(
        f"{_x(edges[i + k], span_ns):.1f} {height * (1 - low[i]):.1f}"
        for i in reversed(range(len(low)))
        for k in (1, 0)
    )
    colour = component_colour(identity) if identity >= 0 else "var(--faint)"
    return f"<path d='M{forward}L{back}Z' style='fill:{colour}'><title>{name}</title></path>"


def spark(values: Sequence[float], height: int = 28) -> str:
    """Draw a small line without axes."""
    if len(values) < 2:
        return ""
    low, high = min(values), max(values)
    scale = (high - low) or 1.0
    step = WIDTH / (len(values) - 1)
    points = [(i * step, 2 + (height - 4) * (1 - (v - low) / scale)) for i, v in enumerate(values)]
    body = f"<path class='fill' d='{area(points, height)}'/><path class='line' d='{path(points)}'/>"
    box = f"viewBox='0 0 {WIDTH:.0f} {height}' preserveAspectRatio='none'"
    return f"<svg class='spark' {box} aria-hidden='true'>{body}</svg>"


def bars(rows: Sequence[tuple[str, float, str]]) -> str:
    """Draw labelled horizontal bars: (name, value, text)."""
    high = max((value for _, value, _ in rows), default=0.0) or 1.0
    return (
        "<div class='bars'>"
        + "".join(
            f"<span>{esc(name)}</span><span class='bar'><i style='width:{100 * value / high:.1f}%'></i></span>"
            f"<b>{esc(text)}</b>"
            for name, value, text in rows
        )
        + "</div>"
    )


def ribbon(states: Sequence[tuple[int, str, str]], span_ns: int, first: str) -> str:
    """Draw spans of states as one band: (x, state, detail), each until the next; `first` before the first."""
    if states and states[0][0] <= span_ns // 500:
        edges, states = [*states], states[1:]
    else:
        edges = [(0, first, ""), *states]
    edges = [*edges, (span_ns, "", "")]
    out = ""
    for (x, state, detail), (end, _, _) in zip(edges, edges[1:], strict=False):
        if end <= x:
            continue
        good = state in ("good", "live", "ok", "ended", "")
        title = f"{state} {detail}".strip()
        width = max(_x(end - x, span_ns) / 10, 0.15)
        out += (
            f"<i class='{'good' if good else 'bad'}' style='left:{_x(x, span_ns) / 10:.2f}%;width:{width:.2f}%' "
            f"title='{esc(title)}'></i>"
        )
    return f"<div class='ribbon'>{out}</div>"


def picture(jpeg: bytes, boxes: np.ndarray | None = None, *, alt: str, opens: bool = False, layer: str = "") -> str:
    """Return a picture with outlines, the first of them the main one, over a `layer` of SVG.

    opens : a click shows it large
    """
    if jpeg[:2] != b"\xff\xd8":
        return "<span class='nopicture'>no picture received</span>"
    outlines = ""
    for i, (x0, y0, x1, y1) in enumerate([] if boxes is None else np.clip(boxes, 0, 1).tolist()):
        shape = f"x='{x0:.4f}' y='{y0:.4f}' width='{max(x1 - x0, 0):.4f}' height='{max(y1 - y0, 0):.4f}'"
        outlines += f"<g{' class=main' if i == 0 else ''}><rect {shape}/><rect {shape}/></g>"
    layer += (
        f"<svg viewBox='0 0 1 1' preserveAspectRatio='none' aria-hidden='true'>{outlines}</svg>" if outlines else ""
    )
    source = f"data:image/jpeg;base64,{base64.b64encode(jpeg).decode()}"
    image = f"<img loading='lazy' alt='{esc(alt)}' src='{source}'>{layer}"
    return f"<button class='opens' title='Show it large'>{image}</button>" if opens else image
