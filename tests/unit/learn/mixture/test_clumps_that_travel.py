"""Clumps that leave a mixture: what they hold, and the model that is learnt from them alone."""

import functools

import numpy as np
import pytest
from mixture_cases import FAMILIES, FORMS, clusters, covariance_of

from stillwatch.base import SnapshotError
from stillwatch.learn.mixture.mixture import MemoryBoundedMixture


def settings(form, **more):
    return {"covariance": covariance_of(form), "clump_moments": "exact" if form == "full" else "rounded"} | more


def curve(n, seed=0):
    """Return rows about a closed curve in six dimensions: no clusters."""
    rng = np.random.default_rng(seed)
    angle = 2 * np.pi * rng.uniform(size=(n, 1))
    return 3 * np.sin(angle * [1, 1, 2, 2, 3, 3] + 0.7 * np.arange(6)) + 0.4 * rng.normal(size=(n, 6))


@functools.cache
def model_of_the_curve(**more):
    """A model of 8000 rows about the curve, which no test changes."""
    return MemoryBoundedMixture(memory=800, **more).fit(curve(8000))


@pytest.mark.parametrize("form", FORMS)
def test_clumps_stand_for_all_rows_with_their_mean_and_variances(form):
    rows, _ = clusters(1, n_rows=2000)
    rows = rows * 3.0 + 40.0
    model = MemoryBoundedMixture(memory=200, **settings(form)).fit(rows)
    clumps = model.clumps_
    second = clumps["variance" if form == "diagonal" else "covariance"]
    n, n_clumps = len(clumps["count"]), len(second)
    assert 0 < n_clumps == model.report_["clumps"]
    assert n - n_clumps == model.report_["singlets"]
    assert (clumps["count"][n_clumps:] == 1.0).all()
    share = clumps["count"] / clumps["count"].sum()
    np.testing.assert_allclose(share @ clumps["mean"], rows.mean(axis=0), rtol=1e-5)
    within = second if form == "diagonal" else second[:, [0, 2, 5, 9]]
    spread = share @ (clumps["mean"] - rows.mean(axis=0)) ** 2 + share[:n_clumps] @ within
    np.testing.assert_allclose(spread, rows.var(axis=0), rtol=1e-4)


@pytest.mark.parametrize("form", FORMS)
def test_each_clump_names_the_component_it_is_of(form):
    rows, labels = clusters(2, n_rows=2000, n_clusters=5, gap=9.0)
    model = MemoryBoundedMixture(memory=300, **settings(form)).fit(rows)
    clumps = model.clumps_
    np.testing.assert_array_equal(clumps["component"], model.predict(clumps["mean"]))
    for who, count in zip(model.component_ids_, np.sort(np.bincount(labels))[::-1], strict=True):
        assert clumps["count"][clumps["component"] == who].sum() == pytest.approx(count)


@pytest.mark.parametrize("form", FORMS)
def test_with_the_components_the_model_is_the_others_and_goes_on_as_it_does(form):
    model = MemoryBoundedMixture(memory=800, **settings(form)).fit(curve(6000))
    clumps = model.clumps_
    again = MemoryBoundedMixture.from_clumps(clumps, memory=800, **settings(form))
    held = curve(2000, 1)
    np.testing.assert_allclose(again.score_samples(held), model.score_samples(held), atol=1e-6)
    np.testing.assert_array_equal(again.predict(held), model.predict(held))
    more = curve(8000, 0)[6000:]
    assert abs(again.partial_fit(more).score(held) - model.partial_fit(more).score(held)) < 0.05
    assert again.n_seen_ == model.n_seen_


@pytest.mark.parametrize("covariance", FAMILIES)
def test_components_that_no_clump_is_of_are_there_too(covariance):
    """A memory of fewer clumps than there are components: what the clumps alone make of them has fewer."""
    rows = curve(3900)
    model = MemoryBoundedMixture(memory=400, epoch_size=390, covariance=covariance).fit(rows)
    clumps = model.clumps_
    assert len(np.unique(clumps["component"])) < model.n_components_
    again = MemoryBoundedMixture.from_clumps(clumps, covariance=covariance)
    assert again.n_components_ == model.n_components_
    assert again.score(rows) == pytest.approx(model.score(rows), abs=1e-6)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("left_out", [(), ("component",), ("component", "shift", "scale")])
def test_a_model_of_the_clumps_alone_scores_held_out_rows_within_a_twentieth_of_a_nat(left_out, form):
    model = model_of_the_curve(**settings(form))
    clumps = {name: array for name, array in model.clumps_.items() if name not in left_out}
    clumps = {name: array for name, array in clumps.items() if not name.startswith("component_")}
    again = MemoryBoundedMixture.from_clumps(clumps, **settings(form))
    held = curve(2000, 1)
    assert abs(again.score(held) - model.score(held)) < 0.05
    assert again.n_seen_ == 8000


@pytest.mark.parametrize("form", FORMS)
def test_components_keep_their_names_and_new_ones_get_others(form):
    rows, _ = clusters(3, n_rows=2000, n_clusters=4, gap=9.0)
    model = MemoryBoundedMixture(memory=300, **settings(form)).fit(rows)
    again = MemoryBoundedMixture.from_clumps(model.clumps_, **settings(form))
    np.testing.assert_array_equal(again.predict(rows), model.predict(rows))
    far = rows[:400] * 0.1 + 200.0
    again.partial_fit(far).flush()
    assert not set(again.predict(far)) & set(model.component_ids_)


@pytest.mark.parametrize("covariance", FAMILIES)
def test_rounded_to_a_byte_and_without_the_smallest_they_still_make_the_model(covariance):
    model = model_of_the_curve(covariance=covariance)
    clumps = model.clumps_
    second = "variance" if covariance == "diagonal" else "covariance"
    clumps = {name: clumps[name] for name in ("count", "mean", second)}
    low, high = clumps["mean"].min(axis=0), clumps["mean"].max(axis=0)
    step = (high - low) / 254
    clumps["mean"] = np.float32(np.round((clumps["mean"] - low) / step) * step + low)
    if covariance == "diagonal":
        step = clumps["variance"].max(axis=0) / 127
        clumps["variance"] = np.float32(np.round(clumps["variance"] / step) * step)
    n_clumps = len(clumps[second])
    largest = np.sort(np.argsort(-clumps["count"][:n_clumps], kind="stable")[: int(0.9 * n_clumps)])
    part = {name: array[largest] for name, array in clumps.items()}
    again = MemoryBoundedMixture.from_clumps(part, covariance=covariance)
    held = curve(2000, 1)
    assert abs(again.score(held) - model.score(held)) < 0.1


def test_memory_is_what_the_clumps_need_and_a_smaller_one_is_refused():
    model = MemoryBoundedMixture(memory=20_000).fit(curve(30_000))
    again = MemoryBoundedMixture.from_clumps(model.clumps_)
    assert again.memory > 4000
    assert len(again.clumps_["count"]) == len(model.clumps_["count"])
    with pytest.raises(ValueError, match=r"memory: \d+ clumps and singlets take \d+ points; 4000 leaves them 2000"):
        MemoryBoundedMixture.from_clumps(model.clumps_, memory=4000)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("mean", None, "mean missing"),
        ("variance", None, "variance missing"),
        ("mean", np.zeros(3), r"mean has shape \(3,\)"),
        ("count", np.ones(2), r"count has shape \(2,\), must be"),
        ("variance", np.full((1, 4), -1.0), "variance is -1, must be at least 0"),
        ("count", 0.0, "count is 0, must be at least"),
        ("mean", np.nan, "mean is not finite"),
        ("scale", np.zeros(4), "scale is 0, must be at least"),
        ("component", np.zeros((1, 1), int), "component has shape"),
        ("component", -1, "component is -1, must be at least 0"),
        ("component_mean", None, "component_mean missing: components are told whole"),
        ("component_count", np.ones((1, 1)), r"component_count has shape \(1, 1\), must be"),
        ("component_count", -1.0, "component_count is -1, must be at least 0"),
        ("component_variance", -1.0, "component_variance is -1, must be at least 0"),
        ("component_mean", np.nan, "component_mean is not finite"),
        ("component_id", 3, "a component_id appears twice"),
    ],
)
def test_clumps_that_cannot_be_are_refused_with_what_is_wrong(name, value, message):
    clumps = dict(MemoryBoundedMixture(memory=200).fit(clusters(1, n_rows=1000)[0]).clumps_)
    if value is None:
        del clumps[name]
    else:
        clumps[name] = np.full_like(clumps[name], value) if np.ndim(value) == 0 else value
    with pytest.raises(SnapshotError, match=f"mixture clumps: .*{message}"):
        MemoryBoundedMixture.from_clumps(clumps)


def test_settings_that_cannot_work_are_refused_before_the_clumps_are_read():
    with pytest.raises(ValueError, match="covariance: 'round' is none of"):
        MemoryBoundedMixture.from_clumps({}, covariance="round")
