"""Decides what goes into the next slot of a thin link, and never sends more than the link's budget.

Used by both ends (transport/thin/link.py). One thread owns it. It knows classes and bytes, not what they mean,
and it reads no clock: `now_ns` is monotonic time given by the caller.
"""

import math
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from stillwatch.transport.thin.codec import ENVELOPE_BYTES, ThinCodec
from stillwatch.transport.thin.presets import WINDOW_S, Budget
from stillwatch.transport.wire import LinkError

_WINDOW_NS = int(WINDOW_S * 1e9)
STEADY_TRIES = 16  # as often an item is sent at its class's pace; then the wait doubles with each try, up to 8-fold
_SLOWEST = 8


@dataclass(frozen=True, slots=True)
class ClassRule:
    """How one class of items is sent; the terms are Goby's (DynamicBufferConfig).

    Attributes
    ----------
    value_base, ttl_s : float
        A class gains `value_base / ttl_s` in priority for each second that it was not sent; an item older than its
        time to live is dropped and counted.
    blackout_s : float
        Least time between two items of the class.
    max_queue : int
        Items kept; over it the least valuable is dropped and counted (oldest or newest, see `newest_first`).
    newest_first : bool
        Order among items of equal value.
    repeat_slots : int
        Slots to wait for an acknowledgement before sending again; 0: sent once.
    is_urgent : bool
        Ahead of every class that is not, whatever the priorities.
    """

    value_base: float
    ttl_s: float = math.inf
    blackout_s: float = 0.0
    max_queue: int = 1000
    newest_first: bool = False
    repeat_slots: int = 2
    is_urgent: bool = False


RULES = {
    "alert": ClassRule(100.0, max_queue=4096, repeat_slots=1, is_urgent=True),
    "request": ClassRule(80.0, ttl_s=1800.0, max_queue=8, repeat_slots=4),
    "ack": ClassRule(50.0, ttl_s=120.0, max_queue=64, newest_first=True, repeat_slots=0),
    "model": ClassRule(10.0, ttl_s=3600.0, max_queue=2000),
    "component": ClassRule(10.0, ttl_s=3600.0, max_queue=200),
    "thumbnail": ClassRule(24.0, ttl_s=7200.0, max_queue=1000, newest_first=True),
    "clumps": ClassRule(1e-6, ttl_s=86_400.0, max_queue=2000),  # by request: what is left over
    "heartbeat": ClassRule(5.0, ttl_s=600.0, blackout_s=300.0, max_queue=1, newest_first=True, repeat_slots=0),
}


@dataclass(slots=True)
class Item:
    """Something to send. `key` is unique in its class: a second offer under it replaces the record.

    `value` multiplies the class's priority; `record` is what transport/thin/codec.py encoded.
    """

    kind: str
    key: object
    record: bytes
    value: float = 1.0
    ttl_s: float | None = None  # None: the class's
    ends_frame: bool = False  # encoded without its length: nothing may follow it


@dataclass(slots=True, eq=False)
class _Entry:
    item: Item
    offered_ns: int
    expires_ns: float
    order: int
    tries: int = 0
    due_ns: int = 0
    sent_ns: int = 0


@dataclass(slots=True)
class _Queue:
    rule: ClassRule
    entries: dict[object, _Entry] = field(default_factory=dict)
    last_sent_ns: int | None = None


class Scheduler:
    """Queues of items and the budget of one end of a link.

    Parameters
    ----------
    budget : Budget
        Bytes per slot, seconds per slot; from it follows what any 10 minutes may hold.
    codec : ThinCodec
        Makes frames of records.
    from_ground : bool
        The direction written in the frames.
    now_ns : int
        Monotonic time of the start.
    restarted : bool
        Something may have been sent by an earlier process in the last 10 minutes: assume that all of it was.
    rules : dict of ClassRule
    on_drop : callable or None
        Called with (class, key) of each item given up: too old, or over its class's queue.

    Attributes
    ----------
    counters : Counter
        frames, bytes, sent.CLASS, repeated.CLASS, expired.CLASS, overflow.CLASS.
    """

    def __init__(
        self,
        budget: Budget,
        codec: ThinCodec,
        *,
        from_ground: bool = False,
        now_ns: int = 0,
        restarted: bool = False,
        rules: dict[str, ClassRule] | None = None,
        on_drop: Callable[[str, object], None] | None = None,
    ):
        self.budget = budget
        self.counters: Counter[str] = Counter()
        self._codec = codec
        self._on_drop = on_drop
        self._from_ground = from_ground
        self._slot_ns = int(budget.slot_s * 1e9)
        self._round_trip_ns = int(budget.round_trip_s * 1e9)
        self._slot = -1
        self._order = 0
        self._queues = {kind: _Queue(rule) for kind, rule in (rules or RULES).items()}
        # Kept back for what is urgent and new, or an alert could find the window full; too dear where slots are few.
        self._reserve_bytes = budget.slot_bytes if budget.window_bytes >= 10 * budget.slot_bytes else 0
        self._window: deque[tuple[int, int]] = deque()
        self._window_sum = 0
        if restarted:
            self._assume_spent(now_ns)

    def offer(self, item: Item, now_ns: int) -> None:
        """Queue an item, or replace the one under the same key; LinkError where no frame could ever hold it."""
        room = self.budget.frame_bytes - ENVELOPE_BYTES
        if item.kind not in self._queues or not 1 <= len(item.record) <= room:
            raise LinkError(f"{item.kind} item of {len(item.record)} bytes: a frame of this link holds at most {room}")
        queue = self._queues[item.kind]
        ttl_s = queue.rule.ttl_s if item.ttl_s is None else item.ttl_s
        self._order += 1
        queue.entries[item.key] = _Entry(item, now_ns, now_ns + ttl_s * 1e9, self._order)
        if len(queue.entries) > queue.rule.max_queue:
            worst = max(queue.entries.values(), key=lambda entry: _rank(entry, queue.rule.newest_first))
            self._give_up(item.kind, worst.item.key, "overflow")

    def acknowledge(self, kind: str, keys: Iterable[object]) -> int:
        """Forget items that have arrived; return how many of them were still queued."""
        entries = self._queues[kind].entries
        return sum(entries.pop(key, None) is not None for key in keys)

    def holds(self, kind: str, key: object) -> bool:
        """Tell whether the item is queued or waits for its acknowledgement."""
        return key in self._queues[kind].entries

    def count(self, kind: str) -> int:
        """Return how many items of a class are queued."""
        return len(self._queues[kind].entries)

    def keys(self, kind: str) -> list[object]:
        """Return the keys of a class's queued items."""
        return list(self._queues[kind].entries)

    def next_slot(self, now_ns: int) -> list[bytes]:
        """Return the frames to send now: none where this slot is used, the budget is spent or nothing is due."""
        slot = now_ns // self._slot_ns
        if slot <= self._slot:
            return []
        self._expire(now_ns)
        due = {kind: _due(queue, now_ns) for kind, queue in self._queues.items() if queue.entries}
        frames = []
        for _ in range(self.budget.frames_per_slot):
            frame = self._fill_frame(now_ns, due)
            if frame is None:
                break
            frames.append(frame)
            self._charge(now_ns, len(frame))
        if frames:
            self._slot = slot
        return frames

    def bytes_left(self, now_ns: int) -> int:
        """Return what may still be sent in the 10 minutes that end now."""
        while self._window and self._window[0][0] < now_ns - _WINDOW_NS:
            self._window_sum -= self._window.popleft()[1]
        return self.budget.window_bytes - self._window_sum

    def _fill_frame(self, now_ns: int, due: dict[str, list[_Entry]]) -> bytes | None:
        """Pack the best due items into one frame and note them as sent; None where nothing fits."""
        left = self.bytes_left(now_ns)
        urgent = min(self.budget.frame_bytes, left)
        ordinary = min(self.budget.frame_bytes, left - self._reserve_bytes)
        used = ENVELOPE_BYTES
        records: list[bytes] = []
        last = b""
        while True:
            entry = self._best(now_ns, due, urgent - used, ordinary - used, is_ended=bool(last))
            if entry is None:
                break
            due[entry.item.kind].remove(entry)
            if entry.item.ends_frame:
                last = entry.item.record
            else:
                records.append(entry.item.record)
            used += len(entry.item.record)
            self._note_sent(entry, now_ns)
        records += [last] if last else []
        return self._codec.frame(records, from_ground=self._from_ground) if records else None

    def _best(
        self, now_ns: int, due: dict[str, list[_Entry]], urgent_room: int, ordinary_room: int, *, is_ended: bool
    ) -> _Entry | None:
        """Return the best of what is due and fits; only urgent news may use the reserve."""
        best: tuple[tuple[bool, float, float], _Entry] | None = None
        for kind, entries in due.items():
            queue = self._queues[kind]
            rule = queue.rule
            if not entries or not _is_open(queue, now_ns):
                continue
            room = min(urgent_room, ordinary_room)
            fitting = (
                entry
                for entry in entries
                if len(entry.item.record) <= (urgent_room if rule.is_urgent and not entry.tries else room)
                and not (is_ended and entry.item.ends_frame)
            )
            entry = next(fitting, None)
            if entry is None:
                continue
            since_ns = entry.offered_ns if queue.last_sent_ns is None else queue.last_sent_ns
            gain = (now_ns - since_ns) / 1e9 / (rule.ttl_s if math.isfinite(rule.ttl_s) else 1.0)
            priority = (rule.is_urgent, rule.value_base * entry.item.value * gain, rule.value_base)
            if best is None or priority > best[0]:
                best = (priority, entry)
        return None if best is None else best[1]

    def _note_sent(self, entry: _Entry, now_ns: int) -> None:
        kind = entry.item.kind
        queue = self._queues[kind]
        queue.last_sent_ns = now_ns
        self.counters[f"repeated.{kind}" if entry.tries else f"sent.{kind}"] += 1
        if not queue.rule.repeat_slots:
            del queue.entries[entry.item.key]
            return
        entry.tries += 1
        entry.sent_ns = now_ns
        pace = min(2 ** max(entry.tries - STEADY_TRIES, 0), _SLOWEST)
        # Half a slot less, so that a slot taken a little late does not cost the repeat a whole further one.
        wait_ns = int((queue.rule.repeat_slots * pace - 0.5) * self._slot_ns)
        entry.due_ns = now_ns + max(wait_ns, self._round_trip_ns)

    def _charge(self, now_ns: int, n_bytes: int) -> None:
        self._window.append((now_ns, n_bytes))
        self._window_sum += n_bytes
        self.counters["frames"] += 1
        self.counters["bytes"] += n_bytes

    def _expire(self, now_ns: int) -> None:
        for kind, queue in self._queues.items():
            for key in [key for key, entry in queue.entries.items() if entry.expires_ns <= now_ns]:
                self._give_up(kind, key, "expired")

    def _give_up(self, kind: str, key: object, cause: str) -> None:
        del self._queues[kind].entries[key]
        self.counters[f"{cause}.{kind}"] += 1
        if self._on_drop is not None:
            self._on_drop(kind, key)

    def _assume_spent(self, now_ns: int) -> None:
        """Fill the window as if each slot so far had been used, as late as it could be, by an earlier process."""
        self._slot = now_ns // self._slot_ns
        for back in range(int(_WINDOW_NS / self._slot_ns), -1, -1):
            end_ns = (self._slot - back + 1) * self._slot_ns
            self._window.append((end_ns, self.budget.slot_bytes))
            self._window_sum += self.budget.slot_bytes


def _due(queue: _Queue, now_ns: int) -> list[_Entry]:
    """Return what of a queue may go now, best first."""
    newest_first = queue.rule.newest_first
    entries = [entry for entry in queue.entries.values() if entry.due_ns <= now_ns]
    return sorted(entries, key=lambda entry: _rank(entry, newest_first))


def _rank(entry: _Entry, newest_first: bool) -> tuple[bool, float, int, int]:
    """Order within a class, best first: never sent, more valuable, sent longest ago, then by age."""
    return (entry.tries > 0, -entry.item.value, entry.sent_ns, -entry.order if newest_first else entry.order)


def _is_open(queue: _Queue, now_ns: int) -> bool:
    blackout_ns = queue.rule.blackout_s * 1e9
    return not blackout_ns or queue.last_sent_ns is None or now_ns - queue.last_sent_ns >= blackout_ns
