"""Do the exemplars of a clip show its events and scenes? StreamGreedy against uniform-in-time and random frames.

Called by tools/experiments/exemplars/command.py. It must not read the ground truth but to score.
"""

import argparse
import json
import pathlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from stillwatch.features import FeatureExtractor
from stillwatch.learn import StreamGreedy
from stillwatch.settings import Config
from stillwatch.tools.encoders import frames_of
from stillwatch.tools.experiments.data import measure
from stillwatch.tools.experiments.exemplars.baselines import OnlineKCentre, mean_least_distance
from stillwatch.tools.shared import find_data

Row = dict[str, Any]
Spans = list[tuple[int, int]]
SIZES = (8, 16)
RANDOM_DRAWS = 500


def frames(args: argparse.Namespace) -> Iterator[Row]:
    """Each shared clip with ground truth, k = 8 and 16, the agent's own frame descriptors and settings.

    `covered` of `targets`: a target is one event, or one scene or rest state however often it comes back; it is
    covered when an exemplar is a frame in it. Before the encoder is fitted there are no descriptors: `seen` counts
    the frames after that.
    """
    data = find_data(args.data)
    config = Config()
    for path, targets in clips(data).items():
        described, sequences = describe(str(data / path), config)
        if args.rows:
            described, sequences = described[: args.rows], sequences[: args.rows]
        for k in SIZES:
            for method in ("streamgreedy", "streamgreedy_random_phantom", "uniform_in_time", "random", "k_centre"):
                if not args.methods or method in args.methods:
                    yield {"clip": path.name} | _row(method, described, sequences, targets, k, config)


def clips(data: pathlib.Path) -> dict[pathlib.PurePath, dict[str, Spans]]:
    """Return the targets of each clip: name -> spans of frame numbers, inclusive."""
    found: dict[pathlib.PurePath, dict[str, Spans]] = {}
    surveillance = json.loads((data / "surveillance" / "events.json").read_text())["files"]
    for name, truth in surveillance.items():
        targets: dict[str, Spans] = {f"event {e['start']}": [(e["start"], e["end"])] for e in truth["events"]}
        for state in truth.get("rest_states", []):
            targets.setdefault(f"rest {state['bottles']}", []).append((state["start"], state["end"]))
        if truth.get("quiet"):
            targets["quiet"] = [(start, end) for start, end in truth["quiet"]]
        found[pathlib.PurePath("surveillance", name)] = targets
    for name, truth in json.loads((data / "underwater" / "segments.json").read_text()).items():
        if "segments" in truth:
            targets = {}
            for segment in truth["segments"]:
                targets.setdefault(segment["scene"], []).append((segment["start"], segment["end"]))
            found[pathlib.PurePath("underwater", name)] = targets
    return found


def describe(uri: str, config: Config) -> tuple[np.ndarray, np.ndarray]:
    """Return the encoded frame descriptors of a clip, (n, n_frame_dims) float32, and their frame numbers."""
    extractor = FeatureExtractor(config)
    described, sequences = [], []
    for frame in frames_of(uri, config):
        features = extractor.extract(frame)
        if not extractor.ready:
            extractor.observe(features)
        if features.ready:
            described.append(features.frame.copy())
            sequences.append(frame.sequence)
    return np.array(described), np.array(sequences, np.int64)


def _row(method: str, described: np.ndarray, sequences: np.ndarray, targets: dict, k: int, config: Config) -> Row:
    row: Row = {"method": method, "order": "time", "k": k, "seen": len(described), "targets": len(targets)}
    if method == "random":
        rng = np.random.default_rng(0)
        draws = [rng.choice(len(described), min(k, len(described)), replace=False) for _ in range(RANDOM_DRAWS)]
        covered = float(np.mean([len(covered_targets(sequences[d], targets)) for d in draws]))
        loss = float(np.mean([mean_least_distance(described, described[d]) for d in draws[:20]]))
        return row | {"covered": covered, "coverage": covered / len(targets), "train_loss": loss}
    chosen, extra = _choose(method, described, k, config)
    found = covered_targets(sequences[chosen], targets)
    return (
        row
        | extra
        | {
            "covered": len(found),
            "coverage": len(found) / len(targets),
            "held": len(chosen),
            "missed": [name for name in targets if name not in found],
            "frames": sorted(sequences[chosen].tolist()),
            "train_loss": mean_least_distance(described, described[chosen]),
        }
    )


def _choose(method: str, described: np.ndarray, k: int, config: Config) -> tuple[np.ndarray, Row]:
    """Return rows chosen, and what the method has to tell beside them."""
    n = len(described)
    if method == "uniform_in_time":
        return ((np.arange(k) + 0.5) * n / k).astype(np.int64), {}
    if method == "k_centre":
        summary = OnlineKCentre(k)
        _, cost = measure(lambda: summary.partial_fit(described.astype(np.float64)))
        held = {row.astype(np.float32).tobytes() for row in summary.rows}
        rows = [i for i in range(n) if described[i].tobytes() in held]
        return np.array(rows[:k]), {"seconds": cost.seconds, "peak_rss_mb": cost.peak_rss_mb}
    settings = config.exemplars
    phantom = "random" if method == "streamgreedy_random_phantom" else "origin"
    learner = StreamGreedy(
        k=k, block=settings.block, validation=settings.validation, phantom=phantom, minimum_gain=settings.minimum_gain
    )
    _, cost = measure(lambda: learner.partial_fit(described).flush())
    return learner.exemplar_rows_, {
        "block": learner.block,
        "validation": learner.validation,
        "utility": learner.utility_,
        "seconds": cost.seconds,
        "peak_rss_mb": cost.peak_rss_mb,
        "state_bytes": sum(learner.memory_bytes().values()),
    }


def covered_targets(chosen: np.ndarray, targets: dict[str, Spans]) -> list[str]:
    """Return the names of the targets that one of the chosen frame numbers lies in."""
    return [
        name
        for name, spans in targets.items()
        if any(start <= number <= end for number in chosen for start, end in spans)
    ]
