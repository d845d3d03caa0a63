"""Novel patches become regions: connected, large enough, the heaviest first, boxes inside the frame."""

import numpy as np

from stillwatch.novelty.regions import MAX_REGIONS, novel_regions

ROWS, COLUMNS = 10, 20


def centres():
    x, y = np.meshgrid((np.arange(COLUMNS) + 0.5) / COLUMNS, (np.arange(ROWS) + 0.5) / ROWS)
    return np.stack([x.ravel(), y.ravel()], axis=1).astype(np.float32)


def regions(patches, least=1):
    field = np.zeros((ROWS, COLUMNS), np.float32)
    for row, column, value in patches:
        field[row, column] = value
    return novel_regions(field, centres(), least)


def test_no_region_where_nothing_deviates():
    assert regions([(3, 3, 2.9)]) == []


def test_a_box_covers_its_patches_and_nothing_else():
    (region,) = regions([(2, 4, 5.0), (2, 5, 5.0), (3, 5, 5.0)])
    np.testing.assert_allclose(region.box, (4 / 20, 2 / 10, 6 / 20, 4 / 10), atol=1e-6)
    assert region.n_patches == 3
    assert region.weight == 15.0


def test_the_centre_is_weighed_by_deviation_and_the_peak_is_the_highest_patch():
    (region,) = regions([(5, 5, 4.0), (5, 6, 12.0)])
    np.testing.assert_allclose(region.centre, ((5.5 * 4 + 6.5 * 12) / 16 / 20, 5.5 / 10), atol=1e-6)
    assert region.peak == 5 * COLUMNS + 6


def test_corners_connect_and_gaps_separate():
    assert len(regions([(1, 1, 4.0), (2, 2, 4.0)])) == 1
    assert len(regions([(1, 1, 4.0), (1, 3, 4.0)])) == 2


def test_regions_below_the_least_size_are_left_out():
    found = regions([(1, 1, 20.0), (6, 6, 4.0), (6, 7, 4.0)], least=2)
    assert [region.n_patches for region in found] == [2]


def test_the_heaviest_come_first_and_their_number_is_bounded():
    found = regions([(row, column, 4.0 + row) for row in range(0, ROWS, 2) for column in range(0, COLUMNS, 2)])
    assert len(found) == MAX_REGIONS
    assert [region.weight for region in found] == sorted((region.weight for region in found), reverse=True)


def test_a_grid_of_one_patch_is_the_whole_frame():
    (region,) = novel_regions(np.full((1, 1), 9.0, np.float32), np.array([[0.5, 0.5]], np.float32), 1)
    assert region.box == (0.0, 0.0, 1.0, 1.0)
