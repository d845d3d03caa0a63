"""What a survey takes: folders as dives, labels, positions, and what is wrong with them."""

import re

import cv2
import numpy as np
import pytest

from stillwatch.base import UsageError
from stillwatch.tools.survey import dives_of, labels_of
from stillwatch.tools.survey.pictures import notes_of_dives, places_of, read_picture


def write(path, size=(20, 30)):
    path.parent.mkdir(parents=True, exist_ok=True)
    cv2.imwrite(str(path), np.full((*size, 3), 90, np.uint8))


@pytest.fixture
def mission(tmp_path):
    for name in ("dive1/img2.png", "dive1/img10.png", "dive2/img1.png"):
        write(tmp_path / "mission" / name)
    (tmp_path / "mission" / "notes.txt").write_text("calm")
    return tmp_path / "mission"


def test_a_folder_of_folders_gives_a_dive_for_each_in_natural_order(mission):
    found = {dive.name: [picture.name for picture in dive.pictures] for dive in dives_of([str(mission)])}
    assert found == {"dive1": ["dive1/img2.png", "dive1/img10.png"], "dive2": ["dive2/img1.png"]}


def test_folders_that_are_classes_are_one_dive(mission):
    dives = dives_of([str(mission)], labels_by_folder=True)
    assert [dive.name for dive in dives] == ["mission"]
    assert labels_of(dives, "DIR-NAMES") == (["dive1", "dive1", "dive2"], [])


def test_dives_of_one_name_get_numbers(tmp_path):
    for place in "ab":
        write(tmp_path / place / "dive" / "1.png")
    dives = dives_of([str(tmp_path / "a" / "dive"), str(tmp_path / "b" / "dive")])
    assert [dive.name for dive in dives] == ["dive", "dive-2"]
    assert notes_of_dives(dives) == [f"dives of one name have numbers: dive-2 is {tmp_path / 'b' / 'dive'}"]
    assert notes_of_dives(dives[:1]) == []


def test_a_name_that_fits_pictures_of_two_dives_places_neither_and_dive_and_name_places_one(tmp_path):
    for place in "ab":
        write(tmp_path / place / "1.png")
    dives = dives_of([str(tmp_path / "a"), str(tmp_path / "b")])
    nav = tmp_path / "nav.csv"
    nav.write_text("picture,latitude,longitude\n1.png,10,20\n")
    places, notes = places_of(dives, str(nav))
    assert np.isnan(places).all()
    assert notes == [
        f"{nav}: rows that fit more than one picture were left out, 1 of 1 (1.png); "
        "their column picture needs dive/name"
    ]
    nav.write_text("picture,latitude,longitude\n1.png,10,20\nb/1.png,30,40\n")
    places, notes = places_of(dives, str(nav))
    np.testing.assert_array_equal(places[:, :2], [[np.nan, np.nan], [30.0, 40.0]])
    assert len(notes) == 1


def test_a_dive_and_name_is_that_picture_s_even_where_it_is_a_path_in_another_dive(tmp_path):
    write(tmp_path / "a" / "1.png")
    write(tmp_path / "other" / "a" / "1.png")
    write(tmp_path / "other" / "2.png")
    dives = dives_of([str(tmp_path / "a"), str(tmp_path / "other")])
    nav = tmp_path / "nav.csv"
    nav.write_text("picture,latitude,longitude\na/1.png,10,20\n")
    places, notes = places_of(dives, str(nav))
    named = [f"{dive.name}/{picture.name}" for dive in dives for picture in dive.pictures]
    assert named == ["a/1.png", "other/2.png", "other/a/1.png"]
    np.testing.assert_array_equal(places[:, 0], [10.0, np.nan, np.nan])
    assert notes == []


def test_a_folder_without_pictures_or_not_there_is_refused(tmp_path):
    with pytest.raises(UsageError, match="no pictures"):
        dives_of([str(tmp_path)])
    with pytest.raises(UsageError, match="no such file or folder"):
        dives_of([str(tmp_path / "nowhere")])


def test_folders_that_are_links_are_followed_and_circles_end(mission, tmp_path):
    linked = tmp_path / "linked"
    linked.mkdir()
    for name in ("dive1", "dive2"):
        (linked / name).symlink_to(mission / name)
    (linked / "dive1" / "again").symlink_to(linked)
    assert [(dive.name, len(dive.pictures)) for dive in dives_of([str(linked)])] == [("dive1", 2), ("dive2", 1)]


def test_labels_by_file_count_what_is_missing_on_either_side(mission, tmp_path):
    table = tmp_path / "labels.csv"
    table.write_text("picture,label\nimg2.png,sand\ndive2/img1.png,reef\ngone.png,reef\n")
    labels, notes = labels_of(dives_of([str(mission)]), str(table))
    assert labels == ["sand", "", "reef"]
    assert [note.partition("; ")[0] for note in notes] == [
        f"{table}: rows that match no picture were left out, 1 of 3 (gone.png)"
    ]


def test_positions_with_gaps_are_unknown_there(mission, tmp_path):
    table = tmp_path / "nav.csv"
    rows = ["picture,latitude,longitude", "img2.png,-42.5,148.25", "img10.png,,", "img1.png,95,10"]
    table.write_text("\n".join(rows))
    found, notes = places_of(dives_of([str(mission)]), str(table))
    assert [note.partition("; ")[0] for note in notes] == [
        f"{table}: cells that are no number in range count as unknown, 1 of them (latitude 95 of img1.png)"
    ]
    np.testing.assert_array_equal(found[:, :2], [[-42.5, 148.25], [np.nan, np.nan], [np.nan, np.nan]])
    assert np.isnan(found[:, 2]).all()
    table.write_text(
        "\n".join(row + end for row, end in zip(rows, (",altitude_m", ",2.5", ",-1", ",far"), strict=True))
    )
    found, notes = places_of(dives_of([str(mission)]), str(table))
    np.testing.assert_array_equal(found[:, 2], [2.5, np.nan, np.nan])
    assert "unknown, 3 of them" in notes[0]
    assert "altitude_m -1 of img10.png, latitude 95 of img1.png, altitude_m far of" in notes[0]
    table.write_text(rows[0])
    found, notes = places_of(dives_of([str(mission)]), str(table))
    assert np.isnan(found).all()
    assert notes == []


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (["img2.png,1,2", "img10.png,1,2", "dive2/img1.png,1,2"], None),
        (["img2.png,1,2", "dive1/img10.png,1,2", "dive3/img1.png,1,2"], "left out, 1 of 3 \\(dive3/img1.png\\)"),
        ([f"{i}.png,1,2" for i in range(7)], "left out, 7 of 7 \\(0.png, 1.png, 2.png, 3.png, 4.png, ...\\)"),
        (["img1.png,1,2", ",1,2"], "left out, 1 of 2 \\(no name, or one that a later row has\\)"),
        (["img1.png,1,2", "img1.png,3,4"], "left out, 1 of 2 .* that a later row has\\)"),
    ],
)
def test_rows_of_nav_that_match_no_picture_are_counted_and_named_with_what_they_need(mission, tmp_path, rows, told):
    table = tmp_path / "nav.csv"
    table.write_text("\n".join(["picture,latitude,longitude", *rows]))
    _, notes = places_of(dives_of([str(mission)]), str(table))
    if told is None:
        assert notes == []
    else:
        assert len(notes) == 1
        assert re.search(f"{re.escape(str(table))}: rows that .*{told}; its column picture needs dive/name", notes[0])


@pytest.mark.parametrize(("text", "message"), [("a,b\n1,2\n", "no column picture"), ("", "no column picture")])
def test_a_table_without_its_columns_is_refused(mission, tmp_path, text, message):
    table = tmp_path / "t.csv"
    table.write_text(text)
    with pytest.raises(UsageError, match=message):
        labels_of(dives_of([str(mission)]), str(table))
    with pytest.raises(UsageError, match="(?i)no such file"):
        labels_of(dives_of([str(mission)]), str(tmp_path / "nowhere.csv"))


def test_large_pictures_are_scaled_and_broken_ones_are_none(tmp_path):
    write(tmp_path / "large.png", (480, 640))
    (tmp_path / "broken.jpg").write_bytes(b"no picture")
    assert read_picture(tmp_path / "large.png").shape == (240, 320, 3)
    assert read_picture(tmp_path / "broken.jpg") is None
