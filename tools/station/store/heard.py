"""What ingest hands to the store: one alert as one plane told it, a picture, a gap, a notice.

Made by tools/station/ingest, taken by tools/station/store/taking.py. Texts are bounded, times are placed already.
"""

from dataclasses import dataclass, field
from typing import Any

LIVE, THIN, FOLDER = "live", "thin", "folder"
PLANES = (LIVE, THIN, FOLDER)
MOST_BOXES = 32  # of one alert
MOST_EXEMPLARS = 200  # of one agent
MOST_KINDS = 64  # of visits, of one agent; it remembers 48 itself
EVENT_NUMBERS = 65_536  # all that a thin link says of an event's number


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture that was decoded and encoded again by the station. Boxes are of this very frame, shares."""

    data: bytes
    mime: str
    width: int
    height: int
    frame: int
    at_ns: int
    boxes: list[list[float]]


@dataclass(frozen=True, slots=True)
class AlertHeard:
    """One phase of an alert.

    Attributes
    ----------
    uid : str
        run:epoch:event of the live plane, or empty: a thin link told, which knows the event's number alone.
    key : str
        What makes it the same message again: its sequence, or its delivery number.
    at_ns, received_ns : int
        When it was told, as placed; when it came.
    own_ns, own_start_ns : int
        When it was told and when it began by the agent's own clock; 0: not known.
    fields : dict
        ALERTS' columns that it says; what it does not say is left out.
    """

    agent: str
    plane: str
    uid: str
    key: str
    event: int
    phase: str
    severity: float
    at_ns: int
    start_ns: int
    own_ns: int
    own_start_ns: int
    received_ns: int
    clock_is_wrong: bool = False
    fields: dict[str, Any] = field(default_factory=dict)
    picture: Picture | None = None


@dataclass(frozen=True, slots=True)
class AlertTaken:
    """What became of it: the alert's id, whether it is a new one, whether anything of it is new, what calls nobody."""

    id: int
    agent: str
    phase: str
    is_new: bool
    is_changed: bool
    is_muted: bool
