"""The record log: whole after every record, honest about damage, and stubborn about disks."""

import errno
import os

import numpy as np
import pytest

from stillwatch.base.clock import VirtualClock
from stillwatch.transport.disk.record_format import (
    FILE_MAGIC,
    HEADER_BYTES,
    KIND_GAP,
    SYNC,
    decode_header,
    encode_header,
    log_files,
    read_file,
)
from stillwatch.transport.disk.record_log import RecordWriter, read_records
from stillwatch.transport.wire.errors import LogError

KIND = 20


@pytest.fixture
def clock():
    return VirtualClock(mono_ns=10**9, wall_ns=1_700_000_000_000_000_000)


@pytest.fixture
def open_log(tmp_path, clock):
    """Make writers on one folder; all are closed at the end, synced only when asked."""
    writers = []

    def make(**options):
        writers.append(RecordWriter(tmp_path, "log", clock=clock, sync_every_s=3600.0, **options))
        return writers[-1]

    yield make
    for writer in writers:
        writer.close()


def _fill(writer, n, size=40, seed=0):
    rng = np.random.default_rng(seed)
    bodies = [rng.bytes(size + i % 7) for i in range(n)]
    for i, body in enumerate(bodies):
        assert writer.append(KIND, body, t_ns=i) == i
    return bodies


def test_records_come_back_as_they_were_written(tmp_path, open_log):
    bodies = _fill(open_log(), 50)
    records = list(read_records(tmp_path))
    assert [r.body for r in records] == bodies
    assert [r.sequence for r in records] == list(range(50))
    assert [r.t_ns for r in records] == list(range(50))
    assert {r.kind for r in records} == {KIND}


def test_a_record_without_a_time_gets_the_wall_clock(tmp_path, open_log, clock):
    open_log().append(KIND, b"x")
    assert next(read_records(tmp_path)).t_ns == clock.wall_ns()


def test_a_log_is_readable_while_it_is_written(tmp_path, open_log):
    writer = open_log()
    for i in range(5):
        writer.append(KIND, bytes([i]))
        assert len(list(read_records(tmp_path))) == i + 1


def test_reserved_kinds_and_giant_bodies_are_refused_before_anything_is_written(tmp_path, open_log):
    writer = open_log()
    with pytest.raises(LogError, match="kinds are 16 to 65535"):
        writer.append(3, b"")
    with pytest.raises(LogError, match="at most"):
        writer.append(KIND, bytes(64 * 1024 * 1024 + 1))
    assert list(read_records(tmp_path)) == []


def test_files_split_by_size_and_start_with_the_preamble(tmp_path, open_log):
    writer = open_log(max_file_bytes=1000, preamble=lambda: [(99, b"head")])
    for _ in range(30):
        writer.append(KIND, bytes(100))
    files = log_files(tmp_path)
    assert len(files) == 5  # 8 + 40 + 7 * 136 is at most 1000: seven records a file
    for first, path in files:
        assert path.stat().st_size <= 1000
        records = list(read_file(path, []))
        assert (records[0].kind, records[0].sequence, records[0].body) == (99, first, b"head")


def test_files_split_by_time(tmp_path, open_log, clock):
    writer = open_log(max_file_s=60.0)
    writer.append(KIND, b"a")
    clock.advance_ns(61 * 10**9)
    writer.append(KIND, b"b")
    assert [len(list(read_file(path, []))) for _, path in log_files(tmp_path)] == [1, 1]


def test_a_wall_clock_stepped_back_changes_no_split(tmp_path, open_log, clock):
    writer = open_log(max_file_s=60.0)
    writer.append(KIND, b"a")
    clock.step_wall_ns(-10 * 86_400 * 10**9)
    writer.append(KIND, b"b")
    assert len(log_files(tmp_path)) == 1


def test_a_new_writer_continues_the_sequence_in_the_same_file(tmp_path, open_log):
    _fill(open_log(), 7)
    assert open_log().append(KIND, b"next") == 7
    assert len(log_files(tmp_path)) == 1
    assert [r.sequence for r in read_records(tmp_path)] == list(range(8))


def test_reading_from_a_sequence_skips_whole_files(tmp_path, open_log):
    _fill(open_log(max_file_bytes=500), 30)
    first_file = log_files(tmp_path)[0][1]
    first_file.write_bytes(b"not even a log")  # never opened, so no damage is met
    damage = []
    assert [r.sequence for r in read_records(tmp_path, damage=damage, from_sequence=20)] == list(range(20, 30))
    assert damage == []


def test_a_log_cut_anywhere_in_its_last_two_records_keeps_all_before(tmp_path, open_log):
    writer = open_log()
    _fill(writer, 10)
    path = log_files(tmp_path)[0][1]
    data = path.read_bytes()
    starts = [r.offset for r in read_records(tmp_path)]
    for cut in range(starts[8], len(data)):
        path.write_bytes(data[:cut])
        damage = []
        whole = sum(end <= cut for end in [*starts[1:], len(data)])
        assert len(list(read_records(tmp_path, damage=damage))) == whole
        assert (damage == []) == (cut in starts)
        assert all(d.reason == "torn end" and d.offset == starts[whole] for d in damage)


def test_a_new_writer_cuts_off_a_torn_end_and_goes_on(tmp_path, open_log):
    _fill(open_log(), 10)
    path = log_files(tmp_path)[0][1]
    data = path.read_bytes()
    path.write_bytes(data[:-5])
    assert open_log().append(KIND, b"again") == 9
    damage = []
    assert [r.sequence for r in read_records(tmp_path, damage=damage)] == list(range(10))
    assert damage == []


def test_zeros_after_a_power_cut_are_a_torn_end(tmp_path, open_log):
    _fill(open_log(), 3)
    path = log_files(tmp_path)[0][1]
    path.write_bytes(path.read_bytes() + bytes(5000))
    damage = []
    assert len(list(read_records(tmp_path, damage=damage))) == 3
    assert [d.reason for d in damage] == ["torn end"]
    assert open_log().append(KIND, b"") == 3
    assert len(list(read_records(tmp_path))) == 4


@pytest.mark.parametrize("seed", range(4))
def test_any_flipped_byte_is_noticed_with_its_place_and_the_rest_is_read(tmp_path, open_log, seed):
    bodies = _fill(open_log(), 12, seed=seed)
    path = log_files(tmp_path)[0][1]
    data = path.read_bytes()
    starts = [r.offset for r in read_records(tmp_path)]
    rng = np.random.default_rng(seed)
    for at in range(seed, len(data), 4):  # the four seeds together try every byte
        flipped = bytearray(data)
        flipped[at] ^= 1 << int(rng.integers(8))
        path.write_bytes(flipped)
        damage = []
        found = [r.body for r in read_records(tmp_path, damage=damage)]
        assert damage
        assert damage[0].offset <= at < damage[0].end
        hit = [i for i, start in enumerate(starts) if start <= at]
        lost = hit[-1] if hit else None
        assert found == [body for i, body in enumerate(bodies) if i != lost]


def test_sync_words_inside_bodies_do_not_mislead_the_search(tmp_path, open_log):
    writer = open_log()
    trap = SYNC * 20 + encode_header(KIND, 5, 5, b"fake")[:-1] + b"\xff"
    for body in (b"a", trap, b"b"):
        writer.append(KIND, body)
    path = log_files(tmp_path)[0][1]
    data = bytearray(path.read_bytes())
    data[len(FILE_MAGIC) + 10] ^= 1  # the first header: the reader must search from there
    path.write_bytes(data)
    assert [r.body for r in read_records(tmp_path)] == [trap, b"b"]


def test_a_header_with_a_wrong_checksum_is_no_header():
    head = bytearray(encode_header(KIND, 1, 2, b"body"))
    assert decode_header(bytes(head)).length == 4
    for at in range(HEADER_BYTES):
        head[at] ^= 0x10
        assert decode_header(bytes(head)) is None
        head[at] ^= 0x10


def test_other_files_in_the_folder_are_left_alone(tmp_path, open_log):
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "log-x.swlog").write_text("not a number")
    _fill(open_log(), 3)
    assert len(list(read_records(tmp_path, name="log"))) == 3


def test_several_logs_in_a_folder_need_a_name(tmp_path, open_log, clock):
    open_log().append(KIND, b"a")
    other = RecordWriter(tmp_path, "other", clock=clock)
    other.append(KIND, b"b")
    other.close()
    with pytest.raises(LogError, match="several logs"):
        list(read_records(tmp_path))
    assert [r.body for r in read_records(tmp_path, name="other")] == [b"b"]


def test_an_empty_folder_holds_no_log(tmp_path):
    with pytest.raises(LogError, match="holds no record log"):
        list(read_records(tmp_path))


class _FailingDisk:
    """os.writev that refuses, or takes only part of a record, while told to."""

    def __init__(self, monkeypatch):
        self.error = None
        self.part = None
        self._write = os.writev
        monkeypatch.setattr(os, "writev", self)

    def __call__(self, fd, parts):
        if self.error is not None:
            raise OSError(self.error, os.strerror(self.error))
        if self.part is not None:
            return self._write(fd, [b"".join(parts)[: self.part]])
        return self._write(fd, parts)


@pytest.mark.parametrize(
    ("error", "state"),
    [(errno.ENOSPC, "disk_full"), (errno.EDQUOT, "disk_full"), (errno.EROFS, "read_only"), (errno.EIO, "failed"),
     (errno.ENODEV, "gone")],
)  # fmt: skip
def test_a_failing_disk_is_a_state_said_once_and_left_by_itself(tmp_path, open_log, clock, monkeypatch, error, state):
    said = []
    writer = open_log(on_state=lambda *args: said.append(args))
    writer.append(KIND, b"before")
    disk = _FailingDisk(monkeypatch)
    disk.error = error
    for _ in range(100):
        assert writer.append(KIND, b"lost") == -1
        clock.advance_ns(10**8)
    assert writer.state == state
    assert (writer.lost_records, writer.lost_bytes) == (100, 400)
    assert [s for s, _ in said] == [state]
    disk.error = None
    clock.advance_ns(3 * 10**9)
    assert writer.append(KIND, b"after") >= 0
    assert [s for s, _ in said] == [state, "ok"]
    assert [r.body for r in read_records(tmp_path) if r.kind == KIND] == [b"before", b"after"]
    assert sum(r.kind == KIND_GAP for r in read_records(tmp_path)) == 1


def test_a_record_of_which_only_part_was_taken_is_cut_off_again(tmp_path, open_log, monkeypatch):
    writer = open_log()
    _fill(writer, 3)
    disk = _FailingDisk(monkeypatch)
    disk.part = 20
    assert writer.append(KIND, b"does not fit") == -1
    damage = []
    assert len(list(read_records(tmp_path, damage=damage))) == 3
    assert damage == []


def test_an_unwritable_folder_at_start_is_a_state_too(tmp_path, clock):
    (tmp_path / "file").write_text("in the way")
    writer = RecordWriter(tmp_path / "file" / "log", clock=clock)
    assert writer.state == "gone"
    assert writer.append(KIND, b"x") == -1
    writer.close()


def test_a_folder_deleted_under_the_writer_is_noticed_and_made_again(tmp_path, clock):
    folder = tmp_path / "deep" / "log"
    writer = RecordWriter(folder, clock=clock)
    writer.append(KIND, b"a")
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    clock.advance_ns(2 * 10**9)
    assert writer.append(KIND, b"b") == -1
    clock.advance_ns(3 * 10**9)
    assert writer.append(KIND, b"c") >= 0
    writer.close()
    assert [r.body for r in read_records(folder) if r.kind == KIND] == [b"c"]


def test_sequences_never_repeat_after_damage_to_the_last_record(tmp_path, open_log):
    _fill(open_log(), 5)
    path = log_files(tmp_path)[0][1]
    data = bytearray(path.read_bytes())
    data[-1] ^= 1  # the last body: its header still tells the number
    path.write_bytes(data)
    assert open_log().append(KIND, b"x") == 5


def test_what_comes_after_the_end_is_not_written(tmp_path, open_log):
    writer = open_log()
    writer.append(KIND, b"x")
    writer.close()
    assert writer.append(KIND, b"late") == -1
    assert len(list(read_records(tmp_path))) == 1


def test_flush_tells_whether_the_disk_has_it(open_log):
    writer = open_log()
    writer.append(KIND, b"x")
    assert writer.flush()


def test_every_append_is_synced_where_asked(tmp_path, clock, monkeypatch):
    calls = []
    monkeypatch.setattr(os, "fdatasync", lambda fd: calls.append(fd))
    writer = RecordWriter(tmp_path, clock=clock, sync_every_s=0.0)
    writer.append(KIND, b"x")
    assert len(calls) == 1
    writer.close()


def test_the_sync_thread_ends_with_the_writer(tmp_path, clock):
    import threading

    before = set(threading.enumerate())
    writer = RecordWriter(tmp_path, clock=clock, sync_every_s=0.01)
    writer.append(KIND, b"x")
    writer.close()
    assert not [t for t in threading.enumerate() if t.name == "record-sync" and t not in before]
