"""Objects larger than a frame: cut into fragments, put together again, acknowledged by what is missing.

Used by transport/thin/link.py at both ends. Memory is bounded by streams and bytes per stream. It must not assume
that a stream number is new: vehicles restart and numbers come round.
"""

from collections import OrderedDict
from dataclasses import dataclass, field

import google_crc32c

from stillwatch.transport.thin.codec import MAX_DATA_BYTES
from stillwatch.transport.thin.records import MAX_STREAM_BYTES, Fragment, StreamAck
from stillwatch.transport.wire import EncodeError, LinkError

SEAL_BYTES = 4
_ACK_PIECES = 16


def split(stream: int, data: bytes, piece_bytes: int) -> list[Fragment]:
    """Return the fragments of an object, of `piece_bytes` each but the last; a CRC32C is added at its end.

    Raises
    ------
    EncodeError
        Over 8,187 bytes, none, or pieces over 255 bytes.
    """
    whole = data + google_crc32c.value(data).to_bytes(SEAL_BYTES, "big")
    if not data or len(whole) > MAX_STREAM_BYTES or not 1 <= piece_bytes <= MAX_DATA_BYTES:
        raise EncodeError(
            f"stream of {len(data)} bytes in pieces of {piece_bytes}: 1 to {MAX_STREAM_BYTES - SEAL_BYTES} bytes "
            f"in pieces of 1 to {MAX_DATA_BYTES} can be sent"
        )
    offsets = range(0, len(whole), piece_bytes)
    return [
        Fragment(stream, offset, whole[offset : offset + piece_bytes], offset + piece_bytes >= len(whole))
        for offset in offsets
    ]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a stream has come: all bytes from its start, without the seal once it is complete."""

    stream: int
    prefix: bytes
    is_complete: bool


@dataclass(slots=True)
class _Stream:
    pieces: dict[int, bytes] = field(default_factory=dict)
    end: int | None = None
    unit: int = 0
    is_complete: bool = False

    def prefix(self) -> bytes:
        parts = []
        upto = 0
        while upto in self.pieces:
            parts.append(self.pieces[upto])
            upto += len(self.pieces[upto])
        return b"".join(parts)


class Reassembler:
    """Puts streams together from fragments in any order, with losses, doubles and reused numbers.

    Parameters
    ----------
    max_streams : int
        Streams kept, finished ones included; the one that was quiet longest goes first.

    Attributes
    ----------
    duplicates, restarted, broken, evicted : int
        Fragments that were there already; streams begun anew as their bytes differed; complete but with a wrong
        CRC; given up unfinished for room.
    """

    def __init__(self, max_streams: int = 32):
        if max_streams < 1:
            raise LinkError(f"max_streams {max_streams} is below 1")
        self.duplicates = self.restarted = self.broken = self.evicted = 0
        self._max_streams = max_streams
        self._streams: OrderedDict[int, _Stream] = OrderedDict()

    def feed(self, fragment: Fragment) -> Progress | None:
        """Take one fragment; return the stream's progress if its prefix grew or it was completed."""
        stream = self._streams.get(fragment.stream)
        if stream is not None and _contradicts(stream, fragment):
            self.restarted += 1
            stream = None
        if stream is None:
            stream = self._streams[fragment.stream] = _Stream()
        self._streams.move_to_end(fragment.stream)
        self._make_room()
        if fragment.offset in stream.pieces:
            self.duplicates += 1
            return None
        before = len(stream.prefix())
        stream.pieces[fragment.offset] = fragment.data
        if fragment.is_last:
            stream.end = fragment.offset + len(fragment.data)
        else:
            stream.unit = len(fragment.data)
        prefix = stream.prefix()
        if len(prefix) == stream.end:
            return self._finish(fragment.stream, stream, prefix)
        return Progress(fragment.stream, prefix, False) if len(prefix) > before else None

    def acknowledgement(self, number: int) -> StreamAck | None:
        """Return what is there of a stream, or None where nothing is known of it."""
        stream = self._streams.get(number)
        if stream is None:
            return None
        upto, unit = len(stream.prefix()), stream.unit
        pieces = sum(1 << k for k in range(_ACK_PIECES) if unit and upto + k * unit in stream.pieces)
        return StreamAck(number, upto, unit, pieces, stream.is_complete)

    def memory_bytes(self) -> int:
        """Return the bytes of all kept pieces."""
        return sum(len(piece) for stream in self._streams.values() for piece in stream.pieces.values())

    def _finish(self, number: int, stream: _Stream, whole: bytes) -> Progress | None:
        data, seal = whole[:-SEAL_BYTES], whole[-SEAL_BYTES:]
        if google_crc32c.value(data).to_bytes(SEAL_BYTES, "big") != seal:
            self.broken += 1
            del self._streams[number]
            return None
        stream.is_complete = True
        return Progress(number, data, True)

    def _make_room(self) -> None:
        while len(self._streams) > self._max_streams:
            _, stream = self._streams.popitem(last=False)
            self.evicted += not stream.is_complete


def _contradicts(stream: _Stream, fragment: Fragment) -> bool:
    """Tell whether a fragment cannot belong to the stream that has its number."""
    held = stream.pieces.get(fragment.offset)
    end = fragment.offset + len(fragment.data)
    if held is not None:
        return held != fragment.data
    if stream.is_complete or (stream.end is not None and (fragment.is_last or end > stream.end)):
        return True
    return not fragment.is_last and stream.unit not in (0, len(fragment.data))


def acknowledged(ack: StreamAck, fragments: list[tuple[int, int]]) -> list[int]:
    """Return the offsets, of (offset, length) pairs in flight, that an acknowledgement covers."""
    if ack.is_complete:
        return [offset for offset, _ in fragments]
    there = {ack.upto + k * ack.unit for k in range(_ACK_PIECES) if ack.pieces >> k & 1}
    return [offset for offset, length in fragments if offset + length <= ack.upto or offset in there]
