"""Runs the real pipeline over one source in a process of its own, pinned to one core, and writes what it scored.

Started by tools/evaluate/command.py as `python -m stillwatch.tools.evaluate.run CONFIG.json OUT.npz`. Whatever is
measured here is of the pipeline alone: no baseline may run in this process.
"""

import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

import msgspec
import numpy as np

from stillwatch.base import AgentError
from stillwatch.settings import Config

TIMEOUT_S = 3600.0
_COLUMNS = ("value", "rarity", "learning", "t_ns")


@dataclass(frozen=True, slots=True)
class Run:
    """What the pipeline made of a clip.

    score, rarity : (n,) float64, NaN where the frame was refused or nothing was scored yet. scored_from: first frame
    with a score, None where there is none. alerts: frame numbers of new alerts of kind "novel". t_ns: (n,) int64.
    """

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


def run_pinned(config: Config) -> Run:
    """Run `config`'s source in a child on one core; AgentError with the child's last line where it fails."""
    with tempfile.TemporaryDirectory(prefix="stillwatch-evaluate-") as folder:
        setup, out = pathlib.Path(folder, "config.json"), pathlib.Path(folder, "scores.npz")
        setup.write_bytes(msgspec.json.encode(config))
        command = [sys.executable, "-m", "stillwatch.tools.evaluate.run", str(setup), str(out)]
        single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, env={**os.environ, **single}
        )
        if done.returncode or not out.exists():
            lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
            raise AgentError(f"evaluation of {config.source.uri} failed: {lines[-1]}")
        with np.load(out) as saved:
            arrays = {name: saved[name] for name in saved.files}
    facts = json.loads(str(arrays["facts"]))
    scored = np.flatnonzero(arrays["learning"] == 0)
    return Run(
        score=arrays["value"],
        rarity=arrays["rarity"],
        t_ns=arrays["t_ns"].astype(np.int64),
        scored_from=int(scored[0]) if len(scored) else None,
        alerts=facts["alerts"],
        other=[(frame, kind) for frame, kind in facts["other"]],
        suppressed=facts["suppressed"],
        moving=facts["moving"],
        fps=facts["fps"],
        peak_rss_mb=facts["peak_rss_mb"],
    )


class _Silent:
    """Takes the pipeline's messages and forgets them, after they were made as for a real receiver."""

    def send(self, message) -> None:
        """Ignore one message."""


def _run(config: Config) -> dict[str, np.ndarray]:
    """Take every frame of the source through the pipeline; return columns by frame, and the facts as JSON."""
    import cv2
    from threadpoolctl import threadpool_limits

    from stillwatch.base import RealClock
    from stillwatch.pipeline import Pipeline
    from stillwatch.transport.wire import EventKind

    cv2.setNumThreads(1)
    rows: list[tuple[float, float, float, float]] = []
    alerts: list[tuple[int, str]] = []
    other: list[tuple[int, str]] = []
    with threadpool_limits(1):
        pipeline = Pipeline(config, _Silent(), RealClock())
        begun = 0.0
        for frame in frames_of(config):
            begun = begun or time.perf_counter()
            step = pipeline.step(frame)
            score = step.score
            rows.append(
                (np.nan, np.nan, 1.0, frame.t_ns)
                if score is None
                else (score.value, score.rarity, score.learning, frame.t_ns)
            )
            for record in step.events:
                if record.phase == "new":
                    (alerts if record.kind == EventKind.NOVEL else other).append((len(rows) - 1, record.kind))
        seconds = time.perf_counter() - begun
        moving, suppressed = pipeline.novelty.moving, dict(pipeline.events.suppressed)
        pipeline.finish()
        pipeline.close()
    facts = {
        "alerts": [frame for frame, _ in alerts],
        "other": other,
        "suppressed": suppressed,
        "moving": moving,
        "fps": len(rows) / seconds if rows else 0.0,
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0,
    }
    table = np.array(rows, np.float64).reshape(-1, len(_COLUMNS))
    columns = {name: table[:, i] for i, name in enumerate(_COLUMNS)}
    return {**columns, "facts": np.array(json.dumps(facts))}


def frames_of(config: Config):
    """Yield every frame of the config's source at working size; AgentError where the source cannot be read."""
    from stillwatch.base import RealClock
    from stillwatch.sources import Capture, open_source

    clock = RealClock()
    capture = Capture(lambda: open_source(config.source.uri, config.source, clock), config.source, clock)
    capture.start()
    try:
        while True:
            frame = capture.next(1.0)
            if frame is not None:
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
        columns = _run(config)
    except AgentError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    np.savez(argv[2], allow_pickle=False, **columns)
    return 0


if __name__ == "__main__":
    sys.exit(_child(sys.argv))
