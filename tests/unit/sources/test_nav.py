"""Positions: interpolated between rows, unknown outside them and over gaps, and every bad line named."""

import math

import pytest

from stillwatch.base.errors import ConfigError
from stillwatch.sources.nav import NavTrack

S = 1_000_000_000


def track(tmp_path, text, **options):
    (tmp_path / "nav.csv").write_text(text)
    return NavTrack(str(tmp_path / "nav.csv"), **{"live": False, **options})


def test_values_between_rows_are_interpolated(tmp_path):
    nav = track(tmp_path, "t_s,latitude,depth_m\n0,10,100\n2,11,110\n").at(S // 2, 0)
    assert nav.latitude == pytest.approx(10.25)
    assert nav.depth_m == pytest.approx(102.5)
    assert math.isnan(nav.longitude)


def test_heading_and_longitude_take_the_shorter_way_round(tmp_path):
    nav = track(tmp_path, "t_s,longitude,heading_deg\n0,179,350\n2,-179,20\n").at(S, 0)
    assert abs(nav.longitude) == pytest.approx(180.0)
    assert nav.heading_deg == pytest.approx(5.0)


@pytest.mark.parametrize("t_s", [-1, 3, 10])
def test_outside_the_rows_and_in_gaps_nothing_is_known(tmp_path, t_s):
    nav = track(tmp_path, "t_s,depth_m\n0,1\n2,2\n60,3\n").at(t_s * S, 0)
    assert math.isnan(nav.depth_m)


def test_rows_too_far_apart_to_go_between_are_told_once(tmp_path, caplog):
    track(tmp_path, "t_s,depth_m\n0,1\n30,2\n35,3\n95,4\n")
    assert len(caplog.messages) == 1
    assert "2 of 4 rows come more than 10 s after the one before (the longest 60 s)" in caplog.messages[0]


def test_an_empty_cell_is_unknown(tmp_path):
    nav = track(tmp_path, "t_s,depth_m,latitude\n0,,5\n1,2,6\n").at(S // 2, 0)
    assert math.isnan(nav.depth_m)
    assert nav.latitude == pytest.approx(5.5)


def test_iso_times_of_a_file_count_from_its_start(tmp_path):
    text = "time,depth_m\n2026-01-01T00:00:00Z,0\n2026-01-01T00:00:10Z,10\n"
    assert track(tmp_path, text).at(S, 0).depth_m == pytest.approx(1.0)
    assert track(tmp_path, text, start="2026-01-01T00:00:04").at(S, 0).depth_m == pytest.approx(5.0)


def test_iso_times_of_a_live_source_are_wall_times(tmp_path):
    text = "time,depth_m\n1970-01-01T00:00:10Z,0\n1970-01-01T00:00:20Z,10\n"
    assert track(tmp_path, text, live=True).at(0, 13 * S).depth_m == pytest.approx(3.0)


@pytest.mark.parametrize(("text", "message"), [
    ("", ":1: needs t_s or time"), ("t_s,colour\n0,1\n", ":1: needs"), ("t_s,depth_m\n", "holds no row"),
    ("t_s,depth_m\n0,1\n0,2\n", ":3: t_s does not increase"), ("t_s,depth_m\nx,1\n", ":2: t_s 'x' is not a number"),
    ("t_s,latitude\n0,91\n", ":2: latitude 91 is outside"), ("t_s,latitude\n0,nan\n", "latitude nan is outside"),
    ("time,depth_m\nyesterday,1\n", "is not ISO 8601"),
])  # fmt: skip
def test_faults_are_named_with_their_line(tmp_path, text, message):
    with pytest.raises(ConfigError, match=message):
        track(tmp_path, text)


def test_all_faults_are_listed_at_once(tmp_path):
    with pytest.raises(ConfigError) as caught:
        track(tmp_path, "t_s,latitude\n0,91\n1,x\n2,3\n")
    assert len(caught.value.problems) == 2


def test_a_missing_file_is_a_config_error(tmp_path):
    with pytest.raises(ConfigError, match="No such file"):
        NavTrack(str(tmp_path / "none.csv"), live=False)
