"""Reads a run folder once and keeps what its report shows, in bounded memory however long the run was.

Called by tools/report/command.py and tools/report/compare.py. It must not know how anything is drawn.
"""

import math
import pathlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stillwatch.runs import counts_of, how_rare
from stillwatch.tools.report.learners import EXAMPLE_ROLES, TOPIC_PREFIX
from stillwatch.tools.report.shares import Shares
from stillwatch.transport.disk import Run, open_run
from stillwatch.transport.wire import messages as m

MAX_BINS = 1600  # of the novelty curve
MAX_POINTS = 600  # of slower curves: components, memory
MAX_EVENTS = 2000
MAX_EXEMPLARS = 200  # of one role
MAX_GALLERIES = 16
MAX_KINDS = 256  # of visits
MAX_VISITS = 4096  # whose times are kept, of one kind
SILENCE_NS = 5_000_000_000


@dataclass
class Bin:
    """What one stretch of the novelty curve holds."""

    count: int = 0
    total: float = 0.0
    high: float = -math.inf
    rarity: float = 0.0
    learning: int = 0
    refused: int = 0
    seen: int = 0
    frame: int = -1

    def merge(self, other: "Bin") -> None:
        """Fold a neighbour into this one."""
        self.count += other.count
        self.total += other.total
        if other.high > self.high:
            self.high, self.frame = other.high, other.frame
        self.rarity = max(self.rarity, other.rarity)
        self.learning += other.learning
        self.refused += other.refused
        self.seen += other.seen


class Curve:
    """Bins of equal width over an unknown span: when they run out, neighbours are merged and the width doubles."""

    def __init__(self, max_bins: int = MAX_BINS, width_ns: int = 10_000_000):
        self.width_ns = width_ns
        self._max = max_bins
        self._bins: dict[int, Bin] = {}

    def at(self, x_ns: int) -> Bin:
        """Return the bin of this time, made if need be."""
        index = x_ns // self.width_ns
        if index not in self._bins:
            while index >= self._max or len(self._bins) >= self._max:
                self._halve()
                index = x_ns // self.width_ns
            self._bins.setdefault(index, Bin())
        return self._bins[index]

    def items(self) -> list[tuple[int, Bin]]:
        """Return (middle of the bin in ns, bin) in order of time."""
        return [(index * self.width_ns + self.width_ns // 2, self._bins[index]) for index in sorted(self._bins)]

    def _halve(self) -> None:
        merged: dict[int, Bin] = {}
        for index in sorted(self._bins):
            if index // 2 in merged:
                merged[index // 2].merge(self._bins[index])
            else:
                merged[index // 2] = self._bins[index]
        self._bins = merged
        self.width_ns *= 2


class Thinned:
    """Keeps at most so many items of a sequence, evenly: every second is dropped when it is full."""

    def __init__(self, max_items: int = MAX_POINTS):
        self.items: list[Any] = []
        self._max = max_items
        self._every = 1
        self._seen = 0
        self.last: Any = None

    def add(self, item: Any) -> None:
        """Offer the next item; the newest is always in `last`."""
        self.last = item
        if self._seen % self._every == 0:
            self.items.append(item)
            if len(self.items) >= self._max:
                self.items = self.items[::2]
                self._every *= 2
        self._seen += 1

    def all(self) -> list[Any]:
        """Return the kept items and the newest."""
        return self.items if not self.items or self.items[-1] is self.last else [*self.items, self.last]


@dataclass
class Event:
    """One alert's whole life, as far as it was received."""

    key: tuple[str, int, int]
    first: m.Alert
    last: m.Alert
    x_ns: int
    best: m.Alert | None = None  # the newest with a picture: the sender's best so far, outlines of the same frame
    nearest: m.Exemplar | None = None  # the known frame that it was most like when it was first told

    @property
    def id(self) -> int:
        return self.key[2]

    @property
    def boxes(self) -> np.ndarray | None:
        """Outlines that belong to the picture shown."""
        return (self.best or self.last).boxes

    def holds(self, run: str, t_ns: int) -> bool:
        """Whether a moment of a run's stream time lies within it."""
        since = self.first.start_t_ns
        return run == self.key[0] and since <= t_ns <= since + int(self.duration_s * 1e9)

    @property
    def ended(self) -> bool:
        return self.last.phase == "end"

    @property
    def duration_s(self) -> float:
        return max(self.first.duration_s, self.last.duration_s)

    @property
    def severity(self) -> float:
        return max(self.first.severity, self.last.severity)

    @property
    def rarity(self) -> float:
        """One frame in so many by the rule that raised it: what orders events, and is no count."""
        return max(self.first.rarity or 0.0, self.last.rarity or 0.0)

    @property
    def told(self) -> dict[str, Any]:
        """What its rarity is told by, as known last."""
        return {"kind": self.first.alert_kind, "rarity": self.rarity, **counts_of(self.last)}

    @property
    def how_rare(self) -> str:
        """How rare it was, in words; empty where that plays no part."""
        return how_rare(self.told)


@dataclass
class KindSeen:
    """A kind of visits: as told last, and when its visits ended, x in ns."""

    last: m.VisitKind
    first_x: int
    last_x: int
    xs: set[int] = field(default_factory=set)


@dataclass
class ReportData:
    """All that a report of one folder shows."""

    run: Run
    agent: str = ""
    runs: list[str] = field(default_factory=list)
    first_wall_ns: int = 0
    last_wall_ns: int = 0
    span_ns: int = 0  # from the first message to the last, stops and outages included
    watched_ns: int = 0  # of these, while the agent ran and frames came
    is_live: bool = False
    received: dict[str, int] = field(default_factory=dict)
    received_bytes: dict[str, int] = field(default_factory=dict)
    missed: dict[str, int] = field(default_factory=dict)
    gaps: list[tuple[int, int]] = field(default_factory=list)  # spans of x without any message
    restarts: list[int] = field(default_factory=list)
    curve: Curve = field(default_factory=Curve)
    events: list[Event] = field(default_factory=list)
    events_left_out: int = 0
    models: dict[str, Thinned] = field(default_factory=dict)  # (x, ids, counts, frame, free energy, clumps, seconds)
    last_model: dict[str, m.Model] = field(default_factory=dict)
    last_clumps: dict[str, m.Clumps] = field(default_factory=dict)
    galleries: dict[str, dict[int, m.Exemplar]] = field(default_factory=dict)  # exemplars by role and id
    exemplar_x: dict[int, int] = field(default_factory=dict)
    scene_pictures: dict[tuple[int, str], m.Exemplar] = field(default_factory=dict)  # examples, by component and role
    topic_pictures: dict[tuple[int, str], m.Exemplar] = field(default_factory=dict)
    kinds: dict[int, KindSeen] = field(default_factory=dict)  # of visits, by id
    shares: Shares = field(default_factory=Shares)
    statuses: Thinned = field(default_factory=Thinned)  # (x, Status)
    gate: list[tuple[int, str, str]] = field(default_factory=list)  # x, state, reason
    source: list[tuple[int, str, str]] = field(default_factory=list)
    notices: list[tuple[int, m.LogNotice]] = field(default_factory=list)
    others: dict[str, tuple[int, m.Message]] = field(default_factory=dict)  # newest of the kinds that are not folded
    summary: dict[str, Any] | None = None

    @property
    def status(self) -> m.Status | None:
        """The newest heartbeat."""
        return self.statuses.last[1] if self.statuses.last else None


@dataclass
class _Segment:
    """One start of the agent: its times are its own."""

    t0_ns: int
    wall0_ns: int
    offset_ns: int
    next: dict[str, int] = field(default_factory=dict)
    t_ns: int = 0
    wall_ns: int = 0
    seen_ns: int = 0  # furthest x of any message: threads send out of order
    step_ns: float = 0.0  # typical step of it


class _Reader:
    """Folds messages into a ReportData, one at a time."""

    def __init__(self, run: Run):
        self.data = ReportData(run)
        self._listens = run.info.get("role") == "ground"  # what was sent before it listened is not missing
        self._segments: dict[tuple[str, int], _Segment] = {}
        self._events: dict[tuple[str, int, int], Event] = {}

    def read(self) -> ReportData:
        data = self.data
        for kind, message in data.run.messages():
            self._take(kind, message)
        told = data.run.summary or {}
        if "frames" in told:
            data.summary = told  # an agent's own; a ground station's counts what it received, not frames
        if self._listens and "gaps" in told:  # it knows what came late and what a snapshot brought; jumps do not tell
            data.missed = dict(told["gaps"])
        events = sorted(self._events.values(), key=lambda event: event.x_ns)
        data.events = events
        wall = sum(s.wall_ns - s.wall0_ns for s in self._segments.values())
        stream = sum(s.t_ns - s.t0_ns for s in self._segments.values())
        data.watched_ns = stream - sum(end - begin for begin, end in data.gaps)
        is_live = data.run.info.get("live")  # a ground station's folder says nothing: there the clocks are compared
        alike = stream > 0 and abs(wall - stream) < 0.05 * stream + 2e9
        data.is_live = is_live if isinstance(is_live, bool) else alike
        return data

    def _take(self, kind: str, message: m.Message) -> None:
        data, key = self.data, (message.run, message.epoch)
        if not data.first_wall_ns:
            data.agent, data.first_wall_ns = message.agent, message.wall_ns
        segment = self._segments.get(key) or self._start(key, message)
        data.received[kind] = data.received.get(kind, 0) + 1
        expected = segment.next.get(kind, message.sequence if self._listens else 0)
        if message.sequence > expected:
            data.missed[kind] = data.missed.get(kind, 0) + message.sequence - expected
        segment.next[kind] = max(expected, message.sequence + 1)
        segment.t_ns = max(segment.t_ns, message.t_ns)
        segment.wall_ns = max(segment.wall_ns, message.wall_ns)
        data.last_wall_ns = max(data.last_wall_ns, message.wall_ns)
        x = segment.offset_ns + max(message.t_ns - segment.t0_ns, 0)
        data.received_bytes[kind] = data.received_bytes.get(kind, 0) + data.run.payload_bytes
        self._note_silence(segment, x)
        data.span_ns = max(data.span_ns, x)
        getattr(self, f"_on_{kind}", self._on_other)(x, message)

    def _start(self, key: tuple[str, int], message: m.Message) -> _Segment:
        """Lay a new start of the agent after the one before, at its own wall time where that came later."""
        offset = 0
        if self._segments:
            before = list(self._segments.values())[-1]
            end = before.offset_ns + before.t_ns - before.t0_ns
            offset = max(end, before.offset_ns + (message.wall_ns - before.wall0_ns))
            self.data.restarts.append(offset)
        segment = _Segment(message.t_ns, message.wall_ns, offset, t_ns=message.t_ns, wall_ns=message.wall_ns)
        segment.seen_ns = offset
        self._segments[key] = segment
        self.data.runs.append(key[0])
        return segment

    def _note_silence(self, segment: _Segment, x: int) -> None:
        """Note a stretch without any message that is long for this camera: slow ones are silent for a while."""
        step = x - segment.seen_ns
        if step <= 0:
            return
        if step > max(SILENCE_NS, 8 * segment.step_ns) and segment.step_ns > 0:
            self.data.gaps.append((segment.seen_ns, x))
        else:
            segment.step_ns = step if segment.step_ns == 0 else 0.95 * segment.step_ns + 0.05 * step
        segment.seen_ns = x

    def _on_score(self, x: int, message: m.Score) -> None:
        place = self.data.curve.at(x)
        place.seen += 1
        place.refused += not message.accepted
        place.learning += message.learning
        self.data.shares.add(x, message)
        if message.value is None:
            return
        place.count += 1
        place.total += message.value
        if message.value > place.high:
            place.high, place.frame = message.value, message.frame
        place.rarity = max(place.rarity, message.rarity or 0.0)

    def _on_alert(self, x: int, message: m.Alert) -> None:
        key = (message.run, message.epoch, message.id)
        event = self._events.get(key)
        if event is None:
            if len(self._events) >= MAX_EVENTS:
                self.data.events_left_out += message.phase == "new"
                return
            segment = self._segments[key[:2]]
            start = segment.offset_ns + max(message.start_t_ns - segment.t0_ns, 0)
            event = self._events[key] = Event(key, message, message, min(start, x) if message.start_frame >= 0 else x)
            event.nearest = self.data.galleries.get("frame", {}).get(message.exemplar)
        event.last = message
        if message.thumbnail:
            event.best = message

    def _on_model(self, x: int, message: m.Model) -> None:
        point = (x, message.ids.copy(), np.asarray(message.counts, np.float64), message)
        thin = self.data.models.setdefault(message.which, Thinned())
        thin.add((*point[:3], message.activated_frame, message.free_energy, message.clumps, message.seconds))
        self.data.last_model[message.which] = message

    def _on_clumps(self, x: int, message: m.Clumps) -> None:
        self.data.last_clumps[message.which] = message

    def _on_exemplar(self, x: int, message: m.Exemplar) -> None:
        data = self.data
        for gone in [] if message.removed is None else message.removed.tolist():
            for gallery in data.galleries.values():
                gallery.pop(gone, None)
        if message.id < 0:
            return
        if message.role.removeprefix(TOPIC_PREFIX) in EXAMPLE_ROLES:
            pictures = data.scene_pictures if message.role in EXAMPLE_ROLES else data.topic_pictures
            key = (message.component, message.role)
            if message.thumbnail and (key in pictures or len(pictures) < 3 * MAX_EXEMPLARS):
                pictures[key] = message
            return
        gallery = data.galleries.setdefault(message.role, {})
        is_shown = message.thumbnail or (message.role != "frame" and message.id not in gallery)  # patches have none
        if is_shown and len(gallery) < MAX_EXEMPLARS and len(data.galleries) <= MAX_GALLERIES:
            gallery[message.id] = message
            data.exemplar_x.setdefault(message.id, x)

    def _on_visits(self, x: int, message: m.VisitKind) -> None:
        kinds = self.data.kinds
        if message.id < 0 or (message.id not in kinds and len(kinds) >= MAX_KINDS):
            return
        before = kinds.get(message.id)
        if before is not None and before.last.count > message.count:
            before = None  # the agent began anew
        segment = self._segments[message.run, message.epoch]

        def x_of(t_ns: int) -> int:
            return segment.offset_ns + max(t_ns - segment.t0_ns, 0)

        seen = KindSeen(message, x_of(message.first_t_ns), x_of(message.last_t_ns))
        if before is not None:
            seen.first_x, seen.xs = before.first_x, before.xs
        times = [] if message.times is None else message.times.tolist()
        seen.xs |= {x_of(t_ns) for t_ns in times[: MAX_VISITS - len(seen.xs)]}
        kinds[message.id] = seen

    def _on_encoder(self, x: int, message: m.Encoder) -> None:
        """How patches become rows is for other programs."""

    def _on_status(self, x: int, message: m.Status) -> None:
        self.data.statuses.add((x, message))

    def _on_gate(self, x: int, message: m.GateChange) -> None:
        _keep(self.data.gate, (x, message.state, message.reason))

    def _on_source(self, x: int, message: m.SourceChange) -> None:
        _keep(self.data.source, (x, message.state, message.detail))

    def _on_log(self, x: int, message: m.LogNotice) -> None:
        _keep(self.data.notices, (x, message))

    def _on_other(self, x: int, message: m.Message) -> None:
        self.data.others[m.kind_of(message)] = (x, message)

    def _on_summary(self, x: int, message: m.Summary) -> None:
        self.data.summary = {
            name: getattr(message, name)
            for name in ("frames", "accepted", "refused", "dropped", "events", "alerts", "hash", "exit_code", "reason")
        }


def _keep(items: list, item: Any) -> None:
    """Append while there is room: a state that flickers for months must not fill the report."""
    if len(items) < 5000:
        items.append(item)


def read_report(path: pathlib.Path | str) -> ReportData:
    """Read the folder; LogError where there is none."""
    return _Reader(open_run(path)).read()
