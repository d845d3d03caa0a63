"""Completing a config: what is missing comes where it belongs, what stands there stays."""

import importlib.resources
import tomllib

import msgspec
import pytest

from stillwatch.base.errors import UsageError
from stillwatch.settings.config import Config
from stillwatch.tools.cli import main
from stillwatch.tools.pages.configs import completed

DEMO = importlib.resources.files("stillwatch.configs").joinpath("demo.toml").read_text()


def test_a_complete_config_is_left_as_it_is():
    assert completed(DEMO) == DEMO


def test_a_missing_key_comes_after_the_one_before_it_with_its_default_and_comment():
    lines = DEMO.split("\n")
    (place,) = [n for n, line in enumerate(lines) if line.startswith("burst = ")]
    (other,) = [n for n, line in enumerate(lines) if line.startswith("raise_rarity = ")]
    without = "\n".join(line for n, line in enumerate(lines) if n not in (place, other))
    told = completed(without).split("\n")
    assert told[place] == "burst = 30"
    assert told[other] == "raise_rarity = 500.0  # one frame in N"


def test_values_and_comments_that_are_stated_stay():
    text = "# mine\n[events]\nburst = 3  # few\n\n[source]\nuri = 'clip.mp4'\n"
    told = completed(text)
    assert [line for line in text.split("\n") if line and line not in told] == []
    values = tomllib.loads(told)
    assert values["events"]["burst"] == 3
    assert values["source"]["uri"] == "clip.mp4"
    assert values["gate"] == msgspec.to_builtins(Config())["gate"]


def test_an_empty_config_becomes_the_whole_one():
    assert msgspec.convert(tomllib.loads(completed("")), Config) == Config()


def test_a_config_in_another_notation_is_refused():
    with pytest.raises(UsageError, match="one key a line"):
        completed("events = {burst = 3}\n")


@pytest.mark.parametrize("content", [b"[events\n", b"\xff\xfe"])
def test_a_file_that_is_no_config_is_a_usage_error(tmp_path, content, capsys):
    path = tmp_path / "camera.toml"
    path.write_bytes(content)
    assert main(["complete-config", str(path)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_the_command_prints_the_whole_config(tmp_path, capsys):
    path = tmp_path / "camera.toml"
    path.write_text("[agent]\nid = 'cam9'\n")
    assert main(["complete-config", str(path)]) == 0
    values = tomllib.loads(capsys.readouterr().out)
    assert values["agent"] == {"id": "cam9", "seed": 0}
    assert set(values) == set(Config.__struct_fields__)
