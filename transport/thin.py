"""The bit-packed wire of thin links: a 6-byte envelope and records, the alert in 32 bytes all in.

Called by transport/thin_link.py (both ends) and tools. It keeps no state: what a frame means never depends on
another frame or on the model.

A frame is: version 3 bits, direction 1, spare 4 (zero); agent number 8; records; 4-byte tag. The tag is BLAKE2s over
all before it, keyed with the link's key where there is one: checksum and authentication in the same four bytes
(RFC 7693). Records begin with a 4-bit type and end on a byte; types and widths are the constants below.
"""

import enum
import hashlib
import math
from dataclasses import dataclass, replace

from stillwatch.transport.bitpack import BitReader, BitWriter, Linear, Logarithmic
from stillwatch.transport.errors import DecodeError, EncodeError

VERSION = 1
HEADER_BYTES = 2
TAG_BYTES = 4
ENVELOPE_BYTES = HEADER_BYTES + TAG_BYTES
ALERT_BYTES = 26  # the record; with its envelope 32
ALERT_NUMBER_BYTES = 5  # its first bytes: type and delivery number, the rest is what the outbox stores
MAX_STREAM_BYTES = (1 << 13) - 1
N_STREAMS = 1 << 11
N_PACKETS = 1 << 12
MAX_DATA_BYTES = 255
MODEL_CHANNELS = {"patches": 0, "scenes": 1}  # of packets; 2 to 7 are free

LATITUDE = Linear(-90.0, 90.0, 26)  # 0.3 m
LONGITUDE = Linear(-180.0, 180.0, 27)  # 0.3 m at the equator
DEPTH = Linear(-500.0, 12_607.0, 18)  # 5 cm; negative is above the surface
ALTITUDE = Linear(0.0, 25.2, 7)  # 20 cm
RARITY = Logarithmic(1.0, 2.0**31, 7)  # "one frame in N": a quarter of an octave
PLACE = Linear(0.0, 1.0, 6)  # of the frame's width or height
SIZE = Linear(0.0, 1.0, 5)
TIME_EPOCH_S = 1_577_836_800  # 2020-01-01 00:00 UTC
TIME_BITS = 36  # of 1/32 s: until 2088; 0 is unknown
_TICK_NS = 1_000_000_000 // 32

KINDS = (
    "other", "novel", "new_category", "returned", "vanished", "scene_change", "obstructed", "dark", "overexposed",
    "frozen", "source_lost", "source_back", "storage", "reserved_13", "reserved_14", "reserved_15",
)  # fmt: skip
LIVES = ("new", "update", "end", "single")
STATES = (
    "connecting", "live", "stalled", "frozen", "dark", "overexposed", "obstructed", "failed",
    "ended", "learning", "degraded", "reserved_11", "reserved_12", "reserved_13", "reserved_14", "unknown",
)  # fmt: skip


class RecordType(enum.IntEnum):
    """The first four bits of a record."""

    ALERT = 1
    COMPONENT = 2
    FRAGMENT = 3
    PACKET = 4
    ALERT_ACK = 5
    STREAM_ACK = 6
    PACKET_ACK = 7
    HEARTBEAT = 8
    COMPONENT_ACK = 9


@dataclass(frozen=True, slots=True)
class ThinAlert:
    """One alert as it fits into 32 bytes; NaN and None mean unknown.

    Attributes
    ----------
    incarnation, delivery : int
        Number that the outbox gave: 12 and 24 bits, never given twice. The ground tells doubles by it.
    event : int
        The event's number modulo 65,536: the same in new, update and end.
    life, kind : str
        One of LIVES and of KINDS.
    severity : int
        0 (least) to 7.
    wall_ns : int
        UTC in ns, sent to 1/32 s; 0 where the vehicle does not know the time.
    rarity : float
        One frame in this many looks so here.
    box : (x, y, width, height) or None
        Where in the frame: centre and size as fractions of its width and height.
    latitude, longitude, depth_m, altitude_m : float
        Degrees; metres below the surface; metres above ground.
    """

    event: int
    kind: str
    wall_ns: int
    life: str = "new"
    severity: int = 0
    rarity: float = math.nan
    box: tuple[float, float, float, float] | None = None
    latitude: float = math.nan
    longitude: float = math.nan
    depth_m: float = math.nan
    altitude_m: float = math.nan
    incarnation: int = 0
    delivery: int = 0


@dataclass(frozen=True, slots=True)
class Fragment:
    """A piece of a thumbnail or other progressive object, at a byte offset of its stream."""

    stream: int  # number of the stream modulo N_STREAMS
    offset: int
    data: bytes
    is_last: bool


@dataclass(frozen=True, slots=True)
class Packet:
    """Opaque bytes that are useful alone, as the model mirror's packets are; number modulo N_PACKETS.

    `channel` (0-7) tells apart what runs beside each other: 0 the patch mixture, 1 the scene mixture.
    """

    number: int
    data: bytes
    channel: int = 0


@dataclass(frozen=True, slots=True)
class ComponentPart:
    """One stage of a mixture component's embedded code; transport/thin_component.py knows what is inside."""

    component: int  # 16 bits
    revision: int  # 4 bits: parts of different revisions do not mix
    stage: int  # 0 is the coarse one
    data: bytes


@dataclass(frozen=True, slots=True)
class AlertAck:
    """The alerts `base` (always) and `base + 1 + k` for each set bit k of `following` are in the ground's log."""

    incarnation: int
    base: int
    following: int  # 16 bits, bit 0 is base + 1


@dataclass(frozen=True, slots=True)
class StreamAck:
    """Bytes [0, upto) of a stream arrived, and [upto + k * unit, + unit) for each set bit k >= 1 of `pieces`."""

    stream: int
    upto: int
    unit: int
    pieces: int  # 16 bits
    is_complete: bool


@dataclass(frozen=True, slots=True)
class PacketAck:
    """Packet `newest` arrived, and `newest - 1 - k` for each set bit k of `earlier` (16 bits)."""

    newest: int
    earlier: int


@dataclass(frozen=True, slots=True)
class ComponentAck:
    """The stages of one component's code that arrived, bit k of `stages` (8 bits) for stage k."""

    component: int
    revision: int
    stages: int


@dataclass(frozen=True, slots=True)
class ThinHeartbeat:
    """How the agent is, when there is nothing else to say."""

    wall_ns: int
    state: str = "unknown"
    uptime_s: float = 0.0
    alerts_waiting: int = 0
    alerts_lost: int = 0
    components: int = 0
    latitude: float = math.nan
    longitude: float = math.nan
    depth_m: float = math.nan


Record = ThinAlert | Fragment | Packet | ComponentPart | AlertAck | StreamAck | PacketAck | ComponentAck | ThinHeartbeat


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

    def decode_alert(self, frame: bytes) -> ThinAlert:
        """Return the one alert of a frame, or raise DecodeError."""
        records = self.decode(frame).records
        if len(records) != 1 or not isinstance(records[0], ThinAlert):
            raise DecodeError("the frame is not one alert")
        return records[0]

    def _tag(self, head: bytes) -> bytes:
        return hashlib.blake2s(head, digest_size=TAG_BYTES, key=self._key).digest()


def encode_record(record: Record, *, rest: bool = False) -> bytes:
    """Return a record's bytes; with `rest`, fragments and packets save the length byte and must end the frame."""
    bits = BitWriter()
    data = b""
    match record:
        case ThinAlert():
            _write_alert(bits, record)
        case ThinHeartbeat():
            _write_heartbeat(bits, record)
        case Fragment(stream, offset, data, is_last):
            _write(bits, (RecordType.FRAGMENT, 4), (rest, 1), (is_last, 1), (0, 2), (stream, 11), (offset, 13))
        case Packet(number, data, channel):
            _write(bits, (RecordType.PACKET, 4), (rest, 1), (channel, 3), (0, 4), (number, 12))
        case ComponentPart(component, revision, stage, data):
            _write(bits, (RecordType.COMPONENT, 4), (rest, 1), (stage, 3), (revision, 4), (0, 4), (component, 16))
        case AlertAck(incarnation, base, following):
            _write(bits, (RecordType.ALERT_ACK, 4), (incarnation, 12), (base, 24), (following, 16))
        case StreamAck(stream, upto, unit, pieces, is_complete):
            _write(bits, (RecordType.STREAM_ACK, 4), (is_complete, 1), (0, 3), (stream, 11), (upto, 13), (unit, 8))
            bits.write(pieces, 16)
        case PacketAck(newest, earlier):
            _write(bits, (RecordType.PACKET_ACK, 4), (newest, 12), (earlier, 16))
        case ComponentAck(component, revision, stages):
            _write(bits, (RecordType.COMPONENT_ACK, 4), (revision, 4), (component, 16), (stages, 8))
        case _:
            raise EncodeError(f"{type(record).__name__} is no record of a thin link")
    if not isinstance(record, Fragment | Packet | ComponentPart):
        return bits.to_bytes()
    if not 1 <= len(data) <= MAX_DATA_BYTES:
        raise EncodeError(f"{len(data)} bytes of data in a record, 1 to {MAX_DATA_BYTES} fit")
    if not rest:
        bits.write(len(data), 8)
    return bits.to_bytes() + data


def data_overhead(record_type: RecordType, *, rest: bool) -> int:
    """Return the bytes that a fragment, packet or component part needs beside its data."""
    fixed = {RecordType.FRAGMENT: 4, RecordType.PACKET: 3, RecordType.COMPONENT: 4}[record_type]
    return fixed if rest else fixed + 1


def number_alert(stored: bytes, incarnation: int, delivery: int) -> bytes:
    """Return the record of an alert that the outbox stored without its delivery number."""
    bits = BitWriter()
    _write(bits, (RecordType.ALERT, 4), (incarnation, 12), (delivery, 24))
    return bits.to_bytes() + stored


def decode_alert_record(record: bytes) -> ThinAlert:
    """Return the alert of a record as it is kept in logs; DecodeError where it is none."""
    if len(record) != ALERT_BYTES or record[0] >> 4 != RecordType.ALERT:
        raise DecodeError(f"{len(record)} bytes are no alert record of {ALERT_BYTES}")
    alert = _decode_fixed(RecordType.ALERT, record)
    assert isinstance(alert, ThinAlert)
    return alert


def strip_alert(alert: ThinAlert) -> bytes:
    """Return what the outbox stores of an alert: its record without type and delivery number."""
    return encode_record(replace(alert, incarnation=0, delivery=0))[ALERT_NUMBER_BYTES:]


def encode_time(wall_ns: int) -> int:
    """Return UTC in ticks of 1/32 s since 2020, or 0 for times before it (a clock that was never set)."""
    ticks = (wall_ns - TIME_EPOCH_S * 1_000_000_000) // _TICK_NS
    return min(ticks, (1 << TIME_BITS) - 1) if ticks > 0 else 0


def decode_time(ticks: int) -> int:
    """Return UTC in ns, or 0 for unknown."""
    return ticks * _TICK_NS + TIME_EPOCH_S * 1_000_000_000 if ticks else 0


def _write(bits: BitWriter, *fields: tuple[int, int]) -> None:
    for value, width in fields:
        bits.write(int(value), width)


def _index(names: tuple[str, ...], name: str) -> int:
    if name not in names:
        raise EncodeError(f"{name!r} is none of {', '.join(names)}")
    return names.index(name)


def _check_position(latitude: float, longitude: float) -> None:
    if abs(latitude) > 90.0 or abs(longitude) > 180.0:
        raise EncodeError(f"position {latitude}, {longitude} is not on Earth")


def _write_alert(bits: BitWriter, alert: ThinAlert) -> None:
    _check_position(alert.latitude, alert.longitude)
    x, y, width, height = alert.box or (math.nan,) * 4
    _write(
        bits, (RecordType.ALERT, 4), (alert.incarnation, 12), (alert.delivery, 24), (alert.event % 65536, 16),
        (_index(LIVES, alert.life), 2), (_index(KINDS, alert.kind), 4), (alert.severity, 3),
        (encode_time(alert.wall_ns), TIME_BITS), (RARITY.encode(alert.rarity), RARITY.width),
        (PLACE.encode(x), PLACE.width), (PLACE.encode(y), PLACE.width),
        (SIZE.encode(width), SIZE.width), (SIZE.encode(height), SIZE.width),
        (LATITUDE.encode(alert.latitude), LATITUDE.width), (LONGITUDE.encode(alert.longitude), LONGITUDE.width),
        (DEPTH.encode(alert.depth_m), DEPTH.width), (ALTITUDE.encode(alert.altitude_m), ALTITUDE.width),
    )  # fmt: skip


def _write_heartbeat(bits: BitWriter, beat: ThinHeartbeat) -> None:
    _check_position(beat.latitude, beat.longitude)
    _write(
        bits, (RecordType.HEARTBEAT, 4), (_index(STATES, beat.state), 4), (encode_time(beat.wall_ns), TIME_BITS),
        (min(int(beat.uptime_s / 60), 65535), 16), (min(beat.alerts_waiting, 255), 8),
        (min(beat.alerts_lost, 255), 8), (min(beat.components, 1023), 10),
        (LATITUDE.encode(beat.latitude), LATITUDE.width), (LONGITUDE.encode(beat.longitude), LONGITUDE.width),
        (DEPTH.encode(beat.depth_m), DEPTH.width),
    )  # fmt: skip


_FIXED_BYTES = {
    RecordType.ALERT: ALERT_BYTES, RecordType.ALERT_ACK: 7, RecordType.STREAM_ACK: 7, RecordType.PACKET_ACK: 4,
    RecordType.COMPONENT_ACK: 4, RecordType.HEARTBEAT: 20,
}  # fmt: skip


def _decode_records(data: bytes) -> list[Record]:
    records: list[Record] = []
    position = 0
    while position < len(data):
        try:
            kind = RecordType(data[position] >> 4)
        except ValueError:
            raise DecodeError(f"record of unknown type {data[position] >> 4}") from None
        if kind in _FIXED_BYTES:
            end = position + _FIXED_BYTES[kind]
            records.append(_decode_fixed(kind, data[position:end]))
        else:
            record, end = _decode_sized(kind, data, position)
            records.append(record)
        position = end
    return records


def _decode_fixed(kind: RecordType, data: bytes) -> Record:
    bits = BitReader(data)
    bits.read(4)
    record: Record
    match kind:
        case RecordType.ALERT:
            record = _read_alert(bits)
        case RecordType.HEARTBEAT:
            record = _read_heartbeat(bits)
        case RecordType.ALERT_ACK:
            record = AlertAck(bits.read(12), bits.read(24), bits.read(16))
        case RecordType.PACKET_ACK:
            record = PacketAck(bits.read(12), bits.read(16))
        case RecordType.COMPONENT_ACK:
            revision, component = bits.read(4), bits.read(16)
            record = ComponentAck(component, revision, bits.read(8))
        case _:
            is_complete = bool(bits.read(1))
            _expect_zero(bits, 3)
            record = StreamAck(bits.read(11), bits.read(13), bits.read(8), bits.read(16), is_complete)
    bits.expect_padding()
    return record


def _decode_sized(kind: RecordType, data: bytes, position: int) -> tuple[Record, int]:
    """Return a fragment, packet or component part and where it ends."""
    fixed = data_overhead(kind, rest=True)
    bits = BitReader(data[position : position + fixed])
    bits.read(4)
    is_rest = bool(bits.read(1))
    start = position + data_overhead(kind, rest=is_rest)
    if start >= len(data):
        raise DecodeError("record without data at the end of a frame")
    end = len(data) if is_rest else start + data[start - 1]
    body = data[start:end]
    if len(body) != end - start or not 1 <= len(body) <= MAX_DATA_BYTES:
        raise DecodeError(f"record of {end - start} bytes in a frame with {len(body)} left, limit {MAX_DATA_BYTES}")
    record: Record
    if kind is RecordType.FRAGMENT:
        is_last = bool(bits.read(1))
        _expect_zero(bits, 2)
        record = Fragment(bits.read(11), bits.read(13), body, is_last)
        if record.offset + len(body) > MAX_STREAM_BYTES:
            raise DecodeError(f"fragment ends at {record.offset + len(body)}, streams at {MAX_STREAM_BYTES} bytes")
    elif kind is RecordType.PACKET:
        channel = bits.read(3)
        _expect_zero(bits, 4)
        record = Packet(bits.read(12), body, channel)
    else:
        stage, revision = bits.read(3), bits.read(4)
        _expect_zero(bits, 4)
        record = ComponentPart(bits.read(16), revision, stage, body)
    return record, end


def _expect_zero(bits: BitReader, width: int) -> None:
    if bits.read(width):
        raise DecodeError("reserved bits are set: a later version's record")


def _read_alert(bits: BitReader) -> ThinAlert:
    incarnation, delivery, event = bits.read(12), bits.read(24), bits.read(16)
    life, kind, severity = LIVES[bits.read(2)], KINDS[bits.read(4)], bits.read(3)
    wall_ns = decode_time(bits.read(TIME_BITS))
    rarity = RARITY.decode(bits.read(RARITY.width))
    x, y = PLACE.decode(bits.read(PLACE.width)), PLACE.decode(bits.read(PLACE.width))
    box = (x, y, SIZE.decode(bits.read(SIZE.width)), SIZE.decode(bits.read(SIZE.width)))
    return ThinAlert(
        event, kind, wall_ns, life, severity, rarity,
        None if any(math.isnan(value) for value in box) else box,
        LATITUDE.decode(bits.read(LATITUDE.width)), LONGITUDE.decode(bits.read(LONGITUDE.width)),
        DEPTH.decode(bits.read(DEPTH.width)), ALTITUDE.decode(bits.read(ALTITUDE.width)),
        incarnation, delivery,
    )  # fmt: skip


def _read_heartbeat(bits: BitReader) -> ThinHeartbeat:
    state, wall_ns = STATES[bits.read(4)], decode_time(bits.read(TIME_BITS))
    uptime_s, waiting, lost, components = bits.read(16) * 60.0, bits.read(8), bits.read(8), bits.read(10)
    return ThinHeartbeat(
        wall_ns, state, uptime_s, waiting, lost, components,
        LATITUDE.decode(bits.read(LATITUDE.width)), LONGITUDE.decode(bits.read(LONGITUDE.width)),
        DEPTH.decode(bits.read(DEPTH.width)),
    )  # fmt: skip
