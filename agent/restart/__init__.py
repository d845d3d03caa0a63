"""Checkpoints, recordings, going on after a stop, and replaying to the same bits.

Owns: the checkpoint's file, the version of the state's meaning, the recorder, the comparison of a replay.
In: a pipeline's state, frames. Out: files, and pipelines that go on.
Imports: base, settings, sources, pipeline, transport.disk, transport.wire.
"""

from stillwatch.base import cpu_features, versions
from stillwatch.restart.checkpoint import newest_state
from stillwatch.restart.recorder import CHECKPOINTS_SPREAD, Recorder
from stillwatch.restart.replay import Comparison, Replay
from stillwatch.restart.resume import Resumed, resume

__all__ = [
    "CHECKPOINTS_SPREAD",
    "Comparison",
    "Recorder",
    "Replay",
    "Resumed",
    "cpu_features",
    "newest_state",
    "resume",
    "versions",
]
