"""Commands that compute for minutes print JSON of the published form too: each is run in as little as it takes."""

import json

import pytest
from data_location import data_dir
from printed import LONG_CALLS, of_schema

from stillwatch.tools.cli import main

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]


@pytest.fixture
def places(tmp_path):
    """A short clip with an event, and the file that says so."""
    from stillwatch.tools.bench.pipeline import write_clip

    write_clip(tmp_path / "road.mp4", 160, 120)
    truth = {"tolerance_frames": 2, "files": {"road.mp4": {"events": [{"start": 95, "end": 139}]}}}
    (tmp_path / "events.json").write_text(json.dumps(truth))
    return {"CLIP": str(tmp_path / "road.mp4"), "EVENTS": str(tmp_path / "events.json")}


@pytest.mark.parametrize("command", LONG_CALLS)
def test_a_long_command_prints_one_object_of_its_schema(command, places, capsys):
    data_dir()
    assert main([*command.split(), *(places.get(word, word) for word in LONG_CALLS[command]), "--json"]) == 0
    of_schema(command, capsys.readouterr().out)
