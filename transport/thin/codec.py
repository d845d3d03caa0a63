"""The bit-packed wire of thin links: a 6-byte envelope and records, the alert in 32 bytes all in.

Called by transport/thin/link.py (both ends) and tools. It keeps no state: what a frame means never depends on
another frame or on the model.

A frame is: version 3 bits, direction 1, spare 4 (zero); agent number 8; records; 4-byte tag. The tag is BLAKE2s over
all before it, keyed with the link's key where there is one: checksum and authentication in the same four bytes
(RFC 7693). Records begin with a 4-bit type and end on a byte; types and widths are the constants below.
"""

import hashlib
import math
from dataclasses import dataclass, replace

from stillwatch.transport.thin.layout import (
    ALTITUDE,
    DEPTH,
    KINDS,
    LATITUDE,
    LIVES,
    LONGITUDE,
    PLACE,
    RARITY,
    SIZE,
    SIZED,
    STATES,
    TIME_BITS,
    TIME_EPOCH_S,
    RecordType,
    pack,
    record_bytes,
    unpack,
)
from stillwatch.transport.wire import DecodeError, EncodeError, EventKind

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
NO_REQUEST = 15

_TICK_NS = 1_000_000_000 // 32


@dataclass(frozen=True, slots=True)
class ThinAlert:
    """One alert as it fits into 32 bytes; NaN and None mean unknown.

    Attributes
    ----------
    incarnation, delivery : int
        Number that the outbox gave: 12 and 24 bits, never given twice. The ground tells doubles by it.
    event : int
        The event's number modulo 65,536: the same in new, update and end.
    kind : EventKind
        OTHER where the number is of a later version.
    life : str
        One of LIVES.
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
    kind: EventKind
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

    `channel` (0-7) tells apart what runs beside each other: for models their number in MODELS. `answers` is 0
    while nothing of the channel was acknowledged, then NO_REQUEST, or the last ModelRequest that was followed.
    """

    number: int
    data: bytes
    channel: int = 0
    answers: int = 0


@dataclass(frozen=True, slots=True)
class ComponentPart:
    """One stage of a mixture component's embedded code; transport/thin/component.py knows what is inside."""

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
class ModelRequest:
    """The ground has no copy of a channel's model: it is to be sent from nothing. `request` is 1 to 14."""

    channel: int
    request: int


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


Record = (
    ThinAlert | Fragment | Packet | ComponentPart | AlertAck | StreamAck | PacketAck | ComponentAck | ModelRequest
    | ThinHeartbeat
)  # fmt: skip


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
    """Return a record's bytes; with `rest`, those with data save the length byte and must end the frame."""
    match record:
        case ThinAlert():
            return _pack_alert(record)
        case ThinHeartbeat():
            return _pack_heartbeat(record)
        case AlertAck(incarnation, base, following):
            return pack(RecordType.ALERT_ACK, (incarnation, base, following))
        case StreamAck(stream, upto, unit, pieces, is_complete):
            return pack(RecordType.STREAM_ACK, (is_complete, stream, upto, unit, pieces))
        case PacketAck(newest, earlier):
            return pack(RecordType.PACKET_ACK, (newest, earlier))
        case ComponentAck(component, revision, stages):
            return pack(RecordType.COMPONENT_ACK, (revision, component, stages))
        case ModelRequest(channel, request):
            return pack(RecordType.MODEL_REQUEST, (channel, request))
        case Fragment(stream, offset, data, is_last):
            head = pack(RecordType.FRAGMENT, (rest, is_last, stream, offset))
        case Packet(number, data, channel, answers):
            head = pack(RecordType.PACKET, (rest, channel, answers, number))
        case ComponentPart(component, revision, stage, data):
            head = pack(RecordType.COMPONENT, (rest, stage, revision, component))
        case _:
            raise EncodeError(f"{type(record).__name__} is no record of a thin link")
    if not 1 <= len(data) <= MAX_DATA_BYTES:
        raise EncodeError(f"{len(data)} bytes of data in a record, 1 to {MAX_DATA_BYTES} fit")
    return head + (b"" if rest else bytes([len(data)])) + data


def data_overhead(kind: RecordType, *, rest: bool) -> int:
    """Return the bytes that a fragment, packet or component part needs beside its data."""
    return record_bytes(kind) + (not rest)


def number_alert(stored: bytes, incarnation: int, delivery: int) -> bytes:
    """Return the record of an alert that the outbox stored without its delivery number."""
    head = RecordType.ALERT << 36 | incarnation << 24 | delivery
    return head.to_bytes(ALERT_NUMBER_BYTES, "big") + stored


def decode_alert_record(record: bytes) -> ThinAlert:
    """Return the alert of a record as it is kept in logs; DecodeError where it is none."""
    if len(record) != ALERT_BYTES or record[0] >> 4 != RecordType.ALERT:
        raise DecodeError(f"{len(record)} bytes are no alert record of {ALERT_BYTES}")
    return _unpack_alert(record)


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


def _index(names: tuple[str, ...], name: str) -> int:
    if name not in names:
        raise EncodeError(f"{name!r} is none of {', '.join(names)}")
    return names.index(name)


def _check_position(latitude: float, longitude: float) -> None:
    if abs(latitude) > 90.0 or abs(longitude) > 180.0:
        raise EncodeError(f"position {latitude}, {longitude} is not on Earth")


def _pack_alert(alert: ThinAlert) -> bytes:
    _check_position(alert.latitude, alert.longitude)
    x, y, width, height = alert.box or (math.nan,) * 4
    return pack(
        RecordType.ALERT,
        (
            alert.incarnation,
            alert.delivery,
            alert.event % 65536,
            _index(LIVES, alert.life),
            _index(KINDS, alert.kind),
            alert.severity,
            encode_time(alert.wall_ns),
            RARITY.encode(alert.rarity),
            PLACE.encode(x),
            PLACE.encode(y),
            SIZE.encode(width),
            SIZE.encode(height),
            LATITUDE.encode(alert.latitude),
            LONGITUDE.encode(alert.longitude),
            DEPTH.encode(alert.depth_m),
            ALTITUDE.encode(alert.altitude_m),
        ),
    )


def _pack_heartbeat(beat: ThinHeartbeat) -> bytes:
    _check_position(beat.latitude, beat.longitude)
    return pack(
        RecordType.HEARTBEAT,
        (
            _index(STATES, beat.state),
            encode_time(beat.wall_ns),
            min(int(beat.uptime_s / 60), 65535),
            min(beat.alerts_waiting, 255),
            min(beat.alerts_lost, 255),
            min(beat.components, 1023),
            LATITUDE.encode(beat.latitude),
            LONGITUDE.encode(beat.longitude),
            DEPTH.encode(beat.depth_m),
        ),
    )


def _decode_records(data: bytes) -> list[Record]:
    records: list[Record] = []
    position = 0
    while position < len(data):
        try:
            kind = RecordType(data[position] >> 4)
        except ValueError:
            raise DecodeError(f"record of unknown type {data[position] >> 4}") from None
        if kind in SIZED:
            record, position = _decode_sized(kind, data, position)
            records.append(record)
        else:
            end = position + record_bytes(kind)
            records.append(_decode_fixed(kind, data[position:end]))
            position = end
    return records


def _decode_fixed(kind: RecordType, data: bytes) -> Record:
    match kind:
        case RecordType.ALERT:
            return _unpack_alert(data)
        case RecordType.HEARTBEAT:
            return _unpack_heartbeat(data)
        case RecordType.ALERT_ACK:
            return AlertAck(*unpack(kind, data))
        case RecordType.PACKET_ACK:
            return PacketAck(*unpack(kind, data))
        case RecordType.MODEL_REQUEST:
            return ModelRequest(*unpack(kind, data))
        case RecordType.COMPONENT_ACK:
            revision, component, stages = unpack(kind, data)
            return ComponentAck(component, revision, stages)
        case _:
            is_complete, stream, upto, unit, pieces = unpack(kind, data)
            return StreamAck(stream, upto, unit, pieces, bool(is_complete))


def _decode_sized(kind: RecordType, data: bytes, position: int) -> tuple[Record, int]:
    """Return a fragment, packet or component part and where it ends."""
    values = unpack(kind, data[position : position + record_bytes(kind)])
    is_rest = bool(values[0])
    start = position + data_overhead(kind, rest=is_rest)
    if start >= len(data):
        raise DecodeError("record without data at the end of a frame")
    end = len(data) if is_rest else start + data[start - 1]
    body = data[start:end]
    if len(body) != end - start or not 1 <= len(body) <= MAX_DATA_BYTES:
        raise DecodeError(f"record of {end - start} bytes in a frame with {len(body)} left, limit {MAX_DATA_BYTES}")
    if kind is RecordType.PACKET:
        _, channel, answers, number = values
        return Packet(number, body, channel, answers), end
    if kind is RecordType.COMPONENT:
        _, stage, revision, component = values
        return ComponentPart(component, revision, stage, body), end
    _, is_last, stream, offset = values
    if offset + len(body) > MAX_STREAM_BYTES:
        raise DecodeError(f"fragment ends at {offset + len(body)}, streams at {MAX_STREAM_BYTES} bytes")
    return Fragment(stream, offset, body, bool(is_last)), end


def _unpack_alert(data: bytes) -> ThinAlert:
    (
        incarnation,
        delivery,
        event,
        life,
        kind,
        severity,
        ticks,
        rarity,
        x,
        y,
        width,
        height,
        latitude,
        longitude,
        depth,
        altitude,
    ) = unpack(RecordType.ALERT, data)
    box = (PLACE.decode(x), PLACE.decode(y), SIZE.decode(width), SIZE.decode(height))
    return ThinAlert(
        event,
        KINDS[kind] if kind < len(KINDS) else EventKind.OTHER,
        decode_time(ticks),
        LIVES[life],
        severity,
        RARITY.decode(rarity),
        None if any(math.isnan(value) for value in box) else box,
        LATITUDE.decode(latitude),
        LONGITUDE.decode(longitude),
        DEPTH.decode(depth),
        ALTITUDE.decode(altitude),
        incarnation,
        delivery,
    )


def _unpack_heartbeat(data: bytes) -> ThinHeartbeat:
    state, ticks, minutes, waiting, lost, components, latitude, longitude, depth = unpack(RecordType.HEARTBEAT, data)
    return ThinHeartbeat(
        decode_time(ticks),
        STATES[state],
        minutes * 60.0,
        waiting,
        lost,
        components,
        LATITUDE.decode(latitude),
        LONGITUDE.decode(longitude),
        DEPTH.decode(depth),
    )
