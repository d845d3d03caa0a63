"""A recording as a source: the frames that the agent took then, with the pixels, times and numbers they had.

Made by agent/sources/registry.py for `recording:DIR` and by tools/recordings/replay.py. It yields only frames that
were taken: those dropped live are dropped again. It must not repair or re-stamp anything: capture passes the recorded
stamps on.
"""

import bisect
import pathlib
from collections import deque
from fractions import Fraction
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl

import av
import av.error
import cv2
import msgspec
import numpy as np

from stillwatch.base import NO_NAV, Clock, ConfigError, FrameFlag, Nav, SourceError
from stillwatch.settings import SourceConfig
from stillwatch.sources.base import RawFrame, RecordedStamp, SourceInfo
from stillwatch.sources.pixels import PixelScale
from stillwatch.sources.video import Decoder
from stillwatch.transport.disk import KIND_GAP, KIND_MESSAGE, RECORDING_NAME, Damage, Record, log_files, read_file
from stillwatch.transport.disk import recording as r
from stillwatch.transport.wire import LogError

MAX_WAITING_PACKETS = 100_000
_NEVER = 2**62


class RecordingSource:
    """Reads a recording from its first frame, or from `?from=SEQUENCE`, to its last, or `?to=SEQUENCE`.

    Attributes
    ----------
    session : recording.Session or None
        Of the frames being read; known after `open`.
    passed : deque of (Record, body)
        The records met on the way that are no pixels (decisions, activations, ends, journal), for replays to take;
        the newest 10,000.
    damage : list of Damage
    """

    live = False

    def __init__(self, rest: str, config: SourceConfig, clock: Clock | None = None):
        path, _, query = rest.partition("?")
        try:
            options = dict(parse_qsl(query, strict_parsing=True)) if query else {}
            self._from = int(options.pop("from", 0))
            self._to = int(options.pop("to", _NEVER))
        except ValueError:
            raise ConfigError([f"source.uri: recording options are from=N and to=N, not {query!r}"]) from None
        if options:
            raise ConfigError([f"source.uri: unknown option {min(options)!r}; recordings know from and to"])
        self.path = pathlib.Path(path)
        self.info = SourceInfo(f"recording:{path}", "recording")
        self.session: r.Session | None = None
        self.passed: deque[tuple[Record, Any]] = deque(maxlen=10_000)
        self.damage: list[Damage] = []
        self.missing = 0
        # The stored frames were rotated and scaled when they were taken.
        self._config = msgspec.structs.replace(config, auto_rotate=False)
        self._rotate = config.auto_rotate
        self._records: Any = None
        self._decoder: _PacketDecoder | None = None
        self._damage_seen = 0
        self._next_record = _NEVER

    def open(self) -> None:
        """Find the recording and its session; SourceError says what is wrong with it."""
        if not self.path.is_dir() or not log_files(self.path, RECORDING_NAME):
            raise SourceError(f"{self.path}: holds no recording; give a folder of --record")
        try:
            self._records = r.read_recording(self.path, damage=self.damage, from_record=self._first_record())
            self._advance_to_session()
        except LogError as error:
            raise SourceError(str(error)) from error

    def _first_record(self) -> int:
        """Return the record to begin at: of the last file from which the wanted frame can be decoded."""
        files = log_files(self.path, RECORDING_NAME) if self._from > 0 else []
        after = bisect.bisect_right(files, self._from, key=lambda item: first_frames(item[1])[0])
        for first, path in reversed(files[:after]):
            if first_frames(path)[1] <= self._from:
                return first
        return 0

    def _advance_to_session(self) -> None:
        for record, body in self._records:
            self._next_record = record.sequence + 1
            self._note(record, body)
            if self.session is not None:
                return
        raise SourceError(f"{self.path}: the recording holds no session, so no frame; try: stillwatch recover")

    def read(self) -> RawFrame | None:
        """Return the next frame that was taken; None after the last. Damaged stretches are skipped and noted."""
        try:
            for record, body in self._records:
                hole, self._next_record = record.sequence > self._next_record, record.sequence + 1
                if self._lost_packets(hole) and self._decoder is not None:
                    self._open_decoder(msgspec.structs.replace(self._decoder.stream, continues=True))
                if not isinstance(body, r.FrameRecord):
                    self._note(record, body)
                    continue
                if body.sequence < self._from:
                    continue
                if body.sequence > self._to:
                    return None
                frame = self._raw(body)
                if frame is None:
                    self.missing += 1
                    continue
                self.passed.append((record, body))
                return frame
        except LogError as error:
            raise SourceError(str(error), partial=True) from error
        return None

    def close(self) -> None:
        """Let go of the files; `passed` and `damage` stay."""
        if self._records is not None:
            self._records.close()
        self._decoder = None

    def counters(self) -> dict[str, int]:
        """Return how many frames could not be shown again because their pixels are damaged or were deleted."""
        return {"missing": self.missing} if self.missing else {}

    def _note(self, record: Record, body: Any) -> None:
        match body:
            case r.Session():
                if self.session is not None and body != self.session:
                    self._decoder = None
                    self.passed.append((record, body))
                self.session = body
            case r.Stream():
                held = self._decoder
                if not (body.continues and held is not None and held.stream.stream == body.stream):
                    self._open_decoder(body)  # not merely a later file's copy of the stream that is being read
            case r.Packet():
                if self._decoder is not None and self._decoder.stream.stream == body.stream:
                    self._decoder.feed(body)
            case r.KeyFrame():
                if self._decoder is not None:
                    self._decoder.note_key_frame(body)
            case None:
                if record.kind == KIND_GAP and self._decoder is not None:
                    self._open_decoder(msgspec.structs.replace(self._decoder.stream, continues=True))
            case _:
                self.passed.append((record, body))

    def _open_decoder(self, stream: r.Stream) -> None:
        try:
            self._decoder = _PacketDecoder(stream, self.info, self._config)
        except (av.error.FFmpegError, ValueError) as error:
            raise SourceError(
                f"{self.path}: no decoder for {stream.codec}: {error}; install a PyAV that has it", partial=True
            ) from None

    def _lost_packets(self, hole: bool) -> bool:
        """Tell whether damage since the last call may have cost packets: then decoding goes on at a key frame.

        `hole` says that record numbers are missing; without damage that explains it, whole files are.
        """
        new, self._damage_seen = self.damage[self._damage_seen :], len(self.damage)
        if hole and not new:
            return True
        harmless = {r.KIND_OF[body] for body in (r.FrameRecord, r.Decision, r.Activation, r.Checkpoint, r.Drop)}
        return any(item.kind not in harmless | {KIND_MESSAGE} for item in new)

    def _raw(self, body: r.FrameRecord) -> RawFrame | None:
        colour: np.ndarray | None
        if body.image:
            colour = cv2.imdecode(np.frombuffer(body.image, np.uint8), cv2.IMREAD_COLOR)
        else:
            colour = self._decoder.frame(body.decoded) if self._decoder is not None else None
            if colour is not None and self._rotate and body.rotation:
                colour = np.rot90(colour, round(body.rotation / 90.0))
        if colour is None:
            return None
        nav = NO_NAV if body.nav is None else Nav(*body.nav)
        stamp = RecordedStamp(body.t_ns, body.mono_ns, body.wall_ns, body.sequence, body.epoch, nav)
        return RawFrame(colour, body.source_ns, FrameFlag(body.flags), body.pixel_format, stamp)


def first_frames(path: pathlib.Path) -> tuple[int, int]:
    """Return the sequences of a file's first frame, and of the first that can be shown without earlier files."""
    first, key, in_file = _NEVER, _NEVER, False
    for record in read_file(path, []):
        body = r.decode_body(record)
        if isinstance(body, r.Packet):
            in_file = in_file or body.is_key
        elif isinstance(body, r.Stream) and not body.continues:
            in_file, key = True, min(key, body.decoded)
        elif isinstance(body, r.KeyFrame) and in_file:
            key = min(key, body.decoded)
        elif isinstance(body, r.FrameRecord):
            first = min(first, body.sequence)
            if body.image or body.decoded >= key:
                return first, body.sequence
    return first, _NEVER


class _PacketDecoder:
    """Decodes recorded packets as the agent's own Decoder did, only as far as a frame is asked for."""

    def __init__(self, stream: r.Stream, info: SourceInfo, config: SourceConfig):
        self.stream = stream
        self._codec = _open_codec(stream)
        self._time_base = Fraction(*stream.time_base)
        self._waiting: deque[r.Packet] = deque(maxlen=MAX_WAITING_PACKETS)
        # In the middle of a stream: begin at a key frame, and learn its number from its KeyFrame record.
        self._needs_key = stream.continues
        self._next: int | None = None if stream.continues else stream.decoded
        self._decoder = _LazyDecoder(self._container(), info, config, PixelScale(config))

    def _container(self) -> Any:
        """Return what the agent's Decoder needs of a container: one stream, and packets that come and run dry."""
        video = SimpleNamespace(
            codec_context=self._codec, frames=0, disposition="", type="video", time_base=self._time_base
        )
        streams = SimpleNamespace(video=[video])
        return SimpleNamespace(streams=streams, format=SimpleNamespace(name=""), demux=lambda _: _Packets(self))

    def feed(self, packet: r.Packet) -> None:
        """Queue a packet; nothing is decoded before a frame is asked for."""
        if self._needs_key and not packet.is_key:
            return
        self._needs_key = False
        self._waiting.append(packet)

    def note_key_frame(self, key: r.KeyFrame) -> None:
        """Learn the number of the first frame after a start in the middle of a stream."""
        if self._next is None and not self._needs_key and key.stream == self.stream.stream:
            first = self._waiting[0].pts if self._waiting else None
            if first is None or key.pts is None or first == key.pts:
                self._next = key.decoded

    def frame(self, number: int) -> np.ndarray | None:
        """Return the pixels of a decoded frame, decoding up to it; None if it cannot be had (any more)."""
        if self._next is None or number < self._next:
            return None
        while self._next <= number:
            self._decoder.wanted = self._next == number
            try:
                found = self._decoder.step()
            except av.error.FFmpegError:
                continue
            if found is False:
                return None
            if isinstance(found, RawFrame):
                self._next += 1
                if self._next > number:
                    return found.colour
        return None

    def take(self) -> Any:
        """Return the next queued packet in the form that Decoder takes, or None where none waits."""
        if not self._waiting:
            return None
        recorded = self._waiting.popleft()
        packet = None
        if recorded.data:
            # Not av.Packet(data): that refers to the bytes as they lie, and decoders read on into the padding
            # behind a packet, which must be zeros; garbage there changed pixels in about every second process.
            packet = av.Packet(len(recorded.data))
            packet.update(recorded.data)
            packet.pts, packet.dts, packet.time_base = recorded.pts, recorded.dts, self._time_base
            packet.is_keyframe, packet.is_corrupt = recorded.is_key, recorded.is_corrupt
        return _RecordedPacket(recorded, packet, self._codec)


def _open_codec(stream: r.Stream) -> Any:
    """Return a decoding context like the one whose packets were recorded."""
    codec: Any = av.CodecContext.create(stream.codec, "r")
    options = {
        "extradata": stream.extradata,
        "width": stream.width,
        "height": stream.height,
        "pix_fmt": stream.pixel_format,
    }
    if stream.codec_tag.strip("\0"):
        options["codec_tag"] = stream.codec_tag
    for name, value in options.items():
        if value:
            setattr(codec, name, value)
    return codec


class _Packets:
    """An iterator that can go on after it ran dry: more packets come from the recording."""

    def __init__(self, owner: _PacketDecoder):
        self._owner = owner

    def __iter__(self) -> "_Packets":
        return self

    def __next__(self) -> Any:
        packet = self._owner.take()
        if packet is None:
            raise StopIteration
        return packet


class _RecordedPacket:
    """A packet of no container, decoded by the context of the recording."""

    def __init__(self, recorded: r.Packet, packet: Any, codec: Any):
        self.size = len(recorded.data)
        self.is_discard = recorded.is_discard
        self.is_corrupt = recorded.is_corrupt
        self._packet = packet
        self._codec = codec

    def decode(self) -> list[Any]:
        frames = self._codec.decode(self._packet)
        return [] if self.is_discard else frames


class _LazyDecoder(Decoder):
    """Converts pixels only of the frame that is wanted, where conversion leaves no trace in later frames."""

    wanted = True

    def __init__(self, container: Any, info: SourceInfo, config: SourceConfig, scale: PixelScale):
        super().__init__(container, info, config, scale)
        self._blockiness: Any = _Unasked()  # whether a frame is damaged was recorded

    def _bgr(self, frame: Any) -> np.ndarray:
        if self.wanted or frame.format.components[0].bits > 8:
            return super()._bgr(frame)
        return _NO_PIXELS


class _Unasked:
    def is_damaged(self, colour: np.ndarray) -> bool:
        return False


_NO_PIXELS = np.zeros((1, 1, 3), np.uint8)
