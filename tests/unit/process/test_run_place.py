"""A run folder is writable, nobody else's and of the same camera, or the run ends before it begins."""

import errno
import json
import os

import pytest

from stillwatch.base import ConfigError, ExitCode
from stillwatch.process.run_place import check_same_camera, take_folder


def test_a_folder_that_another_agent_holds_is_refused_with_its_name(tmp_path):
    held = take_folder(tmp_path / "run", "--out", "agent cam1 on v4l2:/dev/video0", needed=True)
    with pytest.raises(ConfigError, match="agent cam1 on v4l2:/dev/video0") as refused:
        take_folder(tmp_path / "run", "--out", "agent cam2", needed=True)
    assert refused.value.exit_code == ExitCode.CONFIG
    held.release()
    take_folder(tmp_path / "run", "--out", "agent cam2", needed=True).release()


def test_a_place_where_no_folder_can_be_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    for path, why in (
        (tmp_path / "file", "is a file"),
        (tmp_path / "file" / "run", "cannot be written: Not a directory"),
        (tmp_path / ("x" * 300), "cannot be written: File name too long"),
    ):
        with pytest.raises(ConfigError, match=f"{why}; give another folder"):
            take_folder(path, "--out", "a", needed=True)


@pytest.mark.parametrize(
    ("code", "needed", "refused"),
    [
        (errno.EACCES, True, True),
        (errno.EACCES, False, True),
        (errno.EROFS, True, True),
        (errno.EROFS, False, False),  # a recording's disk may be mounted again
        (errno.ENOSPC, True, False),  # it may be freed: watching matters more
    ],
)
def test_only_what_waiting_may_mend_is_waited_for(tmp_path, monkeypatch, code, needed, refused):
    def fails(*_args, **_kwargs):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("stillwatch.transport.disk.ownership.FolderLock", fails)
    if refused:
        with pytest.raises(ConfigError, match=os.strerror(code)):
            take_folder(tmp_path, "--out", "a", needed=needed)
    else:
        assert take_folder(tmp_path, "--out", "a", needed=needed) is None


@pytest.mark.parametrize(("agent", "source", "word"), [("cam2", "a.mp4", "cam1"), ("cam1", "b.mp4", "a.mp4")])
def test_another_camera_in_the_same_folder_is_refused(tmp_path, agent, source, word):
    (tmp_path / "run.json").write_text(json.dumps({"role": "agent", "agent": "cam1", "source": "a.mp4"}))
    check_same_camera(tmp_path, "cam1", "a.mp4")
    with pytest.raises(ConfigError, match=word):
        check_same_camera(tmp_path, agent, source)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}"])
def test_a_folder_without_a_readable_run_is_anyones(tmp_path, text):
    (tmp_path / "run.json").write_text(text)
    check_same_camera(tmp_path, "cam1", "a.mp4")


def test_what_a_ground_station_received_is_no_place_for_a_run(tmp_path):
    (tmp_path / "run.json").write_text(json.dumps({"role": "ground", "agent": "cam1"}))
    with pytest.raises(ConfigError, match="what a ground station received"):
        check_same_camera(tmp_path, "cam1", "a.mp4")
