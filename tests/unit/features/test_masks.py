"""Masks: which pixels and patches are never looked at."""

import cv2
import numpy as np
import pytest

from stillwatch.base.errors import ConfigError
from stillwatch.features.masks import MaskFill, patches_clear_of, rasterise

LEFT_HALF = [(0.0, 0.0), (0.5, 0.0), (0.5, 1.0), (0.0, 1.0)]


def test_a_polygon_covers_the_pixels_whose_centres_it_holds():
    masked = rasterise([LEFT_HALF], "", 6, 8)
    assert masked[:, :4].all()
    assert not masked[:, 5:].any()


def test_polygons_add_up_and_none_mask_nothing():
    right = [(0.75, 0.0), (1.0, 0.0), (1.0, 1.0), (0.75, 1.0)]
    both = rasterise([LEFT_HALF, right], "", 40, 40)
    assert both[:, :19].all()
    assert both[:, 31:].all()
    assert not both[:, 22:29].any()
    assert not rasterise([], "", 40, 40).any()


def test_a_png_masks_where_it_is_white_at_any_size(tmp_path):
    picture = np.zeros((10, 20), np.uint8)
    picture[5:] = 255
    path = str(tmp_path / "mask.png")
    cv2.imwrite(path, picture)
    masked = rasterise([], path, 100, 50)
    assert not masked[:50].any()
    assert masked[50:].all()


@pytest.mark.parametrize("content", [b"", b"not a picture"])
def test_a_png_that_is_none_is_a_fault_of_the_config(tmp_path, content):
    path = tmp_path / "mask.png"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"features.mask_png: .*mask.png: not an image"):
        rasterise([], str(path), 8, 8)


def test_an_absent_png_and_a_polygon_of_two_corners_are_faults_of_the_config(tmp_path):
    with pytest.raises(ConfigError, match=r"absent.png: No such file"):
        rasterise([], str(tmp_path / "absent.png"), 8, 8)
    with pytest.raises(ConfigError, match=r"features.mask\[1\]: 2 corners, at least 3"):
        rasterise([LEFT_HALF, [(0.0, 0.0), (1.0, 1.0)]], "", 8, 8)


def test_patches_touching_the_mask_by_one_pixel_are_not_clear():
    masked = np.zeros((32, 48), np.bool_)
    masked[16, 16] = True
    rows = columns = np.array([8, 16, 24])
    clear = patches_clear_of(masked, rows, columns, 16).reshape(3, 3)
    # a patch covers centre - 8 .. centre + 7
    np.testing.assert_array_equal(clear, [[1, 1, 1], [1, 0, 0], [1, 0, 0]])


def test_masked_pixels_take_the_value_of_the_nearest_visible_one():
    masked = np.zeros((4, 6), np.bool_)
    masked[:, :3] = True
    grey = np.tile(np.arange(6, dtype=np.uint8) * 10, (4, 1))
    colour = np.repeat(grey[..., None], 3, axis=2)
    filled, filled_colour = MaskFill(masked).apply(grey, colour)
    np.testing.assert_array_equal(filled, np.tile([30, 30, 30, 30, 40, 50], (4, 1)))
    np.testing.assert_array_equal(filled_colour[..., 1], filled)
    assert grey[0, 0] == 0  # the frame itself is never written


def test_a_mask_of_everything_leaves_nothing_of_the_picture():
    masked = np.ones((4, 4), np.bool_)
    grey = np.full((4, 4), 200, np.uint8)
    filled, colour = MaskFill(masked).apply(grey, np.repeat(grey[..., None], 3, axis=2))
    assert not filled.any()
    assert not colour.any()


def test_without_a_mask_the_frame_is_passed_on_uncopied():
    grey, colour = np.zeros((4, 4), np.uint8), np.zeros((4, 4, 3), np.uint8)
    out = MaskFill(np.zeros((4, 4), np.bool_)).apply(grey, colour)
    assert out[0] is grey
    assert out[1] is colour
