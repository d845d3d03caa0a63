"""The survey's page: one HTML file that needs nothing from outside.

Called by tools/survey/command.py. It must not compute what it shows.
"""

import base64
import colorsys
import html
from collections.abc import Callable

import cv2
import numpy as np

from stillwatch.tools.shared import words
from stillwatch.tools.survey.agreement import Agreement
from stillwatch.tools.survey.analysis import Found, SegmentsFound
from stillwatch.tools.survey.ground import SQUARE_METRES, Ground, map_html

THUMBNAIL_PX = 128
SWITCH = (
    "<input type=checkbox id=cut> <label class=note for=cut>show the segments of pictures by their clusters</label>"
)
STYLE = """
:root{color-scheme:light dark;--ground:#fff;--ink:#1d2733;--soft:#526070;--line:#dde3ea;--field:#f4f6f8;--track:#9aa7b4}
@media (prefers-color-scheme:dark){:root{--ground:#14191f;--ink:#e3e9ef;--soft:#9fb0c0;--line:#303a45;--field:#1c242c;
--track:#5d6b79}}
body{font:15px/1.5 system-ui,sans-serif;margin:0 auto;max-width:1000px;padding:1rem;color:var(--ink);
background:var(--ground)}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}table{border-collapse:collapse;width:100%}
td,th{padding:.25rem .5rem;text-align:right;border-bottom:1px solid var(--line)}
td:first-child,th:first-child{text-align:left}
.strip{display:flex;flex-wrap:wrap;gap:6px;margin:.3rem 0}.strip figure{margin:0;width:128px}.strip img{width:128px;
border-radius:3px}figure:target{outline:3px solid var(--track)}figcaption{font-size:11px;overflow-wrap:anywhere;
color:var(--soft)}.key{display:inline-block;width:.8em;height:.8em;border-radius:2px;margin-right:.4em}
.scroll{overflow-x:auto}svg{width:100%;height:auto;background:var(--field)}
.note{color:var(--soft)}td small{color:var(--soft);white-space:nowrap}.both{position:relative;display:block}
.both .cut{position:absolute;left:0;top:0;opacity:.75}#cut:not(:checked)~* .cut{display:none}
label.note{cursor:pointer}
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
    ground: Ground | None = None,
) -> str:
    """Return the page.

    captions : name of each item;  picture : item -> BGR or None;  dives : (n,) dive of each item
    positions : (n, 2) latitude, longitude, NaN where unknown, or None where items are not in a row;  notes : what was
    left out, and why;  cells : picture -> segment of each pixel, where segments were clustered
    ground : where positions are known
    """
    segments = found.segments
    named: set[int] = set()

    def figure(item: int, text: str = "") -> str:
        caption = html.escape(captions[item]) + (f"<br>{html.escape(text)}" if text else "")
        source = thumbnail(picture(item))
        image = f'<img src="{source}" alt="{html.escape(captions[item])}">' if source else ""
        if segments is not None and cells is not None:
            overlay = segment_overlay(cells(item), segments.of(item))
            image = f'<span class=both>{image}<img class=cut src="{overlay}" alt="its segments"></span>'
        name = "" if item in named else f" id=item-{item}"
        named.add(item)
        return f"<figure{name}>{image}<figcaption>{caption}</figcaption></figure>"

    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>",
        f"<title>Survey of {words.count(len(found.names), 'dive')}</title><style>{STYLE}</style>",
        f"<h1>Survey: {_size(found)}</h1>",
        *(f"<p class=note>{html.escape(note)}</p>" for note in notes),
        *(() if segments is None else (SWITCH,)),
        *([] if positions is None else ["<h2>Where</h2>", _where(found, dives, positions, captions)]),
        "<h2>How much of each</h2>",
        _shares(found),
        *(() if ground is None else (_ground(found, ground),)),
        *(() if segments is None else ("<h2>What pictures are made of</h2>", _mixes(segments))),
        *(("<h2>What each dive adds</h2>", _own(found)) if len(found.names) > 1 else ()),
        f"<h2>The oddest{'' if positions is not None else ' of the exemplars that were sent'}</h2><div class=strip>",
        *(figure(int(item), f"cluster {found.clusters[item]}") for item in found.oddest()),
        "</div><h2>Clusters</h2>",
    ]
    for k in range(found.n_clusters):
        parts.append(f"<h3>{_key(k)}Cluster {k}: {words.count(round(found.counts[:, k].sum()), 'item')}</h3>")
        for which, items in zip(("most", "least"), found.typical(k), strict=True):
            if len(items):
                parts += [f"<p class=note>{which} typical</p><div class=strip>", *map(figure, items.tolist()), "</div>"]
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


def _ground(found: Found, ground: Ground) -> str:
    """Return the table of ground by cluster and dive, with two standard deviations to either side."""
    unit = "m²" if ground.unit == SQUARE_METRES else "m"
    amounts = np.vstack([ground.amounts, ground.amounts.sum(axis=0)])
    deviations = np.vstack([ground.deviations, np.sqrt((ground.deviations**2).sum(axis=0))])
    totals = amounts.sum(axis=1)
    names = [*found.names, "all dives"] if len(found.names) > 1 else found.names
    rows = [f"<tr><th>cluster</th>{''.join(f'<th>{html.escape(name)}</th>' for name in names)}</tr>"]
    for k in range(found.n_clusters):
        cells = "".join(
            _amount(amounts[j, k], deviations[j, k], totals[j], unit) if totals[j] > 0.0 else "<td>unknown</td>"
            for j in range(len(names))
        )
        rows.append(f"<tr><td>{_key(k)}{k}</td>{cells}</tr>")
    rows.append(
        f"<tr><td>all</td>{''.join(f'<td>{_rounded(total)} {unit}</td>' for total in totals[: len(names)])}</tr>"
    )
    what = (
        "Square metres of ground seen, flat and by altitude and view; ground that pictures overlap on counts once, "
        "ground between them not at all"
        if ground.unit == SQUARE_METRES
        else "Metres of track, not area: half the way to each neighbour; gaps are nobody's. With altitudes "
        "and --view it is area"
    )
    return (
        f"<h3>On the ground</h3><p class=note>{what}. Of {ground.n_pictures.sum()} pictures. In small print two "
        "standard deviations to either side, by how much stretches of the track differ and how sure labels are; not "
        f"what navigation, altitude and view are wrong by.</p><div class=scroll><table>{''.join(rows)}</table></div>"
    )


def _amount(amount: float, deviation: float, total: float, unit: str) -> str:
    low, high = max(amount - 2.0 * deviation, 0.0), min(amount + 2.0 * deviation, total)
    return (
        f"<td>{_rounded(amount)} {unit}, {100 * amount / total:.0f} % "
        f"<small>{_rounded(low)} to {_rounded(high)}</small></td>"
    )


def _rounded(amount: float) -> str:
    """Return an amount with three digits, or whole."""
    digits = 0 if amount >= 100.0 or amount == 0.0 else 1 if amount >= 10.0 else 2
    return f"{amount:,.{digits}f}".replace(",", " ")


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


def _size(found: Found) -> str:
    """Return how many dives, items and clusters there are."""
    dives, items = words.count(len(found.names), "dive"), words.count(round(found.counts.sum()), "item")
    return f"{dives}, {items}, {words.count(found.n_clusters, 'cluster')}"


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
    if not np.isfinite(positions).any():
        return _grid(found, dives)
    figures = set(found.oddest().tolist())
    figures |= {int(i) for k in range(found.n_clusters) for part in found.typical(k) for i in part}
    return map_html(found.clusters, dives, found.names, positions, captions, colour_of, figures)


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
