"""The survey experiments: rows of every method and grouping, artificial groups, refusals."""

import cv2
import numpy as np
import pytest
from printed import of_schema

from stillwatch.tools.cli import main
from stillwatch.tools.experiments.survey.data import N_GROUPS, artificial_groups, ground_of, transects

KEYS = {"method", "grouping", "groups", "nmi", "v_measure", "ari", "clusters", "free_energy", "seconds"}


@pytest.fixture
def class_folders(tmp_path):
    rng = np.random.default_rng(0)
    for name, wave in (("across", (1, 0)), ("up", (0, 1)), ("both", (1, 1))):
        (tmp_path / name).mkdir()
        for i in range(6):
            y, x = np.mgrid[:48, :48] + rng.random(2)[:, None, None]
            image = 128 + 60 * np.sin(wave[0] * y) + 60 * np.sin(wave[1] * x) + rng.normal(0, 5, (48, 48))
            cv2.imwrite(str(tmp_path / name / f"{i}.png"), image.clip(0, 255).astype(np.uint8))
    return tmp_path


def test_class_folders_give_a_row_for_each_method_and_grouping(class_folders, capsys):
    methods = ["kmeans", "sklearn_bgm", "vdp", "sgmc", "mcm"]
    given = ["--methods", *methods, "--trials", "1", "--c-width", "0.2", "--json"]
    assert main(["experiment", "survey-scenes", str(class_folders), *given]) == 0
    rows = of_schema("experiment survey-scenes", capsys.readouterr().out)["rows"]
    assert all(set(row) == KEYS for row in rows)
    groupings = {method: [row["grouping"] for row in rows if row["method"] == method] for method in methods}
    assert groupings["vdp"] == groupings["sklearn_bgm"] == ["flat"]
    assert groupings["sgmc"] == ["proportional", "random", "subset"]
    assert groupings["mcm"] == ["flat", "proportional", "random", "subset"]
    assert next(row for row in rows if row["method"] == "kmeans")["nmi"] == pytest.approx(1.0)
    assert next(row for row in rows if row["method"] == "kmeans")["free_energy"] is None


def test_what_scenes_leave_out_is_told_and_changes_no_figure(class_folders, capsys):
    given = ["experiment", "survey-scenes", str(class_folders), "--methods", "vdp", "--c-width", "0.2", "--json"]
    assert main(given) == 0
    before = capsys.readouterr()
    assert before.err == ""
    (class_folders / "up" / "z.jpg").write_bytes(b"none")
    (class_folders / "up" / "notes.txt").write_text("none")
    cv2.imwrite(str(class_folders / "sheet.png"), np.zeros((40, 40), np.uint8))
    assert main(given) == 0
    after = capsys.readouterr()
    same = [of_schema("experiment survey-scenes", each.out)["rows"] for each in (before, after)]
    assert [{**row, "seconds": 0} for row in same[0]] == [{**row, "seconds": 0} for row in same[1]]
    assert after.err.splitlines() == [
        f"{class_folders}: left out, as they cannot be read: 1 (up/z.jpg)",
        f"{class_folders}: left out, as they lie in no class folder: 1 (sheet.png)",
    ]


def test_made_dives_know_the_ground_under_every_frame(monkeypatch):
    monkeypatch.setattr("stillwatch.tools.experiments.survey.data.DIVES", 2)
    data = transects(every=200, seed=5, kind="patches")
    assert np.bincount(data.dives).max() <= 3
    assert data.labels[0] == "sand"
    assert set(data.labels) <= {"sand", "gravel", "shell_hash", "cobble"}
    np.testing.assert_array_equal(np.bincount(data.images), 48)


@pytest.mark.parametrize(
    ("frame", "ground", "share"),
    [(0, "sand", 1.0), (100, "sand", 1.0), (115, "sand", 0.75), (145, "reef", 0.75), (185, "reef", 0.75)],
)
def test_ground_enters_in_sixty_frames(frame, ground, share):
    assert ground_of([(0, "sand"), (100, "reef"), (170, "sand")], frame) == (ground, share)


@pytest.mark.parametrize("grouping", ["proportional", "random", "subset"])
def test_every_picture_is_dealt_and_subsets_lack_classes(grouping):
    labels = np.repeat(list("abcdefgh"), 200)
    groups = artificial_groups(labels, grouping, np.random.default_rng(0))
    table = np.array([[np.sum((labels == name) & (groups == j)) for name in "abcdefgh"] for j in range(N_GROUPS)])
    assert table.sum() == len(labels)
    assert table.sum(axis=0).tolist() == [200] * 8
    if grouping == "proportional":
        assert (table == 20).all()
    assert ((table == 0).sum() > 20) == (grouping == "subset")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["survey-scenes"], "needs a folder of class folders"),
        (["survey-caltech", "somewhere"], "needs a folder of class folders"),
        (["survey-transects", "--methods", "oracle"], "--methods: oracle is none of"),
        (["survey-transects", "--every", "0"], "are above 0"),
    ],
)
def test_what_cannot_be_run_is_refused(given, message, capsys):
    assert main(["experiment", *given]) == 2
    assert message in capsys.readouterr().err


def test_pictures_of_one_class_are_refused(tmp_path, capsys):
    (tmp_path / "only").mkdir()
    cv2.imwrite(str(tmp_path / "only" / "1.png"), np.zeros((20, 20), np.uint8))
    assert main(["experiment", "survey-scenes", str(tmp_path)]) == 2
    assert "1 class folder(s)" in capsys.readouterr().err


def test_clumps_have_a_row_for_each_way_to_use_them(capsys):
    given = ["--rows", "1200", "--memory", "60", "--apart", "2", "--drawn", "600", "--seeds", "4", "--json"]
    assert main(["experiment", "survey-clumps", *given]) == 0
    rows = of_schema("experiment survey-clumps", capsys.readouterr().out)["rows"]
    assert [row["from"] for row in rows] == ["points", "clumps whole", "clumps drawn 600"]
    assert rows[0]["bytes"] == 1.0
    assert rows[0]["clusters"] > 1
    assert rows[1]["items"] == rows[2]["items"] < 1200
