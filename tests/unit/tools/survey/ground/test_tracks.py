"""How much ground a picture stands for: ways, footprints, gaps, doubt."""

import math

import numpy as np
import pytest

from stillwatch.base import UsageError
from stillwatch.tools.survey.ground import SQUARE_METRES, View, flat_metres, ground_of, picture_ground
from stillwatch.tools.survey.ground.tracks import share_deviations

DEGREE_M = 6_371_000.0 * np.pi / 180.0
# Two metres across and one along from a metre above.
VIEW = View(2.0 * math.atan(1.0), 2.0 * math.atan(0.5))


def line(*metres_north):
    """Return positions on a meridian, NaN where NaN was given."""
    return np.array([[10.0 + way / DEGREE_M, 20.0] for way in metres_north])


def unknown(n):
    return np.full(n, np.nan)


def one_dive(positions, altitudes, view):
    return picture_ground(np.zeros(len(positions), int), positions, altitudes, view)


def test_each_picture_has_half_the_way_to_its_neighbours():
    ground, unit = one_dive(line(0, 4, 8, 12), unknown(4), None)
    assert unit == "m"
    np.testing.assert_allclose(ground, [2.0, 4.0, 4.0, 2.0], rtol=1e-6)


def test_gaps_and_unknown_positions_are_nobodys_and_dives_do_not_join():
    positions = line(0, 100, 200, np.nan, 55_000, 55_100, 90_000)
    ground, _ = picture_ground(np.array([0] * 6 + [1]), positions, unknown(7), None)
    np.testing.assert_allclose(ground, [50.0, 100.0, 50.0, 0.0, 50.0, 50.0, 0.0], rtol=1e-6)


def test_ground_that_pictures_overlap_on_counts_once():
    """Half a metre apart, each sees two metres by one: the union of four is two metres by 2.5."""
    ground, unit = one_dive(line(0, 0.5, 1.0, 1.5), np.ones(4), VIEW)
    assert unit == SQUARE_METRES
    assert ground.sum() == pytest.approx(2.0 * 2.5, rel=1e-6)


def test_ground_that_no_picture_saw_does_not_count():
    """Three metres apart each has what it sees, two square metres, and twice as far away four times that."""
    ground, _ = one_dive(line(0, 3, 6, 9), np.array([1.0, 1.0, 1.0, 2.0]), VIEW)
    np.testing.assert_allclose(ground, [2.0, 2.0, 2.0, 8.0], atol=1e-5)


def test_a_picture_without_altitude_has_no_area_and_one_without_neighbours_has_its_own():
    ground, _ = picture_ground(np.array([0, 0, 1]), line(0, 0.5, 90), np.array([np.nan, 1.0, 1.0]), VIEW)
    np.testing.assert_allclose(ground, [0.0, 2.0, 2.0])


def test_without_altitudes_a_view_gives_metres():
    assert one_dive(line(0, 4), unknown(2), VIEW)[1] == "m"


def test_the_date_line_is_no_edge():
    positions = np.array([[0.0, 179.99999], [0.0, -179.99999], [0.0, -179.99997]])
    ground, _ = one_dive(positions, unknown(3), None)
    assert ground.sum() == pytest.approx(4e-5 * DEGREE_M, rel=1e-3)
    east, _ = flat_metres(positions)
    np.testing.assert_allclose(np.diff(east), 2e-5 * DEGREE_M, rtol=1e-3)


def test_a_cluster_in_one_piece_is_less_certain_than_one_that_is_everywhere():
    metres, n = np.ones(400), np.arange(400)
    patch, scattered = (n < 100).astype(int), (n % 4 == 0).astype(int)
    assert share_deviations(patch, metres, 2)[1] > 5 * share_deviations(scattered, metres, 2)[1]


def test_the_deviation_between_stretches_is_that_of_tracks_drawn_again():
    """Patches of 25 metres, each of one ground by chance: 200 tracks scatter as one track says it would."""
    rng = np.random.default_rng(0)
    told, shares = [], []
    for _ in range(200):
        clusters = np.repeat(rng.random(40) < 0.3, 25).astype(int)
        told.append(share_deviations(clusters, np.ones(1000), 2)[1])
        shares.append(clusters.mean())
    assert np.median(told) == pytest.approx(np.std(shares), rel=0.15)


def test_amounts_add_up_and_doubt_has_a_floor_and_grows_with_unsure_labels():
    metres = (np.ones(10), "m")
    clusters, dives = np.array([0] * 8 + [1] * 2), np.zeros(10, int)
    least = np.array([[0.05, 0.05, 0.05]])
    sure = ground_of(clusters, np.ones(10), least, dives, metres)
    np.testing.assert_allclose(sure.amounts, [[8.0, 2.0, 0.0]])
    assert sure.deviations[0, 2] == pytest.approx(0.5)
    assert sure.n_pictures.tolist() == [10]
    unsure = ground_of(clusters, np.full(10, 0.5), least, dives, metres)
    assert unsure.deviations[0, 0] > sure.deviations[0, 0]
    nowhere = ground_of(clusters, np.ones(10), least, dives, (np.zeros(10), "m"))
    assert not nowhere.amounts.any()
    assert not nowhere.deviations.any()


@pytest.mark.parametrize("text", ["42", "x", "42x", "42x34x1", "0x30", "42x180", "nanx30"])
def test_what_is_no_view_is_refused(text):
    with pytest.raises(UsageError, match="--view"):
        View.parse(text)


def test_a_view_is_degrees_across_and_along():
    across, along = View.parse("90x53.130102").footprint(np.array([2.0]))
    assert (across[0], along[0]) == (pytest.approx(4.0), pytest.approx(2.0))
