"""What is kept: record logs, run folders, recordings, retention.

Owns: the record's bytes, salvage, what a recording holds.
In: records. Out: files that survive power cuts.
Imports: transport.base, transport.wire.
"""

from stillwatch.transport.disk.durable import write_durably
from stillwatch.transport.disk.last_models import LastModels
from stillwatch.transport.disk.ownership import FolderInUse, FolderLock, hold_folder
from stillwatch.transport.disk.record_format import KIND_GAP, SUFFIX, Damage, Record, log_files, read_file
from stillwatch.transport.disk.record_log import RecordWriter, read_records
from stillwatch.transport.disk.record_salvage import Salvage, salvage
from stillwatch.transport.disk.recording import KIND_NAMES, Session
from stillwatch.transport.disk.retention import Retention
from stillwatch.transport.disk.run_folder import (
    KIND_CONFIG,
    KIND_MESSAGE,
    RECORDING_NAME,
    RUN_LOGS,
    Run,
    RunFolder,
    checkpoints_of,
    info_of,
    open_run,
    pack_message,
    unpack_message,
)

__all__ = [
    "Damage",
    "FolderInUse",
    "FolderLock",
    "KIND_CONFIG",
    "KIND_GAP",
    "KIND_MESSAGE",
    "KIND_NAMES",
    "LastModels",
    "RECORDING_NAME",
    "RUN_LOGS",
    "Record",
    "RecordWriter",
    "Retention",
    "Run",
    "RunFolder",
    "SUFFIX",
    "Salvage",
    "Session",
    "checkpoints_of",
    "hold_folder",
    "info_of",
    "log_files",
    "open_run",
    "pack_message",
    "read_file",
    "read_records",
    "salvage",
    "unpack_message",
    "write_durably",
]
