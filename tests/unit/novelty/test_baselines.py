"""What is usual for each component under a moving camera."""

import numpy as np
import pytest

from stillwatch.novelty.baselines import ComponentBaseline, robust_moments

PLACES, DIMS = 200, 18
ALL = np.ones(PLACES, bool)


class FlatModel:
    """Two components: rows below zero belong to the first and vary little, the others vary widely."""

    def score_and_label(self, x, score, label):
        label[:] = (x[:, 0] >= 0).astype(np.int64)
        score[:] = np.where(x[:, 0] < 0, 40.0 + x[:, 1], 10.0 + 8.0 * x[:, 1])


def component_rows(n, seed):
    rows = np.random.default_rng(seed).normal(size=(n, DIMS)).astype(np.float32)
    rows[:, 0] = np.where(np.arange(n) % 2, 1.0, -1.0)
    return rows


def rows_of_the_past():
    return np.concatenate([component_rows(PLACES, i) for i in range(10)])


def test_each_component_is_judged_by_its_own_rows():
    baseline = ComponentBaseline(8)
    baseline.measure(FlatModel(), rows_of_the_past())
    rows, out = component_rows(PLACES, 99), np.zeros(PLACES, np.float32)
    density, label = np.zeros(PLACES), np.zeros(PLACES, np.int64)
    FlatModel().score_and_label(rows, density, label)
    baseline.standardise(-density, label, ALL, out)
    for component in (0, 1):
        assert out[label == component].mean() == pytest.approx(0.0, abs=0.3)
        assert out[label == component].std() == pytest.approx(1.0, abs=0.25)


def test_a_component_without_rows_is_judged_by_all_of_them():
    baseline = ComponentBaseline(8)
    baseline.measure(FlatModel(), component_rows(PLACES, 1))
    out = np.zeros(1, np.float32)
    baseline.standardise(np.array([0.0]), np.array([5]), np.array([True]), out)
    assert 0.1 < out[0] < 20.0


def test_a_model_before_anything_was_kept_leaves_what_is_usual_as_it_is():
    baseline = ComponentBaseline(8)
    before = baseline.state()
    baseline.measure(FlatModel(), np.zeros((0, DIMS), np.float32))
    assert all(np.array_equal(a, b) for a, b in zip(before.values(), baseline.state().values(), strict=True))


def test_robust_moments_of_a_normal_are_its_own_and_outliers_do_not_move_them():
    values = np.random.default_rng(0).normal(3.0, 2.0, 10_000)
    values[:500] = 1e9
    middle, deviation = robust_moments(values)
    assert middle == pytest.approx(3.0, abs=0.2)
    assert deviation == pytest.approx(2.0, abs=0.25)
