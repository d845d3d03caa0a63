"""Gradients in polar form and their spread over orientations, against arctan2 and the triangle of each orientation."""

import math

import numpy as np
import pytest

from stillwatch.kernels import orientations as kernels

ONE, ZERO, HALF = np.float32(1.0), np.float32(0.0), np.float32(0.5)
# Orientations of a turn, whether opposite directions are two, orientations in 45 degrees, angle of orientation 0.
TURNS = [
    pytest.param(8, True, ONE, ZERO, id="sift"),
    pytest.param(18, True, np.float32(18 / 8), ZERO, id="hog, signed"),
    pytest.param(9, False, np.float32(9 / 4), HALF, id="hog, unsigned"),
]


def gradients(n_orientations, is_signed, unit, shift, n=192):
    """Return neighbours of n pixels, and what `polar_gradients` says of them."""
    around = np.random.default_rng(n_orientations).uniform(0, 255, (4, n)).astype(np.float32)
    inside = (np.arange(n) % 7 > 0).astype(np.float32)
    angle, magnitude = np.zeros(n, np.float32), np.zeros(n, np.float32)
    kernels.polar_gradients(*around, inside, is_signed, unit, shift, angle, magnitude)
    return around.astype(np.float64), inside, angle, magnitude


def test_the_polynomial_angle_is_within_a_hundredth_of_a_degree_everywhere():
    angles = np.linspace(0, 2 * np.pi, 1441)[:-1]
    found = [kernels.octant_angle(np.float32(math.cos(a)), np.float32(math.sin(a))) * 45 for a in angles]
    error = (np.array(found) - np.degrees(angles) + 180) % 360 - 180
    assert np.abs(error).max() < 0.01


def test_the_angle_of_no_gradient_is_finite():
    assert kernels.octant_angle(np.float32(0), np.float32(0)) == 0


@pytest.mark.parametrize(("n_orientations", "is_signed", "unit", "shift"), TURNS)
def test_a_gradient_has_its_angle_and_its_magnitude(n_orientations, is_signed, unit, shift):
    (left, right, behind, ahead), inside, angle, magnitude = gradients(n_orientations, is_signed, unit, shift)
    dx, dy = right - left, ahead - behind
    np.testing.assert_allclose(magnitude, np.hypot(dx, dy) * inside, rtol=1e-5, atol=1e-4)
    turn = 2 * np.pi if is_signed else np.pi
    wanted = np.arctan2(dy, dx) % turn * n_orientations / turn - shift
    away = (angle - wanted + n_orientations / 2) % n_orientations - n_orientations / 2
    assert np.abs(away).max() < 1e-3


@pytest.mark.parametrize(("n_orientations", "is_signed", "unit", "shift"), TURNS)
@pytest.mark.parametrize("group", [1, 3, None], ids=["one by one", "by threes", "at once"])
def test_a_magnitude_is_shared_by_the_two_nearest_orientations(n_orientations, is_signed, unit, shift, group):
    _, _, angle, magnitude = gradients(n_orientations, is_signed, unit, shift)
    n, group = 64, group or n_orientations
    found = np.zeros((3, n_orientations, n), np.float32)
    for first in range(0, n_orientations, group):
        last = min(first + group, n_orientations)
        out = np.zeros(3 * (last - first) * n, np.float32)
        kernels.spread_over_orientations(angle, magnitude, n, n_orientations, first, last, out)
        found[:, first:last] = out.reshape(3, last - first, n)
    away = np.abs(angle.astype(np.float64) - np.arange(n_orientations)[:, None])
    weights = np.maximum(0.0, 1.0 - np.minimum(away, n_orientations - away))
    wanted = (magnitude * weights).reshape(n_orientations, 3, n).transpose(1, 0, 2)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-3)
    np.testing.assert_allclose(found.sum(axis=1).ravel(), magnitude, rtol=1e-5)
