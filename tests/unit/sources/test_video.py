"""Video files: time from the stamps, loops without a seam in time, rotation, depth, and honest ends."""

import av
import numpy as np
import pytest

from stillwatch.base.clock import VirtualClock
from stillwatch.base.errors import ConfigError, SourceError
from stillwatch.base.frame import FrameFlag
from stillwatch.settings.config import SourceConfig
from stillwatch.sources.pace import Pace
from stillwatch.sources.registry import open_source
from stillwatch.sources.video import VideoFileSource
from stillwatch.tools.checks.corpus import clip, encode, picture

CONFIG = SourceConfig()
MS = 1_000_000


def frames_of(path, config=CONFIG, **options):
    source = VideoFileSource(str(path), config, **options)
    source.open()
    frames = list(iter(source.read, None))
    source.close()
    return frames


def test_stamps_are_those_of_the_frames_not_of_the_claimed_rate(tmp_path):
    path = encode(tmp_path / "a.mp4", clip(20), times_s=lambda i: i / 25 + 0.7 * (i // 10))
    stamps = [frame.source_ns for frame in frames_of(path)]
    assert [round((b - a) / MS) for a, b in zip(stamps, stamps[1:], strict=False)] == [40] * 9 + [740] + [40] * 9


def test_a_loop_goes_on_one_interval_after_its_last_frame(tmp_path):
    path = encode(tmp_path / "a.mp4", clip(5))
    stamps = [frame.source_ns / MS for frame in frames_of(path, loop=3)]
    assert [stamp - stamps[0] for stamp in stamps] == pytest.approx([40.0 * i for i in range(15)])


def test_a_paced_file_comes_no_faster_than_its_stamps_say(tmp_path):
    clock = VirtualClock()
    stamps = frames_of(encode(tmp_path / "a.mp4", clip(20)), pace=Pace(clock))
    assert clock.monotonic_ns() == stamps[-1].source_ns - stamps[0].source_ns > 0
    assert len(stamps) == 20


def test_of_files_only_videos_are_paced(tmp_path):
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(40))
    for uri in (f"{tmp_path}?pace=1", f"{tmp_path}/a.png?pace=1", f"{tmp_path}/a.png?pace=2"):
        with pytest.raises(ConfigError, match="pace="):
            open_source(uri, CONFIG, VirtualClock())


def test_a_raw_stream_has_no_stamps_whatever_its_demuxer_invents(tmp_path):
    path = encode(tmp_path / "a.h264", clip(5))
    assert [frame.source_ns for frame in frames_of(path)] == [None] * 5


def test_pixels_survive_lossless_coding(tmp_path):
    path = encode(tmp_path / "a.mkv", clip(3), codec="ffv1", pix_fmt="bgr0")
    for index, frame in enumerate(frames_of(path)):
        assert (frame.colour == picture(index)).all()


def test_deep_grey_keeps_its_scale(tmp_path):
    images = (np.full((32, 32), level, np.uint16) for level in (0, 0x8000, 0xFFFF))
    path = encode(tmp_path / "a.mkv", images, codec="ffv1", pix_fmt="gray16le", source_format="gray16le")
    assert [int(frame.colour[5, 5, 1]) for frame in frames_of(path)] == [0, 128, 255]


def test_truncated_files_say_how_much_is_missing(tmp_path):
    path = encode(tmp_path / "a.mp4", clip(60), container={"movflags": "+faststart"})
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * 6 // 10])
    source = VideoFileSource(str(path), CONFIG)
    source.open()
    frames = []
    with pytest.raises(SourceError, match=r"truncated: \d+ of 60 frames") as caught:
        frames.extend(iter(source.read, None))
    assert caught.value.partial
    assert 20 < int(str(caught.value).split("truncated: ")[1].split()[0]) < 45


def test_frames_over_the_pixel_limit_are_refused_before_decoding(tmp_path):
    path = encode(tmp_path / "a.mp4", clip(3))
    with pytest.raises(SourceError, match=r"192x144 are over source.max_pixels = 20000|not a readable video"):
        VideoFileSource(str(path), SourceConfig(max_pixels=20_000)).open()


def test_damage_is_flagged_from_the_bad_packet_to_the_next_key_frame(tmp_path):
    path = encode(tmp_path / "a.ts", clip(75))
    packet = 188
    data = bytearray(path.read_bytes())
    with av.open(str(path)) as container:
        video = [p for p in container.demux(container.streams.video[0]) if p.size]
    victim = next(p for i, p in enumerate(video) if i > 30 and not p.is_keyframe and p.size > 100)
    start = victim.pos - victim.pos % packet + packet
    del data[start : start + packet]
    path.write_bytes(bytes(data))
    flagged = [i for i, frame in enumerate(frames_of(path)) if frame.flags & FrameFlag.DAMAGED]
    assert flagged
    assert flagged == list(range(flagged[0], flagged[-1] + 1))
    assert 25 < flagged[0] < 45
    assert flagged[-1] < 60


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "empty"),
        (bytes(5000), "nothing but zeros"),
        (b"hello\n" * 50, "not a readable video"),
        (b"\x00\x00\x00\x20ftypisom" + bytes(200), "recording was not finished"),
    ],
)
def test_files_that_are_no_video_say_so_in_one_line(tmp_path, content, text):
    (tmp_path / "x.mp4").write_bytes(content)
    with pytest.raises(SourceError, match=text) as caught:
        VideoFileSource(str(tmp_path / "x.mp4"), CONFIG).open()
    assert "\n" not in str(caught.value)


def test_rotation_in_the_container_is_followed_or_ignored_as_configured():
    from data_location import data_dir

    path = data_dir() / "stress" / "video" / "rot90.mp4"
    assert frames_of(path)[0].colour.shape == (192, 108, 3)
    assert frames_of(path, SourceConfig(auto_rotate=False))[0].colour.shape == (108, 192, 3)
