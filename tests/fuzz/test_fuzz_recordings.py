"""Random bytes for everything that reads recordings: no crash, no hang, no memory bomb, only our own errors."""

import numpy as np
import pytest
from recordings import make_video, record, storage_config

from stillwatch.base.errors import SnapshotError, SourceError
from stillwatch.restart import checkpoint
from stillwatch.settings.config import SourceConfig
from stillwatch.sources.recording import RecordingSource
from stillwatch.transport.disk import recording as r
from stillwatch.transport.disk.record_format import FILE_MAGIC, Record, encode_header, log_files, read_file
from stillwatch.transport.disk.record_salvage import salvage
from stillwatch.transport.wire.errors import DecodeError, LogError


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    record(str(make_video(folder / "v.mkv", frames=20)), folder / "rec", storage_config())
    return log_files(folder / "rec")[0][1]


@pytest.mark.parametrize("seed", range(30))
def test_random_bytes_are_damage_not_records(tmp_path, seed):
    rng = np.random.default_rng(seed)
    path = tmp_path / "log-000000000000.swlog"
    path.write_bytes((FILE_MAGIC if seed % 2 else b"") + rng.bytes(int(rng.integers(0, 20_000))))
    damage = []
    assert list(read_file(path, damage)) == []
    assert damage or path.stat().st_size in (0, len(FILE_MAGIC))


@pytest.mark.parametrize("seed", range(30))
def test_a_recording_hit_in_many_places_gives_what_is_whole(tmp_path, whole, seed):
    rng = np.random.default_rng(seed)
    data = bytearray(whole.read_bytes())
    for at in rng.integers(0, len(data), int(rng.integers(1, 40))):
        data[at] = int(rng.integers(256))
    cut = int(rng.integers(len(data) // 2, len(data) + 1))
    (tmp_path / whole.name).write_bytes(data[:cut])
    source = RecordingSource(str(tmp_path), SourceConfig())
    try:
        source.open()
        while source.read() is not None:
            pass
    except SourceError:
        pass  # the session itself was hit
    source.close()
    try:
        result = salvage(tmp_path, tmp_path / "out")
    except LogError:
        return
    assert result.records >= 1


@pytest.mark.parametrize("kind", sorted(r.BODIES))
def test_random_bodies_are_refused_or_read(tmp_path, kind):
    rng = np.random.default_rng(kind)
    for n in [*range(12), 60, 300]:
        try:
            r.decode_body(Record(kind, 0, 0, rng.bytes(n), tmp_path, 0))
        except DecodeError:
            continue


def test_a_header_that_claims_much_takes_no_memory(tmp_path):
    path = tmp_path / "log-000000000000.swlog"
    header = encode_header(20, 0, 0, bytes(32 * 1024 * 1024))
    path.write_bytes(FILE_MAGIC + header + b"short")
    damage = []
    assert list(read_file(path, damage)) == []
    assert [d.reason for d in damage] == ["torn end"]


@pytest.mark.parametrize("seed", range(20))
def test_random_checkpoints_are_refused(tmp_path, seed):
    rng = np.random.default_rng(seed)
    path = tmp_path / "checkpoint-00000001.swck"
    path.write_bytes((checkpoint.MAGIC if seed % 2 else b"") + rng.bytes(int(rng.integers(0, 5000))))
    with pytest.raises(SnapshotError):
        checkpoint.read(path)
    assert checkpoint.load_newest(tmp_path) is None
