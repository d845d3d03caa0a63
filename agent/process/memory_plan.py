"""What a config will take of memory, stage by stage, found by building the stages.

Called by agent/process/app.py at start and by `check-config`. It must not estimate: the table is what a run allocates.
"""

from stillwatch.base import ConfigError, VirtualClock
from stillwatch.describing import SLOTS_MORE, STATE_EVERY, slot_bytes, state_bytes, states_at_once
from stillwatch.pipeline import Nowhere, Pipeline
from stillwatch.process.lookahead import AHEAD
from stillwatch.settings import Config, Problem

MemoryTable = list[tuple[str, int]]
# Resident before any stage is built, kernels compiled earlier: the interpreter, libraries, their code, a decoder.
# 278 MB measured: 297 resident at 640x480 from a file, 19 of them planned.
LIBRARIES_BYTES = 280_000_000

CLIPS_AT_ONCE = 4  # the ring, and of what it held: a clip that is collected, one that waits, one that is written


def memory_of(pipeline: Pipeline, ahead: int = 0) -> MemoryTable:
    """Return (stage, bytes) of a pipeline and of the frames that wait for it; `ahead`: in another process, at most."""
    source = pipeline.config.source
    ring = (source.ring_frames + 1) * source.width * source.height * 4
    if ahead:
        ring += (ahead + STATE_EVERY) * source.width * source.height * 4
        ring += (ahead + SLOTS_MORE) * slot_bytes(pipeline.describer, pipeline.config)
        ring += states_at_once(ahead) * state_bytes(pipeline.describer)
    clips = pipeline.config.clips.ring_bytes * CLIPS_AT_ONCE
    beside = {"clips": clips, "lessons": pipeline.learners.lesson_bytes() if ahead else 0}
    return [("frame ring", ring), *((name, n_bytes) for name, n_bytes in beside.items() if n_bytes), *pipeline.memory()]


def planned_memory(config: Config) -> MemoryTable:
    """Return the memory by stage that a run of this config will allocate; live sources look less far ahead."""
    pipeline = Pipeline(config, Nowhere(), VirtualClock())
    rows = memory_of(pipeline, AHEAD)
    pipeline.close()
    return rows


def check_memory(config: Config, memory: MemoryTable, file: str) -> None:
    """Raise ConfigError where what will be resident is over the limit: better no start than a kill in the field."""
    planned, limit = sum(n_bytes for _, n_bytes in memory), config.limits.memory_bytes
    total = planned + LIBRARIES_BYTES
    if total > limit:
        stage, largest = max(memory, key=lambda row: row[1])
        message = (
            f"{total} bytes will be resident, over the limit {limit}: {LIBRARIES_BYTES} of interpreter and libraries, "
            f"{planned} planned by the stages, most by {stage} with {largest}"
        )
        raise ConfigError([Problem(file, "limits.memory_bytes", str(limit), message)])
