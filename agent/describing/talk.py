"""What the agent and the process that describes for it say to each other: small messages; arrays stand in a `Room`.

Used by both ends, agent/describing/apart.py and agent/describing/child.py, over a socket pair that keeps messages
whole.
"""

import errno
import socket
from typing import Any

import msgspec
import numpy as np

from stillwatch.base import CameraRule, Nav
from stillwatch.describing.room import Place
from stillwatch.gate import Verdict
from stillwatch.settings import Config

LIT = "lit_"  # before the names of a lighting's arrays, among those of the rows
MOST_BYTES = 65536  # of a message: far above what any of these is


class Setup(msgspec.Struct, tag="setup", frozen=True):
    """Make a describer of this config; answered by Ready."""

    config: Config


class Ready(msgspec.Struct, tag="ready", frozen=True):
    """It is made, kernels loaded."""


class Begin(msgspec.Struct, tag="begin", frozen=True):
    """Go on from this state, with frames of this shape."""

    shape: tuple[int, int]
    state: list[Place]


class Ask(msgspec.Struct, tag="ask", frozen=True):
    """Describe the frame that stands in a slot, and write its rows to `out`; answered by Told.

    `room`: bytes there. `state_out`: where the state behind it goes, in `state_room` bytes; None where nobody asks.
    """

    picture: list[Place]
    out: int
    room: int
    state_out: int | None
    state_room: int
    source_ns: int | None
    t_ns: int
    mono_ns: int
    wall_ns: int
    sequence: int
    epoch: int
    flags: int
    nav: Nav
    decoded: int


class Told(msgspec.Struct, tag="told", frozen=True):
    """What a frame was described as; no `rule` where the gate refused it. `seconds`: spent so far, by stage.

    `state`: of gate and camera behind the frame, where it was asked for.
    """

    verdict: Verdict
    seconds: dict[str, float]
    rule: CameraRule | None = None
    grid_shape: tuple[int, int] = (0, 0)
    word_shape: tuple[int, int] = (0, 0)
    ready: bool = False
    view: int = 0
    arrays: list[Place] = []
    state: list[Place] = []


class Teach(msgspec.Struct, tag="teach", frozen=True):
    """Teach groups of learners an epoch; each is answered by Learnt, in their order, with arrays from `out` on."""

    groups: list[list[str]]
    epoch: int
    lesson: list[Place]
    out: int


class Learnt(msgspec.Struct, tag="learnt", frozen=True):
    """What a group of learners became; see `Taught` of agent/epochs/away.py."""

    state: list[Place]
    reports: dict[str, dict[str, Any]]
    seconds: dict[str, float]


Request = Setup | Begin | Ask | Teach
Answer = Ready | Told | Learnt
_REQUESTS, _ANSWERS = msgspec.msgpack.Decoder(Request), msgspec.msgpack.Decoder(Answer)
_ENCODER = msgspec.msgpack.Encoder(enc_hook=np.generic.item)  # counts of NumPy in what learners report


def say(connection: socket.socket, message: Request | Answer) -> None:
    """Send one message whole; OSError where the other end is gone, or it is longer than anybody would hear."""
    data = _ENCODER.encode(message)
    if len(data) > MOST_BYTES:
        raise OSError(errno.EMSGSIZE, f"a message of {len(data)} bytes, {MOST_BYTES} are heard")
    connection.send(data)


def hear_request(connection: socket.socket) -> Request | None:
    """Return the next request; None once the agent is gone."""
    data = connection.recv(MOST_BYTES)
    return _REQUESTS.decode(data) if data else None


def hear_answer(connection: socket.socket) -> Answer | None:
    """Return the next answer; None once the process is gone. OSError where it takes too long."""
    data = connection.recv(MOST_BYTES)
    return _ANSWERS.decode(data) if data else None
