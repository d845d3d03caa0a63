"""What stays for two frames counts; what is elsewhere in each does not, however much of it there is."""

import numpy as np
import pytest

from stillwatch.novelty.places.coherence import Coherence

GRID, NS = (12, 16), 1_000_000_000
N = GRID[0] * GRID[1]


def mask(*boxes) -> np.ndarray:
    """Patches inside of boxes (top, left, bottom, right)."""
    there = np.zeros(GRID, bool)
    for top, left, bottom, right in boxes:
        there[top:bottom, left:right] = True
    return there.ravel()


def weights_of(before: np.ndarray, now: np.ndarray, seconds: float = 0.1) -> np.ndarray:
    """Return the weights of a frame after another, (12, 16)."""
    coherence, out = Coherence(N), np.zeros(N, np.float32)
    coherence.learn(before, 0)
    coherence.weights(now, GRID, round(seconds * NS), out)
    return out.reshape(GRID)


def test_the_first_frame_counts_whole():
    out = np.zeros(N, np.float32)
    Coherence(N).weights(mask((2, 2, 6, 6)), GRID, 0, out)
    assert (out == 1.0).all()


def test_a_thing_that_moves_by_a_third_of_its_length_counts_whole():
    # 8 of its 12 patches were there: agreement (8/12 - 12/192) / (1 - 12/192) = .644, above COHERENT
    assert (weights_of(mask((2, 2, 4, 8)), mask((2, 4, 4, 10))) == 1.0).all()


def test_what_was_elsewhere_a_frame_ago_does_not_count_and_the_rest_of_the_picture_does():
    out = weights_of(mask((2, 2, 6, 6)), mask((2, 9, 6, 13)))
    assert (out[2:6, 9:13] == 0.0).all()
    assert (out[7:] == 1.0).all()


def test_the_weight_rises_from_a_tenth_of_agreement_to_four_tenths():
    # 2 of 8 were there, chance is 8/192: (1/4 - 1/24) / (23/24) = 5/23; (5/23 - .1) / .3
    out = weights_of(mask((2, 2, 4, 6)), mask((2, 5, 4, 9)))
    assert out[3, 7] == pytest.approx((5 / 23 - 0.1) / 0.3, abs=1e-6)


def believed(before: np.ndarray, now: np.ndarray) -> float:
    """Return how far all that stands out is believed."""
    coherence = Coherence(N)
    coherence.learn(before, 0)
    return coherence.weights(now, GRID, NS // 10, np.zeros(N, np.float32))


def test_where_much_of_the_picture_stands_out_all_of_it_must_agree():
    # 108 of 192 stand out, 72 of them were there, as 108 of all: (2/3 - 9/16) / (7/16) = 5/21, below .3
    before, now = mask((0, 0, 12, 9)), mask((0, 3, 12, 12))
    assert believed(before, now) == 0.0
    # 96 stand out, 72 of them were there, as 96 of all: (3/4 - 1/2) / (1/2) = 1/2
    before, now = mask((0, 0, 12, 8)), mask((0, 2, 12, 10))
    assert believed(before, now) == 1.0
    # 80 of 192, 56 were there, as 80 of all: (7/10 - 5/12) / (7/12) = 17/35; (17/35 - .3) / .2
    before, now = mask((0, 0, 10, 8)), mask((3, 0, 12, 8)) | mask((0, 8, 1, 16))
    assert believed(before, now) == pytest.approx((17 / 35 - 0.3) / 0.2, abs=1e-6)


def test_a_part_that_agrees_by_chance_among_drops_is_not_believed():
    before = mask((0, 0, 4, 16), (9, 0, 12, 4))
    now = mask((5, 0, 8, 16), (4, 3, 5, 4), (9, 0, 12, 4))
    out = weights_of(before, now)
    assert (out[9:12, 0:4] < 0.3).all()
    assert (weights_of(mask((9, 0, 12, 4)), mask((9, 0, 12, 4)))[9:12, 0:4] == 1.0).all()


def test_a_thing_that_is_small_is_judged_by_itself():
    assert believed(mask((2, 2, 4, 6)), mask((7, 2, 9, 6))) == 1.0  # 8 of 192


def test_two_groups_are_judged_each_by_itself():
    out = weights_of(mask((1, 1, 5, 5), (8, 1, 11, 4)), mask((1, 1, 5, 5), (8, 8, 11, 11)))
    assert (out[1:5, 1:5] == 1.0).all()
    assert (out[8:11, 8:11] == 0.0).all()


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_drops_that_fall_anew_in_each_frame_hardly_count_however_many(share):
    rng = np.random.default_rng(4)
    means = []
    for _ in range(20):
        now = rng.random(N) < share
        means.append(weights_of(rng.random(N) < share, now).ravel()[now].mean())
    assert np.mean(means) < 0.15


def test_a_thing_that_fills_the_picture_and_stays_counts():
    before = mask((0, 0, 12, 15))  # 180 of 192: chance is 15/16, agreement 1
    assert (weights_of(before, before) == 1.0).all()


def test_after_a_pause_everything_counts():
    assert (weights_of(mask((2, 2, 6, 6)), mask((2, 9, 6, 13)), seconds=0.5) == 1.0).all()


def test_another_grid_has_no_last_frame():
    coherence, out = Coherence(N), np.zeros(N // 2, np.float32)
    coherence.learn(mask((2, 2, 6, 6)), 0)
    coherence.weights(np.ones(N // 2, bool), (6, 16), NS // 10, out)
    assert (out == 1.0).all()
