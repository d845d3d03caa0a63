"""The map inside the page: what it draws, what it names, and that names stay text."""

import json

import numpy as np

from stillwatch.tools.survey.ground import map_html
from stillwatch.tools.survey.ground.map import MOST_POINTS, MOST_STILL, unbroken

DEGREE_M = 6_371_000.0 * np.pi / 180.0


def track(n, dive=0):
    positions = np.column_stack([10.0 + np.arange(n) / DEGREE_M, np.full(n, 20.0 + dive)])
    return positions, np.full(n, dive)


def drawn(positions, dives, captions=None, names=("one", "two"), figures=()):
    """Return (what the map's script is given, the whole text)."""
    n = len(positions)
    text = map_html(
        np.arange(n) % 2, dives, list(names), positions, captions or [f"p{i}" for i in range(n)], str, set(figures)
    )
    return json.loads(text.partition("id=map-data>")[2].partition("</script>")[0]), text


def test_points_are_metres_and_only_those_whose_position_is_known():
    positions, dives = track(5)
    positions[2] = np.nan
    data, text = drawn(positions, dives, figures=(3,))
    np.testing.assert_allclose(np.diff(data["y"]), [1.0, 2.0, 1.0], atol=0.02)
    assert data["cluster"] == [0, 1, 1, 0]
    assert data["item"] == [-1, -1, 3, -1]
    assert "Without a position, and so not on the map: 1." in text
    assert text.count("<circle") == 4


def test_lines_join_pictures_of_one_dive_and_stop_at_gaps():
    (first, _), (second, _) = track(6), track(3, 1)
    first[4:, 0] += 1.0
    assert unbroken(np.array([0] * 6 + [1] * 3), np.concatenate([first, second])) == [[0, 4], [4, 6], [6, 9]]


def test_names_from_files_cannot_leave_the_data():
    positions, dives = track(2)
    name = '</script><script>alert("1")</script>'
    data, text = drawn(positions, dives, captions=[name, "b"], names=[name, "two"])
    assert data["name"][0] == data["dives"][0] == name
    assert "alert" in text
    assert "<script>alert" not in text


def test_long_surveys_are_thinned_and_the_still_picture_more():
    positions, dives = track(MOST_POINTS + 1)
    data, text = drawn(positions, dives)
    assert len(data["x"]) == MOST_POINTS // 2 + 1
    assert text.count("<circle") <= MOST_STILL
