"""Scores a clip, or a folder of clips, against ground truth, beside what people use today.

The command `stillwatch evaluate novelty`. Our pipeline runs in a child pinned to one core (tools/evaluate/run.py); the
baselines run here, afterwards, on the same frames. It must not tune anything: one config for all clips.
"""

import pathlib

import numpy as np
from msgspec import structs

from stillwatch.base import UsageError
from stillwatch.settings import Config, load_config
from stillwatch.tools.evaluate.baselines import BASELINES, SIMPLE, baseline_scores
from stillwatch.tools.evaluate.figures import areas, figures, mean_of, rounded
from stillwatch.tools.evaluate.run import Run, run_pinned
from stillwatch.tools.evaluate.truth import Truth, read_truths, truth_for
from stillwatch.tools.shared import existing, existing_source, print_json

VIDEO_SUFFIXES = (".mp4", ".avi", ".mkv", ".mov", ".ts", ".webm", ".m4v", ".mpg")


def add_arguments(parser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "video", type=existing_source, metavar="VIDEO", help="a clip, a source URI, or a folder of clips"
    )
    parser.add_argument(
        "events", type=existing, metavar="EVENTS.json", help="frame numbers of the events, as events.json has them"
    )
    parser.add_argument(
        "--config", type=existing, metavar="FILE", help="configuration; the defaults where none is given"
    )
    parser.add_argument("--set", metavar="K=V", action="append", default=[], dest="overrides", help="change a setting")
    parser.add_argument("--from", metavar="FRAME", type=int, default=0, dest="first", help="first frame that is seen")
    parser.add_argument("--to", metavar="FRAME", type=int, default=None, dest="last", help="last frame that is seen")
    parser.add_argument("--rate", metavar="HZ", type=float, default=None, help="frames a second that are seen")
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
    ends = checked_ends(args.first, args.last)
    rate = [] if args.rate is None else [f"source.rate_hz={args.rate}"]
    config = load_config(
        pathlib.Path(args.config) if args.config else None, [*args.overrides, *rate], opens_source=False
    )
    if is_folder:
        clips = [path for path in sorted(folder.iterdir()) if path.suffix.lower() in VIDEO_SUFFIXES]
        clips = [path for path in clips if path.name in truths]
        if not clips:
            raise UsageError(f"{folder}: holds no clip that {args.events} knows; it knows {', '.join(sorted(truths))}")
        rows = [evaluate(str(path), path.name, truths[path.name], config, names, ends) for path in clips]
        if args.json:
            print_json({"rows": rows, **means(rows)})
        else:
            for row in rows:
                print_row(row)
            print_means(rows)
        return 0
    clip = folder.name if "://" not in args.video and not args.video.startswith("synthetic:") else args.video
    row = evaluate(args.video, clip, truth_for(truths, clip, args.events), config, names, ends)
    if args.json:
        print_json(row)
    else:
        print_row(row)
    return 0


def checked_ends(first: int, last: int | None) -> tuple[int, int | None]:
    """Return the first and last frame to be seen; UsageError where none lies between."""
    if first < 0:
        raise UsageError(f"--from: {first} is below 0, the clip's first frame")
    if last is not None and last < first:
        raise UsageError(f"--to: {last} lies before --from {first}")
    return first, last


def chosen_baselines(given: str | None, default: tuple[str, ...]) -> tuple[str, ...]:
    """Return the baselines named on the command line; UsageError for one that there is not."""
    if given is None:
        return default
    names = tuple(name.strip() for name in given.split(",") if name.strip() and name.strip() != "none")
    for name in names:
        if name not in BASELINES:
            raise UsageError(f"--baselines: no baseline {name!r}; there are {', '.join(BASELINES)}")
    return names


def evaluate(
    uri: str, clip: str, truth: Truth, config: Config, names: tuple[str, ...], ends: tuple[int, int | None] = (0, None)
) -> dict:
    """Run our pipeline, then the baselines, over one source's frames between `ends`; return the row of `--json`."""
    config = structs.replace(config, source=structs.replace(config.source, uri=uri))
    first, last = ends
    run = run_pinned(config, first, last)
    if not len(run.number):
        raise UsageError(f"{clip}: no frame from {first} to {'the end' if last is None else last}")
    truth = truth.between(first, int(run.number[-1]) if last is None else last)
    return row_of(run, clip, truth, baseline_scores(config, run, names) if names else {})


def row_of(run: Run, clip: str, truth: Truth, baselines: dict[str, np.ndarray]) -> dict:
    """Return one clip's figures. Frames before `scored_from`, and frames the gate refused, have no AUC label."""
    own = figures(run, truth)
    hours = own["hours"]
    n_true = len(run.alerts) - own["false_alerts"]
    return {
        "clip": clip,
        "frames": len(run.number),
        "scored_from": run.scored_from,
        **areas(run, truth, run.score),
        "events_total": own["events_total"],
        "events_found": own["events_found"],
        "false_alerts": own["false_alerts"],
        "median_delay_s": own["median_delay_s"],
        "fps": round(run.fps, 1),
        "peak_rss_mb": round(run.peak_rss_mb, 1),
        "precision": rounded(n_true / len(run.alerts)) if run.alerts else None,
        "recall": rounded(own["events_found"] / own["events_total"]) if own["events_total"] else None,
        "false_alerts_per_hour": rounded(own["false_alerts"] / hours) if hours else None,
        "camera": "moving" if run.moving else "fixed",
        "alert_frames": run.alerts,
        "false_alert_frames": own["false_alert_frames"],
        "other_events": [list(event) for event in run.other],
        "suppressed": run.suppressed,
        "kinds": run.kinds,
        "warnings": run.warnings,
        "baselines": {name: areas(run, truth, score) for name, score in baselines.items()},
    }


def means(rows: list[dict]) -> dict:
    """Return the mean AUC over clips, ours and each baseline's."""
    names = rows[0]["baselines"]
    return {
        "mean_auc": mean_of(row["auc"] for row in rows),
        "baselines_mean_auc": {name: mean_of(row["baselines"][name]["auc"] for row in rows) for name in names},
    }


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
    for name, both in row["baselines"].items():
        print(f"  {name:13s} AUC {'-' if both['auc'] is None else format(both['auc'], '.3f')}")


def print_means(rows: list[dict]) -> None:
    """Print the mean over clips."""
    summary = means(rows)
    others = ", ".join(f"{name} {value}" for name, value in summary["baselines_mean_auc"].items())
    print(f"mean AUC over {len(rows)} clips: {summary['mean_auc']}" + (f"; {others}" if others else ""))
