"""Worlds of a camera that looks ahead: truth is what is in the pictures; any frame by itself; same seed, same bits."""

import functools

import numpy as np
import pytest
from data_location import data_dir
from made_worlds import without_news

from stillwatch.tools.evaluate.suite.ahead import LEARN_S, SHOWN_PX, STYLES, Ahead
from stillwatch.tools.evaluate.suite.scenery import CAMERA_TALL, FOCAL_PX, Pose, Rays, ahead_of, standing
from stillwatch.tools.evaluate.suite.worlds import HEIGHT, WIDTH

LEVEL = Pose(0.0, 0.0, 0.0, 0.0, 0.0)
HORIZON_PX = 80.0
POLE = np.full((40, 10, 4), 255, np.uint8)


@pytest.fixture(scope="module")
def data():
    data_dir("caltech")
    return data_dir("underwater").parent


made = functools.cache(Ahead)  # tests look at them, and leave them as they were


@pytest.fixture(scope="module", params=[1, 3, 5])
def world(request, data):
    return made(request.param, data)


def test_pictures_differ_by_news_where_it_counts_and_nowhere_that_is_judged(world):
    truth, numbers = world.truth(), np.arange(world.n_frames)
    assert truth.spans
    for first, last in truth.spans:
        middle = (first + last) // 2
        changed = (world.render(middle) != without_news(world, middle)).any(axis=2)
        assert changed.any(axis=1).sum() >= 0.5 * SHOWN_PX  # rocks may stand before it
    for i in np.flatnonzero(~truth.labels(numbers) & truth.judged(numbers))[::40]:
        np.testing.assert_array_equal(world.render(int(i)), without_news(world, int(i)))


def test_news_comes_after_the_learning_time(world):
    assert min(first for first, _ in world.truth().spans) > LEARN_S * world.rate_hz


def test_the_same_seed_gives_the_same_frames_in_any_order(data, world):
    again = Ahead(world.seed, data)
    later = again.render(90)
    np.testing.assert_array_equal(again.render(20), world.render(20))
    np.testing.assert_array_equal(later, world.render(90))


def test_every_style_is_taken_and_one_of_six_is_quiet(data):
    worlds = [made(seed, data) for seed in range(len(STYLES))]
    assert {world.style for world in worlds} == set(STYLES)
    assert [bool(world.truth().spans) for world in worlds] == [True, True, True, True, False, True]


def test_a_robot_that_stops_stands_and_a_buoy_never_goes(data):
    stops = [(pose.x, pose.z) for pose in made(2, data).poses]
    assert 20 < sum(a == b for a, b in zip(stops, stops[1:], strict=False)) < 300
    assert {(pose.x, pose.z) for pose in made(5, data).poses} == {(0.0, 0.0)}


@pytest.mark.parametrize("pose", [LEVEL, Pose(2.0, -1.0, 0.7, 0.1, 6.0)])
def test_a_pixel_looks_at_the_ground_where_a_thing_that_stands_there_has_its_foot(pose):
    rays = Rays(pose, HORIZON_PX)
    row, column = 180, 200
    assert rays.below[row, column]
    x, z = float(rays.x[row, column]), float(rays.z[row, column])
    (rows, columns, part), tall_px = standing(POLE, x, z, 0.3, 0.0, pose, HORIZON_PX)
    assert ahead_of(tall_px, 0.3) == pytest.approx(float(rays.ahead[row, column]), rel=1e-5)
    lowest = rows.start + np.flatnonzero(part[..., 3].any(axis=1))[-1]
    assert lowest == pytest.approx(row, abs=3)
    across = columns.start + np.flatnonzero(part[-4, :, 3])
    assert across.mean() == pytest.approx(column, abs=4)


def test_the_ground_below_a_level_camera_lies_as_far_ahead_as_the_angle_says():
    rays = Rays(LEVEL, HORIZON_PX)
    assert not rays.below[: int(HORIZON_PX)].any()
    down = HEIGHT - 1 - HORIZON_PX
    assert rays.ahead[HEIGHT - 1, WIDTH // 2] == pytest.approx(FOCAL_PX * CAMERA_TALL / down)
    assert rays.x[HEIGHT - 1, WIDTH // 2] == pytest.approx(0.0, abs=1e-6)


def test_a_thing_twice_as_far_is_half_as_high_and_one_behind_is_not_seen():
    near, far = (standing(POLE, 0.0, z, 0.5, 0.0, LEVEL, HORIZON_PX) for z in (2.0, 4.0))
    assert near[1] == pytest.approx(2.0 * far[1])
    assert standing(POLE, 0.0, -2.0, 0.5, 0.0, LEVEL, HORIZON_PX) is None


def test_what_is_sunk_shows_less_of_itself():
    whole, sunk = (standing(POLE, 0.0, 2.0, 0.5, share, LEVEL, HORIZON_PX)[0][2] for share in (0.0, 0.25))
    assert (sunk[..., 3] > 0).sum() == pytest.approx(0.75 * (whole[..., 3] > 0).sum(), rel=0.05)


def test_a_frame_outside_is_refused(world):
    with pytest.raises(IndexError, match="outside"):
        world.render(world.n_frames)
