"""HOG blocks and cells against their plain versions and OpenCV 4's stored answers, and their laws."""

import pathlib

import numpy as np
import pytest
from reference_kernels_features import block_hog, cell_hog

from stillwatch.features.hog import BlockHog, CellHog
from stillwatch.kernels import hog

GOLDEN = pathlib.Path(__file__).parents[2] / "golden" / "hog_opencv4.npz"


def noise(height: int, width: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width)).astype(np.uint8)


@pytest.mark.parametrize(
    ("height", "width", "cell", "gamma"), [(40, 45, 8, True), (24, 18, 6, False), (33, 16, 8, True)]
)
def test_every_block_is_that_of_the_plain_version(height, width, cell, gamma):
    image = noise(height, width)
    blocks = BlockHog(height, width, cell, gamma)
    out = blocks.compute(image).reshape(*blocks.grid_shape, 36)
    assert blocks.grid_shape == (height // cell - 1, width // cell - 1)
    for r in range(blocks.grid_shape[0]):
        for c in range(blocks.grid_shape[1]):
            np.testing.assert_allclose(out[r, c], block_hog(image, r, c, cell, gamma), atol=2e-4)


@pytest.mark.parametrize(("height", "width", "cell"), [(33, 40, 8), (12, 25, 6), (5, 5, 8)])
def test_every_cell_is_that_of_the_plain_version(height, width, cell):
    image = noise(height, width, seed=1)
    cells = CellHog(height, width, cell, contrast=1.0)
    out = cells.compute(image).reshape(*cells.grid_shape, 31)
    np.testing.assert_allclose(out, cell_hog(image, cell, (cell**2) ** 2), atol=3e-4)


def test_blocks_equal_opencv_4_on_a_real_image():
    with np.load(GOLDEN) as golden:
        for name, gamma in (("gamma", True), ("linear", False)):
            image = golden["image"]
            blocks = BlockHog(*image.shape, 8, gamma)
            out = blocks.compute(image)
            assert np.abs(out - golden[name]).max() <= 1e-3


@pytest.mark.parametrize("shape", [(1, 1), (1, 120), (120, 1), (7, 9), (16, 16), (17, 31)])
@pytest.mark.parametrize("value", [0, 255])
def test_any_shape_and_a_constant_image_give_zeros(shape, value):
    image = np.full(shape, value, np.uint8)
    assert not BlockHog(*shape).compute(image).any()
    assert not CellHog(*shape).compute(image).any()


@pytest.mark.parametrize("dtype", [np.uint16, np.float32])
def test_other_pixel_types_give_the_same_values(dtype):
    image = noise(40, 48)
    np.testing.assert_array_equal(BlockHog(40, 48).compute(image.astype(dtype)), BlockHog(40, 48).compute(image))
    np.testing.assert_array_equal(CellHog(40, 48).compute(image.astype(dtype)), CellHog(40, 48).compute(image))


@pytest.mark.parametrize("maker", [BlockHog, CellHog])
def test_float_images_with_nan_are_refused(maker):
    image = np.ones((32, 32), np.float32)
    image[3, 4] = np.nan
    with pytest.raises(ValueError, match="1 values that are not finite among 1024"):
        maker(32, 32).compute(image)


def test_unsigned_blocks_do_not_change_when_the_image_is_inverted():
    image = noise(40, 48)
    a, b = BlockHog(40, 48, gamma=False), BlockHog(40, 48, gamma=False)
    np.testing.assert_allclose(a.compute(image), b.compute(255 - image), atol=1e-5)


def test_inverting_the_image_turns_signed_orientations_by_half_a_circle():
    image = noise(40, 48, seed=2)
    a, b = CellHog(40, 48).compute(image), CellHog(40, 48).compute(255 - image)
    np.testing.assert_allclose(b[:, :18], np.roll(a[:, :18], 9, axis=1), atol=1e-5)
    np.testing.assert_allclose(b[:, 18:], a[:, 18:], atol=1e-5)


def test_a_ramp_votes_for_one_orientation():
    ramp = np.broadcast_to(np.arange(48, dtype=np.float32) * 3, (48, 48)).copy()
    inner = CellHog(48, 48).compute(ramp).reshape(6, 6, 31)[2, 3]
    assert inner[0] == pytest.approx(0.4)  # four norms, each clipped at 0.2, halved
    np.testing.assert_allclose(inner[1:18], 0, atol=1e-6)
    assert inner[18] == pytest.approx(0.4)


def test_a_stronger_contrast_changes_a_cell_little_and_a_weak_one_is_not_scaled_up():
    image = noise(48, 48, seed=3).astype(np.float32)
    strong = CellHog(48, 48).compute(image).copy()
    np.testing.assert_allclose(CellHog(48, 48).compute(image * np.float32(2)), strong, atol=0.01)
    weak = CellHog(48, 48).compute(image * np.float32(1e-3))
    assert weak.max() < 0.2 * strong.max()


def test_a_block_is_at_most_of_unit_norm():
    out = BlockHog(64, 64).compute(noise(64, 64))
    assert np.linalg.norm(out, axis=1).max() <= 1
    assert out.shape == (49, hog.BLOCK)


def test_block_rows_in_parts_give_the_same_bits_as_at_once():
    image = noise(90, 64, seed=4)
    whole, parts = BlockHog(90, 64), BlockHog(90, 64)
    whole.compute(image)
    for first, last in ((5, parts.grid_shape[0]), (0, 5)):
        parts.compute_rows(image, first, last, parts.new_workspace())
    np.testing.assert_array_equal(parts.out, whole.out)


def test_what_was_seen_before_leaves_no_trace():
    blocks, cells = BlockHog(64, 64), CellHog(64, 64)
    blocks.compute(noise(64, 64, 1))
    cells.compute(noise(64, 64, 1))
    np.testing.assert_array_equal(blocks.compute(noise(64, 64, 2)), BlockHog(64, 64).compute(noise(64, 64, 2)))
    np.testing.assert_array_equal(cells.compute(noise(64, 64, 2)), CellHog(64, 64).compute(noise(64, 64, 2)))
