"""Watches one case of the suite with the real pipeline and returns its row.

Called by tools/evaluate/suite/command.py, here or in worker processes. It must not tune anything.
"""

import pathlib
from collections.abc import Iterator
from dataclasses import replace

from stillwatch.base import Frame, RealClock
from stillwatch.settings import Config
from stillwatch.sources import FrameMaker, RawFrame
from stillwatch.tools.evaluate.baselines import scores_of_frames
from stillwatch.tools.evaluate.figures import areas, figures, rounded
from stillwatch.tools.evaluate.metrics import match
from stillwatch.tools.evaluate.run import watch
from stillwatch.tools.evaluate.suite.cases import Case, stream_of
from stillwatch.tools.evaluate.suite.clips import Stream


def run_case(case: Case, data: pathlib.Path, config: Config, baselines: tuple[str, ...]) -> dict:
    """Return one row: {clip, group, auc, events_total, events_found, false_alerts, median_delay_s, hours} and more.

    other_alerts: new alerts of kinds other than novel, outside of every event. baselines: {name: AUC}.
    """
    stream = stream_of(case, data)
    run = watch(config, frames(stream, config))
    own = figures(run, stream.truth)
    other = match([number for number, _ in run.other], stream.truth)
    scores = scores_of_frames(config, run, baselines, frames(stream, config)) if baselines else {}
    return {
        "clip": case.name,
        "group": case.group,
        **own,
        "other_alerts": len(other.false_alerts),
        "frames": len(run.number),
        "scored_from": run.scored_from,
        "camera": "moving" if run.moving else "fixed",
        "fps": rounded(run.fps),
        "warnings": run.warnings,
        "baselines": {name: areas(run, stream.truth, score)["auc"] for name, score in scores.items()},
    }


def frames(stream: Stream, config: Config) -> Iterator[Frame]:
    """Yield the stream's frames at working size, through the same scaling as every source; `sequence` its numbers."""
    maker = FrameMaker(config.source, RealClock(), False, 0, None)
    for number, colour, t_ns in stream.pictures():
        frame = maker.make(RawFrame(colour, t_ns, pixel_format="bgr24"))
        if frame is not None:
            yield replace(frame, sequence=number)
