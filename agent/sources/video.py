"""Video through PyAV: decoding shared by files and live streams, and the file source.

Called by agent/sources/capture.py through agent/sources/registry.py. Believes no claimed rate, count or duration;
never lets one bad packet end a stream that goes on.
"""

import logging
import os
from collections import deque
from collections.abc import Iterator
from typing import Any

import av
import av.error
import av.logging
import numpy as np
from av.video.reformatter import VideoReformatter

from stillwatch.base import FrameFlag, SourceError, scrub
from stillwatch.settings import SourceConfig
from stillwatch.sources.base import PacketTap, RawFrame, SourceInfo
from stillwatch.sources.blockiness import BlockinessJump
from stillwatch.sources.pace import Pace
from stillwatch.sources.pixels import PixelScale
from stillwatch.sources.timestamps import NS

log = logging.getLogger(__name__)
av.logging.set_level(av.logging.PANIC)  # libav's own lines name URLs with passwords; its errors reach us as exceptions

# Containers without time stamps: their demuxers invent 25 a second.
STAMPLESS_FORMATS = frozenset(
    {"h264", "hevc", "vvc", "mjpeg", "m4v", "mpegvideo", "obu", "cavsvideo", "dirac", "png_pipe", "jpeg_pipe", "image2"}
)
OTHER_VIDEO = "give one that a player opens"
WHOLE = "copy the file again, or take its whole original"
LARGEST_CLAIM = 10**9  # frame counts beyond this, or below 1, are nonsense (field notes 22)
DAMAGE_HOLD_NS = 2 * NS  # how long damage is taken to spread where no key frame comes


class Decoder:
    """One video stream of an open container, decoded packet by packet into RawFrames.

    Damage spreads from a bad packet or frame to those that refer to it: frames are flagged from there to the next
    key frame, for at most two seconds of their own time.
    """

    def __init__(
        self, container: Any, info: SourceInfo, config: SourceConfig, scale: PixelScale, tap: PacketTap | None = None
    ):
        self._info = info
        self._tap = tap
        self._config = config
        self._scale = scale
        self._container = container
        self._stream = _video_stream(container, info.uri)
        codec = self._stream.codec_context
        codec.thread_count = 1  # frame threads hide which packet failed, and reorder concealment
        codec.thread_type = "NONE"
        self._packets: Iterator[Any] = container.demux(self._stream)
        self._decoded: deque[Any] = deque()
        self._reformatter = VideoReformatter()
        self._blockiness = BlockinessJump()
        self._stampless = bool(STAMPLESS_FORMATS & set(container.format.name.split(",")))
        self._damage_ns: int | None = None
        self._skip_damage = False
        self.packets = 0
        self.frames = 0
        self.discarded = 0
        self.undecodable = 0
        self.corrupt_packets = 0
        self._describe()
        if tap is not None:
            tap.stream(codec, self._stream.time_base, self._stampless)

    def _describe(self) -> None:
        codec = self._stream.codec_context
        self._info.codec = codec.name
        self._info.pixel_format = codec.pix_fmt or ""
        self._info.width, self._info.height = codec.width, codec.height
        claimed = self._stream.frames
        self._info.frames_claimed = claimed if 0 < claimed < LARGEST_CLAIM else None
        self._check_size(codec.width, codec.height)

    def _check_size(self, width: int, height: int) -> None:
        if width * height > self._config.max_pixels:
            raise SourceError(
                f"{self._info.uri}: frames of {width}x{height} are over source.max_pixels = {self._config.max_pixels}"
            )

    def step(self) -> RawFrame | bool:
        """Return the next frame; True after a packet that gave none; False at the end.

        Raises av.error.FFmpegError (demuxing failed) and SourceError (frames too large).
        """
        if self._decoded:
            return self._raw(self._decoded.popleft())
        packet = next(self._packets, None)
        if packet is None:
            return False
        self._decode(packet)
        return self._raw(self._decoded.popleft()) if self._decoded else True

    def _decode(self, packet: Any) -> None:
        if self._tap is not None:
            self._tap.packet(packet)
        is_flush = packet.size == 0
        self.packets += not is_flush
        self.discarded += packet.is_discard
        if packet.is_corrupt:
            self.corrupt_packets += 1
            self._skip_damage = True
        try:
            self._decoded.extend(packet.decode())
        except av.error.FFmpegError as error:  # decoding does no I/O: whatever it is, it is this packet's
            self.undecodable += not is_flush
            self._skip_damage = True
            log.debug("%s: packet %d: %s", self._info.uri, self.packets, error)

    def _raw(self, frame: Any) -> RawFrame:
        self.frames += 1
        self._check_size(frame.width, frame.height)
        source_ns = self._stamp(frame)
        colour = self._bgr(frame)
        is_damaged = self._blockiness.is_damaged(colour) | self._is_damaged(frame, source_ns)
        flags = FrameFlag.DAMAGED if is_damaged else FrameFlag.NONE
        if self._config.auto_rotate and frame.rotation % 360:
            colour = np.rot90(colour, round(frame.rotation / 90.0))
        name = f"{frame.format.name}{self._scale.name}"
        number = -1 if self._tap is None else self._tap.decoded(frame)
        return RawFrame(colour, source_ns, flags, name, decoded=number)

    def _stamp(self, frame: Any) -> int | None:
        ticks = frame.pts if frame.pts is not None else frame.dts
        if ticks is None or self._stampless:
            return None
        base = frame.time_base or self._stream.time_base
        return ticks * base.numerator * NS // base.denominator if base else None

    def _is_damaged(self, frame: Any, source_ns: int | None) -> bool:
        now_ns = source_ns if source_ns is not None else self.frames * NS // 25
        if frame.is_corrupt or self._skip_damage:
            self._skip_damage = False
            self._damage_ns = now_ns
            return True
        if self._damage_ns is None:
            return False
        if frame.key_frame or not 0 <= now_ns - self._damage_ns < DAMAGE_HOLD_NS:
            self._damage_ns = None
        return self._damage_ns is not None

    def _bgr(self, frame: Any) -> np.ndarray:
        """Return pixels as BGR; deep grey goes through our own fixed scale, other formats through swscale."""
        components = frame.format.components
        if len(components) == 1 and components[0].bits > 8 and not frame.format.name.startswith("bayer"):
            grey = self._reformatter.reformat(frame, format="gray16le", threads=1)
            return self._scale.to_bgr(_plane(grey, np.dtype("<u2"), 1)[:, :, 0])
        if len(components) == 1 and self._config.bayer and frame.format.name == "gray":
            return self._scale.to_bgr(_plane(frame, np.dtype(np.uint8), 1)[:, :, 0])
        if frame.format.name == "bgr24":  # would come back as it is, perhaps upside down (bottom-up AVI)
            rgb = self._reformatter.reformat(frame, format="rgb24", threads=1)
            return self._scale.to_bgr(np.ascontiguousarray(_plane(rgb, np.dtype(np.uint8), 3)[:, :, ::-1]))
        bgr = self._reformatter.reformat(frame, format="bgr24", threads=1)
        return self._scale.to_bgr(_plane(bgr, np.dtype(np.uint8), 3))


def _plane(frame: Any, dtype: np.dtype, channels: int) -> np.ndarray:
    """Return the first plane as a (height, width, channels) view of the frame's memory, without its padding."""
    plane = frame.planes[0]
    strides = (plane.line_size, channels * dtype.itemsize, dtype.itemsize)
    return np.ndarray((frame.height, frame.width, channels), dtype, buffer=plane, strides=strides)


def _video_stream(container: Any, uri: str) -> Any:
    """Return the first video stream that is not a cover picture."""
    streams = [stream for stream in container.streams.video if stream.codec_context is not None]
    if not streams:
        kinds = sorted({stream.type for stream in container.streams})
        raise SourceError(
            f"{uri}: no decodable video stream (it holds: {', '.join(kinds) or 'nothing'}); give a file with pictures"
        )
    return next((s for s in streams if "attached_pic" not in str(s.disposition)), streams[0])


def reason(error: BaseException) -> str:
    """Return an FFmpeg or system error in a few words, without the URL it repeats."""
    return scrub(getattr(error, "strerror", None) or str(error) or type(error).__name__)


class VideoFileSource:
    """A video file, read to its end, `loop` times. At a loop's seam stream time goes on by one interval.

    With `pace` no frame comes earlier than its time stamp says, as from a camera; but none is left out.
    """

    live = False

    def __init__(self, path: str, config: SourceConfig, *, loop: int = 1, pace: Pace | None = None):
        self.info = SourceInfo(path, "file")
        self._path = path
        self._config = config
        self._loops_left = loop
        self._scale = PixelScale(config)
        self._container: Any = None
        self._decoder: Decoder | None = None
        self._closed_counts = {"damaged_packets": 0, "undecodable": 0}
        self._span = _LoopSpan(config.fallback_rate_hz)
        self._problem = ""
        self._pace = pace
        self.packet_tap: PacketTap | None = None

    def open(self) -> None:
        """Open the container and find its video stream; SourceError says what is wrong with the file."""
        size = os.path.getsize(self._path)
        if size == 0:
            raise SourceError(f"{self._path}: the file is empty (0 bytes); copy or record it again")
        options = {"max_pixels": str(self._config.max_pixels), "protocol_whitelist": "file,crypto,data"}
        try:
            self._container = av.open("file:" + os.path.abspath(self._path), options=options, metadata_errors="ignore")
        except (av.error.FFmpegError, OSError) as error:
            raise SourceError(
                f"{self._path}: not a readable video: {reason(error)}{self._hint()}; {OTHER_VIDEO}"
            ) from None
        self._decoder = Decoder(self._container, self.info, self._config, self._scale, self.packet_tap)

    def _hint(self) -> str:
        with open(self._path, "rb") as file:
            head = file.read(64)
        if head[4:8] == b"ftyp":
            return " (an MP4 without its index: the recording was not finished)"
        return " (nothing but zeros)" if head and not any(head) else ""

    def read(self) -> RawFrame | None:
        """Return the next frame, None at the end; SourceError(partial=True) when frames are missing."""
        while True:
            frame = self._next()
            if frame is not None:
                frame.source_ns = self._span.place(frame.source_ns)
                if self._pace is not None:
                    self._pace.wait_for(frame.source_ns)
                return frame
            self._note_missing()
            self._loops_left -= 1
            if self._loops_left < 1 or self._decoder is None or self._decoder.frames == 0:
                self._raise_if_missing()
                return None
            self.close()
            self._span.restart()
            self.open()

    def _next(self) -> RawFrame | None:
        decoder = self._decoder
        if decoder is None:
            return None
        while True:
            try:
                found = decoder.step()
            except av.error.FFmpegError as error:
                self._problem = self._problem or f"reading stopped: {reason(error)}"
                return None
            if isinstance(found, RawFrame):
                return found
            if not found:
                return None

    def _note_missing(self) -> None:
        decoder = self._decoder
        if decoder is None or self._problem:
            return
        claimed = self.info.frames_claimed
        expected = claimed - decoder.discarded if claimed else None
        if expected and decoder.frames < expected:
            self._problem = f"truncated: {decoder.frames} of {expected} frames"
        elif decoder.undecodable:
            self._problem = f"damaged: {decoder.frames} frames of {decoder.packets} packets"
        elif 2 * decoder.frames + 2 < decoder.packets:  # an interlaced frame may take two packets
            self._problem = f"damaged: {decoder.frames} frames of {decoder.packets} packets, no key frame before"
        elif decoder.frames == 0:
            self._problem = "holds no frame"
        if self._problem and decoder.undecodable:
            self._problem += f", {decoder.undecodable} packets undecodable"

    def _raise_if_missing(self) -> None:
        if self._problem:
            frames = self._span.frames
            detail = "" if self._problem[0] in "td" else f" after {frames} frames"
            codec = f" (codec {self.info.codec})" if not frames else ""
            raise SourceError(f"{self._path}: {self._problem}{detail}{codec}; {WHOLE}", partial=frames > 0)

    def close(self) -> None:
        if self._decoder is not None:
            self._closed_counts = self.counters()
        self._decoder = None
        if self._container is not None:
            self._container.close()
            self._container = None

    def counters(self) -> dict[str, int]:
        """Return packets flagged corrupt, and packets no frame could be decoded from."""
        counts = dict(self._closed_counts)
        if self._decoder is not None:
            counts["damaged_packets"] += self._decoder.corrupt_packets
            counts["undecodable"] += self._decoder.undecodable
        return counts


class _LoopSpan:
    """Stamps that go on over the seams of a loop."""

    def __init__(self, fallback_rate_hz: float):
        self._interval_ns = round(NS / fallback_rate_hz)
        self._base_ns = 0
        self._first_ns: int | None = None
        self._last_ns = 0
        self._step_ns = 0
        self.frames = 0

    def place(self, source_ns: int | None) -> int | None:
        self.frames += 1
        if source_ns is None:
            return None
        if self._first_ns is None:
            self._first_ns = source_ns
        elif source_ns > self._last_ns:
            self._step_ns = source_ns - self._last_ns
        self._last_ns = source_ns
        return self._base_ns + source_ns

    def restart(self) -> None:
        """Begin the next pass one interval after the last frame."""
        if self._first_ns is not None:
            self._base_ns += self._last_ns - self._first_ns + (self._step_ns or self._interval_ns)
        self._first_ns = None
