"""The whole fault corpus and every stress file, each in a process of its own: a clear outcome, time and memory."""

import pytest
from data_location import data_dir

from stillwatch.tools.checks import faults
from stillwatch.tools.checks.corpus import Case, make_corpus
from stillwatch.tools.checks.stress import stress_cases

pytestmark = pytest.mark.slow


def wrong(rows):
    return {row.input: row.fault for row in rows if row.fault}


def test_every_case_of_the_corpus_comes_to_its_outcome(tmp_path):
    rows = [faults.run_case(case) for case in make_corpus(tmp_path)]
    assert len(rows) > 60
    assert wrong(rows) == {}


def test_every_stress_file_comes_to_a_clear_outcome():
    folder = data_dir() / "stress"
    if not folder.is_dir():
        pytest.skip("the data folder has no stress/")
    rows = [faults.run_case(case) for case in stress_cases(folder)]
    assert len(rows) >= 100
    assert wrong(rows) == {}
    assert max(row.peak_rss_mb for row in rows) < faults.MOST_MB


def test_a_hang_and_a_crash_are_rows_like_any_other(tmp_path):
    fifo = tmp_path / "fifo?live=0"
    row = faults.run_case(Case("never ends", "synthetic:transect?n_frames=100000&width=640&height=480", "any"), 0.5)
    assert row.outcome == "hang"
    assert row.fault.startswith("hang")
    assert faults.run_case(Case("none", str(fifo), "none")).outcome == "none"
