"""What a source is: frames at their native size, what is known about them, and who may listen to the packets.

Read by every source, by capture and by recorders. Holds no source itself.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from stillwatch.base import NO_NAV, FrameFlag, Nav, shown


@dataclass(slots=True)
class SourceInfo:
    """What is known about a source; filled further by `open`. Claims of the container are claims, never used.

    `uri` is fit for logs and messages: its password is gone, what is no UTF-8 escaped. `frames_claimed` is None unless
    it is believable.
    """

    uri: str
    kind: str  # file, images, folder, rtsp, http, v4l2, synthetic, recording
    codec: str = ""
    pixel_format: str = ""
    width: int = 0
    height: int = 0
    frames_claimed: int | None = None

    def __post_init__(self) -> None:
        self.uri = shown(self.uri)


@dataclass(frozen=True, slots=True)
class RecordedStamp:
    """All that a recording knows of a frame besides its pixels; capture passes it on unchanged."""

    t_ns: int
    mono_ns: int
    wall_ns: int
    sequence: int
    epoch: int
    nav: Nav = NO_NAV


@dataclass(slots=True)
class RawFrame:
    """One frame at its native size.

    Attributes
    ----------
    colour : ndarray of shape (height, width, 3), uint8 BGR
        May be a view of the source's memory, valid until its next `read`.
    source_ns : int or None
        The source's own stamp.
    flags : FrameFlag
    pixel_format : str
        Native format; a change of it, or of the size, starts a new stream epoch.
    recorded : RecordedStamp or None
        Only from recordings.
    decoded : int
        Its number among the frames of all decoders, where a recorder listens to their packets; else -1.
    """

    colour: np.ndarray
    source_ns: int | None
    flags: FrameFlag = FrameFlag.NONE
    pixel_format: str = ""
    recorded: RecordedStamp | None = None
    decoded: int = -1


class PacketTap(Protocol):
    """A recorder that listens to a decoder: sources that decode packets have an attribute `packet_tap` for one."""

    def stream(self, codec: Any, time_base: Any, stampless: bool) -> None:
        """A decoder with this codec context was opened."""

    def packet(self, packet: Any) -> None:
        """This packet goes into the decoder next."""

    def decoded(self, frame: Any) -> int:
        """A frame came out; returns its number, counted over all decoders."""


class NothingYet:
    """What a live source's `read` returns when it is well but has no new frame: capture asks again."""


NOTHING_YET = NothingYet()


class Source(Protocol):
    """A stream of frames. One thread opens, reads and closes it; errors are SourceError with one clear line.

    `read` returns None at the end; a source that ended before it should have raises SourceError(partial=True).
    `counters` names what was lost inside: damaged, undecodable, skipped.
    """

    live: bool
    info: SourceInfo

    def open(self) -> None: ...

    def read(self) -> RawFrame | NothingYet | None: ...

    def close(self) -> None: ...

    def counters(self) -> dict[str, int]: ...
