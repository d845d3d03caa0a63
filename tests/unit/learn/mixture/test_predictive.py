"""The predictive: Student t densities as the textbooks have them, rebuilt exactly from what is sent."""

import numpy as np
import pytest
import reference_kernels_mixture as reference
from mixture_cases import FAMILIES, clusters
from scipy.special import logsumexp
from scipy.stats import multivariate_t, t

from stillwatch.base.errors import SnapshotError
from stillwatch.learn.mixture.mixture import MemoryBoundedMixture
from stillwatch.learn.mixture.predictive import StudentMixture


@pytest.fixture(params=FAMILIES)
def model(request):
    rows, _ = clusters(3, n_rows=500)
    return MemoryBoundedMixture(covariance=request.param, memory=300, max_components=12).partial_fit(rows * 2 + 7)


def expected_log_joint(model, x):
    """Return log weight + log density in the units of the data, by SciPy."""
    c = model.summary()
    kappa0, first, third = c["prior"]
    count = np.append(c["count"], 0.0)
    mean = np.vstack([(c["mean"] - c["shift"]) / c["scale"], np.zeros(4)])
    weight = np.append(c["weight"], 1.0 - c["weight"].sum())
    kappa, z, columns = kappa0 + count, (x - c["shift"]) / c["scale"], []
    for k in range(len(count)):
        pull = kappa0 * count[k] / kappa[k]
        centre = count[k] / kappa[k] * mean[k]
        if model.covariance == "diagonal":
            variance = c["variance"][k] / c["scale"] ** 2 if k < len(count) - 1 else np.zeros(4)
            a = first + count[k] / 2
            b = third + 0.5 * (count[k] * variance + pull * mean[k] ** 2)
            width = np.sqrt(b * (kappa[k] + 1) / (a * kappa[k]))
            log_density = t.logpdf(z, 2 * a, centre, width).sum(axis=1)
        else:
            packed = c["covariance"][k] if k < len(count) - 1 else np.zeros(10)
            square = reference.unpack(packed, 4) / np.outer(c["scale"], c["scale"])
            scale = third * np.eye(4) + count[k] * square + pull * np.outer(mean[k], mean[k])
            dof = first + count[k] - 3
            log_density = multivariate_t.logpdf(z, centre, scale * (kappa[k] + 1) / (kappa[k] * dof), dof)
        columns.append(np.log(weight[k]) + log_density - np.log(c["scale"]).sum())
    return np.column_stack(columns)


def test_scores_are_those_of_a_mixture_of_student_t(model):
    x = np.random.default_rng(0).normal(size=(300, 4)) * 10 + 7
    expected = expected_log_joint(model, x)
    np.testing.assert_allclose(model.score_samples(x), logsumexp(expected, axis=1), atol=1e-8)
    found = model.predictive().log_joint(x, np.empty((300, model.n_components_ + 1)))
    np.testing.assert_allclose(found, expected, atol=1e-8)
    np.testing.assert_array_equal(model.predict(x), model.summary()["id"][expected[:, :-1].argmax(axis=1)])
    shares = np.exp(expected - logsumexp(expected, axis=1, keepdims=True))
    named = shares[:, :-1]
    np.testing.assert_allclose(model.predict_proba(x), named / named.sum(axis=1, keepdims=True), atol=1e-9)
    np.testing.assert_allclose(model.predictive().new_proba(x), shares[:, -1], atol=1e-9)


def test_a_density_rebuilt_from_its_summary_is_the_same(model):
    x = np.random.default_rng(1).normal(size=(200, 4)) * 8
    again = StudentMixture.from_summary(model.summary())
    np.testing.assert_array_equal(again.score_samples(x), model.score_samples(x))
    np.testing.assert_array_equal(again.predict(x), model.predict(x))
    single = {name: np.float32(v) if v.dtype == np.float64 else v for name, v in model.summary().items()}
    assert (StudentMixture.from_summary(single).predict(x) == model.predict(x)).mean() > 0.99


def test_outputs_may_be_given_and_may_be_float32(model):
    x = np.random.default_rng(1).normal(size=(300, 4)).astype(np.float32)
    out, labels = np.empty(300, np.float32), np.empty(300, np.int64)
    assert model.predictive().score_samples(x, out) is out
    assert model.predictive().predict(x, labels) is labels
    np.testing.assert_allclose(out, model.score_samples(x), rtol=1e-5)
    np.testing.assert_array_equal(labels, model.predict(x))


def test_a_snapshot_does_not_change_when_its_learner_learns_on(model):
    x = np.random.default_rng(1).normal(size=(50, 4))
    snapshot = model.predictive()
    before = snapshot.score_samples(x)
    model.partial_fit(np.random.default_rng(2).normal(size=(600, 4)))
    assert model.predictive() is not snapshot
    np.testing.assert_array_equal(snapshot.score_samples(x), before)


@pytest.mark.parametrize("change", [
    {"mean": None}, {"count": np.ones(99)}, {"kind": np.array(5)}, {"scale": np.full(4, np.nan)},
])  # fmt: skip
def test_a_summary_that_does_not_fit_is_refused(model, change):
    arrays = model.summary() | change
    arrays = {name: value for name, value in arrays.items() if value is not None}
    with pytest.raises(SnapshotError, match="mixture summary"):
        StudentMixture.from_summary(arrays)


def test_rows_far_beyond_everything_have_finite_scores_that_fall(model):
    x = np.outer(10.0 ** np.arange(1, 12), np.ones(4))
    scores = model.score_samples(x)
    assert np.isfinite(scores).all()
    assert (np.diff(scores[:6]) < 0).all()


def test_a_label_is_the_place_of_the_highest_joint_density(model):
    rows = clusters(3, n_rows=700)[0] * 2 + 7
    joint = model.predictive().log_joint(rows, np.zeros((700, model.predictive().n_components + 1)))
    labels = np.full(700, -1)
    model.predictive().label_samples(rows, labels)
    np.testing.assert_array_equal(labels, joint[:, :-1].argmax(axis=1))
    assert len(np.unique(labels)) > 1
