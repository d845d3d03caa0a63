"""Messages to bytes and back: what passes, what is refused, and that nothing else can happen."""

import msgpack
import msgspec
import numpy as np
import pytest
from wire_decoder import decode as independent_decode
from wire_examples import HEADER, examples, filled

from stillwatch.transport.wire import messages as m
from stillwatch.transport.wire.codec import decode, encode
from stillwatch.transport.wire.compact import compact
from stillwatch.transport.wire.errors import DecodeError, EncodeError, SchemaError
from stillwatch.transport.wire.topics import MAX_PAYLOAD_BYTES, TOPICS

KINDS = sorted(examples())


def plain(value):
    """Return structs as dicts and arrays as lists, for comparison."""
    if hasattr(value, "__struct_fields__"):
        return {name: plain(getattr(value, name)) for name in value.__struct_fields__}
    return value.tolist() if isinstance(value, np.ndarray) else value


def fields_of(kind: str) -> dict:
    return independent_decode(encode(examples()[kind]))


def packed(fields: dict) -> bytes:
    return msgpack.packb(fields)


def score(**changes) -> bytes:
    return packed({**fields_of("score"), **changes})


def test_every_topic_has_an_example():
    assert set(KINDS) == set(TOPICS)


@pytest.mark.parametrize("kind", KINDS)
def test_message_comes_back_as_it_was(kind):
    message = examples()[kind]
    again = decode(encode(message))
    assert type(again) is type(message)
    assert plain(again) == plain(message)


@pytest.mark.parametrize("kind", KINDS)
def test_decoder_that_knows_only_the_page_reads_the_same(kind):
    message = examples()[kind]
    read, said = independent_decode(encode(message)), {"kind": kind, **plain(message)}
    assert read == {name: said[name] for name in read}
    fields = msgspec.structs.fields(type(message))
    defaults = {f.name: f.default if f.default_factory is msgspec.NODEFAULT else f.default_factory() for f in fields}
    assert {name: said[name] for name in said if name not in read} == {
        name: defaults[name] for name in said if name not in read
    }


def test_a_field_with_its_default_takes_no_bytes():
    assert "source_ns" not in independent_decode(encode(m.Score(**{**HEADER, "source_ns": None})))


def test_message_of_the_schema_before_is_read():
    assert decode(score(schema=1)).value == 3.5


def test_compact_payload_takes_no_more_memory_than_its_limit():
    bomb = compact(bytes(50_000_000))
    assert len(bomb) < 100_000
    with pytest.raises(DecodeError, match="longer than"):
        decode(bomb)


@pytest.mark.parametrize("damage", [lambda p: p[:-1], lambda p: p + b"x", lambda p: p[:1] + b"\xff" * 20])
def test_damaged_compact_payload_is_refused(damage):
    with pytest.raises(DecodeError, match="compact payload"):
        decode(damage(encode(examples()["status"])))


def test_arrays_are_read_only_copies():
    boxes = decode(encode(examples()["alert"])).boxes
    with pytest.raises(ValueError, match="read-only"):
        boxes[0] = 1.0


def test_numpy_scalars_leave_as_numbers():
    message = m.Score(**{**HEADER, "frame": np.int64(5)}, value=np.float32(1.5), accepted=np.bool_(True))
    again = decode(encode(message))
    assert (again.frame, again.value, again.accepted) == (5, 1.5, True)


@pytest.mark.parametrize(
    ("kind", "changes", "words"),
    [
        ("score", {"value": float("nan")}, "not finite"),
        ("score", {"rarity": float("inf")}, "not finite"),
        ("score", {"rarity": -1.0}, "rarity"),
        ("score", {"frame": -2}, "frame"),
        ("score", {"agent": "Cam 1"}, "agent"),
        ("score", {"sequence": 2**63}, "sequence"),
        ("alert", {"phase": "later"}, "phase"),
        ("alert", {"boxes": np.zeros((2, 3), np.float32)}, "size 3 is not 4"),
        ("alert", {"boxes": np.zeros((2, 4), np.float64)}, "dtype float64"),
        ("alert", {"history": np.array([np.nan], np.float32)}, "not finite"),
        ("alert", {"thumbnail": bytes(12_001)}, "thumbnail"),
        ("alert", {"nav": m.Position(latitude=91.0)}, "latitude"),
        ("model", {"means": np.zeros((3, 3), np.float32)}, "size 3 differs from the 2"),
        ("model", {"means": np.zeros(6, np.float32)}, "1 dimensions, not 2"),
        ("exemplar", {"removed": np.array(["a"])}, "dtype"),
        ("status", {"refused": {"x" * 65: 1}}, "refused"),
        ("log", {"text": "x" * 257}, "text"),
    ],
)
def test_message_that_breaks_its_schema_is_not_sent(kind, changes, words):
    fields = {name: getattr(examples()[kind], name) for name in examples()[kind].__struct_fields__}
    message = TOPICS[kind].message(**{**fields, **changes})
    with pytest.raises(EncodeError, match=words):
        encode(message)


def test_message_longer_than_its_topic_allows_is_not_sent():
    message = m.Alert(**HEADER, id=1, phase="new", thumbnail=bytes(12_000), history=np.zeros(3000, np.float32))
    with pytest.raises(EncodeError, match=f"longer than {TOPICS['alert'].max_bytes}"):
        encode(message)


def test_unknown_fields_are_ignored():
    assert decode(score(colour="red", nested={"deep": [1, {"er": 2}]})).value == 3.5


def test_unknown_extension_in_an_unknown_field_is_ignored():
    assert decode(score(later=msgpack.ExtType(77, b"x"))).value == 3.5


def test_missing_optional_fields_have_their_defaults():
    fields = fields_of("score")
    for name in ("rarity", "frame", "valid", "source_ns", "reason"):
        fields.pop(name, None)
    message = decode(packed(fields))
    assert (message.rarity, message.frame, message.valid, message.source_ns) == (None, -1, True, None)


@pytest.mark.parametrize("schema", [3, 99, 65_535, 10**12])
def test_unknown_major_schema_is_told_apart_from_damage(schema):
    with pytest.raises(SchemaError, match=f"schema {schema} is unknown"):
        decode(score(schema=schema))


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        (b"", "not a message"),
        (b"\x80", "no integer schema"),
        (b"\x90", "list, not a map"),
        (b"\xc0", "NoneType, not a map"),
        (b"\xc1", "compact payload has no end"),
        (score()[:-1], "not a message"),
        (score() + b"\x00", "not a message"),
        (score(schema="1"), "no integer schema"),
        (score(schema=True), "no integer schema"),
        (score(kind="gossip"), "kind gossip is unknown"),
        (score(kind=["a"]), "is unknown"),
        (score(kind="\x1b[2J"), r"x1b\[2J is unknown"),
        (score(frame="7"), "frame"),
        (score(value=b"7"), "value"),
        (score(value=float("nan")), "not finite"),
        (score(padding="x" * 1024), "longer than 1024"),
        (b"\x82\xa6schema\x01\xa6schema\x01", "same key twice"),
        (b"\x81\x01\x01", "not a message"),
        (b"\xdf\xff\xff\xff\xff", "not a message"),
        (b"\xdd\xff\xff\xff\xff", "not a message"),
        (b"\xc6\xff\xff\xff\xff", "not a message"),
        (b"\x91" * 3000, "not a message"),
        (b"\x81\xa1a\xa2\xff\xfe", "not a message"),
        (b"\x81\xa1a\xd9\xffx", "not a message"),
        (bytes(MAX_PAYLOAD_BYTES + 1), "longer than"),
    ],
)
def test_bytes_that_are_no_message_raise_a_decode_error_and_nothing_else(payload, words):
    with pytest.raises(DecodeError, match=words) as caught:
        decode(payload)
    assert len(str(caught.value)) < 300
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "no header"),
        (bytes([12, 1]) + bytes(4), "dtype code 12"),
        (bytes([10, 5]) + bytes(20), "5 dimensions"),
        (bytes([10, 2, 1, 0, 0]), "header of 2 dimensions"),
        (bytes([10, 1, 2, 0, 0, 0]) + bytes(7), "needs 8 bytes, got 7"),
        (bytes([10, 2]) + b"\xff" * 8, "needs"),
        (bytes([1, 3]) + b"\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00", "array of shape"),
    ],
)
def test_damaged_array_raises_a_decode_error(data, words):
    with pytest.raises(DecodeError, match=words):
        decode(packed({**fields_of("alert"), "boxes": msgpack.ExtType(1, data)}))


def test_sequences_count_each_kind_apart():
    headers = m.Headers("cam1", "r", "b", 1)
    times = {"t_ns": 0, "mono_ns": 0, "wall_ns": 0}
    made = [headers.next(kind, **times)["sequence"] for kind in (m.Score, m.Score, m.Status, m.Score)]
    assert made == [0, 1, 0, 2]
    assert headers.sequences() == {"score": 3, "status": 1}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), np.float32("-inf")])
def test_what_is_not_finite_becomes_null(value):
    assert m.finite_or_none(value) is None
    assert m.finite_or_none(np.float32(1.5)) == 1.5


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "scores"])  # whose lists must agree with its flags
def test_a_message_can_be_filled_from_its_types_alone(kind):
    message = filled(TOPICS[kind].message)
    assert [name for name in message.__struct_fields__ if getattr(message, name) is None] == []
    assert plain(decode(encode(message))) == plain(message)
