"""Clips on a disk: whole or not at all, the oldest go first, and a disk that refuses them stops nothing."""

import os
from fractions import Fraction

import cv2
import numpy as np
import pytest

from stillwatch.clips import Clip, ClipPacket, PacketStream, keep_newest, write_clip
from stillwatch.clips.writer import ClipWriter

STREAM = PacketStream("mjpeg", b"", Fraction(1, 1000), 25.0)
PICTURE = cv2.imencode(".jpg", np.zeros((32, 32, 3), np.uint8))[1].tobytes()


def clip(number=1, data=PICTURE):
    packets = [ClipPacket(data, True, at * 40, at * 40, at / 25) for at in range(5)]
    return Clip(number, STREAM, packets, 1.0, 5 * len(data))


def test_a_clip_is_named_after_its_alert(tmp_path):
    path = write_clip(tmp_path / "clips", clip(12))
    assert path == tmp_path / "clips" / "12.mp4"
    assert [file.name for file in path.parent.iterdir()] == ["12.mp4"]


def test_packets_that_are_none_leave_no_file_behind(tmp_path):
    with pytest.raises(ValueError, match="mjpeg"):
        write_clip(tmp_path, clip(data=b"junk"))
    assert list(tmp_path.iterdir()) == []


def test_the_oldest_clips_go_until_the_rest_fits_and_the_newest_stays(tmp_path):
    for at in range(4):
        (tmp_path / f"{at}.mp4").write_bytes(bytes(100))
        os.utime(tmp_path / f"{at}.mp4", (at, at))
    keep_newest(tmp_path, 250)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["2.mp4", "3.mp4"]
    keep_newest(tmp_path, 10)
    assert [path.name for path in tmp_path.iterdir()] == ["3.mp4"]


def test_what_cannot_be_written_is_counted_and_stops_nothing(tmp_path):
    (tmp_path / "clips").write_text("a file where the folder should be")
    writer = ClipWriter(tmp_path / "clips", 10**6, waits=True)
    writer.put(clip(1))
    writer.put(clip(2, data=b"junk"))
    writer.close(5.0)
    assert (writer.written, writer.lost) == (0, 2)
