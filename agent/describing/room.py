"""Memory that two processes share, and the arrays in it.

Used by both ends, agent/describing/apart.py and agent/describing/child.py. It must not know what the arrays mean.
"""

import mmap
import os
from collections.abc import Mapping

import msgspec
import numpy as np

ALIGNED = 64  # bytes: a cache line, so that vectors begin where kernels like them to


class Place(msgspec.Struct, array_like=True, frozen=True):
    """Where an array stands: its name, first byte, shape and type."""

    name: str
    offset: int
    shape: tuple[int, ...]
    dtype: str


def room_of(arrays: Mapping[str, np.ndarray]) -> int:
    """Return the bytes that `put` needs for such arrays, a multiple of ALIGNED."""
    return sum(_aligned(array.nbytes) for array in arrays.values())


class Room:
    """Anonymous shared memory of Linux: who holds its descriptor sees the same bytes.

    Parameters
    ----------
    descriptor : int, optional
        Of a room that another process made; a new one without.
    """

    def __init__(self, descriptor: int | None = None):
        self.descriptor = os.memfd_create("stillwatch-frames") if descriptor is None else descriptor
        self._memory: mmap.mmap | None = None

    def grow(self, n_bytes: int) -> None:
        """Make the room at least `n_bytes` large, what stood in it stays; OSError where the system refuses that."""
        if os.fstat(self.descriptor).st_size < n_bytes:
            os.ftruncate(self.descriptor, n_bytes)
        self.look_again()

    def look_again(self) -> None:
        """See all of the room, after the other process may have made it larger."""
        self._memory = mmap.mmap(self.descriptor, os.fstat(self.descriptor).st_size)

    def put(self, offset: int, arrays: Mapping[str, np.ndarray], n_bytes: int) -> list[Place]:
        """Copy arrays to the `n_bytes` from `offset` on; return their places. ValueError where they take more."""
        if room_of(arrays) > n_bytes:
            raise ValueError(f"{', '.join(arrays)}: {room_of(arrays)} bytes have {n_bytes} to stand in")
        places = []
        for name, array in arrays.items():
            place = Place(name, offset, array.shape, array.dtype.str)
            self._view(place)[...] = array
            places.append(place)
            offset += _aligned(array.nbytes)
        return places

    def get(self, places: list[Place]) -> dict[str, np.ndarray]:
        """Return the arrays that stand there, by name: views, that change with the room."""
        return {place.name: self._view(place) for place in places}

    def close(self) -> None:
        """Give up the descriptor; the memory goes with the last array that looks into it."""
        self._memory = None
        os.close(self.descriptor)

    def _view(self, place: Place) -> np.ndarray:
        assert self._memory is not None
        return np.ndarray(place.shape, place.dtype, self._memory, place.offset)


def _aligned(n_bytes: int) -> int:
    return -(-n_bytes // ALIGNED) * ALIGNED
