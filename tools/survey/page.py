"""The survey's page: one HTML file that needs nothing from outside.

Called by tools/survey/command.py. It must not compute what it shows.
"""

import base64
import colorsys
import html
from collections.abc import Callable

import cv2
import numpy as np

from stillwatch.tools.survey.agreement import Agreement
from stillwatch.tools.survey.analysis import Found, SegmentsFound, track_metres

THUMBNAIL_PX = 128
MAP_PX = 900
MOST_POINTS = 20_000
SWITCH = (
    "<input type=checkbox id=cut> <label class=note for=cut>show the segments of pictures by their clusters</label>"
)
# The map is looked at closely by buttons and by dragging; without scripts it is a picture.
MAP_SCRIPT = """<p><button data-zoom=.5>closer</button> <button data-zoom=2>farther</button></p><script>(()=>{
const map=document.querySelector('svg.map'),box=map.viewBox.baseVal,all=[box.width,box.height];let from=null;
const settle=()=>{box.x=Math.max(0,Math.min(box.x,all[0]-box.width));
box.y=Math.max(0,Math.min(box.y,all[1]-box.height));
map.style.setProperty('--size',box.width/all[0]);map.style.touchAction=box.width<all[0]?'none':'auto'};
document.querySelectorAll('[data-zoom]').forEach(button=>button.onclick=()=>{
const width=Math.min(all[0],box.width*button.dataset.zoom),height=width*all[1]/all[0];
box.x+=(box.width-width)/2;box.y+=(box.height-height)/2;box.width=width;box.height=height;settle()});
map.onpointerdown=event=>{from=[event.clientX,event.clientY,box.x,box.y];map.setPointerCapture(event.pointerId)};
map.onpointerup=()=>{from=null};
map.onpointermove=event=>{if(!from)return;const unit=box.width/map.clientWidth;
box.x=from[2]-(event.clientX-from[0])*unit;box.y=from[3]-(event.clientY-from[1])*unit;settle()};
})()</script>"""
STYLE = """
body{font:15px/1.5 system-ui,sans-serif;margin:0 auto;max-width:1000px;padding:1rem;color:#1d2733;background:#fff}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}table{border-collapse:collapse;width:100%}
td,th{padding:.25rem .5rem;text-align:right;border-bottom:1px solid #dde3ea}
td:first-child,th:first-child{text-align:left}
.strip{display:flex;flex-wrap:wrap;gap:6px;margin:.3rem 0}.strip figure{margin:0;width:128px}.strip img{width:128px;
border-radius:3px}figcaption{font-size:11px;overflow-wrap:anywhere;color:#526070}.key{display:inline-block;width:.8em;
height:.8em;border-radius:2px;margin-right:.4em}.scroll{overflow-x:auto}svg{width:100%;height:auto;background:#f4f6f8}
.note{color:#526070}td small{color:#526070;white-space:nowrap}.both{position:relative;display:block}
.both .cut{position:absolute;left:0;top:0;opacity:.75}#cut:not(:checked)~* .cut{display:none}
label.note{cursor:pointer}.map circle{r:calc(4px*var(--size,1))}.map text{font-size:calc(24px*var(--size,1))}
button{font:inherit;padding:.2rem .8rem}
"""


def colour_of(k: int) -> str:
    """Return the colour of a cluster: hues a golden angle apart, so that neighbours differ."""
    return f"hsl({(k * 137.508) % 360:.0f} {62 if k % 2 else 78}% {42 if k % 3 else 55}%)"


def bgr_of(k: int) -> tuple[int, int, int]:
    """Return the colour of a cluster of segments, as an overlay has it: as `colour_of`, half a turn away."""
    red, green, blue = colorsys.hls_to_rgb(((k * 137.508 + 180.0) % 360.0) / 360.0, 0.5, 0.7)
    return round(255 * blue), round(255 * green), round(255 * red)


def css_of(k: int) -> str:
    """Return `bgr_of` as the page has it."""
    blue, green, red = bgr_of(k)
    return f"rgb({red},{green},{blue})"


def segment_overlay(cells: np.ndarray, clusters: np.ndarray) -> str:
    """Return a picture's segments, each in its cluster's colour, as a data URI of a PNG, longer side 128 px.

    cells : (height, width) int64, the segment of each pixel;  clusters : the cluster of each segment
    """
    ratio = min(1.0, THUMBNAIL_PX / max(cells.shape))
    size = (max(1, round(cells.shape[1] * ratio)), max(1, round(cells.shape[0] * ratio)))
    small = cv2.resize(cells.astype(np.int32), size, interpolation=cv2.INTER_NEAREST)
    palette = np.array([bgr_of(int(k)) for k in clusters], np.uint8)
    return "data:image/png;base64," + base64.b64encode(cv2.imencode(".png", palette[small])[1].tobytes()).decode()


def thumbnail(image: np.ndarray | None) -> str:
    """Return a picture as a data URI of a JPEG, longer side 128 px; empty where there is none."""
    if image is None:
        return ""
    ratio = min(1.0, THUMBNAIL_PX / max(image.shape[:2]))
    size = (max(1, round(image.shape[1] * ratio)), max(1, round(image.shape[0] * ratio)))
    small = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    data = cv2.imencode(".jpg", small, [cv2.IMWRITE_JPEG_QUALITY, 80])[1].tobytes()
    return "data:image/jpeg;base64," + base64.b64encode(data).decode()


def render(
    found: Found,
    captions: list[str],
    picture: Callable[[int], np.ndarray | None],
    dives: np.ndarray,
    positions: np.ndarray | None,
    agreed: Agreement | None,
    notes: list[str],
    cells: Callable[[int], np.ndarray] | None = None,
) -> str:
    """Return the page.

    captions : name of each item;  picture : item -> BGR or None;  dives : (n,) dive of each item
    positions : (n, 2) latitude, longitude, NaN where unknown, or None where items are not in a row;  notes : what was
    left out, and why;  cells : picture -> segment of each pixel, where segments were clustered
    """
    segments = found.segments

    def figure(item: int, text: str = "") -> str:
        caption = html.escape(captions[item]) + (f"<br>{html.escape(text)}" if text else "")
        source = thumbnail(picture(item))
        image = f'<img src="{source}" alt="{html.escape(captions[item])}">' if source else ""
        if segments is not None and cells is not None:
            overlay = segment_overlay(cells(item), segments.of(item))
            image = f'<span class=both>{image}<img class=cut src="{overlay}" alt="its segments"></span>'
        return f"<figure>{image}<figcaption>{caption}</figcaption></figure>"

    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>",
        f"<title>Survey of {len(found.names)} dives</title><style>{STYLE}</style>",
        f"<h1>Survey: {len(found.names)} dives, {found.counts.sum():.0f} items, {found.n_clusters} clusters</h1>",
        *(f"<p class=note>{html.escape(note)}</p>" for note in notes),
        *(() if segments is None else (SWITCH,)),
        *([] if positions is None else ["<h2>Where</h2>", _where(found, dives, positions, captions)]),
        "<h2>How much of each</h2>",
        _shares(found),
        *_metres(found, dives, positions),
        *(() if segments is None else ("<h2>What pictures are made of</h2>", _mixes(segments))),
        "<h2>What each dive adds</h2>",
        _own(found),
        f"<h2>The oddest{'' if positions is not None else ' of the exemplars that were sent'}</h2><div class=strip>",
        *(figure(int(item), f"cluster {found.clusters[item]}") for item in found.oddest()),
        "</div><h2>Clusters</h2>",
    ]
    for k in range(found.n_clusters):
        most, least = found.typical(k)
        parts.append(f"<h3>{_key(k)}Cluster {k}: {found.counts[:, k].sum():.0f} items</h3><div class=strip>")
        parts += [figure(int(item)) for item in most]
        if len(least):
            parts.append("</div><p class=note>least typical</p><div class=strip>")
            parts += [figure(int(item)) for item in least]
        parts.append("</div>")
    if agreed is not None:
        parts += ["<h2>Against the labels</h2>", _agreement(agreed)]
    return "\n".join([*parts, "</html>"])


def _key(k: int, colour: Callable[[int], str] = colour_of) -> str:
    return f'<span class=key style="background:{colour(k)}"></span>'


def _shares(found: Found) -> str:
    """Return the table of shares by cluster and dive, in percent, with two standard deviations to either side."""
    mean, spread = found.shares()
    low, high = np.maximum(mean - 2.0 * spread, 0.0), np.minimum(mean + 2.0 * spread, 1.0)
    heads = "".join(f"<th>{html.escape(name)}</th>" for name in found.names)
    items = "".join(f"<td>{n:.0f}</td>" for n in found.counts.sum(axis=1))
    rows = [f"<tr><th>cluster</th><th>items</th>{heads}</tr>"]
    for k in range(found.n_clusters):
        cells = "".join(
            f"<td>{100 * mean[j, k]:.1f} <small>{100 * low[j, k]:.1f} to {100 * high[j, k]:.1f}</small></td>"
            for j in range(len(found.names))
        )
        rows.append(f"<tr><td>{_key(k)}{k}</td><td>{found.counts[:, k].sum():.0f}</td>{cells}</tr>")
    rows.append(f"<tr><td>items</td><td>{found.counts.sum():.0f}</td>{items}</tr>")
    return (
        "<p class=note>Percent of a dive's items; in small print two standard deviations of the posterior to either "
        f"side.</p><div class=scroll><table>{''.join(rows)}</table></div>"
    )


def _metres(found: Found, dives: np.ndarray, positions: np.ndarray | None) -> list[str]:
    """Return the table of metres of track by cluster and dive, where positions are known."""
    if positions is None or not np.isfinite(positions).any():
        return []
    metres = track_metres(found, dives, positions)
    rows = [f"<tr><th>cluster</th>{''.join(f'<th>{html.escape(name)}</th>' for name in found.names)}</tr>"]
    for k in range(found.n_clusters):
        rows.append(f"<tr><td>{_key(k)}{k}</td>{''.join(f'<td>{way:.0f}</td>' for way in metres[:, k])}</tr>")
    return [
        "<p class=note>Metres of track: half the way to each neighbour; gaps are nobody's.</p>"
        f"<div class=scroll><table>{''.join(rows)}</table></div>"
    ]


def _mixes(segments: SegmentsFound) -> str:
    """Return the table of what pictures of each cluster are made of, in percent of their segments."""
    heads = "".join(f"<th>{_key(k, css_of)}{k}</th>" for k in range(segments.mixes.shape[1]))
    rows = [f"<tr><th>cluster</th>{heads}</tr>"]
    for k, mix in enumerate(segments.mixes):
        rows.append(f"<tr><td>{_key(k)}{k}</td>{''.join(f'<td>{100 * share:.0f}</td>' for share in mix)}</tr>")
    return (
        "<p class=note>Percent of the segments of a cluster's pictures, by cluster of segments.</p>"
        f"<div class=scroll><table>{''.join(rows)}</table></div>"
    )


def _own(found: Found) -> str:
    """Return the clusters that each dive has alone, with their items: of few items it may be chance."""
    items = [
        f"<li>{html.escape(name)}: "
        + (
            ", ".join(f"{_key(k)}cluster {k} ({found.counts[j, k]:.0f})" for k in own)
            if own
            else "nothing that no other dive has"
        )
        + "</li>"
        for j, (name, own) in enumerate(zip(found.names, found.own_clusters(), strict=True))
    ]
    return f"<p class=note>In parentheses its items of that cluster.</p><ul>{''.join(items)}</ul>"


def _where(found: Found, dives: np.ndarray, positions: np.ndarray, captions: list[str]) -> str:
    return _map(found, dives, positions, captions) if np.isfinite(positions).any() else _grid(found, dives)


def _map(found: Found, dives: np.ndarray, positions: np.ndarray, captions: list[str]) -> str:
    """Return the tracks as SVG, metres to one scale both ways, north up; at most 20,000 points are drawn."""
    known = np.flatnonzero(np.isfinite(positions).all(axis=1))
    drawn = known[:: max(1, -(-len(known) // MOST_POINTS))]
    latitude, longitude = positions[drawn].T
    x = (longitude - longitude.min()) * np.cos(np.radians(latitude.mean()))
    y = latitude.max() - latitude
    span = max(float(x.max()), float(y.max()), 1e-9)
    height = max(60.0, MAP_PX * float(y.max()) / span + 40.0)
    width = max(60.0, MAP_PX * float(x.max()) / span + 40.0)
    dots = "".join(
        f'<circle cx="{20 + MAP_PX * a / span:.1f}" cy="{20 + MAP_PX * b / span:.1f}" r="4" '
        f'fill="{colour_of(int(found.clusters[i]))}"><title>{html.escape(captions[i])}: cluster {found.clusters[i]}'
        "</title></circle>"
        for a, b, i in zip(x, y, drawn, strict=True)
    )
    first = [place for place in (np.flatnonzero(dives[drawn] == j)[:1] for j in range(len(found.names))) if len(place)]
    names = "".join(
        f'<text x="{20 + MAP_PX * x[i] / span:.1f}" y="{10 + MAP_PX * y[i] / span:.1f}" '
        f'text-anchor="{"end" if x[i] > 0.6 * span else "start"}">{html.escape(found.names[dives[drawn[i]]])}</text>'
        for (i,) in first
    )
    metres = span * 111_320.0
    unknown = len(positions) - len(known)
    note = f" {unknown} items have no position and are not on the map." if unknown else ""
    return (
        f'<svg class=map viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="tracks by cluster">'
        f"{dots}{names}</svg>"
        f"{MAP_SCRIPT}"
        f"<p class=note>{len(drawn)} of {len(known)} positions; the longer side is {metres:.0f} m; north is up; a dive "
        f"begins below its name.{note}</p>"
    )


def _grid(found: Found, dives: np.ndarray) -> str:
    """Return a row of cells for each dive, in the order of its pictures, where there are no positions."""
    rows = []
    for j, name in enumerate(found.names):
        own = found.clusters[dives == j]
        own = own[:: max(1, -(-len(own) // 600))]
        width = 1000.0 / max(len(own), 1)
        cells = "".join(
            f'<rect x="{i * width:.2f}" width="{width + 0.05:.2f}" height="18" fill="{colour_of(int(k))}"/>'
            for i, k in enumerate(own)
        )
        rows.append(
            f'<div>{html.escape(name)}<svg viewBox="0 0 1000 18" preserveAspectRatio="none" style="height:18px">'
            f"{cells}</svg></div>"
        )
    return "".join(rows) + "<p class=note>No positions: each dive from its first picture to its last.</p>"


def _agreement(agreed: Agreement) -> str:
    head = "".join(f"<th>{_key(k)}{k}</th>" for k in range(agreed.confusion.shape[1]))
    rows = [f"<tr><th>label</th>{head}</tr>"]
    for name, row in zip(agreed.classes, agreed.confusion, strict=True):
        rows.append(f"<tr><td>{html.escape(name)}</td>{''.join(f'<td>{n}</td>' for n in row)}</tr>")
    figures = ", ".join(f"{name.replace('_', '-')} {value:.3f}" for name, value in agreed.figures().items())
    return f"<p>{figures}</p><div class=scroll><table>{''.join(rows)}</table></div>"
