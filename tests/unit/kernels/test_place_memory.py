"""Distances to what a place has shown before, against plain NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_allocations import assert_no_allocation

from stillwatch.kernels import place_memory as kernels


def world(seed, n_places=5, capacity=9, n_dims=4):
    rng = np.random.default_rng(seed)
    samples = rng.normal(size=(n_places, capacity, n_dims)).astype(np.float32)
    return rng.normal(size=(n_places, n_dims)).astype(np.float32), samples


def workspace(n=9, n_dims=4):
    return (np.zeros((n_dims, n), np.float32), *(np.zeros(n, np.float32) for _ in range(3)))


def nearest(rows, samples, n, rank, near=-1.0, before=np.inf):
    out = np.full(len(rows), before, np.float32)
    near = np.broadcast_to(np.float32(near), len(rows)).copy()
    kernels.nearest_samples(rows, samples, n, rank, near, np.zeros(9, np.float32), out)
    return out


def slow_nearest(rows, samples, n, rank):
    return np.sort(np.linalg.norm(samples[:, :n] - rows[:, None], axis=2), axis=1)[:, rank]


@pytest.mark.parametrize(("n", "rank"), [(1, 0), (4, 0), (4, 3), (9, 2)])
def test_distance_to_the_nearest_samples_is_what_sorting_says(n, rank):
    rows, samples = world(n)
    np.testing.assert_allclose(nearest(rows, samples, n, rank), slow_nearest(rows, samples, n, rank), rtol=1e-5)


@given(st.integers(0, 2**32 - 1), st.integers(0, 8), st.floats(0.0, 4.0, width=32))
def test_what_is_farther_than_near_is_exact_and_what_is_not_is_at_most_near(seed, rank, near):
    rows, samples = world(seed)
    exact, found = nearest(rows, samples, 9, rank), nearest(rows, samples, 9, rank, near)
    is_far = exact > np.float32(near)
    np.testing.assert_array_equal(found[is_far], exact[is_far])
    assert (found[~is_far] <= np.float32(near)).all()


def test_a_second_search_leaves_what_is_near_enough_and_brings_the_others_nearer():
    rows, samples = world(6)
    exact = nearest(rows, samples, 9, 2)
    np.testing.assert_array_equal(nearest(rows, samples, 9, 2, near=0.5, before=0.4), np.float32(0.4))
    np.testing.assert_array_equal(nearest(rows, samples, 9, 2, before=1.2), np.minimum(exact, np.float32(1.2)))


@pytest.mark.parametrize(("n", "rank", "place"), [(2, 0, 1), (5, 1, 2), (9, 2, 0), (9, 2, 8)])
def test_typical_distance_is_each_samples_own_against_the_others(n, rank, place):
    _, samples = world(n + 10)
    out = np.zeros(len(samples), np.float32)
    kernels.typical_distances(samples, n, rank, place, 0, len(samples), *workspace(), out)
    for p, found in enumerate(out):
        own = [
            sorted(np.linalg.norm(samples[p, r] - samples[p, s]) for s in range(n) if s != r)[rank] for r in range(n)
        ]
        assert found == pytest.approx(sorted(own)[place], rel=1e-5)


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


def test_place_memory_kernels_allocate_nothing():
    rows, samples = world(4)
    near, out, best = np.zeros(len(rows), np.float32), np.ones(len(rows), np.float32), np.zeros(4, np.float32)
    assert_no_allocation(kernels.nearest_samples, rows, samples, 9, 2, near, best, out)
    assert_no_allocation(kernels.typical_distances, samples, 9, 2, 4, 0, len(rows), *workspace(), out)
