"""What was in view as a table: a row a frame and topic, the largest share first."""

import pytest
from run_folders import make_run

from stillwatch.runs import open_run


@pytest.fixture(scope="module")
def topics(tmp_path_factory):
    return open_run(make_run(tmp_path_factory.mktemp("run"), topics=True)).topics()


def test_every_frame_that_was_told_has_its_topics_the_largest_first(topics):
    first, second = topics.rows[:2]
    assert (first["frame"], first["topic"], first["share"]) == (100, 0, 0.75)
    assert (second["frame"], second["topic"], second["share"]) == (100, 1, 0.25)
    assert [row["topic"] for row in topics.rows[-2:]] == [1, 0]
    assert set(topics["frame"].tolist()) == {i for i in range(100, 900, 10) if not 540 <= i < 580}


def test_rows_say_where_the_camera_was(topics):
    assert topics.rows[0]["latitude"] == pytest.approx(10.001)
    assert topics.rows[0]["longitude"] == 20.0
