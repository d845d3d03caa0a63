"""Shows what is in a checkpoint, a recording, a run folder, an outbox or one log file, and whether all of it is whole.

The `inspect` command. It only reads.
"""

import argparse
import dataclasses
import datetime
import json
import pathlib
from collections import Counter
from typing import Any

import msgspec
import numpy as np

from stillwatch.base import SnapshotError, UsageError
from stillwatch.novelty import saved_kinds
from stillwatch.restart import checkpoint
from stillwatch.tools.shared import existing, print_json, words
from stillwatch.transport.disk import KIND_MESSAGE, SUFFIX, Damage, Record, log_files, read_file, unpack_message
from stillwatch.transport.disk import recording as r
from stillwatch.transport.thin import count_outbox
from stillwatch.transport.wire import Clumps, DecodeError, decode

SHOWN = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "path", type=existing, metavar="FILE", help="checkpoint, recording, run folder, outbox or log file"
    )
    parser.add_argument("--list", action="store_true", help="also list every record")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")


def main(args: argparse.Namespace) -> int:
    path = pathlib.Path(args.path)
    agents = outboxes_below(path)
    if agents:
        report = inspect_outboxes(path, agents)
        tell: Any = _tell_outboxes
    elif outbox_files(path):
        report = inspect_outbox(path)
        tell = _tell_outbox
    elif path.is_file() and not path.name.endswith(SUFFIX):
        report = inspect_checkpoint(path)
        tell = _tell_checkpoint
    else:
        report = inspect_log(path, listing=args.list and not args.json)
        tell = _tell_log
    if args.json:
        print_json(report)
    else:
        tell(report)
    return 0 if report["whole"] else 4


def outbox_files(path: pathlib.Path) -> list[pathlib.Path]:
    """Return the log files of a thin link's outbox: of a folder, or the one named."""
    files = [path] if path.is_file() else [file for _, file in log_files(path)]
    return [file for file in files if file.name.startswith("outbox-")]


def outboxes_below(path: pathlib.Path) -> list[pathlib.Path]:
    """Return the agents' outboxes of the folder that holds them, which has no log of its own; else none."""
    if path.is_file() or log_files(path):
        return []
    return sorted(folder for folder in path.iterdir() if folder.is_dir() and outbox_files(folder))


def inspect_outboxes(path: pathlib.Path, agents: list[pathlib.Path]) -> dict[str, Any]:
    """Return what each agent's outbox holds, and whether all are whole."""
    reports = [inspect_outbox(agent) for agent in agents]
    return {"path": str(path), "outboxes": reports, "whole": all(report["whole"] for report in reports)}


def inspect_outbox(path: pathlib.Path) -> dict[str, Any]:
    """Return what an outbox holds: alerts put, acknowledged and given up, those that wait, and damage."""
    damage: list[Damage] = []
    counts = count_outbox(outbox_files(path), damage)
    torn = [item for item in damage if item.reason == "torn end"]
    return {
        "path": str(path),
        **counts,
        "torn_ends": len(torn),
        "damage": [
            {"file": item.file.name, "offset": item.offset, "end": item.end, "reason": item.reason}
            for item in damage
            if item not in torn
        ],
        "whole": len(damage) == len(torn),
    }


def _tell_outboxes(report: dict[str, Any]) -> None:
    for outbox in report["outboxes"]:
        _tell_outbox(outbox)


def _tell_outbox(report: dict[str, Any]) -> None:
    waiting = words.count(report["waiting"], "message")
    print(
        f"{report['path']}: outbox of a thin link, {waiting} about alerts to be acknowledged; as far as its files go "
        f"back, put {report['put']}, acknowledged {report['acknowledged']}, given up {report['dropped']}"
    )
    for item in report["damage"]:
        print(f"DAMAGED: {item['file']} bytes {item['offset']} to {item['end']}: {item['reason']}")


def inspect_checkpoint(path: pathlib.Path) -> dict[str, Any]:
    """Return what a checkpoint holds; `whole` is false where its checksum fails, `error` says why."""
    header = checkpoint.read_header(path)
    report: dict[str, Any] = {
        "file": str(path),
        "bytes": path.stat().st_size,
        "format": checkpoint.MAGIC[-1],
        "state_version": header["state_version"],
        "meta": header["meta"],
        "whole": True,
        "error": "",
        "kinds": [],
        "arrays": [
            {
                "name": a["name"],
                "dtype": a["dtype"],
                "shape": a["shape"],
                "bytes": int(np.prod(a["shape"], dtype=np.int64)) * np.dtype(a["dtype"]).itemsize,
            }
            for a in header["arrays"]
        ],
    }
    try:
        report["kinds"] = [dataclasses.asdict(kind) for kind in saved_kinds(checkpoint.read(path)[0])]
    except SnapshotError as error:
        report["whole"], report["error"] = False, str(error)
    return report


def inspect_log(path: pathlib.Path, *, listing: bool = False) -> dict[str, Any]:
    """Return what the logs of a folder, or one log file, hold."""
    files = [path] if path.is_file() else [file for _, file in log_files(path)]
    if not files:
        found = checkpoint.files(path)
        raise UsageError(
            f"{path}: holds no record log; give what --out or --record named"
            + (f"; try its newest checkpoint: {found[-1]}" if found else "")
        )
    reader = _LogReader(listing)
    for file in files:
        for record in read_file(file, reader.damage):
            reader.take(record)
    return reader.report(path, files)


class _LogReader:
    """Counts records, and keeps what tells the story of a recording."""

    def __init__(self, listing: bool):
        self.damage: list[Damage] = []
        self._listing = listing
        self._counts: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()
        self._messages: Counter[str] = Counter()
        self._clumps: dict[str, tuple[Clumps, int]] = {}  # the newest of each mixture, and their bytes
        self._sessions: list[dict[str, Any]] = []
        self._streams: dict[tuple[int, int], dict[str, Any]] = {}
        self._frames: dict[str, Any] = {
            "count": 0,
            "images": 0,
            "first": None,
            "last": None,
            "t_first_ns": None,
            "t_last_ns": None,
        }
        self._refused: Counter[str] = Counter()
        self._dropped = 0
        self._activations = 0
        self._ends: list[dict[str, Any]] = []

    def take(self, record: Record) -> None:
        name = r.KIND_NAMES.get(record.kind, f"kind {record.kind}")
        self._counts[name] += 1
        self._bytes[name] += len(record.body)
        try:
            body = r.decode_body(record)
            if record.kind == KIND_MESSAGE:
                self._note_message(*unpack_message(record.body))
        except DecodeError as error:
            self.damage.append(Damage(record.file, record.offset, record.offset, str(error), record.sequence))
            return
        if self._listing:
            detail = "" if body is None else _short(body)
            place = f"{record.file.name}:{record.offset:<10} {record.sequence:>8}"
            print(f"{place} {name:<10} {len(record.body):>8} B {detail}")
        self._note(body)

    def _note_message(self, kind: str, payload: bytes) -> None:
        self._messages[kind] += 1
        if kind == "clumps":
            message = decode(payload)
            assert isinstance(message, Clumps)
            self._clumps[message.which] = message, len(payload)

    def _note(self, body: Any) -> None:
        match body:
            case r.Session():
                shown = {k: v for k, v in msgspec.to_builtins(body).items() if k != "config_text"}
                if not self._sessions or self._sessions[-1] != shown:
                    self._sessions.append(shown)
            case r.Stream():
                shown = {
                    "stream": body.stream,
                    "codec": body.codec,
                    "size": f"{body.width}x{body.height}",
                    "pixel_format": body.pixel_format,
                }
                self._streams[(len(self._sessions), body.stream)] = shown
            case r.FrameRecord():
                frames = self._frames
                frames["count"] += 1
                frames["images"] += bool(body.image)
                if frames["first"] is None:
                    frames["first"], frames["t_first_ns"] = body.sequence, body.t_ns
                frames["last"], frames["t_last_ns"] = body.sequence, body.t_ns
            case r.Decision():
                if not body.accepted:
                    self._refused[body.reason or "unnamed"] += 1
            case r.Drop():
                self._dropped += body.count
            case r.Activation():
                self._activations += 1
            case r.End():
                self._ends.append(
                    {"frames": body.frames, "accepted": body.accepted, "hash": body.hash, "reason": body.reason}
                )

    def report(self, path: pathlib.Path, files: list[pathlib.Path]) -> dict[str, Any]:
        return {
            "path": str(path),
            "files": len(files),
            "bytes": sum(file.stat().st_size for file in files),
            "records": dict(self._counts),
            "record_bytes": dict(self._bytes),
            "messages": dict(self._messages),
            "clumps": {which: _of_clumps(*found) for which, found in sorted(self._clumps.items())},
            "sessions": self._sessions,
            "streams": list(self._streams.values()),
            "frames": self._frames,
            "refused": dict(self._refused),
            "dropped": self._dropped,
            "activations": self._activations,
            "ends": self._ends,
            "whole": not self.damage,
            "damage": [
                {"file": d.file.name, "offset": d.offset, "end": d.end, "reason": d.reason, "sequence": d.sequence}
                for d in self.damage
            ],
        }


def _of_clumps(message: Clumps, n_bytes: int) -> dict[str, Any]:
    """Return what a mixture keeps of its data, and what of it was sent."""
    names = ("covariance", "model_epoch", "n_clumps", "n_singlets", "total", "memory", "clump_points", "epoch_size")
    told = {name: getattr(message, name) for name in names}
    sent = {"sent": len(message.counts), "sent_total": float(message.counts.sum()), "bytes": n_bytes}
    return {**told, **sent, "in_words": words.held(message)}


def _short(body: Any) -> str:
    """Return a record's fields in one line, without its bytes."""
    fields = {}
    for name, value in msgspec.structs.asdict(body).items():
        if isinstance(value, bytes):
            value = f"{len(value)} bytes"
        if name != "config_text":
            fields[name] = value
    return json.dumps(fields, default=str)[:160]


def _tell_checkpoint(report: dict[str, Any]) -> None:
    print(
        f"checkpoint {report['file']}: {report['bytes']} bytes, format {report['format']}, "
        f"state version {report['state_version']}"
    )
    print("whole: its checksum holds" if report["whole"] else f"DAMAGED: {report['error']}")
    for name, value in report["meta"].items():
        print(f"  {name:<16} {value}")
    for kind in report["kinds"]:
        first, last = (f"{kind[name] / 1e9:.1f} s" for name in ("first_ns", "last_ns"))
        print(f"  visits of kind {kind['id']}: {kind['count']}, the first until {first}, the last until {last}")
    width = max((len(a["name"]) for a in report["arrays"]), default=0)
    for a in report["arrays"]:
        shape = "x".join(map(str, a["shape"])) or "scalar"
        print(f"  {a['name']:<{width}}  {a['dtype']:<6} {shape:<16} {a['bytes']:>10} B")


def _tell_log(report: dict[str, Any]) -> None:
    print(f"{report['path']}: {report['files']} file(s), {report['bytes']} bytes")
    for name, count in sorted(report["records"].items(), key=lambda item: -report["record_bytes"][item[0]]):
        print(f"  {name:<12} {count:>9} records {report['record_bytes'][name]:>13} bytes")
    if report["messages"]:
        print("messages: " + ", ".join(f"{n} {kind}" for kind, n in sorted(report["messages"].items())))
    for which, clumps in report["clumps"].items():
        print(f"{which}, epoch {clumps['model_epoch']}: {clumps['in_words']}, in {clumps['bytes']} bytes")
    for session in report["sessions"]:
        when = datetime.datetime.fromtimestamp(session.get("wall_ns", 0) / 1e9, datetime.UTC)
        versions = ", ".join(f"{k} {v}" for k, v in session.get("versions", {}).items())
        print(
            f"session {session.get('run', '')} of {session.get('agent', '')} at {when:%Y-%m-%d %H:%M:%S} UTC, "
            f"{session.get('source_uri', '')}, config {session.get('config_hash', '')}"
        )
        print(f"  {versions}; CPU {' '.join(session.get('cpu', []))}")
    for stream in report["streams"]:
        print(f"stream {stream['stream']}: {stream['codec']} {stream['size']} {stream['pixel_format']}")
    frames = report["frames"]
    if frames["count"]:
        seconds = (frames["t_last_ns"] - frames["t_first_ns"]) / 1e9
        print(
            f"frames {frames['first']} to {frames['last']}: {frames['count']} taken over {seconds:.1f} s, "
            f"{report['dropped']} dropped, {frames['images']} stored as images, {report['activations']} activations"
        )
    if report["refused"]:
        print("refused: " + ", ".join(f"{n} {reason}" for reason, n in report["refused"].items()))
    for end in report["ends"]:
        print(f"end: {end['frames']} frames, {end['accepted']} accepted, hash {end['hash']} ({end['reason']})")
    places = f"DAMAGED in {len(report['damage'])} place(s):"
    print("whole: every record's checksum holds" if report["whole"] else places)
    for item in report["damage"][:SHOWN]:
        print(f"  {item['file']}: {item['reason']} at offset {item['offset']}, {item['end'] - item['offset']} bytes")
