"""The bit-packed wire of thin links: a 6-byte envelope and records, the alert in 32 bytes all in.

Called by transport/thin/link.py (both ends) and tools. It keeps no state: what a frame means never depends on
another frame or on the model. It knows no record by name: all are rows of transport/thin/records.py.

A frame is: version 3 bits, direction 1, spare 4 (zero); agent number 8; records; 4-byte tag. The tag is BLAKE2s over
all before it, keyed with the link's key where there is one: checksum and authentication in the same four bytes
(RFC 7693). Records begin with a 4-bit type and end on a byte.
"""

import hashlib
from dataclasses import dataclass, replace

from stillwatch.transport.thin.layout import pack, unpack
from stillwatch.transport.thin.records import RECORDS, TYPES, Record, RecordType, ThinAlert
from stillwatch.transport.wire import DecodeError, EncodeError

VERSION = 1
HEADER_BYTES = 2
TAG_BYTES = 4
ENVELOPE_BYTES = HEADER_BYTES + TAG_BYTES
ALERT_BYTES = 26  # the record; with its envelope 32
ALERT_NUMBER_BYTES = 5  # its first bytes: type and delivery number, the rest is what the outbox stores
N_STREAMS = 1 << 11
N_PACKETS = 1 << 12
MAX_DATA_BYTES = 255
NO_REQUEST = 15


@dataclass(frozen=True, slots=True)
class ThinFrame:
    """What one modem frame carried."""

    agent: int
    from_ground: bool
    records: tuple[Record, ...]


class ThinCodec:
    """Builds and reads frames for one agent and one key.

    Parameters
    ----------
    agent : int
        Number of the agent on this link, 0-255; both ends use the vehicle's.
    key : bytes
        Up to 32 secret bytes shared by both ends, or empty: then the tag is a checksum and anybody may speak.
    """

    def __init__(self, agent: int = 0, key: bytes = b""):
        if not 0 <= agent <= 255 or len(key) > 32:
            raise EncodeError(f"agent {agent} is outside 0-255 or the key's {len(key)} bytes are over 32")
        self.agent = agent
        self._key = key

    def frame(self, records: list[bytes], *, from_ground: bool = False) -> bytes:
        """Return one frame around encoded records. Its length is ENVELOPE_BYTES more than theirs."""
        head = bytes([VERSION << 5 | from_ground << 4, self.agent]) + b"".join(records)
        return head + self._tag(head)

    def decode(self, frame: bytes) -> ThinFrame:
        """Check and read one frame; DecodeError for anything that is not whole, ours and of this version."""
        if len(frame) <= ENVELOPE_BYTES:
            raise DecodeError(f"a frame of {len(frame)} bytes is too short")
        head, tag = frame[:-TAG_BYTES], frame[-TAG_BYTES:]
        if head[0] >> 5 != VERSION or head[0] & 0x0F:
            raise DecodeError(f"frame of version {head[0] >> 5}, this is {VERSION}")
        if tag != self._tag(head):
            raise DecodeError("the frame's tag is wrong: damaged, or of another key")
        records = tuple(_decode_records(head[HEADER_BYTES:]))
        return ThinFrame(head[1], bool(head[0] >> 4 & 1), records)

    def encode_alert(self, alert: ThinAlert) -> bytes:
        """Return the frame of one alert: 32 bytes with everything."""
        return self.frame([encode_record(alert)])

    def _tag(self, head: bytes) -> bytes:
        return hashlib.blake2s(head, digest_size=TAG_BYTES, key=self._key).digest()


def encode_record(record: Record, *, rest: bool = False) -> bytes:
    """Return a record's bytes; with `rest`, those with data save the length byte and must end the frame."""
    kind = TYPES.get(type(record))
    if kind is None:
        raise EncodeError(f"{type(record).__name__} is no record of a thin link")
    row = RECORDS[kind]
    data = getattr(record, "data", b"")
    if not row.has_data:
        return pack(kind, row.fields, row.values_of(record))
    if not 1 <= len(data) <= MAX_DATA_BYTES:
        raise EncodeError(f"{len(data)} bytes of data in a record, 1 to {MAX_DATA_BYTES} fit")
    head = pack(kind, row.fields, (rest, *row.values_of(record)))
    return head + (b"" if rest else bytes([len(data)])) + data


def data_overhead(kind: RecordType, *, rest: bool) -> int:
    """Return the bytes that a fragment, packet or component part needs beside its data."""
    return RECORDS[kind].n_bytes + (not rest)


def number_alert(stored: bytes, incarnation: int, delivery: int) -> bytes:
    """Return the record of an alert that the outbox stored without its delivery number."""
    head = RecordType.ALERT << 36 | incarnation << 24 | delivery
    return head.to_bytes(ALERT_NUMBER_BYTES, "big") + stored


def decode_alert_record(record: bytes) -> ThinAlert:
    """Return the alert of a record as it is kept in logs; DecodeError where it is none."""
    if len(record) != ALERT_BYTES or record[0] >> 4 != RecordType.ALERT:
        raise DecodeError(f"{len(record)} bytes are no alert record of {ALERT_BYTES}")
    alert, _ = _decode_record(record, 0)
    assert isinstance(alert, ThinAlert)
    return alert


def strip_alert(alert: ThinAlert) -> bytes:
    """Return what the outbox stores of an alert: its record without type and delivery number."""
    return encode_record(replace(alert, incarnation=0, delivery=0))[ALERT_NUMBER_BYTES:]


def _decode_records(data: bytes) -> list[Record]:
    records: list[Record] = []
    position = 0
    while position < len(data):
        record, position = _decode_record(data, position)
        records.append(record)
    return records


def _decode_record(data: bytes, position: int) -> tuple[Record, int]:
    """Return the record that begins at `position`, and where it ends."""
    try:
        kind = RecordType(data[position] >> 4)
    except ValueError:
        raise DecodeError(f"record of unknown type {data[position] >> 4}") from None
    row = RECORDS[kind]
    end = position + row.n_bytes
    values = unpack(row.fields, data[position:end])
    if not row.has_data:
        return row.record_of(values, b""), end
    is_rest = bool(values.pop(0))
    start = position + data_overhead(kind, rest=is_rest)
    if start >= len(data):
        raise DecodeError("record without data at the end of a frame")
    end = len(data) if is_rest else start + data[start - 1]
    body = data[start:end]
    if len(body) != end - start or not 1 <= len(body) <= MAX_DATA_BYTES:
        raise DecodeError(f"record of {end - start} bytes in a frame with {len(body)} left, limit {MAX_DATA_BYTES}")
    return row.record_of(values, body), end
