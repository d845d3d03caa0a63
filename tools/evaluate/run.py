"""Runs the real pipeline over frames and keeps what it scored; over one source, in a process of its own on one core.

`watch` is called by tools/evaluate/suite/runner.py and here; the child is started by tools/evaluate/command.py as
`python -m stillwatch.tools.evaluate.run CONFIG.json OUT.npz FROM TO`. Whatever is measured there is of the pipeline
alone: no baseline may run in that process.
"""

import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields

import msgspec
import numpy as np

from stillwatch.base import AgentError, Frame
from stillwatch.settings import Config

TIMEOUT_S = 3600.0
_COLUMNS = ("value", "rarity", "learning")


@dataclass(frozen=True, slots=True)
class Run:
    """What the pipeline made of n frames of a clip.

    number : (n,) int64, the frames' numbers in their clip, rising; decimated and skipped frames are not among them.
    score, rarity : (n,) float64, NaN where the frame was refused or nothing was scored yet. t_ns: (n,) int64, stream
    time. scored_from: number of the first frame with a score, None where there is none. alerts: frame numbers of new
    alerts of kind "novel"; other: (frame number, kind) of the rest. kinds, warnings: what the pipeline says of itself.
    """

    number: np.ndarray
    score: np.ndarray
    rarity: np.ndarray
    t_ns: np.ndarray
    scored_from: int | None
    alerts: list[int]
    other: list[tuple[int, str]]
    suppressed: dict[str, int]
    moving: bool
    fps: float
    peak_rss_mb: float
    kinds: list[dict]
    warnings: list[str]


def watch(config: Config, frames: Iterable[Frame]) -> Run:
    """Take frames through a new pipeline on this thread, on one core; a frame's `sequence` is its number."""
    import cv2
    from threadpoolctl import threadpool_limits

    from stillwatch.base import MOVING, RealClock
    from stillwatch.pipeline import Nowhere, Pipeline
    from stillwatch.transport.wire import EventKind

    cv2.setNumThreads(1)
    rows: list[tuple[float, float, float]] = []
    stamps: list[tuple[int, int]] = []
    raised: list[tuple[int, str]] = []
    with threadpool_limits(1):
        pipeline = Pipeline(config, Nowhere(), RealClock())
        begun = 0.0
        for frame in frames:
            begun = begun or time.perf_counter()
            step = pipeline.step(frame)
            score = step.score
            rows.append((np.nan, np.nan, 1.0) if score is None else (score.value, score.rarity, score.learning))
            stamps.append((frame.sequence, frame.t_ns))
            raised += [(frame.sequence, record.kind) for record in step.events if record.phase == "new"]
        seconds = time.perf_counter() - begun
        moving, suppressed = pipeline.describer.camera.rule == MOVING, dict(pipeline.events.suppressed)
        unsure = pipeline.certainty.text
        pipeline.finish()
        pipeline.close()
    table = np.array(rows, np.float64).reshape(-1, len(_COLUMNS))
    places = np.array(stamps, np.int64).reshape(-1, 2)
    scored = np.flatnonzero(table[:, 2] == 0)
    return Run(
        number=places[:, 0],
        score=table[:, 0],
        rarity=table[:, 1],
        t_ns=places[:, 1],
        scored_from=int(places[scored[0], 0]) if len(scored) else None,
        alerts=[number for number, kind in raised if kind == EventKind.NOVEL],
        other=[(number, kind) for number, kind in raised if kind != EventKind.NOVEL],
        suppressed=suppressed,
        moving=moving,
        fps=len(rows) / seconds if rows else 0.0,
        peak_rss_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0,
        kinds=[asdict(kind) for kind in pipeline.novelty.kinds],
        warnings=[unsure] if unsure else [],
    )


_ARRAYS = ("number", "score", "rarity", "t_ns")


def run_pinned(config: Config, first: int = 0, last: int | None = None) -> Run:
    """Run `config`'s source in a child on one core, frames `first` to `last` of it (inclusive; None: to the end).

    AgentError with the child's last line where it fails.
    """
    with tempfile.TemporaryDirectory(prefix="stillwatch-evaluate-") as folder:
        setup, out = pathlib.Path(folder, "config.json"), pathlib.Path(folder, "scores.npz")
        setup.write_bytes(msgspec.json.encode(config))
        ends = [str(first), "end" if last is None else str(last)]
        command = [sys.executable, "-m", "stillwatch.tools.evaluate.run", str(setup), str(out), *ends]
        single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, env={**os.environ, **single}
        )
        if done.returncode or not out.exists():
            lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
            raise AgentError(f"evaluation of {config.source.uri} failed: {lines[-1]}")
        with np.load(out) as saved:
            arrays = {name: saved[name] for name in _ARRAYS}
            facts = json.loads(str(saved["facts"]))
    facts["other"] = [(frame, kind) for frame, kind in facts["other"]]
    return Run(**arrays, **facts)


def frames_of(config: Config, first: int = 0, last: int | None = None) -> Iterator[Frame]:
    """Yield the frames `first` to `last` (clip numbers, inclusive) of the config's source at working size.

    A frame's `sequence` is its number in the clip, whatever `source.rate_hz` leaves out. AgentError where the source
    cannot be read.
    """
    from stillwatch.base import RealClock
    from stillwatch.sources import Capture, open_source

    clock = RealClock()
    capture = Capture(lambda: open_source(config.source.uri, config.source, clock), config.source, clock)
    capture.start()
    try:
        while True:
            frame = capture.next(1.0)
            if frame is not None:
                if last is not None and frame.sequence > last:
                    return
                if frame.sequence >= first:
                    yield frame
            elif capture.ended:
                break
        if capture.error is not None and not capture.error.partial:
            raise capture.error
    finally:
        capture.stop()


def _pin_to_one_core() -> None:
    """Stay on the last core allowed; quietly on none where the system has no such call."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def _child(argv: list[str]) -> int:
    _pin_to_one_core()
    config = msgspec.json.decode(pathlib.Path(argv[1]).read_bytes(), type=Config)
    try:
        run = watch(config, frames_of(config, int(argv[3]), None if argv[4] == "end" else int(argv[4])))
    except AgentError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    arrays = {name: getattr(run, name) for name in _ARRAYS}
    facts = {field.name: getattr(run, field.name) for field in fields(run) if field.name not in _ARRAYS}
    np.savez(argv[2], allow_pickle=False, **arrays, facts=np.array(json.dumps(facts)))
    return 0


if __name__ == "__main__":
    sys.exit(_child(sys.argv))
