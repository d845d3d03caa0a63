"""bench features: the rows that are promised."""

import argparse

import pytest
from printed import of_schema

from stillwatch.tools.bench import features as bench_features


def test_rows_hold_our_kernels_and_opencvs_side_by_side(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(bench_features, "SIZES", ((64, 48),))
    parser = argparse.ArgumentParser()
    bench_features.add_arguments(parser)
    words = ["--json", "--seconds", "0", "--data", str(tmp_path)]
    assert bench_features.main(parser.parse_args(words)) == 0
    rows = of_schema("bench features", capsys.readouterr().out)["rows"]
    sift = [row for row in rows if row["kernel"] == "sift"]
    peer = [row for row in rows if row["kernel"] == "cv2_sift"]
    assert len(sift) == len(peer) >= 1
    assert sift[0]["size"] == "64x48"
    assert sift[0]["descriptors"] == 7 * 5
    assert sift[0]["ratio_to_opencv"] == pytest.approx(peer[0]["ms"] / sift[0]["ms"])
    assert {row["kernel"] for row in rows} >= {"sift", "cv2_sift", "hog"}


def test_the_table_has_a_line_for_each_row(capsys):
    row = {"size": "64x48", "threads": 1, "kernel": "hog", "ms": 1.0, "descriptors": 35, "ratio_to_opencv": None}
    bench_features.print_table([row, row | {"ratio_to_opencv": 2.5}])
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].split() == ["64x48", "1", "hog", "1.00", "35", "2.5"]
