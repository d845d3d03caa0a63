"""Draws the pictures of docs/concepts.md out of a run of a synthetic world and of a mixture that learns.

Run as a program by `make drawings`: `drawings RUN DIR` writes four SVG files into DIR. Nothing in them is made up: each
curve, outline and clump is what the agent told, or what the learner keeps.
"""

import base64
import pathlib
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from stillwatch.learn import MemoryBoundedMixture
from stillwatch.runs import RunTables, open_run
from stillwatch.settings import EventsConfig

WIDTH, HEIGHT = 720, 300
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 34, 44
INK, SOFT, BLUE, RED, WASH = "#1c2530", "#66707c", "#17677a", "#c3431a", "#f1e3dc"
MOST_RARE = 1e5  # the end of the axis: a law fitted to a minute says no more
ROUND_S = 4.0  # shown before and behind an event
POINTS, MEMORY = 20_000, 60


def main(run: str, folder: str) -> None:
    """Write the drawings."""
    tables = open_run(run)
    events = list(tables.events())
    if not events:
        raise SystemExit(f"{run}: a run without an event shows nothing")
    shown = max(events, key=lambda event: event["duration_s"])
    out = pathlib.Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    drawings = {
        "surprise": surprise(tables.pictures()[shown["id"]], shown),
        "rarity": rarity(tables, events),
        "event": one_event(tables, shown),
        "memory": memory(),
    }
    for name, text in drawings.items():
        (out / f"{name}.svg").write_text(text)


def surprise(picture: bytes, event: dict[str, Any]) -> str:
    """Draw an event's picture with what the agent outlined on it."""
    height = WIDTH * 3 // 4
    data = base64.b64encode(picture).decode()
    parts = [f'<image href="data:image/jpeg;base64,{data}" width="{WIDTH}" height="{height}"/>']
    for place, (x0, y0, x1, y1) in enumerate(event["boxes"]):
        corner, width, height_ = (x0 * WIDTH, y0 * height), (x1 - x0) * WIDTH, (y1 - y0) * height
        size = f'x="{corner[0]:.0f}" y="{corner[1]:.0f}" width="{width:.0f}" height="{height_:.0f}"'
        parts.append(f'<rect {size} rx="6" fill="none" stroke="{RED}" stroke-width="{3 if place else 6}"/>')
    return _svg(parts, height, "A frame of the road world; what is unlike all that its place has shown is outlined")


def rarity(tables: RunTables, events: Iterable[dict[str, Any]]) -> str:
    """Draw how rare each frame of the run was, with its events."""
    scores = tables.scores()
    seconds, rare = scores["stream_s"].astype(float), scores["rarity"].astype(float)
    axes = _Axes(0.0, float(seconds.max()))
    learning = np.isnan(rare)
    until = float(seconds[~learning].min()) if (~learning).any() else 0.0
    parts = [axes.band(0.0, until, "#e6e9ec"), axes.note(until / 2, "learns", "middle")]
    for event in events:
        parts += [
            axes.band(event["stream_s"], event["end_s"], WASH),
            axes.note(event["stream_s"], f"event {event['id']}"),
        ]
    parts += [axes.line(seconds[~learning], rare[~learning]), *axes.frame()]
    return _svg(parts, HEIGHT, "How rare each frame was: one in N, over the seconds of the run; rare ones are an event")


def one_event(tables: RunTables, event: dict[str, Any]) -> str:
    """Draw one event from frame to frame: what opened it, kept it open, ended it."""
    scores = tables.scores()
    seconds, rare = scores["stream_s"].astype(float), scores["rarity"].astype(float)
    from_s, to_s = event["stream_s"] - ROUND_S, event["end_s"] + ROUND_S
    inside = (seconds >= from_s) & (seconds <= to_s) & ~np.isnan(rare)
    axes = _Axes(float(seconds[inside].min()), float(seconds[inside].max()))
    parts = [axes.band(event["stream_s"], event["end_s"], WASH), axes.note(event["stream_s"], "begins")]
    parts += [axes.note(event["end_s"], "over"), axes.line(seconds[inside], rare[inside])]
    parts += [axes.dot(x, y) for x, y in zip(seconds[inside], rare[inside], strict=True)]
    return _svg([*parts, *axes.frame()], HEIGHT, "One event, frame by frame, with the lines that open and end it")


def memory() -> str:
    """Draw what a mixture keeps of a stream: clumps in place of points."""
    rng = np.random.default_rng(4)
    centres = np.array([[-6.0, 1.5], [-1.5, -1.5], [2.5, 2.0], [7.0, -1.0]])
    rows = rng.normal(centres[rng.choice(4, POINTS, p=[0.5, 0.3, 0.17, 0.03])], [1.3, 0.7])
    mixture = MemoryBoundedMixture(memory=MEMORY, horizon=POINTS)
    for start in range(0, POINTS, 500):
        mixture.partial_fit(rows[start : start + 500])
    mixture.flush()
    kept = mixture.clumps_
    counts, means = kept["count"], kept["mean"]
    scale = (WIDTH - 40) / 24.0
    x, y = WIDTH / 2 + scale * rows[:, 0] - 10, HEIGHT / 2 - scale * rows[:, 1]
    some = rng.choice(POINTS, 1200, replace=False)
    parts = [f'<circle cx="{x[i]:.1f}" cy="{y[i]:.1f}" r="1.2" fill="{SOFT}" opacity=".45"/>' for i in some]
    for count, (a, b) in zip(counts, means, strict=True):
        place = f'cx="{WIDTH / 2 + scale * a - 10:.1f}" cy="{HEIGHT / 2 - scale * b:.1f}"'
        radius = 2.5 + 0.45 * np.sqrt(count)
        parts.append(f'<circle {place} r="{radius:.1f}" fill="{BLUE}" fill-opacity=".3" stroke="{BLUE}"/>')
    told = f"{POINTS // 1000} thousand points were seen, some are drawn; kept are {len(counts)} clumps and points"
    parts.append(_text(16, 22, told))
    return _svg(parts, HEIGHT, told)


class _Axes:
    """Seconds to the right, one frame in N upwards, in equal steps for equal factors."""

    def __init__(self, from_s: float, to_s: float):
        self._from_s, self._to_s = from_s, to_s

    def x(self, second: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (second - self._from_s) / (self._to_s - self._from_s)

    def y(self, rare: float) -> float:
        height = HEIGHT - TOP - BOTTOM
        return TOP + height * float(1.0 - np.log(np.clip(rare, 1.0, MOST_RARE)) / np.log(MOST_RARE))

    def line(self, seconds: np.ndarray, rare: np.ndarray) -> str:
        points = " ".join(f"{self.x(s):.1f},{self.y(r):.1f}" for s, r in zip(seconds, rare, strict=True))
        return f'<polyline points="{points}" fill="none" stroke="{BLUE}" stroke-width="1.6"/>'

    def dot(self, second: float, rare: float) -> str:
        return f'<circle cx="{self.x(second):.1f}" cy="{self.y(rare):.1f}" r="2.4" fill="{BLUE}"/>'

    def band(self, from_s: float, to_s: float, colour: str) -> str:
        left, width = self.x(from_s), max(self.x(to_s) - self.x(from_s), 1.5)
        size = f'width="{width:.1f}" height="{HEIGHT - TOP - BOTTOM}"'
        return f'<rect x="{left:.1f}" y="{TOP}" {size} fill="{colour}"/>'

    def note(self, second: float, text: str, anchor: str = "start") -> str:
        return _text(self.x(second), TOP - 8, text, anchor)

    def frame(self) -> list[str]:
        base, right, settings = HEIGHT - BOTTOM, WIDTH - RIGHT, EventsConfig()
        parts = [f'<path d="M{LEFT} {TOP}V{base}H{right}" fill="none" stroke="{SOFT}"/>']
        for rare in (1.0, 10.0, 100.0, 1e3, 1e4, 1e5):
            label = f"1 in {rare:,.0f}".replace(",", "\u2009") if rare < MOST_RARE else "rarer"
            parts.append(_text(LEFT - 6, self.y(rare) + 4, label, "end", SOFT, 11))
        for rare, text in ((settings.raise_rarity, "opens an event"), (settings.clear_rarity, "keeps it open")):
            parts.append(f'<path d="M{LEFT} {self.y(rare):.1f}H{right}" stroke="{RED}" stroke-dasharray="5 4"/>')
            parts.append(_text(LEFT + 6, self.y(rare) - 4, f"1 in {rare:.0f} {text}", "start", RED, 11))
        long_s = self._to_s - self._from_s
        step = next(step for step in (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 3600) if long_s / step <= 10)
        for second in np.arange(np.ceil(self._from_s / step) * step, self._to_s, step):
            parts.append(_text(self.x(second), base + 16, f"{second:.0f} s", "middle", SOFT, 11))
        return parts


def _text(x: float, y: float, text: str, anchor: str = "start", colour: str = INK, size: int = 14) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" font-size="{size}">{text}</text>'


def _svg(parts: Iterable[str], height: int, title: str) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" role="img">'
    )
    return f'{head}<title>{title}</title><rect width="{WIDTH}" height="{height}" fill="#fff"/>{"".join(parts)}</svg>\n'


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
