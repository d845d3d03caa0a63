"""Turns what the pipeline knows into messages: scores, alerts, models, clumps, exemplars, changes of state.

Called by agent/pipeline/pipeline.py on the pipeline thread; a new kind of message is made here, and goes out by a line
in `Summaries.step` or `Summaries.epoch`. It must not decide anything: numbers go out as they came, rounded to what a
reader can use.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from stillwatch.base import CameraRule, Clock, Frame, Nav, scrub
from stillwatch.contents import TopicMap
from stillwatch.epochs import EpochExemplar, EpochModel, EpochReport, HeldClumps
from stillwatch.events import EventRecord
from stillwatch.features import Encoder
from stillwatch.gate import Verdict
from stillwatch.pipeline.best_view import View
from stillwatch.pipeline.clump_news import ClumpNews
from stillwatch.pipeline.exemplar_news import ExemplarNews
from stillwatch.pipeline.kind_pictures import PicturedKind
from stillwatch.pipeline.model_message import model_fields
from stillwatch.pipeline.model_news import ModelNews
from stillwatch.pipeline.score_batch import ScoreBatch
from stillwatch.pipeline.share_news import ShareNews
from stillwatch.pipeline.step import Step
from stillwatch.settings import Config
from stillwatch.transport.wire import clump_fields
from stillwatch.transport.wire import messages as m


class Summaries:
    """Makes messages of one run.

    Parameters
    ----------
    headers : Headers
        Used by the pipeline thread alone.
    clock : Clock
        Stamps monotonic and wall time; stream time comes with the frames.
    """

    def __init__(self, headers: m.Headers, clock: Clock):
        self._headers = headers
        self._clock = clock
        self._scores = ScoreBatch(lambda **times: headers.next(m.Scores, **times))
        self._models = ModelNews()
        self._clumps = ClumpNews()
        self._exemplars = ExemplarNews()
        self._shares = ShareNews()
        self._t_ns = 0  # stream time of the newest frame: that of messages that come between two frames

    def go_on_at(self, t_ns: int) -> None:
        """Messages before the first frame of a run that goes on stand where the run before it ended."""
        self._t_ns = t_ns

    def _head(self, kind: type[m.Message], frame: Frame | None, t_ns: int = 0) -> dict[str, Any]:
        if frame is not None:
            self._t_ns = frame.t_ns
        return self._headers.next(
            kind,
            t_ns=frame.t_ns if frame else t_ns or self._t_ns,
            mono_ns=self._clock.monotonic_ns(),
            wall_ns=self._clock.wall_ns(),
            source_ns=frame.source_ns if frame else None,
            frame=frame.sequence if frame else -1,
        )

    def _frame_head(self, frame: Frame) -> dict[str, Any]:
        """The header of what is part of a batch: it has no sequence of its own."""
        return self._headers.peek(
            t_ns=frame.t_ns,
            mono_ns=self._clock.monotonic_ns(),
            wall_ns=self._clock.wall_ns(),
            source_ns=frame.source_ns,
            frame=frame.sequence,
        )

    def step(self, step: Step, labels: Mapping[str, str]) -> Iterator[m.Message]:
        """Everything that a frame is told by, in the order in which it goes out."""
        self._t_ns = step.frame.t_ns
        if step.activation is not None:
            yield from self.epoch(step.activation, labels)
        yield from self._gate_changes(step.frame, step.verdict)
        yield from self.alerts(step.frame, step.events, step.views, step.nearest)
        yield from self._scores.add(self._score(step))

    def scores(self) -> Iterator[m.Scores]:
        """The scores that still wait for the end of their second."""
        yield from self._scores.flush()

    def _score(self, step: Step) -> m.Score:
        head, score = self._frame_head(step.frame), step.score
        if score is None:
            return m.Score(**head, accepted=False, reason=step.verdict.reason, event=step.open_event)
        known = not score.learning
        ids, shares = self._shares.tell(step.contents, step.frame.t_ns)
        return m.Score(
            **head,
            value=m.finite_or_none(score.value) if known else None,
            rarity=m.finite_or_none(score.rarity) if known else None,
            frame_surprise=m.finite_or_none(score.frame_surprise) if known else None,
            learning=score.learning,
            event=step.open_event,
            topic_ids=ids,
            topic_shares=shares,
            nav=None if ids is None else position(step.frame.nav),
        )

    def alerts(
        self, frame: Frame, records: Sequence[EventRecord], views: Sequence[View], nearest: int = -1
    ) -> Iterator[m.Alert]:
        """What is to be told of events, each with its view; `nearest`: id of the frame's nearest exemplar, or -1."""
        for record, view in zip(records, views, strict=True):
            yield self._alert(frame, record, view, nearest)

    def _alert(self, frame: Frame, record: EventRecord, view: View, exemplar_id: int) -> m.Alert:
        x, y = view.position if view.position is not None else (None, None)
        boxes, before = np.asarray(view.boxes, np.float32).reshape(-1, 4), record.precedents
        return m.Alert(
            **self._head(m.Alert, frame),
            id=record.id,
            alert_kind=record.kind,
            phase=record.phase,
            severity=min(max(float(record.severity), 0.0), 1.0),
            start_frame=record.start_sequence,
            start_t_ns=record.start_t_ns,
            duration_s=max(float(record.duration_s), 0.0),
            peak=m.finite_or_none(record.peak),
            rarity=m.finite_or_none(record.rarity),
            x=None if x is None else float(np.clip(x, 0.0, 1.0)),
            y=None if y is None else float(np.clip(y, 0.0, 1.0)),
            boxes=boxes if len(boxes) else None,
            component=record.component,
            exemplar=self._exemplars.told_as(exemplar_id),
            history=np.asarray(record.history, np.float32) if len(record.history) else None,
            nav=position(frame.nav),
            picture_frame=view.sequence,
            picture_t_ns=view.t_ns,
            thumbnail=view.jpeg,
            topic=record.topic,
            watched_s=before.watched_s,
            judged=before.frames,
            visits=before.visits,
            alike=before.alike,
            here=before.here,
            visit_kind=before.kind,
            topic_map=view.segments if view.jpeg and view.segments.size else None,
            map_topics=view.topics if view.jpeg and view.segments.size else None,
        )

    def epoch(
        self, report: EpochReport, labels: Mapping[str, str], *, is_last: bool = False, is_whole: bool = False
    ) -> Iterator[m.Message]:
        """What an epoch did: its models, the exemplars that are new, then clumps; `labels` are by "which/component".

        A model goes out when it says something new, its clumps when they do; `is_last`: also where they say any less
        than the last of a run; `is_whole`: all of each.
        """
        if is_whole:
            self._models.forget()
            self._clumps.forget()
            self._exemplars.forget()
            self._shares.forget()
        for learnt in report.learnt:
            model = self._model(learnt, report, labels)
            if self._models.is_due(model, at_once=is_last):
                yield self._models.tell(msgspec.structs.replace(model, **self._head(m.Model, None, report.t_ns)))
        for exemplar in self._exemplars.tell(report.exemplars):
            yield self._exemplar(exemplar, labels)
        for learnt in report.learnt:
            if (held := self._clumps.tell(learnt, t_ns=report.t_ns, at_once=is_last)) is not None:
                yield self._of_clumps(learnt, held, report)

    def _of_clumps(self, learnt: EpochModel, held: HeldClumps, report: EpochReport) -> m.Clumps:
        return m.Clumps(
            **self._head(m.Clumps, None, report.t_ns),
            which=learnt.name,
            model_epoch=held.epoch,
            memory=held.memory,
            clump_points=held.clump_points,
            epoch_size=held.epoch_size,
            **clump_fields(held.clumps),
        )

    def _model(self, learnt: EpochModel, report: EpochReport, labels: Mapping[str, str]) -> m.Model:
        """The mixture of a finished epoch, its largest components first."""
        return m.Model(
            **self._headers.peek(t_ns=report.t_ns),
            which=learnt.name,
            model_epoch=report.models.epoch,
            activated_frame=report.models.activated_frame,
            n_components=learnt.mixture.n_components,
            **model_fields(learnt.mixture, learnt.most_sent),
            horizon=learnt.horizon,
            free_energy=m.finite_or_none(learnt.free_energy),
            labels={key.split("/")[1]: name for key, name in labels.items() if key.startswith(f"{learnt.name}/")},
            splits=learnt.splits,
            merges=learnt.merges,
            clumps=learnt.clumps,
            singlets=learnt.singlets,
            seconds=learnt.seconds,
            born=np.array(learnt.born, np.int64),
            died=np.array(learnt.died, np.int64),
        )

    def _exemplar(self, exemplar: EpochExemplar, labels: Mapping[str, str]) -> m.Exemplar:
        shown = TopicMap.unpack(exemplar.note) if exemplar.jpeg else None
        return m.Exemplar(
            **self._head(m.Exemplar, None, exemplar.t_ns),
            id=exemplar.id,
            exemplar_frame=exemplar.sequence,
            exemplar_t_ns=exemplar.t_ns,
            share=exemplar.share,
            component=exemplar.component,
            role=exemplar.role,
            label=labels.get(f"{exemplar.of}/{exemplar.component}", ""),
            removed=None if exemplar.removed is None else np.array(exemplar.removed, np.int64),
            thumbnail=exemplar.jpeg,
            topic_map=None if shown is None else shown.labels,
            map_topics=None if shown is None else shown.ids,
        )

    def kinds(
        self, told: Sequence[PicturedKind], gone: Sequence[int], watched_s: float, labels: Mapping[str, str]
    ) -> Iterator[m.VisitKind]:
        """Kinds of visits of which there is more to say, and the ids of those that are remembered no more."""
        if gone:
            yield m.VisitKind(**self._head(m.VisitKind, None), id=-1, removed=np.array(gone, np.int64))
        for one in told:
            yield m.VisitKind(
                **self._head(m.VisitKind, None),
                id=one.kind.id,
                count=one.kind.count,
                first_t_ns=one.kind.first_ns,
                last_t_ns=one.kind.last_ns,
                times=one.times,
                watched_s=watched_s,
                label=labels.get(f"visits/{one.kind.id}", ""),
                picture_frame=one.frame,
                picture_t_ns=one.t_ns,
                box=np.array([one.box], np.float32),
                thumbnail=one.jpeg,
            )

    def encoder(self, encoder: Encoder, config: Config, rule: CameraRule) -> m.Encoder:
        """How patches become rows under a camera of this kind."""
        settings = msgspec.to_builtins(config.features)
        told = {name: json.dumps(value) for name, value in settings.items() if not name.startswith("mask")}
        told |= {"width": str(config.source.width), "height": str(config.source.height)}
        return m.Encoder(
            **self._head(m.Encoder, None),
            hash=encoder.hash,
            basis=np.array(encoder.patch.basis),
            offset=np.array(encoder.patch.offset),
            takes_out_brightness=rule.takes_out_brightness and encoder.settings["patch"] == "gated_sift",
            settings=told,
        )

    def _gate_changes(self, frame: Frame, verdict: Verdict) -> list[m.GateChange]:
        """Lasting faults that began or ended with this frame, and a global change accepted as the new normal."""
        changes = [
            ("", event.kind, False) if event.phase == "start" else (event.kind, "", False) for event in verdict.events
        ]
        if verdict.scene_change:
            changes.append(("", "", True))
        return [
            m.GateChange(
                **self._head(m.GateChange, frame),
                state=verdict.state.value,
                reason=reason,
                previous=previous,
                scene_change=accepted,
            )
            for previous, reason, accepted in changes
        ]

    def source_change(self, state: str, previous: str, detail: str, frame: Frame | None) -> m.SourceChange:
        height, width = frame.grey.shape if frame else (0, 0)
        return m.SourceChange(
            **self._head(m.SourceChange, frame),
            state=state,
            previous=previous,
            detail=scrub(detail)[:256],
            stream_epoch=frame.epoch if frame else 0,
            width=width,
            height=height,
        )

    def notice(self, level: str, code: str, text: str, frame: Frame | None = None) -> m.LogNotice:
        """Something that people should know; `frame`: that it is of."""
        return m.LogNotice(**self._head(m.LogNotice, frame), level=level, code=code, text=scrub(text)[:256])

    def summary(self, **fields: Any) -> m.Summary:
        return m.Summary(**self._head(m.Summary, None), **fields)


def position(nav: Nav) -> m.Position | None:
    """Return the wire's form of a position; None where nothing is known."""
    known = {
        name: m.finite_or_none(getattr(nav, name))
        for name in ("latitude", "longitude", "depth_m", "altitude_m", "heading_deg")
    }
    return m.Position(**known) if any(value is not None for value in known.values()) else None
