"""Salvages a damaged recording, run folder or log file, and says what was lost.

The `recover` command. transport/disk/record_salvage.py does the work; the original is never changed.
"""

import argparse
import pathlib
import shutil

from stillwatch.base import SnapshotError
from stillwatch.restart import checkpoint
from stillwatch.tools.shared import existing, print_json
from stillwatch.transport.disk import KIND_NAMES, Salvage, salvage

SMALL_FILES = ("config.toml", "run.json", "summary.json")
SHOWN = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", type=existing, metavar="IN", help="damaged recording, run folder or log file")
    parser.add_argument("target", metavar="OUT", help="new folder for what could be saved")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")


def main(args: argparse.Namespace) -> int:
    source, target = pathlib.Path(args.source), pathlib.Path(args.target)
    result = salvage(source, target)
    checkpoints = _copy_beside(source, target) if source.is_dir() else []
    if args.json:
        print_json(_as_json(result, checkpoints))
    else:
        _tell(result, checkpoints, target)
    return 0


def _copy_beside(source: pathlib.Path, target: pathlib.Path) -> list[str]:
    """Copy the small files and the checkpoints that are whole; return the names of those that are not."""
    for name in SMALL_FILES:
        if (source / name).is_file():
            shutil.copyfile(source / name, target / name)
    bad = []
    for path in sorted((source / "checkpoints").glob(f"*{checkpoint.SUFFIX}")):
        try:
            checkpoint.read(path)
        except SnapshotError:
            bad.append(path.name)
            continue
        (target / "checkpoints").mkdir(exist_ok=True)
        shutil.copyfile(path, target / "checkpoints" / path.name)
    return bad


def _as_json(result: Salvage, checkpoints: list[str]) -> dict:
    return {
        "records": result.records,
        "lost_records": result.lost_records,
        "bytes": result.bytes,
        "by_kind": {KIND_NAMES.get(kind, str(kind)): n for kind, n in sorted(result.by_kind.items())},
        "damage": [
            {
                "file": d.file.name,
                "offset": d.offset,
                "end": d.end,
                "reason": d.reason,
                "sequence": d.sequence,
                "kind": KIND_NAMES.get(d.kind) if d.kind else None,
            }
            for d in result.damage
        ],
        "missing": [{"file": name, "first": first, "last": last} for name, first, last in result.missing],
        "damaged_checkpoints": checkpoints,
    }


def _tell(result: Salvage, checkpoints: list[str], target: pathlib.Path) -> None:
    kinds = ", ".join(f"{n} {KIND_NAMES.get(kind, kind)}" for kind, n in sorted(result.by_kind.items()))
    print(f"saved {result.records} records to {target}: {kinds}")
    if not result.damage and not checkpoints:
        print("nothing was lost")
        return
    print(f"lost {result.lost_records} records whose numbers are missing, in {len(result.damage)} damaged place(s):")
    for item in result.damage[:SHOWN]:
        print(f"  {item}")
    if len(result.damage) > SHOWN:
        print(f"  and {len(result.damage) - SHOWN} more; --json lists all")
    for name in checkpoints:
        print(f"  {name}: the checkpoint is damaged and was left out")
