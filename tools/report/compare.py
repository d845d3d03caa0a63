"""Compares two runs: their events, their models and their novelty, in a table, as JSON and as a page with plots.

The `compare` command; replay uses it for "what would have happened". It must not run anything.
"""

import argparse
import pathlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stillwatch.tools.report import charts as c
from stillwatch.tools.report.cards import event_card, numbers_of
from stillwatch.tools.report.data import Event, ReportData, read_report
from stillwatch.tools.report.learners import MODELS, in_order, model_view
from stillwatch.tools.report.style import page
from stillwatch.tools.report.timeline import labeller
from stillwatch.tools.shared import existing, print_json, words, write_result

MATCH_FRAMES = 8  # two events are one and the same if their starts are this near, or their spans overlap


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", type=existing, metavar="RUN_A", help="run folder, ground folder or recording")
    parser.add_argument("b", type=existing, metavar="RUN_B", help="the other one")
    parser.add_argument("--out", metavar="FILE", help="write the comparison as a page with plots")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")


def main(args: argparse.Namespace) -> int:
    result = compare_folders(pathlib.Path(args.a), pathlib.Path(args.b))
    if args.out:
        write_page(result, pathlib.Path(args.out))
    if args.json:
        print_json(as_json(result))
    else:
        tell_comparison(result)
        if args.out:
            print(args.out)
    return 0


@dataclass
class RunComparison:
    """Two runs side by side."""

    a: ReportData
    b: ReportData
    both: list[tuple[Event, Event]] = field(default_factory=list)
    only_a: list[Event] = field(default_factory=list)
    only_b: list[Event] = field(default_factory=list)
    config: list[tuple[str, str, str]] = field(default_factory=list)
    correlation: float | None = None


def compare_folders(a: pathlib.Path, b: pathlib.Path) -> RunComparison:
    """Read both and match their events by frame; LogError where a folder holds no run."""
    result = RunComparison(read_report(a), read_report(b))
    left = list(result.b.events)
    for event in result.a.events:
        match = next((other for other in left if _same_event(event, other)), None)
        if match is None:
            result.only_a.append(event)
        else:
            left.remove(match)
            result.both.append((event, match))
    result.only_b = left
    result.config = _config_differences(result.a.run.config_text, result.b.run.config_text)
    result.correlation = _correlation(result.a, result.b)
    return result


def _same_event(a: Event, b: Event) -> bool:
    if a.first.alert_kind != b.first.alert_kind:
        return False
    if abs(a.first.start_frame - b.first.start_frame) <= MATCH_FRAMES:
        return True
    return a.first.start_frame <= b.last.frame and b.first.start_frame <= a.last.frame


def _config_differences(a: str, b: str) -> list[tuple[str, str, str]]:
    """Return (line's key, value in a, value in b) of the config lines that differ; none where one is not known."""
    if not (a and b):
        return []
    left, right = _config_lines(a), _config_lines(b)
    return [
        (key, left.get(key, "-"), right.get(key, "-"))
        for key in sorted(left.keys() | right.keys())
        if left.get(key) != right.get(key) and key != "source.uri"
    ]


def _config_lines(text: str) -> dict[str, str]:
    section, lines = "", {}
    for line in text.splitlines():
        if line.startswith("["):
            section = line.strip("[] ")
        elif "=" in line:
            key, _, value = line.partition("=")
            lines[f"{section}.{key.strip()}"] = value.strip()
    return lines


def _correlation(a: ReportData, b: ReportData) -> float | None:
    """Return the correlation of the two novelty curves where both have values; None where they are too few."""
    width = max(a.curve.width_ns, b.curve.width_ns)
    series = []
    for data in (a, b):
        bins: dict[int, float] = {}
        for x, item in data.curve.items():
            if item.count:
                key = x // width
                bins[key] = max(bins.get(key, -np.inf), item.high)
        series.append(bins)
    shared = sorted(series[0].keys() & series[1].keys())
    if len(shared) < 8:
        return None
    values = np.array([[s[k] for k in shared] for s in series])
    return float(np.corrcoef(values)[0, 1]) if values.std(axis=1).min() > 0 else None


def _facts(data: ReportData) -> dict[str, Any]:
    summary = data.summary or {}
    return {
        "frames": summary.get("frames", data.received.get("score", 0)),
        "accepted": summary.get("accepted"),
        "refused": sum(dict(summary.get("refused") or {}).values()),
        "dropped": summary.get("dropped"),
        "alerts": summary.get("alerts", len(data.events)),
        "hash": summary.get("hash", ""),
        **_model_facts(data),
        "exemplars": sum(len(held) for held in data.galleries.values()),
        "config hash": data.run.config_hash,
    }


def _model_facts(data: ReportData) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    for name in in_order({*data.last_model, *MODELS}, MODELS):
        view, model = model_view(name), data.last_model.get(name)
        facts[f"{view.noun} components"] = model.n_components if model else None
        if view.shows_energy:
            energy = model.free_energy if model else None
            facts[f"{view.noun} free energy"] = round(energy, 3) if energy is not None else None
    return facts


def as_json(result: RunComparison) -> dict[str, Any]:
    """Return the comparison as plain values."""

    def event(e: Event) -> dict[str, Any]:
        return {
            "id": e.id,
            "kind": e.first.alert_kind,
            "start_frame": e.first.start_frame,
            "duration_s": round(e.duration_s, 3),
            "rarity": e.rarity,
            "how_rare": e.how_rare,
        }

    return {
        "a": _facts(result.a),
        "b": _facts(result.b),
        "both": [[event(x), event(y)] for x, y in result.both],
        "only_a": [event(e) for e in result.only_a],
        "only_b": [event(e) for e in result.only_b],
        "config": [{"key": k, "a": x, "b": y} for k, x, y in result.config],
        "correlation": result.correlation,
        "equal": _facts(result.a)["hash"] == _facts(result.b)["hash"] != "",
    }


def tell_comparison(result: RunComparison) -> None:
    """Print the comparison as tables."""
    a, b = _facts(result.a), _facts(result.b)
    width = max(len(result.a.run.path.name), 18)
    print(f"{'':<20}{result.a.run.path.name:<{width}}  {result.b.run.path.name}")
    for name in a:
        left, right = (str(x if x is not None else "-") for x in (a[name], b[name]))
        print(f"{name:<20}{left:<{width}}  {right}{'' if left == right else '  *'}")
    if result.correlation is not None:
        print(f"novelty curves correlate with {result.correlation:.3f}")
    for key, left, right in result.config:
        print(f"config {key}: {left} -> {right}")
    for data in (result.a, result.b):
        if not data.run.config_text:
            print(f"the config of {data.run.path.name} is not known: it is in the folder of the agent's own run")
    print(
        f"events: {len(result.both)} in both, {len(result.only_a)} only in the first, "
        f"{len(result.only_b)} only in the second"
    )
    for sign, events in (("-", result.only_a), ("+", result.only_b)):
        for event in events:
            print(
                f"  {sign} event {event.id}: {words.title_of(event.first.alert_kind).lower()} at "
                f"{words.moment(event.x_ns / 1e9)} (frame {event.first.start_frame}), for "
                f"{words.duration(event.duration_s)}{', ' * bool(event.how_rare)}{event.how_rare}"
            )


def write_page(result: RunComparison, out: pathlib.Path) -> None:
    """Write the comparison as one self-contained page."""
    a, b = _facts(result.a), _facts(result.b)
    rows = "".join(
        f"<tr><td>{c.esc(k)}</td><td><code>{c.esc(a[k])}</code></td><td><code>{c.esc(b[k])}</code></td></tr>" for k in a
    )
    names = f"<tr><th></th><th>{c.esc(result.a.run.path.name)}</th><th>{c.esc(result.b.run.path.name)}</th></tr>"
    config = "".join(
        f"<tr><td><code>{c.esc(k)}</code></td><td><code>{c.esc(x)}</code></td><td><code>{c.esc(y)}</code></td></tr>"
        for k, x, y in result.config
    )
    body = (
        f"<h1>{c.esc(result.a.run.path.name)} and {c.esc(result.b.run.path.name)}</h1><p class='lead'>"
        f"{len(result.both)} events in both, {len(result.only_a)} only in the first, {len(result.only_b)} only in "
        f"the second.</p><h2>Novelty over time</h2>{_curves(result)}<h2>Side by side</h2><table>{names}{rows}"
        "</table>"
    )
    if config:
        body += f"<h2>Settings that differ</h2><table>{names}{config}</table>"
    for title, data, events in (
        ("Only in the first", result.a, result.only_a),
        ("Only in the second", result.b, result.only_b),
    ):
        numbered = numbers_of(data)
        cards = "".join(event_card(data, event, numbered[event.key]) for event in events[:60])
        inner = f"<div class='events'>{cards}</div>" if cards else "<div class='empty'>No such event.</div>"
        body += f"<h2>{title}</h2>{inner}"
    write_result(out, page("Stillwatch comparison", body))


def _curves(result: RunComparison) -> str:
    """Draw both novelty curves over each other, each in its own scale's ranks: other settings give other units."""
    height, span = 220, max(result.a.span_ns, result.b.span_ns, 1)
    body = ""
    for data, name in ((result.a, ""), (result.b, " b")):
        bins = [(x, item.high) for x, item in data.curve.items() if item.count]
        if not bins:
            continue
        low, high = min(v for _, v in bins), max(v for _, v in bins)
        points = [(x, 4 + (height - 4) * (1 - (v - low) / ((high - low) or 1.0))) for x, v in bins]
        placed = [(1000 * x / span, y) for x, y in c.with_breaks(points, max(span // 50, 3 * data.curve.width_ns))]
        body += f"<path class='line{name}' d='{c.path(placed)}'/>"
    ticks = [(4.0, "highest"), (float(height), "lowest")]
    plot = c.plot(body, height=height, span_ns=span, label=labeller(result.a), y_ticks=ticks)
    key = (
        f"<div class='key'><span><i style='background:var(--calm)'></i>{c.esc(result.a.run.path.name)}</span>"
        f"<span><i style='background:var(--novel)'></i>{c.esc(result.b.run.path.name)}</span></div>"
    )
    return plot + key
