"""The bench of `find`: the run that it writes is one that `find` reads, with as many frames as it says."""

import argparse

import pytest
from printed import of_schema

from stillwatch.base import UsageError
from stillwatch.tools.bench import find


def run(*options):
    parser = argparse.ArgumentParser()
    find.add_arguments(parser)
    return find.main(parser.parse_args(options))


def test_a_run_of_as_many_frames_as_asked_for_is_searched(capsys):
    assert run("--frames", "2000", "--json") == 0
    rows = of_schema("bench find", capsys.readouterr().out)["rows"]
    assert rows[0]["with_shares"] < rows[1]["with_shares"]
    assert rows[1]["with_shares"] >= 2000 - find.SHORT
    assert all(row["found"] == 20 and row["cpu_s"] > 0.0 for row in rows)


def test_fewer_frames_than_are_played_are_refused():
    with pytest.raises(UsageError, match="--frames: 10"):
        run("--frames", "10")
