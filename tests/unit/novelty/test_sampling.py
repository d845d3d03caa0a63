"""A sample of fixed size of all that comes: full first, then uniform, and of the last ones where it forgets."""

import numpy as np

from stillwatch.novelty.sampling import place_of_next, place_of_oldest, places_of_next

ROOM = 20


def kept_of(n: int, seed: int, horizon: int | None = None) -> list[int]:
    """Return which of n candidates are kept in the end."""
    rng, kept = np.random.default_rng(seed), []
    for number in range(n):
        place = place_of_next(len(kept), ROOM, number, lambda: rng, horizon)
        if place == len(kept) < ROOM:
            kept.append(number)
        elif place < ROOM:
            kept[place] = number
    return kept


def test_the_first_fill_the_room_in_their_order_and_nothing_is_drawn():
    def nobody():
        raise AssertionError("drawn before the room was full")

    assert [place_of_next(held, ROOM, held, nobody) for held in range(ROOM)] == list(range(ROOM))


def test_every_candidate_is_as_likely_to_be_kept():
    counts = np.bincount(np.concatenate([kept_of(100, seed) for seed in range(2000)]), minlength=100) / 2000
    assert abs(counts.mean() - 0.2) < 1e-9
    assert np.abs(counts - 0.2).max() < 5 * np.sqrt(0.2 * 0.8 / 2000)


def test_with_a_horizon_older_ones_are_ever_less_likely_to_be_kept():
    """A candidate that came m before the last survives m replacements, each of one place in `horizon`."""
    horizon = 50
    counts = np.bincount(np.concatenate([kept_of(200, seed, horizon) for seed in range(2000)]), minlength=200) / 2000
    age = 199 - np.arange(100, 200)
    expected = ROOM / horizon * (1 - 1 / horizon) ** age
    assert np.abs(counts[100:] - expected).max() < 5 * np.sqrt(0.25 / 2000)


def test_what_is_new_takes_a_free_place_then_the_oldest_and_never_the_one_in_use():
    assert place_of_oldest(np.array([4, -1, 2]), but=0) == 1
    assert place_of_oldest(np.array([4, 7, 2]), but=0) == 2
    ids = np.array([4, 7, 2])
    assert place_of_oldest(ids, but=2) == 0
    assert ids.tolist() == [4, 7, 2]


def test_several_at_once_go_where_one_after_the_other_would():
    for offered in (0, 5, ROOM - 3, ROOM, 300):
        one, all_at_once = np.random.default_rng(offered), np.random.default_rng(offered)
        expected = [place_of_next(min(n, ROOM), ROOM, n, lambda one=one: one) for n in range(offered, offered + 40)]
        assert places_of_next(40, ROOM, offered, all_at_once).tolist() == expected
