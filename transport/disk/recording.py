"""What a recording holds: its record kinds, each with a typed msgpack body, and their reader.

Written by agent/restart/recorder.py, read by agent/sources/recording.py and the tools. It must only grow: kinds and
fields are added with defaults, never changed or used again, so that every recording ever made opens.

A recording is the record log `recording-*.swlog`. Every file begins with the session and the open streams, so each
can be read alone. Packets stand before the frames that they make; a frame's records stand in the order things
happened to it: frame, decision, activation, checkpoint. Published messages are in it too, as in a run folder.
"""

import pathlib
from collections.abc import Iterator
from typing import Any

import msgspec

from stillwatch.transport.disk.record_format import Damage, Record, log_files, read_file
from stillwatch.transport.disk.record_log import read_records
from stillwatch.transport.disk.run_folder import KIND_MESSAGE, RECORDING_NAME
from stillwatch.transport.wire import DecodeError, LogError

FORMAT = 1


class _Body(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A record's body: a msgpack map; unknown fields are ignored, missing ones take their default."""


class Session(_Body, frozen=True, kw_only=True):
    """One start of the agent. `versions`, `cpu`: what the same bits depend on."""

    format: int = FORMAT
    agent: str = ""
    run: str = ""
    boot: str = ""
    config_text: str = ""
    config_hash: str = ""
    versions: dict[str, str] = {}
    cpu: list[str] = []
    source_uri: str = ""
    source_kind: str = ""
    live: bool = False
    mode: str = "packets"
    wall_ns: int = 0
    mono_ns: int = 0
    resumed_from: str = ""


class Stream(_Body, frozen=True, kw_only=True):
    """A decoder was opened: all that is needed to open the same one again.

    `stream` counts from 0; `decoded`: frames out of all decoders before; `continues`: it was opened in an earlier
    file, so that reading begins at its next key frame.
    """

    stream: int
    codec: str
    extradata: bytes = b""
    width: int = 0
    height: int = 0
    pixel_format: str = ""
    codec_tag: str = ""
    time_base: tuple[int, int] = (1, 1)
    stampless: bool = False
    decoded: int = 0
    continues: bool = False


class Packet(_Body, frozen=True, kw_only=True):
    """One compressed packet of a stream, as the camera sent it; empty `data` flushes the decoder."""

    stream: int
    data: bytes = b""
    pts: int | None = None
    dts: int | None = None
    is_key: bool = False
    is_corrupt: bool = False
    is_discard: bool = False


class KeyFrame(_Body, frozen=True, kw_only=True):
    """A key frame came out of a decoder as number `decoded`: what a reader that begins at its packet counts from."""

    stream: int
    decoded: int
    pts: int | None = None


class FrameRecord(_Body, frozen=True, kw_only=True):
    """One frame that the pipeline took. Frames dropped before it have packets but no frame record.

    `decoded`: which frame out of the decoders it is, or -1 where `image` holds its pixels (at the working size).
    `pixels`: CRC32C of the colour pixels that the pipeline saw.
    """

    sequence: int
    t_ns: int
    mono_ns: int = 0
    wall_ns: int = 0
    source_ns: int | None = None
    epoch: int = 0
    flags: int = 0
    nav: tuple[float, float, float, float, float] | None = None
    width: int = 0
    height: int = 0
    pixel_format: str = ""
    pixels: int = 0
    decoded: int = -1
    rotation: int = 0
    image: bytes = b""
    image_format: str = ""


class Decision(_Body, frozen=True, kw_only=True):
    """What the agent made of one frame. `value` and `rarity` are None where it was not scored."""

    sequence: int
    accepted: bool = True
    reason: str = ""
    state: str = ""
    scene_change: bool = False
    value: float | None = None
    rarity: float | None = None
    event: int = -1


class Drop(_Body, frozen=True, kw_only=True):
    """Frames lost before the pipeline, counted since the last such record."""

    count: int
    before_sequence: int = -1
    reason: str = "late"


class Activation(_Body, frozen=True, kw_only=True):
    """A new model became active at this frame; `hash` is of all learned state then."""

    sequence: int
    hash: str = ""
    accepted: int = 0
    model_epoch: int = 0


class Journal(_Body, frozen=True, kw_only=True):
    """Something that entered the pipeline from outside, tied to the next frame: a command, a change of sampling."""

    before_sequence: int
    command: str
    arguments: dict[str, Any] = {}
    wall_ns: int = 0


class Checkpoint(_Body, frozen=True, kw_only=True):
    """A checkpoint was saved after this frame; `file` is its name in the recording's checkpoints folder."""

    sequence: int
    accepted: int
    file: str
    hash: str = ""


class End(_Body, frozen=True, kw_only=True):
    """The session ended by itself or was asked to. `hash` is of all learned state at the end."""

    frames: int
    accepted: int = 0
    hash: str = ""
    reason: str = ""
    dropped: int = 0
    summary: dict[str, Any] = {}


BODIES: dict[int, type[_Body]] = {
    32: Session, 33: Stream, 34: Packet, 35: FrameRecord, 36: Decision, 37: Drop, 38: Activation, 39: Journal,
    40: Checkpoint, 41: End, 42: KeyFrame,
}  # fmt: skip
KIND_OF: dict[type[_Body], int] = {body: kind for kind, body in BODIES.items()}
KIND_NAMES = {1: "gap", KIND_MESSAGE: "message", 17: "config", **{k: b.__name__.lower() for k, b in BODIES.items()}}
_ENCODER = msgspec.msgpack.Encoder()
_DECODERS = {kind: msgspec.msgpack.Decoder(body) for kind, body in BODIES.items()}


def encode_body(body: _Body) -> bytes:
    """Return the msgpack bytes of a record's body."""
    return _ENCODER.encode(body)


def decode_body(record: Record) -> _Body | None:
    """Return the typed body of a record, None for kinds that are not of this table; DecodeError if it is malformed."""
    decoder = _DECODERS.get(record.kind)
    if decoder is None:
        return None
    try:
        return decoder.decode(record.body)
    except msgspec.MsgspecError as error:
        name = KIND_NAMES[record.kind]
        raise DecodeError(f"{record.file.name}: {name} record at offset {record.offset}: {error}") from error


def read_recording(
    folder: pathlib.Path | str, *, damage: list[Damage] | None = None, from_record: int = 0
) -> Iterator[tuple[Record, _Body | None]]:
    """Yield (record, typed body) of a recording in order; bodies of messages and later kinds are None.

    Raises
    ------
    LogError
        No recording there, or it is of a later format.
    """
    folder = pathlib.Path(folder)
    if not folder.is_file() and not log_files(folder, RECORDING_NAME):
        raise LogError(f"{folder}: holds no recording; give what --record named")
    notes: list[Damage] = [] if damage is None else damage
    for record in read_records(folder, name=RECORDING_NAME, damage=notes, from_sequence=from_record):
        try:
            body = decode_body(record)
        except DecodeError as error:
            end = record.offset + len(record.body)
            notes.append(Damage(record.file, record.offset, end, str(error), record.sequence, record.kind))
            continue
        if isinstance(body, Session) and body.format > FORMAT:
            raise LogError(f"{folder}: recording format {body.format} is newer than {FORMAT}: update stillwatch")
        yield record, body


def first_session(path: pathlib.Path) -> Session:
    """Return a recording's first session; LogError where there is none."""
    for _, file in log_files(path, RECORDING_NAME):
        for record in read_file(file, []):
            body = decode_body(record)
            if isinstance(body, Session):
                return body
    raise LogError(f"{path}: holds no recording with a session; give what --record named, or try: stillwatch recover")


def last_frame(path: pathlib.Path) -> FrameRecord | None:
    """Return the last frame record, looking at the last files only."""
    for _, file in reversed(log_files(path, RECORDING_NAME)):
        found = None
        for record in read_file(file, []):
            if record.kind == KIND_OF[FrameRecord]:
                found = record
        if found is not None:
            body = decode_body(found)
            assert isinstance(body, FrameRecord)
            return body
    return None
