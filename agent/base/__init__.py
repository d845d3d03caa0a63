"""What every wing stands on: errors, clocks, frames, kinds of camera, saved state, secrets, versions.

Owns: the error tree, the one clock, the frame, the two camera rules, the form of saved state and its hash.
In, out: values.
Imports: nothing of ours.
"""

from stillwatch.base.camera import FIXED, MOVING, UNDECIDED, CameraRule, Context
from stillwatch.base.clock import Clock, Laps, RealClock, VirtualClock
from stillwatch.base.environment import cpu_features, versions
from stillwatch.base.errors import (
    AgentError,
    ConfigError,
    ExitCode,
    MissingSourceError,
    NotFittedError,
    SnapshotError,
    SourceError,
    UsageError,
)
from stillwatch.base.frame import NO_NAV, Frame, FrameFlag, Nav
from stillwatch.base.secrets import hide_command_line, redact_uri, register_uri, scrub, scrub_handlers
from stillwatch.base.source_state import SourceState, combine
from stillwatch.base.state import (
    Array,
    Commit,
    Composed,
    Recorded,
    RecordPart,
    Restorable,
    Stage,
    State,
    StateDigest,
    check_arrays,
    check_room,
    prepare_parts,
    prepare_record,
    record_bytes,
    record_state,
    saved,
    saved_array,
    split_off,
    state_hash,
    state_of_parts,
    with_prefix,
    without_prefix,
)
from stillwatch.base.text import AS_SHOWN, absent, shown
from stillwatch.base.version import __version__

__all__ = [
    "AS_SHOWN",
    "Array",
    "CameraRule",
    "Commit",
    "Composed",
    "Recorded",
    "RecordPart",
    "Context",
    "FIXED",
    "Laps",
    "MOVING",
    "UNDECIDED",
    "Restorable",
    "Stage",
    "check_arrays",
    "check_room",
    "prepare_parts",
    "prepare_record",
    "record_bytes",
    "record_state",
    "saved",
    "saved_array",
    "split_off",
    "state_of_parts",
    "cpu_features",
    "versions",
    "AgentError",
    "Clock",
    "ConfigError",
    "ExitCode",
    "MissingSourceError",
    "Frame",
    "FrameFlag",
    "NO_NAV",
    "Nav",
    "NotFittedError",
    "RealClock",
    "SnapshotError",
    "SourceError",
    "SourceState",
    "State",
    "StateDigest",
    "UsageError",
    "VirtualClock",
    "__version__",
    "combine",
    "hide_command_line",
    "redact_uri",
    "register_uri",
    "scrub",
    "scrub_handlers",
    "absent",
    "shown",
    "state_hash",
    "with_prefix",
    "without_prefix",
]
