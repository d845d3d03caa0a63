"""Descriptors of pictures: the same bits on any number of threads."""

import numpy as np
from threadpoolctl import threadpool_limits

from stillwatch.tools.survey import describe_images


def test_descriptors_are_the_same_bits_whatever_the_threads_of_blas_and_ours():
    rng = np.random.default_rng(0)
    images = [rng.integers(0, 255, (120, 160, 3), np.uint8) for _ in range(6)]
    found = []
    for n_blas, n_threads in ((1, 1), (2, 1), (2, 3)):
        with threadpool_limits(n_blas, user_api="blas"):
            found.append([made.whole for made in describe_images(images, n_threads=n_threads)])
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
