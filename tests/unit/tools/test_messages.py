"""What a person is told of bad input: what is wrong, where, the value, the limit, and what to do. All in one table."""

import pathlib
import re

import cv2
import numpy as np
import pytest
from messages_raised import all_raised

from stillwatch.base import ExitCode, absent
from stillwatch.tools.cli import main

HOLDS_NOTHING = ["emptydir", "holds no messages of a run", "give what --out named"]
# What is typed; the exit code; what every line of the answer must hold between them: where, value, limit, remedy.
TOLD = {
    "evnts": (ExitCode.USAGE, ["'evnts'", "did you mean 'events'?"]),
    "run absent.mp4": (ExitCode.USAGE, ["absent.mp4: no such file or folder"]),
    "run absent*.jpg": (ExitCode.USAGE, ["absent*.jpg: no file matches"]),
    "run empty.mp4": (ExitCode.SOURCE, ["empty.mp4: the file is empty"]),
    "run text.mp4": (ExitCode.SOURCE, ["text.mp4: not a readable video"]),
    "run emptydir": (ExitCode.SOURCE, ["emptydir: holds no image", ".png"]),
    "run films": (ExitCode.SOURCE, ["films: holds no image", "give the video in it: films/one.MOV (or another of 2)"]),
    "run damaged.png": (ExitCode.SOURCE, ["damaged.png: 0x0 pixels", "source.max_pixels = 50000000"]),
    "run tiny.png": (ExitCode.SOURCE, ["tiny.png: 1 of 1 frames", "smaller than 16x16"]),
    "run rtps://camera/1": (ExitCode.CONFIG, ["source.uri", "'rtps'", "did you mean 'rtsps'?"]),
    "run rtsp://": (ExitCode.CONFIG, ["source.uri: no host in rtsp://", "%40"]),
    "run v4l2:": (ExitCode.CONFIG, ["source.uri: nothing after v4l2:"]),
    "run synthetic:romm": (ExitCode.CONFIG, ["synthetic:romm: no such world", "there are transect, road, room"]),
    "run synthetic:room?seeds=3": (ExitCode.CONFIG, ["synthetic:room", "'seeds'", "there are seed"]),
    "run recording:emptydir": (ExitCode.SOURCE, ["emptydir: holds no recording"]),
    "run p.png?loop=0": (ExitCode.CONFIG, ["loop=0 is outside [1, 1000000]"]),
    "run p.png?loops=2": (ExitCode.CONFIG, ["'loops' after p.png", "known: loop, live, pace"]),
    "run p.png?pace=1": (ExitCode.CONFIG, ["pace=1 is for video files", "p.png is a picture"]),
    "run p.png?live=1": (ExitCode.CONFIG, ["live=1 is for folders", "p.png is a file"]),
    "run p.png tiny.png": (ExitCode.USAGE, ["two sources, p.png and tiny.png", "a run has one"]),
    "run half.toml": (ExitCode.CONFIG, ["half.toml: not valid TOML", "line 1, column 8"]),
    "run latin.toml": (ExitCode.CONFIG, ["latin.toml: not UTF-8 text at byte 2"]),
    "run keys.toml": (
        ExitCode.CONFIG,
        ["keys.toml:2: source.width: 10000000", "[32, 4096]", "keys.toml:3: source.urri", "did you mean uri?",
         "keys.toml:4: sorce", "did you mean source?"],
    ),
    "run p.png --set events.raise_rarity": (ExitCode.CONFIG, ["--set: events.raise_rarity", "section.key=value"]),
    "run p.png --set events.raise_rarity=many": (ExitCode.CONFIG, ["raise_rarity: 'many'", "(1.0, 1000000000.0]"]),
    "run p.png --set source.uri=${env:ABSENT_NAME}": (ExitCode.CONFIG, ["--set: source.uri: ${env:ABSENT_NAME}"]),
    "run p.png --set source.nav_csv='head.csv'": (ExitCode.CONFIG, ["source.nav_csv: head.csv:1: needs t_s or time"]),
    "run p.png --set source.nav_csv='north.csv'": (ExitCode.CONFIG, ["north.csv:2: latitude 95 is outside [-90, 90]"]),
    "run p.png --set features.mask=[[[0,0],[1,1]]]": (ExitCode.CONFIG, ["features.mask: polygon 0 has 2 corners"]),
    "run p.png --set features.mask_png='text.mp4'": (ExitCode.CONFIG, ["features.mask_png: text.mp4: not an image"]),
    "run p.png --set limits.memory_bytes=1000000": (ExitCode.CONFIG, ["limits.memory_bytes", "over the limit 1000000"]),
    "run p.png --set publish.endpoint='tcp://0.0.0.0:5599'": (
        ExitCode.CONFIG,
        ["publish.endpoint", "tcp://0.0.0.0:5599", "set publish.key_file", "or bind 127.0.0.1"],
    ),
    "run p.png --set link.preset='micromodem-9'": (ExitCode.CONFIG, ["link.preset: 'micromodem-9'", "micromodem-0"]),
    "run p.png --out text.mp4": (ExitCode.CONFIG, ["--out: text.mp4 is a file", "give another folder"]),
    "report emptydir": (ExitCode.FAULT, HOLDS_NOTHING),
    "events emptydir": (ExitCode.FAULT, HOLDS_NOTHING),
    "scores emptydir --json": (ExitCode.FAULT, HOLDS_NOTHING),
    "compare emptydir emptydir": (ExitCode.FAULT, HOLDS_NOTHING),
    "inspect text.mp4": (ExitCode.FAULT, ["text.mp4: not a whole checkpoint (250 bytes)"]),
    "replay emptydir": (ExitCode.FAULT, ["emptydir: holds no recording"]),
    "recover emptydir saved": (ExitCode.FAULT, ["emptydir: holds no record log"]),
    "control tcp://camera status": (ExitCode.FAULT, ["cannot connect to tcp://camera", "neither tcp://HOST:PORT"]),
    "survey emptydir --out survey": (ExitCode.USAGE, ["emptydir: no pictures in it", "known are .bmp"]),
    "evaluate novelty p.png absent.json": (ExitCode.USAGE, ["absent.json: no such file or folder"]),
}  # fmt: skip
# Neither a place nor a value: it is of the one thing typed, which is a secret, or of the one file named.
NAMELESS = {
    "DIR: survey-scenes",
    "the two passwords differ",
    "the config is written in a form that keys cannot be added to",
}
# What a message says of what to do, and of what is allowed.
REMEDY = re.compile(
    r"\b(give|set|write|names?|take|choose|try|update|start|open it|copy|save|install|fit one|leave|raise|stop|known?|"
    r"knows|there (are|is)|did you mean|is for|use|say which|record it|is the camera|is (it|another)|docs/|wait|log in|"
    r"load the page|type|shows|makes?|go together|a run has one|expected|lists)\b",
    re.I,
)
LIMIT = re.compile(
    r"\b(needs?|needed|at least|at most|outside|limit|must|above|below|or more|over|(is|not|of) one of|none of|not in|"
    r"within|neither|from \{\} to|\d+ to|longer than|less than|lies before|is written as|is 1 or 0|is a whole number|"
    r"is not|too small|options are|is \{\})\b|[\[\]]"
)
# Words around what another message or program said.
PASSED_ON = [
    "config", "defaults", "run", "link", "ground", "store", "recording", "publish.endpoint", "source.uri", "failed",
    "lost", "no answer for", "s", "reopened on request", "evaluation of", "bench pipeline", "x", "on", "cores", "find",
    "images read", "of", "first fault", "--out",
]  # fmt: skip
# Words that only the makers of the program understand.
INSIDE = re.compile(r"Traceback|\(\?:|\\d|\^\[|\w+Error\b|\bstillwatch\.\w+\.|<[\w.]+ object|\w+\(\w+=|\berrno\b", re.I)


@pytest.fixture
def bad_inputs(tmp_path, monkeypatch):
    """Go to a folder that holds the files of the table."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ABSENT_NAME", raising=False)
    pathlib.Path("emptydir").mkdir()
    pathlib.Path("films").mkdir()
    pathlib.Path("films/two.mp4").touch()
    pathlib.Path("films/one.MOV").touch()
    pathlib.Path("empty.mp4").touch()
    pathlib.Path("text.mp4").write_text("hello" * 50)
    pathlib.Path("damaged.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(40))
    cv2.imwrite("p.png", np.zeros((40, 40, 3), np.uint8))
    cv2.imwrite("tiny.png", np.zeros((4, 4, 3), np.uint8))
    pathlib.Path("half.toml").write_text("[source\nuri=1")
    pathlib.Path("latin.toml").write_bytes(b"# \xe9\n")
    pathlib.Path("keys.toml").write_text('[source]\nwidth = 10000000\nurri = "x"\n[sorce]\na = 1\n')
    pathlib.Path("head.csv").write_text("a,b\n1,2\n")
    pathlib.Path("north.csv").write_text("t_s,latitude,longitude\n0,95,3\n")


@pytest.mark.parametrize("typed", TOLD)
def test_bad_input_is_told_with_what_where_value_limit_and_remedy(typed, bad_inputs, capsys):
    code, parts = TOLD[typed]
    words = typed.split()
    if words[0] == "run" and "--out" not in words:
        words += ["--out", "out", "--set", 'publish.endpoint=""'] if "publish" not in typed else ["--out", "out"]
    assert main(words) == code
    told = capsys.readouterr().err
    assert [part for part in parts if part not in told] == []
    assert INSIDE.search(told) is None
    assert all(len(line) < 400 for line in told.splitlines())


def test_every_message_of_the_program_names_a_place_or_a_value_and_nothing_from_inside():
    messages = list(all_raised())
    assert len(messages) > 350
    named = re.compile(r"\{\}|\w+\.\w+|--\w|endpoint")
    nameless = [each for each in messages if each.error != "Refused" and not named.search(each.text)]
    assert [each for each in nameless if not any(known in each.text for known in NAMELESS)] == []
    assert [each for each in messages if INSIDE.search(each.text)] == []


def test_every_message_of_the_program_says_the_limit_or_what_to_do():
    """One that is made of values alone passes on what another of these says, or what a program of its own said."""
    passed_on = re.compile(rf"(?:\{{\}}|[\W\d_]|{'|'.join(PASSED_ON)})*")
    told = [each for each in all_raised() if not passed_on.fullmatch(each.text)]
    assert len(told) > 300
    assert [each for each in told if not REMEDY.search(each.text) and not LIMIT.search(each.text)] == []


def test_a_path_to_nothing_is_told_with_the_nearest_name_there_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pathlib.Path("VID_2231.mov").touch()
    assert absent("VID_2213.mov").endswith("no such file or folder; did you mean VID_2231.mov?")
    assert absent(f"{tmp_path}/VID_2213.mov").endswith(f"did you mean {tmp_path}/VID_2231.mov?")
    assert absent("photos").endswith(f"no such file or folder; give one that is there; sought in {tmp_path}")
    assert "sought in nowhere" in absent("nowhere/photos")
    assert "no such file or folder; give one that is there" in absent("no\x00where/photos")
