"""Copies every whole record of a damaged log into a new one, and says what was lost.

Called by `stillwatch recover`. It must not change what it reads, nor trust what it wrote before reading it again.
"""

import os
import pathlib
from dataclasses import dataclass, field

import msgpack

from stillwatch.transport.disk.durable import sync_folder
from stillwatch.transport.disk.record_format import FILE_MAGIC, KIND_GAP, Damage, encode_header, log_files, read_file
from stillwatch.transport.wire import LogError


@dataclass
class Salvage:
    """What a recovery found.

    Attributes
    ----------
    records, bytes : int
        Whole records copied, and the size of what was written.
    by_kind : dict
        Records copied, by their kind.
    damage : list of Damage
        Every stretch that could not be read.
    missing : list of (file, first sequence, last sequence)
        Numbers of records that are gone.
    """

    records: int = 0
    bytes: int = 0
    by_kind: dict[int, int] = field(default_factory=dict)
    damage: list[Damage] = field(default_factory=list)
    missing: list[tuple[str, int, int]] = field(default_factory=list)

    @property
    def lost_records(self) -> int:
        return sum(last - first + 1 for _, first, last in self.missing)


def salvage(source: pathlib.Path, target: pathlib.Path) -> Salvage:
    """Copy the logs of a folder (or one log file) into the folder `target`, which must be new or empty of logs.

    A gap record stands wherever records are missing, so that a replay does not decode over the hole.

    Raises
    ------
    LogError
        Nothing to read, a target that already holds a log, a disk that refuses, or a result that does not verify.
    """
    files = [source] if source.is_file() else [path for _, path in log_files(source)]
    if not files:
        raise LogError(f"{source}: holds no record log; give what --out or --record named")
    if target.exists() and (not target.is_dir() or log_files(target)):
        raise LogError(f"{target}: already holds a log, or is no folder: give a new one")
    result = Salvage()
    try:
        target.mkdir(parents=True, exist_ok=True)
        expected: dict[str, int] = {}  # of each log: the number after the last record seen
        for path in files:
            name = path.name.rpartition("-")[0]
            expected[name] = _copy(path, target / path.name, result, expected.get(name))
        sync_folder(target)
    except OSError as error:
        raise LogError(f"{target}: not written: {error.strerror or error}; name another folder") from error
    if result.records == 0:
        raise LogError(f"{source}: not one whole record in {len(files)} file(s): nothing to save, try a copy of it")
    _verify([target / path.name for path in files], result)
    return result


def _copy(path: pathlib.Path, target: pathlib.Path, result: Salvage, expected: int | None) -> int:
    """Copy one file's whole records, with their numbers and times; return the number after the last."""
    damage: list[Damage] = []
    with open(target, "wb") as out:
        out.write(FILE_MAGIC)
        for record in read_file(path, damage):
            if expected is not None and record.sequence > expected:
                result.missing.append((path.name, expected, record.sequence - 1))
                n_bytes = damage[-1].end - damage[-1].offset if damage else 0
                lost = {
                    "lost_records": record.sequence - expected,
                    "lost_bytes": n_bytes,
                    "from_ns": record.t_ns,
                    "to_ns": record.t_ns,
                    "reason": "damaged",
                }
                body = msgpack.packb(lost)
                out.write(encode_header(KIND_GAP, record.sequence - 1, record.t_ns, body) + body)
            out.write(encode_header(record.kind, record.sequence, record.t_ns, record.body) + record.body)
            expected = record.sequence + 1
            result.records += 1
            result.by_kind[record.kind] = result.by_kind.get(record.kind, 0) + 1
        result.bytes += out.tell()
        out.flush()
        os.fsync(out.fileno())
    result.damage += damage
    return expected or 0


def _verify(files: list[pathlib.Path], result: Salvage) -> None:
    """Read the result again: a recovery that cannot be read is worse than none."""
    damage: list[Damage] = []
    gaps = sum(1 for path in files for record in read_file(path, damage) if record.kind == KIND_GAP)
    copied = sum(1 for path in files for _ in read_file(path, []))
    expected = result.records + len(result.missing)
    if damage or copied != expected:
        counts = f"{copied} records, not {expected}, {gaps} of them gaps"
        first = str(damage[0]) if damage else counts
        raise LogError(f"the recovered log does not verify, try another disk: {first}")
