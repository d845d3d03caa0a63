"""What people use today to find events in a clip, beside ours, in one run: found, false alerts, delay, seconds.

The command `stillwatch bench detectors CLIP EVENTS`. The motion detectors are used as their makers ship them: DVR-Scan
as a program of its own (the extra `bench` has one; later releases bring another OpenCV and are named with --dvr-scan),
the others by DVR-Scan's own rule for what is an event.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable

import cv2
import numpy as np

from stillwatch.base import AgentError, Frame, UsageError, shown
from stillwatch.settings import Config, load_config
from stillwatch.tools.evaluate import (
    Difference,
    Subtractor,
    Truth,
    frames_of,
    match,
    median_delay_s,
    read_truths,
    run_pinned,
    truth_for,
)
from stillwatch.tools.shared import existing, print_json

NS = 1_000_000_000
MOVING_SHARE = 0.15 / 255  # of pixels: DVR-Scan's threshold of 0.15 in its units, the mean of a mask of 0 and 255
LEAST_S = 0.1  # of motion in a row: DVR-Scan's --min-event-length
QUIET_S = 2.0  # without motion end an event: its --time-post-event
DIFFERENCE = 2.0  # grey levels, mean over the frame: no program ships a default; below it compression noise is motion
TIMEOUT_S = 3600.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("clip", type=existing, metavar="CLIP", help="video file")
    parser.add_argument("events", type=existing, metavar="EVENTS", help="JSON file of its true events")
    parser.add_argument("--config", type=existing, metavar="FILE", help="TOML file for ours (default: the defaults)")
    parser.add_argument(
        "--dvr-scan", metavar="PROGRAM", help="another DVR-Scan (default: the one of the extra bench, or on PATH)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def main(args: argparse.Namespace) -> int:
    name = pathlib.Path(args.clip).name
    truth = truth_for(read_truths(args.events), name, args.events)
    config = load_config(args.config, [f"source.uri={_quoted(args.clip)}"])
    rows = measured(config, truth, program_of(args.dvr_scan))
    if args.json:
        print_json({"rows": rows})
        return 0
    print(f"{'method':<14}{'found':>8}{'false':>7}{'delay':>9}{'seconds':>9}")
    for row in rows:
        if row["events_found"] is None:
            print(f"{row['method']:<14}{row['note']}")
            continue
        delay = "-" if row["median_delay_s"] is None else f"{row['median_delay_s']:.2f} s"
        found = f"{row['events_found']}/{row['events_total']}"
        figures = f"{found:>8}{row['false_alerts']:>7}{delay:>9}{row['seconds']:>9.1f}"
        print(f"{row['method']:<14}{figures}  {row['note']}".rstrip())
    return 0


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def measured(config: Config, truth: Truth, dvr_scan: str | None = None) -> list[dict]:
    """Return a row a method: ours, DVR-Scan (its path), MOG2, KNN, difference. Each sees the clip by itself."""
    begun = time.perf_counter()
    run = run_pinned(config)
    seconds = time.perf_counter() - begun
    number, t_ns = run.number, run.t_ns
    rows = [
        _row("stillwatch", run.alerts, truth, number, t_ns, seconds),
        _dvr_row(config, truth, number, t_ns, dvr_scan),
    ]
    makers: list[tuple[str, Callable[[], Subtractor | Difference], float]] = [
        ("mog2", lambda: Subtractor(cv2.createBackgroundSubtractorMOG2), MOVING_SHARE),
        ("knn", lambda: Subtractor(cv2.createBackgroundSubtractorKNN), MOVING_SHARE),
        ("difference", Difference, DIFFERENCE),
    ]
    for name, make, threshold in makers:
        begun = time.perf_counter()
        alerts = alerts_of(frames_of(config), make(), threshold)
        rows.append(_row(name, alerts, truth, number, t_ns, time.perf_counter() - begun))
    return rows


def alerts_of(frames: Iterable[Frame], detector: Subtractor | Difference, threshold: float) -> list[int]:
    """Return the frame numbers at which a motion detector raises alerts, by DVR-Scan's rule.

    An event begins with LEAST_S of motion in a row, and ends after QUIET_S without any.
    """
    alerts: list[int] = []
    since_ns: int | None = None  # of motion in a row
    last_ns: int | None = None  # of motion in the open event
    for frame in frames:
        is_moving = detector.score(frame) >= threshold
        if last_ns is not None and frame.t_ns - last_ns > QUIET_S * NS:
            last_ns = None
        if not is_moving:
            since_ns = None
            continue
        since_ns = frame.t_ns if since_ns is None else since_ns
        if last_ns is not None:
            last_ns = frame.t_ns
        elif frame.t_ns - since_ns >= LEAST_S * NS:
            last_ns = frame.t_ns
            alerts.append(frame.sequence)
    return alerts


def _dvr_row(config: Config, truth: Truth, number: np.ndarray, t_ns: np.ndarray, program: str | None) -> dict:
    """Run DVR-Scan at its defaults, but for the lead-in that it puts before an event's first motion."""
    if program is None:
        note = "not run: no dvr-scan here; pip install 'stillwatch[bench]', or name the program with --dvr-scan"
        return _row("dvr-scan", None, truth, number, t_ns, None) | {"note": note}
    begun = time.perf_counter()
    told = _answer([program, "-q", "-i", os.path.abspath(config.source.uri), "-so", "-tb", "0s"])
    seconds = time.perf_counter() - begun
    clip_s = (t_ns - t_ns[0]) / 1e9
    alerts = [int(number[min(int(np.searchsorted(clip_s, s)), len(number) - 1)]) for s in time_codes(told)[::2]]
    return _row("dvr-scan", alerts, truth, number, t_ns, seconds) | {"note": _version(program)}


def _answer(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        why = f"no end within {TIMEOUT_S:.0f} s" if isinstance(error, subprocess.TimeoutExpired) else error.strerror
        raise UsageError(f"--dvr-scan: {shown(command[0])} cannot be run: {why}; name another") from error
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines() or [f"exit code {done.returncode}"]
        raise AgentError(f"{shown(command[0])} failed: {lines[-1]}")
    return done.stdout + done.stderr  # where a version is told has changed between versions


def _version(program: str) -> str:
    """Return "DVR-Scan 1.7"."""
    told = _answer([program, "--version"]).strip().partition("\n")[0]
    if not re.match(r"DVR-Scan \d", told):
        raise UsageError(f"--dvr-scan: {shown(program)} does not answer to --version as DVR-Scan does; name another")
    return told


def program_of(named: str | None) -> str | None:
    """Return the path of DVR-Scan: the one named, else the one beside this Python, else the one on PATH."""
    if named is None:
        beside = pathlib.Path(sys.executable).parent / "dvr-scan"  # an environment need not be activated
        return shutil.which(str(beside)) or shutil.which("dvr-scan")
    found = shutil.which(named)
    if found is None:
        raise UsageError(f"--dvr-scan: {shown(named)} is no program that can be run; give the path of dvr-scan")
    _version(found)
    return found


def time_codes(text: str) -> list[float]:
    """Return the times in seconds of DVR-Scan's output: start, end, start, end ... as HH:MM:SS.mmm."""
    found = re.findall(r"(\d+):(\d\d):(\d\d\.\d+)", text)
    return [3600.0 * int(hours) + 60.0 * int(minutes) + float(seconds) for hours, minutes, seconds in found]


def _row(
    method: str, alerts: list[int] | None, truth: Truth, number: np.ndarray, t_ns: np.ndarray, seconds: float | None
) -> dict:
    row = {"method": method, "events_found": None, "events_total": len(truth.spans), "false_alerts": None,
           "median_delay_s": None, "alerts": None, "seconds": None if seconds is None else round(seconds, 2),
           "note": ""}  # fmt: skip
    if alerts is None:
        return row
    found = match(alerts, truth)
    delay = median_delay_s(found, truth, number, t_ns)
    return row | {
        "events_found": found.n_found,
        "false_alerts": len(found.false_alerts),
        "median_delay_s": None if delay is None else round(delay, 3),
        "alerts": len(alerts),
    }
