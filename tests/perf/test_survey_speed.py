"""Budgets of surveys: 100,000 descriptors of twelve dives in a minute and a gigabyte, a million frames' clumps
in two minutes, 15 pictures a second."""

import resource
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from stillwatch.features import SparseCodePyramid
from stillwatch.learn import GroupedMixture
from stillwatch.tools.survey.dives import clump
from stillwatch.worlds import make_world

pytestmark = pytest.mark.perf


def descriptors(n=100_000, n_dims=20, n_clusters=20, n_groups=12):
    """Return rows whose spectrum falls as principal coordinates' does, their group and their cluster."""
    rng = np.random.default_rng(0)
    fall = np.arange(1.0, n_dims + 1) ** -0.5
    centres, widths = rng.normal(size=(n_clusters, n_dims)) * 2 * fall, rng.uniform(0.3, 1.2, (n_clusters, n_dims))
    mixes, groups = rng.dirichlet(np.full(n_clusters, 0.3), n_groups), rng.integers(0, n_groups, n)
    truth = np.empty(n, np.int64)
    for j in range(n_groups):
        truth[groups == j] = rng.choice(n_clusters, int((groups == j).sum()), p=mixes[j])
    return centres[truth] + rng.normal(size=(n, n_dims)) * widths[truth] * fall, groups, truth


def test_a_hundred_thousand_descriptors_of_twelve_dives_in_a_minute():
    X, groups, truth = descriptors()
    began = time.perf_counter()
    model = GroupedMixture(c_width=0.1, n_jobs=2).fit(X, groups=groups)
    seconds, peak_mb = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(f"S-GMC, 100,000 x 20, 12 groups: {seconds:.1f} s, {model.n_clusters_} clusters, {peak_mb:.0f} MB")
    assert len(np.unique(truth)) == model.n_clusters_
    assert seconds < 60.0
    assert peak_mb < 1000.0


def test_the_clumps_of_a_million_frames_merge_in_two_minutes():
    X, groups, _ = descriptors(n=60_000)
    parts = [clump(X[groups == j]) for j in range(12)]
    means, counts, variances = (np.concatenate([part[i] for part in parts]) for i in range(3))
    given = {"groups": np.repeat(np.arange(12), [len(part[0]) for part in parts]), "covariances": variances}
    began = time.perf_counter()
    model = GroupedMixture(c_width=0.1, n_drawn=100_000, n_jobs=2).fit(means, counts=counts * 1e6 / 60_000, **given)
    seconds = time.perf_counter() - began
    print(f"1,000,000 frames' {len(means)} clumps: {seconds:.1f} s, {model.n_clusters_} clusters")
    assert model.counts_.sum() == pytest.approx(1e6)
    assert seconds < 120.0


def test_fifteen_pictures_a_second_on_a_core():
    image = make_world("transect", seed=1, width=320, height=240).render(300)[:, :, 1].copy()
    pyramid = SparseCodePyramid(240, 320)
    with threadpool_limits(1):
        pyramid.describe(image)
        began = time.process_time()
        for _ in range(20):
            pyramid.describe(image)
    rate = 20 / (time.process_time() - began)
    print(f"ScSPM at 320x240: {rate:.1f} pictures a second a core")
    assert rate >= 15.0
