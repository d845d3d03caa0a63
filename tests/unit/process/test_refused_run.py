"""A run that is refused leaves nothing open: its folder is anybody's again, and no thread goes on."""

import threading

import pytest

from stillwatch.base import AgentError, RealClock
from stillwatch.process import RunOptions, run_agent
from stillwatch.settings import Config
from stillwatch.settings.config import SourceConfig
from stillwatch.transport.disk import FolderLock


def test_a_run_that_its_navigation_refuses_lets_go_of_its_folder(tmp_path):
    table = tmp_path / "head.csv"
    table.write_text("north,east\n1,2\n")
    config = Config(source=SourceConfig(uri="synthetic:room?n_frames=3", nav_csv=str(table)))
    before = set(threading.enumerate())
    with pytest.raises(AgentError, match=r"head\.csv"):
        run_agent(config, RunOptions(tmp_path / "run"), RealClock())
    assert set(threading.enumerate()) <= before
    FolderLock(tmp_path / "run", "another agent").release()
