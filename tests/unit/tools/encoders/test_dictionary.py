"""The command that learns the dictionary: what it learns from, and what it leaves alone."""

import zipfile

import cv2
import numpy as np
import pytest
from printed import of_schema

from stillwatch.tools.cli import main
from stillwatch.tools.encoders.dictionary import scaled_grey


def jpeg(seed):
    image = np.random.default_rng(seed).integers(0, 256, (60, 80), np.uint8)
    return cv2.imencode(".jpg", image)[1].tobytes()


@pytest.fixture
def data(tmp_path):
    (tmp_path / "caltech").mkdir()
    (tmp_path / "underwater").mkdir()
    with zipfile.ZipFile(tmp_path / "caltech" / "train.zip", "w") as archive:
        for seed, name in enumerate(["anchor/00.jpg", "ant/00.jpg", "Leopards/00.jpg"]):
            archive.writestr(name, jpeg(seed))
    return tmp_path


def test_scored_classes_teach_nothing_and_the_file_holds_the_atoms(data, tmp_path, capsys):
    out = tmp_path / "d.npz"
    given = ["--data", str(data), "--out", str(out), "--atoms", "6", "--patches", "400", "--json"]
    assert main(["fit-dictionary", *given]) == 0
    said = of_schema("fit-dictionary", capsys.readouterr().out)
    assert said["pictures"] == 2 + 80  # two of Caltech's, 40 of each of two worlds
    assert np.load(out)["atoms"].shape == (6, 128)


def test_large_pictures_are_scaled_to_320_and_small_ones_stay():
    assert scaled_grey(np.zeros((480, 640, 3), np.uint8)).shape == (240, 320)
    assert scaled_grey(np.zeros((5, 700), np.uint8)).shape == (2, 320)
    assert scaled_grey(np.zeros((100, 90), np.uint8)).shape == (100, 90)


def test_too_few_patches_are_refused(data, tmp_path, capsys):
    assert main(["fit-dictionary", "--data", str(data), "--out", str(tmp_path / "d"), "--patches", "1"]) == 2
    assert "at least 2 of each" in capsys.readouterr().err
