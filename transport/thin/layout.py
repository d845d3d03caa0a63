"""The layout of every thin-link record: one table of fields with width and meaning, in the order of their bits.

Read by transport/thin/codec.py, which packs by it, and by the page for people who write the other end themselves. It
must only grow by new record types: a changed field is a new version of the frame.
"""

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from stillwatch.transport.wire import MODELS, BitReader, BitWriter, DecodeError, EventKind, Linear, Logarithmic

LATITUDE = Linear(-90.0, 90.0, 26)  # 0.3 m
LONGITUDE = Linear(-180.0, 180.0, 27)  # 0.3 m at the equator
DEPTH = Linear(-500.0, 12_607.0, 18)  # 5 cm; negative is above the surface
ALTITUDE = Linear(0.0, 25.2, 7)  # 20 cm
RARITY = Logarithmic(1.0, 2.0**31, 7)  # "one frame in N": a quarter of an octave
PLACE = Linear(0.0, 1.0, 6)  # of the frame's width or height
SIZE = Linear(0.0, 1.0, 5)
TIME_EPOCH_S = 1_577_836_800  # 2020-01-01 00:00 UTC
TIME_BITS = 36  # of 1/32 s: until 2088; 0 is unknown

KINDS = tuple(EventKind)  # numbers after the last are read as OTHER
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
    MODEL_REQUEST = 10


@dataclass(frozen=True, slots=True)
class Field:
    """One field: an unsigned integer of `width` bits. `measure` says how a number is made of it, if it is one."""

    name: str
    width: int
    meaning: str
    measure: Linear | Logarithmic | None = None


def _measured(name: str, measure: Linear | Logarithmic, meaning: str) -> Field:
    return Field(name, measure.width, meaning, measure)


RESERVED = "reserved"
_REST = Field("rest", 1, "1: the data fill the frame and no length byte stands before them")
_TIME = Field("time", TIME_BITS, "UTC in 1/32 s since 2020-01-01; 0: the vehicle does not know the time")
_POSITION = (
    _measured("latitude", LATITUDE, "degrees north"),
    _measured("longitude", LONGITUDE, "degrees east"),
    _measured("depth", DEPTH, "metres below the surface"),
)

# Each record begins with its type in 4 bits, which the table leaves out. COMPONENT, FRAGMENT and PACKET go on with a
# length byte (unless `rest` is set) and that many bytes of data.
LAYOUT: dict[RecordType, tuple[Field, ...]] = {
    RecordType.ALERT: (
        Field("incarnation", 12, "which outbox of the vehicle gave the delivery number"),
        Field("delivery", 24, "with the incarnation: identity of this alert; the same in every repeat"),
        Field("event", 16, "number of the event modulo 65,536: the same in new, update and end"),
        Field("life", 2, "0 new, 1 update, 2 end, 3 single"),
        Field("kind", 4, "see the list of kinds"),
        Field("severity", 3, "0 (least) to 7"),
        _TIME,
        _measured("rarity", RARITY, "one frame in this many looks so"),
        _measured("x", PLACE, "centre of the novelty, share of the frame's width"),
        _measured("y", PLACE, "centre, share of the height"),
        _measured("width", SIZE, "of the novelty, share of the frame's width"),
        _measured("height", SIZE, "of the novelty, share of the frame's height"),
        *_POSITION,
        _measured("altitude", ALTITUDE, "metres above ground"),
    ),
    RecordType.COMPONENT: (
        _REST,
        Field("stage", 3, "0 is coarse and says count, scale and first bits; each further one goes on"),
        Field("revision", 4, "stages of different revisions do not mix"),
        Field(RESERVED, 4, "zero"),
        Field("component", 16, "id of the component modulo 65,536"),
    ),
    RecordType.FRAGMENT: (
        _REST,
        Field("last", 1, "1: the stream ends here; its last 4 bytes are the CRC32C of those before"),
        Field(RESERVED, 2, "zero"),
        Field("stream", 11, "number of the stream, comes round"),
        Field("offset", 13, "of the data in the stream, in bytes"),
    ),
    RecordType.PACKET: (
        _REST,
        Field("channel", 3, ", ".join(f"{n}: model of {name}" for n, name in enumerate(MODELS))),
        Field("answers", 4, "0: nothing was acknowledged since the start, so nothing is missed; 15: no request yet; "
              "else the last request that was followed"),
        Field("number", 12, "of the packet, comes round"),
    ),
    RecordType.ALERT_ACK: (
        Field("incarnation", 12, "as in the alert"),
        Field("base", 24, "this delivery is in the ground's log"),
        Field("following", 16, "bit k (of value 2^k): so is delivery base + 1 + k"),
    ),
    RecordType.STREAM_ACK: (
        Field("complete", 1, "1: all of the stream arrived, and its CRC was right"),
        Field(RESERVED, 3, "zero"),
        Field("stream", 11, "as in the fragment"),
        Field("upto", 13, "all bytes before this offset arrived"),
        Field("unit", 8, "length of the fragments seen; 0: none but the last"),
        Field("pieces", 16, "bit k (of value 2^k): the fragment at upto + k unit arrived"),
    ),
    RecordType.PACKET_ACK: (
        Field("newest", 12, "this packet arrived"),
        Field("earlier", 16, "bit k (of value 2^k): so did packet newest - 1 - k"),
    ),
    RecordType.HEARTBEAT: (
        Field("state", 4, "see the list of states"),
        _TIME,
        Field("uptime", 16, "minutes; 65,535 is that or more"),
        Field("waiting", 8, "alerts not yet acknowledged; 255 is that or more"),
        Field("lost", 8, "alerts given up unsent since the outbox was made; 255 is that or more"),
        Field("components", 10, "of the patch mixture; 1023 is that or more"),
        *_POSITION,
    ),
    RecordType.COMPONENT_ACK: (
        Field("revision", 4, "as in the component"),
        Field("component", 16, "as in the component"),
        Field("stages", 8, "bit k (of value 2^k): stage k arrived"),
    ),
    RecordType.MODEL_REQUEST: (
        Field("channel", 3, "as in the packet"),
        Field(RESERVED, 1, "zero"),
        Field("request", 4, "1 to 14, another one than the packets answer: begin the model from nothing"),
    ),
}  # fmt: skip
TYPE_BITS = 4
SIZED = (RecordType.COMPONENT, RecordType.FRAGMENT, RecordType.PACKET)


def record_bytes(kind: RecordType) -> int:
    """Return the bytes of a record's fields, padded to whole bytes; data and their length byte come on top."""
    return (TYPE_BITS + sum(field.width for field in LAYOUT[kind]) + 7) // 8


def pack(kind: RecordType, values: Sequence[int]) -> bytes:
    """Return a record's fields as bytes; the values in the table's order, without the reserved ones."""
    bits = BitWriter()
    bits.write(kind, TYPE_BITS)
    given = iter(values)
    for field in LAYOUT[kind]:
        bits.write(0 if field.name == RESERVED else int(next(given)), field.width)
    return bits.to_bytes()


def unpack(kind: RecordType, data: bytes) -> list[int]:
    """Return a record's values, without the reserved ones; DecodeError where bits are missing or not zero."""
    bits = BitReader(data)
    bits.read(TYPE_BITS)
    values = []
    for field in LAYOUT[kind]:
        value = bits.read(field.width)
        if field.name != RESERVED:
            values.append(value)
        elif value:
            raise DecodeError("reserved bits are set: a later version's record")
    bits.expect_padding()
    return values
