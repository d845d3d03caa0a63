"""Which part of a frame shows which topic, as the few bytes that wait with the frame's picture.

Made by agent/contents/contents.py for frames that may become exemplars; agent/pipeline/summaries.py reads it again. It
must not know a model.
"""

import struct
from typing import NamedTuple, Self

import numpy as np

NO_TOPIC = 255  # of a cell that shows nothing
_HEAD = struct.Struct("<HHBH")  # rows, columns, topics, runs


class TopicMap(NamedTuple):
    """The topic of each cell of a grid over a frame.

    labels : ndarray of shape (rows, columns), uint8: places in `ids`, NO_TOPIC where there is none
    ids : ndarray of shape (n_topics,), int64
    """

    labels: np.ndarray
    ids: np.ndarray

    def pack(self) -> bytes:
        """Return the map as bytes: ids, then runs of equal cells, row by row. It has at most 254 topics."""
        flat = self.labels.ravel()
        starts = np.flatnonzero(np.diff(flat, prepend=np.int64(-1)))
        lengths = np.diff(starts, append=len(flat)).astype("<u2")
        head = _HEAD.pack(*self.labels.shape, len(self.ids), len(starts))
        return head + self.ids.astype("<i8").tobytes() + lengths.tobytes() + flat[starts].tobytes()

    @classmethod
    def unpack(cls, packed: bytes) -> Self | None:
        """Return what `pack` made bytes of; None where they are none of it."""
        if len(packed) < _HEAD.size:
            return None
        rows, columns, n_topics, n_runs = _HEAD.unpack_from(packed)
        ends = np.cumsum([_HEAD.size, 8 * n_topics, 2 * n_runs, n_runs])
        if len(packed) != ends[-1]:
            return None
        ids, lengths, labels = (
            np.frombuffer(packed[low:high], kind)
            for low, high, kind in zip(ends, ends[1:], ("<i8", "<u2", "u1"), strict=False)
        )
        if int(lengths.sum()) != rows * columns:
            return None
        return cls(np.repeat(labels, lengths).reshape(rows, columns), ids.astype(np.int64))
