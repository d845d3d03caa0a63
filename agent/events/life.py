"""Gives alerts a life: raise and clear with hysteresis, merge over gaps, cool-down, budget; new, update, end.

Called by agent/pipeline/pipeline.py with every frame. Time is stream time. It must not look at pixels or change a
model.
"""

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np

from stillwatch.base import (
    Commit,
    Composed,
    Frame,
    Recorded,
    RecordPart,
    Stage,
    State,
    record_bytes,
    saved,
    saved_array,
    split_off,
    with_prefix,
)
from stillwatch.contents import Contents
from stillwatch.epochs import Models
from stillwatch.events.camera import CameraView, Turn
from stillwatch.events.categories import CategoryLife, ShareLike
from stillwatch.events.records import EventRecord, Peak, overlap, severity_of
from stillwatch.events.repeats import Repeats
from stillwatch.events.rules import HISTORY, MOST_PER_HOUR, NS, RISEN, SAME_PLACE, SUBSIDED, UNSETTLED_S
from stillwatch.events.views import UnusualViews
from stillwatch.gate import Verdict
from stillwatch.novelty import Precedents, Score
from stillwatch.settings import EventsConfig
from stillwatch.transport.wire import EventKind


class Cause(StrEnum):
    """Why an alert was not raised: too many this hour, the same place again so soon, no region of the least size, or
    the same as before.
    """

    NONE = ""
    BUDGET = "budget"
    COOLDOWN = "cooldown"
    SMALL = "small"
    REPEATED = "repeated"


@dataclass
class _Tokens:
    """Alerts that may be raised at once; the last refill's stream time, 0 before the first."""

    left: float = saved(0.0, low=0.0)
    per_hour: float = saved(1.0, low=np.finfo(np.float64).tiny, high=MOST_PER_HOUR)
    t_ns: int = saved(0, low=0)


class TokenBucket(Recorded):
    """At most `burst` alerts at once and `per_hour` in the long run, in stream time."""

    _where = "alert budget"

    def __init__(self, burst: int, per_hour: float):
        self._burst = burst
        self._tokens = _Tokens(float(burst), float(per_hour))

    def set_rate(self, per_hour: float) -> None:
        """Change the long run; ValueError outside (0, 3600]."""
        if not 0.0 < per_hour <= MOST_PER_HOUR:
            raise ValueError(f"alerts per hour: {per_hour} is not in (0, {MOST_PER_HOUR:g}]")
        self._tokens.per_hour = float(per_hour)

    def refill(self, t_ns: int) -> None:
        """Let time pass: tokens grow up to `burst`."""
        tokens = self._tokens
        if tokens.t_ns:
            elapsed_s = max(t_ns - tokens.t_ns, 0) / NS
            tokens.left = min(tokens.left + elapsed_s * tokens.per_hour / 3600.0, float(self._burst))
        tokens.t_ns = t_ns

    def fill(self) -> None:
        """Give all tokens back."""
        self._tokens.left = float(self._burst)

    def take(self) -> bool:
        """Take one token; False where there is none."""
        if self._tokens.left < 1.0:
            return False
        self._tokens.left -= 1.0
        return True

    def _record(self) -> Any:
        return self._tokens

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes of its numbers."""
        return {"alert budget": record_bytes(self._tokens)}


@dataclass
class _Open:
    """The open event, what is left of the last one, and what was counted.

    id: of the open event, -1 without one. told: a person was told of it. over: it lasted too long to be one.
    pending: rare frames in a row before it opens. start_sequence, start_t_ns: its first novel frame.
    last_novel_ns, told_ns: its last novel frame, and when a person was last told. cause: why it was not told yet.
    small: the rare frames before this one had no region of the least size.
    last_box, last_end_ns: strongest box and end of the last event told of, -1 before the first.
    subsided_ns: since when little is left of the open event, -1 while it is not so; without one, since when its rest
    was not measured. left: highest score since then.
    level: what is left of the last event, negative without. level_ns: last frame above the lower threshold.
    settled: the first minutes are over, with the alerts that they took.
    """

    next_id: int = saved(0, low=0)
    n_events: int = saved(0, low=0)
    id: int = saved(-1, low=-1)
    told: bool = saved(False)
    over: bool = saved(False)
    pending: int = saved(0, low=0)
    start_sequence: int = saved(0, low=0)
    start_t_ns: int = saved(0, low=0)
    last_novel_ns: int = saved(0, low=0)
    told_ns: int = saved(0, low=0)
    cause: Cause = field(default=Cause.NONE)
    small: bool = saved(False)
    last_end_ns: int = saved(-1, low=-1)
    last_box: np.ndarray = saved_array((4,), np.float64, low=0.0, high=1.0)
    subsided_ns: int = saved(-1, low=-1)
    left: float = saved(0.0)
    level: float = saved(-1.0)
    level_ns: int = saved(0, low=0)
    settled: bool = saved(False)
    history: np.ndarray = saved_array((HISTORY,), np.float32, low=0.0)
    not_raised_budget: int = saved(0, low=0)
    not_raised_cooldown: int = saved(0, low=0)
    not_raised_small: int = saved(0, low=0)
    not_raised_repeated: int = saved(0, low=0)


class EventLife(Composed):
    """Events of one stream."""

    _where = "events"

    def __init__(self, config: EventsConfig):
        self._config = config
        self._bucket = TokenBucket(config.burst, config.alerts_per_hour)
        # News of categories has its own: it must not use up the calls that something unknown is worth.
        self._news = TokenBucket(config.burst, config.alerts_per_hour)
        self._categories = CategoryLife(config)
        self._views = UnusualViews(config)
        self._camera = CameraView()
        self._repeats = Repeats(config)
        self._now = _Open()
        self._peak = Peak()

    @property
    def n_events(self) -> int:
        """Events begun so far, those included that nobody was told of."""
        return self._now.n_events

    @property
    def suppressed(self) -> Counter[str]:
        """Alerts that were not raised, by cause: those that happened."""
        now = self._now
        counts = {
            Cause.BUDGET: now.not_raised_budget,
            Cause.COOLDOWN: now.not_raised_cooldown,
            Cause.SMALL: now.not_raised_small,
            Cause.REPEATED: now.not_raised_repeated,
        }
        return Counter({cause.value: count for cause, count in counts.items() if count})

    @property
    def active(self) -> bool:
        """Whether an event is open: what is seen now must not become usual."""
        return (self._now.id >= 0 or self._now.pending > 0) and not self._now.over

    @property
    def since(self) -> int:
        """First frame of the event that is open or about to be; -1 where there is none."""
        return self._now.start_sequence if self.active else -1

    @property
    def open_id(self) -> int:
        """Id of the event that people were told of and that is open; -1 where there is none."""
        return self._now.id if self._now.told else -1

    def skip_ids(self, count: int) -> None:
        """Leave out so many ids: a live stream that goes on after a crash may have given some since its checkpoint."""
        self._now.next_id += count

    def set_budget(self, alerts_per_hour: float) -> None:
        """Change how often a person may be called from now on; ValueError outside (0, 3600]."""
        self._bucket.set_rate(alerts_per_hour)

    def update(
        self,
        frame: Frame,
        score: Score | None,
        verdict: Verdict,
        models: Models | None,
        contents: Contents | None = None,
        share_like: ShareLike | None = None,
    ) -> list[EventRecord]:
        """Take the next frame (`score` None where the gate refused it); return what people should be told now.

        contents : what is in view, where that was looked at
        share_like : of patches, by their numbers: in what shares of the past, and of the last seconds, their places
            looked as in this frame
        """
        now = self._now
        self._bucket.refill(frame.t_ns)
        self._news.refill(frame.t_ns)
        records: list[EventRecord] = []
        if verdict.scene_change:
            records += self._break_off(frame)
            if self._config.tell == "every" or not verdict.known_scene:
                self._camera.tell(frame.t_ns)
                records += self._instant(frame, score, EventKind.SCENE_CHANGE, -1)
        if score is not None and score.rows is not None:
            records += self._look_at_camera(frame, score, score.rows.view)
        if score is not None and not score.learning:
            history = now.history
            history[:-1] = history[1:]
            history[-1] = score.rarity
            self._settle(score.precedents.watched_s)
            records += self._judge(frame, score)
            if models is not None:
                for kind, component in self._categories.update(frame.t_ns, score, models, self.active, share_like):
                    records += self._instant(frame, score, kind, component)
            if contents is not None and self._is_unusual(contents, frame, score):
                peak = Peak(contents.value, contents.rarity)
                records += self._instant(frame, score, EventKind.UNUSUAL_VIEW, -1, peak, contents.topic)
        if now.id >= 0 and frame.t_ns - now.last_novel_ns >= self._config.gap_s * NS:
            records += self._end(frame)
        return records

    def finish(self, frame: Frame) -> list[EventRecord]:
        """End of the stream: close the open event."""
        return self._end(frame)

    def _look_at_camera(self, frame: Frame, score: Score, view: int) -> list[EventRecord]:
        """Tell that the camera has a view that it never had. With any other view what was going on is over."""
        turn = self._camera.update(view, frame.t_ns)
        if turn is Turn.NONE:
            return []
        self._categories.forget()
        records = self._break_off(frame)
        is_told = turn is Turn.NEW or self._config.tell == "every"
        if is_told and self._camera.tell(frame.t_ns):
            records += self._instant(frame, score, EventKind.VIEW_CHANGED, -1)
        return records

    def _is_unusual(self, contents: Contents, frame: Frame, score: Score) -> bool:
        """Return whether the view as a whole is news; beside an event, in weather and other colours it is none."""
        busy = self.active or not score.was_named
        return self._views.update(contents, frame.t_ns, in_event=busy, view_stays=score.view_stays)

    def _settle(self, watched_s: float) -> None:
        """Give the first minutes' alerts back once they are over: who is usual is known by now, and was told then."""
        if not self._now.settled and watched_s >= UNSETTLED_S:
            self._now.settled = True
            self._bucket.fill()

    # -- the novel event -------------------------------------------------------------------------------------

    def _judge(self, frame: Frame, score: Score) -> list[EventRecord]:
        """Let one scored frame begin, carry or wear out the open event."""
        now = self._now
        records = self._subside(frame, score)
        is_open = now.id >= 0
        rare = score.rarity >= (self._config.clear_rarity if is_open else self._config.raise_rarity)
        if rare and not is_open and score.value < RISEN * now.level:
            rare = False
        if rare and not is_open and not score.regions:
            now.not_raised_small += not now.small
            now.small, rare = True, False
        elif not rare:
            now.small = False
        if not rare:
            now.pending = 0
            return records
        if not is_open:
            if now.pending == 0:
                now.start_sequence, now.start_t_ns = frame.sequence, frame.t_ns
                self._peak = Peak()
            now.pending += 1
        self._peak = self._peak.higher(score)
        now.last_novel_ns = frame.t_ns
        if not is_open:
            if now.pending < self._config.min_frames:
                return []
            self._open()
        self._repeats.see(score, frame.t_ns)
        if now.over:
            return []
        if frame.t_ns - now.start_t_ns >= self._config.longest_s * NS:
            return self._wear_out(frame)
        return self._tell(frame, score)

    def _subside(self, frame: Frame, score: Score) -> list[EventRecord]:
        """End the open event when little is left of it, and remember how much: that much is no new event.

        How much is measured until it ends, and may only fall from then on: a level that followed the score up would
        climb along with whoever comes into view slowly, and hide them.
        """
        now = self._now
        if score.rarity >= self._config.clear_rarity:
            now.level_ns = frame.t_ns
        elif frame.t_ns - now.level_ns >= self._config.gap_s * NS:
            now.level = -1.0
        is_open = now.id >= 0
        if is_open:
            subsides = not now.over and score.value < SUBSIDED * self._peak.value
        else:
            subsides = now.level >= 0.0
        if not subsides:
            now.subsided_ns = -1
            return []
        if now.subsided_ns < 0:
            now.subsided_ns, now.left = frame.t_ns, score.value
        now.left = max(now.left, score.value)
        if frame.t_ns - now.subsided_ns < self._config.gap_s * NS:
            return []
        now.subsided_ns = -1
        if is_open:
            now.level = now.left
            return self._end(frame)
        now.level = min(now.level, now.left)
        return []

    def _new_id(self) -> int:
        now = self._now
        number = now.next_id
        now.next_id += 1
        now.n_events += 1
        return number

    def _open(self) -> None:
        now = self._now
        now.subsided_ns, now.level = -1, -1.0
        now.id = self._new_id()
        now.told, now.over, now.pending = False, False, 0
        now.cause = Cause.NONE

    def _tell(self, frame: Frame, score: Score) -> list[EventRecord]:
        """Tell of the open event: for the first time where nothing forbids it, then every `update_s`."""
        now = self._now
        if now.told:
            if frame.t_ns - now.told_ns < self._config.update_s * NS:
                return []
            now.told_ns = frame.t_ns
            return [self._record("update", frame)]
        cause = self._forbidden(frame, score)
        if cause is not Cause.NONE:
            now.not_raised_budget += cause is Cause.BUDGET and cause is not now.cause
            now.not_raised_cooldown += cause is Cause.COOLDOWN and cause is not now.cause
            now.not_raised_repeated += cause is Cause.REPEATED and cause is not now.cause
            now.cause = cause
            return []
        now.told, now.told_ns = True, frame.t_ns
        return [self._record("new", frame)]

    def _forbidden(self, frame: Frame, score: Score) -> Cause:
        """Return why a person may not be called now."""
        now = self._now
        recent = now.last_end_ns >= 0 and frame.t_ns - now.last_end_ns < self._config.cooldown_s * NS
        if recent and score.boxes and overlap(score.boxes[0], now.last_box) >= SAME_PLACE:
            return Cause.COOLDOWN
        if self._repeats.is_usual(frame.t_ns, frame.t_ns - now.start_t_ns):
            return Cause.REPEATED
        return Cause.NONE if self._bucket.take() else Cause.BUDGET

    def _wear_out(self, frame: Frame) -> list[EventRecord]:
        """Close an event that lasts too long to be one: what is seen may become usual now."""
        now = self._now
        now.over = True
        told, now.told = now.told, False
        return [self._record("end", frame)] if told else []

    def _end(self, frame: Frame) -> list[EventRecord]:
        now = self._now
        if now.id < 0:
            now.pending = 0
            return []
        records = [self._record("end", frame)] if now.told else []
        if now.told and self._peak.box is not None:
            now.last_box[:] = self._peak.box
            now.last_end_ns = now.last_novel_ns
        self._repeats.end(max(now.last_novel_ns - now.start_t_ns, 0))
        now.id, now.told, now.over, now.pending = -1, False, False, 0
        return records

    def _break_off(self, frame: Frame) -> list[EventRecord]:
        """End the open event with the picture that it was in: what is left of it, or of the last one, is left there."""
        self._now.level = -1.0
        return self._end(frame)

    def _record(self, phase: str, frame: Frame) -> EventRecord:
        now = self._now
        until = now.last_novel_ns if phase == "end" else frame.t_ns
        return EventRecord(
            id=now.id,
            kind=EventKind.NOVEL,
            phase=phase,
            severity=severity_of(self._peak.rarity, self._config.raise_rarity),
            start_sequence=now.start_sequence,
            start_t_ns=now.start_t_ns,
            duration_s=max(until - now.start_t_ns, 0) / NS,
            peak=self._peak.value,
            rarity=self._peak.rarity,
            component=self._peak.component,
            history=now.history.copy(),
            precedents=self._peak.precedents,
        )

    def _instant(
        self,
        frame: Frame,
        score: Score | None,
        kind: EventKind,
        component: int,
        peak: Peak | None = None,
        topic: int = -1,
    ) -> list[EventRecord]:
        """Return a record that begins and ends with this frame, where the budget allows it; `peak`: not the score's."""
        now = self._now
        if not self._news.take():
            now.not_raised_budget += 1
            return []
        if peak is None:
            peak = Peak() if score is None else Peak().higher(score)
        number = self._new_id()
        return [
            EventRecord(
                id=number,
                kind=kind,
                phase=phase,
                severity=severity_of(peak.rarity, self._config.raise_rarity),
                start_sequence=frame.sequence,
                start_t_ns=frame.t_ns,
                duration_s=0.0,
                peak=peak.value,
                rarity=peak.rarity,
                component=component,
                history=now.history.copy(),
                topic=topic,
                precedents=Precedents() if score is None else score.precedents,
            )
            for phase in ("new", "end")
        ]

    # -- state -----------------------------------------------------------------------------------------------

    def _parts(self) -> dict[str, Stage]:
        return {
            "budget": self._bucket,
            "news": self._news,
            "categories": self._categories,
            "views": self._views,
            "camera": self._camera,
            "repeats": self._repeats,
            "open": RecordPart(self._now, "events: open"),
        }

    def state(self) -> State:
        """Return everything that later records depend on, as copies."""
        return super().state() | with_prefix("peak", self._peak.state())

    def prepare(self, state: State) -> Commit:
        """Validate `state` and return its commit; SnapshotError, and no change, where it does not fit."""
        of_peak, parts = split_off("peak", state)
        take_parts = super().prepare(parts)
        peak = Peak.from_state(of_peak, "events: peak")

        def commit() -> None:
            take_parts()
            self._peak = peak

        return commit

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes of this stage and all its parts."""
        return {"events": self.parts_bytes()}
