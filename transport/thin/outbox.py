"""Store and forward: what must arrive is on the disk before anyone relies on it, and stays until acknowledged.

Used by transport/thin/link.py for alerts, by one thread. Built on the record log: puts, acknowledgements and drops
are records; files are deleted oldest first. It must not lose anything silently, nor ever give a number twice.

Fsync policy: each record is one write followed by fdatasync, before the call returns. A put that returned is
therefore on the disk after a kill and after a power cut; an acknowledgement that was lost only costs a repeat.
"""

import logging
import os
import pathlib
import shutil
import struct
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from stillwatch.transport.base import Clock
from stillwatch.transport.disk import Damage, RecordWriter, log_files, read_file, read_records
from stillwatch.transport.wire import LogError

logger = logging.getLogger(__name__)

KIND_PUT, KIND_ACK, KIND_DROP, KIND_META = 16, 17, 18, 19
MAX_DELIVERY = 1 << 24
N_DURABLE = 1 << 11  # incarnations below are of folders, those from here on of processes that found no disk
_NUMBER = struct.Struct("<HI")
_PUT = struct.Struct("<HIq")
_META = struct.Struct("<HII")
_BLOCK = 256  # numbers reserved at a time: as many alerts can be numbered while the disk is full
_HELD = 256
_FILES = 16
EARLIEST_NS = 1_577_836_800_000_000_000  # a wall clock before 2020 was never set
FOREVER_S = 1e9


class Number(NamedTuple):
    """Identity of one delivery, never given twice: which outbox, and which one of it."""

    incarnation: int
    delivery: int


@dataclass(slots=True)
class _Entry:
    payload: bytes
    put_wall_ns: int
    known_ns: int  # monotonic time since when this process knows it
    age_ns: int  # its age then
    record: int  # sequence number in the log, -1 while only in memory


class Outbox:
    """Payloads that wait for their acknowledgement, in the order of their numbers.

    Parameters
    ----------
    folder : path
        Of its own; an existing outbox is continued.
    clock
        Monotonic time ages entries while running, wall time those of earlier processes.
    max_bytes : int
        Of all its files. Over it acknowledged entries go first; unsent ones last, oldest first, with a warning.
    max_age_s : float
        Older entries are dropped, with a warning.
    min_free_bytes : int
        Below this much free space nothing is written (`put` raises), and acknowledged files are deleted. Unsent
        entries are not: they are small, and another's full disk is no reason to forget them.

    Attributes
    ----------
    counters : Counter
        put, held, acknowledged, lost_bytes, lost_age, lost_memory (unsent entries dropped, by cause), refused
        (puts that the disk did not take), damaged (stretches of the log that could not be read).
    continued : bool
        There was an outbox in the folder before.
    generation : int
        Rises with each start on the same folder, from anywhere.
    """

    def __init__(
        self,
        folder: pathlib.Path | str,
        *,
        clock: Clock,
        max_bytes: int = 4_000_000,
        max_age_s: float = 30 * 86_400.0,
        min_free_bytes: int = 1_000_000,
    ):
        if max_bytes < 64 * 1024 or max_age_s <= 0 or min_free_bytes < 0:
            raise LogError(f"outbox of {max_bytes} bytes, {max_age_s} s: at least 65536 bytes and over 0 s")
        self.folder = pathlib.Path(folder)
        self.counters: Counter[str] = Counter()
        self._clock = clock
        self._max_bytes = max_bytes
        self._max_age_ns = int(max_age_s * 1e9)
        self._min_free_bytes = min_free_bytes
        self._entries: dict[Number, _Entry] = {}
        self._incarnation = int.from_bytes(os.urandom(2), "big") % N_DURABLE
        self._next = self._reserved = self._lost_before = 0
        self.continued = bool(log_files(self.folder))
        if self.continued:
            self._load()
        self._writer = RecordWriter(
            self.folder,
            "outbox",
            clock=clock,
            max_file_bytes=max_bytes // _FILES,
            max_file_s=FOREVER_S,
            sync_every_s=0.0,
            preamble=self._preamble,
            on_state=_log_state,
        )
        if not self._reserve():
            self._incarnation = N_DURABLE + int.from_bytes(os.urandom(2), "big") % N_DURABLE
            self._next, self._reserved = 0, MAX_DELIVERY
        self.generation = self._incarnation + self._next // _BLOCK

    def put(self, payload: bytes) -> Number:
        """Store a payload and return its number once it is on the disk.

        Raises
        ------
        LogError
            The disk does not take it (full, read only, gone, little free space): it is not stored. `hold` keeps it
            in memory.
        """
        if not payload or len(payload) > self._max_bytes // (2 * _FILES):
            raise LogError(f"payload of {len(payload)} bytes: 1 to {self._max_bytes // (2 * _FILES)} fit this outbox")
        self._make_room(len(payload) + 64)
        if not self._has_space() or not self._reserve():
            self.counters["refused"] += 1
            raise LogError(f"{self.folder}: nothing can be stored ({self.state}); give it room, or another folder")
        number = Number(self._incarnation, self._next)
        self._next += 1
        entry = _Entry(payload, self._clock.wall_ns(), self._clock.monotonic_ns(), 0, -1)
        if not self._write_entry(number, entry):
            self.counters["refused"] += 1
            raise LogError(f"{self.folder}: nothing can be stored ({self.state}); give it room, or another folder")
        self._entries[number] = entry
        self.counters["put"] += 1
        return number

    def hold(self, payload: bytes) -> Number:
        """Keep a payload in memory only, under a number that is as good; `settle` stores it when the disk can.

        At most 256 are held: over it the oldest is dropped, with a warning.
        """
        if self._next >= self._reserved:
            self._incarnation = N_DURABLE + int.from_bytes(os.urandom(2), "big") % N_DURABLE
            self._next, self._reserved = 0, MAX_DELIVERY
        held = [number for number, entry in self._entries.items() if entry.record < 0]
        if len(held) >= _HELD:
            self._drop(held[:1], "lost_memory")
        number = Number(self._incarnation, self._next)
        self._next += 1
        self._entries[number] = _Entry(payload, self._clock.wall_ns(), self._clock.monotonic_ns(), 0, -1)
        self.counters["held"] += 1
        return number

    def settle(self) -> int:
        """Store what is held in memory only, drop what is too old; return how many are still held."""
        self._expire()
        held = [(number, entry) for number, entry in self._entries.items() if entry.record < 0]
        if held:
            self._make_room(sum(len(entry.payload) + 64 for _, entry in held))
        while held and self._has_space() and self._write_entry(*held[0]):
            held.pop(0)
        return len(held)

    def acknowledge(self, numbers: Iterable[Number]) -> int:
        """Forget entries that have arrived; return how many there were. Numbers that are not waiting are ignored."""
        done = [number for number in dict.fromkeys(numbers) if number in self._entries]
        if done:
            stored = [number for number in done if self._entries[number].record >= 0]
            for number in done:
                del self._entries[number]
            self.counters["acknowledged"] += len(done)
            if stored:
                self._writer.append(KIND_ACK, b"".join(_NUMBER.pack(*number) for number in stored))
            self._delete_done()
        return len(done)

    def pending(self) -> Iterator[tuple[Number, bytes]]:
        """Yield (number, payload) of all that waits, oldest first. Do not change the outbox meanwhile."""
        for number, entry in self._entries.items():
            yield number, entry.payload

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, number: Number) -> bool:
        return number in self._entries

    @property
    def state(self) -> str:
        """The record log's state, or "disk_full" while free space is under the limit."""
        if self._writer.state == "ok" and not self._has_space():
            return "disk_full"
        return self._writer.state

    @property
    def lost(self) -> int:
        """Unsent entries dropped since the folder was made."""
        return self._lost_before + sum(n for name, n in self.counters.items() if name.startswith("lost_"))

    def memory_bytes(self) -> int:
        """Return the bytes of the payloads in memory, with about 200 for each one's bookkeeping."""
        return sum(len(entry.payload) + 200 for entry in self._entries.values())

    def close(self) -> None:
        """Flush and close; an outbox that was not closed loses nothing."""
        self._writer.close()

    def _load(self) -> None:
        """Read the log again: what was put and neither acknowledged nor dropped waits."""
        damage: list[Damage] = []
        wall_ns, mono_ns = self._clock.wall_ns(), self._clock.monotonic_ns()
        try:
            for record in read_records(self.folder, name="outbox", damage=damage):
                if record.kind == KIND_PUT and len(record.body) > _PUT.size:
                    incarnation, delivery, put_ns = _PUT.unpack_from(record.body)
                    age_ns = max(wall_ns - put_ns, 0) if put_ns >= EARLIEST_NS else 0
                    payload = record.body[_PUT.size :]
                    entry = _Entry(payload, put_ns, mono_ns, age_ns, record.sequence)
                    self._entries[Number(incarnation, delivery)] = entry
                elif record.kind in (KIND_ACK, KIND_DROP):
                    for fields in _NUMBER.iter_unpack(record.body):
                        self._entries.pop(Number(*fields), None)
                        self._lost_before += record.kind == KIND_DROP
                elif record.kind == KIND_META and len(record.body) == _META.size:
                    self._incarnation, self._reserved, self._lost_before = _META.unpack(record.body)
        except LogError as error:
            logger.warning("outbox: %s; what it held there is not sent", error)
        damage = [item for item in damage if item.reason != "torn end"]
        self.counters["damaged"] += len(damage)
        own = [number.delivery + 1 for number in self._entries if number.incarnation == self._incarnation]
        self._next = self._reserved = max([self._reserved, *own])
        self._entries = dict(sorted(self._entries.items(), key=lambda item: (item[1].put_wall_ns, item[0])))

    def _preamble(self) -> list[tuple[int, bytes]]:
        """Begin each file with what would be lost with the files before it."""
        return [(KIND_META, _META.pack(self._incarnation, self._reserved, self.lost))]

    def _reserve(self) -> bool:
        """Make sure that the next number is one that no later process will give again."""
        if self._next < self._reserved:
            return True
        incarnation, first = self._incarnation, self._next
        if incarnation >= N_DURABLE or first + _BLOCK >= MAX_DELIVERY:
            incarnation, first = int.from_bytes(os.urandom(2), "big") % N_DURABLE, 0
        reserved = first + _BLOCK
        if self._writer.append(KIND_META, _META.pack(incarnation, reserved, self.lost)) < 0:
            return False
        self._incarnation, self._next, self._reserved = incarnation, first, reserved
        return True

    def _write_entry(self, number: Number, entry: _Entry) -> bool:
        body = _PUT.pack(*number, entry.put_wall_ns) + entry.payload
        sequence = self._writer.append(KIND_PUT, body)
        if sequence >= 0:
            entry.record = sequence
        return sequence >= 0

    def _has_space(self) -> bool:
        try:
            return shutil.disk_usage(self.folder).free >= self._min_free_bytes
        except OSError:
            return False

    def _expire(self) -> None:
        now_ns = self._clock.monotonic_ns()
        old = [
            number
            for number, entry in self._entries.items()
            if entry.age_ns + now_ns - entry.known_ns > self._max_age_ns
        ]
        if old:
            self._drop(old, "lost_age")
            self._delete_done()

    def _drop(self, numbers: list[Number], cause: str) -> None:
        """Give up unsent entries, and say so."""
        for number in numbers:
            del self._entries[number]
        # Counted after the record: a new file's head, written meanwhile, must not count them too.
        self._writer.append(KIND_DROP, b"".join(_NUMBER.pack(*number) for number in numbers))
        self.counters[cause] += len(numbers)
        logger.warning("outbox: %d unsent dropped (%s), %d in all", len(numbers), cause, self.lost)

    def _make_room(self, needed: int) -> None:
        """Keep all files within `max_bytes`: acknowledged first, by moving what waits; then the oldest unsent."""
        self._expire()
        self._delete_done()
        while True:
            files = log_files(self.folder, "outbox")
            if len(files) < 2 or sum(_size(path) for _, path in files) + needed <= self._max_bytes:
                return
            waiting = [number for number, entry in self._entries.items() if 0 <= entry.record < files[1][0]]
            live_bytes = sum(len(entry.payload) + 64 for entry in self._entries.values())
            if live_bytes + needed > self._max_bytes * 7 // 8:
                self._drop(waiting, "lost_bytes")
            elif not all(self._write_entry(number, self._entries[number]) for number in waiting):
                return  # the disk fails: the put will say so
            if not self._delete(files[0][1]):
                return

    def _delete_done(self) -> None:
        """Delete the oldest files while nothing in them waits; never the one being written."""
        files = log_files(self.folder, "outbox")
        stored = (entry.record for entry in self._entries.values() if entry.record >= 0)
        oldest = min(stored, default=self._writer.sequence)
        for (_, path), (following, _) in zip(files, files[1:], strict=False):
            if oldest < following or not self._delete(path):
                return

    def _delete(self, path: pathlib.Path) -> bool:
        try:
            path.unlink()
        except FileNotFoundError:
            return True
        except OSError as error:
            logger.warning("outbox: %s cannot be deleted: %s", path, error.strerror)
            return False
        return True


def count_outbox(files: Iterable[pathlib.Path], damage: list[Damage]) -> dict[str, int]:
    """Return how many entries the log files of an outbox tell of: put, acknowledged, dropped, and waiting still."""
    counts: Counter[str] = Counter(put=0, acknowledged=0, dropped=0)
    waiting: set[Number] = set()
    for path in files:
        for record in read_file(path, damage):
            if record.kind == KIND_PUT and len(record.body) > _PUT.size:
                incarnation, delivery, _ = _PUT.unpack_from(record.body)
                counts["put"] += Number(incarnation, delivery) not in waiting  # else moved out of an old file
                waiting.add(Number(incarnation, delivery))
            elif record.kind in (KIND_ACK, KIND_DROP):
                numbers = {Number(*fields) for fields in _NUMBER.iter_unpack(record.body)}
                counts["acknowledged" if record.kind == KIND_ACK else "dropped"] += len(numbers)
                waiting -= numbers
    return {**counts, "waiting": len(waiting)}


def _size(path: pathlib.Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _log_state(state: str, message: str) -> None:
    logger.log(logging.INFO if state == "ok" else logging.WARNING, "outbox: %s", message)
