"""One frame through every stage, in the order of the data flow: the third file to open.

Called by agent/process/app.py, replays and evaluations, on one thread. It must not read a clock to decide anything:
live or replayed, the same frames, config, seed and journal give the same bits.
"""

import functools
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Protocol

import numpy as np

from stillwatch.base import (
    Array,
    CameraRule,
    Clock,
    Commit,
    Frame,
    Laps,
    Nav,
    Restorable,
    SnapshotError,
    SourceState,
    Stage,
    State,
    UsageError,
    check_arrays,
    prepare_parts,
    prepare_record,
    record_state,
    saved,
    split_off,
    state_of_parts,
    with_prefix,
)
from stillwatch.contents import Contents, ViewContents
from stillwatch.describing import Described, Describer, crop_around
from stillwatch.epochs import CROP_BYTES, EpochReport, FrameWords, Learners, Models
from stillwatch.events import Certainty, EventLife, Unsure
from stillwatch.features import WORD_REACH, Rows
from stillwatch.gate import Verdict
from stillwatch.novelty import Novelty, Sizes
from stillwatch.pipeline.best_view import BestView
from stillwatch.pipeline.counts import RunCounts
from stillwatch.pipeline.kind_pictures import KindPictures
from stillwatch.pipeline.step import Step
from stillwatch.pipeline.summaries import Summaries
from stillwatch.settings import Config
from stillwatch.transport.wire import VISITS, Headers, Message

MAX_LABELS = 256
MAX_LABEL_CHARS = 64
CROP_REACH = 2  # times what a word is the mean of: what is around it says what it is part of


@dataclass
class _Counts:
    """Frames seen, accepted, alerts raised, and the frames' shape: the pipeline's own numbers as they are saved."""

    frames: int = saved(0, low=0)
    accepted: int = saved(0, low=0)
    alerts: int = saved(0, low=0)
    height: int = saved(1, low=1)
    width: int = saved(1, low=1)


class Sink(Protocol):
    """What takes the pipeline's messages: the outlet, or a list in tests."""

    def send(self, message: Message) -> None: ...


class Nowhere:
    """A sink for whom nobody wants to hear: messages are made, and forgotten."""

    def send(self, message: Message) -> None:
        """Ignore one message."""


class Pipeline(Restorable):
    """All stages of one agent, allocated from the config.

    Parameters
    ----------
    config : Config
    sink : Sink
    clock : Clock
        Stamps messages and measures stages, and decides nothing.
    headers : Headers, optional
        Who sends; an evaluation needs none.
    """

    def __init__(self, config: Config, sink: Sink, clock: Clock, *, headers: Headers | None = None):
        self.config = config
        self._sink, self._clock = sink, clock
        headers = headers or Headers(config.agent.id, "evaluation", "none", 0)
        self.summaries = Summaries(headers, clock)
        self.describer = Describer(config, clock)
        self.features = self.describer.features
        widths = self.describer.widths()
        sizes = Sizes(self.features.capacity_patches, self.features.n_patch_dims, widths["n_patch_dims"])
        self.novelty = Novelty(config, sizes)
        self.contents = ViewContents(config)
        self.learners = Learners(config, clock, **widths)
        self.events = EventLife(config.events)
        self.certainty = Certainty()
        self.view = BestView(config.exemplars, config.features.step_px)
        self.kind_pictures = KindPictures()
        self._seconds: dict[str, float] = {}
        self.frames = 0
        self.accepted = 0
        self.refused: Counter[str] = Counter()
        self.alerts = 0
        self.last_frame: Frame | None = None
        self.gate_state = SourceState.LIVE
        self.nav: Nav | None = None  # from the control socket: overrides what the source knows
        self.model_hash = ""
        self.labels: dict[str, str] = {}
        self._told_rule: CameraRule | None = None  # under which the encoder was told of

    def step(self, frame: Frame) -> Step:
        """Take one frame through every stage. Order is the data flow."""
        return self.take(self.describe(frame))

    @property
    def stage_seconds(self) -> dict[str, float]:
        """Seconds spent so far, by stage."""
        return self.describer.stage_seconds | self._seconds

    @property
    def looks_ahead(self) -> bool:
        """Whether a frame may be described before the one before it was taken: once the encoder is frozen."""
        return self.features.ready

    def describe(self, frame: Frame) -> Described:
        """Judge and describe the next frame."""
        return self.describer.describe(frame)

    def take(self, described: Described) -> Step:
        """Score a described frame, learn from it and tell what it led to; whoever described it, by the same state."""
        frame, verdict = described.frame, described.verdict
        if self.nav is not None:
            frame = replace(frame, nav=self.nav)
        self._count(frame, verdict)
        if described.rows is not None:
            return self._look(frame, described, described.rows)
        records = self.events.update(frame, None, verdict, self.learners.models)
        views = self.view.tell(records, frame, None, self.events.since)
        return self._publish(Step(frame, verdict, None, records, views, None, self.events.open_id))

    def _look(self, frame: Frame, described: Described, rows: Rows) -> Step:
        """Score and learn a frame that the gate let pass."""
        verdict = described.verdict
        passed = Laps(self._seconds, self._clock)
        activation = self.learners.activate()
        models = self.learners.models
        score = self.novelty.score(frame, rows, models)
        passed.stage("novelty")
        is_due = self.contents.is_due(frame.t_ns)
        contents = self.contents.look(rows, models) if is_due else None
        share_like = functools.partial(self.novelty.share_like, rows)
        records = self.events.update(frame, score, verdict, models, contents, share_like)
        passed.stage("contents")

        @functools.cache
        def in_view() -> Contents | None:
            return contents if contents is not None else self.contents.look(rows, models)

        views = self.view.tell(records, frame, score, self.events.since, in_view)
        over = self.novelty.settle(score, in_event=self.events.active)
        if score.judgement is not None:
            self.kind_pictures.update(frame, score.judgement.sightings, over, rows.grid_shape)
        if is_due:
            self.contents.settle(contents, frame.t_ns, view=rows.view, in_event=self.events.active)
        if described.features is not None:
            self.features.observe(described.features)
        if said := self.certainty.update(frame.grey, score, rows.rule):
            code = "unsure" if self.certainty.why is Unsure.BUSY_START else "sure"
            self._send([self.summaries.notice("info", code, said, frame)])
        passed.stage("events")
        if rows.ready:
            self._offer(frame, rows, described.jpeg, models)
            self._tell_encoder(rows.rule)
        passed.stage("learning")
        nearest = self.learners.nearest_exemplar(rows.frame) if records else -1
        told = (records, views, activation, self.events.open_id, nearest)
        step = self._publish(Step(frame, verdict, score, *told, contents))
        passed.stage("telling")
        return step

    def _tell_encoder(self, rule: CameraRule) -> None:
        """Say how patches become rows: once, and again when the kind of camera is another one."""
        encoder = self.features.encoder
        if encoder is not None and rule != self._told_rule:
            self._told_rule = rule
            self._send([self.summaries.encoder(encoder, self.config, rule)])

    def _offer(self, frame: Frame, rows: Rows, jpeg: bytes, models: Models | None) -> None:
        """Let the learners sample a frame."""
        side = CROP_REACH * WORD_REACH * self.config.features.step_px

        def crop(word: int) -> bytes:
            return crop_around(frame.colour, rows.word_centre(word), side, CROP_BYTES)

        words = FrameWords(rows.words, rows.word_valid, crop)

        def note() -> bytes:
            shown = self.contents.map_of(rows, models) if jpeg else None
            return b"" if shown is None else shown.pack()

        self.learners.offer(frame.sequence, frame.t_ns, rows.patches, rows.valid, words, rows.frame, jpeg, note)

    def finish(self) -> EpochReport | None:
        """End of the stream: close open events, make the epoch being learnt active, publish both.

        What was learnt last is told whether or not an epoch was under way.
        """
        report = self.learners.finish()
        last = report or self.learners.report()
        if last is not None:
            self._publish_epoch(last, is_last=True)
        self._tell_kinds(at_once=True)
        if self.last_frame is not None:
            records = self.events.finish(self.last_frame)
            views = self.view.tell(records, self.last_frame, None, self.events.since)
            self._send(self.summaries.alerts(self.last_frame, records, views))
        self._send(self.summaries.scores())
        return report

    def close(self) -> None:
        """Stop the learner's thread."""
        self.learners.close()

    def _count(self, frame: Frame, verdict: Verdict) -> None:
        self.frames += 1
        self.last_frame = frame
        self.gate_state = verdict.state
        if verdict.accepted:
            self.accepted += 1
        else:
            self.refused[verdict.reason] += 1

    # -- messages --------------------------------------------------------------------------------------------

    def _publish(self, step: Step) -> Step:
        """Send what a frame led to."""
        self.alerts += sum(record.phase == "new" for record in step.events)
        if step.activation is not None:
            self.model_hash = step.activation.learner_hash
        self._send(self.summaries.step(step, self.labels))
        if step.activation is not None:
            self._tell_kinds()
        return step

    def _tell_kinds(self, *, at_once: bool = False) -> int:
        """Tell what is new of the kinds of visits; return in how many messages."""
        told, gone = self.kind_pictures.tell(self.novelty.kinds, at_once=at_once)
        return self._send(self.summaries.kinds(told, gone, self.novelty.watched_s, self.labels))

    def _send(self, messages: Iterable[Message]) -> int:
        n_sent = 0
        for message in messages:
            self._sink.send(message)
            n_sent += 1
        return n_sent

    def publish_all(self) -> int:
        """Publish models and exemplars again, for a ground station that asks; return how many messages."""
        if self._told_rule is not None and self.features.encoder is not None:
            self._send([self.summaries.encoder(self.features.encoder, self.config, self._told_rule)])
        report = self.learners.report_all()
        self.kind_pictures.forget()
        n_kinds = self._tell_kinds(at_once=True)
        return n_kinds + (0 if report is None else self._publish_epoch(report, is_whole=True))

    def label(self, which: str, component: int, name: str) -> None:
        """Give a component a name that people use; an empty one takes it away. It changes no model."""
        models = self.learners.models
        ids = [kind.id for kind in self.novelty.kinds] if which == VISITS else []
        if which != VISITS and models is not None and which in models:
            ids = models[which].ids.tolist()
        if component not in ids:
            raise UsageError(
                f"{which} has no component {component}; known are {', '.join(map(str, ids[:20])) or 'none yet'}"
            )
        key = f"{which}/{component}"
        self.labels.pop(key, None)
        if name:
            self.labels[key] = name[:MAX_LABEL_CHARS]
            while len(self.labels) > MAX_LABELS:
                del self.labels[next(iter(self.labels))]

    def counts(self, dropped: int = 0) -> RunCounts:
        """Return what was counted so far; `dropped` is what the capture lost before us."""
        events = self.events.n_events
        return RunCounts(self.frames, self.accepted, dict(self.refused), dropped, events, self.alerts)

    @property
    def progress(self) -> float:
        """How far the start-up has come: 0 at the first frame, 1 once frames are scored."""
        return self.novelty.progress

    def _publish_epoch(self, report: EpochReport, *, is_last: bool = False, is_whole: bool = False) -> int:
        """Tell what an epoch did; return in how many messages."""
        self.model_hash = report.learner_hash
        return self._send(self.summaries.epoch(report, self.labels, is_last=is_last, is_whole=is_whole))

    # -- state -----------------------------------------------------------------------------------------------

    def state(self) -> State:
        """Return all that a restart needs to go on with the same bits; waits for a running epoch."""
        state = state_of_parts(self._stages())
        reasons = sorted(self.refused)
        own = {
            **record_state(_Counts(self.frames, self.accepted, self.alerts, *self.describer.shape)),
            "labels": np.array([f"{key}={name}" for key, name in self.labels.items()], np.str_),
            "refused_reasons": np.array(reasons, np.str_),
            "refused_counts": np.array([self.refused[reason] for reason in reasons], np.int64),
        }
        if self.nav is not None:
            own.update(with_prefix("nav", record_state(self.nav)))
        return state | with_prefix("pipeline", own)

    def prepare(self, state: State) -> Commit:
        """Validate `state` and return its commit; SnapshotError, and no change, where it does not fit."""
        own, theirs = split_off("pipeline", state)
        counts, nav = _prepare_own(own)
        box = self.config.source
        if counts.height > box.height or counts.width > box.width:
            raise SnapshotError(
                f"checkpoint is of frames {counts.width}x{counts.height}, larger than the config's "
                f"{box.width}x{box.height}"
            )
        take_stages = prepare_parts(self._stages(), theirs, "checkpoint")

        def commit() -> None:
            self.describer.reshape(counts.height, counts.width)
            take_stages()
            self.frames, self.accepted, self.alerts = counts.frames, counts.accepted, counts.alerts
            self.labels = dict(str(entry).split("=", 1) for entry in own["labels"])
            self.nav = nav
            refused = zip(own["refused_reasons"], own["refused_counts"], strict=True)
            self.refused = Counter({str(reason): int(n) for reason, n in refused})
            self.model_hash = self.learners.learner_hash() if self.learners.models else ""

        return commit

    def learner_hash(self) -> str:
        """Return the hash of what was learnt, after waiting for a running epoch."""
        return self.learners.learner_hash()

    def _stages(self) -> dict[str, Stage]:
        return {
            **self.describer.stages(),
            "novelty": self.novelty,
            "contents": self.contents,
            "events": self.events,
            "certainty": self.certainty,
            "view": self.view,
            "kind_pictures": self.kind_pictures,
            "learners": self.learners,
        }

    def memory(self) -> list[tuple[str, int]]:
        """Return (stage, bytes) of everything allocated for the life of the agent."""
        held = [self.describer.rows.memory_bytes(), *(stage.memory_bytes() for stage in self._stages().values())]
        return [row for part in held for row in part.items()]


def _prepare_own(own: State) -> tuple[_Counts, Nav | None]:
    """Return the pipeline's own counts and position that were saved; SnapshotError where anything does not fit."""
    names = {field.name for field in fields(_Counts)}
    numbers = {name: array for name, array in own.items() if name in names}
    texts = {name: array for name, array in own.items() if name not in names}
    counts = _Counts()
    prepare_record(counts, numbers, "pipeline")()
    wanted = {
        "labels": Array(np.str_, (None,)),
        "refused_reasons": Array(np.str_, (None,)),
        "refused_counts": Array(np.int64, (None,), low=1),
    }
    has_nav = any(name.startswith("nav.") for name in own)
    if has_nav:
        wanted |= {f"nav.{field.name}": Array(np.float64, (), nan=True) for field in fields(Nav)}
    check_arrays(texts, wanted, "pipeline")
    if own["refused_reasons"].shape != own["refused_counts"].shape:
        raise SnapshotError(
            f"pipeline: {len(own['refused_reasons'])} reasons and {len(own['refused_counts'])} counts of refused frames"
        )
    if nameless := [str(entry) for entry in own["labels"] if "=" not in str(entry)]:
        raise SnapshotError(f"pipeline: label {nameless[0]!r} is no component=name")
    nav = Nav(**{field.name: float(own[f"nav.{field.name}"]) for field in fields(Nav)}) if has_nav else None
    return counts, nav
