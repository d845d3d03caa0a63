"""Transforms change what they say, keep shape and type, and give the same picture again."""

import cv2
import numpy as np
import pytest

from stillwatch.tools.evaluate.suite import transforms
from stillwatch.tools.evaluate.suite.transforms import TRANSFORMS, transformed, views_changed


@pytest.fixture(scope="module")
def pictures():
    """Return 20 equal pictures of smooth structure, (20, 72, 96, 3) uint8, mean about 120."""
    base = 120.0 + 60.0 * transforms.field(72, 96, 12.0, 5)[..., None] * np.array([1.0, 0.8, 0.6])
    return np.repeat(np.clip(base, 0, 255).astype(np.uint8)[None], 20, axis=0)


@pytest.mark.parametrize("name", list(TRANSFORMS))
def test_each_gives_as_many_pictures_and_the_same_again(pictures, name):
    first, second = (list(transformed(name, pictures, 20)) for _ in range(2))
    factor = 2 if name == "double_size" else 1
    assert len(first) == 20
    for one, other in zip(first, second, strict=True):
        assert one.dtype == np.uint8
        assert one.shape == (72 * factor, 96 * factor, 3)
        assert np.array_equal(one, other)


def at(name, picture, i):
    return TRANSFORMS[name].rule(picture, i, np.random.default_rng(i)).astype(float)


def test_night_has_a_third_of_the_light_and_nine_levels_of_noise(pictures):
    light = np.full((72, 96, 3), 180, np.uint8)
    night = at("night_noise", light, 0)
    assert night.mean() == pytest.approx(0.33 * 180, abs=1.0)
    assert night.std() == pytest.approx(9.0, abs=0.5)


def test_fog_leaves_45_per_cent_of_the_contrast(pictures):
    assert at("fog", pictures[0], 0).std() == pytest.approx(0.45 * pictures[0].std(), rel=0.02)


def test_a_strobe_darkens_every_second_picture(pictures):
    assert [at("strobe", pictures[0], i).mean() < 90 for i in range(4)] == [False, True, False, True]


def test_exposure_steps_within_four_pictures_and_stays(pictures):
    grey = np.full((8, 8, 3), 100, np.uint8)
    # From 1 to 0.8 at picture 120, a quarter of the way each: 95, 90, 85, 80.
    levels = [round(at("exposure_steps", grey, i).mean()) for i in (0, 119, 120, 121, 122, 123, 200)]
    assert levels == pytest.approx([100, 100, 95, 90, 85, 80, 80], abs=1)


def test_white_balance_turns_red_against_blue(pictures):
    grey = np.full((8, 8, 3), 100, np.uint8)
    blue, green, red = at("white_balance_steps", grey, 200).mean(axis=(0, 1))
    assert (blue, green, red) == pytest.approx((88, 100, 112), abs=1)


def test_hard_shade_halves_the_light_on_one_side_and_moves(pictures):
    light = np.full((72, 96, 3), 200, np.uint8)
    middle = {i: (at("moving_shade", light, i)[36, :, 0] < 101) for i in (0, 75)}
    assert 0.4 < middle[0].mean() < 0.6
    assert middle[75].mean() < middle[0].mean() - 0.2
    assert set(np.unique(at("moving_shade", light, 0)[36, :, 0])) <= set(range(100, 201))


@pytest.mark.parametrize(("name", "i"), [("headlights", 110), ("spider", 180)])
def test_what_comes_and_goes_leaves_other_pictures_alone(pictures, name, i):
    assert np.array_equal(at(name, pictures[0], 5), pictures[0])
    assert np.abs(at(name, pictures[0], i) - pictures[0]).max() > 30


def test_drops_come_one_after_the_other_and_stay(pictures):
    sharp = np.indices((72, 96)).sum(axis=0) % 2 * 200
    sharp = np.repeat(sharp[..., None], 3, axis=2).astype(np.uint8)
    changed = [(np.abs(at("drops", sharp, i) - sharp).max(axis=2) > 50).sum() for i in (0, 60, 300, 300)]
    assert changed[0] == 0
    assert 0 < changed[1] < changed[2] == changed[3]


@pytest.mark.parametrize("name", ["rain", "snow", "marine_snow"])
def test_what_falls_brightens_few_pixels_and_moves(pictures, name):
    large = np.full((240, 320, 3), 100, np.uint8)
    one, other = at(name, large, 0), at(name, large, 1)
    brighter = (one - large).max(axis=2) > 20
    assert 0.005 < brighter.mean() < 0.35
    assert not np.array_equal(one, other)


def test_a_knock_changes_the_view_once_and_for_good(pictures):
    shown = list(transformed("knocked", pictures, 20))
    assert views_changed("knocked", 20) == (8,)
    assert all(np.array_equal(picture, pictures[0]) for picture in shown[:8])
    assert all(np.array_equal(picture, shown[8]) for picture in shown[8:])
    assert np.abs(shown[8].astype(float) - pictures[0]).mean() > 3


@pytest.mark.parametrize("name", ["low_bitrate", "h264"])
def test_coding_loses_detail_and_little_else(pictures, name):
    rng = np.random.default_rng(0)
    rough = np.clip(pictures + rng.normal(0, 12, pictures.shape), 0, 255).astype(np.uint8)
    shown = np.stack(list(transformed(name, rough, 20))).astype(float)
    assert np.abs(shown.mean(axis=(1, 2)) - rough.mean(axis=(1, 2))).max() < 5
    assert np.abs(np.diff(shown, axis=2)).mean() < 0.7 * np.abs(np.diff(rough.astype(float), axis=2)).mean()


def test_shake_displaces_by_about_two_pixels(pictures):
    shifts = [np.abs(at("shake", pictures[0], i) - pictures[0]).mean() for i in range(20)]
    assert 0.5 < np.mean(shifts) < 30
    ramp = np.repeat(np.tile(np.arange(96, dtype=np.uint8)[None, :, None], (72, 1, 1)), 3, axis=2)
    moves = [np.median(at("shake", ramp, i)[36, 20:76, 0] - ramp[36, 20:76, 0]) for i in range(200)]
    assert np.std(moves) == pytest.approx(2.0, abs=0.5)


def test_auto_exposure_holds_the_mean_whoever_comes(pictures):
    dark_visitor = pictures[0].copy()
    dark_visitor[10:50, 30:60] = 10
    alone, beside = at("auto_exposure", pictures[0], 0), at("auto_exposure", dark_visitor, 0)
    assert (alone.mean(), beside.mean()) == pytest.approx((110, 110), abs=1.0)
    assert beside[60:, :20].mean() > 1.1 * alone[60:, :20].mean()


def test_leaves_move_by_up_to_three_pixels_in_half_of_the_view_and_the_rest_stands():
    ramp = np.repeat(np.tile(np.arange(240, dtype=np.uint8)[None, :, None], (180, 1, 1)), 3, axis=2)
    moves = np.stack([at("foliage", ramp, i)[20:-20, 20:-20, 0] - ramp[20:-20, 20:-20, 0] for i in range(0, 40, 3)])
    farthest = np.abs(moves).max(axis=0)
    assert farthest.max() == pytest.approx(3.0, abs=1.0)
    assert 0.2 < (farthest >= 2).mean() < 0.8
    assert (farthest == 0).any()


def test_infrared_has_no_colour_less_light_at_the_edges_and_noise(pictures):
    light = np.full((72, 96, 3), 180, np.uint8)
    night = at("infrared", light, 0)
    assert np.array_equal(night[..., 0], night[..., 2])
    assert night[34:38, 46:50].mean() == pytest.approx(180, abs=4)
    assert night[:4, :4].mean() == pytest.approx(180 * 0.3, abs=12)
    assert (night[30:40, 40:56, 0] - cv2.blur(night[30:40, 40:56, 0], (5, 5))).std() == pytest.approx(4.0, abs=1.5)
