"""Numpy arrays on the wire: a msgpack extension of dtype code, dimensions and little-endian bytes.

Called by transport/wire/codec.py and the thin-link model packets. It must not accept a dtype outside the table,
nor return an array that shares memory with a receive buffer.
"""

import math
import struct

import numpy as np

from stillwatch.transport.wire.errors import DecodeError, EncodeError

ARRAY_EXT = 1  # msgpack extension code of an array
MAX_NDIM = 4
DTYPES: dict[int, np.dtype] = {
    1: np.dtype("u1"),
    2: np.dtype("i1"),
    3: np.dtype("<u2"),
    4: np.dtype("<i2"),
    5: np.dtype("<u4"),
    6: np.dtype("<i4"),
    7: np.dtype("<u8"),
    8: np.dtype("<i8"),
    9: np.dtype("<f2"),
    10: np.dtype("<f4"),
    11: np.dtype("<f8"),
}
_CODES = {dtype: code for code, dtype in DTYPES.items()}


def pack_array(array: np.ndarray) -> bytes:
    """Return `[u8 dtype code][u8 n dims][u32 little-endian a dimension ...][elements, C order, little-endian]`.

    Raises EncodeError for a dtype outside `DTYPES` or more than four dimensions.
    """
    code = _CODES.get(array.dtype.newbyteorder("<") if array.dtype.itemsize > 1 else array.dtype)
    if code is None:
        raise EncodeError(f"array of dtype {array.dtype} cannot be sent: one of {[d.name for d in DTYPES.values()]}")
    if array.ndim > MAX_NDIM:
        raise EncodeError(f"array of {array.ndim} dimensions cannot be sent: at most {MAX_NDIM}")
    head = struct.pack(f"<BB{array.ndim}I", code, array.ndim, *array.shape)
    return head + np.ascontiguousarray(array, dtype=DTYPES[code]).tobytes()


def unpack_array(data: bytes) -> np.ndarray:
    """Return the read-only array packed in `data`, a copy; raise DecodeError unless length and header agree."""
    if len(data) < 2:
        raise DecodeError(f"array of {len(data)} bytes has no header")
    code, ndim = data[0], data[1]
    dtype = DTYPES.get(code)
    if dtype is None:
        raise DecodeError(f"array dtype code {code} is unknown")
    if ndim > MAX_NDIM:
        raise DecodeError(f"array of {ndim} dimensions: at most {MAX_NDIM}")
    start = 2 + 4 * ndim
    if len(data) < start:
        raise DecodeError(f"array header of {ndim} dimensions needs {start} bytes, got {len(data)}")
    shape = struct.unpack_from(f"<{ndim}I", data, 2)
    expected = math.prod(shape) * dtype.itemsize
    if expected != len(data) - start:
        raise DecodeError(f"array of shape {shape} and {dtype.name} needs {expected} bytes, got {len(data) - start}")
    try:
        array = np.frombuffer(data, dtype, offset=start).reshape(shape).copy()
    except ValueError as error:  # an empty array with a dimension that numpy cannot hold
        raise DecodeError(f"array of shape {shape}: {error}") from None
    array.flags.writeable = False
    return array
