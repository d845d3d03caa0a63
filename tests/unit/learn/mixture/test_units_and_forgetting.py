"""What a learner measures in and forgets: units that widen, columns of their own, a half-life, odd values."""

import numpy as np
import pytest
from mixture_cases import FAMILIES, FORMS, clusters, covariance_of

from stillwatch.learn import Normaliser
from stillwatch.learn.mixture.mixture import MemoryBoundedMixture


def learner(form, **settings):
    moments = "exact" if form == "full" else "rounded"
    return MemoryBoundedMixture(covariance=covariance_of(form), clump_moments=moments, memory=200, **settings)


@pytest.mark.parametrize("form", FORMS)
def test_units_that_a_degenerate_first_epoch_measured_widen(form):
    rows, _ = clusters(1, n_rows=3000)
    rows[:250] = 1.0 + 1e-8 * np.random.default_rng(0).normal(size=(250, 4))
    model = learner(form).partial_fit(rows).flush()
    assert model.widened_ == model.report_["widened"] == 1
    assert model.refused_ <= 50  # those that came while the epoch was still of the first kind
    assert model.n_seen_ + model.refused_ == 3000
    assert model.clumps_["count"].sum() == pytest.approx(model.n_seen_)
    plain = learner(form).partial_fit(rows[250:]).flush()
    assert model.score(rows[2000:]) > plain.score(rows[2000:]) - 0.5


@pytest.mark.parametrize("form", FORMS)
def test_widened_units_hold_the_same_clumps(form):
    rng = np.random.default_rng(2)
    model = learner(form).partial_fit(rng.normal(size=(300, 3)) * 1e-9 + [1.0, 2.0, 3.0]).flush()
    held = model.clumps_
    model.partial_fit(rng.normal(size=(100, 3)) * [1.0, 2.0, 3.0])
    assert model.widened_ == 1
    clumps = model.clumps_
    assert clumps["count"].sum() == pytest.approx(held["count"].sum() + 100)
    near = np.abs(clumps["mean"] - [1.0, 2.0, 3.0]).max(axis=1) < 0.2
    assert clumps["count"][near].sum() >= 300


@pytest.mark.parametrize("cuts", [(3000,), (7, 211, 1, 2781)])
def test_rows_that_wait_far_out_are_part_of_the_state_and_of_any_cut(cuts):
    rows, _ = clusters(1, n_rows=3000)
    rows[:250] *= 1e-8
    whole, parts = learner("diagonal").partial_fit(rows), learner("diagonal")
    for start, n in zip(np.cumsum((0, *cuts)), cuts, strict=False):
        parts.partial_fit(rows[start : start + n])
    for name, array in whole.state().items():
        np.testing.assert_array_equal(array, parts.state()[name])


@pytest.mark.parametrize("form", FORMS)
def test_a_first_model_of_a_few_rows_does_not_decide_the_units(form):
    """Neighbouring rows are alike, as a camera's first frames are; the first model is asked for after eight of them."""
    rng = np.random.default_rng(8)
    steps = rng.normal(size=(3000, 3)) * [1.0, 0.5, 2.0]
    rows = 0.2 * np.cumsum(steps, axis=0) % 10.0 + 100.0
    whole = learner(form).partial_fit(rows).flush()
    early = learner(form)
    for first, last in ((0, 8), (8, 24), (24, 56)):
        early.partial_fit(rows[first:last]).flush()
        np.testing.assert_allclose(early.summary()["shift"], rows[:last].mean(axis=0), rtol=1e-5)
        of_rows = Normaliser.measure(rows[:last], by_column=form == "diagonal")
        np.testing.assert_allclose(early.summary()["scale"], of_rows.scale, rtol=1e-4)
    early.partial_fit(rows[56:]).flush()
    assert early.n_seen_ == 3000
    assert early.refused_ == 0
    np.testing.assert_allclose(early.summary()["scale"], whole.summary()["scale"], rtol=0.6)
    assert abs(early.score(rows) - whole.score(rows)) < 0.2


def test_enough_rows_settle_the_units():
    rows = np.random.default_rng(9).normal(size=(1500, 3))
    model = MemoryBoundedMixture(memory=1200).partial_fit(rows[:450]).flush()
    scale = model.summary()["scale"]
    np.testing.assert_array_equal(model.partial_fit(rows[450:] * 5.0).flush().summary()["scale"], scale)


def test_a_few_rows_absurdly_far_out_are_refused_and_widen_nothing():
    rows, _ = clusters(2, n_rows=1000)
    rows[[150, 151, 400]] = 1e12
    model = learner("diagonal").partial_fit(rows).flush()
    assert (model.refused_, model.widened_, model.n_seen_) == (3, 0, 997)


@pytest.mark.parametrize("factor", [1e300, 1e-300, 5e-324])
@pytest.mark.parametrize("covariance", FAMILIES)
def test_values_that_cannot_be_squared_are_refused_and_change_nothing(covariance, factor):
    rows, _ = clusters(3, n_rows=300)
    model = learner(covariance).partial_fit(rows)
    before = model.state()
    with pytest.raises(ValueError, match="squares of values (above 1e.150 overflow|below 1e-150 vanish)"):
        model.partial_fit(rows * factor)
    with pytest.raises(ValueError, match="row 0"):
        learner(covariance).partial_fit(np.abs(rows) * factor + factor)
    for name, array in model.state().items():
        np.testing.assert_array_equal(array, before[name])


@pytest.mark.parametrize("spread", [10.0 ** np.array([-3, -1, 1, 3]), np.array([1e12, 1, 1, 1])])
def test_columns_of_different_units_are_measured_each_by_its_own(spread):
    rows, labels = clusters(4, n_rows=1200, n_clusters=5, gap=8.0)
    shared = learner("rounded").fit(rows * spread)
    own = learner("rounded", scaling="column").fit(rows * spread)
    plain = learner("rounded", scaling="column").fit(rows)
    assert own.n_components_ == plain.n_components_ == 5
    assert shared.n_components_ < 5
    np.testing.assert_array_equal(own.predict(rows * spread), plain.predict(rows))


@pytest.mark.parametrize("form", ["full", "rounded"])
def test_the_order_of_columns_moves_a_full_mixtures_scores_only_a_little(form):
    rows, _ = clusters(5, n_rows=1500, n_dims=6, n_clusters=6)
    turned = np.random.default_rng(0).permutation(6)
    one, two = learner(form).fit(rows), learner(form).fit(rows[:, turned])
    assert abs(one.score(rows) - two.score(rows[:, turned])) < 0.05
    apart = np.abs(one.score_samples(rows) - two.score_samples(rows[:, turned]))
    assert np.median(apart) < 0.3


def test_a_drift_is_followed_only_with_a_half_life_and_what_stands_still_is_kept():
    rng = np.random.default_rng(6)
    means = np.array([[0.0, 20, 0], [20, 0, 0], [-20, 0, 0], [0, -20, 0]])
    n = 20_000
    labels = rng.integers(4, size=n)
    rows = means[labels] + rng.normal(size=(n, 3))
    moving = labels == 0
    rows[moving, 2] += np.linspace(0, 40, n)[moving]
    now = np.array([0.0, 20, 40]) + rng.normal(size=(500, 3))
    still = means[rng.integers(1, 4, size=500)] + rng.normal(size=(500, 3))
    keeps, fades = (MemoryBoundedMixture(memory=600, halflife=h).fit(rows) for h in (None, 2000))
    assert fades.score(now) > keeps.score(now) + 0.5
    assert fades.score(still) > keeps.score(still) - 0.05
    assert fades.clumps_["count"].sum() < 2000 / np.log(2) + 300
    assert keeps.clumps_["count"].sum() == n


def test_a_half_life_is_part_of_the_settings_that_a_state_belongs_to():
    from stillwatch.base import SnapshotError

    rows, _ = clusters(1)
    with pytest.raises(SnapshotError, match="other settings"):
        learner("diagonal").fit(rows).restore(learner("diagonal", halflife=500).fit(rows).state())
    with pytest.raises(ValueError, match="halflife: 0 is below 1"):
        learner("diagonal", halflife=0).fit(rows)
