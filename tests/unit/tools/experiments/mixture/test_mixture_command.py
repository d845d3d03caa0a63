"""mixture-synthetic runs with its defaults, and with a prior scale of one's own."""

import argparse

import numpy as np
import pytest
from printed import of_schema

from stillwatch.tools.experiments.mixture import command


def run(capsys, *options):
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    args = parser.parse_args(["--rows", "300", "--memory", "200", "--order", "shuffled", "--json", *options])
    args.experiment = "mixture-synthetic"
    assert command.main(args) == 0
    return of_schema("experiment mixture-synthetic", capsys.readouterr().out)["rows"]


@pytest.mark.slow
def test_the_prior_scale_is_the_learners_own_unless_given(capsys):
    plain, default, other = run(capsys), run(capsys, "--prior-scale", "0.05"), run(capsys, "--prior-scale", "0.5")
    assert np.isfinite(plain[0]["log_likelihood"])
    assert plain[0]["log_likelihood"] == default[0]["log_likelihood"] != other[0]["log_likelihood"]
