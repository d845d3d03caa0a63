"""Packets into MP4 and out again: the same pictures to the last bit, for every codec that goes into it."""

import io
import pathlib
from fractions import Fraction

import av
import numpy as np
import pytest

from stillwatch.clips import ClipPacket, PacketStream, write_mp4

RATE_HZ = 25
CASES = {
    "h264 with pictures out of order": ("libx264", {"bf": "2", "g": "10"}, "mp4", False),
    "h264 in a plain stream": ("libx264", {"g": "10"}, "mpegts", False),
    "mpeg4": ("mpeg4", {"g": "10"}, "mp4", False),
    "mjpeg": ("mjpeg", {}, "avi", False),
    "no stamps": ("mjpeg", {}, "avi", True),
}


def made(encoder, options, container):
    """Return (stream, packets, decoded pictures) of 40 frames of a square that moves."""
    if encoder not in av.codecs_available:
        pytest.skip(f"no {encoder}")
    file = io.BytesIO()
    with av.open(file, "w", format=container) as out:
        track = out.add_stream(encoder, rate=RATE_HZ, options=options)
        track.width, track.height = 96, 64
        track.pix_fmt = "yuvj420p" if encoder == "mjpeg" else "yuv420p"
        for at in range(40):
            picture = np.full((64, 96, 3), 40, np.uint8)
            picture[20:40, at : at + 20] = 200
            out.mux(track.encode(av.VideoFrame.from_ndarray(picture, format="bgr24")))
        out.mux(track.encode())
    file.seek(0)
    with av.open(file) as source:
        video = source.streams.video[0]
        codec = video.codec_context
        stream = PacketStream(codec.name, bytes(codec.extradata or b""), Fraction(video.time_base), RATE_HZ)
        packets = [
            ClipPacket(bytes(packet), packet.is_keyframe, packet.pts, packet.dts, 0.0)
            for packet in source.demux(video)
            if packet.size
        ]
    file.seek(0)
    return stream, packets, pictures(file)


def pictures(file):
    with av.open(file) as source:
        return [frame.to_ndarray(format="gray") for frame in source.decode(video=0)]


@pytest.mark.parametrize(("encoder", "options", "container", "stampless"), CASES.values(), ids=CASES)
def test_pictures_from_a_key_frame_on_are_the_camera_s_own(encoder, options, container, stampless, tmp_path):
    stream, packets, whole = made(encoder, options, container)
    if stampless:
        packets = [ClipPacket(packet.data, packet.is_key, None, None, 0.0) for packet in packets]
    first = [at for at, packet in enumerate(packets) if packet.is_key][1]
    file = f"{tmp_path}/clip.mp4"
    write_mp4(pathlib.Path(file), stream, packets[first:])
    shown = pictures(file)
    assert len(shown) == len(packets) - first
    assert all(np.array_equal(left, right) for left, right in zip(shown[::-1], whole[::-1], strict=False))
    with av.open(file) as clip:
        times = [float(frame.time) for frame in clip.decode(video=0)]
    assert times[0] < 0.1
    assert np.allclose(np.diff(times), 1 / RATE_HZ, atol=1e-3)


@pytest.mark.parametrize(
    ("codec", "packets", "why"),
    [
        ("vp8", [ClipPacket(b"x", True, 0, 0, 0.0)], "vp8 packets do not go into MP4"),
        ("h264", [], "begins with a key frame"),
        ("h264", [ClipPacket(b"x", False, 0, 0, 0.0)], "begins with a key frame"),
        ("h264", [ClipPacket(b"junk" * 20, True, 0, 0, 0.0)], "does not take these h264 packets"),
    ],
)
def test_what_is_no_clip_is_refused(codec, packets, why, tmp_path):
    with pytest.raises(ValueError, match=why):
        write_mp4(tmp_path / "1.mp4", PacketStream(codec, b"", Fraction(1, 25), 25.0), packets)
