"""The bench of a survey's mixture: what it makes is what it says, and a row a kind of tails and seed."""

import argparse

import numpy as np
import pytest
from printed import of_schema

from stillwatch.base import UsageError
from stillwatch.tools.bench import survey


def run(*options):
    parser = argparse.ArgumentParser()
    survey.add_arguments(parser)
    return survey.main(parser.parse_args(options))


def test_a_row_for_each_kind_of_tails(capsys):
    assert run("--rows", "3000", "--dives", "3", "--cores", "1", "--json") == 0
    rows = of_schema("bench survey", capsys.readouterr().out)["rows"]
    assert [row["tails"] for row in rows] == ["gaussian", "heavy"]
    assert all(row["made_clusters"] <= 20 and row["clusters"] > 5 for row in rows)
    assert all(row["cpu_s"] > 0.0 and row["peak_rss_mb"] > 10.0 for row in rows)


def test_heavy_tails_reach_farther_than_gaussians_about_the_same_clusters():
    (X, dives, truth), (far, far_dives, far_truth) = (
        survey.descriptors(20_000, 4, freedom, 3) for freedom in (None, 4.0)
    )
    assert np.array_equal(dives, far_dives)
    assert np.array_equal(truth, far_truth)
    beyond = [np.abs(x[truth == 0] - np.median(x[truth == 0], axis=0)) for x in (X, far)]
    spread = [np.median(part, axis=0) for part in beyond]
    assert (beyond[1].max(axis=0) / spread[1]).min() > (beyond[0].max(axis=0) / spread[0]).max()


def test_sizes_are_above_zero():
    with pytest.raises(UsageError, match="--rows, --dives and --cores"):
        run("--dives", "0")
