"""Pictures made smaller: areas that are no whole pixels against sums written out, and OpenCV."""

import cv2
import numpy as np
import pytest

from stillwatch.features import shrunk
from stillwatch.features.shrinking import area_plan

RNG = np.random.default_rng(0)


def noise(*shape):
    return RNG.integers(0, 256, shape, dtype=np.uint8)


def covered(n_from, n_to):
    """Return the share of each pixel of a line, (n_to, n_from), in each of a shorter line: exact, in float64."""
    edges = np.linspace(0.0, n_from, n_to + 1)
    low, high = edges[:-1, None], edges[1:, None]
    left = np.arange(n_from)[None]
    return np.clip(np.minimum(high, left + 1) - np.maximum(low, left), 0.0, None) * n_to / n_from


@pytest.mark.parametrize("channels", [(), (3,)], ids=["grey", "colour"])
@pytest.mark.parametrize(
    ("size", "smaller"),
    [
        ((288, 384), (180, 240)),  # periods of eight columns to five
        ((48, 160), (18, 60)),  # eight to three
        ((60, 192), (25, 80)),  # twelve to five
        ((50, 80), (20, 80)),  # rows alone
        ((40, 192), (40, 72)),  # columns alone
        ((41, 192), (17, 72)),  # whole periods across, none down
    ],
)
def test_each_pixel_is_the_mean_of_the_area_that_it_covers(size, smaller, channels):
    image = noise(*size, *channels)
    assert area_plan(size, smaller, 3 if channels else 1) is not None
    found = shrunk(image, *smaller)
    across = np.einsum("ij,kj...->ki...", covered(size[1], smaller[1]), image.astype(np.float64))
    mean = np.einsum("ij,jk...->ik...", covered(size[0], smaller[0]), across)
    assert found.dtype == np.uint8
    assert np.abs(found - mean).max() <= 0.5 + 1e-4
    theirs = cv2.resize(image, smaller[::-1], interpolation=cv2.INTER_AREA)
    assert np.abs(found.astype(int) - theirs).max() <= 1  # builds of OpenCV differ in how they add up
    assert np.mean(found != theirs) < 1e-3


def test_sums_are_taken_along_a_row_and_then_over_rows_in_float32():
    image = noise(24, 128)
    across = np.zeros((24, 80), np.float32)
    for column in range(80):
        low = 1.6 * column
        for pixel in range(int(low + 1e-9), min(int(np.ceil(low + 1.6 - 1e-9)), 128)):
            share = np.float32((min(low + 1.6, pixel + 1) - max(low, pixel)) / 1.6)
            across[:, column] += image[:, pixel].astype(np.float32) * share
    down = np.zeros((15, 80), np.float32)
    for row in range(15):
        low = 1.6 * row
        for pixel in range(int(low + 1e-9), min(int(np.ceil(low + 1.6 - 1e-9)), 24)):
            down[row] += np.float32((min(low + 1.6, pixel + 1) - max(low, pixel)) / 1.6) * across[pixel]
    assert np.array_equal(shrunk(image, 15, 80), np.rint(down).astype(np.uint8))


@pytest.mark.parametrize("value", [0, 255])
def test_a_picture_of_one_grey_stays_so(value):
    assert (shrunk(np.full((96, 128, 3), value, np.uint8), 60, 80) == value).all()


@pytest.mark.parametrize(
    ("size", "smaller"),
    [((61, 93), (50, 57)), ((30, 40), (45, 60)), ((30, 40), (30, 40)), ((60, 80), (30, 40))],
    ids=["few periods", "larger", "the same size", "halves"],
)
def test_other_sizes_are_opencvs(size, smaller):
    image = noise(*size)
    assert np.array_equal(shrunk(image, *smaller), cv2.resize(image, smaller[::-1], interpolation=cv2.INTER_AREA))


def test_a_part_of_a_picture_is_taken_as_it_stands():
    image = noise(120, 200, 3)
    part = image[10:106, 20:148]
    assert np.array_equal(shrunk(part, 60, 80), shrunk(part.copy(), 60, 80))
