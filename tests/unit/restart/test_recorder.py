"""Recorder and recordings as a source: the same frames, pixels and times come back, in every mode."""

import numpy as np
import pytest
from recordings import frames_of, make_video, record, stamp, storage_config

from stillwatch.base.clock import RealClock, VirtualClock
from stillwatch.base.environment import cpu_features, versions
from stillwatch.base.errors import ConfigError, SourceError
from stillwatch.base.frame import Frame, FrameFlag, Nav
from stillwatch.restart import recorder
from stillwatch.restart.recorder import Recorder, pixel_checksum
from stillwatch.settings.config import SourceConfig
from stillwatch.sources.capture import FrameMaker
from stillwatch.sources.recording import RecordingSource
from stillwatch.sources.registry import open_source
from stillwatch.transport.disk import recording as r
from stillwatch.transport.disk.record_format import log_files
from stillwatch.transport.disk.recording import Session, read_recording

CODECS = [("libx264", "yuv420p"), ("mjpeg", "yuvj420p"), ("mpeg4", "yuv420p"), ("ffv1", "yuv420p")]


def _replayed(folder, config, query=""):
    """Return stamps of a recording's frames, read as a replay does."""
    source = RecordingSource(f"{folder}{query}", config.source)
    source.open()
    maker = FrameMaker(config.source, VirtualClock(), False, 0, None)
    frames = []
    while (raw := source.read()) is not None:
        frames.append(stamp(maker.make(raw)))
    source.close()
    return frames, source


@pytest.mark.parametrize(("codec", "pix_fmt"), CODECS)
def test_packets_give_the_same_frames_again_also_where_some_were_dropped(tmp_path, codec, pix_fmt):
    video = make_video(tmp_path / "v.mkv", codec=codec, pix_fmt=pix_fmt)
    config = storage_config()
    taken = record(str(video), tmp_path / "r", config, dropped={1, 2, 13, 14, 15, 30})
    frames, source = _replayed(tmp_path / "r", config)
    assert frames == taken
    assert len(taken) == 34
    assert source.counters() == {}


def test_packets_are_the_cameras_own_bytes(tmp_path):
    video = make_video(tmp_path / "v.mkv")
    record(str(video), tmp_path / "r", storage_config())
    packets = b"".join(b.data for _, b in read_recording(tmp_path / "r") if isinstance(b, r.Packet))
    assert abs(len(packets) - video.stat().st_size) < 0.2 * video.stat().st_size


@pytest.mark.parametrize("mode", ["jpeg", "lossless"])
def test_stored_images_give_what_the_pipeline_saw(tmp_path, mode):
    video = make_video(tmp_path / "v.mkv")
    config = storage_config(record_frames=mode)
    taken = record(str(video), tmp_path / "r", config, dropped={3})
    assert _replayed(tmp_path / "r", config)[0] == taken
    plain = frames_of(str(video), config, dropped={3})
    pixels_kept = [a[7] == b[7] for a, b in zip(taken, plain, strict=True)]
    assert all(pixels_kept) if mode == "lossless" else not any(pixels_kept)


def test_a_source_without_packets_is_recorded_lossless(tmp_path):
    import cv2

    rng = np.random.default_rng(1)
    (tmp_path / "images").mkdir()
    for i in range(4):
        cv2.imwrite(str(tmp_path / "images" / f"{i}.png"), rng.integers(0, 255, (90, 120, 3), dtype=np.uint8))
    config = storage_config()
    taken = record(str(tmp_path / "images"), tmp_path / "r", config)
    assert _replayed(tmp_path / "r", config)[0] == taken
    assert all(b.image_format == "png" for _, b in read_recording(tmp_path / "r") if isinstance(b, r.FrameRecord))


def test_a_looped_file_opens_a_decoder_each_time(tmp_path):
    video = make_video(tmp_path / "v.mkv", frames=15)
    config = storage_config()
    taken = record(f"{video}?loop=3", tmp_path / "r", config)
    assert len(taken) == 45
    assert _replayed(tmp_path / "r", config)[0] == taken


def test_a_frame_on_its_way_while_the_next_decoder_is_opened_keeps_its_pixels(tmp_path, monkeypatch):
    # Capture opens the second round's decoder while the pipeline records the first round's last frame.
    config = storage_config()
    written = Recorder(tmp_path / "r", config, RealClock(), Session(agent="cam1", run="test"))
    video = make_video(tmp_path / "v.mkv", frames=15)
    source = written.tap(open_source(f"{video}?loop=2", config.source, RealClock()))
    source.open()
    maker = FrameMaker(config.source, VirtualClock(), False, 0, None)
    frames = [maker.make(source.read()) for _ in range(15)]
    ahead = []

    def slow_checksum(colour):
        if colour is frames[14].colour:
            ahead.append(maker.make(source.read()))
        return pixel_checksum(colour)

    monkeypatch.setattr(recorder, "pixel_checksum", slow_checksum)
    taken = [stamp(written.frame(frame)) for frame in frames]
    taken += [stamp(written.frame(ahead[0]))]
    written.end(None, "")
    source.close()
    assert sum(isinstance(b, r.Stream) for _, b in read_recording(tmp_path / "r")) == 2
    shown, replayed = _replayed(tmp_path / "r", config)
    assert shown == taken
    assert replayed.missing == 0


def test_a_recording_goes_on_in_a_second_session(tmp_path):
    config = storage_config()
    first = record(str(make_video(tmp_path / "a.mkv", seed=1)), tmp_path / "r", config)
    second = record(str(make_video(tmp_path / "b.mkv", seed=2, codec="mpeg4")), tmp_path / "r", config)
    assert _replayed(tmp_path / "r", config)[0] == first + second


def test_reading_begins_at_a_later_frame_with_the_same_pixels(tmp_path):
    video = make_video(tmp_path / "v.mkv", frames=200, gop=10, crf=8)
    config = storage_config(max_file_bytes=100_000, record_frames="packets")
    taken = record(str(video), tmp_path / "r", config)
    assert len(log_files(tmp_path / "r")) > 3
    for first in (1, 9, 57, 120, 199):
        frames, source = _replayed(tmp_path / "r", config, f"?from={first}&to={first + 7}")
        assert frames == taken[first : first + 8]
        assert source.missing == 0


def test_after_the_oldest_files_are_gone_the_rest_is_shown_from_its_first_key_frame(tmp_path):
    video = make_video(tmp_path / "v.mkv", frames=200, gop=10, crf=8)
    config = storage_config(max_file_bytes=100_000)
    taken = record(str(video), tmp_path / "r", config)
    for _, path in log_files(tmp_path / "r")[:2]:
        path.unlink()
    frames, source = _replayed(tmp_path / "r", config)
    assert frames == taken[-len(frames) :]
    assert len(frames) > 50
    assert source.missing <= 16


def test_a_damaged_packet_costs_frames_to_the_next_key_frame_only(tmp_path):
    video = make_video(tmp_path / "v.mkv", frames=60, gop=10)
    config = storage_config()
    taken = record(str(video), tmp_path / "r", config)
    path = log_files(tmp_path / "r")[0][1]
    packets = [rec for rec, b in read_recording(tmp_path / "r") if isinstance(b, r.Packet)]
    data = bytearray(path.read_bytes())
    data[packets[25].offset + 60] ^= 1
    path.write_bytes(data)
    frames, source = _replayed(tmp_path / "r", config)
    assert [d.sequence for d in source.damage] == [packets[25].sequence]
    assert set(frames) < set(taken)
    assert len(taken) - len(frames) == source.missing
    assert 1 <= source.missing <= 12


def test_frames_are_stored_as_pixels_while_packets_cannot_be_written(tmp_path, monkeypatch):
    """A disk that fails for a while must not make later frames decode from the wrong ones."""
    import os

    video = make_video(tmp_path / "v.mkv", frames=90, gop=12)
    config = storage_config()
    clock = RealClock()
    recorder = Recorder(tmp_path / "r", config, clock, Session(agent="cam1", run="x"))
    monkeypatch.setattr("stillwatch.transport.disk.record_log.RETRY_S", 0.0)
    real, calls = os.writev, [0]

    def writev(fd, parts):
        calls[0] += 1
        if 40 <= calls[0] < 60:
            raise OSError(28, "No space left on device")
        return real(fd, parts)

    monkeypatch.setattr(os, "writev", writev)
    taken = frames_of(str(video), config, recorder)
    recorder.end(None, "")
    frames, _ = _replayed(tmp_path / "r", config)
    assert set(frames) < set(taken)
    assert len(frames) > 60
    assert recorder.counters()["lost_records"] > 5


def test_dropped_frames_are_counted_where_they_were(tmp_path):
    video = make_video(tmp_path / "v.mkv")
    record(str(video), tmp_path / "r", storage_config(), dropped={4, 5, 20})
    drops = [(b.count, b.before_sequence) for _, b in read_recording(tmp_path / "r") if isinstance(b, r.Drop)]
    assert drops == [(2, 6), (1, 21)]


def test_position_and_flags_come_back(tmp_path):
    config = storage_config(record_frames="lossless")
    recorder = Recorder(tmp_path, config, RealClock(), Session())
    colour = np.full((40, 60, 3), 90, np.uint8)
    frame = Frame(
        colour[:, :, 0].copy(),
        colour,
        5,
        7,
        8,
        9,
        3,
        2,
        FrameFlag.DAMAGED | FrameFlag.TIME_REPAIRED,
        Nav(latitude=1.5, depth_m=20.0),
    )
    recorder.frame(frame)
    recorder.end(None, "")
    source = RecordingSource(str(tmp_path), SourceConfig())
    source.open()
    raw = source.read()
    assert raw.flags == FrameFlag.DAMAGED | FrameFlag.TIME_REPAIRED
    assert (raw.recorded.nav.latitude, raw.recorded.nav.depth_m) == (1.5, 20.0)
    assert np.isnan(raw.recorded.nav.heading_deg)
    assert (raw.source_ns, raw.recorded.t_ns, raw.recorded.sequence, raw.recorded.epoch) == (5, 7, 3, 2)


def test_a_session_names_what_the_same_bits_depend_on(tmp_path):
    recorder = Recorder(tmp_path, storage_config(), RealClock(), Session(agent="cam1", config_hash="h"))
    recorder.end(None, "")
    session = r.first_session(tmp_path)
    assert session.versions == versions()
    assert {"stillwatch", "numpy", "numba", "av", "opencv-python-headless"} <= session.versions.keys()
    assert session.cpu == cpu_features()
    assert (session.agent, session.config_hash, session.mode) == ("cam1", "h", "packets")


def test_the_recording_stays_within_its_bytes(tmp_path):
    video = make_video(tmp_path / "v.mkv", frames=60, width=320, height=240)
    config = storage_config(max_bytes=1_000_000, max_file_bytes=125_000, record_frames="lossless")
    record(str(video), tmp_path / "r", config)
    assert sum(path.stat().st_size for _, path in log_files(tmp_path / "r")) <= 1_200_000
    frames, _ = _replayed(tmp_path / "r", config)
    assert frames[-1][0] == 59


def test_what_is_no_recording_is_said_in_one_line(tmp_path):
    with pytest.raises(SourceError, match="holds no recording"):
        RecordingSource(str(tmp_path), SourceConfig()).open()
    with pytest.raises(ConfigError, match="from=N and to=N"):
        RecordingSource(f"{tmp_path}?from=x", SourceConfig())
    with pytest.raises(ConfigError, match="unknown option 'loop'"):
        RecordingSource(f"{tmp_path}?loop=2", SourceConfig())
