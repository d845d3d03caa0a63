"""What a subscriber has seen and missed of one agent: sequences, gaps, last values, age.

Used by transport/live/subscriber.py; no socket here. It must never let a loss pass unnoticed, nor deliver the same
message twice, nor call lost what comes after all.
"""

from collections import OrderedDict
from dataclasses import dataclass

from stillwatch.transport.wire import TOPICS, Message, Status, key_of, kind_of

_MISSING_KEPT = 1024


@dataclass(frozen=True, slots=True)
class Gap:
    """Messages of one kind that are lost: sequences `first` to `last`, both included.

    Of topics with last values a jump alone is no gap yet: the snapshot that it makes us ask for may bring them.
    """

    kind: str
    first: int
    last: int

    @property
    def count(self) -> int:
        """How many messages are missing."""
        return self.last - self.first + 1


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to do with a live message: deliver it or not, gaps that it reveals, and whether it was just made.

    A publisher sends old last values again for every joiner: `is_fresh` is false for what may be one of them.
    """

    deliver: bool
    gaps: list[Gap]
    is_fresh: bool


class Tracker:
    """Decides about each message of one agent: deliver it, and which gap it reveals.

    `epoch` is that of the publisher; a higher one starts anew. `lost` counts by kind what all gaps together hold, less
    what came out of order after its gap was told.
    """

    def __init__(self) -> None:
        self.epoch = -1
        self.lost: dict[str, int] = {}
        self._next: dict[str, int] = {}
        self._first: dict[str, int] = {}
        self._unheard: set[str] = set()  # kinds whose next sequence only a snapshot has told
        self._brought: dict[str, OrderedDict[int, None]] = {}  # sequences that snapshots brought
        self._missing: dict[str, OrderedDict[int, None]] = {}
        self._latest: dict[str, OrderedDict[str, int]] = {}  # of those that a snapshot can bring again
        self.behind: dict[tuple[str, str], int] = {}  # newest sequence of what came without its base, by kind and key

    def is_new_epoch(self, epoch: int) -> bool:
        """Note the publisher's epoch; True when it has restarted and all sequences with it."""
        if epoch <= self.epoch:
            return False
        self.epoch = epoch
        for known in (self._next, self._first, self._unheard, self._brought, self._missing, self._latest, self.behind):
            known.clear()
        return True

    @property
    def suspects(self) -> dict[str, int]:
        """The newest of the missing last values, which a snapshot may bring, by kind; empty where none are."""
        last_values = {kind: missing for kind, missing in self._missing.items() if TOPICS[kind].last_value}
        return {kind: max(missing) for kind, missing in last_values.items() if missing}

    def live(self, message: Message, has_base: bool = True) -> Verdict:
        """Judge a message of the data socket; `has_base` false: a change of what we do not have."""
        kind = kind_of(message)
        if message.epoch < self.epoch:
            return Verdict(False, [], False)
        if kind in self._unheard:
            self._hear_first(kind, message.sequence)
        expected = self._next.get(kind)
        gaps: list[Gap] = []
        if expected is not None and message.sequence < expected:
            if not self._heal(kind, message.sequence):
                return Verdict(False, [], False)
        else:
            self._first.setdefault(kind, message.sequence)
            if expected is not None and message.sequence > expected:
                gaps += self._miss(kind, expected, message.sequence - 1)
            self._next[kind] = message.sequence + 1
        if isinstance(message, Status):
            for other, following in message.sequences.items():
                gaps += self._expect(other, following)
        is_fresh = expected is not None and message.sequence >= expected
        return Verdict(self._is_newest(message, has_base), gaps, is_fresh)

    def snapshot(self, message: Message) -> bool:
        """Return whether to deliver a last value of a snapshot page."""
        if message.epoch < self.epoch:
            return False
        kind = kind_of(message)
        if not self._heal(kind, message.sequence):
            brought = self._brought.setdefault(kind, OrderedDict())
            brought[message.sequence] = None
            if len(brought) > _MISSING_KEPT:
                brought.popitem(last=False)
        return self._is_newest(message)

    def baseline(self, sequences: dict[str, int]) -> list[Gap]:
        """Take the publisher's last sequences, as of a snapshot, as what was before we came; return the gaps."""
        gaps: list[Gap] = []
        for kind in TOPICS:
            last = sequences.get(kind, -1)
            first = self._first.get(kind)
            if first is None and kind not in self._next:
                self._next[kind] = last + 1
                self._unheard.add(kind)
            elif first is not None and first > last + 1:
                gaps += self._miss(kind, last + 1, first - 1)
            self._first[kind] = min(last + 1, self._first.get(kind, last + 1))
        return gaps

    def settle(self, sequences: dict[str, int] | None = None) -> list[Gap]:
        """Take for lost what is still missing of last values, and return the gaps.

        With `sequences`, the suspects at the time when a snapshot was asked for that is there now: only up to them.
        """
        gaps: list[Gap] = []
        for kind, missing in self._missing.items():
            if not TOPICS[kind].last_value:
                continue
            known = sequences.get(kind, -1) if sequences is not None else max(missing, default=-1)
            gone = sorted(sequence for sequence in missing if sequence <= known)
            for sequence in gone:
                del missing[sequence]
            starts = [s for at, s in enumerate(gone) if at == 0 or gone[at - 1] != s - 1]
            ends = [s for at, s in enumerate(gone) if at + 1 == len(gone) or gone[at + 1] != s + 1]
            gaps += [self._count(Gap(kind, *ends_of)) for ends_of in zip(starts, ends, strict=True)]
        return gaps

    def _expect(self, kind: str, following: int) -> list[Gap]:
        """Compare with what a heartbeat says was made: that finds a loss that no later message reveals."""
        expected = self._next.get(kind)
        if kind not in TOPICS or expected is None or following <= expected or kind == "status":
            return []
        self._next[kind] = following
        return self._miss(kind, expected, following - 1)

    def _hear_first(self, kind: str, sequence: int) -> None:
        """Take what the snapshot overtook on its way, and what follows it, as sent since we came.

        Both come on connections of their own. Only of kinds without last values: the others' old ones are sent again
        for every joiner, and the snapshot holds them.
        """
        self._unheard.discard(kind)
        if sequence < self._next[kind] and not TOPICS[kind].last_value:
            self._next[kind] = self._first[kind] = sequence

    def _miss(self, kind: str, first: int, last: int) -> list[Gap]:
        """Note sequences `first` to `last` as missing, but for those that a snapshot brought already."""
        brought = sorted(sequence for sequence in self._brought.get(kind, ()) if first <= sequence <= last)
        ends = [*brought, last + 1]
        starts = [first, *(sequence + 1 for sequence in brought)]
        runs = [(start, end - 1) for start, end in zip(starts, ends, strict=True) if start < end]
        return [gap for run in runs for gap in self._lose(kind, *run)]

    def _lose(self, kind: str, first: int, last: int) -> list[Gap]:
        """Note a run of missing messages; return what is lost for good: of last values, what we cannot remember."""
        missing = self._missing.setdefault(kind, OrderedDict())
        may_come = TOPICS[kind].last_value
        gaps = [] if may_come else [Gap(kind, first, last)]
        kept = max(first, last - _MISSING_KEPT + 1)
        if may_come and kept > first:
            gaps.append(Gap(kind, first, kept - 1))
        missing.update(dict.fromkeys(range(kept, last + 1)))
        while len(missing) > _MISSING_KEPT:
            oldest, _ = missing.popitem(last=False)
            gaps += [Gap(kind, oldest, oldest)] * may_come
        return [self._count(gap) for gap in gaps]

    def _count(self, gap: Gap) -> Gap:
        self.lost[gap.kind] = self.lost.get(gap.kind, 0) + gap.count
        return gap

    def _heal(self, kind: str, sequence: int) -> bool:
        if sequence not in self._missing.get(kind, ()):
            return False
        del self._missing[kind][sequence]
        if not TOPICS[kind].last_value:
            self.lost[kind] -= 1
        return True

    def _is_newest(self, message: Message, has_base: bool = True) -> bool:
        """Return whether a last value is newer than what was delivered for its key; other topics always are."""
        kind = kind_of(message)
        if not TOPICS[kind].last_value:
            return True
        key = kind, key_of(message)
        latest = self._latest.setdefault(kind, OrderedDict())
        if latest.get(key[1], -1) >= message.sequence:
            return False
        if not has_base:
            self.behind[key] = message.sequence
            return False
        if self.behind.get(key, -1) <= message.sequence:
            self.behind.pop(key, None)
        latest[key[1]] = message.sequence
        latest.move_to_end(key[1])
        if len(latest) > 2 * TOPICS[kind].keep:
            latest.popitem(last=False)
        return True


class AgeMeter:
    """How late messages are, with clocks that were never set by each other.

    The fastest message seen gives the offset between both monotonic clocks; age is what a message took beyond it.
    The sender's boot id tells its clocks apart; clocks drift, so the offset is forgotten slowly.
    """

    _FORGET_NS = 60_000_000_000
    _DRIFT = 100e-6  # of a poor crystal

    def __init__(self) -> None:
        self._boot = ""
        self._offset_ns = 0
        self._since_ns = 0

    def age_s(self, message: Message, arrived_mono_ns: int) -> float:
        """Return the message's age in seconds at `arrived_mono_ns` of our monotonic clock."""
        apart = arrived_mono_ns - message.mono_ns
        if message.boot != self._boot:
            self._boot, self._offset_ns, self._since_ns = message.boot, apart, arrived_mono_ns
        elapsed = arrived_mono_ns - self._since_ns
        if elapsed > self._FORGET_NS:
            self._offset_ns += int(elapsed * self._DRIFT)
            self._since_ns = arrived_mono_ns
        self._offset_ns = min(self._offset_ns, apart)
        return (apart - self._offset_ns) / 1e9
