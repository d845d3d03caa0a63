"""Frames of a file a second: what a start costs is not counted, and what fails says so."""

import sys

import pytest

from stillwatch.base import AgentError, UsageError
from stillwatch.tools.bench.files import rate_of
from stillwatch.tools.cli import build_parser

# A program that takes 1 s to start and 0.5 s for each showing of a clip of 20 frames: a busy machine adds some tenths.
PROGRAM = """
import json, pathlib, re, sys, time
loop = int(re.search("loop=([0-9]+)", sys.argv[3]).group(1))
time.sleep(1.0 + 0.5 * loop)
pathlib.Path(sys.argv[5], "summary.json").write_text(json.dumps({"frames": 20 * loop}))
"""


@pytest.mark.slow
def test_a_start_is_not_counted(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    rate = rate_of([sys.executable, str(tmp_path / "program.py")], tmp_path / "clip.mp4")
    assert 27.0 < rate < 80.0  # 40 on a machine that does nothing else; 24 were the start counted


def test_a_run_that_fails_is_told_with_its_last_line(tmp_path):
    with pytest.raises(AgentError, match="no such clip"):
        rate_of([sys.executable, "-c", "import sys; sys.exit('no such clip')"], tmp_path / "clip.mp4")


@pytest.mark.parametrize("words", [["--beside", "nowhere"], ["--turns", "0"]])
def test_what_cannot_be_is_bad_usage(words, tmp_path):
    clip = tmp_path / "clip.mp4"
    clip.touch()
    args = build_parser(["bench", "files", str(clip), *words]).parse_args(["bench", "files", str(clip), *words])
    with pytest.raises(UsageError, match=words[0] if words[0] == "--turns" else "no such file"):
        args.main(args)
