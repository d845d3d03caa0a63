"""Rarity: read off the past where there is one, extrapolated with care beyond it, forgotten by half-lives."""

import numpy as np
import pytest

from stillwatch.novelty.calibration import RarityCalibration, RunningSpread, running_share
from stillwatch.novelty.rules import MAX_RARITY

SECOND = 1_000_000_000


def learnt(scores, halflife_s=1e8):
    calibration = RarityCalibration(halflife_s)
    for i, score in enumerate(scores):
        calibration.learn(float(score), (i + 1) * SECOND // 10)
    return calibration


def test_nothing_is_rare_before_anything_was_seen():
    assert RarityCalibration(60.0).rarity(1e6) == 1.0


def test_in_the_body_the_rarity_is_the_share_of_frames_that_score_higher():
    scores = np.random.default_rng(0).normal(size=4000)
    calibration = learnt(scores)
    for quantile in (0.25, 0.5, 0.75):
        assert calibration.rarity(float(np.quantile(scores, quantile))) == pytest.approx(1 / (1 - quantile), rel=0.12)


def test_beyond_the_upper_tenth_the_tail_is_no_thinner_than_the_exponential_with_a_normals_mean_excess():
    calibration = learnt(np.random.default_rng(1).normal(size=4000))
    for deviation in (3.0, 4.0, 6.0):
        assert 100 < calibration.rarity(deviation) <= 13 * np.exp((deviation - 1.2) / 0.5)


def test_a_heavy_tail_is_recognised_and_its_far_scores_are_called_less_rare():
    heavy = np.random.default_rng(2).pareto(2.0, 20_000)
    far = float(np.quantile(heavy, 0.999))
    assert learnt(heavy).rarity(far) < 20_000
    assert learnt(np.random.default_rng(2).normal(size=20_000)).rarity(far) > 1e6


@pytest.mark.parametrize("seed", range(5))
def test_rarity_never_falls_as_the_score_rises_and_is_bounded(seed):
    rng = np.random.default_rng(seed)
    calibration = learnt(rng.normal(size=int(rng.integers(1, 400))) * rng.uniform(0.1, 30))
    values = [calibration.rarity(float(score)) for score in np.linspace(-50, 1e5, 3000)]
    assert np.all(np.diff(values) >= -1e-9 * np.array(values[1:]))
    assert min(values) >= 1.0
    assert max(values) <= MAX_RARITY


def test_half_of_the_weight_is_gone_after_a_half_life():
    calibration = RarityCalibration(10.0)
    calibration.learn(0.0, SECOND)
    calibration.learn(0.0, 11 * SECOND)
    assert calibration.weight == pytest.approx(1.5)


def test_a_frame_that_is_rare_by_what_is_known_hardly_teaches():
    calibration = learnt(np.random.default_rng(3).normal(size=1000))
    before = calibration.weight
    calibration.learn(12.0, 10**12)
    assert calibration.weight - before < 0.02


def test_the_calibration_adapts_when_the_ordinary_changes_for_good():
    rng = np.random.default_rng(4)
    calibration = learnt(rng.normal(size=500))
    assert calibration.rarity(3.0) > 50
    for i in range(3000):
        calibration.learn(float(rng.normal(3.0)), (1000 + i) * SECOND // 10)
    assert calibration.rarity(3.0) < 10


def test_a_saved_calibration_goes_on_with_the_same_bits():
    scores = np.random.default_rng(5).normal(size=300)
    whole, half = learnt(scores), learnt(scores[:150])
    resumed = RarityCalibration(1e8)
    resumed.restore(half.state())
    for i, score in enumerate(scores[150:]):
        resumed.learn(float(score), (151 + i) * SECOND // 10)
    assert all(np.array_equal(a, b) for a, b in zip(whole.state().values(), resumed.state().values(), strict=True))


def test_spread_is_the_mean_and_deviation_of_the_past():
    values = np.random.default_rng(6).normal(5.0, 2.0, 5000)
    spread = RunningSpread(1e8, 0.4, 0.1)
    for i, value in enumerate(values):
        spread.learn(float(value), i * SECOND // 10)
    assert spread.mean == pytest.approx(5.0, abs=0.15)
    assert spread.deviation == pytest.approx(2.0, rel=0.1)
    assert spread.standardise(9.0) == pytest.approx(2.0, abs=0.25)


def test_one_outlier_moves_a_spread_by_its_clip_only():
    spread = RunningSpread(1e8, 1.0, 0.1)
    for i in range(100):
        spread.learn(float(i % 2), i * SECOND)
    before = spread.mean
    spread.learn(1e9, 100 * SECOND)
    assert spread.mean - before < 0.05


def test_a_spread_is_never_below_its_least():
    spread = RunningSpread(1e8, 0.4, 0.4)
    for i in range(1000):
        spread.learn(3.0, i * SECOND)
    assert spread.standardise(5.0) == pytest.approx(5.0)


def test_a_running_share_is_an_average_first_and_exponential_later():
    assert running_share(9, 1, SECOND // 10, 1e9) == pytest.approx(0.1)
    assert running_share(10**9, 1, 10 * SECOND, 10.0) == pytest.approx(0.5)


def test_frames_in_a_row_are_one_excursion_and_do_not_hide_the_next():
    noise = np.random.default_rng(7).normal(0.0, 0.2, 200)
    calibration = learnt(noise)
    once = calibration.rarity(2.0)
    for i in range(60):
        calibration.learn(2.0, (201 + i) * SECOND // 10)
    assert calibration.weight < 203
    assert calibration.rarity(2.0) > once / 4
    assert calibration.state()["run"] == 32


def test_a_long_visit_below_the_threshold_hardly_widens_a_spread():
    spread = RunningSpread(1e8, 0.5, 0.5)
    rng = np.random.default_rng(8)
    for i in range(100):
        spread.learn(float(rng.normal(1.0, 0.5)), i * SECOND // 10)
    for i in range(85):
        spread.learn(6.0, (100 + i) * SECOND // 10)
    assert spread.standardise(6.0) > 3.0  # 1.4 if every frame taught alike


def test_an_event_among_the_first_frames_does_not_pass_for_usual():
    quiet = np.random.default_rng(9).normal(size=200)
    assert learnt([0.1, -0.3, *[12.0] * 8, *quiet]).rarity(5.0) > 1000  # about 25 if they taught in full
