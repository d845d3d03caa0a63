"""Fields of thin-link records: what a bit field is, how a measure becomes a number, and packing in the order of bits.

Read by transport/thin/records.py, whose rows are made of these fields. It must not know any record.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from stillwatch.transport.wire import BitReader, BitWriter, DecodeError, EventKind, Linear, Logarithmic

LATITUDE = Linear(-90.0, 90.0, 26)  # 0.3 m
LONGITUDE = Linear(-180.0, 180.0, 27)  # 0.3 m at the equator
DEPTH = Linear(-500.0, 12_607.0, 18)  # 5 cm; negative is above the surface
ALTITUDE = Linear(0.0, 25.2, 7)  # 20 cm
RARITY = Logarithmic(1.0, 2.0**31, 7)  # "one frame in N": a quarter of an octave
PLACE = Linear(0.0, 1.0, 6)  # of the frame's width or height
SIZE = Linear(0.0, 1.0, 5)
TIME_EPOCH_S = 1_577_836_800  # 2020-01-01 00:00 UTC
TYPE_BITS = 4  # of every record, before its fields
TIME_BITS = 36  # of 1/32 s: until 2088; 0 is unknown
_TICK_NS = 1_000_000_000 // 32

RESERVED = "reserved"  # the name of bits that are zero
KINDS = tuple(EventKind)  # numbers after the last are read as OTHER
LIVES = ("new", "update", "end", "single")
STATES = (
    "connecting", "live", "stalled", "frozen", "dark", "overexposed", "obstructed", "failed",
    "ended", "learning", "degraded", "reserved_11", "reserved_12", "reserved_13", "reserved_14", "unknown",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Field:
    """One field: an unsigned integer of `width` bits. `measure` says how a number is made of it, if it is one."""

    name: str
    width: int
    meaning: str
    measure: Linear | Logarithmic | None = None


def measured(name: str, measure: Linear | Logarithmic, meaning: str) -> Field:
    return Field(name, measure.width, meaning, measure)


def n_bytes(fields: Sequence[Field]) -> int:
    """Return the bytes of a type and these fields, padded to whole bytes."""
    return (TYPE_BITS + sum(field.width for field in fields) + 7) // 8


def pack(kind: int, fields: Sequence[Field], values: Sequence[int]) -> bytes:
    """Return a record's type and fields as bytes; the values in the fields' order, without the reserved ones."""
    bits = BitWriter()
    bits.write(kind, TYPE_BITS)
    given = iter(values)
    for field in fields:
        bits.write(0 if field.name == RESERVED else int(next(given)), field.width)
    return bits.to_bytes()


def unpack(fields: Sequence[Field], data: bytes) -> list[int]:
    """Return a record's values, without the reserved ones; DecodeError where bits are missing or not zero."""
    bits = BitReader(data)
    bits.read(TYPE_BITS)
    values = []
    for field in fields:
        value = bits.read(field.width)
        if field.name != RESERVED:
            values.append(value)
        elif value:
            raise DecodeError("reserved bits are set: a later version's record")
    bits.expect_padding()
    return values


def encode_time(wall_ns: int) -> int:
    """Return UTC in ticks of 1/32 s since 2020, or 0 for times before it (a clock that was never set)."""
    ticks = (wall_ns - TIME_EPOCH_S * 1_000_000_000) // _TICK_NS
    return min(ticks, (1 << TIME_BITS) - 1) if ticks > 0 else 0


def decode_time(ticks: int) -> int:
    """Return UTC in ns, or 0 for unknown."""
    return ticks * _TICK_NS + TIME_EPOCH_S * 1_000_000_000 if ticks else 0
