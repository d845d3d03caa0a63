"""Checkpoints of all learned state: versioned, checksummed, replaced whole, the last few kept.

Called by agent/process/app.py and replays to save and to start again, by tools to look inside. It must not know what
the arrays mean: that is the stages' business, and `STATE_VERSION` counts its changes.

A file is an 8-byte magic (its last byte is the container's version), the header's length and CRC32C (u32 each),
a JSON header {state_version, meta, arrays: [{name, dtype, shape, offset}]}, the arrays' bytes, and the SHA-256 of
everything before it.
"""

import hashlib
import json
import logging
import pathlib
import struct
from collections.abc import Callable
from typing import Any

import google_crc32c
import numpy as np

from stillwatch.base import SnapshotError, State
from stillwatch.transport.disk import write_durably

MAGIC = b"SWCKPT\x00\x01"
STATE_VERSION = 2
SUFFIX = ".swck"
MAX_HEADER_BYTES = 16 * 1024 * 1024
_KINDS = "biufcSU"
_PREFIX = struct.Struct("<II")
_ALIGN = 64

Meta = dict[str, Any]
# From a state version to the next: takes and returns (state, meta). Add an entry whenever STATE_VERSION rises.
MIGRATIONS: dict[int, Callable[[State, Meta], tuple[State, Meta]]] = {}

logger = logging.getLogger(__name__)


class VersionError(SnapshotError):
    """The checkpoint is whole, but of a version that cannot be read: not set aside, and no other is taken instead."""


def encode(state: State, meta: Meta) -> bytes:
    """Return a checkpoint as bytes.

    Raises
    ------
    SnapshotError
        An array of a dtype that has no plain bytes, or meta that is not JSON.
    """
    entries, chunks, offset = [], [], 0
    for name in sorted(state):
        array = np.asarray(state[name])
        shape = array.shape
        if array.dtype.kind not in _KINDS:
            raise SnapshotError(f"checkpoint: {name} has dtype {array.dtype}, which cannot be saved")
        data = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
        entries.append({"name": name, "dtype": array.dtype.newbyteorder("<").str, "shape": shape, "offset": offset})
        padding = -len(data) % _ALIGN
        chunks += [data, b"\0" * padding]
        offset += len(data) + padding
    try:
        header = json.dumps({"state_version": STATE_VERSION, "meta": meta, "arrays": entries}).encode()
    except (TypeError, ValueError) as error:
        raise SnapshotError(f"checkpoint: meta cannot be saved: {error}") from error
    body = b"".join([MAGIC, _PREFIX.pack(len(header), google_crc32c.value(header)), header, *chunks])
    return body + hashlib.sha256(body).digest()


def decode(data: bytes, where: str) -> tuple[State, Meta]:
    """Return (state, meta) of checkpoint bytes, migrated to this version's meaning.

    Raises
    ------
    SnapshotError
        Damaged, or of a version that this one cannot read.
    """
    header, start = _decode_header(data, where)
    if hashlib.sha256(memoryview(data)[:-32]).digest() != data[-32:]:
        raise SnapshotError(f"{where}: checksum differs: the checkpoint is damaged")
    version, meta = header["state_version"], header["meta"]
    if version > STATE_VERSION:
        raise VersionError(f"{where}: state version {version} is newer than {STATE_VERSION}: update stillwatch")
    state = {}
    for entry in header["arrays"]:
        dtype = np.dtype(entry["dtype"])
        count = int(np.prod(entry["shape"], dtype=np.int64))
        array = np.frombuffer(data, dtype, count, start + entry["offset"]).reshape(entry["shape"])
        state[entry["name"]] = array.astype(dtype.newbyteorder("="), copy=True)
    while version < STATE_VERSION:
        if version not in MIGRATIONS:
            raise VersionError(
                f"{where}: state version {version}, this stillwatch reads {STATE_VERSION}: go on with the version that "
                "wrote it, or start with --fresh"
            )
        state, meta = MIGRATIONS[version](state, meta)
        version += 1
    return state, meta


def _decode_header(data: bytes, where: str) -> tuple[dict[str, Any], int]:
    """Return the checked JSON header and the offset of the first array."""
    start = len(MAGIC) + _PREFIX.size
    if len(data) < start + 32 or data[: len(MAGIC) - 1] != MAGIC[:-1]:
        raise SnapshotError(f"{where}: not a whole checkpoint ({len(data)} bytes)")
    if data[len(MAGIC) - 1] != MAGIC[-1]:
        # One byte decides: a flipped bit there must not pass for a version, so the whole is checked first.
        if hashlib.sha256(memoryview(data)[:-32]).digest() != data[-32:]:
            raise SnapshotError(f"{where}: checksum differs: the checkpoint is damaged")
        raise VersionError(f"{where}: checkpoint format {data[len(MAGIC) - 1]} is not {MAGIC[-1]}: update stillwatch")
    length, crc = _PREFIX.unpack_from(data, len(MAGIC))
    raw = data[start : start + length]
    if length > MAX_HEADER_BYTES or len(raw) != length or google_crc32c.value(raw) != crc:
        raise SnapshotError(f"{where}: the checkpoint's header is damaged")
    return json.loads(raw), start + length


def read(path: pathlib.Path | str) -> tuple[State, Meta]:
    """Return (state, meta) of one file; SnapshotError if it is damaged, of another version or unreadable."""
    try:
        data = pathlib.Path(path).read_bytes()
    except OSError as error:
        raise SnapshotError(f"{path}: cannot be read: {error.strerror}") from error
    return decode(data, str(path))


def read_header(path: pathlib.Path | str) -> dict[str, Any]:
    """Return the header alone ({state_version, meta, arrays}); the arrays are not read or checked."""
    try:
        with open(path, "rb") as stream:
            start = stream.read(len(MAGIC) + _PREFIX.size)
            length = _PREFIX.unpack(start[len(MAGIC) :])[0] if len(start) == len(MAGIC) + _PREFIX.size else 0
            data = start + stream.read(min(length, MAX_HEADER_BYTES) + 32)
    except OSError as error:
        raise SnapshotError(f"{path}: cannot be read: {error.strerror}") from error
    return _decode_header(data, str(path))[0]


def files(folder: pathlib.Path | str) -> list[pathlib.Path]:
    """Return the checkpoints of a folder, oldest first."""
    return sorted(path for path in pathlib.Path(folder).glob(f"checkpoint-*{SUFFIX}") if _number(path) >= 0)


def newest_state(folder: pathlib.Path | str) -> State | None:
    """Return the state of the newest checkpoint that can be read, None where there is none; nothing is changed."""
    for path in reversed(files(folder)):
        try:
            return read(path)[0]
        except SnapshotError:
            continue
    return None


def save(folder: pathlib.Path | str, state: State, meta: Meta, keep: int = 3, spread: int = 0) -> pathlib.Path:
    """Write a checkpoint so that a crash at any moment leaves the old or the new one, and return its path.

    Temporary file, fsync, rename, fsync of the folder; then all but the last `keep` are deleted, and of the older
    ones at most `spread` are left, evenly spaced from the first on: a replay may begin near any of them.

    Raises
    ------
    SnapshotError
        The disk refuses (full, read-only, gone); the earlier checkpoints are untouched.
    """
    folder = pathlib.Path(folder)
    data = encode(state, meta)
    path = None
    try:
        folder.mkdir(exist_ok=True)  # never its parents: below them a disk may have gone
        taken = [_number(path) for path in folder.glob(f"checkpoint-*{SUFFIX}*")]
        path = folder / f"checkpoint-{max(taken, default=0) + 1:08d}{SUFFIX}"
        write_durably(path, data)
    except OSError as error:
        if path is not None:
            _discard(path.with_name(f"{path.name}.tmp"))
        raise SnapshotError(f"{folder}: checkpoint not saved: {error.strerror or error}") from error
    older = files(folder)[:-keep]
    _delete(older if spread == 0 else _between(older, spread))
    return path


def load_newest(
    folder: pathlib.Path | str, damaged: list[str] | None = None
) -> tuple[State, Meta, pathlib.Path] | None:
    """Return (state, meta, path) of the newest good checkpoint, or None where there is none.

    Damaged ones are renamed `*.damaged`, logged, and their messages appended to `damaged`.

    Raises
    ------
    SnapshotError
        The newest whole one is of a version that cannot be read.
    """
    for path in reversed(files(folder)):
        try:
            state, meta = read(path)
        except VersionError:
            raise
        except SnapshotError as error:
            _set_aside(path, str(error))
            if damaged is not None:
                damaged.append(str(error))
            continue
        return state, meta, path
    return None


def _discard(path: pathlib.Path) -> None:
    """Delete a temporary file where the disk still lets us; the next save overwrites it otherwise."""
    try:
        path.unlink(missing_ok=True)
    except OSError:
        logger.info("%s: left behind", path)


def _number(path: pathlib.Path) -> int:
    digits = path.name.split(".")[0].removeprefix("checkpoint-")
    return int(digits) if digits.isdigit() else -1


def _set_aside(path: pathlib.Path, why: str) -> None:
    logger.warning("%s; it is set aside and the one before is used", why)
    try:
        path.rename(path.with_name(f"{path.name}.damaged"))
    except OSError as error:
        logger.warning("%s: cannot be renamed: %s", path, error.strerror)
    _delete(sorted(path.parent.glob(f"checkpoint-*{SUFFIX}.damaged"))[:-3])


def _between(older: list[pathlib.Path], spread: int) -> list[pathlib.Path]:
    """Return those that must go for at most `spread` to stay: every number that is no multiple of a power of two."""
    stride = 1
    while older and _number(older[-1]) // stride > spread:
        stride *= 2
    return [path for path in older if _number(path) % stride]


def _delete(paths: list[pathlib.Path]) -> None:
    for path in paths:
        try:
            path.unlink()
        except OSError as error:
            logger.warning("%s: old checkpoint cannot be deleted: %s", path, error.strerror)
