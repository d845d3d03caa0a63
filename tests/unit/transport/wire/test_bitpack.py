"""Bits: what is written is read again, widths and ends are checked, quantisers stay within half a step."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stillwatch.transport.wire.bitpack import BitReader, BitWriter, Linear, Logarithmic
from stillwatch.transport.wire.errors import DecodeError, EncodeError

FIELDS = st.lists(
    st.integers(1, 64).flatmap(lambda width: st.tuples(st.integers(0, 2**width - 1), st.just(width))), max_size=40
)


@given(FIELDS)
def test_reads_what_was_written(fields):
    writer = BitWriter()
    for value, width in fields:
        writer.write(value, width)
    reader = BitReader(writer.to_bytes())
    assert [reader.read(width) for _, width in fields] == [value for value, _ in fields]
    reader.expect_padding()


def test_first_field_is_in_the_highest_bits():
    writer = BitWriter()
    writer.write(0b101, 3)
    writer.write(0b1, 1)
    writer.write(0xAB, 8)
    assert writer.to_bytes() == bytes([0b10111010, 0b10110000])


@pytest.mark.parametrize(("value", "width"), [(2, 1), (-1, 8), (256, 8), (1, 0)])
def test_refuses_what_does_not_fit(value, width):
    with pytest.raises(EncodeError, match="does not fit"):
        BitWriter().write(value, width)


def test_reading_past_the_end_is_a_decode_error():
    reader = BitReader(b"\xff")
    reader.read(5)
    with pytest.raises(DecodeError, match="1 bits too early"):
        reader.read(4)


@pytest.mark.parametrize("data", [b"\x01", b"\x00\x00"])
def test_leftovers_that_are_not_padding_are_refused(data):
    reader = BitReader(data)
    reader.read(1)
    with pytest.raises(DecodeError, match="not padding"):
        reader.expect_padding()


@given(st.floats(-90, 90), st.integers(2, 30))
def test_linear_error_is_at_most_half_a_step(value, width):
    measure = Linear(-90.0, 90.0, width)
    step = 180.0 / (2**width - 2)
    assert abs(measure.decode(measure.encode(value)) - value) <= step / 2 * (1 + 1e-6) + 1e-12


@given(st.floats(allow_nan=False))
def test_linear_holds_outsiders_at_the_ends(value):
    measure = Linear(-1.0, 3.0, 8)
    assert -1.0 <= measure.decode(measure.encode(value)) <= 3.0


def test_the_ends_are_exact_and_nan_is_its_own_code():
    measure = Linear(-1.0, 3.0, 8)
    assert measure.decode(measure.encode(-1.0)) == -1.0
    assert measure.decode(measure.encode(3.0)) == 3.0
    assert measure.encode(math.nan) == 255
    assert math.isnan(measure.decode(255))


@given(st.floats(1.0, 2.0**31))
def test_logarithmic_error_is_at_most_half_a_step_in_octaves(value):
    measure = Logarithmic(1.0, 2.0**31, 7)
    octaves = abs(math.log2(measure.decode(measure.encode(value)) / value))
    assert octaves <= 31 / 126 / 2 + 1e-9


def test_logarithmic_takes_zero_infinity_and_nan():
    measure = Logarithmic(1.0, 16.0, 5)
    assert measure.decode(measure.encode(0.0)) == 1.0
    assert measure.decode(measure.encode(math.inf)) == 16.0
    assert math.isnan(measure.decode(measure.encode(math.nan)))
