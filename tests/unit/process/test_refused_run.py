"""A run that is refused leaves nothing open and nothing behind: no file, no folder, no thread, no holder."""

import json
import threading

import pytest

from stillwatch.base import AgentError, RealClock
from stillwatch.process import RunOptions, run_agent
from stillwatch.restart import checkpoint
from stillwatch.settings import Config
from stillwatch.settings.config import LinkConfig, SourceConfig
from stillwatch.transport.disk import FolderLock, checkpoints_of

ROOM = "synthetic:room?n_frames=3"


def everything_in(folder):
    return {str(path): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def refuse(config, options, match):
    """Run, and be refused; return the threads that go on."""
    before = set(threading.enumerate())
    with pytest.raises(AgentError, match=match):
        run_agent(config, options, RealClock())
    return set(threading.enumerate()) - before


@pytest.mark.parametrize(
    ("link", "match"),
    [
        ({"preset": "smoke"}, "smoke"),
        ({"preset": "lte", "endpoint": "udp://127.0.0.1:9", "key_file": "/nowhere/link.key"}, "link.key_file"),
    ],
)
def test_a_run_that_is_refused_for_its_link_leaves_nothing(tmp_path, link, match):
    config = Config(source=SourceConfig(uri=ROOM), link=LinkConfig(**link))
    options = RunOptions(tmp_path / "runs" / "a", record=tmp_path / "recording")
    assert refuse(config, options, match) == set()
    assert everything_in(tmp_path) == {}


def test_a_run_that_is_refused_for_its_navigation_leaves_nothing(tmp_path):
    table = tmp_path / "head.csv"
    table.write_text("north,east\n1,2\n")
    config = Config(source=SourceConfig(uri=ROOM, nav_csv=str(table)))
    assert refuse(config, RunOptions(tmp_path / "run"), r"head\.csv") == set()
    assert [path.name for path in tmp_path.iterdir()] == ["head.csv"]


def test_a_run_whose_recording_another_holds_leaves_no_run_folder(tmp_path):
    (tmp_path / "recording").mkdir()
    held = FolderLock(tmp_path / "recording", "agent cam2")
    before = everything_in(tmp_path)
    options = RunOptions(tmp_path / "run", record=tmp_path / "recording")
    assert refuse(Config(source=SourceConfig(uri=ROOM)), options, "agent cam2") == set()
    assert everything_in(tmp_path) == before
    held.release()


def test_a_run_of_another_camera_leaves_the_folder_as_it_was(tmp_path):
    (tmp_path / "run.json").write_text(json.dumps({"role": "agent", "agent": "cam1", "source": "b.mp4"}))
    before = everything_in(tmp_path)
    assert refuse(Config(source=SourceConfig(uri=ROOM)), RunOptions(tmp_path), r"b\.mp4") == set()
    assert everything_in(tmp_path) == before


def test_a_run_that_its_checkpoint_refuses_leaves_the_folder_as_it_was(tmp_path):
    checkpoint.save(checkpoints_of(tmp_path), {}, {"next_sequence": 4, "t_ns": 0, "finished": True})
    before = everything_in(tmp_path)
    assert refuse(Config(source=SourceConfig(uri=ROOM)), RunOptions(tmp_path), "--fresh") == set()
    assert everything_in(tmp_path) == before
