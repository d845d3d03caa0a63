"""Rows put together by kernels against the same written in NumPy, bit for bit."""

import numpy as np
import pytest

from stillwatch.kernels import rows as kernels

RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("takes_out", [True, False])
@pytest.mark.parametrize("first", [0, 1])
def test_rows_are_encoded_patches_less_their_brightness_and_their_context(takes_out, first):
    encoded, raw, context = normal(9, 5), normal(9, 7), normal(9, 3)
    axis = normal(5) if takes_out else np.zeros(0, np.float32)
    plain, patches = np.zeros((9, 5), np.float32), np.zeros((9, 7), np.float32)
    kernels.join_rows(encoded, raw, axis, context, first, plain, patches)
    wanted = encoded - raw[:, -1:] * axis if takes_out else encoded
    assert np.array_equal(plain, wanted)
    assert np.array_equal(patches, np.hstack([wanted, context[:, first : first + 2]]))


def test_colours_are_those_of_the_cell_that_a_centre_is_in():
    cells = normal(3 * 4, 3)
    centres = np.array([(0.0, 0.0), (0.3, 0.4), (0.99, 0.99), (1.0, 1.0), (0.5, 0.34)], np.float32)
    out = np.zeros((5, 3), np.float32)
    kernels.pick_colours(cells, centres, 3, 4, out)
    for (x, y), found in zip(centres, out, strict=True):
        blue, green, red = cells[min(int(y * 3), 2) * 4 + min(int(x * 4), 3)]
        assert found.tolist() == [green, blue - green, red - green]


def test_words_are_the_first_values_and_the_colour_ratios():
    plain, colours, out = normal(6, 5), normal(6, 3), np.zeros((6, 5), np.float32)
    kernels.join_words(plain, colours, np.float32(2.0), out)
    assert np.array_equal(out, np.hstack([plain[:, :3], np.float32(2.0) * colours[:, 1:]]))


@pytest.mark.parametrize("gain", [0.5, 1.0, 1.7, 3.0])
def test_relit_patches_are_those_that_a_gate_makes_of_so_much_more_contrast(gain):
    """Descriptors of length 1, gated at contrasts below, at and above the gate, and encoded: the other way round."""
    descriptors = normal(9, 6)
    descriptors /= np.linalg.norm(descriptors, axis=1, keepdims=True)
    basis, origin = normal(8, 5), normal(5)
    contrast = np.array([0.0, 0.1, 0.4, 0.6, 0.99, 1.0, 1.01, 2.0, 5.0], np.float32)

    def encoded(contrast):
        raw = np.hstack([descriptors * np.minimum(contrast, 1.0)[:, None], contrast[:, None], np.zeros((9, 1))])
        return (raw @ basis + origin).astype(np.float32)

    out = np.zeros((9, 5), np.float32)
    kernels.relight(encoded(contrast), contrast, basis[-2], origin, np.full(9, gain, np.float32), out)
    np.testing.assert_allclose(out, encoded(np.float32(gain) * contrast), atol=2e-5)


def test_no_patches_are_no_fault():
    none = np.zeros((0, 5), np.float32)
    kernels.join_rows(none, none, none[:, 0].copy(), none, 0, none, np.zeros((0, 7), np.float32))
    kernels.pick_colours(none[:, :3].copy(), none[:, :2].copy(), 1, 1, none[:, :3].copy())
    kernels.join_words(none, none[:, :3].copy(), np.float32(1.0), none)
    kernels.relight(none, none[:, 0].copy(), np.zeros(5, np.float32), np.zeros(5, np.float32), none[:, 0].copy(), none)
