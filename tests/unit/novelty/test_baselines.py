"""What is usual for each component under a moving camera."""

import numpy as np
import pytest

from stillwatch.novelty.baselines import ComponentBaseline, robust_moments
from stillwatch.novelty.rules import KEPT_ROWS

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


def test_each_component_is_judged_by_its_own_rows():
    baseline = ComponentBaseline(DIMS, 8, 0)
    for i in range(60):
        baseline.learn(component_rows(PLACES, i), None, ALL, False)
    baseline.model_changed(FlatModel())
    rows, out = component_rows(PLACES, 99), np.zeros(PLACES, np.float32)
    density, label = np.zeros(PLACES), np.zeros(PLACES, np.int64)
    FlatModel().score_and_label(rows, density, label)
    baseline.standardise(-density, label, ALL, out)
    for component in (0, 1):
        assert out[label == component].mean() == pytest.approx(0.0, abs=0.3)
        assert out[label == component].std() == pytest.approx(1.0, abs=0.25)


def test_a_component_without_rows_is_judged_by_all_of_them():
    baseline = ComponentBaseline(DIMS, 8, 0)
    baseline.learn(component_rows(PLACES, 1), None, ALL, False)
    baseline.model_changed(FlatModel())
    out = np.zeros(1, np.float32)
    baseline.standardise(np.array([0.0]), np.array([5]), np.array([True]), out)
    assert 0.1 < out[0] < 20.0


def test_the_reservoir_keeps_rows_of_the_whole_past_in_fixed_room():
    baseline = ComponentBaseline(DIMS, 8, 0)
    before = baseline.memory_bytes()
    for i in range(400):
        baseline.learn(np.full((PLACES, DIMS), i, np.float32), None, ALL, False)
    ages = baseline.state()["rows"][:, 0]
    assert len(ages) == KEPT_ROWS
    assert baseline.memory_bytes() == before
    assert ages.mean() == pytest.approx(199.5, abs=10)


def test_a_saved_component_baseline_goes_on_with_the_same_bits():
    whole, half = ComponentBaseline(DIMS, 8, 3), ComponentBaseline(DIMS, 8, 3)
    resumed = ComponentBaseline(DIMS, 8, 3)
    for i in range(80):
        whole.learn(component_rows(PLACES, i), None, ALL, False)
    for i in range(40):
        half.learn(component_rows(PLACES, i), None, ALL, False)
    resumed.restore(half.state())
    for i in range(40, 80):
        resumed.learn(component_rows(PLACES, i), None, ALL, False)
    assert all(np.array_equal(a, b) for a, b in zip(whole.state().values(), resumed.state().values(), strict=True))


def test_robust_moments_of_a_normal_are_its_own_and_outliers_do_not_move_them():
    values = np.random.default_rng(0).normal(3.0, 2.0, 10_000)
    values[:500] = 1e9
    middle, deviation = robust_moments(values)
    assert middle == pytest.approx(3.0, abs=0.2)
    assert deviation == pytest.approx(2.0, abs=0.25)
