"""Means of blocks and powers of colours against NumPy, OpenCV and sums written out."""

import cv2
import numpy as np
import pytest

from stillwatch.kernels import pictures

RNG = np.random.default_rng(0)


def noise(*shape):
    return RNG.integers(0, 256, shape, dtype=np.uint8)


@pytest.mark.parametrize("channels", [(), (3,)], ids=["grey", "colour"])
@pytest.mark.parametrize("block", [(3, 3), (4, 4), (5, 5), (7, 7), (8, 8), (3, 11), (16, 6)])
def test_means_of_whole_blocks_are_the_rounded_means_and_opencvs_to_a_grey_level(block, channels):
    rows, columns = 5, 7
    size = (rows * block[0], columns * block[1])
    for image in (noise(*size, *channels), np.broadcast_to(noise(1, 1, *channels), (*size, *channels))):
        image = np.ascontiguousarray(image)
        blocks = image.reshape(rows, block[0], columns, block[1], *channels)
        mean = blocks.sum(axis=(1, 3), dtype=np.int64) / (block[0] * block[1])
        found = pictures.means_of_blocks(image, (rows, columns), block)
        assert np.abs(found - mean).max() <= 0.5 + 1e-6
        theirs = cv2.resize(image, (columns, rows), interpolation=cv2.INTER_AREA)
        assert np.abs(found.astype(int) - theirs).max() <= 1  # builds of OpenCV differ in how they round
        if not channels:
            found = pictures.means_of_blocks(image, (rows, columns), block, rounded=False)
            assert found.dtype == np.float32
            assert found == pytest.approx(mean, rel=1e-6)


def test_halves_are_rounded_to_even():
    image = np.zeros((2, 4), np.uint8)
    image[0, 0], image[0, 2] = 2, 6  # means of 0.5 and 1.5
    out = np.zeros((1, 2), np.uint8)
    pictures.round_means(image, 2, 2, 1, np.zeros(4, np.uint16), np.zeros(4, np.int32), np.zeros(2, np.int32), out)
    assert out.tolist() == [[0, 2]]


def test_the_largest_block_of_the_brightest_pixels_does_not_overflow():
    image = np.full((pictures.MOST_BLOCK, 2 * pictures.MOST_BLOCK), 255, np.uint8)
    block = (pictures.MOST_BLOCK, pictures.MOST_BLOCK)
    assert pictures.means_of_blocks(image, (1, 2), block).tolist() == [[255, 255]]
    assert pictures.means_of_blocks(image, (1, 2), block, rounded=False).tolist() == [[255.0, 255.0]]


def test_pixels_beyond_the_blocks_asked_for_are_left_out():
    image = noise(13, 17, 3)
    part = np.ascontiguousarray(image[:12, :16])
    found = pictures.means_of_blocks(image, (3, 4), (4, 4))
    assert np.array_equal(found, pictures.means_of_blocks(part, (3, 4), (4, 4)))


def test_a_part_of_a_picture_is_taken_as_it_stands():
    image = noise(20, 40, 3)[2:14, 5:23]
    assert np.array_equal(
        pictures.means_of_blocks(image, (3, 6), (4, 3)),
        pictures.means_of_blocks(np.ascontiguousarray(image), (3, 6), (4, 3)),
    )


def test_blocks_that_opencv_rounds_otherwise_or_sums_are_not_exact_of_are_not_taken():
    assert pictures.takes_blocks(3, 256)
    assert not pictures.takes_blocks(2, 3)
    assert not pictures.takes_blocks(3, 257)


def test_areas_are_weighted_sums_phase_by_phase():
    """Two smaller columns for three, the first row by itself, the next a mean of two: by hand."""
    image = np.array([[0, 30, 60, 90, 120, 150], [10, 10, 10, 10, 10, 10], [30, 30, 30, 30, 30, 30]], np.uint8)
    third = np.float32(1.0 / 3.0)
    plan = pictures.AreaPlan(
        values=np.array([0, 3, 1, 4, 2, 5], np.uint32),  # phases of three columns, two periods
        starts=np.array([[0, 2], [2, 4]]),
        weights=np.array([[2 * third] * 2 + [third] * 2, [third] * 2 + [2 * third] * 2], np.float32),
        places=np.array([0, 2, 1, 3], np.uint32),
        rows=np.array([[0, 1], [1, 2]]),
        row_weights=np.array([[1.0, 0.0], [0.5, 0.5]], np.float32),
    )
    for table in plan:
        table.setflags(write=False)
    out = np.zeros((2, 4), np.uint8)
    work = np.zeros(6, np.float32), np.zeros(4, np.float32), np.zeros(4, np.float32)
    pictures.shrink_areas(image, plan, *work, out)
    assert out.tolist() == [[10, 50, 100, 140], [20, 20, 20, 20]]


def test_powers_are_those_of_numpy_in_float64():
    lab = RNG.normal(0.0, 40.0, (50, 3)).astype(np.float32)
    out = np.zeros((50, 9))
    pictures.powers_of_colours(lab, 0.01, out)
    scaled = lab.astype(np.float64) * 0.01
    square = scaled * scaled
    assert np.array_equal(out, np.hstack([scaled, square, square * scaled]))
