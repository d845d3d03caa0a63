"""A folder has one writer: the lock names its holder, and ends with the process whatever ends it."""

import fcntl
import os
import subprocess
import sys

import pytest

from stillwatch.transport.disk import FolderInUse, FolderLock


def test_a_second_holder_is_refused_and_told_who_holds_it(tmp_path):
    FolderLock(tmp_path, "agent cam1 on rtsp://***@cam/x")
    with pytest.raises(FolderInUse, match=rf"in use by process {os.getpid()}, agent cam1 on rtsp://\*\*\*@cam/x"):
        FolderLock(tmp_path, "agent cam2")


def test_a_released_folder_can_be_held_again(tmp_path):
    lock = FolderLock(tmp_path, "a")
    lock.release()
    lock.release()
    FolderLock(tmp_path, "b").release()


def test_a_killed_holder_holds_nothing(tmp_path):
    code = (
        "import os, sys; from stillwatch.transport.disk import FolderLock\n"
        "lock = FolderLock(sys.argv[1], 'one that dies'); os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", code, tmp_path], check=False).returncode == -9
    FolderLock(tmp_path, "the next").release()


@pytest.mark.parametrize("said", [b"", b"{}", b"[1]", b"\xff\xfe", b'{"pid": "x", "holder": 1}'])
def test_a_lock_file_that_says_nothing_still_holds(tmp_path, said):
    lock = FolderLock(tmp_path, "a")
    lock.path.write_bytes(said)
    with pytest.raises(FolderInUse, match="in use by another process"):
        FolderLock(tmp_path, "b")


def test_a_withdrawn_lock_leaves_no_file_where_there_was_none(tmp_path):
    FolderLock(tmp_path, "a").withdraw()
    assert list(tmp_path.iterdir()) == []
    FolderLock(tmp_path, "b").release()
    FolderLock(tmp_path, "c").withdraw()
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


def test_a_file_that_is_withdrawn_while_it_is_taken_holds_nobody_out(tmp_path, monkeypatch):
    lock, flock = FolderLock(tmp_path, "a"), fcntl.flock

    def late(fd, how):
        lock.withdraw()  # between our open and our lock
        flock(fd, how)

    monkeypatch.setattr("fcntl.flock", late)
    FolderLock(tmp_path, "b")
    with pytest.raises(FolderInUse):
        FolderLock(tmp_path, "c")
