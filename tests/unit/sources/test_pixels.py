"""Pixels: every depth and layout becomes 8-bit BGR by a scale that stays; frames fit the box."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stillwatch.settings.config import SourceConfig
from stillwatch.sources.pixels import PixelScale, box_size, fit_box


def scale(**settings):
    return PixelScale(SourceConfig(**settings))


def levels(image, converter=None):
    return (converter or scale()).to_bgr(np.asarray(image))[:, :, 0]


def test_8_bit_grey_and_colour_pass_unchanged():
    colour = np.random.default_rng(0).integers(0, 255, (8, 9, 3), np.uint8)
    assert (scale().to_bgr(colour) == colour).all()
    assert (scale().to_bgr(colour[:, :, 0]) == colour[:, :, :1]).all()
    assert (scale().to_bgr(np.dstack([colour, colour[:, :, 0]])) == colour).all()


@pytest.mark.parametrize(
    ("most", "white"), [(4095, 4095), (4000, 4095), (16_000, 16_383), (65_535, 65_535), (30, 4095)]
)
def test_16_bit_white_is_the_depth_in_use(most, white):
    ramp = np.linspace(0, most, 20 * 20).astype(np.uint16).reshape(20, 20)
    assert levels(ramp).max() == int(most / white * 255 + 0.5)


def test_the_scale_is_learnt_once_so_a_darker_frame_is_darker():
    converter = scale()
    bright = np.full((10, 10), 4000, np.uint16)
    assert levels(bright, converter).max() == 249
    assert levels(bright // 10, converter).max() == 25


def test_a_scale_learnt_in_the_dark_is_widened_when_light_comes():
    converter = scale()
    levels(np.full((10, 10), 100, np.uint16), converter)
    assert converter.name == "white4095"
    assert levels(np.full((10, 10), 60_000, np.uint16), converter).max() == 233
    assert converter.name == "white65535"


def test_a_few_hot_pixels_do_not_widen_the_scale():
    converter = scale()
    frame = np.full((100, 100), 2000, np.uint16)
    levels(frame, converter)
    frame[0, :10] = 65_535
    assert levels(frame, converter)[50, 50] == 125
    assert levels(frame, converter)[0, 0] == 255


def test_configured_levels_are_used_as_they_are():
    converter = scale(black_level=64.0, white_level=1023.0)
    image = np.array([[0, 64, 1023, 4000, 544]], np.uint16)
    assert levels(image, converter).tolist() == [[0, 0, 255, 255, 128]]


def test_float_pictures_may_hold_anything():
    image = np.array([[0.0, 0.5, 1.0, np.nan, -np.inf]] * 20, np.float32)
    assert levels(image)[0].tolist() == [0, 128, 255, 0, 0]


def test_bayer_mosaic_gives_the_colour_of_its_pattern():
    mosaic = np.zeros((16, 16), np.uint8)
    mosaic[0::2, 0::2] = 200  # the red places of RGGB
    blue, green, red = scale(bayer="rggb").to_bgr(mosaic)[8, 8]
    assert red > 150
    assert blue < 20
    assert green < 20


@pytest.mark.parametrize("shape", [(0, 4), (4, 4, 5), (4,), (2, 2, 2, 2)])
def test_other_shapes_are_refused(shape):
    with pytest.raises(ValueError, match="neither grey nor colour"):
        scale().to_bgr(np.zeros(shape, np.uint8))


def test_complex_pixels_are_refused():
    with pytest.raises(ValueError, match="not numbers"):
        scale().to_bgr(np.zeros((4, 4), np.complex64))


@given(st.integers(1, 5000), st.integers(1, 5000))
def test_the_box_is_never_exceeded_and_nothing_is_enlarged(width, height):
    fitted = box_size(width, height, 384, 288)
    assert 1 <= fitted[0] <= min(384, width)
    assert 1 <= fitted[1] <= min(288, height)


def test_the_box_keeps_the_shape():
    assert box_size(1920, 1080, 384, 288) == (384, 216)
    assert box_size(1080, 1920, 384, 288) == (162, 288)
    assert box_size(320, 240, 384, 288) == (320, 240)


def test_scaling_averages_areas_and_gives_new_read_only_arrays():
    checks = np.indices((8, 8)).sum(0) % 2 * 200
    colour = np.repeat(checks[:, :, None], 3, 2).astype(np.uint8)
    grey, scaled = fit_box(colour, (4, 4))
    assert (scaled == 100).all()
    assert (grey == 100).all()
    grey, same = fit_box(colour, (8, 8))
    colour[:] = 0
    assert same.max() == 200
    assert not grey.flags.writeable
    assert not same.flags.writeable
    assert same.flags.c_contiguous
