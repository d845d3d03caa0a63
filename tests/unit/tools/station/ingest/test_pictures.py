"""Pictures of agents are decoded within limits and encoded again: bombs, other formats and damage become no picture."""

import struct

import cv2
import numpy as np
import pytest

from stillwatch.tools.station.ingest.pictures import LONGEST_SIDE, MOST_BYTES, jpeg_size, safe_picture


def jpeg(width, height):
    return cv2.imencode(".jpg", np.full((height, width, 3), 90, np.uint8), [cv2.IMWRITE_JPEG_QUALITY, 10])[1].tobytes()


def claiming(data, width, height):
    """Return a JPEG whose header says another size."""
    at = data.index(b"\xff\xc0") + 5
    return data[:at] + struct.pack(">HH", height, width) + data[at + 4 :]


def with_second_header(data, width, height):
    """Return a JPEG with a second frame header, of another size, behind its first."""
    at = data.index(b"\xff\xc0")
    end = at + 2 + struct.unpack(">H", data[at + 2 : at + 4])[0]
    return data[:end] + claiming(data[at:end], width, height) + data[end:]


def taken(data):
    return safe_picture(data, frame=1, at_ns=0, boxes=[])


def test_a_picture_is_encoded_again_no_longer_than_a_page_needs():
    given = jpeg(1600, 400)
    marked = given[:2] + b"\xff\xfe\x00\x0a<script>" + given[2:]
    shown = taken(marked)
    assert (shown.width, shown.height) == (LONGEST_SIDE, 320)
    assert shown.data.startswith(b"\xff\xd8")
    assert b"<script>" not in shown.data
    assert jpeg_size(marked) == (1600, 400)


@pytest.mark.parametrize(
    "bomb",
    [
        jpeg(2100, 2100),
        claiming(jpeg(32, 24), 65_500, 65_500),
        claiming(jpeg(32, 24), 0, 24),
        cv2.imencode(".png", np.zeros((9000, 9000), np.uint8))[1].tobytes()[:MOST_BYTES],
        cv2.imencode(".bmp", np.zeros((8, 8, 3), np.uint8))[1].tobytes(),
        b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>',
        jpeg(32, 24) + bytes(MOST_BYTES),
        b"\xff\xd8" + b"\xff" * 1000,
        b"\xff\xd8\xff\xe0\x00\x00" * 100,
        b"",
    ],
    ids=[
        "much in few bytes",
        "claims more",
        "claims nothing",
        "png",
        "bmp",
        "svg",
        "long",
        "fill",
        "no length",
        "empty",
    ],
)
def test_no_decoder_sees_what_is_no_jpeg_of_a_bearable_size(bomb, monkeypatch):
    monkeypatch.setattr(cv2, "imdecode", lambda *_: pytest.fail("decoded"))
    assert taken(bomb) is None


def test_a_second_header_does_not_let_a_larger_picture_in():
    found = taken(with_second_header(jpeg(32, 24), 60_000, 60_000))
    assert found is None or (found.width, found.height) == (32, 24)


@pytest.mark.parametrize("cut", [30, 200, 400])
def test_a_damaged_picture_is_none_or_of_its_own_size(cut):
    found = taken(jpeg(320, 240)[:cut])
    assert found is None or (found.width, found.height) == (320, 240)
