"""Endless wrong input for decoders: random bytes, random msgpack, and good messages with a few bytes changed."""

from collections.abc import Iterator

import msgpack
import numpy as np

from stillwatch.transport.wire.compact import expand


def mutated(rng: np.random.Generator, good: list[bytes]) -> bytes:
    """Return a good payload after one to four of: flip, cut, insert, repeat, splice with another."""
    data = bytearray(good[rng.integers(len(good))])
    for _ in range(rng.integers(1, 5)):
        at = int(rng.integers(len(data) + 1)) if data else 0
        match rng.integers(5):
            case 0 if data:
                data[at % len(data)] = rng.integers(256)
            case 1:
                del data[at:]
            case 2:
                data[at:at] = rng.bytes(int(rng.integers(1, 9)))
            case 3:
                data[at:at] = data[at : at + int(rng.integers(1, 33))]
            case 4:
                other = good[rng.integers(len(good))]
                data[at:] = other[int(rng.integers(len(other))) :]
    return bytes(data)


def random_value(rng: np.random.Generator, depth: int = 0):
    """Return a random value that msgpack can pack."""
    match rng.integers(10 if depth < 3 else 8):
        case 0:
            return None
        case 1:
            return bool(rng.integers(2))
        case 2:
            return int(rng.integers(-(2**62), 2**62)) >> int(rng.integers(0, 62))
        case 3:
            return float(rng.choice([0.0, 1.5, np.nan, np.inf, -np.inf, 1e308]))
        case 4:
            return "".join(chr(code) for code in rng.integers(32, 0x2FF, int(rng.integers(0, 20))))
        case 5:
            return rng.bytes(int(rng.integers(0, 40)))
        case 6 | 7:
            return msgpack.ExtType(int(rng.integers(0, 4)), rng.bytes(int(rng.integers(0, 40))))
        case 8:
            return [random_value(rng, depth + 1) for _ in range(rng.integers(0, 5))]
    return {str(rng.integers(0, 9)): random_value(rng, depth + 1) for _ in range(rng.integers(0, 5))}


def payloads(seed: int, count: int, good: list[bytes]) -> Iterator[bytes]:
    """Yield `count` payloads, mostly changed good ones; some are fields of a good one replaced by random values."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        match rng.integers(8):
            case 0:
                yield rng.bytes(int(rng.integers(0, 200)))
            case 1:
                yield msgpack.packb(random_value(rng))
            case 2 | 3:
                fields = msgpack.unpackb(expand(good[rng.integers(len(good))], 1_000_000), strict_map_key=False)
                names = list(fields)
                fields[names[rng.integers(len(names))]] = random_value(rng)
                yield msgpack.packb(fields)
            case _:
                yield mutated(rng, good)
