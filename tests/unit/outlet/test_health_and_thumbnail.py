"""Readings of the board may be absent but never fail; thumbnails keep to their bytes."""

import mmap
import socket

import cv2
import numpy as np
import pytest

from stillwatch.describing.thumbnail import jpeg_thumbnail
from stillwatch.outlet import health


def test_resident_memory_grows_by_what_is_touched():
    before = health.rss_bytes()
    with mmap.mmap(
        -1, 50_000_000
    ) as held:  # of the system's own: an allocator may have pages to give that were touched
        held.write(b"1" * len(held))
        assert health.rss_bytes() - before > 40_000_000
        assert health.peak_rss_bytes() >= health.rss_bytes() - 1_000_000


def test_cpu_seconds_count_work():
    before = health.cpu_seconds()
    sum(i * i for i in range(300_000))
    assert health.cpu_seconds() > before


def test_a_disk_that_is_gone_has_no_free_bytes(tmp_path):
    assert health.disk_free_bytes(tmp_path) > 0
    assert health.disk_free_bytes(tmp_path / "gone") is None


def test_the_service_manager_hears_us(tmp_path, monkeypatch):
    path = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(path)
        manager.settimeout(5)
        monkeypatch.setenv("NOTIFY_SOCKET", path)
        assert health.notify_service_manager("WATCHDOG=1")
        assert manager.recv(100) == b"WATCHDOG=1"


def test_nobody_listening_is_no_error(tmp_path, monkeypatch):
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    assert not health.notify_service_manager("READY=1")
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "absent"))
    assert not health.notify_service_manager("READY=1")


def noise(height, width):
    return np.random.default_rng(3).integers(0, 256, (height, width, 3), dtype=np.uint8)


@pytest.mark.parametrize("max_bytes", [1500, 4000, 20_000])
@pytest.mark.parametrize("size", [(288, 384), (480, 640), (37, 53)])
def test_a_thumbnail_keeps_to_its_bytes_and_width(size, max_bytes):
    data = jpeg_thumbnail(noise(*size), 160, max_bytes)
    picture = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    assert 0 < len(data) <= max_bytes
    assert picture.shape[1] <= 160


def test_a_thumbnail_keeps_the_frames_shape():
    data = jpeg_thumbnail(np.full((432, 768, 3), 90, np.uint8), 160, 8000)
    assert cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR).shape == (90, 160, 3)


def test_a_picture_that_cannot_be_small_enough_is_left_out():
    assert jpeg_thumbnail(noise(288, 384), 160, 50) == b""


def test_a_frame_of_one_pixel_is_left_out():
    assert jpeg_thumbnail(noise(1, 1), 160, 8000) == b""
