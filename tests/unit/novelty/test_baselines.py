"""What is usual: by place under a fixed camera, by component under a moving one; events do not become usual."""

import numpy as np
import pytest

from stillwatch.novelty.baselines import ComponentBaseline, PlaceBaseline, robust_moments
from stillwatch.novelty.rules import KEPT_ROWS

GRID, DIMS = (10, 20), 18
PLACES = 200
ALL = np.ones(PLACES, bool)
ROWS = np.zeros((PLACES, DIMS), np.float32)


def watched(surprises, in_event=lambda i: False, valid=ALL):
    """Return the baseline and the deviations of every frame of `surprises`, (n, PLACES)."""
    baseline, out = PlaceBaseline(PLACES, DIMS), np.zeros((len(surprises), PLACES), np.float32)
    baseline.take_grid(GRID)
    for i, surprise in enumerate(surprises):
        baseline.standardise(surprise, np.zeros(PLACES, np.int64), valid, out[i])
        baseline.learn(ROWS, surprise, valid, in_event(i))
    return baseline, out


def noise(n, seed=0, spread=2.0):
    return np.random.default_rng(seed).normal(0.0, spread, (n, PLACES))


def test_each_place_is_judged_by_its_own_past():
    surprises = noise(300)
    surprises[:, 0] += 100.0  # a place that always surprises
    surprises[:, 1] *= 20.0  # and one that varies widely
    surprises[-1, :3] = 100.0, 60.0, 60.0
    _, out = watched(surprises)
    assert abs(out[-1, 0]) < 1.5
    assert out[-1, 1] < 3.0
    assert out[-1, 2] > 10.0


def test_deviations_are_in_units_of_the_places_own_and_a_rows_own_variance():
    _, out = watched(noise(500, spread=4.0))
    assert out[100:].std() == pytest.approx(4.0 / np.sqrt(16.0 + DIMS / 2), rel=0.05)


def test_what_all_places_share_says_nothing():
    surprises = noise(200)
    surprises[150:] += 40.0
    _, out = watched(surprises)
    assert np.abs(out[150:]).max() < 5.0


def test_novelty_hardly_becomes_usual_even_if_no_event_was_raised():
    surprises = noise(400)
    surprises[200:, 5] += 60.0
    _, out = watched(surprises)
    assert out[205, 5] > 10.0
    assert out[300, 5] > 0.5 * out[205, 5]


def test_novelty_in_an_event_does_not_become_usual_at_all():
    surprises = noise(400)
    surprises[200:, 5] += 60.0
    baseline, out = watched(surprises, in_event=lambda i: i >= 200)
    assert out[-50:, 5].mean() > 0.95 * out[200:250, 5].mean()


def test_a_drift_is_followed():
    surprises = noise(2000) + np.linspace(0, 30, 2000)[:, None] * np.random.default_rng(1).random(PLACES)
    _, out = watched(surprises)
    assert out[-100:].mean(axis=0).max() < 6.0


def test_masked_places_neither_count_nor_learn():
    valid = ALL.copy()
    valid[7] = False
    surprises = noise(50)
    surprises[:, 7] = np.nan
    _, out = watched(surprises, valid=valid)
    assert np.all(out[:, 7] == 0.0)
    assert np.isfinite(out).all()


def test_another_grid_of_as_many_places_makes_what_was_usual_void():
    surprises = noise(60)
    surprises[:, 0] += 50.0
    baseline, _ = watched(surprises)
    fresh, out, expected = PlaceBaseline(PLACES, DIMS), np.zeros(PLACES, np.float32), np.zeros(PLACES, np.float32)
    baseline.take_grid(GRID[::-1])
    fresh.take_grid(GRID[::-1])
    for surprise in noise(5, seed=1):
        for stage, deviations in ((baseline, out), (fresh, expected)):
            stage.standardise(surprise, np.zeros(PLACES, np.int64), ALL, deviations)
            stage.learn(ROWS, surprise, ALL, False)
    assert np.array_equal(out, expected)


def test_a_saved_place_baseline_goes_on_with_the_same_bits():
    surprises = noise(60)
    whole, expected = watched(surprises)
    half, _ = watched(surprises[:30])
    resumed, out = PlaceBaseline(PLACES, DIMS), np.zeros(PLACES, np.float32)
    resumed.restore(half.state())
    for i in range(30, 60):
        resumed.standardise(surprises[i], np.zeros(PLACES, np.int64), ALL, out)
        assert np.array_equal(out, expected[i])
        resumed.learn(ROWS, surprises[i], ALL, False)
    assert all(np.array_equal(a, b) for a, b in zip(whole.state().values(), resumed.state().values(), strict=True))


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
