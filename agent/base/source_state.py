"""The states a source can be in, as status messages show them, and how capture's and the gate's views combine.

Read by agent/sources/capture.py, agent/gate/gate.py, the pipeline and the status message. Holds no state and no clock.
"""

import enum


class SourceState(enum.StrEnum):
    """What the camera does now. The first four and `ended` are capture's view, the others the gate's."""

    CONNECTING = "connecting"  # opening, or waiting for the first frame
    LIVE = "live"
    STALLED = "stalled"  # open, but no frame for source.stall_timeout_s; being reopened
    FAILED = "failed"  # several attempts to open failed in a row; a live source is still being retried
    FROZEN = "frozen"
    DARK = "dark"
    OVEREXPOSED = "overexposed"
    OBSTRUCTED = "obstructed"
    ENDED = "ended"


def combine(capture_state: SourceState, gate_state: SourceState) -> SourceState:
    """Return the state to publish: what the pictures look like, unless there are none."""
    return gate_state if capture_state is SourceState.LIVE else capture_state
