"""Draws the station's lines as SVG without styles of its own: novelty strips, sparklines, the map.

Used by the page's views. All text in a drawing is escaped here; positions are shares of the width in percent, so that
text keeps its size at every width.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from stillwatch.runs import MOST_RARE
from stillwatch.tools.report import charts
from stillwatch.tools.shared import words

WIDTH = 1000.0
STRIP_HEIGHT, AXIS_HEIGHT = 150, 24
REFUSED_WORDS = "frames refused: dark, blurred, covered …"
MOST_TRACK_POINTS = 2000
JOINED_PARTS = 7  # of a sparkline, without a score between two with one: scores come a stretch at a time


@dataclass(frozen=True, slots=True)
class Stretch:
    """A span of time that is drawn as a band: `name` is learning, refused, nothing or span (an event's)."""

    start_ns: int
    end_ns: int
    name: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class Mark:
    """An event on a strip: where, what it is called, where it leads."""

    at_ns: int
    title: str
    address: str


@dataclass(slots=True)
class Strip:
    """What a novelty strip shows. `points` are (wall ns, rarity) in order; None breaks the line."""

    start_ns: int
    end_ns: int
    points: Sequence[tuple[int, float | None]]
    stretches: list[Stretch] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    threshold: float | None = None


def _height_of(rarity: float, height: float, decades: float) -> float:
    share = math.log10(min(max(rarity, 1.0), MOST_RARE)) / decades
    return height - (height - 3) * min(share, 1.0)


def sparkline(rarities: Sequence[float | None], *, text: str, height: int = 34) -> Markup:
    """Draw the newest rarities as a small line, on one scale for all agents: one in 1 to one in 10,000."""
    known = [value for value in rarities if value is not None]
    if len(known) < 2:
        return Markup('<svg class="spark" role="img" aria-label="{}"></svg>').format("no score yet")
    step = WIDTH / max(len(rarities) - 1, 1)
    decades = max(4.0, math.log10(min(max(known), MOST_RARE) or 1.0))
    placed: list[tuple[float, float]] = []
    last = -1
    for i, value in enumerate(rarities):
        if value is not None:
            if placed and i - last > JOINED_PARTS:
                placed.append((i * step, math.nan))
            placed.append((i * step, _height_of(value, height, decades)))
            last = i
    return Markup(
        '<svg class="spark" role="img" aria-label="{}" viewBox="0 0 1000 {}" preserveAspectRatio="none">'
        '<path class="fill" d="{}"/><path class="line" d="{}"/></svg>'
    ).format(text, height, charts.area(placed, height), charts.path(placed))


def history(values: Sequence[float], *, text: str, height: int = 60) -> Markup:
    """Draw the scores before an alert, from their lowest to their highest."""
    finite = [value for value in values if math.isfinite(value)]
    if len(finite) < 2:
        return Markup("")
    low, high = min(finite), max(finite)
    scale, step = (high - low) or 1.0, WIDTH / (len(values) - 1)
    placed = [
        (i * step, 2 + (height - 4) * (1 - (value - low) / scale) if math.isfinite(value) else math.nan)
        for i, value in enumerate(values)
    ]
    return Markup(
        '<svg class="spark" role="img" aria-label="{}" viewBox="0 0 1000 {}" preserveAspectRatio="none">'
        '<path class="fill" d="{}"/><path class="line" d="{}"/></svg>'
    ).format(text, height, charts.area(placed, height), charts.path(placed))


def strip(shown: Strip, *, label: Callable[[int], str], text: str, has_cursor: bool = False) -> Markup:
    """Draw rarity over time with bands, a threshold and marked events; `label` names a moment on the axis."""
    span = max(shown.end_ns - shown.start_ns, 1)
    known = [value for _, value in shown.points if value is not None]
    decades = max(math.log10(min(max(known, default=1.0), MOST_RARE) * 1.6), 3.0)
    height = STRIP_HEIGHT

    def x_of(at_ns: int) -> float:
        return min(max(WIDTH * (at_ns - shown.start_ns) / span, 0.0), WIDTH)

    bands = Markup("").join(
        Markup('<rect class="{}" x="{:.1f}" y="0" width="{:.1f}" height="{}"><title>{}</title></rect>').format(
            band.name, x_of(band.start_ns), max(x_of(band.end_ns) - x_of(band.start_ns), 1.5), height, band.title
        )
        for band in shown.stretches
    )
    placed = [
        (x_of(at), math.nan if value is None else _height_of(value, height, decades)) for at, value in shown.points
    ]
    ticks = [(k, _height_of(10.0**k, height, decades)) for k in range(int(decades) + 1)]
    grid = Markup("").join(
        Markup('<line class="grid" x1="0" x2="1000" y1="{0:.1f}" y2="{0:.1f}"/>').format(y) for k, y in ticks if k
    )
    limit = Markup("")
    if shown.threshold:
        limit = Markup('<line class="threshold" x1="0" x2="1000" y1="{0:.1f}" y2="{0:.1f}"/>').format(
            _height_of(shown.threshold, height, decades)
        )
    names = Markup("").join(
        Markup('<text x="4" y="{:.1f}">1 in {}</text>').format(max(y - 3, 11.0), words.number(10**k))
        for k, y in ticks
        if k and (k % 2 == 1 or decades < 5)
    )
    cursor = Markup('<line class="cursor" x1="0" x2="0" y1="0" y2="{}" visibility="hidden"/>').format(height)
    return Markup(
        '<svg class="strip" role="group" aria-label="{}" width="100%" height="{}">'
        '<defs><pattern id="hatch" width="7" height="7" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)"><rect class="hatching" width="2" height="7"/></pattern></defs>'
        '<svg x="0" y="0" width="100%" height="{}" viewBox="0 0 1000 {}" preserveAspectRatio="none" '
        'aria-hidden="true">{}{}<path class="fill" d="{}"/><path class="line" d="{}"/>{}</svg>'
        '<line class="base" x1="0" x2="100%" y1="{}" y2="{}"/>{}{}{}{}</svg>'
    ).format(
        text,
        height + AXIS_HEIGHT,
        height,
        height,
        bands,
        grid,
        charts.area(placed, height),
        charts.path(placed),
        limit,
        height,
        height,
        names,
        _axis(shown, label, span, height),
        cursor if has_cursor else Markup(""),
        _flags(shown, x_of),
    )


def _axis(shown: Strip, label: Callable[[int], str], span: int, height: int) -> Markup:
    out = Markup("")
    step = _step(span)
    first = -(-shown.start_ns // step) * step
    for i, at in enumerate(range(first, shown.end_ns + 1, step)):
        x = 100 * (at - shown.start_ns) / span
        if 4.0 <= x <= 96.0:  # whole on a phone too
            thin = " thin" if i % 2 else ""
            out += Markup('<text class="tick{}" x="{:.2f}%" y="{}" text-anchor="middle">{}</text>').format(
                thin, x, height + 17, label(at)
            )
    return out


def _step(span_ns: int, wanted: int = 9) -> int:
    steps = (5, 10, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800)
    return next((s for s in steps if span_ns / 1e9 / s <= wanted), steps[-1]) * 10**9


def _flags(shown: Strip, x_of: Callable[[int], float]) -> Markup:
    return Markup("").join(
        Markup(
            '<a href="{}" aria-label="{}"><circle class="flag" cx="{:.2f}%" cy="8" r="6"><title>{}</title></circle></a>'
        ).format(mark.address, mark.title, x_of(mark.at_ns) / 10, mark.title)
        for mark in shown.marks
    )


def key() -> Markup:
    """Return what a strip's bands mean."""
    rows = (("span", "event"), ("learning", "learning, no score"), ("refused", REFUSED_WORDS))
    items = Markup("").join(
        Markup(
            '<li><svg class="strip" width="16" height="9" aria-hidden="true"><rect class="{}" width="16" '
            'height="9"/></svg>{}</li>'
        ).format(name, text)
        for name, text in rows
    )
    hatch = Markup(
        '<li><svg width="16" height="9" aria-hidden="true" class="strip"><rect class="nothing" width="16" height="9"/>'
        "</svg>nothing received</li>"
    )
    return Markup('<ul class="key">{}{}<li>times of the axis: UTC</li></ul>').format(items, hatch)


@dataclass(frozen=True, slots=True)
class Place:
    """An event or an agent on the map, in degrees."""

    latitude: float
    longitude: float
    title: str
    address: str
    is_agent: bool = False


def draw_map(places: Sequence[Place], tracks: Sequence[Sequence[tuple[float, float]]]) -> tuple[Markup, str]:
    """Return the places and tracks (latitude, longitude) to one scale both ways, north up, and what its scale is."""
    points = [(p.latitude, p.longitude) for p in places] + [point for track in tracks for point in track]
    middle = math.radians(sum(latitude for latitude, _ in points) / len(points))
    east = math.cos(middle) or 1e-6
    flat = [(longitude * east, -latitude) for latitude, longitude in points]
    left, top = min(x for x, _ in flat), min(y for _, y in flat)
    wide, high = max(x for x, _ in flat) - left, max(y for _, y in flat) - top
    span = max(wide, high, 2e-4)
    margin, scale = 46.0, 908.0 / span
    left, top = left - (span - wide) / 2, top - (max(span * 0.5, high) - high) / 2
    height = max(span * 0.5, high) * scale + 2 * margin

    def at(latitude: float, longitude: float) -> tuple[float, float]:
        return margin + (longitude * east - left) * scale, margin + (-latitude - top) * scale

    lines = Markup("").join(
        Markup('<path class="track" d="{}"/>').format(charts.path([at(*point) for point in _thinned(track)]))
        for track in tracks
        if len(track) > 1
    )
    dots = Markup("").join(_dot(place, *at(place.latitude, place.longitude)) for place in places)
    metres = _round_length(span * 111_320.0 / 4)
    bar = metres / 111_320.0 * scale
    ruler = Markup(
        '<path class="ruler" d="M20 {0:.0f}h{1:.1f}"/><text x="20" y="{2:.0f}">{3}</text>'
        '<text x="980" y="34" text-anchor="end">north is up</text>'
    ).format(height - 16, bar, height - 24, _length(metres))
    svg = Markup('<svg viewBox="0 0 1000 {:.0f}" role="group" aria-label="Map of alerts">{}{}{}</svg>')
    return svg.format(height, lines, dots, ruler), _length(metres)


def _dot(place: Place, x: float, y: float) -> Markup:
    kind, radius = ("last", 8) if place.is_agent else ("place", 6)
    return Markup(
        '<a href="{}" aria-label="{}"><circle class="{}" cx="{:.1f}" cy="{:.1f}" r="{}"><title>{}</title></circle></a>'
    ).format(place.address, place.title, kind, x, y, radius, place.title)


def _thinned(track: Sequence[tuple[float, float]]) -> Sequence[tuple[float, float]]:
    return track[:: max(1, -(-len(track) // MOST_TRACK_POINTS))]


def _round_length(metres: float) -> float:
    decade = 10 ** math.floor(math.log10(max(metres, 1.0)))
    return max(k * decade for k in (1, 2, 5) if k * decade <= max(metres, 1.0))


def _length(metres: float) -> str:
    return f"{metres / 1000:g} km" if metres >= 1000 else f"{metres:g} m"
