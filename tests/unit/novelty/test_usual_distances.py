"""How far patches usually are: place by place of a view, and anywhere until a place is known."""

import numpy as np
import pytest

from stillwatch.base.errors import SnapshotError
from stillwatch.novelty.rules import HIGHEST
from stillwatch.novelty.usual_distances import UsualDistances

SHAPE = (10, 12)
EVERYWHERE = np.ones(SHAPE, bool)


def distances(seed: int) -> np.ndarray:
    """Distances of a view whose lower half is far from what is kept, and varies: 3 +- .5; above, 1 +- .1."""
    rng = np.random.default_rng(seed)
    near = rng.normal(1.0, 0.1, SHAPE)
    near[5:] = rng.normal(3.0, 0.5, (5, SHAPE[1]))
    return near.astype(np.float32)


def watched(frames: int) -> UsualDistances:
    usual = UsualDistances(SHAPE[0] * SHAPE[1])
    for i in range(frames):
        usual.learn(distances(i), EVERYWHERE)
    return usual


def deviations(usual: UsualDistances, near: np.ndarray) -> np.ndarray:
    out = np.full(near.shape, np.nan, np.float32)
    usual.deviations(near, out)
    return out


def test_nothing_deviates_before_anything_is_known():
    assert not deviations(watched(0), distances(1)).any()


def test_each_place_is_judged_by_its_own_usual():
    usual, near = watched(300), distances(999)
    near[2, 5] = near[7, 5] = 3.0
    told = deviations(usual, near)
    assert told[2, 5] > 4.0  # strange above,
    assert abs(told[7, 5]) < 1.0  # usual below
    assert abs(float(np.median(told))) < 0.5


def test_a_deviation_is_of_the_place_s_own_spread():
    usual, near = watched(400), distances(999)
    near[8, 5] = 3.0 + 4 * 0.5
    # Independently: two places of one in its blur, and what was known anywhere at first, widen it by little.
    assert deviations(usual, near)[8, 5] == pytest.approx(4.0, rel=0.25)


def test_until_a_place_is_known_what_holds_anywhere_holds_for_it():
    usual, near = watched(1), distances(1)
    told = deviations(usual, near)
    middle = float(np.median(distances(0)))
    assert (np.sign(told) == np.sign(near - middle)).mean() > 0.9


def test_one_frame_far_above_teaches_little():
    usual = watched(100)
    before = deviations(usual, distances(999))
    usual.learn(distances(100) + 50.0, EVERYWHERE)
    np.testing.assert_allclose(deviations(usual, distances(999)), before, atol=0.6)


def test_what_is_masked_is_not_learnt():
    valid = EVERYWHERE.copy()
    valid[:, :6] = False
    masked, wild = UsualDistances(120), UsualDistances(120)
    for i in range(50):
        near = distances(i)
        masked.learn(near, valid)
        wild.learn(np.where(valid, near, 1e6).astype(np.float32), valid)
    np.testing.assert_array_equal(deviations(masked, distances(9)), deviations(wild, distances(9)))
    nothing = UsualDistances(120)
    nothing.learn(distances(1), np.zeros(SHAPE, bool))
    assert not deviations(nothing, distances(2)).any()


def test_another_grid_makes_what_was_known_void():
    usual = watched(50)
    other = distances(1)[:8]
    assert not deviations(usual, other).any()
    usual.learn(other, EVERYWHERE[:8])
    fresh = UsualDistances(120)
    fresh.learn(other, EVERYWHERE[:8])
    np.testing.assert_array_equal(deviations(usual, distances(2)[:8]), deviations(fresh, distances(2)[:8]))


def test_absurd_distances_have_a_highest_deviation():
    assert deviations(watched(50), np.full(SHAPE, 1e9, np.float32)).max() == HIGHEST


def test_more_places_than_there_is_room_for_are_refused():
    with pytest.raises(SnapshotError, match="usual distances: the saved state has 120 places, there is room for 60"):
        UsualDistances(60).restore(watched(2).state())


@pytest.mark.parametrize("seed", range(5))
def test_an_even_part_below_one_that_varies_keeps_all_finite_and_its_state_fits(seed):
    usual, rng = UsualDistances(SHAPE[0] * SHAPE[1]), np.random.default_rng(seed)
    for _ in range(200):
        near = rng.gamma(2.0, size=SHAPE).astype(np.float32)
        near[6:] = 0.0
        usual.learn(near, EVERYWHERE)
        assert np.isfinite(deviations(usual, near)).all()
    usual.restore(usual.state())


def test_a_place_that_never_varied_may_begin_to():
    usual = UsualDistances(SHAPE[0] * SHAPE[1])
    for _ in range(30):
        usual.learn(np.full(SHAPE, 0.2, np.float32), EVERYWHERE)
    for i in range(500):
        usual.learn(distances(i), EVERYWHERE)
    assert abs(float(np.median(deviations(usual, distances(999))))) < 1.0


def test_an_absurd_state_is_refused():
    state = watched(5).state()
    for name in ("view.middle", "view.deviation", "mean", "variance"):
        with pytest.raises(SnapshotError, match=name.split(".")[-1]):
            UsualDistances(120).restore(state | {name: np.full_like(state[name], 1e200)})
