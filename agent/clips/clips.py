"""A run's clips: listens to the source's packets, is told what each frame led to, and has alerts' clips written.

Made by agent/process/app.py. Where a source has no packets that go into MP4, frames are kept as JPEGs instead.
"""

import pathlib
from fractions import Fraction
from typing import Any

import cv2

from stillwatch.base import Frame
from stillwatch.clips.cutter import ClipCutter
from stillwatch.clips.mp4 import ClipPacket, PacketStream
from stillwatch.clips.writer import ClipWriter
from stillwatch.pipeline import Step
from stillwatch.settings import ClipsConfig
from stillwatch.sources import PacketTap, Source

JPEG_QUALITY = 80
CLOSE_S = 1.5
_JPEGS = Fraction(1, 1000)


class Clips:
    """Collects and writes the clips of one run.

    Parameters
    ----------
    config : ClipsConfig
    folder : Path
        Where clips go.
    rate_hz : float
        Of streams whose packets have no stamps.
    waits : bool
        True for files: alerts wait for the disk rather than go without a clip.
    """

    def __init__(self, config: ClipsConfig, folder: pathlib.Path, rate_hz: float, *, waits: bool):
        self._writer = ClipWriter(folder, config.max_bytes, waits=waits)
        self._cutter = ClipCutter(config.before_s, config.after_s, config.ring_bytes, self._writer.put)
        self._rate_hz = rate_hz
        self._next: PacketTap | None = None  # a recorder that listens to the same packets
        self._stream: PacketStream | None = None  # of the packets that come; None where none fit
        self._stampless = False
        self._packets = 0
        self._decoded = 0
        self._has_jpegs = False

    def tap(self, source: Source) -> Source:
        """Listen to the packets of a source, if it has any; returns the source."""
        if hasattr(source, "packet_tap"):
            self._next = source.packet_tap
            source.packet_tap = self
        return source

    def counters(self) -> dict[str, int]:
        """Return clips written, clips that could not be, and alerts before which no key frame was kept."""
        return {"written": self._writer.written, "lost": self._writer.lost, "missed": self._cutter.missed}

    def close(self) -> None:
        """End the clip that is being collected and write what waits, for a second and a half at most."""
        self._cutter.finish()
        self._writer.close(CLOSE_S)

    # -- reading thread ----------------------------------------------------------------------------------------

    def stream(self, codec: Any, time_base: Any, stampless: bool) -> None:
        if self._next is not None:
            self._next.stream(codec, time_base, stampless)
        rate = Fraction(1, max(1, round(self._rate_hz)))
        base = rate if stampless or not time_base else Fraction(time_base)
        found = PacketStream(codec.name, bytes(codec.extradata or b""), base, self._rate_hz)
        self._stream = found if found.fits_mp4 else None
        self._stampless, self._packets = stampless or not time_base, 0
        if self._stream is not None:
            self._has_jpegs = False
            self._cutter.begin_stream(self._stream)

    def packet(self, packet: Any) -> None:
        if self._next is not None:
            self._next.packet(packet)
        if self._stream is None or not packet.size or packet.is_discard:
            return
        pts, dts = (None, None) if self._stampless else (packet.pts, packet.dts)
        time_s = self._time_s(pts if pts is not None else dts, self._packets)
        self._packets += 1
        self._cutter.add(ClipPacket(bytes(packet), packet.is_keyframe, pts, dts, time_s))

    def decoded(self, frame: Any) -> int:
        number = self._next.decoded(frame) if self._next is not None else self._decoded
        self._decoded = number + 1
        if self._stream is not None:
            self._cutter.place(number, self._time_s(None if self._stampless else frame.pts, self._packets - 1))
        return number

    def _time_s(self, ticks: int | None, at: int) -> float:
        assert self._stream is not None
        return at / self._rate_hz if ticks is None else float(ticks * self._stream.time_base)

    # -- pipeline thread ---------------------------------------------------------------------------------------

    def see(self, step: Step) -> None:
        """Take in what a frame led to."""
        frame = step.frame
        number = frame.decoded
        if number < 0 or self._stream is None:
            number = frame.sequence
            self._keep_jpeg(frame)
        for record in step.events:
            if record.phase == "new":
                self._cutter.alert(record.id, number, max(0.0, (frame.t_ns - record.start_t_ns) / 1e9))
        if step.open_event >= 0:
            self._cutter.go_on(step.open_event, number)

    def _keep_jpeg(self, frame: Frame) -> None:
        if not self._has_jpegs:
            self._has_jpegs = True
            self._cutter.begin_stream(PacketStream("mjpeg", b"", _JPEGS, self._rate_hz))
        done, encoded = cv2.imencode(".jpg", frame.colour, [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])
        if done:
            stamp = frame.t_ns // 1_000_000
            self._cutter.place(frame.sequence, frame.t_ns / 1e9)
            self._cutter.add(ClipPacket(encoded.tobytes(), True, stamp, stamp, frame.t_ns / 1e9))
