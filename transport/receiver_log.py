"""The ground's log of alerts: each one exactly once, whatever the link repeats and whenever either side is killed.

Used by transport/thin_link.py, by one thread. An alert is on the disk before it is acknowledged, and its number is
looked up before it is written.
"""

import bisect
import logging
import pathlib
import struct
from collections.abc import Iterator

from stillwatch.transport.errors import LogError
from stillwatch.transport.outbox import Number
from stillwatch.transport.record_format import log_files
from stillwatch.transport.record_log import Clock, RecordWriter, read_records
from stillwatch.transport.thin import ALERT_BYTES, ThinAlert, decode_alert_record, encode_record

logger = logging.getLogger(__name__)

KIND_ALERT, KIND_RANGES = 16, 17
_NAME = "received"
_RANGE = struct.Struct("<BHII")
_FOREVER_S = 1e9


class NumberSet:
    """A set of integers kept as sorted, separate, inclusive ranges: holes cost memory, numbers do not."""

    def __init__(self) -> None:
        self.ranges: list[tuple[int, int]] = []

    def add(self, low: int, high: int | None = None) -> None:
        """Add all of low to high, or one number."""
        high = low if high is None else high
        first = bisect.bisect_left(self.ranges, low - 1, key=lambda pair: pair[1])
        last = bisect.bisect_right(self.ranges, high + 1, key=lambda pair: pair[0])
        if first < last:
            low, high = min(low, self.ranges[first][0]), max(high, self.ranges[last - 1][1])
        self.ranges[first:last] = [(low, high)]

    def __contains__(self, number: int) -> bool:
        i = bisect.bisect_right(self.ranges, number, key=lambda pair: pair[0]) - 1
        return i >= 0 and number <= self.ranges[i][1]


class ReceiverLog:
    """Alerts of any number of agents in one folder, and the numbers that are there.

    Attributes
    ----------
    duplicates : int
        Alerts that came again and were not written again.
    continued : bool
        There was a log in the folder before.
    state : str
        The record log's state; while it is not "ok" nothing is taken, so the vehicles keep what they have.
    """

    def __init__(self, folder: pathlib.Path | str, *, clock: Clock, max_file_bytes: int = 4_000_000):
        self.folder = pathlib.Path(folder)
        self.duplicates = 0
        self.continued = bool(log_files(self.folder, _NAME))
        self._known: dict[tuple[int, int], NumberSet] = {}
        self._read_from(_last_file_sequence(self.folder))
        self._is_in_doubt = False
        self._writer = RecordWriter(
            self.folder, _NAME, clock=clock, max_file_bytes=max_file_bytes, max_file_s=_FOREVER_S, sync_every_s=0.0,
            preamble=self._preamble, on_state=_log_state,
        )  # fmt: skip

    @property
    def state(self) -> str:
        """The record log's state."""
        return self._writer.state

    def has(self, agent: int, number: Number) -> bool:
        """Tell whether this alert is in the log."""
        known = self._known.get((agent, number.incarnation))
        return known is not None and number.delivery in known

    def append(self, agent: int, alert: ThinAlert) -> bool | None:
        """Write an alert and return True; False if it was there already, None if the disk did not take it."""
        if self._is_in_doubt:
            # A write whose sync failed may be on the disk all the same: look before the alert is written again.
            try:
                self._read_from(_last_file_sequence(self.folder))
            except LogError:
                return None
        number = Number(alert.incarnation, alert.delivery)
        if self.has(agent, number):
            self.duplicates += 1
            return False
        if self._writer.append(KIND_ALERT, bytes([agent]) + encode_record(alert)) < 0:
            self._is_in_doubt = True
            return None
        self._is_in_doubt = False
        self._note(agent, number)
        return True

    def close(self) -> None:
        """Flush and close."""
        self._writer.close()

    def _note(self, agent: int, number: Number) -> None:
        self._known.setdefault((agent, number.incarnation), NumberSet()).add(number.delivery)

    def _read_from(self, sequence: int) -> None:
        """Learn what is there from this record on; each file begins with all that was known before it."""
        if not log_files(self.folder, _NAME):
            return
        for record in read_records(self.folder, name=_NAME, from_sequence=sequence):
            if record.kind == KIND_RANGES:
                for agent, incarnation, low, high in _RANGE.iter_unpack(record.body):
                    self._known.setdefault((agent, incarnation), NumberSet()).add(low, high)
            elif record.kind == KIND_ALERT and len(record.body) == ALERT_BYTES + 1:
                alert = decode_alert_record(record.body[1:])
                self._note(record.body[0], Number(alert.incarnation, alert.delivery))

    def _preamble(self) -> list[tuple[int, bytes]]:
        rows = [
            _RANGE.pack(agent, incarnation, low, high)
            for (agent, incarnation), known in self._known.items()
            for low, high in known.ranges
        ]
        return [(KIND_RANGES, b"".join(rows))]


def read_received(folder: pathlib.Path | str) -> Iterator[tuple[int, int, ThinAlert]]:
    """Yield (agent, UTC ns of arrival, alert) for every alert in a receiver's log, in order of arrival."""
    for record in read_records(folder, name=_NAME):
        if record.kind == KIND_ALERT and len(record.body) == ALERT_BYTES + 1:
            yield record.body[0], record.t_ns, decode_alert_record(record.body[1:])


def _last_file_sequence(folder: pathlib.Path) -> int:
    """Return where the newest file that has its preamble begins; 0 reads all."""
    for sequence, path in reversed(log_files(folder, _NAME)):
        try:
            first = next(read_records(path), None)
        except LogError as error:
            raise LogError(f"the received alerts cannot be read, so doubles could not be told: {error}") from error
        if first is not None and first.kind == KIND_RANGES:
            return sequence
    return 0


def _log_state(state: str, message: str) -> None:
    logger.log(logging.INFO if state == "ok" else logging.WARNING, "received alerts: %s", message)
