"""The pictures of docs/concepts.md show what a run told and a mixture keeps, at its place."""

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from stillwatch.runs import Table
from stillwatch.settings import EventsConfig
from stillwatch.tools.pages import drawings

N, HZ = 400, 10.0
SVG = "{http://www.w3.org/2000/svg}"
EVENT = {
    "id": 7,
    "stream_s": 20.0,
    "end_s": 24.0,
    "duration_s": 4.0,
    "boxes": [[0.25, 0.5, 0.75, 1.0], [0, 0, 0.1, 0.1]],
}


class Tables:
    """A run of 40 s: 5 s of learning, then nothing, and an event from 20 to 24 s."""

    def events(self):
        return Table("events", tuple(EVENT), [EVENT])

    def scores(self):
        seconds = np.arange(N) / HZ
        rare = np.where((seconds >= 20.0) & (seconds <= 24.0), 1e9, 2.0)
        rows = [
            {"stream_s": float(s), "rarity": None if s < 5.0 else float(r)} for s, r in zip(seconds, rare, strict=True)
        ]
        return Table("scores", ("stream_s", "rarity"), rows)

    def pictures(self):
        return {7: b"\xff\xd8picture"}


def parts_of(text, name):
    return ElementTree.fromstring(text).iter(f"{SVG}{name}")


def test_outlines_stand_where_the_event_says_the_main_one_thickest():
    rects = [rect.attrib for rect in parts_of(drawings.surprise(b"picture", EVENT), "rect")][1:]
    assert [(r["x"], r["y"], r["width"], r["height"]) for r in rects] == [
        ("180", "270", "360", "270"), ("0", "0", "72", "54"),
    ]  # fmt: skip
    assert int(rects[0]["stroke-width"]) > int(rects[1]["stroke-width"])


def test_the_curve_crosses_the_lines_where_the_event_is():
    text = drawings.rarity(Tables(), [EVENT])
    (curve,) = parts_of(text, "polyline")
    points = np.array([[float(v) for v in point.split(",")] for point in curve.attrib["points"].split()])
    assert len(points) == N - 50  # what was learnt of was not judged
    lines = sorted(float(y) for y in re.findall(r"M64 ([\d.]+)H", text))
    assert len(lines) == 2  # 1 in 500 above 1 in 100
    assert int((points[:, 1] < lines[0]).sum()) == int((points[:, 1] < lines[1]).sum()) == 41
    assert f"1 in {EventsConfig().raise_rarity:.0f} opens an event" in text


def test_one_event_is_shown_with_each_frame_around_it():
    dots = list(parts_of(drawings.one_event(Tables(), EVENT), "circle"))
    assert len(dots) == round((4.0 + 2 * drawings.ROUND_S) * HZ) + 1


def test_what_is_kept_is_far_less_than_what_was_seen_and_has_the_rare_kind():
    text = drawings.memory()
    clumps = [c.attrib for c in parts_of(text, "circle") if "stroke" in c.attrib]
    assert 4 <= len(clumps) <= drawings.MEMORY
    assert f"kept are {len(clumps)} clumps" in text
    assert any(float(clump["cx"]) > 500 for clump in clumps)  # 3 % of the points lie there


def test_a_run_without_an_event_is_refused_in_words(tmp_path, monkeypatch):
    monkeypatch.setattr(drawings, "open_run", lambda path: type("Empty", (), {"events": lambda self: []})())
    with pytest.raises(SystemExit, match="without an event"):
        drawings.main("runs/quiet", str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()
