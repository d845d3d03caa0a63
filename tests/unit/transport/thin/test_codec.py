"""The thin wire: an alert in 32 bytes all in, every record there and back, damage and strangers refused."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from thin_records import alert_of

from stillwatch.transport.thin import codec as thin
from stillwatch.transport.thin import layout as thin_layout
from stillwatch.transport.thin.codec import ThinCodec, encode_record
from stillwatch.transport.thin.records import (
    AlertAck,
    ComponentAck,
    ComponentPart,
    Fragment,
    ModelRequest,
    Packet,
    PacketAck,
    RecordType,
    StreamAck,
    ThinAlert,
    ThinHeartbeat,
)
from stillwatch.transport.wire.errors import DecodeError, EncodeError

CODEC = ThinCodec(200, b"key")
ALERT = ThinAlert(
    event=4711, kind="returned", wall_ns=1_795_824_000_500_000_000, life="update", severity=5, rarity=1000.0,
    box=(0.25, 0.75, 0.1, 0.2), latitude=41.5246, longitude=-70.6709, depth_m=123.4, altitude_m=2.5,
    incarnation=1234, delivery=56789,
)  # fmt: skip
# Written by schema 1. A change here is a new version, not a new constant.
GOLDEN_ALERT = "20c814d200ddd512674e8cfe388082942e19aec3a944dbec14185a0d793d615f"
DATA = st.binary(min_size=1, max_size=255)
WHOLE = st.floats(-1e9, 1e9) | st.just(math.nan)
FRACTION = st.floats(0, 1)
ALERTS = st.builds(
    ThinAlert,
    event=st.integers(0, 65535), kind=st.sampled_from(thin_layout.KINDS), life=st.sampled_from(thin_layout.LIVES),
    wall_ns=st.integers(0, 2**61), severity=st.integers(0, 7), rarity=st.floats(allow_infinity=True),
    box=st.none() | st.tuples(FRACTION, FRACTION, FRACTION, FRACTION),
    latitude=st.floats(-90, 90) | st.just(math.nan), longitude=st.floats(-180, 180) | st.just(math.nan),
    depth_m=WHOLE, altitude_m=WHOLE, incarnation=st.integers(0, 4095), delivery=st.integers(0, 2**24 - 1),
)  # fmt: skip
EXACT = st.one_of(
    st.builds(Packet, st.integers(0, 4095), DATA, st.integers(0, 7), st.integers(0, 15)),
    st.builds(ComponentPart, st.integers(0, 65535), st.integers(0, 15), st.integers(0, 7), DATA),
    st.builds(Fragment, st.integers(0, 2047), st.integers(0, 7936), DATA, st.booleans()),
    st.builds(AlertAck, st.integers(0, 4095), st.integers(0, 2**24 - 1), st.integers(0, 65535)),
    st.builds(StreamAck, st.integers(0, 2047), st.integers(0, 8191), st.integers(0, 255), st.integers(0, 65535),
              st.booleans()),
    st.builds(PacketAck, st.integers(0, 4095), st.integers(0, 65535)),
    st.builds(ModelRequest, st.integers(0, 7), st.integers(0, 15)),
    st.builds(ComponentAck, st.integers(0, 65535), st.integers(0, 15), st.integers(0, 255)),
)  # fmt: skip


def test_an_alert_with_everything_is_32_bytes_on_the_wire():
    assert len(CODEC.encode_alert(ALERT)) == 32


def test_the_golden_alert_is_written_the_same():
    assert CODEC.encode_alert(ALERT).hex() == GOLDEN_ALERT


def test_the_golden_alert_is_read_within_its_stated_steps():
    alert = alert_of(CODEC, bytes.fromhex(GOLDEN_ALERT))
    assert (alert.event, alert.kind, alert.life, alert.severity) == (4711, "returned", "update", 5)
    assert (alert.incarnation, alert.delivery) == (1234, 56789)
    assert alert.wall_ns == ALERT.wall_ns
    assert alert.latitude == pytest.approx(41.5246, abs=2e-6)
    assert alert.longitude == pytest.approx(-70.6709, abs=2e-6)
    assert alert.depth_m == pytest.approx(123.4, abs=0.026)
    assert alert.altitude_m == pytest.approx(2.5, abs=0.11)
    assert alert.rarity == pytest.approx(1000.0, rel=0.09)
    assert alert.box == pytest.approx((0.25, 0.75, 0.1, 0.2), abs=1 / 58)


@given(ALERTS)
def test_any_alert_fits_and_comes_back_the_same_once_quantised(alert):
    frame = CODEC.encode_alert(alert)
    assert len(frame) == 32
    once = alert_of(CODEC, frame)
    assert CODEC.encode_alert(once) == frame
    assert (once.event, once.kind, once.life, once.severity) == (alert.event, alert.kind, alert.life, alert.severity)


def test_unknown_time_place_and_rarity_stay_unknown():
    alert = alert_of(CODEC, CODEC.encode_alert(ThinAlert(1, "novel", wall_ns=0)))
    assert alert.wall_ns == 0
    assert alert.box is None
    for value in (alert.rarity, alert.latitude, alert.longitude, alert.depth_m, alert.altitude_m):
        assert math.isnan(value)


@pytest.mark.parametrize(
    "change",
    [{"kind": "nonsense"}, {"life": "old"}, {"severity": 8}, {"latitude": 91.0}, {"longitude": -181.0},
     {"delivery": 2**24}, {"incarnation": 4096}],
)  # fmt: skip
def test_an_alert_that_cannot_be_said_is_refused(change):
    fields = {"event": 1, "kind": "novel", "wall_ns": 0} | change
    with pytest.raises(EncodeError):
        CODEC.encode_alert(ThinAlert(**fields))


@given(st.lists(EXACT, min_size=1, max_size=6), st.booleans())
def test_records_share_a_frame_and_come_back(records, from_ground):
    frame = CODEC.frame([encode_record(record) for record in records], from_ground=from_ground)
    heard = CODEC.decode(frame)
    assert heard.records == tuple(records)
    assert (heard.agent, heard.from_ground) == (200, from_ground)


@given(EXACT, EXACT)
def test_the_last_record_may_save_its_length(first, last):
    frame = CODEC.frame([encode_record(first), encode_record(last, rest=True)])
    assert CODEC.decode(frame).records == (first, last)


def test_overheads_are_as_stated():
    packet, fragment = Packet(1, b"abc"), Fragment(1, 0, b"abc", True)
    part = ComponentPart(1, 0, 0, b"abc")
    for record, kind in ((packet, RecordType.PACKET), (fragment, RecordType.FRAGMENT), (part, RecordType.COMPONENT)):
        for rest in (False, True):
            assert len(encode_record(record, rest=rest)) == 3 + thin.data_overhead(kind, rest=rest)


def test_a_heartbeat_holds_large_counts_at_their_end():
    beat = ThinHeartbeat(1_800_000_000_000_000_000, "live", 7260.0, 1000, 300, 5000, depth_m=10.0)
    (read,) = CODEC.decode(CODEC.frame([encode_record(beat)])).records
    assert (read.state, read.uptime_s, read.alerts_waiting, read.alerts_lost, read.components) == (
        "live",
        7260.0,
        255,
        255,
        1023,
    )


@pytest.mark.parametrize("bit", range(0, 256, 7))
def test_any_flipped_bit_is_noticed(bit):
    frame = bytearray(CODEC.encode_alert(ALERT))
    frame[bit // 8] ^= 1 << bit % 8
    with pytest.raises(DecodeError):
        CODEC.decode(bytes(frame))


@pytest.mark.parametrize("length", range(32))
def test_any_cut_is_noticed(length):
    with pytest.raises(DecodeError):
        CODEC.decode(CODEC.encode_alert(ALERT)[:length])


@pytest.mark.parametrize("key", [b"", b"another", b"key\x00key"])
def test_frames_of_another_key_are_refused(key):
    with pytest.raises(DecodeError, match="another key"):
        CODEC.decode(ThinCodec(200, key).encode_alert(ALERT))


def test_a_later_version_is_refused_by_name():
    frame = bytearray(CODEC.encode_alert(ALERT))
    frame[0] = 2 << 5
    with pytest.raises(DecodeError, match="version 2"):
        CODEC.decode(bytes(frame))


def test_what_the_outbox_stores_becomes_the_record_again():
    stored = thin.strip_alert(ALERT)
    assert thin.number_alert(stored, 1234, 56789) == encode_record(ALERT)
    assert thin.decode_alert_record(encode_record(ALERT)).delivery == 56789


@pytest.mark.parametrize(("agent", "key"), [(256, b""), (-1, b""), (0, b"x" * 33)])
def test_impossible_agents_and_keys_are_refused(agent, key):
    with pytest.raises(EncodeError):
        ThinCodec(agent, key)


@pytest.mark.parametrize("size", [0, 256])
def test_data_over_or_under_its_limit_is_refused(size):
    with pytest.raises(EncodeError, match="1 to 255"):
        encode_record(Packet(0, bytes(size)))
