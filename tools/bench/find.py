"""How long `find` takes over a long run: the frames of a short one told over and over, shares at each, then searched.

Called by the command line as `bench find`. It must not search anything but a run folder as agents write it.
"""

import argparse
import json
import pathlib
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from typing import Any

import cv2
import msgspec
import numpy as np

from stillwatch.base import AgentError, Frame, RealClock, UsageError, VirtualClock
from stillwatch.pipeline import Pipeline
from stillwatch.settings import Config, SourceConfig
from stillwatch.tools.shared import print_rows
from stillwatch.transport.disk import RunFolder
from stillwatch.transport.wire import HAS_SHARES, Headers, Message, encode, kind_of
from stillwatch.transport.wire import messages as m
from stillwatch.worlds import make_world

WIDTH, HEIGHT = 320, 240
SHORT = 300  # frames that are really played
BATCH_NS = 1_000_000_000


@dataclass
class _Kept:
    """Writes what a pipeline sends to a run folder, and keeps its batches of scores."""

    folder: RunFolder
    scores: list[m.Scores] = field(default_factory=list)

    def send(self, message: Message) -> None:
        """Take one message."""
        if isinstance(message, m.Scores):
            self.scores.append(message)
        self.folder.write(kind_of(message), encode(message))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--frames", type=int, default=100_000, metavar="N", help="frames to search (default: 100000)")
    parser.add_argument("--seed", type=int, default=0, help="of the made transect (default: 0)")


def main(args: argparse.Namespace) -> int:
    if args.frames < SHORT:
        raise UsageError(f"--frames: {args.frames} is less than {SHORT}")
    with tempfile.TemporaryDirectory(prefix="stillwatch-bench-") as folder:
        rows = [measure(pathlib.Path(folder, str(at_all)), args.frames, args.seed, at_all) for at_all in (False, True)]
    print_rows(rows, as_json=args.json)
    return 0


def measure(path: pathlib.Path, n_frames: int, seed: int, at_all: bool) -> dict[str, Any]:
    """Write a run of so many frames, and time the command that looks for one of its last pictures, its start included.

    AgentError with the command's last line where it fails.
    """
    written, picture = _write(path, n_frames, seed, at_all)
    wanted = path / "wanted.png"
    cv2.imwrite(str(wanted), picture)
    command = [sys.executable, "-m", "stillwatch.tools.cli", "find", str(path), "--like", str(wanted), "--json"]
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise AgentError(f"find failed: {(done.stderr.strip().splitlines() or ['without a word'])[-1]}")
    return {
        "frames": n_frames,
        "with_shares": written,
        "found": len(json.loads(done.stdout)["rows"]),
        "seconds": seconds,
        "cpu_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "peak_rss_mb": after.ru_maxrss / 1024.0,
    }


def _write(path: pathlib.Path, n_frames: int, seed: int, at_all: bool) -> tuple[int, np.ndarray]:
    """Write the run, shares at each second as agents tell them or at all frames; return how many have shares.

    Its last batch of scores is told over and over. Also returns the picture of its last frame.
    """
    folder = RunFolder(path, VirtualClock())
    folder.write_config("", "bench", agent="bench", run="bench", source="synthetic:transect")
    sink = _Kept(folder)
    picture = _play(sink, seed)
    batch = [batch for batch in sink.scores if batch.topic_shares is not None][-1]
    told, size = batch.topic_shares, len(batch.flags)
    assert told is not None
    if at_all:
        told = np.repeat(told[:1], size, axis=0)
        batch = msgspec.structs.replace(
            batch, flags=batch.flags | np.uint8(HAS_SHARES), topic_shares=told, topic_navs=None
        )
    n_batches = -(-(n_frames - SHORT) // size)
    for step in range(1, n_batches + 1):
        moved = {name: getattr(batch, name) + step * BATCH_NS for name in ("t_ns", "mono_ns", "wall_ns")}
        frames = {"first": batch.first + step * size, "frame": batch.frame + step * size}
        folder.write(
            "scores", encode(msgspec.structs.replace(batch, sequence=batch.sequence + step, **moved, **frames))
        )
    folder.finish({"frames": n_frames})
    return n_batches * len(told), picture


def _play(sink: _Kept, seed: int) -> np.ndarray:
    """Let an agent see a made transect; return its last picture."""
    world = make_world("transect", seed, n_frames=SHORT, width=WIDTH, height=HEIGHT)
    config = Config(source=SourceConfig(width=WIDTH, height=HEIGHT))
    pipeline = Pipeline(config, sink, RealClock(), headers=Headers("bench", "bench", "bench", 1))
    for i in range(SHORT):
        picture = world.render(i)
        grey, t_ns = cv2.cvtColor(picture, cv2.COLOR_BGR2GRAY), round(1e9 * i / world.rate_hz)
        pipeline.step(Frame(grey, picture, None, t_ns, mono_ns=t_ns, wall_ns=t_ns, sequence=i, epoch=1))
    pipeline.finish()
    pipeline.close()
    return picture
