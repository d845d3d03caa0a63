"""Any file name through every command that writes one down: bytes to the system, escaped where they are shown."""

import os

import cv2
import numpy as np
import pytest

from stillwatch.base import AS_SHOWN, ExitCode
from stillwatch.tools.cli import main

ODD = os.fsdecode(b"b\xe4r")  # Latin-1: no UTF-8, so a lone surrogate to Python
SHOWN = "b\\xe4r"


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("names") / ODD
    settings = ["publish.endpoint=", "source.width=160", "source.height=120"]
    words = [word for setting in settings for word in ("--set", setting)]
    assert main(["run", "synthetic:room?n_frames=130&width=160&height=120&seed=3", "--out", str(folder), *words]) == 0
    return folder


@pytest.fixture
def pictures(tmp_path):
    """Return a folder of twelve pictures, itself and each of them oddly named."""
    folder = tmp_path / ODD
    folder.mkdir()
    rng = np.random.default_rng(0)
    for number in range(12):
        small = rng.integers(0, 255, (12, 16, 3), np.uint8)
        coded = cv2.imencode(".png", cv2.resize(small, (160, 120)))[1]
        (folder / f"{ODD}{number:02d}.png").write_bytes(coded.tobytes())
    return folder


def said(capsys, *words):
    """Call a command that must do its work; return what it said."""
    code, captured = main([str(word) for word in words]), capsys.readouterr()
    assert code == ExitCode.DONE, captured.err
    return captured.out + captured.err


@pytest.mark.parametrize("command", ["report", "inspect", "events", "scores"])
def test_a_folder_of_any_name_is_read(run_folder, capsys, command):
    assert "\\udce4" not in said(capsys, command, run_folder)


def test_a_report_shows_it_escaped(run_folder, capsys):
    assert SHOWN in said(capsys, "report", run_folder)
    page = (run_folder / "report.html").read_text("utf-8")
    assert "<html" in page


def test_two_of_any_name_are_compared_on_a_page(run_folder, tmp_path, capsys):
    page = tmp_path / f"{ODD}.html"
    said(capsys, "compare", run_folder, run_folder, "--out", page)
    assert page.read_text("utf-8").count("<html") == 1


def test_a_picture_of_any_name_is_looked_for(run_folder, pictures, tmp_path, capsys):
    code = main(["find", str(run_folder), "--like", str(next(pictures.iterdir()))])
    told = capsys.readouterr().err
    assert code in (ExitCode.DONE, ExitCode.USAGE), told  # a short run has no topics yet
    assert "no picture that can be read" not in told


def test_a_folder_of_any_name_becomes_a_recording(pictures, tmp_path, capsys):
    told = said(capsys, "import", pictures, tmp_path / f"{ODD}-recording", "--rate", 2)
    assert f"{SHOWN}-recording: 12 frames" in told


def test_pictures_of_any_name_are_surveyed(pictures, tmp_path, capsys):
    said(capsys, "survey", pictures, "--out", tmp_path / "survey")
    assert SHOWN in (tmp_path / "survey" / "survey.html").read_text("utf-8")
    assert SHOWN in next((tmp_path / "survey").glob("*.csv")).read_text("utf-8")


def test_a_unit_has_a_path_that_is_utf8_in_any_locale_and_no_other(tmp_path, capsys):
    config = tmp_path / f"{ODD}.toml"
    config.write_text('[source]\nuri = "synthetic:room"\n')
    assert main(["service", "install", "harbour", str(config), "--units", str(tmp_path)]) == ExitCode.USAGE
    assert "systemd needs a path in UTF-8" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("encoding", "name", "shown"),
    [("utf-8", b"b\xe4r", rb"b\xe4r"), ("ascii", "bär".encode(), rb"b\xe4r"), ("ascii", b"b\xe4r", rb"b\xe4r")],
)
def test_a_stream_shows_a_name_in_one_way_in_any_locale(encoding, name, shown):
    assert name.decode(encoding, "surrogateescape").encode(encoding, AS_SHOWN) == shown
