"""Image headers: sizes as an independent writer made them, and nothing but None for rubbish."""

import struct

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stillwatch.sources.image_header import is_complete, is_still_image, read_header

IMAGE = np.random.default_rng(0).integers(0, 255, (37, 53, 3), np.uint8)
SUFFIXES = (".png", ".jpg", ".bmp", ".tiff", ".webp", ".ppm", ".jp2", ".gif", ".avif")


def encoded(suffix):
    try:
        return cv2.imencode(suffix, IMAGE)[1].tobytes()
    except cv2.error:
        pytest.skip(f"this OpenCV does not write {suffix}")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_size_is_read_from_the_header(suffix):
    header = read_header(encoded(suffix))
    assert (header.width, header.height) == (53, 37)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_header_cut_anywhere_gives_none_or_the_size(suffix):
    data = encoded(suffix)
    for length in range(0, min(len(data), 400)):
        header = read_header(data[:length])
        assert header is None or (header.width, header.height) in ((53, 37), (0, 0))


@settings(max_examples=300)
@given(
    st.binary(max_size=64),
    st.sampled_from(
        [
            b"\x89PNG\r\n\x1a\n",
            b"\xff\xd8\xff",
            b"GIF89a",
            b"II*\x00",
            b"MM\x00+",
            b"RIFF\x00\x00\x00\x00WEBP",
            b"P6 ",
            b"\x00\x00\x00\x0cjP  ",
            b"",
        ]
    ),
)
def test_no_bytes_raise(body, signature):
    read_header(signature + body)


def test_jpeg_size_behind_large_segments():
    data = encoded(".jpg")
    filler = b"\xff\xe2" + struct.pack(">H", 65_000) + bytes(64_998)
    assert read_header(data[:2] + filler * 5 + data[2:]).width == 53


def test_big_endian_and_big_tiff():
    entries = struct.pack(">HHIIHHIHH", 256, 4, 1, 1234, 257, 3, 1, 56, 0)
    assert read_header(b"MM\x00*" + struct.pack(">IH", 8, 2) + entries).width == 1234
    entry = struct.pack("<HHQQ", 256, 16, 1, 70_000) + struct.pack("<HHQQ", 257, 4, 1, 9)
    big = b"II+\x00" + struct.pack("<HHQQ", 8, 0, 16, 2) + entry
    assert (read_header(big).width, read_header(big).height) == (70_000, 9)


def test_missing_ends_are_seen():
    jpeg, png = encoded(".jpg"), encoded(".png")
    assert is_complete("jpeg", jpeg)
    assert is_complete("png", png)
    assert not is_complete("jpeg", jpeg[: len(jpeg) // 2])
    assert not is_complete("png", png[: len(png) // 2])


def test_raw_jpeg_streams_are_video_and_animated_png_too(tmp_path):
    (tmp_path / "cam.mjpeg").write_bytes(encoded(".jpg"))
    (tmp_path / "cam.bin").write_bytes(encoded(".jpg"))
    png = encoded(".png")
    (tmp_path / "moving.png").write_bytes(png[:33] + struct.pack(">I4sII", 8, b"acTL", 2, 0) + bytes(4) + png[33:])
    assert not is_still_image(tmp_path / "cam.mjpeg")
    assert is_still_image(tmp_path / "cam.bin")
    assert not is_still_image(tmp_path / "moving.png")
