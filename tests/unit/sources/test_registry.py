"""open_source: one URI, the right source, or one clear line."""

import cv2
import numpy as np
import pytest

from stillwatch.base.clock import RealClock, VirtualClock
from stillwatch.base.errors import ConfigError, SourceError
from stillwatch.settings.config import SourceConfig
from stillwatch.sources.registry import open_source

CONFIG = SourceConfig()


def opened(uri):
    return open_source(str(uri), CONFIG, RealClock())


@pytest.fixture
def image(tmp_path):
    path = tmp_path / "a.png"
    cv2.imwrite(str(path), np.zeros((40, 50, 3), np.uint8))
    return path


@pytest.mark.parametrize(("uri", "kind"), [
    ("rtsp://cam/x", "rtsp"), ("RTSPS://cam/x", "rtsp"), ("http://cam/mjpeg", "http"), ("v4l2:/dev/video0", "v4l2"),
    ("synthetic:transect?seed=3", "synthetic"),
])  # fmt: skip
def test_the_scheme_chooses_the_kind(uri, kind):
    assert opened(uri).info.kind == kind


def test_only_network_and_camera_are_live(tmp_path):
    assert opened("rtsp://cam/x").live
    assert opened("v4l2:/dev/video0").live
    assert not opened("synthetic:transect").live
    assert not opened(tmp_path).live
    assert opened(f"{tmp_path}?live=1").live


def test_a_paced_world_comes_no_faster_than_its_frames_were_taken():
    clock = VirtualClock()
    source = open_source("synthetic:room?pace=1&n_frames=30", CONFIG, clock)
    source.open()
    stamps = [frame.source_ns for frame in iter(source.read, None)]
    assert len(stamps) == 30
    assert clock.monotonic_ns() == stamps[-1] - stamps[0] > 0


def test_a_pace_is_on_or_off():
    with pytest.raises(ConfigError, match="pace=2 is neither 0 .off. nor 1"):
        opened("synthetic:room?pace=2")


def test_content_decides_between_image_and_video(tmp_path, image):
    disguised = tmp_path / "clip.mp4"
    disguised.write_bytes(image.read_bytes())
    (tmp_path / "noise.mp4").write_bytes(b"\x01" * 100)
    assert opened(disguised).info.kind == "images"
    assert opened(tmp_path / "noise.mp4").info.kind == "file"


def test_a_file_whose_name_holds_a_question_mark_is_found(tmp_path, image):
    odd = tmp_path / "what?loop=x.png"
    odd.write_bytes(image.read_bytes())
    assert opened(odd).info.uri == str(odd)


def test_file_urls_and_globs(tmp_path, image):
    assert opened(f"file://{image}").info.kind == "images"
    assert opened(f"{tmp_path}/*.png").info.frames_claimed == 1
    assert opened(f"{tmp_path}/*.png?loop=4").info.frames_claimed == 4


@pytest.mark.parametrize(("uri", "text"), [
    ("", "empty"), ("rstp://cam/x", "did you mean 'rtsp'"), ("gopher://cam/x", "known: rtsp"), ("rtsp:///x", "no host"),
    ("rtsp://cam:99999/x", "port: 0 to 65535"), ("v4l2:", "nothing after v4l2:"),
    ("synthetic:nowhere", "no such world"),
    ("synthetic:transect?colour=1", "unknown parameter"), ("synthetic:transect?seed", "key=value"),
    ("synthetik:transect", "did you mean 'synthetic'"),
])  # fmt: skip
def test_bad_uris_are_config_errors(uri, text):
    with pytest.raises(ConfigError, match=text) as caught:
        opened(uri)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("tail", "text"),
    [
        ("?loop=0", "outside"),
        ("?loop=x", "outside"),
        ("?lop=1", "unknown option"),
        ("?live=2", "neither"),
        ("?live=1", "for folders"),
    ],
)
def test_bad_options_of_files_are_config_errors(image, tail, text):
    with pytest.raises(ConfigError, match=text):
        opened(f"{image}{tail}")


@pytest.mark.parametrize("name", ["missing.mp4", "missing*.png", "missing/"])
def test_a_missing_file_is_a_source_error(tmp_path, name):
    with pytest.raises(SourceError, match="no such file|no file matches"):
        opened(tmp_path / name)


def test_errors_about_a_uri_do_not_show_its_password():
    with pytest.raises(ConfigError) as caught:
        opened("rtsp://user:letmein77@:99999999/x")
    assert "letmein77" not in str(caught.value)


@pytest.mark.parametrize("password", ["pa#ss1", "pa/ss2", "pa?ss3", "pa@ss4", "pa:ss5", "pa%23ss6"])
def test_a_password_may_hold_the_characters_of_a_uri(password):
    source = opened(f"rtsp://user:{password}@cam.local:554/x")
    assert source.info.uri == "rtsp://***@cam.local:554/x"


@pytest.mark.parametrize("uri", ["rtsp://cam/users/me@home", "rtsp://cam:554/me@home"])
def test_a_path_with_an_at_sign_is_no_login(uri):
    assert opened(uri).info.uri == uri
