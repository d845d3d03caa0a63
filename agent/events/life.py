"""Gives alerts a life: raise and clear with hysteresis, merge over gaps, cool-down, budget; new, update, end.

Called by agent/pipeline/pipeline.py with every frame. Time is stream time. It must not look at pixels or change a
model.
"""

from collections import Counter

import numpy as np

from stillwatch.base import Frame, SnapshotError, State, with_prefix, without_prefix
from stillwatch.epochs import Models
from stillwatch.events.categories import CategoryLife
from stillwatch.events.records import HISTORY, EventRecord, Peak, overlap, severity_of
from stillwatch.gate import Verdict
from stillwatch.novelty import Score
from stillwatch.settings import EventsConfig
from stillwatch.transport.wire import EventKind

__all__ = ["EventLife", "EventRecord"]

SAME_PLACE = 0.25  # overlap with the last event's box from which a new one counts as the same place
SUBSIDED = 0.4  # of its peak: an event that stays below this for `gap_s` is over, even if not all is usual again
RISEN = 1.5  # times what is left of the last event: from here something else has come
CAUSES = ("budget", "cooldown", "small")
NS = 1_000_000_000


class TokenBucket:
    """At most `burst` alerts at once and `per_hour` in the long run, in stream time."""

    def __init__(self, burst: int, per_hour: float):
        self._burst, self._per_hour = burst, per_hour
        self.tokens = float(burst)
        self.t_ns = 0

    @property
    def per_hour(self) -> float:
        return self._per_hour

    @per_hour.setter
    def per_hour(self, value: float) -> None:
        if not 0.0 < value <= 3600.0:
            raise ValueError(f"alerts per hour: {value} is not in (0, 3600]")
        self._per_hour = value

    def refill(self, t_ns: int) -> None:
        if self.t_ns:
            elapsed_s = max(t_ns - self.t_ns, 0) / NS
            self.tokens = min(self.tokens + elapsed_s * self._per_hour / 3600.0, float(self._burst))
        self.t_ns = t_ns

    def take(self) -> bool:
        """Take one token; False where there is none."""
        if self.tokens < 1.0:
            return False
        self.tokens -= 1.0
        return True


class EventLife:
    """Events of one stream.

    Attributes
    ----------
    n_events : int
        Events begun so far, those included that nobody was told of.
    suppressed : Counter
        Alerts that were not raised, by cause: "budget" (too many this hour), "cooldown" (the same place again so
        soon), "small" (rare, but no region of the least size).
    """

    def __init__(self, config: EventsConfig):
        self._config = config
        self.suppressed: Counter[str] = Counter()
        self._bucket = TokenBucket(config.burst, config.alerts_per_hour)
        # News of categories has its own: it must not use up the calls that something unknown is worth.
        self._news = TokenBucket(config.burst, config.alerts_per_hour)
        self._categories = CategoryLife(config)
        self._history = np.zeros(HISTORY, np.float32)
        self._next_id = 0
        self.n_events = 0
        # The open event: its id (-1: none), whether a person was told, how many frames it is pending.
        self._id, self._told, self._over, self._pending = -1, False, False, 0
        self._start = (0, 0)  # sequence and stream time of its first novel frame
        self._last_novel_ns = 0
        self._told_ns = 0  # when a person was last told of it
        self._peak = Peak()
        self._last_box, self._last_end_ns = np.zeros(4), -1
        self._small = False
        self._cause = ""  # why the open event was not told yet
        # What is left of the last event: since when it subsided (-1: not), the level it left (-1: none), since when.
        # `_left` is the highest score since it subsided.
        self._subsided_ns, self._level, self._level_ns, self._left = -1, -1.0, 0, 0.0

    @property
    def active(self) -> bool:
        """Whether an event is open: what is seen now must not become usual."""
        return (self._id >= 0 or self._pending > 0) and not self._over

    @property
    def open_id(self) -> int:
        """Id of the event that people were told of and that is open; -1 where there is none."""
        return self._id if self._told else -1

    def skip_ids(self, count: int) -> None:
        """Leave out so many ids: a live stream that goes on after a crash may have given some since its checkpoint."""
        self._next_id += count

    def set_budget(self, alerts_per_hour: float) -> None:
        """Change how often a person may be called from now on; ValueError outside (0, 3600]."""
        self._bucket.per_hour = alerts_per_hour

    def update(self, frame: Frame, score: Score | None, verdict: Verdict, models: Models | None) -> list[EventRecord]:
        """Take the next frame (`score` None where the gate refused it); return what people should be told now."""
        self._bucket.refill(frame.t_ns)
        self._news.refill(frame.t_ns)
        records: list[EventRecord] = []
        if verdict.scene_change:
            records += self._end(frame)
            records += self._instant(frame, score, EventKind.SCENE_CHANGE, -1)
        if score is not None and not score.learning:
            self._history[:-1] = self._history[1:]
            self._history[-1] = min(score.rarity, 1e9)
            records += self._judge(frame, score)
            if models is not None:
                for kind, component in self._categories.update(frame.t_ns, score, models, self.active):
                    records += self._instant(frame, score, kind, component)
        if self._id >= 0 and frame.t_ns - self._last_novel_ns >= self._config.gap_s * NS:
            records += self._end(frame)
        return records

    def finish(self, frame: Frame) -> list[EventRecord]:
        """End of the stream: close the open event."""
        return self._end(frame)

    # -- the novel event -------------------------------------------------------------------------------------

    def _judge(self, frame: Frame, score: Score) -> list[EventRecord]:
        """Let one scored frame begin, carry or wear out the open event."""
        records = self._subside(frame, score)
        is_open = self._id >= 0
        rare = score.rarity >= (self._config.clear_rarity if is_open else self._config.raise_rarity)
        if rare and not is_open and score.value < RISEN * self._level:
            rare = False
        if rare and not is_open and not score.regions:
            self.suppressed["small"] += not self._small
            self._small, rare = True, False
        elif not rare:
            self._small = False
        if not rare:
            self._pending = 0
            return records
        if not is_open:
            if self._pending == 0:
                self._start = (frame.sequence, frame.t_ns)
                self._peak = Peak()
            self._pending += 1
        self._peak = self._peak.higher(score)
        self._last_novel_ns = frame.t_ns
        if not is_open:
            if self._pending < self._config.min_frames:
                return []
            self._open()
        if self._over:
            return []
        if frame.t_ns - self._start[1] >= self._config.longest_s * NS:
            return self._wear_out(frame)
        return self._tell(frame, score)

    def _subside(self, frame: Frame, score: Score) -> list[EventRecord]:
        """End the open event when little is left of it, and remember how much: that much is no new event.

        How much is measured until it ends and then kept: a level that followed the score afterwards would climb along
        with whoever comes into view slowly, and hide them.
        """
        if score.rarity >= self._config.clear_rarity:
            self._level_ns = frame.t_ns
        elif frame.t_ns - self._level_ns >= self._config.gap_s * NS:
            self._level = -1.0
        if self._id < 0 or self._over or score.value >= SUBSIDED * self._peak.value:
            self._subsided_ns = -1
            return []
        if self._subsided_ns < 0:
            self._subsided_ns, self._left = frame.t_ns, score.value
        self._left = max(self._left, score.value)
        if frame.t_ns - self._subsided_ns < self._config.gap_s * NS:
            return []
        self._subsided_ns, self._level = -1, self._left
        return self._end(frame)

    def _new_id(self) -> int:
        number = self._next_id
        self._next_id += 1
        self.n_events += 1
        return number

    def _open(self) -> None:
        self._subsided_ns, self._level = -1, -1.0
        self._id = self._new_id()
        self._told, self._over, self._pending = False, False, 0
        self._cause = ""

    def _tell(self, frame: Frame, score: Score) -> list[EventRecord]:
        """Tell of the open event: for the first time where nothing forbids it, then every `update_s`."""
        if self._told:
            if frame.t_ns - self._told_ns < self._config.update_s * NS:
                return []
            self._told_ns = frame.t_ns
            return [self._record("update", frame)]
        cause = self._forbidden(frame, score)
        if cause:
            if cause != self._cause:
                self.suppressed[cause] += 1
                self._cause = cause
            return []
        self._told, self._told_ns = True, frame.t_ns
        return [self._record("new", frame)]

    def _forbidden(self, frame: Frame, score: Score) -> str:
        """Return why a person may not be called now, or ""."""
        recent = self._last_end_ns >= 0 and frame.t_ns - self._last_end_ns < self._config.cooldown_s * NS
        if recent and score.boxes and overlap(score.boxes[0], self._last_box) >= SAME_PLACE:
            return "cooldown"
        return "" if self._bucket.take() else "budget"

    def _wear_out(self, frame: Frame) -> list[EventRecord]:
        """Close an event that lasts too long to be one: what is seen may become usual now."""
        self._over = True
        told, self._told = self._told, False
        return [self._record("end", frame)] if told else []

    def _end(self, frame: Frame) -> list[EventRecord]:
        if self._id < 0:
            self._pending = 0
            return []
        records = [self._record("end", frame)] if self._told else []
        if self._told and len(self._peak.boxes):
            self._last_box[:] = self._peak.boxes[0]
            self._last_end_ns = self._last_novel_ns
        self._id, self._told, self._over, self._pending = -1, False, False, 0
        return records

    def _record(self, phase: str, frame: Frame) -> EventRecord:
        until = self._last_novel_ns if phase == "end" else frame.t_ns
        return EventRecord(
            id=self._id,
            kind=EventKind.NOVEL,
            phase=phase,
            severity=severity_of(self._peak.rarity, self._config.raise_rarity),
            start_sequence=self._start[0],
            start_t_ns=self._start[1],
            duration_s=max(until - self._start[1], 0) / NS,
            peak=self._peak.value,
            rarity=self._peak.rarity,
            boxes=list(self._peak.boxes),
            position=self._peak.position,
            component=self._peak.component,
            history=self._history.copy(),
        )

    def _instant(self, frame: Frame, score: Score | None, kind: EventKind, component: int) -> list[EventRecord]:
        """Return a record that begins and ends with this frame, where the budget allows it."""
        if not self._news.take():
            self.suppressed["budget"] += 1
            return []
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
                boxes=list(peak.boxes),
                position=peak.position,
                component=component,
                history=self._history.copy(),
            )
            for phase in ("new", "end")
        ]

    # -- state -----------------------------------------------------------------------------------------------

    def state(self) -> State:
        """Return everything that later records depend on, in fixed size."""
        flags = [
            self._next_id,
            self._id,
            self._told,
            self._over,
            self._pending,
            *self._start,
            self._last_novel_ns,
            self._told_ns,
            self._last_end_ns,
            self._small,
            self._bucket.t_ns,
            self.n_events,
            self._subsided_ns,
            self._level_ns,
        ]
        state: State = {
            "flags": np.array(flags, np.int64),
            "history": self._history.copy(),
            "budget": np.array([self._bucket.tokens, self._bucket.per_hour]),
            "last_box": self._last_box.copy(),
            "left": np.array([self._level, self._left]),
            "suppressed": np.array([self.suppressed[cause] for cause in CAUSES], np.int64),
        }
        state.update(with_prefix("peak", self._peak.state()))
        state.update(with_prefix("categories", self._categories.state()))
        return state

    def restore(self, state: State) -> None:
        """Go on from `state`; SnapshotError, and no change, where it does not fit."""
        for name, shape in (
            ("flags", (15,)),
            ("history", (HISTORY,)),
            ("budget", (2,)),
            ("last_box", (4,)),
            ("left", (2,)),
            ("suppressed", (len(CAUSES),)),
        ):
            if name not in state or state[name].shape != shape:
                raise SnapshotError(f"events: {name} is absent or has another shape")
        peak = Peak.from_state(without_prefix("peak", state))
        self._categories.restore(without_prefix("categories", state))
        flags = [int(flag) for flag in state["flags"]]
        self._next_id, self._id, self._told, self._over, self._pending = (
            flags[0],
            flags[1],
            bool(flags[2]),
            bool(flags[3]),
            flags[4],
        )
        self._start, self._last_novel_ns, self._told_ns, self._last_end_ns = (flags[5], flags[6]), *flags[7:10]
        self._small, self._bucket.t_ns, self.n_events = bool(flags[10]), flags[11], flags[12]
        self._subsided_ns, self._level_ns = flags[13:]
        self._level, self._left = (float(value) for value in state["left"])
        self._bucket.tokens, self._bucket.per_hour = (float(value) for value in state["budget"])
        self._history[:], self._last_box[:] = state["history"], state["last_box"]
        self.suppressed = Counter({c: int(n) for c, n in zip(CAUSES, state["suppressed"], strict=True) if n})
        self._peak, self._cause = peak, ""

    def memory_bytes(self) -> int:
        return self._history.nbytes + self._last_box.nbytes + self._categories.memory_bytes()
