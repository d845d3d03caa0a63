"""The frame as every stage sees it, and the position of the vehicle that took it.

Made by agent/sources/capture.py, read by all later stages. Holds no behaviour: stages keep what they need in their
own buffers and never write into a frame.
"""

import enum
from dataclasses import dataclass, field

import numpy as np

NAN = float("nan")


class FrameFlag(enum.IntFlag):
    """What is known to be wrong with a frame before anyone looked at its pixels."""

    NONE = 0
    DAMAGED = 1  # the decoder reported corruption in this frame or its packet
    TIME_SYNTHETIC = 2  # the source gave no usable time stamp: made from the configured or measured rate
    TIME_REPAIRED = 4  # the source's stamp was equal or went back: moved to keep stream time increasing


@dataclass(frozen=True, slots=True)
class Nav:
    """Where the camera was; NaN where unknown. Degrees, metres, metres above ground, degrees from north."""

    latitude: float = NAN
    longitude: float = NAN
    depth_m: float = NAN
    altitude_m: float = NAN
    heading_deg: float = NAN


NO_NAV = Nav()


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame at the working size.

    Attributes
    ----------
    grey : ndarray of shape (height, width), uint8, C order, read only
    colour : ndarray of shape (height, width, 3), uint8 BGR, C order, read only
    source_ns : int or None
        The source's own time stamp, unrepaired; None where it has none.
    t_ns : int
        Stream time: arrival for live sources, repaired source stamp for files. The only time that gate,
        novelty, events, learners and schedules may read.
    mono_ns, wall_ns : int
        Monotonic and UTC time of arrival. Records only.
    sequence : int
        Number of this frame in its source, from 0, counting those that were dropped before reaching us.
    epoch : int
        Stream epoch: rises when size or format changes, or time steps back by over a second.
    flags : FrameFlag
    nav : Nav
    decoded : int
        Its number among the frames of the source's decoders, for recordings of packets; else -1.
    """

    grey: np.ndarray
    colour: np.ndarray
    source_ns: int | None
    t_ns: int
    mono_ns: int
    wall_ns: int
    sequence: int
    epoch: int = 0
    flags: FrameFlag = FrameFlag.NONE
    nav: Nav = field(default=NO_NAV)
    decoded: int = -1
