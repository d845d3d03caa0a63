"""A second decoder of the wire, from transport/WIRE.md alone: only msgpack and the standard library, nothing of ours.

What a ground station in another language would do. Arrays become nested lists.
"""

import pathlib
import struct
import zlib

import msgpack

DICTIONARY = (pathlib.Path(__file__).parents[2] / "golden" / "wire_v2" / "dictionary.bin").read_bytes()
FORMATS = {1: "B", 2: "b", 3: "H", 4: "h", 5: "I", 6: "i", 7: "Q", 8: "q", 9: "e", 10: "f", 11: "d"}


def decode(payload: bytes) -> dict:
    """Return the message as a dict."""
    if payload[:1] == b"\xc1":
        payload = zlib.decompressobj(wbits=-15, zdict=DICTIONARY).decompress(payload[1:])
    return msgpack.unpackb(payload, ext_hook=_array, strict_map_key=True)


def _array(code: int, data: bytes):
    assert code == 1
    dtype, ndim = data[0], data[1]
    shape = struct.unpack_from(f"<{ndim}I", data, 2)
    count = 1
    for size in shape:
        count *= size
    flat = list(struct.unpack_from(f"<{count}{FORMATS[dtype]}", data, 2 + 4 * ndim))
    for size in reversed(shape[1:]):
        flat = [flat[at : at + size] for at in range(0, len(flat), size)]
    return flat
