"""The frame descriptor: pyramids of pooled cells and colour moments, blind to what is masked."""

import cv2
import numpy as np
import pytest

from stillwatch.features.frame_descriptor import (
    CELL_CONTRAST,
    FrameDescriptor,
    colour_moments,
    grey_world,
    pooling_matrix,
    pyramid_regions,
)
from stillwatch.features.hog import CellHog

HOG_DIMS = 21 * 31


def picture(height: int = 96, width: int = 128, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    colour = np.random.default_rng(seed).integers(0, 256, (height, width, 3)).astype(np.uint8)
    colour = cv2.GaussianBlur(colour, (0, 0), 2)
    return cv2.cvtColor(colour, cv2.COLOR_BGR2GRAY), colour


def unmasked(height: int = 96, width: int = 128) -> np.ndarray:
    return np.zeros((height, width), np.bool_)


def test_regions_cover_the_grid_once_at_every_level():
    for level, first in ((1, 0), (2, 1), (4, 5)):
        hits = np.zeros((12, 16), int)
        for rows, columns in pyramid_regions(12, 16, (1, 2, 4))[first : first + level * level]:
            hits[rows, columns] += 1
        assert (hits == 1).all()


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (3, 2), (1, 40)])
def test_no_region_is_empty_however_small_the_grid(rows, columns):
    assert all(np.zeros((rows, columns))[region].size for region in pyramid_regions(rows, columns, (1, 2, 4)))


def test_pooled_cells_are_the_means_of_the_regions_cells():
    grey, colour = picture()
    out = FrameDescriptor(unmasked(), False).compute(grey, colour)[:HOG_DIMS].reshape(21, 31)
    cells = CellHog(96, 128, 8, CELL_CONTRAST).compute(grey).reshape(12, 16, 31)
    np.testing.assert_allclose(out[0], cells.mean((0, 1)), atol=1e-5)
    np.testing.assert_allclose(out[4], cells[6:, 8:].mean((0, 1)), atol=1e-5)
    np.testing.assert_allclose(out[20], cells[9:, 12:].mean((0, 1)), atol=1e-5)


def test_colour_moments_are_mean_deviation_and_skew_of_lab():
    lab = np.random.default_rng(1).uniform(0, 100, (6, 5, 3)).astype(np.float32) ** 1.5 / 10
    out = np.zeros((1, 9), np.float32)
    pooling = pooling_matrix(np.ones((6, 5), bool), [(slice(0, 6), slice(0, 5))]).astype(float)
    colour_moments(lab, pooling, np.zeros((30, 9)), out)
    pixels = lab.reshape(-1, 3).astype(np.float64) / 100
    centred = pixels - pixels.mean(0)
    wanted = np.concatenate([pixels.mean(0), pixels.std(0), np.cbrt((centred**3).mean(0))])
    np.testing.assert_allclose(out[0], wanted, atol=1e-5)


def test_a_grey_picture_has_no_colour():
    grey, _ = picture()
    moments = FrameDescriptor(unmasked(), False).compute(grey, np.repeat(grey[..., None], 3, 2))[HOG_DIMS:]
    np.testing.assert_allclose(moments.reshape(5, 3, 3)[:, :, 1:], 0, atol=0.02)


def test_masked_cells_and_pixels_count_in_no_region():
    masked = unmasked()
    masked[:48, :64] = True
    grey, colour = picture()
    out = FrameDescriptor(masked, False).compute(grey, colour)
    pooled, moments = out[:HOG_DIMS].reshape(21, 31), out[HOG_DIMS:].reshape(5, 9)
    assert not pooled[1].any()
    assert not moments[1].any()
    cells = CellHog(96, 128, 8, CELL_CONTRAST).compute(grey).reshape(12, 16, 31)
    visible = np.ones((12, 16), bool)
    visible[:6, :8] = False
    np.testing.assert_allclose(pooled[0], cells[visible].mean(0), atol=1e-5)


def test_everything_masked_gives_zeros():
    grey, colour = picture()
    assert not FrameDescriptor(np.ones((96, 128), bool), True).compute(grey, colour).any()


@pytest.mark.parametrize("cast", [(1.0, 0.6, 0.25), (0.5, 1.0, 1.0)])
def test_colour_constancy_undoes_what_water_does_to_colour(cast):
    rng = np.random.default_rng(2)
    colour = rng.integers(60, 250, (24, 32, 3)).astype(np.uint8)
    tinted = np.round(colour * np.array(cast)).astype(np.uint8)
    visible = np.ones((24, 32), bool)
    plain, undone = (np.log1p(grey_world(image, visible).astype(float)) for image in (colour, tinted))
    shift = (undone - plain).reshape(-1, 3).mean(0)
    assert np.ptp(shift) < 0.02  # the same change in each channel: no cast is left
    assert np.ptp((np.log1p(tinted.astype(float)) - np.log1p(colour.astype(float))).reshape(-1, 3).mean(0)) > 0.5


def test_colour_constancy_ignores_masked_pixels():
    colour = picture()[1][:24, :32]
    visible = np.ones((24, 32), bool)
    visible[:, :16] = False
    other = colour.copy()
    other[:, :16] = (0, 0, 255)
    np.testing.assert_array_equal(grey_world(colour, visible)[:, 16:], grey_world(other, visible)[:, 16:])
    np.testing.assert_array_equal(grey_world(other, ~np.ones((24, 32), bool)), other)


@pytest.mark.parametrize("shape", [(1, 1), (1, 300), (300, 1), (7, 9), (31, 200)])
def test_any_shape_gives_a_finite_descriptor(shape):
    grey, colour = picture(*shape)
    for constancy in (False, True):
        out = FrameDescriptor(unmasked(*shape), constancy).compute(grey, colour)
        assert out.shape == (FrameDescriptor.n_dims,)
        assert np.isfinite(out).all()
