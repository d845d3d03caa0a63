"""The survey's page: one HTML file that needs nothing from outside.

Called by tools/survey/command.py. It must not compute what it shows.
"""

import base64
import html
from collections.abc import Callable

import cv2
import numpy as np

from stillwatch.tools.survey.agreement import Agreement
from stillwatch.tools.survey.analysis import Found

THUMBNAIL_PX = 128
MAP_PX = 900
MOST_POINTS = 20_000
STYLE = """
body{font:15px/1.5 system-ui,sans-serif;margin:0 auto;max-width:1000px;padding:1rem;color:#1d2733;background:#fff}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}table{border-collapse:collapse;width:100%}
td,th{padding:.25rem .5rem;text-align:right;border-bottom:1px solid #dde3ea}
td:first-child,th:first-child{text-align:left}
.strip{display:flex;flex-wrap:wrap;gap:6px;margin:.3rem 0}.strip figure{margin:0;width:128px}.strip img{width:128px;
border-radius:3px}figcaption{font-size:11px;overflow-wrap:anywhere;color:#526070}.key{display:inline-block;width:.8em;
height:.8em;border-radius:2px;margin-right:.4em}.scroll{overflow-x:auto}svg{width:100%;height:auto;background:#f4f6f8}
.note{color:#526070}
"""


def colour_of(k: int) -> str:
    """Return the colour of a cluster: hues a golden angle apart, so that neighbours differ."""
    return f"hsl({(k * 137.508) % 360:.0f} {62 if k % 2 else 78}% {42 if k % 3 else 55}%)"


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
) -> str:
    """Return the page.

    captions : name of each item;  picture : item -> BGR or None;  dives : (n,) dive of each item
    positions : (n, 2) latitude, longitude, NaN where unknown, or None where items are not in a row;  notes : what was
    left out, and why
    """

    def figure(item: int, text: str = "") -> str:
        caption = html.escape(captions[item]) + (f"<br>{html.escape(text)}" if text else "")
        source = thumbnail(picture(item))
        image = f'<img src="{source}" alt="{html.escape(captions[item])}">' if source else ""
        return f"<figure>{image}<figcaption>{caption}</figcaption></figure>"

    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>",
        f"<title>Survey of {len(found.names)} dives</title><style>{STYLE}</style>",
        f"<h1>Survey: {len(found.names)} dives, {found.counts.sum():.0f} items, {found.n_clusters} clusters</h1>",
        *(f"<p class=note>{html.escape(note)}</p>" for note in notes),
        *([] if positions is None else ["<h2>Where</h2>", _where(found, dives, positions)]),
        "<h2>How much of each</h2>",
        _shares(found),
        "<h2>What each dive adds</h2>",
        _own(found),
        "<h2>The oddest</h2><div class=strip>",
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


def _key(k: int) -> str:
    return f'<span class=key style="background:{colour_of(k)}"></span>'


def _shares(found: Found) -> str:
    """Return the table of shares by dive, in percent, with twice their standard deviation."""
    mean, spread = found.shares()
    head = "".join(f"<th>{_key(k)}{k}</th>" for k in range(mean.shape[1]))
    rows = [f"<tr><th>dive</th><th>items</th>{head}</tr>"]
    for j, name in enumerate(found.names):
        cells = "".join(
            f"<td>{100 * m:.1f}&nbsp;&plusmn;&nbsp;{200 * s:.1f}</td>" for m, s in zip(mean[j], spread[j], strict=True)
        )
        rows.append(f"<tr><td>{html.escape(name)}</td><td>{found.counts[j].sum():.0f}</td>{cells}</tr>")
    return (
        f"<p class=note>Percent of a dive's items, &plusmn; two standard deviations of the posterior.</p>"
        f"<div class=scroll><table>{''.join(rows)}</table></div>"
    )


def _own(found: Found) -> str:
    items = [
        f"<li>{html.escape(name)}: "
        + (", ".join(f"{_key(k)}cluster {k}" for k in own) if own else "nothing that no other dive has")
        + "</li>"
        for name, own in zip(found.names, found.own_clusters(), strict=True)
    ]
    return f"<ul>{''.join(items)}</ul>"


def _where(found: Found, dives: np.ndarray, positions: np.ndarray) -> str:
    return _map(found, positions) if np.isfinite(positions).any() else _grid(found, dives)


def _map(found: Found, positions: np.ndarray) -> str:
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
        f'fill="{colour_of(int(k))}"/>'
        for a, b, k in zip(x, y, found.clusters[drawn], strict=True)
    )
    metres = span * 111_320.0
    unknown = len(positions) - len(known)
    note = f" {unknown} items have no position and are not on the map." if unknown else ""
    return (
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="tracks by cluster">{dots}</svg>'
        f"<p class=note>{len(drawn)} of {len(known)} positions; the longer side is {metres:.0f} m; north is up.{note}"
        "</p>"
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
