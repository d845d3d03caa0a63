"""The message forms of MCAP files that we write and read: images, plottable JSON, outlines.

Used by tools/recordings/export_mcap.py and tools/recordings/import_frames.py. It must trust no length or offset of a
file it reads.
"""

import base64
import json
import math
import struct
from typing import Any, NamedTuple

from stillwatch.base import Nav

ROS1_IMAGE = "sensor_msgs/CompressedImage"
ROS1_IMAGE_SCHEMA = b"""std_msgs/Header header
string format
uint8[] data
================================================================================
MSG: std_msgs/Header
uint32 seq
time stamp
string frame_id
"""
IMAGE_SCHEMAS = {ROS1_IMAGE, "sensor_msgs/msg/CompressedImage", "foxglove.CompressedImage"}


class Image(NamedTuple):
    """A compressed image and the time it was taken, in ns; 0 where the message has none."""

    data: bytes
    format: str
    stamp_ns: int


def number_schema(**kinds: str) -> bytes:
    """Return a JSON schema of a flat object: property name to JSON type."""
    properties = {name: {"type": kind} for name, kind in kinds.items()}
    return json.dumps({"type": "object", "properties": properties}).encode()


ANNOTATIONS_SCHEMA = json.dumps({
    "title": "foxglove.ImageAnnotations", "type": "object",
    "properties": {"circles": {"type": "array"}, "points": {"type": "array", "items": {"type": "object"}},
                   "texts": {"type": "array"}},
}).encode()  # fmt: skip


def outlines(boxes: Any, width: int, height: int, stamp_ns: int) -> bytes:
    """Return a foxglove.ImageAnnotations in JSON: boxes are (n, 4), x0, y0, x1, y1 as shares of width and height."""
    stamp = {"sec": stamp_ns // 10**9, "nsec": stamp_ns % 10**9}
    points = []
    for x0, y0, x1, y1 in boxes.tolist():
        corners = [(x0, y0), (x1, y0), (x1, y1), (x0, y1)]
        points.append(
            {
                "timestamp": stamp,
                "type": 2,
                "thickness": 2,
                "points": [{"x": x * width, "y": y * height} for x, y in corners],
                "outline_color": {"r": 1, "g": 0.6, "b": 0.3, "a": 1},
                "fill_color": {"r": 0, "g": 0, "b": 0, "a": 0},
                "outline_colors": [],
            }
        )
    return json.dumps({"circles": [], "points": points, "texts": []}).encode()


NAV_FIELDS = ("latitude", "longitude", "depth_m", "altitude_m", "heading_deg")
NAV_SCHEMA = number_schema(**dict.fromkeys(NAV_FIELDS, "number"))
LOCATION_SCHEMA = json.dumps({
    "type": "object",
    "title": "foxglove.LocationFix",
    "properties": {
        "timestamp": {"type": "object", "properties": {"sec": {"type": "integer"}, "nsec": {"type": "integer"}}},
        "frame_id": {"type": "string"},
        **{name: {"type": "number"} for name in ("latitude", "longitude", "altitude")},
        "position_covariance": {"type": "array", "items": {"type": "number"}},
        "position_covariance_type": {"type": "integer"},
    },
}).encode()  # fmt: skip


def nav_fields(nav: Nav) -> dict[str, float]:
    """Return what is known of a position; what is not is left out: JSON has no NaN."""
    return {name: value for name in NAV_FIELDS if math.isfinite(value := float(getattr(nav, name)))}


def location(known: dict[str, float], frame_id: str, stamp_ns: int) -> bytes | None:
    """Return a foxglove.LocationFix for maps, height below sea level as negative; None without a place."""
    if "latitude" not in known or "longitude" not in known:
        return None
    seconds, nanoseconds = divmod(stamp_ns, 10**9)
    return json.dumps({
        "timestamp": {"sec": seconds, "nsec": nanoseconds},
        "frame_id": frame_id,
        "latitude": known["latitude"],
        "longitude": known["longitude"],
        "altitude": -known.get("depth_m", 0.0),
        "position_covariance": [0.0] * 9,
        "position_covariance_type": 0,
    }).encode()  # fmt: skip


def encode_ros1_image(image: Image, sequence: int, frame_id: str) -> bytes:
    """Return a sensor_msgs/CompressedImage in ROS 1 serialization."""
    name, form = frame_id.encode(), image.format.encode()
    head = struct.pack("<III", sequence & 0xFFFFFFFF, image.stamp_ns // 10**9, image.stamp_ns % 10**9)
    return b"".join(
        [
            head,
            struct.pack("<I", len(name)),
            name,
            struct.pack("<I", len(form)),
            form,
            struct.pack("<I", len(image.data)),
            image.data,
        ]
    )


def decode_image(encoding: str, data: bytes) -> Image | None:
    """Return the image of a message in one of the known encodings, None where it is malformed or of another one."""
    try:
        match encoding:
            case "ros1":
                return _ros1(data)
            case "cdr":
                return _cdr(data)
            case "json":
                return _json(data)
            case "protobuf":
                return _protobuf(data)
    except (struct.error, ValueError, KeyError, IndexError, TypeError):
        return None
    return None


def _ros1(data: bytes) -> Image:
    _, sec, nsec = struct.unpack_from("<III", data)
    at = 12
    texts = []
    for _ in range(3):
        (length,) = struct.unpack_from("<I", data, at)
        texts.append(_slice(data, at + 4, length))
        at += 4 + length
    return Image(texts[2], texts[1].decode(), sec * 10**9 + nsec)


def _cdr(data: bytes) -> Image:
    """Read ROS 2's form: a four-byte header, then little- or big-endian fields, each aligned to its size."""
    order = "<" if data[1] & 1 else ">"
    sec, nsec = struct.unpack_from(f"{order}iI", data, 4)
    at = 12
    texts = []
    for _ in range(3):
        at += -(at - 4) % 4
        (length,) = struct.unpack_from(f"{order}I", data, at)
        texts.append(_slice(data, at + 4, length))
        at += 4 + length
    return Image(texts[2], texts[1].rstrip(b"\0").decode(), sec * 10**9 + nsec)


def _json(data: bytes) -> Image:
    fields = json.loads(data)
    stamp = fields.get("timestamp") or {}
    when = int(stamp.get("sec", 0)) * 10**9 + int(stamp.get("nsec", 0))
    return Image(base64.b64decode(fields["data"], validate=True), str(fields.get("format", "")), when)


def _protobuf(data: bytes) -> Image:
    """Read foxglove.CompressedImage: 1 timestamp {1 seconds, 2 nanos}, 2 data, 3 format, 4 frame_id."""
    fields = _protobuf_fields(data)
    stamp = _protobuf_fields(fields[1]) if isinstance(fields.get(1), bytes) else {}
    when = int(stamp.get(1, 0)) * 10**9 + int(stamp.get(2, 0))
    return Image(bytes(fields[2]), bytes(fields.get(3, b"")).decode(), when)


def _protobuf_fields(data: bytes) -> dict[int, Any]:
    """Return the last value of each field: ints for varints and fixed sizes, bytes for the rest."""
    fields: dict[int, Any] = {}
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        match key & 7:
            case 0:
                fields[key >> 3], at = _varint(data, at)
            case 1:
                fields[key >> 3], at = int.from_bytes(_slice(data, at, 8), "little"), at + 8
            case 5:
                fields[key >> 3], at = int.from_bytes(_slice(data, at, 4), "little"), at + 4
            case 2:
                length, at = _varint(data, at)
                fields[key >> 3], at = _slice(data, at, length), at + length
            case kind:
                raise ValueError(f"wire type {kind}")
    return fields


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
        if shift > 63:
            raise ValueError("varint too long")


def _slice(data: bytes, at: int, length: int) -> bytes:
    if at + length > len(data):
        raise ValueError(f"{length} bytes at {at} of {len(data)}")
    return data[at : at + length]
