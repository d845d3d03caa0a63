"""The run folder: every message a run published or a ground station received, with config, hashes and summary.

Written by agent/process/app.py and tools/ground.py in one layout, read by report, compare and tests. Writing must not
stop a run: a failing disk is a state.

Layout: messages-*.swlog (record log), config.toml, run.json {agent, run, config_hash, versions, ...},
summary.json at the end, checkpoints/ beside them.
"""

import json
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import msgpack

from stillwatch.transport.base import Clock
from stillwatch.transport.disk.durable import write_durably
from stillwatch.transport.disk.last_models import LastModels
from stillwatch.transport.disk.record_format import KIND_GAP, Damage, Record, log_files
from stillwatch.transport.disk.record_log import RecordWriter, read_records
from stillwatch.transport.disk.retention import Retention
from stillwatch.transport.wire import Clumps, DecodeError, LogError, Message, Model, Unfolder, decode, kind_of

LOG_NAME = "messages"
RECORDING_NAME = "recording"
RUN_LOGS = (LOG_NAME, RECORDING_NAME)  # what makes a folder a run's: either
KIND_MESSAGE = 16  # body: length of the topic kind (u8), the kind, the message's payload
KIND_CONFIG = 17  # body: msgpack {config_text, config_hash, **info}; first in every file


def pack_message(kind: str, payload: bytes) -> bytes:
    """Return the body of a message record."""
    name = kind.encode()
    return bytes((len(name),)) + name + payload


def unpack_message(body: bytes) -> tuple[str, bytes]:
    """Return (kind, payload) of a message record's body; DecodeError if it has no whole kind."""
    if not body or len(body) < 1 + body[0]:
        raise DecodeError(f"message record of {len(body)} bytes has no kind")
    return body[1 : 1 + body[0]].decode("utf-8", "replace"), body[1 + body[0] :]


def checkpoints_of(path: pathlib.Path) -> pathlib.Path:
    """Return where the checkpoints of the run in a folder go."""
    return path / "checkpoints"


def info_of(path: pathlib.Path) -> dict[str, Any]:
    """Return what identifies the run in a folder: agent, source, role; empty where nothing says it."""
    return _read_json(path / "run.json") or {}


class RunFolder:
    """Writes one run folder; one thread uses it.

    Parameters
    ----------
    path, clock
        The folder is made; an existing run folder is continued.
    max_bytes, min_free_bytes, max_age_s
        Limits of the message log; the oldest files go first (transport/disk/retention.py).
    on_state
        Called with (state, message) when writing stops or begins again: say it once.
    """

    def __init__(
        self,
        path: pathlib.Path | str,
        clock: Clock,
        *,
        max_bytes: int = 2_000_000_000,
        min_free_bytes: int = 0,
        max_age_s: float = 1e12,
        max_file_bytes: int = 16 * 1024 * 1024,
        on_state: Callable[[str, str], None] | None = None,
    ):
        self.path = pathlib.Path(path)
        self._config: dict[str, Any] = {}
        self._unwritten: dict[str, bytes] = {}
        self._models = LastModels()
        self._on_state = on_state
        self._retention = Retention(
            self.path,
            clock=clock,
            name=LOG_NAME,
            max_bytes=max_bytes,
            min_free_bytes=min_free_bytes,
            max_age_s=max_age_s,
        )
        self._writer = RecordWriter(
            self.path,
            LOG_NAME,
            clock=clock,
            max_file_bytes=min(max_file_bytes, max(max_bytes // 8, 65_536)),
            preamble=self._preamble,
            room=self._retention,
            on_state=self._changed,
        )

    @property
    def state(self) -> str:
        """Of the message log: "ok", "disk_full", "read_only", "gone" or "failed"."""
        return self._writer.state

    @property
    def lost_records(self) -> int:
        """Messages that the disk refused."""
        return self._writer.lost_records

    @property
    def checkpoints(self) -> pathlib.Path:
        """Where this run's checkpoints go."""
        return checkpoints_of(self.path)

    def write_config(self, text: str, config_hash: str, **info: Any) -> None:
        """Keep the config and what else identifies the run (agent, run, versions): JSON values only."""
        self._config = {"config_text": text, "config_hash": config_hash, **info}
        self._writer.append(KIND_CONFIG, msgpack.packb(self._config))
        self._replace("config.toml", text.encode())
        self._replace("run.json", _json({"config_hash": config_hash, **info}))

    def write(self, kind: str, payload: bytes) -> bool:
        """Append one encoded message; return False if the disk refuses it (counted in `lost_records`)."""
        written = self._writer.append(KIND_MESSAGE, pack_message(kind, payload)) >= 0
        if written:
            self._models.take(kind, payload)
        if written and self._unwritten:
            for name, data in list(self._unwritten.items()):
                self._replace(name, data)
        return written

    def finish(self, summary: dict[str, Any]) -> bool:
        """Write summary.json whole and close the log; return False if the disk refuses the summary."""
        written = self._replace("summary.json", _json(summary))
        self.close()
        return written

    def close(self) -> None:
        """Close the log without a summary."""
        self._writer.close()

    def _preamble(self) -> list[tuple[int, bytes]]:
        """Return what a file needs to be read without those before it."""
        head = [(KIND_CONFIG, msgpack.packb(self._config))] if self._config else []
        return [*head, *((KIND_MESSAGE, pack_message(*known)) for known in self._models.payloads())]

    def _replace(self, name: str, data: bytes) -> bool:
        """Replace a small file, or keep it for when the disk works again."""
        try:
            write_durably(self.path / name, data)
        except OSError:
            self._unwritten[name] = data
            return False
        self._unwritten.pop(name, None)
        return True

    def _changed(self, state: str, message: str) -> None:
        if self._on_state is not None:
            self._on_state(state, message)


class Run:
    """Reads a run folder, a ground station's folder or a recording.

    Attributes
    ----------
    path : Path
    config_text, config_hash : str
        Empty where the folder has none.
    info : dict
        What else identifies the run: agent, run, versions.
    summary : dict or None
        None where the run did not end properly or is still going on.
    damage : list of Damage
        Filled while `messages` is iterated.
    unreadable : int
        Message records that this version cannot decode, or that change a model which is not there; counted while
        iterating.
    payload_bytes : int
        Length of the message last yielded, as it was sent; of a batch, with its first.
    gaps : list of dict
        Outages of the disk: {lost_records, lost_bytes, from_ns, to_ns, reason}; filled while iterating.
    """

    def __init__(self, path: pathlib.Path | str):
        self.path = pathlib.Path(path)
        self.log_name = LOG_NAME if log_files(self.path, LOG_NAME) else RECORDING_NAME
        self.damage: list[Damage] = []
        self.unreadable = 0
        self.payload_bytes = 0
        self.gaps: list[dict[str, Any]] = []
        self.summary: dict[str, Any] | None = _read_json(self.path / "summary.json")
        self.info = info_of(self.path)
        self.config_hash = str(self.info.get("config_hash", ""))
        self.config_text = _read_text(self.path / "config.toml")
        if not self.config_text:
            self._find_config()

    def messages(self, kinds: set[str] | None = None) -> Iterator[tuple[str, Message]]:
        """Yield (kind, message) in the order written; each call starts at the beginning.

        Batches come as their scores, changes of a model as the whole: all that was written as the reader knows it.
        What a file repeats of the one before it, so as to be readable alone, comes once.
        """
        self.damage, self.unreadable, self.gaps = [], 0, []
        unfolder = Unfolder()
        newest: dict[tuple[str, int, str, str], int] = {}
        for record in self._records():
            if record.kind == KIND_GAP:
                self.gaps.append(msgpack.unpackb(record.body))
            if record.kind != KIND_MESSAGE:
                continue
            try:
                kind, payload = unpack_message(record.body)
                if kinds is not None and kind.replace("scores", "score") not in kinds:
                    continue
                message = decode(payload)
                if _is_repeated(message, newest):
                    continue
                found = unfolder.unfold(message)
            except DecodeError:
                self.unreadable += 1
                continue
            self.unreadable += not found
            self.payload_bytes = len(payload)
            for said in found:
                yield kind_of(said), said
                self.payload_bytes = 0

    def _records(self) -> Iterator[Record]:
        return read_records(self.path, name=self.log_name, damage=self.damage)

    def _find_config(self) -> None:
        """Take the config from the log's first config record, where the small files are missing."""
        for record in self._records():
            if record.kind == KIND_CONFIG:
                found = msgpack.unpackb(record.body)
                self.config_text = str(found.pop("config_text", ""))
                self.info = {**found, **self.info}
                self.config_hash = str(self.info.get("config_hash", ""))
                return
            if record.kind == KIND_MESSAGE:
                return  # it comes before any message, or not at all


def _is_repeated(message: Message, newest: dict[tuple[str, int, str, str], int]) -> bool:
    """Return whether a model or clumps were read before; `newest` holds their sequences and takes this one's."""
    if not isinstance(message, Model | Clumps):
        return False
    key = (message.run, message.epoch, kind_of(message), message.which)
    is_repeated = message.sequence <= newest.get(key, -1)
    newest[key] = max(message.sequence, newest.get(key, -1))
    return is_repeated


def open_run(path: pathlib.Path | str) -> Run:
    """Open a folder for reading.

    Raises
    ------
    LogError
        No such folder, or no message log in it.
    """
    path = pathlib.Path(path)
    if not path.is_dir():
        raise LogError(f"{path}: no such folder; give what --out named")
    if not any(log_files(path, name) for name in RUN_LOGS):
        raise LogError(f"{path}: holds no messages of a run, ground station or recording; give what --out named")
    return Run(path)


def _json(value: dict[str, Any]) -> bytes:
    return (json.dumps(value, indent=2, sort_keys=True) + "\n").encode()


def _read_json(path: pathlib.Path) -> dict[str, Any] | None:
    try:
        value = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def _read_text(path: pathlib.Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, ValueError):
        return ""
