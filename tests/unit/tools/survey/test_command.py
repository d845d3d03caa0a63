"""The survey command from pictures to its files: two dives of two grounds, and what may be wrong with them."""

import csv
import json
import re

import cv2
import numpy as np
import pytest
from printed import of_schema

from stillwatch.base import UsageError
from stillwatch.tools.cli import main
from stillwatch.tools.survey.output import write_table
from stillwatch.worlds import make_world

N = 12


def striped(seed, vertical):
    """Return a picture of stripes with noise, (64, 80, 3) uint8."""
    rng = np.random.default_rng(seed)
    wave = np.sin(np.arange(80) / (1.5 + 0.05 * rng.random())) * 80 + 128
    image = np.tile(wave, (80, 1)) if vertical else np.tile(wave[:, None], (1, 80))
    noisy = image[:64] + rng.normal(0, 8, (64, 80))
    return cv2.merge([noisy.clip(0, 255).astype(np.uint8)] * 3)


@pytest.fixture(scope="module")
def surveyed(tmp_path_factory):
    """Return (folder of results, its survey.json): dive a has both grounds, dive b one; one picture is broken."""
    root = tmp_path_factory.mktemp("survey")
    labels, nav = ["picture,label"], ["picture,latitude,longitude"]
    for dive in "ab":
        (root / dive).mkdir()
        for i in range(N):
            vertical = dive == "a" and i % 2 == 0
            cv2.imwrite(str(root / dive / f"{i}.png"), striped(ord(dive) * 100 + i, vertical))
            labels.append(f"{dive}/{i}.png,{'up' if vertical else 'across'}")
            nav.append(f"{dive}/{i}.png,{10 + i * 1e-5},{20}" if i % 3 else f"{dive}/{i}.png,,")
    (root / "a" / "broken.png").write_bytes(b"none")
    (root / "labels.csv").write_text("\n".join(labels))
    (root / "nav.csv").write_text("\n".join(nav))
    out = root / "out"
    given = ["--labels", str(root / "labels.csv"), "--nav", str(root / "nav.csv"), "--c-width", "0.01"]
    assert main(["survey", str(root / "a"), str(root / "b"), "--out", str(out), *given]) == 0
    return out, json.loads((out / "survey.json").read_text())


def test_the_summary_tells_clusters_dives_labels_and_what_was_skipped(surveyed):
    _, summary = surveyed
    assert summary["items"] == 2 * N
    assert [group["name"] for group in summary["groups"]] == ["a", "b"]
    assert summary["unreadable"] == ["a/broken.png"]
    assert summary["labels"]["homogeneity"] > 0.9
    assert sum(cluster["weight"] for cluster in summary["clusters"]) == pytest.approx(1.0)
    assert all(cluster["exemplars"] for cluster in summary["clusters"])
    assert summary["groups"][0]["own_clusters"]
    assert not set(summary["groups"][0]["own_clusters"]) & set(summary["groups"][1]["own_clusters"])


def test_every_picture_has_its_row_and_every_position_its_point(surveyed):
    out, _ = surveyed
    with (out / "assignments.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * N
    assert {row["dive"] for row in rows} == {"a", "b"}
    points = json.loads((out / "survey.geojson").read_text())["features"]
    assert len(points) == sum(row["latitude"] != "" for row in rows) == 2 * N - 8
    assert points[0]["geometry"]["coordinates"][0] == 20.0


def test_the_page_needs_nothing_from_outside(surveyed):
    page = (surveyed[0] / "survey.html").read_text()
    markup = re.sub("<script>.*?</script>", "", page, flags=re.DOTALL)  # what scripts ask for, a browser's test sees
    assert not re.search(r"""(src|href)=["']?(https?:)?//|url\((?!["']?(data:|\#))|@import|sourceMappingURL""", markup)
    assert "Volodymyr Agafonkin" in page, "Leaflet's licence asks for its notice"
    drawn = json.loads(page.partition("id=map-data>")[2].partition("</script>")[0])
    assert len(drawn["x"]) == page.count("<circle") == 2 * N - 8
    assert drawn["dives"] == ["a", "b"]
    assert all(f"id=item-{item}>" in page for item in drawn["item"] if item >= 0)
    assert "data:image/jpeg;base64" in page
    assert "pictures that cannot be read were skipped, 1 of them" in page
    assert "pictures without a position: 8" in page


def test_ground_is_metres_of_track_or_with_altitudes_and_a_view_what_was_seen(surveyed, tmp_path):
    out, summary = surveyed
    assert summary["ground_unit"] == "m"
    rows = (out.parent / "nav.csv").read_text().splitlines()
    (tmp_path / "nav.csv").write_text("\n".join([f"{rows[0]},altitude_m", *(f"{row},2" for row in rows[1:])]))
    given = ["--nav", str(tmp_path / "nav.csv"), "--view", "53.130102x53.130102", "--out", str(tmp_path / "out")]
    assert main(["survey", str(out.parent / "a"), str(out.parent / "b"), "--c-width", "0.01", *given]) == 0
    again = json.loads((tmp_path / "out" / "survey.json").read_text())
    assert again["ground_unit"] == "m2"
    # Of pictures 1, 2, 4, ... 11: 11.1 m in steps of 1.1 and 2.2 m, two metres wide, and a metre more at either end.
    for group in again["groups"]:
        assert sum(group["ground"]) == pytest.approx(2.0 * (11.12 - 3 * 0.224 + 2.0), rel=0.02)
        assert all(deviation > 0.0 for deviation in group["ground_sd"])
    with (tmp_path / "out" / "assignments.csv").open() as file:
        seen = [float(row["ground_m2"]) for row in csv.DictReader(file) if row["dive"] == "a"]
    assert seen[0] == 0.0
    assert sum(seen) == pytest.approx(sum(again["groups"][0]["ground"]), abs=0.02)
    page = (tmp_path / "out" / "survey.html").read_text()
    assert "Square metres of ground seen" in page
    assert " m², " in page


def test_a_second_survey_finds_what_was_described(surveyed, monkeypatch):
    out, summary = surveyed

    def refuse(*_):
        raise AssertionError("a picture was described again")

    monkeypatch.setattr("stillwatch.tools.survey.describe.describe_images", refuse)
    assert main(["survey", str(out.parent / "a"), str(out.parent / "b"), "--out", str(out), "--c-width", "0.01"]) == 0
    again = json.loads((out / "survey.json").read_text())
    assert again["free_energy"] == summary["free_energy"]
    assert again["labels"] is None


@pytest.mark.parametrize("model", ["scm", "mcm"])
def test_pictures_are_clustered_by_their_segments(surveyed, tmp_path, model):
    root = surveyed[0].parent
    given = ["--model", model, "--segments", "patches", "--parquet", "--labels", str(root / "labels.csv")]
    assert main(["survey", str(root / "a"), str(root / "b"), "--out", str(tmp_path), *given]) == 0
    summary = json.loads((tmp_path / "survey.json").read_text())
    assert summary["labels"]["homogeneity"] > 0.9
    assert [group["items"] for group in summary["groups"]] == [N, N]
    page = (tmp_path / "survey.html").read_text()
    assert "data:image/png;base64" in page
    assert "What pictures are made of" in page


def test_parquet_holds_what_csv_holds(surveyed, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    root = surveyed[0].parent
    given = ["--nav", str(root / "nav.csv"), "--parquet", "--c-width", "0.01"]
    assert main(["survey", str(root / "a"), str(root / "b"), "--out", str(tmp_path), *given]) == 0
    table = parquet.read_table(tmp_path / "assignments.parquet").to_pylist()
    with (tmp_path / "assignments.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["picture"] for row in table] == [row["picture"] for row in rows]
    assert [row["cluster"] for row in table] == [int(row["cluster"]) for row in rows]
    assert [row["latitude"] for row in table] == [float(row["latitude"]) if row["latitude"] else None for row in rows]


def test_a_table_that_cannot_be_written_is_told_with_the_option_that_names_its_place(tmp_path):
    pytest.importorskip("pyarrow.parquet")
    (tmp_path / "clumps.parquet").mkdir()
    with pytest.raises(
        UsageError, match=r"clumps\.parquet: not written: Is a directory; name another place with --out"
    ):
        write_table(tmp_path, "clumps", {"cluster": [1, 2]}, with_parquet=True)


def test_workers_of_a_scheduler_give_the_same_survey(surveyed, tmp_path):
    distributed = pytest.importorskip("distributed")
    out, summary = surveyed
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0") as named:
        given = ["--scheduler", named.scheduler_address, "--c-width", "0.01", "--out", str(tmp_path)]
        assert main(["survey", str(out.parent / "a"), str(out.parent / "b"), *given]) == 0
    again = json.loads((tmp_path / "survey.json").read_text())
    assert again["free_energy"] == summary["free_energy"]
    assert again["clusters"] == summary["clusters"]
    assert not list((tmp_path / "features").glob("*.tmp"))


def test_two_dives_of_one_name_stay_apart(tmp_path):
    for place in "xy":
        (tmp_path / place / "dive").mkdir(parents=True)
        for i in range(3):
            cv2.imwrite(str(tmp_path / place / "dive" / f"{i}.png"), striped(i, place == "x"))
    given = [str(tmp_path / place / "dive") for place in "xy"]
    assert main(["survey", *given, "--out", str(tmp_path / "out")]) == 0
    summary = json.loads((tmp_path / "out" / "survey.json").read_text())
    assert [group["name"] for group in summary["groups"]] == ["dive", "dive-2"]


def test_labels_of_pictures_that_are_not_there_and_pictures_without_labels_are_counted(tmp_path):
    for i in range(3):
        cv2.imwrite(str(tmp_path / f"{i}.png"), striped(i, True))
    (tmp_path / "labels.csv").write_text("picture,label\n0.png,up\n7.png,up\n8.png,across\n")
    given = ["--labels", str(tmp_path / "labels.csv"), "--out", str(tmp_path / "out")]
    assert main(["survey", str(tmp_path), *given]) == 0
    notes = json.loads((tmp_path / "out" / "survey.json").read_text())["notes"]
    assert notes == [
        "pictures without a label take no part in the comparison with labels: 2",
        f"{tmp_path / 'labels.csv'}: rows that match no picture were left out, 2 of 3 (7.png, 8.png); its column "
        "picture needs dive/name, the name below the dive's folder, or the file's name, once",
    ]


def test_the_page_of_one_dive_compares_it_with_no_other(tmp_path):
    (tmp_path / "alone").mkdir()
    for i in range(6):
        cv2.imwrite(str(tmp_path / "alone" / f"{i}.png"), striped(i, True))
    assert main(["survey", str(tmp_path / "alone"), "--out", str(tmp_path / "out")]) == 0
    page = (tmp_path / "out" / "survey.html").read_text()
    assert "<h1>Survey: 1 dive, 6 items, " in page
    assert "What each dive adds" not in page


def test_rows_of_nav_of_pictures_that_are_not_there_are_told_in_the_file_the_page_and_on_the_terminal(tmp_path, capsys):
    for i in range(2):
        cv2.imwrite(str(tmp_path / f"{i}.png"), striped(i, True))
    (tmp_path / "nav.csv").write_text("picture,latitude,longitude\n0.png,1,2\n1.png,1,2.0001\n0001.jpg,1,2.0002\n")
    assert main(["survey", str(tmp_path), "--nav", str(tmp_path / "nav.csv"), "--out", str(tmp_path / "out")]) == 0
    said = "rows that match no picture were left out, 1 of 3 (0001.jpg)"
    assert said in json.loads((tmp_path / "out" / "survey.json").read_text())["notes"][0]
    assert said in (tmp_path / "out" / "survey.html").read_text()
    assert said in capsys.readouterr().out


def test_one_picture_is_a_survey(tmp_path, capsys):
    cv2.imwrite(str(tmp_path / "only.png"), striped(0, True))
    assert main(["survey", str(tmp_path), "--out", str(tmp_path / "out"), "--json"]) == 0
    assert len(of_schema("survey", capsys.readouterr().out)["clusters"]) == 1
    assert "No positions" in (tmp_path / "out" / "survey.html").read_text()


@pytest.mark.parametrize(
    ("files", "given", "message"),
    [
        ({}, [], "no pictures"),
        ({"a.png": b"none"}, [], "none of the 1 pictures can be read"),
        ({"a.png": b"none"}, ["--c-width", "0"], "--c-width 0.0"),
        ({"a.png": b"none"}, ["--nav", "nowhere.csv"], "nowhere.csv: no such file"),
        ({"a.png": b"none"}, ["--segments", "patches"], "--model sgmc has none"),
        ({"a.png": b"none"}, ["--every", "0"], "--every 0: it is at least 1"),
    ],
)
def test_what_cannot_be_surveyed_is_one_message_and_exit_2(tmp_path, capsys, files, given, message):
    folder = tmp_path / "dive"
    folder.mkdir()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    assert main(["survey", str(folder), "--out", str(tmp_path / "out"), *given]) == 2
    assert message in capsys.readouterr().err


def test_a_world_of_one_ground_is_few_clusters(tmp_path, capsys):
    world = make_world("transect", seed=3, n_frames=20, width=160, height=120, quiet=True)
    for i in range(20):
        cv2.imwrite(str(tmp_path / f"{i}.png"), world.render(i))
    given = ["--c-width", "0.5", "--json"]
    assert main(["survey", str(tmp_path), "--out", str(tmp_path / "out"), *given]) == 0
    assert len(json.loads(capsys.readouterr().out)["clusters"]) <= 2
