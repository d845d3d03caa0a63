"""Budgets of surveys: 100,000 descriptors of twelve dives in a minute and a gigabyte, a million frames' clumps
in two minutes, 15 pictures a second."""

import argparse
import json
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from stillwatch.features import SparseCodePyramid
from stillwatch.learn import GroupedMixture
from stillwatch.tools.bench import survey as bench
from stillwatch.tools.survey.dives import clump
from stillwatch.worlds import make_world

pytestmark = pytest.mark.perf


@pytest.mark.parametrize("tails", ["gaussian", "heavy"])
def test_a_hundred_thousand_descriptors_of_twelve_dives_in_a_minute(tails, capsys):
    parser = argparse.ArgumentParser()
    bench.add_arguments(parser)
    assert bench.main(parser.parse_args(["--tails", tails, "--cores", "2", "--json"])) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    print(row)
    assert row["clusters"] == row["made_clusters"] if tails == "gaussian" else row["clusters"] > row["made_clusters"]
    assert row["seconds"] < 60.0
    assert row["peak_rss_mb"] < 1000.0


def test_the_clumps_of_a_million_frames_merge_in_two_minutes():
    X, groups, _ = bench.descriptors(60_000, 12, None, 0)
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
