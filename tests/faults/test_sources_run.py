"""The whole agent on sources that fail: exit codes that say what happened."""

import subprocess
import sys

import pytest

from stillwatch.tools.checks.corpus import clip, encode

pytestmark = pytest.mark.slow

COMMAND = [sys.executable, "-m", "stillwatch.tools.cli", "run", "--set", "publish.endpoint=", "--source"]


def run(tmp_path, source):
    return subprocess.run(
        [*COMMAND, str(source), "--out", str(tmp_path / "out")], capture_output=True, text=True, timeout=120
    )


def test_a_file_cut_short_ends_with_code_3_and_says_how_much_is_missing(tmp_path):
    path = encode(tmp_path / "a.mp4", clip(60), container={"movflags": "+faststart"})
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 6 // 10])
    done = run(tmp_path, path)
    assert done.returncode == 3
    assert "of 60 frames" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_whole_file_ends_with_code_0(tmp_path):
    assert run(tmp_path, encode(tmp_path / "a.mp4", clip(30))).returncode == 0


def test_a_missing_file_ends_with_code_2_in_one_line(tmp_path):
    done = run(tmp_path, tmp_path / "none.mp4")
    assert done.returncode == 2
    assert len([line for line in done.stderr.splitlines() if "none.mp4" in line]) == 1
    assert "Traceback" not in done.stderr
