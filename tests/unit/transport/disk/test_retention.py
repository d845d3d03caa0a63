"""Retention: oldest first, never the file being written, no index, no surprise from clocks."""

import os
import pathlib

import pytest

from stillwatch.base.clock import VirtualClock
from stillwatch.transport.disk import retention
from stillwatch.transport.disk.record_log import RecordWriter, read_records
from stillwatch.transport.disk.retention import Retention

DAY_NS = 86_400 * 10**9


@pytest.fixture
def clock():
    return VirtualClock(wall_ns=1_700_000_000 * 10**9)


def _files(folder, n, size=1000, age_days=()):
    made = []
    for i in range(n):
        path = folder / f"log-{i:012d}.swlog"
        path.write_bytes(bytes(size))
        modified = 1_700_000_000 - (age_days[i] if age_days else 0) * 86_400
        os.utime(path, (modified, modified))
        made.append(path)
    return made


def _left(folder):
    return sorted(int(path.name[4:16]) for path in folder.glob("*.swlog"))


def test_the_oldest_go_until_the_bytes_fit(tmp_path, clock):
    files = _files(tmp_path, 6)
    room = Retention(tmp_path, clock=clock, max_bytes=3500)
    assert room.make_room(files[-1])
    assert _left(tmp_path) == [3, 4, 5]


def test_files_past_their_age_go(tmp_path, clock):
    _files(tmp_path, 4, age_days=(40, 31, 29, 0))
    assert Retention(tmp_path, clock=clock, max_bytes=10**9, max_age_s=30 * 86_400).make_room(None)
    assert _left(tmp_path) == [2, 3]


@pytest.mark.parametrize("step_days", [-10, 10, 400])
def test_a_wall_clock_stepped_while_running_deletes_nothing(tmp_path, clock, step_days):
    _files(tmp_path, 4, age_days=(29, 20, 10, 0))
    room = Retention(tmp_path, clock=clock, max_bytes=10**9, max_age_s=30 * 86_400)
    clock.step_wall_ns(step_days * DAY_NS)
    assert room.make_room(None)
    assert _left(tmp_path) == [0, 1, 2, 3]


def test_time_that_really_passes_ages_files(tmp_path, clock):
    _files(tmp_path, 2, age_days=(29, 0))
    room = Retention(tmp_path, clock=clock, max_bytes=10**9, max_age_s=30 * 86_400)
    clock.advance_ns(2 * DAY_NS)
    room.make_room(None)
    assert _left(tmp_path) == [1]


def test_the_file_being_written_stays_and_the_answer_is_no_room(tmp_path, clock):
    files = _files(tmp_path, 1, size=5000)
    assert not Retention(tmp_path, clock=clock, max_bytes=1000).make_room(files[0])
    assert _left(tmp_path) == [0]


def test_too_little_free_space_takes_old_files_then_says_no_until_there_is_clearly_enough(tmp_path, clock, monkeypatch):
    files = _files(tmp_path, 4)
    free = [900]
    monkeypatch.setattr(retention, "free_bytes", lambda folder: free[0] + 1000 * (4 - len(_left(folder))))
    room = Retention(tmp_path, clock=clock, max_bytes=10**9, min_free_bytes=2500)
    assert room.make_room(files[-1])
    assert _left(tmp_path) == [2, 3]
    free[0] = -2000
    assert not room.make_room(files[-1])
    assert _left(tmp_path) == [3]
    free[0] = -400  # 2600 free: over the minimum, but not by a tenth
    assert not room.make_room(files[-1])
    free[0] = 0
    assert room.make_room(files[-1])


def test_foreign_files_are_neither_counted_nor_touched(tmp_path, clock):
    _files(tmp_path, 2)
    (tmp_path / "movie.mp4").write_bytes(bytes(100_000))
    (tmp_path / "log-old.swlog").write_bytes(bytes(100_000))
    assert Retention(tmp_path, clock=clock, max_bytes=2500).make_room(None)
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "log-000000000000.swlog",
        "log-000000000001.swlog",
        "log-old.swlog",
        "movie.mp4",
    ]


def test_a_file_that_cannot_be_deleted_is_passed_over(tmp_path, clock, monkeypatch):
    files = _files(tmp_path, 4)
    delete = pathlib.Path.unlink

    def unlink(path, *args, **kwargs):
        if path == files[0]:
            raise PermissionError(1, "not permitted")
        delete(path, *args, **kwargs)

    monkeypatch.setattr(pathlib.Path, "unlink", unlink)
    assert Retention(tmp_path, clock=clock, max_bytes=2500).make_room(files[-1])
    assert _left(tmp_path) == [0, 3]


def test_a_bounded_log_keeps_its_newest_records(tmp_path, clock):
    room = Retention(tmp_path, clock=clock, max_bytes=5000, name="log")
    writer = RecordWriter(tmp_path, "log", clock=clock, max_file_bytes=1000, room=room)
    for i in range(200):
        assert writer.append(20, bytes(100), t_ns=i) == i
    writer.close()
    records = list(read_records(tmp_path))
    assert records[-1].sequence == 199
    assert [r.sequence for r in records] == list(range(records[0].sequence, 200))
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 5000 + 1000
