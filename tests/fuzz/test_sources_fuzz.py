"""Broken bytes into the sources, each in a process of its own; odd URIs into the parser; odd frames into the gate."""

import contextlib

import cv2
import numpy as np
import pytest
from capture_sources import frame_of
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stillwatch.base.camera import FIXED, MOVING
from stillwatch.base.clock import RealClock
from stillwatch.base.errors import AgentError
from stillwatch.gate.gate import Gate
from stillwatch.settings.config import GateConfig, SourceConfig
from stillwatch.sources.registry import open_source
from stillwatch.tools.checks import faults
from stillwatch.tools.checks.corpus import Case, clip, encode, picture

CONTAINERS = {"a.mp4": "libx264", "a.mkv": "libx264", "a.ts": "mpeg2video", "a.avi": "mjpeg", "a.webm": "libvpx-vp9"}
IMAGES = (".png", ".jpg", ".tiff", ".bmp", ".webp", ".gif", ".jp2")


def mutated(data, rng):
    """Return the data with some of: bytes overwritten, a piece cut out, a piece doubled, the end missing."""
    broken = bytearray(data)
    for _ in range(int(rng.integers(1, 30))):
        broken[int(rng.integers(len(broken)))] = int(rng.integers(256))
    start, length = int(rng.integers(len(broken))), int(rng.integers(1, 2000))
    kind = rng.integers(4)
    if kind == 0:
        del broken[start : start + length]
    elif kind == 1:
        broken[start:start] = broken[start : start + length]
    elif kind == 2:
        del broken[max(16, start) :]
    return bytes(broken)


def outcome_of(path):
    row = faults.run_case(Case(path.name, str(path), "any"), 30.0)
    assert row.fault == "", (path.name, row)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "codec"), CONTAINERS.items())
def test_broken_videos_come_to_a_clear_outcome(tmp_path, name, codec):
    pix_fmt = "yuvj420p" if codec == "mjpeg" else "yuv420p"
    data = encode(tmp_path / name, clip(15), codec=codec, pix_fmt=pix_fmt).read_bytes()
    for seed in range(8):
        path = tmp_path / f"{seed}{name}"
        path.write_bytes(mutated(data, np.random.default_rng(seed)))
        outcome_of(path)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", IMAGES)
def test_broken_images_come_to_a_clear_outcome(tmp_path, suffix):
    try:
        data = cv2.imencode(suffix, picture(0))[1].tobytes()
    except cv2.error:
        pytest.skip(f"this OpenCV does not write {suffix}")
    for seed in range(8):
        path = tmp_path / f"{seed}{suffix}"
        path.write_bytes(mutated(data, np.random.default_rng(seed)))
        outcome_of(path)


@settings(max_examples=300)
@given(st.one_of(st.text(max_size=60), st.builds(
    lambda scheme, rest: scheme + rest,
    st.sampled_from(["rtsp://", "rtsp:", "http://", "v4l2:", "synthetic:", "file://", "folder:", "recording:", "rtsp://u:"]),
    st.text(max_size=40),
)))  # fmt: skip
@example("\x00/0")
@example("folder:a\x00/*.jpg")
def test_any_uri_is_a_source_or_one_clear_error(uri):
    with contextlib.suppress(AgentError):
        assert open_source(uri, SourceConfig(), RealClock()).info.uri


@settings(max_examples=60)
@given(
    st.integers(16, 90),
    st.integers(16, 90),
    st.lists(st.sampled_from(["noise", "flat", "black", "white", "half"]), min_size=1, max_size=12),
    st.integers(0, 10**12),
    st.sampled_from([FIXED, MOVING]),
)
def test_the_gate_survives_any_picture_at_any_time(height, width, kinds, step_ns, rule):
    judge = Gate(GateConfig(), height=height, width=width)
    rng = np.random.default_rng(0)
    made = {
        "noise": lambda: rng.integers(0, 256, (height, width, 3)),
        "flat": lambda: np.full((height, width, 3), 90),
        "black": lambda: np.zeros((height, width, 3)),
        "white": lambda: np.full((height, width, 3), 255),
        "half": lambda: np.where(np.arange(width)[None, :, None] < width // 2, 0, 255) * np.ones((height, 1, 3)),
    }
    frames = (frame_of(made[kind]().astype(np.uint8), i * step_ns / 1e9) for i, kind in enumerate(kinds))
    verdicts = [judge.judge(frame, rule) for frame in frames]
    counts = judge.counters()
    assert sum(verdict.accepted for verdict in verdicts) == counts["accepted"]
    assert sum(counts.values()) - counts["scene_changes"] == len(kinds)
