"""Numbers of any width in bits, most significant bit first, and the quantisers that turn measures into them.

Called by transport/thin/codec.py and transport/thin/fragments.py for the 32-byte frames of thin links.
It must not know what a field means: layouts live with their messages.
"""

import math
from dataclasses import dataclass

from stillwatch.transport.wire.errors import DecodeError, EncodeError


class BitWriter:
    """Collects unsigned integers of given widths; `to_bytes` fills the last byte with zero bits."""

    def __init__(self) -> None:
        self._value = 0
        self.n_bits = 0

    def write(self, value: int, width: int) -> None:
        """Append `value` in `width` bits; EncodeError where it does not fit."""
        if not 0 <= value < (1 << width):
            raise EncodeError(f"value {value} does not fit in {width} bits")
        self._value = (self._value << width) | value
        self.n_bits += width

    def to_bytes(self) -> bytes:
        """Return what was written, padded with zero bits to whole bytes."""
        n_bytes = (self.n_bits + 7) // 8
        return (self._value << (8 * n_bytes - self.n_bits)).to_bytes(n_bytes, "big")


class BitReader:
    """Takes the same integers out again; DecodeError where the bytes end too early."""

    def __init__(self, data: bytes):
        self._value = int.from_bytes(data, "big")
        self.left = 8 * len(data)

    def read(self, width: int) -> int:
        """Return the next `width` bits as an unsigned integer."""
        if width > self.left:
            raise DecodeError(f"frame ends {width - self.left} bits too early")
        self.left -= width
        return (self._value >> self.left) & ((1 << width) - 1)

    def expect_padding(self) -> None:
        """Refuse leftovers: fewer than 8 bits, all zero, so that one meaning has one encoding."""
        if self.left >= 8 or self.read(self.left):
            raise DecodeError(f"{self.left} bits that are not padding after the last field")


@dataclass(frozen=True, slots=True)
class Linear:
    """A measure on even steps from `low` to `high`, both included; NaN has the highest code.

    The error of a value inside the range is at most `step / 2`.
    """

    low: float
    high: float
    width: int

    @property
    def levels(self) -> int:
        """Codes in use for values: one less than there are, as the last one says "unknown"."""
        return (1 << self.width) - 1

    @property
    def step(self) -> float:
        """Distance between neighbouring values, in the measure's unit."""
        return (self.high - self.low) / (self.levels - 1)

    def encode(self, value: float) -> int:
        """Return the nearest code; values outside the range are held at its end, NaN becomes "unknown"."""
        if math.isnan(value):
            return self.levels
        held = min(max(value, self.low), self.high)
        return round((held - self.low) / self.step)

    def decode(self, code: int) -> float:
        """Return the value of a code, or NaN for "unknown"."""
        return math.nan if code == self.levels else self.low + code * self.step


@dataclass(frozen=True, slots=True)
class Logarithmic:
    """A positive measure on even ratios from `low` to `high`, both included; NaN has the highest code.

    The ratio of a decoded value to the true one inside the range is within `2 ** (+-octaves_per_step / 2)`.
    """

    low: float
    high: float
    width: int

    @property
    def _log2(self) -> Linear:
        return Linear(math.log2(self.low), math.log2(self.high), self.width)

    @property
    def octaves_per_step(self) -> float:
        """Step in octaves (factors of two)."""
        return self._log2.step

    def encode(self, value: float) -> int:
        """Return the nearest code by ratio; values outside are held at the end, zero and below at `low`."""
        if math.isnan(value):
            return self._log2.levels
        return self._log2.encode(math.log2(min(max(value, self.low), self.high)))

    def decode(self, code: int) -> float:
        """Return the value of a code, or NaN for "unknown"."""
        return math.pow(2.0, self._log2.decode(code))
