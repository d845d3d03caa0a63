"""What a run has counted so far, in one record with one set of names.

Made by agent/pipeline/pipeline.py; read by the summary, the heartbeat, the progress line, the answer to `status` and
the recording's end. It must hold no more than all of these tell.
"""

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class RunCounts:
    """Frames, events and alerts of one run; the field names are those of summary.json and of the messages.

    Attributes
    ----------
    frames, accepted : int
        Frames that reached the gate, and those that it let through.
    refused : dict of str to int
        Frames that it did not, by reason.
    dropped : int
        Frames lost before the gate.
    events, alerts : int
    """

    frames: int = 0
    accepted: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    dropped: int = 0
    events: int = 0
    alerts: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Return the counts by name, for JSON and for the fields of a message."""
        return asdict(self)
