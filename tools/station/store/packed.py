"""A stretch of scores as bytes: columns of numbers, deflated.

Used by tools/station/store/scores.py. It must not take more memory than MOST_SCORES need, whatever the bytes claim.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

LEARNING, REFUSED = 1, 2
MOST_SCORES = 4096  # in one stretch
_COLUMNS = (("frames", "<i8"), ("times", "<i8"), ("values", "<f4"), ("rarities", "<f4"), ("flags", "u1"))
_ROW_BYTES = sum(np.dtype(kind).itemsize for _, kind in _COLUMNS)


@dataclass(frozen=True, slots=True)
class ScoreRows:
    """Scores in order of time: frame numbers, times (UTC ns), values and rarities (NaN: none), flags; of one length."""

    frames: np.ndarray
    times: np.ndarray
    values: np.ndarray
    rarities: np.ndarray
    flags: np.ndarray

    def __len__(self) -> int:
        return len(self.frames)


def rows_of(scores: Sequence[tuple[int, int, float | None, float | None, int]]) -> ScoreRows:
    """Return the columns of (frame, time, value, rarity, flags) rows."""
    frames, times, values, rarities, flags = zip(*scores, strict=True) if scores else ((),) * 5
    return ScoreRows(
        np.array(frames, np.int64),
        np.array(times, np.int64),
        np.array([np.nan if value is None else value for value in values], np.float32),
        np.array([np.nan if value is None else min(value, 1e30) for value in rarities], np.float32),
        np.array(flags, np.uint8),
    )


def pack(rows: ScoreRows) -> bytes:
    """Return the bytes of at most MOST_SCORES scores. Frames and times are kept as differences: they deflate well."""
    if len(rows) > MOST_SCORES:
        raise ValueError(f"{len(rows)} scores in one stretch, limit {MOST_SCORES}")
    columns = []
    for name, kind in _COLUMNS:
        column = getattr(rows, name)
        if kind == "<i8":
            column = np.diff(column, prepend=np.int64(0))
        columns.append(np.ascontiguousarray(column, kind).view(np.uint8).reshape(len(rows), -1).T.tobytes())
    return zlib.compress(b"".join(columns), 6)


def unpack(data: bytes) -> ScoreRows:
    """Return what `pack` was given. Raises ValueError for bytes that are damaged or of more than MOST_SCORES."""
    limit = MOST_SCORES * _ROW_BYTES
    coder = zlib.decompressobj()
    try:
        plain = coder.decompress(data, limit + 1)
    except zlib.error as error:
        raise ValueError(f"scores are damaged: {error}") from None
    if len(plain) > limit or len(plain) % _ROW_BYTES or not coder.eof:
        raise ValueError(f"scores of {len(plain)} bytes are damaged")
    n, at, columns = len(plain) // _ROW_BYTES, 0, {}
    for name, kind in _COLUMNS:
        size = np.dtype(kind).itemsize
        part = np.frombuffer(plain, np.uint8, n * size, at).reshape(size, n).T
        column = np.ascontiguousarray(part).view(kind).reshape(n)
        columns[name] = np.cumsum(column) if kind == "<i8" else column
        at += n * size
    return ScoreRows(**columns)
