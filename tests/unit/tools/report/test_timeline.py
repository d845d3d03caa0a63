"""What stands above a report's curve: numbers that can be read, on a telephone as well."""

import re

import numpy as np
import pytest
from run_folders import RunMaker

from stillwatch.tools.report.data import read_report
from stillwatch.tools.report.page import render
from stillwatch.transport.wire import messages as m

S = 10**9
WIDE = 7.0  # per cent of the curve: a number on a telephone


def flags(path, *starts_s):
    """Return (row, per cent, number) of what is above the first curve of a run of 100 s with such events."""
    maker = RunMaker(path)
    maker.folder.write_config("", "", agent="cam1", run="r", live=False)
    maker.send(m.Score, 0, value=1.0, rarity=2.0)
    begun_ns = maker.t_ns
    for i, at in sorted(enumerate(starts_s), key=lambda event: event[1]):
        maker.t_ns = begun_ns + int(at * S)
        told = {"alert_kind": "novel", "phase": "end", "rarity": 1e6 - i, "start_frame": 9, "duration_s": 0.1}
        maker.send(m.Alert, 9, id=i, start_t_ns=maker.t_ns, boxes=np.zeros((0, 4), np.float32), **told)
    maker.t_ns = begun_ns + 100 * S
    maker.send(m.Score, 1000, value=1.0, rarity=2.0)
    maker.folder.close()
    curve = render(read_report(maker.folder.path)).split("<div class='cursor'>")[0]
    found = re.findall(r"<a class='flag ?(\w*)' href='#event-\d+' style='left:([\d.]+)%' [^>]*>(\d*)</a>", curve)
    return [(row, float(at), number) for row, at, number in found]


def test_numbers_that_are_far_from_each_other_stand_in_one_row(tmp_path):
    assert [row for row, _, _ in flags(tmp_path, 10, 30, 50, 70)] == [""] * 4


def test_of_two_that_would_touch_the_second_stands_above(tmp_path):
    assert [(row, number) for row, _, number in flags(tmp_path, 40, 44)] == [("", "0"), ("above", "1")]


def test_where_both_rows_are_full_there_is_a_dot(tmp_path):
    assert [(row, number) for row, _, number in flags(tmp_path, 40, 44, 42)] == [("", "0"), ("above", "1"), ("dot", "")]


@pytest.mark.parametrize("seed", range(5))
def test_no_number_hides_another(seed, tmp_path):
    found = flags(tmp_path, *np.random.default_rng(seed).uniform(2, 95, 30))
    for kind in ("", "above"):
        places = sorted(at for row, at, _ in found if row == kind)
        assert len(places) > 3
        assert np.diff(places).min() >= WIDE - 0.02
    assert all(number for row, _, number in found if row != "dot")
