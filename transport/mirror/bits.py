"""Integers of a model packet in few bits: Rice codes with a parameter a class, and counts on a log scale.

Called by transport/mirror/vehicle.py and transport/mirror/ground.py. It must not know which number means what.
"""

import math

import numpy as np

from stillwatch.transport.wire import BitReader, BitWriter, DecodeError

ESCAPE = 15  # ones in a row: the value follows as it is
RAW_BITS = 24
LIMIT = 1 << (RAW_BITS - 2)  # values are held within, so that zigzag fits RAW_BITS
PARAMETER_BITS = 4
COUNT_BITS = 10
COUNT_STEPS = 16  # an octave: within 2.2 %
COUNT_LOW = -4.0  # log2 of the smallest count


def zigzag(values: np.ndarray) -> np.ndarray:
    """Return non-negative integers, small for values near zero of either sign."""
    held = np.clip(values, -LIMIT, LIMIT).astype(np.int64)
    return np.where(held >= 0, 2 * held, -2 * held - 1)


def unzigzag(value: int) -> int:
    """Undo `zigzag` for one value."""
    return value >> 1 if value & 1 == 0 else -((value + 1) >> 1)


def rice_bits(values: np.ndarray, parameter: int) -> np.ndarray:
    """Return the bits that each zigzag value takes."""
    quotient = values >> parameter
    return np.where(quotient < ESCAPE, quotient + 1 + parameter, ESCAPE + RAW_BITS)


def best_parameter(values: np.ndarray) -> int:
    """Return the Rice parameter with the fewest bits in all (Rice and Plaunt 1971)."""
    if not len(values):
        return 0
    return min(range(1 << PARAMETER_BITS), key=lambda parameter: int(rice_bits(values, parameter).sum()))


def write_rice(writer: BitWriter, value: int, parameter: int) -> None:
    """Write one zigzag value."""
    quotient = value >> parameter
    if quotient >= ESCAPE:
        writer.write((1 << ESCAPE) - 1, ESCAPE)
        writer.write(value, RAW_BITS)
        return
    writer.write(((1 << quotient) - 1) << 1, quotient + 1)
    writer.write(value & ((1 << parameter) - 1), parameter)


def read_rice(reader: BitReader, parameter: int) -> int:
    """Read one zigzag value."""
    quotient = 0
    while quotient < ESCAPE and reader.read(1):
        quotient += 1
    if quotient == ESCAPE:
        return reader.read(RAW_BITS)
    return (quotient << parameter) | reader.read(parameter)


def gamma_bits(value: int) -> int:
    """Return the bits of `write_gamma`."""
    return 2 * (value + 1).bit_length() - 1


def write_gamma(writer: BitWriter, value: int) -> None:
    """Write a non-negative integer of any size: Elias's gamma code of `value + 1`."""
    length = (value + 1).bit_length()
    writer.write(0, length - 1)
    writer.write(value + 1, length)


def read_gamma(reader: BitReader, most_bits: int = 48) -> int:
    """Read what `write_gamma` wrote; DecodeError for a value over `most_bits` bits."""
    zeros = 0
    while not reader.read(1):
        zeros += 1
        if zeros >= most_bits:
            raise DecodeError(f"number of over {most_bits} bits in a model packet")
    return ((1 << zeros) | reader.read(zeros)) - 1


def count_code(count: float) -> int:
    """Return the nearest code of a component's count, by ratio."""
    code = round((math.log2(max(count, 2.0**COUNT_LOW)) - COUNT_LOW) * COUNT_STEPS)
    return min(code, (1 << COUNT_BITS) - 1)


def count_of(code: int) -> float:
    """Return the count of a code."""
    return 2.0 ** (code / COUNT_STEPS + COUNT_LOW)
