"""Size, orientation and completeness of a still image, read from its bytes before any decoder sees them.

Called by agent/sources/registry.py (what kind of file is this) and agent/sources/images.py (refuse what is too big).
Parses only headers, reads a bounded number of bytes, allocates nothing from a claimed size.
"""

import re
import struct
from dataclasses import dataclass
from pathlib import Path

HEAD_BYTES = 1 << 20  # JPEG puts its size after EXIF, ICC and thumbnails of up to 64 kB a segment
JPEG_SIZE_MARKERS = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
VIDEO_SUFFIXES = frozenset({".mjpeg", ".mjpg"})


@dataclass(frozen=True, slots=True)
class ImageHeader:
    """What the bytes say. `complete` is False where the end is known to be missing; size (0, 0) is unknown."""

    kind: str
    width: int
    height: int
    animated: bool = False


def is_still_image(path: Path) -> bool:
    """Say whether a file is one still image by its content; raw JPEG streams are told by their name.

    Raises OSError where the file cannot be read.
    """
    with path.open("rb") as file:
        header = read_header(file.read(HEAD_BYTES))
    if header is None or header.animated or header.kind == "gif":
        return False
    return not (header.kind == "jpeg" and path.suffix.lower() in VIDEO_SUFFIXES)


def read_header(data: bytes) -> ImageHeader | None:
    """Return the header of PNG, JPEG, GIF, BMP, TIFF, WebP, PNM, JPEG 2000 or AVIF bytes; None for other content."""
    try:
        for signature, parse in PARSERS:
            if signature.match(data):
                return parse(data)
    except (struct.error, IndexError, ValueError, OverflowError):
        return None  # the signature stands, but the header is cut off
    return None


def is_complete(kind: str, data: bytes) -> bool:
    """Say whether the file has its end: JPEG's EOI, PNG's IEND, GIF's trailer. True where a format has none.

    A JPEG cut in half decodes to a full-size picture whose lower part is grey, without any error.
    """
    if kind == "jpeg":
        return data.rstrip(b"\x00").rfind(b"\xff\xd9", max(0, len(data) - 65_536)) >= 0
    if kind == "png":
        return data.rfind(b"IEND") >= 0
    return True


def _png(data: bytes) -> ImageHeader:
    width, height = struct.unpack_from(">II", data, 16)
    position, animated = 8, False
    while position + 8 <= len(data):
        length, tag = struct.unpack_from(">I4s", data, position)
        if tag in (b"IDAT", b"IEND"):
            break
        animated = animated or tag == b"acTL"
        position += 12 + length
    return ImageHeader("png", width, height, animated)


def _jpeg(data: bytes) -> ImageHeader:
    position = 2
    while True:
        while data[position] != 0xFF:  # stray bytes between segments are skipped, as decoders do
            position += 1
        while data[position] == 0xFF:
            position += 1
        marker = data[position]
        position += 1
        if marker in JPEG_SIZE_MARKERS:
            height, width = struct.unpack_from(">HH", data, position + 3)
            return ImageHeader("jpeg", width, height)
        if marker == 0x01 or 0xD0 <= marker <= 0xD8:
            continue
        position += struct.unpack_from(">H", data, position)[0]


def _gif(data: bytes) -> ImageHeader:
    width, height = struct.unpack_from("<HH", data, 6)
    return ImageHeader("gif", width, height)


def _bmp(data: bytes) -> ImageHeader:
    if struct.unpack_from("<I", data, 14)[0] == 12:  # OS/2 core header
        width, height = struct.unpack_from("<HH", data, 18)
    else:
        width, height = struct.unpack_from("<ii", data, 18)
    return ImageHeader("bmp", abs(width), abs(height))


def _tiff(data: bytes) -> ImageHeader:
    order = "<" if data[:2] == b"II" else ">"
    big = struct.unpack_from(order + "H", data, 2)[0] == 43
    offset = struct.unpack_from(order + ("Q" if big else "I"), data, 8 if big else 4)[0]
    count = struct.unpack_from(order + ("Q" if big else "H"), data, offset)[0]
    first, size, value_at = (offset + 8, 20, 12) if big else (offset + 2, 12, 8)
    found = {256: 0, 257: 0}
    for index in range(min(count, 4096)):
        tag, kind = struct.unpack_from(order + "HH", data, first + index * size)
        if tag in found:
            code = {1: "B", 3: "H", 4: "I", 16: "Q"}.get(kind, "I")
            found[tag] = struct.unpack_from(order + code, data, first + index * size + value_at)[0]
    return ImageHeader("tiff", found[256], found[257])


def _webp(data: bytes) -> ImageHeader:
    tag = data[12:16]
    if tag == b"VP8X":
        width = 1 + int.from_bytes(data[24:27], "little")
        height = 1 + int.from_bytes(data[27:30], "little")
        return ImageHeader("webp", width, height, bool(data[20] & 2))
    if tag == b"VP8L":
        bits = struct.unpack_from("<I", data, 21)[0]
        return ImageHeader("webp", 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF))
    width, height = struct.unpack_from("<HH", data, 26)
    return ImageHeader("webp", width & 0x3FFF, height & 0x3FFF)


def _pnm(data: bytes) -> ImageHeader:
    found = re.match(rb"P[1-6]\s+(\d+)\s+(\d+)\s", re.sub(rb"#[^\n]*", b"", data[:4096]))
    if found is None:
        raise ValueError("no size in the head")
    return ImageHeader("pnm", int(found[1]), int(found[2]))


def _jpeg2000(data: bytes) -> ImageHeader:
    position = data.find(b"\xff\x4f\xff\x51")
    if position < 0:
        raise ValueError("no codestream in the head")
    right, bottom, left, top = struct.unpack_from(">IIII", data, position + 8)
    return ImageHeader("jpeg2000", right - left, bottom - top)


def _avif(data: bytes) -> ImageHeader:
    animated = data[8:12] == b"avis"
    position = data.find(b"ispe")
    if position < 0:
        raise ValueError("no image size property in the head")
    width, height = struct.unpack_from(">II", data, position + 8)
    return ImageHeader("avif", width, height, animated)


PARSERS = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), _png),
    (re.compile(rb"\xff\xd8\xff"), _jpeg),
    (re.compile(rb"GIF8[79]a"), _gif),
    (re.compile(rb"BM.{4}\x00\x00\x00\x00", re.DOTALL), _bmp),
    (re.compile(rb"II[\x2a\x2b]\x00|MM\x00[\x2a\x2b]"), _tiff),
    (re.compile(rb"RIFF.{4}WEBP", re.DOTALL), _webp),
    (re.compile(rb"P[1-6]\s"), _pnm),
    (re.compile(rb"\x00\x00\x00\x0cjP  |\xff\x4f\xff\x51"), _jpeg2000),
    (re.compile(rb".{4}ftypavi[fs]", re.DOTALL), _avif),
)
