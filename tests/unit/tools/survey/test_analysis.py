"""What is said of a survey: shares as counted, metres of track, gaps that are nobody's."""

import numpy as np
import pytest

from stillwatch.tools.survey.analysis import Found, track_metres

DEGREE_M = 6_371_000.0 * np.pi / 180.0


def found(counts, clusters=()):
    n = len(clusters)
    names = [f"dive{j}" for j in range(len(counts))]
    return Found(names, np.array(counts, float), 0.0, np.array(clusters, int), np.ones(n), np.zeros(n))


def test_shares_are_near_what_was_counted_and_no_share_is_nothing():
    mean, spread = found([[38.0, 12.0, 0.0, 0.0]]).shares()
    np.testing.assert_allclose(mean[0], [0.76, 0.24, 0.0, 0.0], atol=0.01)
    assert (mean > 0.0).all()
    assert spread[0, 0] == pytest.approx(np.sqrt(0.76 * 0.24 / 51), rel=0.02)


def test_each_picture_has_half_the_way_to_its_neighbours():
    """Four pictures a thousandth of a degree apart, two of each cluster: 1.5 steps each."""
    positions = np.array([[10.0 + i / 1000, 20.0] for i in range(4)])
    metres = track_metres(found([[2, 2]], [0, 0, 1, 1]), np.zeros(4, int), positions)
    np.testing.assert_allclose(metres, [[1.5 * DEGREE_M / 1000] * 2], rtol=1e-6)


def test_gaps_and_unknown_positions_are_nobodys_and_dives_do_not_join():
    latitudes = [10.0, 10.001, 10.002, np.nan, 10.5, 10.501]
    positions = np.array([[latitude, 20.0] for latitude in [*latitudes, 11.0]])
    metres = track_metres(found([[6], [1]], [0] * 7), np.array([0] * 6 + [1]), positions)
    np.testing.assert_allclose(metres, [[3 * DEGREE_M / 1000], [0.0]], rtol=1e-6)
