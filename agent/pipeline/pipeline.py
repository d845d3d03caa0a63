"""One frame through every stage, in the order of the data flow: the third file to open.

Called by agent/process/app.py, replays and evaluations, on one thread. It must not read a clock to decide anything:
live or replayed, the same frames, config, seed and journal give the same bits.
"""

from collections import Counter
from dataclasses import astuple, dataclass, replace
from typing import Any, Protocol

import numpy as np

from stillwatch.base import (
    Clock,
    Frame,
    Nav,
    SnapshotError,
    SourceState,
    State,
    UsageError,
    require,
    with_prefix,
    without_prefix,
)
from stillwatch.epochs import EpochReport, Learners
from stillwatch.events import EventLife, EventRecord
from stillwatch.features import FeatureExtractor, Features
from stillwatch.gate import Gate, Verdict
from stillwatch.novelty import Novelty, Score
from stillwatch.pipeline.summaries import Summaries
from stillwatch.pipeline.thumbnail import jpeg_thumbnail
from stillwatch.settings import Config
from stillwatch.transport.wire import Headers, Message

OWN_STATE = ("counts", "shape", "nav", "labels", "refused_reasons", "refused_counts")
MAX_LABELS = 256
MAX_LABEL_CHARS = 64


class Sink(Protocol):
    """What takes the pipeline's messages: the outlet, or a list in tests."""

    def send(self, message: Message) -> None: ...


@dataclass(frozen=True, slots=True)
class Step:
    """What one frame led to. `score` is None where the gate refused the frame."""

    frame: Frame
    verdict: Verdict
    score: Score | None
    events: list[EventRecord]
    activation: EpochReport | None


class Pipeline:
    """All stages of one agent, allocated from the config.

    Parameters
    ----------
    config : Config
    sink : Sink
    clock : Clock
        Stamps messages, and nothing else.
    headers : Headers, optional
        Who sends; an evaluation needs none.
    """

    def __init__(self, config: Config, sink: Sink, clock: Clock, *, headers: Headers | None = None):
        self.config = config
        self._sink = sink
        self.summaries = Summaries(headers or Headers(config.agent.id, "evaluation", "none", 0), clock)
        height, width = config.source.height, config.source.width
        self.gate = Gate(config.gate, height=height, width=width)
        self.features = FeatureExtractor(config)
        self.novelty = Novelty(
            config,
            capacity_patches=self.features.capacity_patches,
            n_patch_dims=self.features.n_patch_dims,
            n_frame_dims=self.features.n_frame_dims,
        )
        self.learners = Learners(
            config, clock, n_patch_dims=self.novelty.n_row_dims, n_frame_dims=self.features.n_frame_dims
        )
        self.events = EventLife(config.events)
        self._shape = (height, width)
        self.frames = 0
        self.accepted = 0
        self.refused: Counter[str] = Counter()
        self.alerts = 0
        self.last_frame: Frame | None = None
        self.gate_state = SourceState.LIVE
        self.nav: Nav | None = None  # from the control socket: overrides what the source knows
        self.model_hash = ""
        self.labels: dict[str, str] = {}

    def step(self, frame: Frame) -> Step:
        """Take one frame through every stage. Order is the data flow."""
        if frame.grey.shape != self._shape:
            self._reshape(frame)
        if self.nav is not None:
            frame = replace(frame, nav=self.nav)
        verdict = self.gate.judge(frame)
        self._count(frame, verdict)
        score, features, activation = None, None, None
        if verdict.accepted:
            activation = self.learners.activate()
            features = self.features.extract(frame)
            self.novelty.observe(frame)
            self.gate.moving = self.novelty.moving
            score = self.novelty.score(frame, features, self.learners.models)
        records = self.events.update(frame, score, verdict, self.learners.models)
        if score is not None and features is not None:
            self.novelty.settle(in_event=self.events.active)
            self._learn(frame, features)
        nearest = -1 if features is None or not records else self.learners.nearest_exemplar(features.frame)
        self._publish(frame, verdict, score, records, activation, nearest)
        return Step(frame, verdict, score, records, activation)

    def finish(self) -> EpochReport | None:
        """End of the stream: close open events, make the epoch being learnt active, publish both."""
        report = self.learners.finish()
        if report is not None:
            self._publish_epoch(report)
        if self.last_frame is not None:
            for record in self.events.finish(self.last_frame):
                self._publish_alert(self.last_frame, record, -1)
        return report

    def close(self) -> None:
        """Stop the learner's thread."""
        self.learners.close()

    def _reshape(self, frame: Frame) -> None:
        """A new stream epoch of another size: grids and masks are rebuilt within what is allocated."""
        height, width = frame.grey.shape
        self._shape = (height, width)
        self.gate.reshape(height, width)
        self.features.reshape(height, width)
        self.novelty.reshape(self.features.grid_shape)

    def _count(self, frame: Frame, verdict: Verdict) -> None:
        self.frames += 1
        self.last_frame = frame
        self.gate_state = verdict.state
        if verdict.accepted:
            self.accepted += 1
        else:
            self.refused[verdict.reason] += 1

    def _learn(self, frame: Frame, features: Features) -> None:
        """Hand the frame to those who learn: first the encoder and the camera's kind, then the learners."""
        if not features.ready:
            self.features.observe(features)
        elif self.novelty.decided:
            exemplars = self.config.exemplars
            jpeg = jpeg_thumbnail(frame.colour, exemplars.thumbnail_px, exemplars.thumbnail_bytes)
            rows = self.novelty.augment(frame, features)
            self.learners.offer(frame.sequence, frame.t_ns, rows, features.valid, features.frame, jpeg)

    # -- messages --------------------------------------------------------------------------------------------

    def _publish(
        self,
        frame: Frame,
        verdict: Verdict,
        score: Score | None,
        records: list[EventRecord],
        activation: EpochReport | None,
        nearest: int,
    ) -> None:
        if activation is not None:
            self._publish_epoch(activation)
        for change in self.summaries.gate_changes(frame, verdict):
            self._sink.send(change)
        for record in records:
            self._publish_alert(frame, record, nearest)
        self._sink.send(self.summaries.score(frame, verdict, score, self.events.open_id))

    def _publish_alert(self, frame: Frame, record: EventRecord, nearest: int) -> None:
        thumbnail = b""
        if record.phase != "end":
            exemplars = self.config.exemplars
            thumbnail = jpeg_thumbnail(frame.colour, 2 * exemplars.thumbnail_px, exemplars.thumbnail_bytes)
        if record.phase == "new":
            self.alerts += 1
        self._sink.send(self.summaries.alert(frame, record, nearest, thumbnail))

    def publish_all(self) -> int:
        """Publish models and exemplars again, for a ground station that asks; return how many messages."""
        report = self.learners.report_all()
        return 0 if report is None else self._publish_epoch(report)

    def label(self, which: str, component: int, name: str) -> None:
        """Give a component a name that people use; an empty one takes it away. It changes no model."""
        models = self.learners.models
        if models is None or which not in models or component not in models[which].ids:
            raise UsageError(f"{which} has no component {component}")
        key = f"{which}/{component}"
        self.labels.pop(key, None)
        if name:
            self.labels[key] = name[:MAX_LABEL_CHARS]
            while len(self.labels) > MAX_LABELS:
                del self.labels[next(iter(self.labels))]

    @property
    def progress(self) -> float:
        """How far the start-up has come: 0 at the first frame, 1 once frames are scored."""
        return self.novelty.progress

    def _publish_epoch(self, report: EpochReport) -> int:
        """Tell what an epoch did; return in how many messages."""
        self.model_hash = report.learner_hash
        messages = self.summaries.epoch(report, self.labels)
        for message in messages:
            self._sink.send(message)
        return len(messages)

    # -- state -----------------------------------------------------------------------------------------------

    def state(self) -> State:
        """Return all that a restart needs to go on with the same bits; waits for a running epoch."""
        state: State = {}
        for name, stage in self._stages().items():
            state.update(with_prefix(name, stage.state()))
        state["pipeline.counts"] = np.array([self.frames, self.accepted, self.alerts], np.int64)
        state["pipeline.shape"] = np.array(self._shape, np.int64)
        nav = [] if self.nav is None else list(astuple(self.nav))
        state["pipeline.nav"] = np.array(nav, np.float64)
        state["pipeline.labels"] = np.array([f"{key}={name}" for key, name in self.labels.items()], np.str_)
        state["pipeline.refused_reasons"] = np.array(sorted(self.refused), np.str_)
        state["pipeline.refused_counts"] = np.array([self.refused[r] for r in sorted(self.refused)], np.int64)
        return state

    def restore(self, state: State) -> None:
        """Go on from a saved state; one that does not fit raises SnapshotError and leaves the stages as they were."""
        require(state, tuple(f"pipeline.{name}" for name in OWN_STATE), "checkpoint")
        height, width = (int(n) for n in state["pipeline.shape"])
        if height > self.config.source.height or width > self.config.source.width:
            box = f"{self.config.source.width}x{self.config.source.height}"
            raise SnapshotError(f"checkpoint is of frames {width}x{height}, larger than the config's {box}")
        before = self.state()
        try:
            self._restore(state, height, width)
        except SnapshotError:
            self._restore(before, *(int(n) for n in before["pipeline.shape"]))
            raise

    def _restore(self, state: State, height: int, width: int) -> None:
        self._shape = (height, width)
        self.gate.reshape(height, width)
        self.features.reshape(height, width)
        self.novelty.reshape(self.features.grid_shape)
        for name, stage in self._stages().items():
            stage.restore(without_prefix(name, state))
        self.frames, self.accepted, self.alerts = (int(n) for n in state["pipeline.counts"])
        reasons, counts = state["pipeline.refused_reasons"], state["pipeline.refused_counts"]
        self.labels = dict(str(entry).split("=", 1) for entry in state["pipeline.labels"])
        self.nav = Nav(*state["pipeline.nav"].tolist()) if len(state["pipeline.nav"]) else None
        self.model_hash = self.learners.learner_hash() if self.learners.models else ""
        self.refused = Counter({str(r): int(n) for r, n in zip(reasons, counts, strict=True)})

    def learner_hash(self) -> str:
        """Return the hash of what was learnt, after waiting for a running epoch."""
        return self.learners.learner_hash()

    def _stages(self) -> dict[str, Any]:
        return {
            "gate": self.gate,
            "features": self.features,
            "novelty": self.novelty,
            "events": self.events,
            "learners": self.learners,
        }

    def memory(self) -> list[tuple[str, int]]:
        """Return (stage, bytes) of everything allocated for the life of the agent."""
        rows: list[tuple[str, int]] = []
        for name, stage in self._stages().items():
            taken = stage.memory_bytes()
            rows.extend(taken.items() if isinstance(taken, dict) else [(name, taken)])
        return rows
