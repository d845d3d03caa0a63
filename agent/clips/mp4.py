"""Writes an MP4 of packets as a camera sent them: nothing is decoded or encoded again.

Called by agent/clips/writer.py and tools/clips. libav takes a stream's description from an open container only, and
by the time a clip is written that of the camera may be closed: its description is found anew in the first key frame.
"""

import io
import pathlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import av
import av.error

_START_CODE = b"\x00\x00\x00\x01"
# Codecs of which MP4 players know how to play, and the name of each one's plain byte stream.
PLAIN_FORMATS = {"h264": "h264", "hevc": "hevc", "mpeg4": "m4v", "mjpeg": "mjpeg"}


@dataclass(frozen=True, slots=True)
class PacketStream:
    """What is known of the stream that packets belong to. `time_base` is of their stamps, in seconds."""

    codec: str
    extradata: bytes
    time_base: Fraction
    rate_hz: float  # where packets have no stamps

    @property
    def fits_mp4(self) -> bool:
        return self.codec in PLAIN_FORMATS


@dataclass(frozen=True, slots=True)
class ClipPacket:
    """One packet. `time_s` is on the clock of its stream, and rises by the interval of frames."""

    data: bytes
    is_key: bool
    pts: int | None
    dts: int | None
    time_s: float


def write_mp4(path: pathlib.Path, stream: PacketStream, packets: Sequence[ClipPacket]) -> None:
    """Write a file of packets, of which the first must be a key frame.

    Raises
    ------
    ValueError
        No packet, a first one that is no key frame, or bytes that libav does not take for this codec.
    OSError
        The disk.
    """
    if not stream.fits_mp4:
        raise ValueError(f"{stream.codec} packets do not go into MP4")
    if not packets or not packets[0].is_key:
        raise ValueError("a clip begins with a key frame")
    plain = PlainPackets(stream)
    try:
        with (
            av.open(io.BytesIO(plain.header + plain(packets[0].data)), format=PLAIN_FORMATS[stream.codec]) as described,
            av.open(f"file:{path.absolute()}", "w", format="mp4", options={"movflags": "faststart"}) as made,
        ):
            track = made.add_stream_from_template(described.streams.video[0], opaque=True)
            step = max(1, round(1 / (stream.rate_hz * stream.time_base)))  # without one the last is not shown
            for packet, pts, dts in _stamped(step, packets):
                muxed = av.Packet(plain(packet.data))
                muxed.stream, muxed.time_base, muxed.pts, muxed.dts = track, stream.time_base, pts, dts
                muxed.is_keyframe, muxed.duration = packet.is_key, step
                made.mux(muxed)
    except av.error.FFmpegError as error:
        if isinstance(error, OSError) and error.errno in (28, 30, 122, 5):
            raise
        raise ValueError(f"libav does not take these {stream.codec} packets: {error.strerror or error}") from None


def _stamped(step: int, packets: Sequence[ClipPacket]) -> Iterator[tuple[ClipPacket, int, int]]:
    """Yield packets with stamps from 0 on: those of the camera, else one in `step`; decoding times that rise."""
    first = packets[0]
    begin = first.pts if first.pts is not None else first.dts
    last_dts = None
    for at, packet in enumerate(packets):
        pts = packet.pts if packet.pts is not None else packet.dts
        pts = at * step if begin is None or pts is None else pts - begin
        dts = packet.dts - begin if begin is not None and packet.dts is not None else pts
        if last_dts is not None and dts <= last_dts:
            dts = last_dts + 1
        last_dts = dts
        yield packet, max(pts, dts), dts


class PlainPackets:
    """Turns packets as MP4 holds them (length before each unit) into plain ones (start codes); others stay.

    `header` are the parameter sets that the stream's description holds, to stand before the first packet.
    ISO/IEC 14496-15, 5.3.3 (avcC) and 8.3.3 (hvcC).
    """

    def __init__(self, stream: PacketStream):
        extradata = stream.extradata
        self._length_bytes = 0
        self.header = extradata
        if extradata[:1] == b"\x01" and stream.codec == "h264" and len(extradata) > 6:
            self._length_bytes = (extradata[4] & 3) + 1
            self.header = b"".join(_START_CODE + unit for unit in _units_of_avcc(extradata))
        elif extradata[:1] == b"\x01" and stream.codec == "hevc" and len(extradata) > 22:
            self._length_bytes = (extradata[21] & 3) + 1
            self.header = b"".join(_START_CODE + unit for unit in _units_of_hvcc(extradata))
        elif stream.codec == "mjpeg":
            self.header = b""

    def __call__(self, data: bytes) -> bytes:
        if not self._length_bytes:
            return data
        found, at = [], 0
        while at + self._length_bytes < len(data):
            size = int.from_bytes(data[at : at + self._length_bytes], "big")
            at += self._length_bytes
            found += [_START_CODE, data[at : at + size]]
            at += size
        return b"".join(found)


def _units_of_avcc(extradata: bytes) -> Iterator[bytes]:
    at = 5
    for mask in (0x1F, 0xFF):  # sequence parameter sets, then picture parameter sets
        if at >= len(extradata):
            return
        count, at = extradata[at] & mask, at + 1
        for _ in range(count):
            size = int.from_bytes(extradata[at : at + 2], "big")
            yield extradata[at + 2 : at + 2 + size]
            at += 2 + size


def _units_of_hvcc(extradata: bytes) -> Iterator[bytes]:
    at = 23
    for _ in range(extradata[22]):
        count = int.from_bytes(extradata[at + 1 : at + 3], "big")
        at += 3
        for _ in range(count):
            size = int.from_bytes(extradata[at : at + 2], "big")
            yield extradata[at + 2 : at + 2 + size]
            at += 2 + size
