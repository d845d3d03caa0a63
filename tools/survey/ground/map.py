"""The map of a survey's page: tracks by cluster in metres, drawn by Leaflet from inside the page, without tiles.

Called by tools/survey/page.py. Names come from files: they reach the page as text, never as markup.
"""

import importlib.resources
import json
from collections.abc import Callable

import numpy as np

from stillwatch.tools.survey.ground.tracks import flat_metres, ways

MOST_POINTS = 20_000
# Without scripts the map is a picture of no more points than this.
MOST_STILL, STILL_PX = 2_000, 900

STYLE = """
#map{height:min(70vh,600px);border-radius:3px;background:var(--field);font:inherit;z-index:0}
.leaflet-container a{color:var(--ink)}.leaflet-bar a,.leaflet-control-scale-line,.leaflet-tooltip,.where,
.leaflet-popup-content-wrapper,.leaflet-popup-tip{background:var(--ground)!important;color:var(--ink)!important;
border-color:var(--line)!important}.leaflet-tooltip::before{display:none}.where{padding:0 .4rem;font-size:12px;
font-variant-numeric:tabular-nums}.leaflet-tooltip.dive{background:none!important;border:0;box-shadow:none;
font-weight:600;padding:0}.shown{display:flex;flex-wrap:wrap;gap:.2rem 1rem;margin:.4rem 0}.shown label{cursor:pointer}
.leaflet-control-scale-line{text-shadow:none}
"""


def map_html(
    clusters: np.ndarray,
    dives: np.ndarray,
    names: list[str],
    positions: np.ndarray,
    captions: list[str],
    colour_of: Callable[[int], str],
    figures: set[int],
) -> str:
    """Return the map: pan, zoom, a scale bar, the position under the pointer, clusters and dives to show or hide.

    clusters, dives : (n,) int64;  names : of dives;  positions : (n, 2) degrees, NaN where unknown, some known
    captions : of pictures;  figures : pictures that the page shows, as elements of the id item-N
    """
    known = np.flatnonzero(np.isfinite(positions).all(axis=1))
    drawn = known[:: max(1, -(-len(known) // MOST_POINTS))]
    east, north = flat_metres(positions[drawn])
    data = {
        "x": np.round(east, 2).tolist(),
        "y": np.round(north, 2).tolist(),
        "dive": dives[drawn].tolist(),
        "cluster": clusters[drawn].tolist(),
        "name": [captions[i] for i in drawn],
        "item": [int(i) if int(i) in figures else -1 for i in drawn],
        "dives": names,
        "colours": [colour_of(k) for k in range(int(clusters.max()) + 1)],
        "tracks": unbroken(dives[drawn], positions[drawn]),
        "degrees": positions[drawn[0]].tolist(),
        "at": [float(east[0]), float(north[0])],
        "middle": float(0.5 * (positions[drawn, 0].min() + positions[drawn, 0].max())),
    }
    text = json.dumps(data).replace("<", "\\u003c")
    unknown = len(positions) - len(known)
    note = f" Without a position, and so not on the map: {unknown}." if unknown else ""
    return (
        f"<style>{_leaflet('leaflet.css')}{STYLE}</style>"
        "<div id=map role=application aria-label='tracks by cluster'></div><div id=shown></div>"
        f"<noscript>{still(clusters[drawn], east, north, colour_of)}</noscript>"
        f"<p class=note>{len(drawn)} of {len(known)} positions, north up, in metres; drag to move, + and - or, "
        f"after a click, the wheel for closer and farther. A dive begins at its name.{note}</p>"
        f"<script type=application/json id=map-data>{text}</script>"
        f"<script>/*\n{_static('leaflet-license.txt')}*/\n{_leaflet('leaflet.js')}</script>"
        f"<script>{_static('map.js')}</script>"
    )


def unbroken(dives: np.ndarray, positions: np.ndarray) -> list[list[int]]:
    """Return the runs of points that a line joins, as [first, after the last]: of one dive, without gaps."""
    starts = [0]
    for place in np.flatnonzero(np.diff(dives)) + 1:
        starts.append(int(place))
    runs = []
    for start, end in zip(starts, [*starts[1:], len(dives)], strict=True):
        _, is_gap = ways(positions[start:end])
        cuts = [start, *(start + int(i) + 1 for i in np.flatnonzero(is_gap)), end]
        runs += [[a, b] for a, b in zip(cuts, cuts[1:], strict=False) if b - a > 1]
    return runs


def still(clusters: np.ndarray, east: np.ndarray, north: np.ndarray, colour_of: Callable[[int], str]) -> str:
    """Return the tracks as a picture: SVG, metres to one scale both ways, north up."""
    step = max(1, -(-len(east) // MOST_STILL))
    x, y = east[::step] - east.min(), north.max() - north[::step]
    span = max(float(np.ptp(east)), float(np.ptp(north)), 1e-9)
    scale = STILL_PX / span
    dots = "".join(
        f'<circle cx="{20 + scale * a:.1f}" cy="{20 + scale * b:.1f}" r="4" fill="{colour_of(int(k))}"/>'
        for a, b, k in zip(x, y, clusters[::step], strict=True)
    )
    width, height = (max(60.0, scale * float(np.ptp(side)) + 40.0) for side in (east, north))
    return (
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="tracks by cluster">{dots}</svg>'
        f"<p class=note>The longer side is {span:.0f} m.</p>"
    )


def _static(name: str) -> str:
    return importlib.resources.files("stillwatch.tools.survey.ground").joinpath("static", name).read_text("utf-8")


def _leaflet(name: str) -> str:
    """Return a file of Leaflet without what it would load from beside it: marker pictures, a source map."""
    text = _static(name)
    for image in ("layers.png", "layers-2x.png", "marker-icon.png"):
        text = text.replace(f"url(images/{image})", "none")
    return text.split("//# sourceMappingURL")[0]
