"""ScSPM: where its cells lie, what changes it and what does not, the dictionary that ships."""

import numpy as np
import pytest

from stillwatch.features import SparseCodePyramid
from stillwatch.features.scspm import N_CELLS, shipped_dictionary


def atoms(n=40):
    return np.abs(np.random.default_rng(0).normal(size=(n, 128))).astype(np.float32)


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def texture(height=160, width=160, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (height, width)).astype(np.uint8)


def pyramid(height=160, width=160):
    return SparseCodePyramid(height, width, unit(atoms()))


def test_a_descriptor_has_length_one_and_21_cells():
    found = pyramid().describe(texture())
    assert found.shape == (21 * 40,) == (N_CELLS * 40,)
    assert found.dtype == np.float32
    assert np.linalg.norm(found) == pytest.approx(1.0, abs=1e-5)
    assert (found >= 0.0).all()


def test_coarse_cells_hold_the_largest_of_the_fine_ones():
    cells = pyramid().describe(texture()).reshape(21, 40)
    quarter = cells[[0, 1, 4, 5]].max(axis=0)
    np.testing.assert_array_equal(cells[16], quarter)
    np.testing.assert_array_equal(cells[20], cells[:16].max(axis=0))


def test_texture_in_one_corner_fills_the_cells_of_that_corner_alone():
    image = np.full((160, 160), 128, np.uint8)
    image[100:, 100:] = texture(60, 60)
    cells = pyramid().describe(image).reshape(21, 40)
    assert cells[15].any()
    assert not cells[[0, 3, 12, 16]].any()


def test_faint_texture_counts_by_its_contrast():
    """Half a picture at full contrast, half at half of that: the faint half counts less."""
    image = texture()
    faint = np.round(128 + 0.1 * (image.astype(float) - 128)).astype(np.uint8)
    mixed = np.concatenate([image[:, :80], faint[:, 80:]], axis=1)
    cells = pyramid().describe(mixed).reshape(21, 40)[:16].reshape(4, 4, 40)
    assert 0.0 < cells[:, 3].max() < 0.7 * cells[:, 0].max()
    whole, halved = (pyramid().describe(part) for part in (image, image // 2 + 64))
    np.testing.assert_allclose(whole, halved, atol=0.02)  # where all is well lit nothing changes


def test_a_picture_without_texture_is_all_zeros():
    assert not pyramid().describe(np.full((160, 160), 90, np.uint8)).any()


def test_pictures_of_other_sizes_do_not_change_what_the_next_one_gives():
    describe = pyramid().describe
    before = describe(texture())
    describe(texture(80, 33, 5))
    describe(texture(9, 9, 5))  # smaller than one patch
    np.testing.assert_array_equal(describe(texture()), before)


def test_brightness_and_contrast_hardly_matter():
    image = texture() // 2
    a, b = pyramid().describe(image), pyramid().describe(image // 2 + 60)
    assert a @ b > 0.98


def test_a_picture_larger_than_the_box_is_refused():
    with pytest.raises(ValueError, match="does not fit in the box of 160 x 160"):
        pyramid().describe(texture(161, 160))


def test_the_shipped_dictionary_has_1024_directions():
    found = shipped_dictionary()
    assert found.shape == (1024, 128)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0, atol=1e-5)
    assert SparseCodePyramid(32, 32).n_dims == 21 * 1024


def test_a_dictionary_of_another_width_is_refused():
    with pytest.raises(ValueError, match=r"dictionary: shape \(3, 64\) is not"):
        SparseCodePyramid(32, 32, np.ones((3, 64), np.float32))
