"""Distances to what a place has shown before, against plain NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stillwatch.kernels import place_memory as kernels


def world(seed, n_places=5, capacity=9, n_dims=4):
    rng = np.random.default_rng(seed)
    samples = rng.normal(0.0, 1000.0, (n_places, capacity, n_dims)).astype(np.int16)
    return rng.normal(0.0, 1000.0, (n_places, n_dims)).astype(np.int16), samples


def workspace(n=9, n_dims=4):
    return np.zeros((n_dims, n), np.float32), np.zeros(n, np.float32), np.zeros((n, n), np.float32)


def nothing_likely(n_places=5, n=9):
    return np.full((n_places, n), -1, np.int8)


def nearest(rows, samples, n, rank, near=-1.0, before=np.inf, likely=None):
    out = np.full(len(rows), before, np.float32)
    near = np.broadcast_to(np.float32(near), len(rows)).copy()
    likely = nothing_likely(len(rows)) if likely is None else likely
    kernels.nearest_samples(rows, samples, n, rank, near, likely, np.zeros(9, np.float32), out)
    return out


def slow_nearest(rows, samples, n, rank):
    return np.sort(distances(rows, samples[:, :n]), axis=1)[:, rank]


def distances(rows, samples):
    return np.linalg.norm(samples.astype(np.float64) - rows[:, None], axis=2)


@pytest.mark.parametrize(("n", "rank"), [(1, 0), (4, 0), (4, 3), (9, 2)])
def test_distance_to_the_nearest_samples_is_what_sorting_says(n, rank):
    rows, samples = world(n)
    np.testing.assert_allclose(nearest(rows, samples, n, rank), slow_nearest(rows, samples, n, rank), rtol=1e-5)


@given(st.integers(0, 2**32 - 1), st.integers(0, 8), st.floats(0.0, 4096.0, width=32))
def test_what_is_farther_than_near_is_exact_and_what_is_not_is_at_most_near(seed, rank, near):
    rows, samples = world(seed)
    exact, found = nearest(rows, samples, 9, rank), nearest(rows, samples, 9, rank, near)
    is_far = exact > np.float32(near)
    np.testing.assert_array_equal(found[is_far], exact[is_far])
    assert (found[~is_far] <= np.float32(near)).all()


@given(st.integers(0, 2**32 - 1), st.integers(0, 8), st.floats(0.0, 3000.0, width=32))
def test_a_search_for_both_is_a_search_for_the_others_after_one_for_the_rows(seed, rank, near):
    (rows, samples), (others, _) = world(seed), world(seed + 1)
    likely, likely_others, known, others_known = (nothing_likely() for _ in range(4))
    near_each, out = np.full(len(rows), near, np.float32), np.full(len(rows), np.inf, np.float32)
    squares = np.zeros(9, np.float32)
    kernels.nearest_samples_of_both(rows, others, samples, 9, rank, near_each, likely, likely_others, squares, out)
    first = nearest(rows, samples, 9, rank, near, likely=known)
    expected = first.copy()
    kernels.nearest_samples(others, samples, 9, rank, near_each, others_known, squares, expected)
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(likely, known)
    np.testing.assert_array_equal(likely_others, others_known)


@given(st.integers(0, 2**32 - 1), st.integers(0, 8))
def test_of_samples_that_are_equal_each_counts(seed, rank):
    rows, samples = world(seed)
    samples[:, 3:6] = samples[:, :1]
    np.testing.assert_allclose(nearest(rows, samples, 9, rank), slow_nearest(rows, samples, 9, rank), rtol=1e-5)


@given(st.integers(0, 2**32 - 1), st.integers(0, 3), st.floats(500.0, 3000.0, width=32))
def test_what_was_near_before_changes_no_result(seed, rank, near):
    rows, samples = world(seed)
    rng, likely = np.random.default_rng(seed), nothing_likely()
    for _ in range(6):  # frames: rows wander, and one sample gives way to another
        rows = (rows + rng.normal(0.0, 300.0, rows.shape)).astype(np.int16)
        samples[:, rng.integers(9)] = rng.normal(0.0, 1000.0, rows.shape)
        anew, found = nearest(rows, samples, 9, rank, near), nearest(rows, samples, 9, rank, near, likely=likely)
        is_far = anew > np.float32(near)
        np.testing.assert_array_equal(found[is_far], anew[is_far])
        assert (found[~is_far] <= np.float32(near)).all()


def test_samples_that_were_near_are_remembered():
    rows, samples = world(3)
    samples[:, [2, 5, 7]] = rows[:, None]
    likely = nothing_likely()
    nearest(rows, samples, 9, 1, near=10.0, likely=likely)
    assert likely[:, :2].tolist() == [[2, 5]] * 5
    nearest((rows + np.int16(9000)), samples, 9, 1, near=10.0, likely=likely)
    assert (likely[:, 0] == -1).all()


def test_a_second_search_leaves_what_is_near_enough_and_brings_the_others_nearer():
    rows, samples = world(6)
    exact = nearest(rows, samples, 9, 2)
    np.testing.assert_array_equal(nearest(rows, samples, 9, 2, near=500.0, before=400.0), np.float32(400.0))
    np.testing.assert_array_equal(nearest(rows, samples, 9, 2, before=1200.0), np.minimum(exact, np.float32(1200.0)))


@pytest.mark.parametrize(("n", "rank", "place"), [(2, 0, 1), (5, 1, 2), (9, 2, 0), (9, 2, 8)])
@pytest.mark.parametrize("n_dims", [1, 4, 7])
def test_typical_distance_is_each_samples_own_against_the_others(n, rank, place, n_dims):
    _, samples = world(n + 10, n_dims=n_dims)
    out = np.zeros(len(samples), np.float32)
    kernels.typical_distances(samples, n, rank, place, 0, len(samples), *workspace(n_dims=n_dims), out)
    for p, found in enumerate(out):
        own = [
            sorted(np.linalg.norm(samples[p, r] - 1.0 * samples[p, s]) for s in range(n) if s != r)[rank]
            for r in range(n)
        ]
        assert found == pytest.approx(sorted(own)[place], rel=1e-5)


def test_samples_that_are_all_alike_have_no_typical_distance():
    samples, out = np.full((2, 9, 4), 77, np.int16), np.ones(2, np.float32)
    kernels.typical_distances(samples, 9, 2, 4, 0, 2, *workspace(), out)
    np.testing.assert_array_equal(out, 0.0)


def test_only_the_places_asked_for_are_measured():
    _, samples = world(5)
    out = np.full(len(samples), -1.0, np.float32)
    kernels.typical_distances(samples, 9, 2, 4, 1, 3, *workspace(), out)
    assert (out[1:3] > 0.0).all()
    assert (out[[0, 3, 4]] == -1.0).all()


def test_a_row_that_was_seen_before_is_at_no_distance():
    rows, samples = world(3)
    samples[:, 2] = rows
    np.testing.assert_array_equal(nearest(rows, samples, 9, 0), 0.0)


def recurring(rows, samples, returns, enough, near=-1.0, before=np.inf):
    out, near = np.full(len(rows), before, np.float32), np.full(len(rows), near, np.float32)
    wanted = np.full(samples.shape[1], enough, np.float32)
    kernels.nearest_recurring(rows, samples, returns, samples.shape[1], wanted, near, out)
    return out


def test_the_nearest_of_the_samples_that_came_again_often_enough():
    rows, samples = world(7)
    returns = (np.random.default_rng(7).integers(0, 8, samples.shape[:2]) * 4 + 3).astype(np.int16)  # all of them away
    slow = np.where(returns // 4 >= 5, distances(rows, samples), np.inf).min(axis=1)
    found = recurring(rows, samples, returns, 5)
    assert np.isfinite(slow).any()
    np.testing.assert_allclose(found[np.isfinite(slow)], slow[np.isfinite(slow)], rtol=1e-5)
    assert (found[np.isinf(slow)] > 1e9).all()
    np.testing.assert_array_equal(recurring(rows, samples, returns, 5, near=20.0, before=15.0), np.float32(15.0))
    assert (recurring(rows, samples, returns, np.inf, before=7000.0) == 7000.0).all()


def returns_after(seen, first=0, last=1):
    """Return how often a sample of place 0 returned when the place is seen like it (1) or otherwise (0) by turns."""
    samples, returns = np.full((3, 2, 4), 1000, np.int16), np.zeros((3, 2), np.int16)
    samples[:, 1] = -9000
    reach = np.full(3, 50.0, np.float32)
    for like in seen:
        rows = np.full((3, 4), 1020 if like else 1030, np.int16)  # 40 and 60 steps from the first sample
        kernels.count_returns(rows, samples, 2, reach, first, last, returns)
    assert (returns[:, 1] == [min(len(seen), 3) if first <= p < last else 0 for p in range(3)]).all()
    return (returns[:, 0] // 4).tolist()


@pytest.mark.parametrize(
    ("seen", "returns"),
    [
        pytest.param([1] * 9, 0, id="what stays does not return"),
        pytest.param([0] * 9, 0, id="what is away does not"),
        pytest.param([1, 0, 0, 0, 1, 1], 1, id="away for three looks"),
        pytest.param([1, 0, 0, 1, 0, 0, 1, 0, 1], 0, id="two are a flicker"),
        pytest.param([0, 0, 0, 1, 0, 0, 0, 0, 0, 1], 2, id="however long"),
    ],
)
def test_a_sample_returns_when_its_place_was_unlike_it_for_three_looks(seen, returns):
    assert returns_after(seen) == [returns, 0, 0]


def test_returns_are_counted_at_the_places_asked_for():
    assert returns_after([0, 0, 0, 1], first=1, last=3) == [0, 1, 1]


def test_a_count_of_returns_stays_within_its_sixteen_bits():
    rows, samples = world(8)
    samples[:, 0] = rows
    returns = np.full((5, 9), 32_003, np.int16)
    kernels.count_returns(rows, samples, 9, np.ones(5, np.float32), 0, 5, returns)
    assert (returns[:, 0] == 32_000).all()


def test_fixed_point_is_rounded_to_even_and_held_within_sixteen_bits():
    rows = np.array([[0.5, 1.5, -2.5, 0.49], [1e9, -1e9, 32767.4, -40000.0]], np.float32)
    out = np.zeros((2, 4), np.int16)
    kernels.to_fixed_point(rows, np.float32(1.0), out)
    assert out.tolist() == [[0, 2, -2, 0], [32767, -32767, 32767, -32767]]


def test_fixed_point_is_what_numpy_rounds_to():
    rows = np.random.default_rng(0).normal(0.0, 2.0, (300, 7)).astype(np.float32)
    out = np.zeros((300, 7), np.int16)
    kernels.to_fixed_point(rows, np.float32(8192.0), out)
    assert np.array_equal(out, np.clip(np.rint(rows * np.float32(8192.0)), -32767, 32767).astype(np.int16))
