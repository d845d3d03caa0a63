"""Gating of descriptors by contrast: values worked out by hand."""

import numpy as np

from stillwatch.kernels.gating import gate_descriptors


def test_descriptors_shrink_with_contrast_below_the_gate_and_carry_contrast_and_brightness():
    out = np.ones((3, 6), np.float32)
    energy, brightness = np.array([5, 20, 0], np.float32), np.array([128, 0, 255], np.float32)
    gate_descriptors(energy, brightness, np.float32(1 / 10), np.float32(1 / 64), 4, out)
    np.testing.assert_allclose(out, [[0.5] * 5 + [2], [1] * 4 + [2, 0], [0] * 5 + [255 / 64]], rtol=1e-6)


def test_no_patches_are_no_fault():
    none = np.zeros(0, np.float32)
    gate_descriptors(none, none, np.float32(1), np.float32(1), 4, np.zeros((0, 6), np.float32))
