"""Frames of a file a second, as `stillwatch run` analyses it: on one core, on all, and beside another version.

The command `stillwatch bench files CLIP`. Each row is whole runs in processes of their own, in turn with the other
rows; what a start costs is taken out, as a long run and a short one have the same.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

from stillwatch.base import AgentError, UsageError
from stillwatch.tools.shared import print_json

SHORT, LONG = 1, 3  # times that the clip is shown
TIMEOUT_S = 7200.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("clip", metavar="CLIP", type=pathlib.Path, help="a video file")
    parser.add_argument("--beside", metavar="PROGRAM", type=pathlib.Path, help="another version's stillwatch, in turn")
    parser.add_argument("--turns", type=int, default=3, metavar="N", help="of which the middle one counts (default 3)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def main(args: argparse.Namespace) -> int:
    """Print a row for one core, one for all, and one for the other version on all."""
    for path in filter(None, (args.clip, args.beside)):
        if not path.is_file():
            raise UsageError(f"{path}: no such file; name the other program's stillwatch")
    if args.turns < 1:
        raise UsageError(f"--turns {args.turns}: must be at least 1")
    ours = [sys.executable, "-m", "stillwatch.tools.cli"]
    rows = {"one core": ["taskset", "-c", "0", *ours], "all cores": ours}
    if args.beside is not None:
        rows["beside, all cores"] = [str(args.beside)]
    rates: dict[str, list[float]] = {name: [] for name in rows}
    for _ in range(args.turns):
        for name, command in rows.items():
            rates[name].append(rate_of(command, args.clip))
    found: list[dict[str, Any]] = [
        {
            "row": name,
            "fps": round(statistics.median(rates[name]), 1),
            "turns": [round(rate, 1) for rate in rates[name]],
        }
        for name in rows
    ]
    if args.json:
        print_json({"clip": str(args.clip), "rows": found})
    else:
        for row in found:
            print(f"{row['row']:<18} {row['fps']:6.1f} frames/s   in turn {', '.join(map(str, row['turns']))}")
    return 0


def rate_of(command: list[str], clip: pathlib.Path) -> float:
    """Return frames a second of one program: what a longer run shows more, by what it takes longer."""
    (short_frames, short_s), (long_frames, long_s) = (_run(command, clip, loop) for loop in (SHORT, LONG))
    return (long_frames - short_frames) / max(long_s - short_s, 1e-9)


def _run(command: list[str], clip: pathlib.Path, loop: int) -> tuple[int, float]:
    """Run once; return the frames that it watched and its seconds. AgentError with its last line where it fails."""
    with tempfile.TemporaryDirectory(prefix="stillwatch-bench-") as folder:
        call = [*command, "run", "--source", f"{clip}?loop={loop}", "--out", folder, "--fresh"]
        begun = time.perf_counter()
        done = subprocess.run(call, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        seconds = time.perf_counter() - begun
        if done.returncode:
            lines = (done.stderr or done.stdout).strip().splitlines() or [f"exit code {done.returncode}"]
            raise AgentError(f"{command[-1]} run {clip}: {lines[-1]}")
        return int(json.loads(pathlib.Path(folder, "summary.json").read_text())["frames"]), seconds
