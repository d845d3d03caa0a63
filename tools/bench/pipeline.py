"""Measures the whole pipeline with everything on: rate, latency by stage, CPU and memory, on one core and on all.

The command `stillwatch bench pipeline`. Each row is measured in a process of its own, started here; what it measures
is the agent's own code at the default settings, fed by a clip that loops.
"""

import functools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable

import numpy as np

from stillwatch.base import AgentError
from stillwatch.epochs import TOPICS, FrameWords
from stillwatch.settings import Config, load_config
from stillwatch.tools.shared import print_json
from stillwatch.worlds import make_world

SIZES = ((320, 240), (640, 480))
CLIP_FRAMES = 300
FRAMES = 900
WARM_FRAMES = 150  # not counted: encoder, first models, caches
SLOPE_SHARE = 0.5  # of the frames, the later ones: memory's slope is fitted to them
READINGS = 200  # of memory
TIMEOUT_S = 7200.0


def add_arguments(parser) -> None:
    """Add the command's options."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--frames", type=int, default=FRAMES, metavar="N", help=f"counted, a row (default {FRAMES})")
    parser.add_argument("--size", choices=[f"{w}x{h}" for w, h in SIZES], help="this size alone")
    parser.add_argument("--cores", choices=["1", "all"], help="this number of cores alone")


def main(args) -> int:
    """Print a row for each size and number of cores."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="stillwatch-bench-") as folder:
        for width, height in SIZES:
            if args.size not in (None, f"{width}x{height}"):
                continue
            clip = pathlib.Path(folder, f"road_{width}x{height}.mp4")
            write_clip(clip, width, height)
            loops = (args.frames + WARM_FRAMES) // CLIP_FRAMES + 2
            for cores in ("1", "all"):
                if args.cores in (None, cores):
                    rows.append(measured(f"{clip}?loop={loops}", width, height, cores, args.frames))
    if args.json:
        print_json({"rows": rows})
    else:
        for row in rows:
            print_row(row)
    return 0


def write_clip(path: pathlib.Path, width: int, height: int) -> None:
    """Write a clip of exactly this size, so that decoding is part of what is measured: the synthetic road in H.264."""
    import av

    scene = make_world("road", 0, width=width, height=height, n_frames=CLIP_FRAMES)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=int(scene.rate_hz))
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        for i in range(scene.n_frames):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(scene.render(i), format="bgr24")))
        container.mux(stream.encode(None))


def measured(uri: str, width: int, height: int, cores: str, frames: int) -> dict:
    """Return one row, measured in a child; AgentError with its last line where it fails."""
    numbers = [str(width), str(height), cores, str(frames)]
    command = [sys.executable, "-m", "stillwatch.tools.bench.pipeline", uri, *numbers]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise AgentError(f"bench pipeline {width}x{height} on {cores} cores failed: {lines[-1]}")
    return json.loads(done.stdout)


class Stopwatch:
    """Adds up the time spent in functions, by stage; one that another of the same stage calls is not counted twice.

    clock : seconds of the wall, or `time.thread_time` for the processor's alone, which waiting is no part of
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter):
        self.seconds: dict[str, float] = defaultdict(float)
        self._clock = clock
        self._inside = threading.local()

    def watch(self, owner: object, name: str, stage: str) -> None:
        """Replace a method of an object or class, or a function of a module, by one that is timed under `stage`."""
        inner: Callable = getattr(owner, name)

        @functools.wraps(inner)
        def timed(*args, **kwargs):
            stages = vars(self._inside).setdefault("stages", set())
            if stage in stages:
                return inner(*args, **kwargs)
            stages.add(stage)
            begun = self._clock()
            try:
                return inner(*args, **kwargs)
            finally:
                self.seconds[stage] += self._clock() - begun
                stages.remove(stage)

        setattr(owner, name, timed)

    def ms_of(self, frames: int) -> dict[str, float]:
        """Return milliseconds a frame by stage."""
        return {stage: round(1e3 * spent / frames, 3) for stage, spent in sorted(self.seconds.items())}


def _bench(uri: str, width: int, height: int, cores: str, frames: int) -> dict:
    """Run the pipeline in this process and return its row."""
    import cv2
    from threadpoolctl import threadpool_limits

    from stillwatch.base import RealClock
    from stillwatch.outlet import CommandBox, LiveCarrier, Outlet, cpu_seconds, health, rss_bytes
    from stillwatch.pipeline import Pipeline
    from stillwatch.process import make_publisher
    from stillwatch.tools.evaluate import frames_of

    cv2.setNumThreads(1)  # as stillwatch.process.run_agent has it, and the memory too
    health.share_malloc_arenas()
    config = bench_config(uri, width, height)
    clock = RealClock()
    publisher = make_publisher(config, clock)
    assert publisher is not None
    outlet = Outlet([LiveCarrier(publisher, CommandBox(), clock, strict=True)], clock, lossless=True)
    watch, topics, latency_s = Stopwatch(), Stopwatch(time.thread_time), np.zeros(frames)
    readings: list[tuple[int, int]] = []
    with threadpool_limits(1):
        pipeline = Pipeline(config, outlet, clock)
        watch_stages(watch, topics, pipeline)
        outlet.start()
        begun = cpu_begun = 0.0
        waited = time.perf_counter()
        for number, frame in enumerate(frames_of(config)):
            counted = number - WARM_FRAMES
            if counted == 0:
                watch.seconds.clear()
                topics.seconds.clear()
                begun, cpu_begun = waited, cpu_seconds()
            started = time.perf_counter()
            watch.seconds["decode (waiting)"] += started - waited
            pipeline.step(frame)
            waited = time.perf_counter()
            if counted >= 0:
                latency_s[counted] = waited - started
                if counted % max(frames // READINGS, 1) == 0:
                    readings.append((counted, rss_bytes()))
            if counted == frames - 1:
                break
        elapsed_s, cpu_s = waited - begun, cpu_seconds() - cpu_begun
        pipeline.close()
        outlet.close()
    return {
        "size": f"{width}x{height}",
        "cores": 1 if cores == "1" else os.cpu_count(),
        "frames": frames,
        "patches": pipeline.features.capacity_patches,
        "fps": round(frames / elapsed_s, 1),
        "p50_ms": round(1e3 * float(np.quantile(latency_s, 0.5)), 2),
        "p99_ms": round(1e3 * float(np.quantile(latency_s, 0.99)), 2),
        "stages": watch.ms_of(frames),
        "cpu_ms_per_frame": round(1e3 * cpu_s / frames, 2),
        "topics_cpu_ms": topics.ms_of(frames),
        "topics_cpu_ms_per_frame": round(sum(topics.ms_of(frames).values()), 2),
        "rss_mb": round(rss_bytes() / 1e6, 1),
        "rss_slope_mb_per_1e5": round(memory_slope(readings), 1),
    }


def bench_config(uri: str, width: int, height: int) -> Config:
    """Return the defaults for frames of exactly this working size, published on a free port of this machine."""
    return load_config(
        None,
        [
            f"source.uri={uri}",
            f"source.width={width}",
            f"source.height={height}",
            "publish.endpoint=tcp://127.0.0.1:0",
            "publish.control=",
        ],
    )


def watch_stages(watch: Stopwatch, topics: Stopwatch, pipeline) -> None:
    """Time each stage of a pipeline: on the pipeline's thread all but `learning`, which is the worker's.

    topics : is told of all that a frame costs for the sake of topics alone, on both threads, but for the bytes of
        their shares
    """
    for owner, method, stage in (
        (pipeline.describer.gate, "judge", "gate"),
        (pipeline.describer.features, "extract", "features"),
        (pipeline.describer.rows, "rows_of", "features"),
        (pipeline.novelty, "score", "novelty"),
        (pipeline.novelty, "settle", "novelty"),
        (pipeline.events, "update", "events"),
        (pipeline.learners, "offer", "sampling"),
        (pipeline.learners, "activate", "activation"),
        (pipeline, "_publish", "publishing"),
        (pipeline.learners, "_learn", "learning (worker)"),
    ):
        watch.watch(owner, method, stage)
    rows, buffer = (sys.modules[of.__module__] for of in (type(pipeline.describer.rows), FrameWords))
    for owner, name, stage in (
        (pipeline.learners[TOPICS], "partial_fit", "learning"),
        (pipeline.learners[TOPICS], "flush", "learning"),
        (pipeline.learners["topic_examples"], "offer", "examples"),
        (pipeline.learners["topic_examples"], "rescore", "examples"),
        (buffer.EpochBuffer, "add_words", "sampling and crops"),
        (rows, "neighbourhood_means", "words"),
        (pipeline.contents, "look", "looks"),
        (pipeline.contents, "settle", "looks"),
        (pipeline.contents, "map_of", "maps"),
    ):
        topics.watch(owner, name, stage)


def memory_slope(readings: list[tuple[int, int]]) -> float:
    """Return the growth of resident memory over the later frames, MB per 100,000 frames."""
    late = np.array(readings[int(len(readings) * (1.0 - SLOPE_SHARE)) :], np.float64)
    if len(late) < 2:
        return 0.0
    return float(np.polyfit(late[:, 0], late[:, 1], 1)[0]) * 1e5 / 1e6


def print_row(row: dict) -> None:
    """Print one row for people."""
    print(
        f"{row['size']} on {row['cores']} core(s): {row['fps']:.1f} frames/s, p50 {row['p50_ms']:.1f} ms, "
        f"p99 {row['p99_ms']:.1f} ms, CPU {row['cpu_ms_per_frame']:.1f} ms a frame, {row['rss_mb']:.0f} MB, "
        f"slope {row['rss_slope_mb_per_1e5']:+.1f} MB per 100,000 frames"
    )
    print("  " + ", ".join(f"{name} {spent:.2f} ms" for name, spent in row["stages"].items()))
    parts = ", ".join(f"{name} {spent:.2f} ms" for name, spent in row["topics_cpu_ms"].items())
    print(f"  of the CPU time topics {row['topics_cpu_ms_per_frame']:.2f} ms: {parts}")


def _child(argv: list[str]) -> int:
    uri, width, height, cores, frames = argv[1], int(argv[2]), int(argv[3]), argv[4], int(argv[5])
    if cores == "1" and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    try:
        print_json(_bench(uri, width, height, cores, frames))
    except AgentError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(_child(sys.argv))
