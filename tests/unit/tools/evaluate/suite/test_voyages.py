"""Worlds of a moving camera: truth is what is in the pictures; any frame by itself; the same bits for the same seed."""

import functools

import numpy as np
import pytest
from data_location import data_dir
from made_worlds import without_news

from stillwatch.tools.evaluate.suite.voyages import COURSES, LEARN_S, Pose, Voyage


@pytest.fixture(scope="module")
def data():
    data_dir("caltech")
    return data_dir("underwater").parent


made = functools.cache(Voyage)  # tests look at them, and leave them as they were


@pytest.fixture(scope="module", params=[0, 2, 3])
def voyage(request, data):
    return made(request.param, data)


def test_pictures_differ_by_news_within_the_truth_and_nowhere_else(voyage):
    inside = voyage.truth().labels(np.arange(voyage.n_frames))
    spans = voyage.truth().spans
    assert spans
    for first, last in spans:
        middle = (first + last) // 2
        assert (voyage.render(middle) != without_news(voyage, middle)).any()
    for i in np.flatnonzero(~inside)[::40]:
        np.testing.assert_array_equal(voyage.render(int(i)), without_news(voyage, int(i)))


def test_news_comes_after_the_learning_time(voyage):
    assert min(first for first, _ in voyage.truth().spans) > LEARN_S * voyage.rate_hz


def test_the_same_seed_gives_the_same_frames_in_any_order(data, voyage):
    again = Voyage(voyage.seed, data)
    later = again.render(90)
    np.testing.assert_array_equal(again.render(20), voyage.render(20))
    np.testing.assert_array_equal(later, voyage.render(90))


def test_every_course_is_taken_and_one_of_six_is_quiet(data):
    voyages = [made(seed, data) for seed in range(len(COURSES))]
    assert {voyage.course for voyage in voyages} == set(COURSES)
    assert [bool(voyage.truth().spans) for voyage in voyages] == [True, True, True, True, False, True]


def test_a_late_camera_stands_still_at_first(data):
    poses = made(5, data).poses
    assert len(set(poses[:90])) == 1
    assert len(set(poses[110:])) > 200


def test_a_pose_brings_its_centre_to_the_middle_and_height_makes_things_small():
    pose = Pose(500.0, 300.0, 30.0, 2.0)
    matrix = pose.to_view()
    np.testing.assert_allclose(matrix @ (500.0, 300.0, 1.0), (160.0, 120.0))
    away = matrix @ (510.0, 300.0, 1.0) - (160.0, 120.0)
    assert np.hypot(*away) == pytest.approx(5.0)


def test_a_frame_outside_is_refused(voyage):
    with pytest.raises(IndexError, match="outside"):
        voyage.render(voyage.n_frames)
