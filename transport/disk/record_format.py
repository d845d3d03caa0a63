"""The bytes of a record log: file magic, record header, checksums, and the reader that survives damage.

Used by transport/disk/record_log.py (writer and folders), retention, recordings, outbox and the recovery tool. It
never writes.

A file is an 8-byte magic and then records. A record is a 36-byte little-endian header and its body:
sync (4), kind u16, flags u16 (0), body length u32, sequence u64, time i64 in ns, CRC32C of the body u32,
CRC32C of the 32 header bytes before it u32. The two checksums are apart so that a damaged body costs one record,
whose length is still trusted, and only a damaged header makes the reader search for the next sync word.
"""

import os
import pathlib
import struct
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

import google_crc32c

FILE_MAGIC = b"SWLOG\x00\x00\x01"  # the last byte is the format's version
SUFFIX = ".swlog"
SYNC = b"\xf1SW\xa7"
HEADER = struct.Struct("<4sHHIQqII")
HEADER_BYTES = HEADER.size
MAX_BODY_BYTES = 64 * 1024 * 1024
KIND_GAP = 1  # kinds 0-15 belong to the log itself
FIRST_FREE_KIND = 16
_SEARCH_BYTES = 1 << 20


class Record(NamedTuple):
    """One whole record and where it stands."""

    kind: int
    sequence: int
    t_ns: int
    body: bytes
    file: pathlib.Path
    offset: int


class Damage(NamedTuple):
    """Bytes [offset, end) of `file` that could not be read as records; sequence and kind where they are known."""

    file: pathlib.Path
    offset: int
    end: int
    reason: str
    sequence: int | None = None
    kind: int | None = None

    def __str__(self) -> str:
        what = "" if self.sequence is None else f" (record {self.sequence}, kind {self.kind})"
        return f"{self.file.name}: {self.reason} at offset {self.offset}, {self.end - self.offset} bytes{what}"


class Header(NamedTuple):
    """The checked header of a record."""

    kind: int
    length: int
    sequence: int
    t_ns: int
    body_crc: int


def encode_header(kind: int, sequence: int, t_ns: int, body: bytes) -> bytes:
    """Return the 36 header bytes of a record."""
    packed = HEADER.pack(SYNC, kind, 0, len(body), sequence, t_ns, google_crc32c.value(body), 0)[:-4]
    return packed + struct.pack("<I", google_crc32c.value(packed))


def decode_header(data: bytes) -> Header | None:
    """Return the header in the first 36 bytes, or None if sync word, checksum or length is wrong."""
    if len(data) < HEADER_BYTES or data[:4] != SYNC:
        return None
    _, kind, _, length, sequence, t_ns, body_crc, header_crc = HEADER.unpack_from(data)
    if google_crc32c.value(bytes(data[: HEADER_BYTES - 4])) != header_crc or length > MAX_BODY_BYTES:
        return None
    return Header(kind, length, sequence, t_ns, body_crc)


def file_name(name: str, first_sequence: int) -> str:
    """Return the name of the file whose first record has this sequence number; names sort in that order."""
    return f"{name}-{first_sequence:012d}{SUFFIX}"


def log_files(folder: pathlib.Path | str, name: str | None = None) -> list[tuple[int, pathlib.Path]]:
    """Return (first sequence, path) of a log's files in order; files with other names are left alone.

    `name` None takes every log in the folder.
    """
    found = []
    for path in pathlib.Path(folder).glob(f"*{SUFFIX}"):
        stem, _, digits = path.name[: -len(SUFFIX)].rpartition("-")
        if digits.isdigit() and stem and (name is None or stem == name):
            found.append((int(digits), path))
    return sorted(found)


def read_file(path: pathlib.Path, damage: list[Damage], offset: int = 0) -> Iterator[Record]:
    """Yield every whole record of one file in order; append to `damage` what lies between them.

    Parameters
    ----------
    offset : int
        Where to begin; 0 checks the magic too. Any other value should be the start of a record.

    Raises
    ------
    OSError
        The file cannot be opened or read.
    """
    with open(path, "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        position = offset
        if position == 0:
            magic = stream.read(len(FILE_MAGIC))
            if magic != FILE_MAGIC:
                torn = FILE_MAGIC.startswith(magic)
                reason = "torn end" if torn else f"damaged file magic {magic.hex()}"
                damage.append(Damage(path, 0, min(size, len(FILE_MAGIC)), reason))
            position = len(FILE_MAGIC)
        while position < size:
            stream.seek(position)
            head = stream.read(HEADER_BYTES)
            header = decode_header(head)
            if header is None:
                position = _skip_damage(stream, path, position, size, head, damage)
                continue
            end = position + HEADER_BYTES + header.length
            if end > size:
                # A whole header whose body is not all there: the tail, or a length that lies inside other damage.
                found = _find_header(stream, position + 1, size)
                damage.append(Damage(path, position, found, "torn end", header.sequence, header.kind))
                position = found
                continue
            body = stream.read(header.length)
            if google_crc32c.value(body) == header.body_crc:
                yield Record(header.kind, header.sequence, header.t_ns, body, path, position)
            else:
                damage.append(Damage(path, position, end, "damaged body", header.sequence, header.kind))
            position = end


def _skip_damage(
    stream: BinaryIO, path: pathlib.Path, position: int, size: int, head: bytes, damage: list[Damage]
) -> int:
    """Report the damage at `position` and return where the next good header starts, or the file's size."""
    found = _find_header(stream, position + 1, size)
    torn = found == size and (is_torn_head(head) or _is_zero(stream, position, size))
    damage.append(Damage(path, position, found, "torn end" if torn else "damaged record header"))
    return found


def is_torn_head(head: bytes) -> bool:
    """Tell whether these last bytes of a file are a header cut short, not a damaged one."""
    return len(head) < HEADER_BYTES and SYNC.startswith(head[: len(SYNC)])


def _is_zero(stream: BinaryIO, position: int, size: int) -> bool:
    """Tell whether the rest of the file is zeros, as some file systems leave it after a power cut."""
    stream.seek(position)
    while position < size:
        chunk = stream.read(min(_SEARCH_BYTES, size - position))
        if not chunk or chunk.count(0) != len(chunk):
            return False
        position += len(chunk)
    return True


def _find_header(stream: BinaryIO, position: int, size: int) -> int:
    """Return the offset of the first good record header at or after `position`, or `size`."""
    overlap = HEADER_BYTES - 1
    while position < size:
        stream.seek(position)
        chunk = stream.read(_SEARCH_BYTES + overlap)
        found = chunk.find(SYNC)
        while found >= 0:
            if decode_header(chunk[found : found + HEADER_BYTES]) is not None:
                return position + found
            found = chunk.find(SYNC, found + 1)
        position += _SEARCH_BYTES
    return size
