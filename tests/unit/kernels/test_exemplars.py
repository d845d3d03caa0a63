"""Swap bookkeeping: m, z, o stay exact, and the score of every swap is what brute force says."""

import numpy as np
import pytest
from reference_kernels_exemplars import ranked, summed_loss, swap_gain, swap_gain_as_printed

from stillwatch.kernels import exemplars as kernels


class Points:
    """Random dissimilarities of n points to k exemplars, a phantom and b candidates; few values make many ties."""

    def __init__(self, seed, n=40, k=5, b=7, n_values=None):
        rng = np.random.default_rng(seed)

        def draw(*shape):
            values = rng.random(shape) if n_values is None else rng.integers(0, n_values, shape)
            return np.ascontiguousarray(values, np.float32)

        self.e, self.p, self.d = draw(n, k), draw(n), draw(b, n)
        self.m, self.o = np.zeros(n, np.float32), np.zeros(n, np.float32)
        self.z, self.y = np.zeros(n, np.int32), np.zeros(n, np.int32)
        self.k = k
        self.rank(np.arange(n))

    def rank(self, points, n_held=None):
        kernels.rank_points(
            self.e, self.p, self.k if n_held is None else n_held, points, self.m, self.z, self.o, self.y
        )

    def kept(self):
        return [(float(m), int(z), float(o), int(y)) for m, z, o, y in zip(self.m, self.z, self.o, self.y, strict=True)]

    def swap_scores(self):
        removal, gain, slot = np.zeros(self.k), np.zeros(len(self.d)), np.zeros(len(self.d), np.int64)
        kernels.removal_losses(self.m, self.z, self.o, removal)
        kernels.swap_gains(self.d, self.m, self.z, self.o, removal, np.zeros(self.k), gain, slot)
        return gain, slot


@pytest.mark.parametrize("n_values", [None, 3])
@pytest.mark.parametrize("n_held", [0, 1, 5])
def test_ranking_gives_the_two_nearest_with_ties_to_the_phantom_then_the_lower_slot(n_held, n_values):
    points = Points(1, n_values=n_values)
    points.rank(np.arange(40), n_held)
    assert points.kept() == [ranked(points.e[i], points.p[i], n_held) for i in range(40)]


def test_ranking_touches_only_the_points_asked_for():
    points = Points(2)
    before = points.kept()
    points.e[:] = 0.5
    points.rank(np.array([3, 8]))
    changed = [i for i, (old, new) in enumerate(zip(before, points.kept(), strict=True)) if old != new]
    assert set(changed) <= {3, 8}
    assert points.kept()[3] == ranked(points.e[3], points.p[3], 5)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("n_values", [None, 3])
def test_placing_an_exemplar_keeps_what_ranking_afresh_would_give(seed, n_values):
    points = Points(seed, n_values=n_values)
    rng = np.random.default_rng(seed)
    for c in range(7):
        slot = int(rng.integers(5))
        kernels.place_exemplar(points.d[c], slot, 5, points.p, points.e, points.m, points.z, points.o, points.y)
        assert np.array_equal(points.e[:, slot], points.d[c])
        assert points.kept() == [ranked(points.e[i], points.p[i], 5) for i in range(40)]


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("n_values", [None, 4])
def test_the_score_of_the_best_swap_is_that_of_brute_force(seed, n_values):
    points = Points(seed, n_values=n_values)
    gain, slot = points.swap_scores()
    for c in range(len(points.d)):
        wanted = [swap_gain(points.e, points.p, points.d[c], j) for j in range(5)]
        assert gain[c] == pytest.approx(max(wanted), abs=1e-6)
        assert wanted[slot[c]] == pytest.approx(max(wanted), abs=1e-6)


def test_with_one_exemplar_every_swap_is_scored_exactly():
    for seed in range(20):
        points = Points(seed, k=1, b=8)
        gain, _ = points.swap_scores()
        wanted = [swap_gain(points.e, points.p, d, 0) for d in points.d]
        np.testing.assert_allclose(gain, wanted, atol=1e-6)


def test_appendix_two_as_printed_overstates_the_cost_of_removal():
    points = Points(0, b=32)
    exact = np.array([[swap_gain(points.e, points.p, d, j) for j in range(5)] for d in points.d])
    printed = np.array([[swap_gain_as_printed(points.e, points.p, d, j) for j in range(5)] for d in points.d])
    assert (printed <= exact + 1e-9).all()
    assert (printed < exact - 1e-3).mean() > 0.3


@pytest.mark.parametrize("seed", range(5))
def test_the_gain_of_an_addition_is_what_the_loss_falls_by(seed):
    points = Points(seed)
    gain = np.zeros(7)
    kernels.addition_gains(points.d, points.m, gain)
    for c in range(7):
        with_c = np.column_stack([points.e, points.d[c]])
        fall = summed_loss(points.e, points.p, range(5)) - summed_loss(with_c, points.p, range(6))
        assert gain[c] == pytest.approx(fall, abs=1e-6)


def test_a_prefix_of_the_points_is_scored_alone():
    points, n = Points(3), 17
    removal, gain, slot = np.zeros(5), np.zeros(7), np.zeros(7, np.int64)
    kernels.removal_losses(points.m[:n], points.z[:n], points.o[:n], removal)
    kernels.swap_gains(points.d, points.m[:n], points.z[:n], points.o[:n], removal, np.zeros(5), gain, slot)
    wanted = [max(swap_gain(points.e[:n], points.p[:n], d[:n], j) for j in range(5)) for d in points.d]
    np.testing.assert_allclose(gain, wanted, atol=1e-6)


@pytest.mark.parametrize("value", [0.0, 1.0, 1e30])
def test_constant_dissimilarities_gain_nothing(value):
    points = Points(0)
    for array in (points.e, points.p, points.d):
        array[:] = value
    points.rank(np.arange(40))
    gain, _ = points.swap_scores()
    assert (gain == 0.0).all()


def test_no_candidates_and_no_points_are_no_work():
    points = Points(0)
    points.d = points.d[:0]
    gain, _ = points.swap_scores()
    assert gain.size == 0
    empty = Points(0, n=0)
    gain, _ = empty.swap_scores()
    assert (gain == 0.0).all()
