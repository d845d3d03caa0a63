"""Records frames and everything the agent decides about them, so that a replay sees and decides the same.

Made by agent/process/app.py; listens to the source's packets (capture thread), is told of frames and decisions
(pipeline thread) and carries messages (sender thread). It must not slow the camera for a disk, nor change what a
stage sees, but for JPEG mode, where the pipeline is given the decoded JPEG.
"""

import dataclasses
import logging
import math
import pathlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import cv2
import google_crc32c
import msgspec
import numpy as np

from stillwatch.base import Clock, Frame, Nav, cpu_features, versions
from stillwatch.pipeline import RunCounts
from stillwatch.restart import checkpoint
from stillwatch.settings import Config
from stillwatch.sources import Source
from stillwatch.transport.disk import (
    KIND_CONFIG,
    KIND_MESSAGE,
    RECORDING_NAME,
    LastModels,
    RecordWriter,
    Retention,
    pack_message,
    write_durably,
)
from stillwatch.transport.disk import recording as r
from stillwatch.transport.wire import Message

JPEG_QUALITY = 92
PNG_LEVEL = 1  # measured on 384x288: 4.6 ms and 23 % of raw; level 6 takes 18 ms for 18 %
REORDERED_FRAMES = 16  # most frames that a decoder may still owe from before a key frame (H.264, H.265)
FRAMES_REMEMBERED = 512
CHECKPOINTS_SPREAD = 32  # beside the newest: where `replay --from` may begin

logger = logging.getLogger(__name__)


class Recorder:
    """Writes one recording; its methods may be called from any thread.

    Parameters
    ----------
    folder : Path
        An existing recording is continued.
    config : Config
    clock : Clock
    session : recording.Session
        Who records what, as far as the caller knows; versions, CPU and times are added here.
    resumed : Path, optional
        The checkpoint that the agent went on from; a copy is kept in the recording, as a replay must begin there too.
    on_state : callable, optional
        Called with (state, message) when the disk stops or begins to take records.
    """

    def __init__(
        self,
        folder: pathlib.Path,
        config: Config,
        clock: Clock,
        session: r.Session,
        *,
        resumed: pathlib.Path | None = None,
        on_state: Callable[[str, str], None] | None = None,
    ):
        storage = config.storage
        self.folder = pathlib.Path(folder)
        self.mode = storage.record_frames
        self._lock = threading.Lock()
        self._session = msgspec.structs.replace(
            session,
            versions=versions(),
            cpu=cpu_features(),
            mode=self.mode,
            wall_ns=clock.wall_ns(),
            mono_ns=clock.monotonic_ns(),
            resumed_from=self._keep(resumed, session.run) if resumed else "",
        )
        self._models = LastModels()
        self._streams = 0
        self._stream: r.Stream | None = None
        self._decoded = 0
        self._turned: OrderedDict[int, int] = OrderedDict()  # rotation of the last decoded frames
        self._whole_from = 0  # frames decoded before this one lack packets: their pixels are stored instead
        self._next_sequence = -1
        self._frames = 0
        self._accepted = 0
        retention = Retention(
            self.folder,
            name=RECORDING_NAME,
            clock=clock,
            max_bytes=storage.max_bytes,
            min_free_bytes=storage.min_free_bytes,
            max_age_s=storage.max_age_days * 86_400.0,
        )
        self._writer = RecordWriter(
            self.folder,
            RECORDING_NAME,
            clock=clock,
            preamble=self._preamble,
            room=retention,
            on_state=on_state,
            max_file_bytes=min(storage.max_file_bytes, max(storage.max_bytes // 8, 1_000_000)),
            max_file_s=storage.max_file_s,
        )
        if self._writer.state == "ok" and not self._writer.began_file:
            for kind, body in self._preamble():
                self._writer.append(kind, body)

    @property
    def state(self) -> str:
        """Of the log: "ok", "disk_full", "read_only", "gone" or "failed"."""
        return self._writer.state

    @property
    def checkpoints(self) -> pathlib.Path:
        """Where checkpoints for `replay --from` go."""
        return self.folder / "checkpoints"

    def counters(self) -> dict[str, int]:
        """Return frames recorded, bytes written, and records and bytes that the disk refused."""
        writer = self._writer
        return {
            "frames": self._frames,
            "bytes": writer.written_bytes,
            "lost_records": writer.lost_records,
            "lost_bytes": writer.lost_bytes,
        }

    def _keep(self, resumed: pathlib.Path, run: str) -> str:
        """Copy the checkpoint beside the recording's own, out of reach of their rotation; return the copy's name."""
        copy = self.checkpoints / f"resumed-{run}{checkpoint.SUFFIX}"
        try:
            self.checkpoints.mkdir(parents=True, exist_ok=True)
            write_durably(copy, resumed.read_bytes())
        except OSError as error:
            logger.warning("%s: not copied, a replay must begin later: %s", resumed, error.strerror or error)
        return copy.name

    def _preamble(self) -> list[tuple[int, bytes]]:
        """Return what a file needs to be read without those before it."""
        session = self._session
        info = {
            "config_text": session.config_text,
            "config_hash": session.config_hash,
            "agent": session.agent,
            "run": session.run,
            "versions": session.versions,
        }
        head = [(KIND_CONFIG, msgspec.msgpack.encode(info)), (r.KIND_OF[r.Session], r.encode_body(session))]
        if self._stream is not None:
            stream = msgspec.structs.replace(self._stream, decoded=self._decoded, continues=True)
            head.append((r.KIND_OF[r.Stream], r.encode_body(stream)))
        return head + [(KIND_MESSAGE, pack_message(*known)) for known in self._models.payloads()]

    def _append(self, body: Any, t_ns: int | None = None) -> bool:
        with self._lock:
            return self._write(body, t_ns)

    def _write(self, body: Any, t_ns: int | None = None) -> bool:
        """Append under the lock that the caller holds."""
        return self._writer.append(r.KIND_OF[type(body)], r.encode_body(body), t_ns) >= 0

    # -- capture thread: the source's packets ------------------------------------------------------------------

    def tap(self, source: Source) -> Source:
        """Listen to the packets of a source, if it has any and they are to be recorded; returns the source."""
        if self.mode == "packets" and hasattr(source, "packet_tap"):
            source.packet_tap = self
        return source

    def stream(self, codec: Any, time_base: Any, stampless: bool) -> None:
        """Note that a decoder was opened: a replay lets go of the one before it here, so frames of that still to be
        recorded are stored as pixels."""
        base = (time_base.numerator, time_base.denominator) if time_base else (1, 1)
        stream = r.Stream(
            stream=self._streams,
            codec=codec.name,
            extradata=bytes(codec.extradata or b""),
            width=codec.width,
            height=codec.height,
            pixel_format=codec.pix_fmt or "",
            codec_tag=codec.codec_tag,
            time_base=base,
            stampless=stampless,
            decoded=self._decoded,
        )
        self._streams += 1
        with self._lock:  # as one: between them a frame of the stream before would count on a decoder that is gone
            self._stream = stream
            self._whole_from = self._decoded if self._write(stream) else 2**62

    def packet(self, packet: Any) -> None:
        """Record one packet; where the disk refuses it, frames are stored as pixels until the next key frame."""
        stream = self._stream
        assert stream is not None
        body = r.Packet(
            stream=stream.stream,
            data=bytes(packet) if packet.size else b"",
            pts=packet.pts,
            dts=packet.dts,
            is_key=packet.is_keyframe,
            is_corrupt=packet.is_corrupt,
            is_discard=packet.is_discard,
        )
        if not self._append(body):
            self._whole_from = 2**62
        elif self._whole_from == 2**62 and packet.is_keyframe:
            self._whole_from = self._decoded + REORDERED_FRAMES

    def decoded(self, frame: Any) -> int:
        """Return the number of a frame that came out of the decoder."""
        number = self._decoded
        self._decoded += 1
        self._turned[number] = round(frame.rotation) % 360
        while len(self._turned) > FRAMES_REMEMBERED:
            self._turned.popitem(last=False)
        if frame.key_frame and self._stream is not None:
            self._append(r.KeyFrame(stream=self._stream.stream, decoded=number, pts=frame.pts))
        return number

    # -- pipeline thread: frames and decisions -----------------------------------------------------------------

    def frame(self, frame: Frame) -> Frame:
        """Record one frame before it is judged, and return the frame that the pipeline must see.

        That is the same one, but in JPEG mode one with the pixels of the decoded JPEG.
        """
        if 0 <= self._next_sequence < frame.sequence:
            missing = frame.sequence - self._next_sequence
            self._append(r.Drop(count=missing, before_sequence=frame.sequence), frame.t_ns)
        self._next_sequence = frame.sequence + 1
        if self.mode == "jpeg":
            image = _encoded(frame.colour, ".jpg", [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])
            frame = _with_pixels(frame, image)
            self._frames += self._append(_record(frame, image=image, image_format="jpeg"), frame.t_ns)
            return frame
        by_packets = _record(frame, decoded=frame.decoded, rotation=self._turned.get(frame.decoded, 0))
        with self._lock:
            if frame.decoded >= self._whole_from:
                self._frames += self._write(by_packets, frame.t_ns)
                return frame
        image = _encoded(frame.colour, ".png", [cv2.IMWRITE_PNG_COMPRESSION, PNG_LEVEL])
        pixels = msgspec.structs.replace(by_packets, decoded=-1, rotation=0, image=image, image_format="png")
        self._frames += self._append(pixels, frame.t_ns)
        return frame

    def image(self, sequence: int, t_ns: int, wall_ns: int, data: bytes, image_format: str, colour: np.ndarray) -> None:
        """Record a frame that comes as an encoded image of any size, byte for byte; `colour` are its pixels."""
        height, width = colour.shape[:2]
        self._frames += self._append(
            r.FrameRecord(
                sequence=sequence,
                t_ns=t_ns,
                mono_ns=t_ns,
                wall_ns=wall_ns,
                source_ns=t_ns,
                width=width,
                height=height,
                image=data,
                image_format=image_format,
            ),
            t_ns,
        )

    def decision(
        self,
        frame: Frame,
        *,
        accepted: bool,
        reason: str = "",
        state: str = "",
        scene_change: bool = False,
        value: float | None = None,
        rarity: float | None = None,
        event: int = -1,
    ) -> None:
        """Record what the gate, novelty and events made of the frame."""
        self._accepted += accepted
        self._append(
            r.Decision(
                sequence=frame.sequence,
                accepted=accepted,
                reason=reason,
                state=state,
                scene_change=scene_change,
                value=_finite(value),
                rarity=_finite(rarity),
                event=event,
            ),
            frame.t_ns,
        )

    def activation(self, frame: Frame, state_hash: str, model_epoch: int) -> None:
        """Record that a new model became active at this frame, with the hash of all learned state."""
        self._append(
            r.Activation(sequence=frame.sequence, hash=state_hash, accepted=self._accepted, model_epoch=model_epoch),
            frame.t_ns,
        )

    def journal(self, before_sequence: int, command: str, arguments: dict[str, Any], wall_ns: int = 0) -> None:
        """Record something from outside that takes effect before this frame."""
        self._append(r.Journal(before_sequence=before_sequence, command=command, arguments=arguments, wall_ns=wall_ns))

    def saved(self, sequence: int, accepted: int, path: pathlib.Path, state_hash: str) -> None:
        """Record that a checkpoint was saved after this frame."""
        self._append(r.Checkpoint(sequence=sequence, accepted=accepted, file=path.name, hash=state_hash))

    # -- sender thread: messages -------------------------------------------------------------------------------

    def open(self) -> None:
        """Carrier: the log is open since it was made."""

    def carry(self, kind: str, payload: bytes, message: Message) -> None:
        """Carrier: record one published message."""
        with self._lock:
            if self._writer.append(KIND_MESSAGE, pack_message(kind, payload), message.t_ns) >= 0:
                self._models.take(kind, payload)

    def poll(self) -> None:
        """Carrier: nobody asks a recording for anything."""

    def close(self) -> None:
        """Carrier: left to `end`, which still has the summary to write."""

    def end(self, counts: RunCounts | None, state_hash: str, reason: str = "") -> None:
        """Write the session's end and close the log; no counts: frames were written that nobody judged."""
        known = counts or RunCounts(frames=self._frames)
        self._append(
            r.End(
                frames=known.frames,
                accepted=known.accepted,
                hash=state_hash,
                reason=reason,
                dropped=known.dropped,
                summary={**known.as_dict(), "hash": state_hash} if counts else {},
            )
        )
        with self._lock:
            self._writer.close()


def pixel_checksum(colour: np.ndarray) -> int:
    """Return the CRC32C of a frame's colour pixels, by which a replay knows that it sees the same ones."""
    return google_crc32c.value(np.ascontiguousarray(colour).tobytes())


def _record(frame: Frame, **pixels: Any) -> r.FrameRecord:
    """Return a frame's record; `pixels` say where its pixels are."""
    height, width = frame.colour.shape[:2]
    return r.FrameRecord(
        sequence=frame.sequence,
        t_ns=frame.t_ns,
        mono_ns=frame.mono_ns,
        wall_ns=frame.wall_ns,
        source_ns=frame.source_ns,
        epoch=frame.epoch,
        flags=int(frame.flags),
        nav=_nav(frame.nav),
        width=width,
        height=height,
        pixels=pixel_checksum(frame.colour),
        **pixels,
    )


def _encoded(colour: np.ndarray, suffix: str, options: list[int]) -> bytes:
    done, data = cv2.imencode(suffix, colour, options)
    assert done
    return data.tobytes()


def _with_pixels(frame: Frame, image: bytes) -> Frame:
    """Return the frame with the pixels of an encoded image."""
    colour = cv2.imdecode(np.frombuffer(image, np.uint8), cv2.IMREAD_COLOR)
    assert colour is not None
    grey = cv2.cvtColor(colour, cv2.COLOR_BGR2GRAY)
    colour.flags.writeable = False
    grey.flags.writeable = False
    return dataclasses.replace(frame, grey=grey, colour=colour)


def _nav(nav: Nav) -> tuple[float, float, float, float, float] | None:
    values = (nav.latitude, nav.longitude, nav.depth_m, nav.altitude_m, nav.heading_deg)
    return None if all(math.isnan(value) for value in values) else values


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)
