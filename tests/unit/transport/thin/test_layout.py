"""The thin wire as others read it: a decoder made of the page's numbers alone, and the page that cannot go stale."""

import hashlib
from fractions import Fraction

import pytest
from places import ROOT

from stillwatch.tools.pages.thin import thin_page
from stillwatch.transport.thin.codec import ThinCodec, encode_record
from stillwatch.transport.thin.layout import pack, unpack
from stillwatch.transport.thin.records import RECORDS, Packet, RecordType, plain, table

GOLDEN_ALERT = bytes.fromhex("20c814d200ddd512674e8cfe388082942e19aec3a944dbec14185a0d793d615f")


def bits_of(data, first, width):
    """Return `width` bits from bit `first` on, by string slicing: nothing of ours is used."""
    text = "".join(f"{byte:08b}" for byte in data)
    return int(text[first : first + width], 2)


def test_an_independent_decoder_reads_the_golden_alert():
    assert GOLDEN_ALERT[-4:] == hashlib.blake2s(GOLDEN_ALERT[:-4], digest_size=4, key=b"key").digest()
    assert bits_of(GOLDEN_ALERT, 0, 3) == 1  # version
    assert bits_of(GOLDEN_ALERT, 3, 1) == 0  # from the vehicle
    assert bits_of(GOLDEN_ALERT, 8, 8) == 200  # agent
    assert bits_of(GOLDEN_ALERT, 16, 4) == 1  # an alert
    assert bits_of(GOLDEN_ALERT, 20, 12) == 1234  # incarnation
    assert bits_of(GOLDEN_ALERT, 32, 24) == 56789  # delivery
    assert bits_of(GOLDEN_ALERT, 56, 16) == 4711  # event
    assert bits_of(GOLDEN_ALERT, 72, 2) == 1  # update
    assert bits_of(GOLDEN_ALERT, 74, 4) == 3  # returned
    assert bits_of(GOLDEN_ALERT, 78, 3) == 5  # severity
    seconds = Fraction(bits_of(GOLDEN_ALERT, 81, 36), 32) + 1_577_836_800
    assert seconds == Fraction(17_958_240_005, 10)
    assert 2 ** (bits_of(GOLDEN_ALERT, 117, 7) * 31 / 126) == pytest.approx(1000, rel=0.09)
    latitude = -90 + bits_of(GOLDEN_ALERT, 146, 26) * 180 / (2**26 - 2)
    longitude = -180 + bits_of(GOLDEN_ALERT, 172, 27) * 360 / (2**27 - 2)
    assert (latitude, longitude) == (pytest.approx(41.5246, abs=2e-6), pytest.approx(-70.6709, abs=2e-6))
    assert -500 + bits_of(GOLDEN_ALERT, 199, 18) * 13107 / (2**18 - 2) == pytest.approx(123.4, abs=0.03)
    assert bits_of(GOLDEN_ALERT, 217, 7) * 25.2 / 126 == pytest.approx(2.5, abs=0.11)


def test_the_page_is_made_of_the_table():
    page = ROOT / "transport" / "THIN_LINK.md"
    assert page.read_text() == thin_page(), "run: make pages"


@pytest.mark.parametrize("kind", RecordType)
def test_every_record_is_in_the_table_and_fits_a_32_byte_frame(kind):
    assert RECORDS[kind].n_bytes + (kind in (2, 3, 4)) <= 26
    names = [field.name for field in RECORDS[kind].fields if field.name != "reserved"]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("kind", RecordType)
def test_the_highest_values_come_back(kind):
    values = [(1 << field.width) - 1 for field in RECORDS[kind].fields if field.name != "reserved"]
    assert unpack(RECORDS[kind].fields, pack(kind, RECORDS[kind].fields, values)) == values


def test_a_type_without_a_row_cannot_be():
    for kind in RecordType:
        with pytest.raises(ValueError, match=rf"without a row: \['{kind.name}'\]"):
            table({other: row for other, row in RECORDS.items() if other is not kind})


def test_two_types_cannot_share_a_class():
    with pytest.raises(ValueError, match="AlertAck.*AlertAck"):
        table(RECORDS | {RecordType.PACKET_ACK: RECORDS[RecordType.ALERT_ACK]})


@pytest.mark.parametrize("attributes", ["number answers", "number answers channel data", "number answers length"])
def test_a_row_whose_attributes_are_not_the_class_s_cannot_be(attributes):
    with pytest.raises(ValueError, match="Packet has"):
        plain(Packet, RECORDS[RecordType.PACKET].fields, attributes)


@pytest.mark.parametrize("kind", RecordType)
def test_every_type_comes_back_as_its_own_class_through_its_row(kind):
    row = RECORDS[kind]
    values = [1] * len([field for field in row.fields if field.name not in ("reserved", "rest")])
    record = row.record_of(values, b"data" if row.has_data else b"")
    assert type(record) is row.record
    head, *others = ThinCodec().decode(ThinCodec().frame([encode_record(record)])).records
    assert (head, others) == (record, []) or repr(head) == repr(record)  # NaN is not equal to itself
    assert list(row.values_of(record)) == values
