"""Checkpoints: whole or not there, checked, kept in numbers, refused in words."""

import errno
import os

import numpy as np
import pytest

from stillwatch.base.errors import SnapshotError
from stillwatch.restart import checkpoint

META = {"next_sequence": 12, "config_hash": "ab", "source": "cam.mp4"}


def _state(seed=0):
    rng = np.random.default_rng(seed)
    return {
        "learner.means": rng.normal(size=(5, 3)).astype(np.float32),
        "learner.count": np.int64(7),
        "empty": np.empty((0, 4)),
        "flags": rng.random(9) < 0.5,
        "names": np.array(["dark", "frozen"]),
        "nan": np.array([np.nan, -0.0, np.inf]),
        "fortran": np.asfortranarray(rng.normal(size=(4, 6))),
        "bytes": np.frombuffer(b"\x00\xff", np.uint8),
    }


def _same(a, b):
    return a.keys() == b.keys() and all(
        np.asarray(a[k]).dtype == b[k].dtype
        and np.shape(a[k]) == b[k].shape
        and np.ascontiguousarray(a[k]).tobytes() == np.ascontiguousarray(b[k]).tobytes()
        for k in a
    )


def test_a_state_comes_back_bit_for_bit_and_writable(tmp_path):
    path = checkpoint.save(tmp_path, _state(), META)
    state, meta, found = checkpoint.load_newest(tmp_path)
    assert _same(_state(), state)
    assert meta == META
    assert found == path
    assert all(array.flags.writeable for array in state.values())


def test_no_folder_and_an_empty_folder_hold_no_checkpoint(tmp_path):
    assert checkpoint.load_newest(tmp_path) is None
    assert checkpoint.load_newest(tmp_path / "absent") is None


def test_the_last_few_are_kept_and_the_newest_is_loaded(tmp_path):
    for i in range(6):
        checkpoint.save(tmp_path, {"i": np.int64(i)}, {"i": i}, keep=3)
    assert [checkpoint.read_header(p)["meta"]["i"] for p in checkpoint.files(tmp_path)] == [3, 4, 5]
    assert checkpoint.load_newest(tmp_path)[1] == {"i": 5}


@pytest.mark.parametrize("n", [5, 40, 333])
def test_older_ones_are_thinned_evenly_where_a_spread_is_kept(tmp_path, n):
    for i in range(1, n + 1):
        checkpoint.save(tmp_path, {}, {"i": i}, keep=3, spread=8)
    kept = [checkpoint.read_header(p)["meta"]["i"] for p in checkpoint.files(tmp_path)]
    assert kept[-3:] == [n - 2, n - 1, n]
    older = kept[:-3]
    assert len(older) <= 8
    assert len(older) >= min(n - 3, 4)
    assert len({b - a for a, b in zip(older, older[1:], strict=False)}) <= 1


def test_every_flipped_byte_is_noticed(tmp_path):
    data = checkpoint.encode({"a": np.arange(3, dtype=np.int16)}, {"k": 1})
    for at in range(len(data)):
        flipped = bytearray(data)
        flipped[at] ^= 1 << (at % 8)
        with pytest.raises(SnapshotError):
            checkpoint.decode(bytes(flipped), "x")


def test_every_truncation_is_noticed():
    data = checkpoint.encode({"a": np.arange(3)}, {})
    for length in range(len(data)):
        with pytest.raises(SnapshotError):
            checkpoint.decode(data[:length], "x")


def test_a_damaged_one_is_set_aside_and_the_one_before_is_used(tmp_path):
    checkpoint.save(tmp_path, {"i": np.int64(1)}, {"i": 1})
    newest = checkpoint.save(tmp_path, {"i": np.int64(2)}, {"i": 2})
    newest.write_bytes(newest.read_bytes()[:-1] + b"?")
    damaged = []
    state, meta, _ = checkpoint.load_newest(tmp_path, damaged)
    assert (int(state["i"]), meta) == (1, {"i": 1})
    assert len(damaged) == 1
    assert newest.name in damaged[0]
    assert not newest.exists()
    assert newest.with_name(f"{newest.name}.damaged").exists()


def test_a_number_is_not_used_again_after_damage(tmp_path):
    first = checkpoint.save(tmp_path, {}, {})
    first.write_bytes(b"")
    assert checkpoint.load_newest(tmp_path) is None
    assert checkpoint.save(tmp_path, {}, {}).name > first.name


def test_damaged_ones_do_not_pile_up(tmp_path):
    for _ in range(8):
        checkpoint.save(tmp_path, {}, {}).write_bytes(b"bad")
        checkpoint.load_newest(tmp_path)
    assert len(list(tmp_path.glob("*.damaged"))) == 3


def test_an_object_array_is_refused_and_nothing_is_written(tmp_path):
    with pytest.raises(SnapshotError, match="dtype object"):
        checkpoint.save(tmp_path, {"o": np.array([{}])}, {})
    with pytest.raises(SnapshotError, match="meta"):
        checkpoint.save(tmp_path, {}, {"x": np.int64(3)})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("failing", ["write", "fsync", "replace"])
def test_a_disk_that_refuses_leaves_the_earlier_ones_and_no_litter(tmp_path, monkeypatch, failing):
    checkpoint.save(tmp_path, {"i": np.int64(1)}, {"i": 1})

    def fail(*args, **kwargs):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, failing, fail)
        with pytest.raises(SnapshotError, match="not saved: No space left"):
            checkpoint.save(tmp_path, {"i": np.int64(2)}, {"i": 2})
    assert checkpoint.load_newest(tmp_path)[1] == {"i": 1}
    assert not list(tmp_path.glob("*.tmp"))


def test_the_order_is_write_fsync_rename_fsync_of_the_folder(tmp_path, monkeypatch):
    calls = []
    for name in ("write", "fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *a, _n=name, _r=real: (calls.append(_n), _r(*a))[1])
    checkpoint.save(tmp_path, {"a": np.zeros(3)}, {})
    assert calls == ["write", "fsync", "replace", "fsync"]


def test_a_newer_state_version_is_refused_and_not_set_aside(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "STATE_VERSION", checkpoint.STATE_VERSION + 1)
        path = checkpoint.save(tmp_path, {}, {})
    with pytest.raises(SnapshotError, match=r"newer than \d+: update stillwatch"):
        checkpoint.load_newest(tmp_path)
    assert path.exists()


def test_an_older_state_version_is_migrated_where_there_is_a_way(tmp_path, monkeypatch):
    checkpoint.save(tmp_path, {"old": np.float64(2.0)}, {})
    now = checkpoint.STATE_VERSION
    monkeypatch.setattr(checkpoint, "STATE_VERSION", now + 1)
    with pytest.raises(
        SnapshotError, match=rf"state version {now}, this stillwatch reads {now + 1}: .* start with --fresh"
    ):
        checkpoint.load_newest(tmp_path)
    monkeypatch.setitem(checkpoint.MIGRATIONS, now, lambda state, meta: ({"new": state["old"] * 2}, meta))
    assert float(checkpoint.load_newest(tmp_path)[0]["new"]) == 4.0


def test_a_container_of_another_format_is_refused_by_its_number():
    data = bytearray(checkpoint.encode({}, {})[:-32])
    data[len(checkpoint.MAGIC) - 1] = 9
    whole = bytes(data) + __import__("hashlib").sha256(data).digest()
    with pytest.raises(checkpoint.VersionError, match="format 9 is not 1"):
        checkpoint.decode(whole, "x")


def test_the_header_can_be_read_alone(tmp_path):
    path = checkpoint.save(tmp_path, {"big": np.zeros(100_000)}, META)
    header = checkpoint.read_header(path)
    assert header["meta"] == META
    assert header["arrays"] == [{"name": "big", "dtype": "<f8", "shape": [100_000], "offset": 0}]


@pytest.mark.parametrize("content", [b"", b"SWCKPT\x00\x01", b"x" * 100, bytes(1000)])
def test_rubbish_is_no_checkpoint(tmp_path, content):
    path = tmp_path / "checkpoint-00000001.swck"
    path.write_bytes(content)
    with pytest.raises(SnapshotError):
        checkpoint.read(path)
    with pytest.raises(SnapshotError):
        checkpoint.read_header(path)
