"""Small pictures of frames: their width, their bytes, and what they show."""

import cv2
import numpy as np
import pytest

from stillwatch.describing import jpeg_thumbnail
from stillwatch.describing.thumbnail import scaled


def scene(height, width):
    """Return a smooth coloured picture with a dark square in the middle, uint8 BGR."""
    y, x = np.mgrid[:height, :width] / max(height, width)
    picture = np.stack([60 + 80 * x, 200 - 90 * y, 90 + 40 * np.sin(9 * x)], axis=2)
    picture[height // 3 : height // 2, width // 3 : width // 2] *= 0.4
    return np.rint(picture).astype(np.uint8)


@pytest.mark.parametrize(
    ("size", "width_px", "shape"),
    [
        ((288, 384), 160, (120, 160)),  # 2.4 times
        ((480, 640), 160, (120, 160)),  # 4 times
        ((303, 517), 100, (59, 100)),  # 5.17 times, nothing divides
        ((240, 300), 160, (128, 160)),  # 1.9 times
        ((20, 1000), 100, (2, 100)),
        ((3, 1000), 100, (1, 100)),  # flatter than it is reduced
        ((90, 120), 160, (90, 120)),  # not wider than asked for
    ],
)
def test_a_scaled_picture_has_the_width_asked_for_and_shows_the_means_of_areas(size, width_px, shape):
    picture = scene(*size)
    small = scaled(picture, width_px)
    assert small.shape == (*shape, 3)
    means = cv2.resize(picture, shape[::-1], interpolation=cv2.INTER_AREA)
    assert np.abs(small.astype(int) - means).mean() < 1.5  # grey levels


@pytest.mark.parametrize("most", [1500, 4000, 20000])
def test_a_thumbnail_has_no_more_bytes_than_allowed(most):
    noisy = np.random.default_rng(0).integers(0, 255, (288, 384, 3)).astype(np.uint8)
    data = jpeg_thumbnail(noisy, 160, most)
    assert 0 < len(data) <= most
    assert cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR) is not None
