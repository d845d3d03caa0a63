"""Segments of a picture and their descriptors: which pixels belong together, and what each is like."""

import importlib.util

import numpy as np
import pytest

from stillwatch.tools.survey.describe import describe_images
from stillwatch.tools.survey.segments import PATCHES, SUPERPIXELS, describe_segments, segment_map

has_skimage = pytest.mark.skipif(importlib.util.find_spec("skimage") is None, reason="needs scikit-image")


def halves():
    """Return a picture of a red half and a blue one, (96, 128, 3) uint8 BGR."""
    image = np.zeros((96, 128, 3), np.uint8)
    image[:, :64, 2] = 200
    image[:, 64:, 0] = 200
    return image


def test_patches_are_cells_of_a_grid_that_cover_the_picture():
    cells = segment_map(halves(), PATCHES)
    assert np.bincount(cells.ravel()).tolist() == [16 * 16] * 48


def test_pictures_smaller_than_the_grid_have_a_segment_for_what_they_have():
    assert segment_map(np.zeros((3, 4, 3), np.uint8), PATCHES).max() + 1 == 12


@has_skimage
def test_superpixels_keep_to_the_border_of_what_they_show():
    cells = segment_map(halves(), SUPERPIXELS)
    left, right = set(cells[:, :63].ravel().tolist()), set(cells[:, 65:].ravel().tolist())
    assert not left & right
    assert 20 <= cells.max() + 1 <= 80
    np.testing.assert_array_equal(cells, segment_map(halves(), SUPERPIXELS))


def test_a_segment_has_the_mean_of_its_patches_and_of_its_colours():
    image = halves()
    cells = (np.arange(128) >= 64).astype(np.int64)[None].repeat(96, axis=0)
    rows, columns = np.array([20.0, 60.0]), np.array([30.0, 50.0, 100.0])
    patches = np.arange(6.0, dtype=np.float32)[:, None].repeat(128, axis=1)
    found = describe_segments(image, cells, patches, rows, columns)
    assert found.shape == (2, 134)
    np.testing.assert_allclose(found[:, 0], [(0 + 1 + 3 + 4) / 4, (2 + 5) / 2])
    np.testing.assert_allclose(found[:, -3:], 0.0, atol=1e-3)  # no spread of colour within a half
    assert np.abs(found[0, -6:-3] - found[1, -6:-3]).max() > 0.1


def test_a_segment_without_a_patch_has_the_nearest_one():
    cells = np.zeros((96, 128), np.int64)
    cells[:4, :4] = 1
    patches = np.array([[1.0], [2.0]], np.float32).repeat(128, axis=1)
    found = describe_segments(halves(), cells, patches, np.array([20.0]), np.array([30.0, 100.0]))
    assert found[1, 0] == 1.0


@pytest.mark.parametrize("kind", [PATCHES, pytest.param(SUPERPIXELS, marks=has_skimage)])
def test_pictures_of_mixed_sizes_are_described_alike(kind):
    sizes = [(240, 320), (64, 80), (20, 300)]
    rng = np.random.default_rng(0)
    found = list(describe_images([rng.integers(0, 255, (*size, 3), np.uint8) for size in sizes], kind))
    assert {made.whole.shape for made in found} == {(21504,)}
    assert all(made.segments.shape[1] == 134 and np.isfinite(made.segments).all() for made in found)
