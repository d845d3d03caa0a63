"""Positions in an MCAP file: what is known is there, as numbers and on the map; what is not is left out."""

import json
import math

import pytest

from stillwatch.base import NO_NAV, Nav
from stillwatch.tools.checks.corpus import clip, encode
from stillwatch.tools.cli import main
from stillwatch.tools.recordings import mcap_formats as f


def test_only_what_is_known_of_a_position_is_written():
    nav = Nav(latitude=54.5, longitude=10.25, depth_m=30.0, altitude_m=math.nan, heading_deg=math.nan)
    known = f.nav_fields(nav)
    assert known == {"latitude": 54.5, "longitude": 10.25, "depth_m": 30.0}
    fix = json.loads(f.location(known, "auv1", 1_500_000_000))
    assert fix["timestamp"] == {"sec": 1, "nsec": 500_000_000}
    assert (fix["latitude"], fix["longitude"], fix["altitude"]) == (54.5, 10.25, -30.0)
    assert f.location({"depth_m": 3.0}, "auv1", 0) is None
    assert f.nav_fields(NO_NAV) == {}


def test_an_export_holds_the_positions_of_its_frames(tmp_path, capsys):
    pytest.importorskip("mcap")
    video = encode(tmp_path / "a.mp4", clip(10))
    (tmp_path / "nav.csv").write_text("t_s,latitude,longitude,depth_m\n0,54,10,1\n5,54.1,10.1,2\n")
    recorded = ["record", str(video), str(tmp_path / "rec"), "--set", f"source.nav_csv={tmp_path}/nav.csv"]
    assert main([*recorded, "--set", "publish.endpoint=", "--set", "source.width=160"]) == 0
    assert main(["export", str(tmp_path / "rec"), str(tmp_path / "x.mcap")]) == 0
    told = capsys.readouterr().out
    assert "on /nav" in told
    assert "on /location" in told
