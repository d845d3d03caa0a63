"""The records of a thin link: one row a type says its bits, its class, and how one becomes the other.

Read by transport/thin/codec.py, which knows no type, and by the page for people who write the other end themselves.
The table must only grow by new types: a changed field is a new version of the frame.
"""

import dataclasses
import enum
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from stillwatch.transport.thin.layout import (
    ALTITUDE,
    DEPTH,
    KINDS,
    LATITUDE,
    LIVES,
    LONGITUDE,
    PLACE,
    RARITY,
    RESERVED,
    SIZE,
    STATES,
    TIME_BITS,
    Field,
    decode_time,
    encode_time,
    measured,
    n_bytes,
)
from stillwatch.transport.wire import MODELS, DecodeError, EncodeError, EventKind

MAX_STREAM_BYTES = (1 << 13) - 1


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
    MODEL_REQUEST = 10
    CLUMPS_REQUEST = 11


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
class ClumpsRequest:
    """The ground wants the newest clumps of a channel's model, as a stream of fragments. `request` is 1 to 15."""

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
    | ClumpsRequest | ThinHeartbeat
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """One type of record.

    Attributes
    ----------
    fields : tuple of Field
        After the 4 bits of the type. Records that begin with `REST` have data: a length byte (unless that bit is set)
        and that many bytes follow.
    record : type
        Its class.
    values_of : callable
        From a record to the numbers of its fields, without REST and the reserved ones.
    record_of : callable
        Back, from these numbers and the data (empty where the type has none).
    """

    fields: tuple[Field, ...]
    record: type[Record]
    values_of: Callable[[Any], Sequence[int]]
    record_of: Callable[[Sequence[int], bytes], Record]

    @property
    def has_data(self) -> bool:
        return self.fields[0] is REST

    @property
    def n_bytes(self) -> int:
        """Bytes of the fields with the type, padded; data and their length byte come on top."""
        return n_bytes(self.fields)


def plain(record: type[Record], fields: tuple[Field, ...], attributes: str) -> Row:
    """Return the row of a record whose attributes, in the fields' order, are the numbers; one bit is a bool.

    Raises ValueError where the attributes are not those of the class, or not as many as there are fields.
    """
    names = attributes.split()
    has_data = fields[0] is REST
    numbers = [field for field in fields if field.name != RESERVED and field is not REST]
    own = {field.name for field in dataclasses.fields(record)} - ({"data"} if has_data else set())
    if set(names) != own or len(names) != len(numbers):
        raise ValueError(f"{record.__name__} has {sorted(own)}; {len(numbers)} fields are filled from {names}")

    def values_of(item: Record) -> list[int]:
        return [getattr(item, name) for name in names]

    def record_of(values: Sequence[int], data: bytes) -> Record:
        known: dict[str, Any] = {
            name: bool(value) if field.width == 1 else value
            for name, field, value in zip(names, numbers, values, strict=True)
        }
        if has_data:
            known["data"] = data
        return record(**known)

    return Row(fields, record, values_of, record_of)


def table(rows: dict[RecordType, Row]) -> dict[RecordType, Row]:
    """Return the rows; ValueError where a type has none, or two have one class and would be read as each other."""
    missing = [kind.name for kind in RecordType if kind not in rows]
    classes = [row.record for row in rows.values()]
    if missing or len(set(classes)) != len(classes):
        raise ValueError(f"record types without a row: {missing}; classes: {[c.__name__ for c in classes]}")
    return rows


def _index(names: tuple[str, ...], name: str) -> int:
    if name not in names:
        raise EncodeError(f"{name!r} is none of {', '.join(names)}")
    return names.index(name)


def _check_position(latitude: float, longitude: float) -> None:
    if abs(latitude) > 90.0 or abs(longitude) > 180.0:
        raise EncodeError(f"position {latitude}, {longitude} is not on Earth")


def _alert_values(alert: ThinAlert) -> Sequence[int]:
    _check_position(alert.latitude, alert.longitude)
    x, y, width, height = alert.box or (math.nan,) * 4
    return (
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
    )


def _heartbeat_values(beat: ThinHeartbeat) -> Sequence[int]:
    _check_position(beat.latitude, beat.longitude)
    return (
        _index(STATES, beat.state),
        encode_time(beat.wall_ns),
        min(int(beat.uptime_s / 60), 65535),
        min(beat.alerts_waiting, 255),
        min(beat.alerts_lost, 255),
        min(beat.components, 1023),
        LATITUDE.encode(beat.latitude),
        LONGITUDE.encode(beat.longitude),
        DEPTH.encode(beat.depth_m),
    )


def _alert_of(values: Sequence[int], _data: bytes) -> ThinAlert:
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
    ) = values
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


def _heartbeat_of(values: Sequence[int], _data: bytes) -> ThinHeartbeat:
    state, ticks, minutes, waiting, lost, components, latitude, longitude, depth = values
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


def _fragment_of(values: Sequence[int], data: bytes) -> Fragment:
    is_last, stream, offset = values
    if offset + len(data) > MAX_STREAM_BYTES:
        raise DecodeError(f"fragment ends at {offset + len(data)}, streams at {MAX_STREAM_BYTES} bytes")
    return Fragment(stream, offset, data, bool(is_last))


REST = Field("rest", 1, "1: the data fill the frame and no length byte stands before them")
_TIME = Field("time", TIME_BITS, "UTC in 1/32 s since 2020-01-01; 0: the vehicle does not know the time")
_POSITION = (
    measured("latitude", LATITUDE, "degrees north"),
    measured("longitude", LONGITUDE, "degrees east"),
    measured("depth", DEPTH, "metres below the surface"),
)

RECORDS = table({
    RecordType.ALERT: Row((
        Field("incarnation", 12, "which outbox of the vehicle gave the delivery number"),
        Field("delivery", 24, "with the incarnation: identity of this alert; the same in every repeat"),
        Field("event", 16, "number of the event modulo 65,536: the same in new, update and end"),
        Field("life", 2, "0 new, 1 update, 2 end, 3 single"),
        Field("kind", 4, "see the list of kinds"),
        Field("severity", 3, "0 (least) to 7"),
        _TIME,
        measured("rarity", RARITY, "one frame in this many looks so"),
        measured("x", PLACE, "centre of the novelty, share of the frame's width"),
        measured("y", PLACE, "centre, share of the height"),
        measured("width", SIZE, "of the novelty, share of the frame's width"),
        measured("height", SIZE, "of the novelty, share of the frame's height"),
        *_POSITION,
        measured("altitude", ALTITUDE, "metres above ground"),
    ), ThinAlert, _alert_values, _alert_of),
    RecordType.COMPONENT: plain(ComponentPart, (
        REST,
        Field("stage", 3, "0 is coarse and says count, scale and first bits; each further one goes on"),
        Field("revision", 4, "stages of different revisions do not mix"),
        Field(RESERVED, 4, "zero"),
        Field("component", 16, "id of the component modulo 65,536"),
    ), "stage revision component"),
    RecordType.FRAGMENT: Row((
        REST,
        Field("last", 1, "1: the stream ends here; its last 4 bytes are the CRC32C of those before"),
        Field(RESERVED, 2, "zero"),
        Field("stream", 11, "number of the stream, comes round"),
        Field("offset", 13, "of the data in the stream, in bytes"),
    ), Fragment, lambda piece: (piece.is_last, piece.stream, piece.offset), _fragment_of),
    RecordType.PACKET: plain(Packet, (
        REST,
        Field("channel", 3, ", ".join(f"{n}: model of {name}" for n, name in enumerate(MODELS))),
        Field("answers", 4, "0: nothing was acknowledged since the start, so nothing is missed; 15: no request yet; "
              "else the last request that was followed"),
        Field("number", 12, "of the packet, comes round"),
    ), "channel answers number"),
    RecordType.ALERT_ACK: plain(AlertAck, (
        Field("incarnation", 12, "as in the alert"),
        Field("base", 24, "this delivery is in the ground's log"),
        Field("following", 16, "bit k (of value 2^k): so is delivery base + 1 + k"),
    ), "incarnation base following"),
    RecordType.STREAM_ACK: plain(StreamAck, (
        Field("complete", 1, "1: all of the stream arrived, and its CRC was right"),
        Field(RESERVED, 3, "zero"),
        Field("stream", 11, "as in the fragment"),
        Field("upto", 13, "all bytes before this offset arrived"),
        Field("unit", 8, "length of the fragments seen; 0: none but the last"),
        Field("pieces", 16, "bit k (of value 2^k): the fragment at upto + k unit arrived"),
    ), "is_complete stream upto unit pieces"),
    RecordType.PACKET_ACK: plain(PacketAck, (
        Field("newest", 12, "this packet arrived"),
        Field("earlier", 16, "bit k (of value 2^k): so did packet newest - 1 - k"),
    ), "newest earlier"),
    RecordType.HEARTBEAT: Row((
        Field("state", 4, "see the list of states"),
        _TIME,
        Field("uptime", 16, "minutes; 65,535 is that or more"),
        Field("waiting", 8, "alerts not yet acknowledged; 255 is that or more"),
        Field("lost", 8, "alerts given up unsent since the outbox was made; 255 is that or more"),
        Field("components", 10, "of the patch mixture; 1023 is that or more"),
        *_POSITION,
    ), ThinHeartbeat, _heartbeat_values, _heartbeat_of),
    RecordType.COMPONENT_ACK: plain(ComponentAck, (
        Field("revision", 4, "as in the component"),
        Field("component", 16, "as in the component"),
        Field("stages", 8, "bit k (of value 2^k): stage k arrived"),
    ), "revision component stages"),
    RecordType.MODEL_REQUEST: plain(ModelRequest, (
        Field("channel", 3, "as in the packet"),
        Field(RESERVED, 1, "zero"),
        Field("request", 4, "1 to 14, another one than the packets answer: begin the model from nothing"),
    ), "channel request"),
    RecordType.CLUMPS_REQUEST: plain(ClumpsRequest, (
        Field("channel", 3, "as in the packet"),
        Field(RESERVED, 1, "zero"),
        Field("request", 4, "1 to 15: repeats of one request have one number"),
    ), "channel request"),
})  # fmt: skip
TYPES = {row.record: kind for kind, row in RECORDS.items()}
