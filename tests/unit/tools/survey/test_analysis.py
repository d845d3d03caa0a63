"""What is said of a survey: shares as counted."""

import numpy as np
import pytest

from stillwatch.tools.survey.analysis import Found


def found(counts, clusters=()):
    n = len(clusters)
    names = [f"dive{j}" for j in range(len(counts))]
    return Found(names, np.array(counts, float), 0.0, np.array(clusters, int), np.ones(n), np.zeros(n))


def test_shares_are_near_what_was_counted_and_no_share_is_nothing():
    mean, spread = found([[38.0, 12.0, 0.0, 0.0]]).shares()
    np.testing.assert_allclose(mean[0], [0.76, 0.24, 0.0, 0.0], atol=0.01)
    assert (mean > 0.0).all()
    assert spread[0, 0] == pytest.approx(np.sqrt(0.76 * 0.24 / 51), rel=0.02)
