"""The heartbeat: one status message from what pipeline, capture, publisher and board say of themselves.

Called by the outlet on the sender thread. It reads counters that other threads write (each one word, or a copy) and
must not touch a stage.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from stillwatch.base import Clock, combine, versions
from stillwatch.outlet import health
from stillwatch.transport.wire import messages as m

if TYPE_CHECKING:  # `stillwatch health` asks every half minute, and needs none of what these load
    from stillwatch.pipeline import Pipeline
    from stillwatch.sources import Capture

RATE_WINDOW_NS = 10_000_000_000
LONGEST_NS = 10_000_000_000  # without a heartbeat, while other messages say that the agent lives


class StatusReporter:
    """Makes status messages of one run.

    Parameters
    ----------
    headers : Headers
        The sender thread's own; statuses have a sequence of their own.
    folder : path
        Whose disk's free bytes are reported.
    extra : callable
        Returns what only agent/process/accounts.py knows: drops, tx_bytes, endpoints, sequences, not_kept.
    """

    def __init__(
        self,
        headers: m.Headers,
        clock: Clock,
        pipeline: Pipeline,
        capture: Capture,
        *,
        folder: Any,
        config_hash: str,
        memory_bytes: int,
        extra: Callable[[], dict[str, Any]],
    ):
        self._headers = headers
        self._clock = clock
        self._pipeline = pipeline
        self._capture = capture
        self._folder = folder
        self._config_hash = config_hash
        self._memory_bytes = memory_bytes
        self._extra = extra
        self._versions = versions()
        self._mark = (clock.monotonic_ns(), 0)
        self._rate_hz = 0.0
        self._told: tuple[tuple[Any, ...], int] | None = None  # what people act on of the last heartbeat, and when

    def __call__(self, was_heard: bool) -> m.Status | None:
        """Return the heartbeat; None where it would say nothing that people act on.

        was_heard : other messages left since the last call, and say that the agent lives
        """
        pipeline, capture, now_ns = self._pipeline, self._capture, self._clock.monotonic_ns()
        extra = self._extra()
        state = combine(capture.state, pipeline.gate_state).value
        news = (
            state,
            pipeline.progress,
            pipeline.certainty.why.value,
            dict(pipeline.events.suppressed),
            {name: extra.get(name) for name in ("drops", "endpoints", "not_kept")},
        )
        if was_heard and self._told is not None and self._told[0] == news and now_ns < self._told[1] + LONGEST_NS:
            return None
        self._told = news, now_ns
        return self._status(state, extra)

    def _status(self, state: str, extra: dict[str, Any]) -> m.Status:
        pipeline, capture = self._pipeline, self._capture
        counts = pipeline.counts(capture.counters()["dropped"])
        frame = pipeline.last_frame
        age_s = capture.last_frame_age_s()
        head = self._headers.next(
            m.Status,
            t_ns=frame.t_ns if frame else 0,
            mono_ns=self._clock.monotonic_ns(),
            wall_ns=self._clock.wall_ns(),
            frame=frame.sequence if frame else -1,
        )
        models = pipeline.learners.models
        return m.Status(
            **head,
            state=state,
            learning=pipeline.progress,
            unsure=pipeline.certainty.why.value,
            busy=pipeline.certainty.busy if pipeline.frames else None,
            **counts.as_dict(),
            suppressed=dict(pipeline.events.suppressed),
            epochs={"patches": models.epoch if models else 0, "stream": frame.epoch if frame else 0},
            model_hash=pipeline.model_hash,
            encoder_hash=pipeline.features.encoder_hash,
            config_hash=self._config_hash,
            memory_bytes=self._memory_bytes,
            rss_bytes=health.rss_bytes(),
            cpu_seconds=health.cpu_seconds(),
            temperature_c=health.temperature_c(),
            disk_free_bytes=health.disk_free_bytes(self._folder),
            rate_hz=self._rate(counts.frames),
            frame_age_s=m.finite_or_none(age_s),
            versions=self._versions,
            source_kind=capture.info.kind,
            source_uri=capture.info.uri[:256],
            **extra,
        )

    def _rate(self, frames: int) -> float:
        now_ns = self._clock.monotonic_ns()
        since_ns, since_frames = self._mark
        if now_ns > since_ns:
            self._rate_hz = (frames - since_frames) / ((now_ns - since_ns) / 1e9)
        if now_ns - since_ns > RATE_WINDOW_NS:
            self._mark = (now_ns, frames)
        return max(self._rate_hz, 0.0)
