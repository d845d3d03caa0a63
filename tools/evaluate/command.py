"""Scores a clip, or a folder of clips, against ground truth, beside what people use today.

The command `stillwatch evaluate novelty`. Our pipeline runs in a child pinned to one core (tools/evaluate/run.py); the
baselines run here, afterwards, on the same frames. It must not tune anything: one config for all clips.
"""

import json
import pathlib

import numpy as np
from msgspec import structs

from stillwatch.base import UsageError
from stillwatch.settings import Config, load_config
from stillwatch.tools.evaluate.baselines import BASELINES, SIMPLE, baseline_scores
from stillwatch.tools.evaluate.metrics import event_auc, match, median_delay_s, roc_auc
from stillwatch.tools.evaluate.run import Run, run_pinned
from stillwatch.tools.evaluate.truth import Truth, read_truths, truth_for

VIDEO_SUFFIXES = (".mp4", ".avi", ".mkv", ".mov", ".ts", ".webm", ".m4v", ".mpg")


def add_arguments(parser) -> None:
    """Add the command's options."""
    parser.add_argument("video", metavar="VIDEO", help="a clip, a source URI, or a folder of clips")
    parser.add_argument("events", metavar="EVENTS.json", help="frame numbers of the events, as events.json has them")
    parser.add_argument("--config", metavar="FILE", help="configuration; the defaults where none is given")
    parser.add_argument("--set", metavar="K=V", action="append", default=[], dest="overrides", help="change a setting")
    parser.add_argument(
        "--baselines",
        metavar="NAMES",
        default=None,
        help=f"comma-separated, of {', '.join(BASELINES)}; 'none'; default: {', '.join(SIMPLE)} for a clip, all for a "
        "folder",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def main(args) -> int:
    """Evaluate and print; the exit code is 0 however good the figures are."""
    truths = read_truths(args.events)
    folder = pathlib.Path(args.video)
    is_folder = folder.is_dir()
    names = chosen_baselines(args.baselines, BASELINES if is_folder else SIMPLE)
    config = load_config(pathlib.Path(args.config) if args.config else None, args.overrides)
    if is_folder:
        clips = [path for path in sorted(folder.iterdir()) if path.suffix.lower() in VIDEO_SUFFIXES]
        clips = [path for path in clips if path.name in truths]
        if not clips:
            raise UsageError(f"{folder}: holds no clip that {args.events} knows; it knows {', '.join(sorted(truths))}")
        rows = [evaluate(str(path), path.name, truths[path.name], config, names) for path in clips]
        if args.json:
            print(json.dumps({"rows": rows, **means(rows)}))
        else:
            for row in rows:
                print_row(row)
            print_means(rows)
        return 0
    clip = folder.name if "://" not in args.video and not args.video.startswith("synthetic:") else args.video
    row = evaluate(args.video, clip, truth_for(truths, clip, args.events), config, names)
    if args.json:
        print(json.dumps(row))
    else:
        print_row(row)
    return 0


def chosen_baselines(given: str | None, default: tuple[str, ...]) -> tuple[str, ...]:
    """Return the baselines named on the command line; UsageError for one that there is not."""
    if given is None:
        return default
    names = tuple(name.strip() for name in given.split(",") if name.strip() and name.strip() != "none")
    for name in names:
        if name not in BASELINES:
            raise UsageError(f"--baselines: no baseline {name!r}; there are {', '.join(BASELINES)}")
    return names


def evaluate(uri: str, clip: str, truth: Truth, config: Config, names: tuple[str, ...]) -> dict:
    """Run our pipeline, then the baselines, over one source; return the row that `--json` prints."""
    config = structs.replace(config, source=structs.replace(config.source, uri=uri))
    run = run_pinned(config)
    return row_of(run, clip, truth, baseline_scores(config, run, names) if names else {})


def row_of(run: Run, clip: str, truth: Truth, baselines: dict[str, np.ndarray]) -> dict:
    """Return one clip's figures. Frames before `scored_from`, and frames the gate refused, have no AUC label."""
    n_frames = len(run.score)
    first = n_frames if run.scored_from is None else run.scored_from
    counted = np.isfinite(run.score) & (np.arange(n_frames) >= first)
    positive = truth.labels(n_frames)
    found = match(run.alerts, truth)
    hours = float(run.t_ns[-1] - run.t_ns[0]) / 3.6e12 if n_frames > 1 else 0.0
    n_events = len(truth.spans)

    def areas(score: np.ndarray) -> dict[str, float | None]:
        filled = np.where(counted, score, -np.inf)
        return {
            "auc": rounded(roc_auc(score[counted], positive[counted])),
            "auc_event": rounded(event_auc(filled, truth, first)),
        }

    n_true = len(run.alerts) - len(found.false_alerts)
    return {
        "clip": clip,
        "frames": n_frames,
        "scored_from": run.scored_from,
        **areas(run.score),
        "events_total": n_events,
        "events_found": found.n_found,
        "false_alerts": len(found.false_alerts),
        "median_delay_s": rounded(median_delay_s(found, truth, run.t_ns)),
        "fps": round(run.fps, 1),
        "peak_rss_mb": round(run.peak_rss_mb, 1),
        "precision": rounded(n_true / len(run.alerts)) if run.alerts else None,
        "recall": rounded(found.n_found / n_events) if n_events else None,
        "false_alerts_per_hour": rounded(len(found.false_alerts) / hours) if hours else None,
        "camera": "moving" if run.moving else "fixed",
        "alert_frames": run.alerts,
        "false_alert_frames": list(found.false_alerts),
        "other_events": [list(event) for event in run.other],
        "suppressed": run.suppressed,
        "baselines": {name: areas(score) for name, score in baselines.items()},
    }


def means(rows: list[dict]) -> dict:
    """Return the mean AUC over clips, ours and each baseline's."""
    names = rows[0]["baselines"]

    def mean(values) -> float | None:
        values = [value for value in values if value is not None]
        return rounded(float(np.mean(values))) if values else None

    return {
        "mean_auc": mean(row["auc"] for row in rows),
        "baselines_mean_auc": {name: mean(row["baselines"][name]["auc"] for row in rows) for name in names},
    }


def rounded(value: float | None) -> float | None:
    """Return a figure with as many digits as it deserves."""
    return None if value is None or not np.isfinite(value) else round(float(value), 4)


def print_row(row: dict) -> None:
    """Print one clip's figures for people."""
    auc = "-" if row["auc"] is None else f"{row['auc']:.3f}"
    delay = "-" if row["median_delay_s"] is None else f"{row['median_delay_s']:.2f} s"
    print(
        f"{row['clip']}: {row['frames']} frames, {row['camera']} camera, scored from {row['scored_from']}\n"
        f"  AUC {auc}, events found {row['events_found']} of {row['events_total']}, false alerts "
        f"{row['false_alerts']}, median delay {delay}, {row['fps']:.1f} frames/s on one core, "
        f"{row['peak_rss_mb']:.0f} MB at most"
    )
    for name, areas in row["baselines"].items():
        print(f"  {name:13s} AUC {'-' if areas['auc'] is None else format(areas['auc'], '.3f')}")


def print_means(rows: list[dict]) -> None:
    """Print the mean over clips."""
    summary = means(rows)
    others = ", ".join(f"{name} {value}" for name, value in summary["baselines_mean_auc"].items())
    print(f"mean AUC over {len(rows)} clips: {summary['mean_auc']}" + (f"; {others}" if others else ""))
