"""The process that works on another core: `python -m stillwatch.describing.child SOCKET MEMORY SOCKET MEMORY`.

It describes frames, over the first two, and between two of them teaches learners, over the others.

Started by agent/describing/apart.py. It must not write, print or outlive the agent: it ends when the socket does, and
leaves the signals of the terminal to the agent.
"""

import gc
import select
import signal
import socket
import sys
from dataclasses import fields

import cv2
import numpy as np
import threadpoolctl

from stillwatch.base import Frame, FrameFlag, RealClock, prepare_parts, state_of_parts
from stillwatch.describing.describer import Describer
from stillwatch.describing.room import Place, Room, room_of
from stillwatch.describing.talk import LIT, Ask, Begin, Learnt, Ready, Setup, Teach, Told, hear_request, say
from stillwatch.epochs import Guests
from stillwatch.features import Lighting


def serve(connection: socket.socket, room: Room, lessons: socket.socket, school: Room) -> None:
    """Answer requests, those for frames in order, until the agent is gone; a lesson goes before frames that wait."""
    describer: Describer | None = None
    guests: Guests | None = None
    heard = [connection, lessons]
    while True:
        ready, _, _ = select.select(heard, [], [])
        if lessons in ready:
            if (request := hear_request(lessons)) is None:
                heard.remove(lessons)
            else:
                assert isinstance(request, Teach)
                assert guests is not None
                _teach(guests, lessons, school, request)
            continue
        if (request := hear_request(connection)) is None:
            return
        if isinstance(request, Setup):
            describer = Describer(request.config, RealClock())
            describer.load_kernels()
            guests = Guests(request.config, RealClock(), describer.widths())
            gc.freeze()  # what exists now lives as long as we do: no collection need look at it again
            say(connection, Ready())
            continue
        assert describer is not None
        if isinstance(request, Begin):
            room.look_again()
            describer.reshape(*request.shape)
            copies = {name: array.copy() for name, array in room.get(request.state).items()}
            prepare_parts(describer.stages(), copies, "described apart")()
        else:
            assert isinstance(request, Ask)
            say(connection, _told(describer, room, request))


def _teach(guests: Guests, lessons: socket.socket, school: Room, request: Teach) -> None:
    """Teach the groups of a request, and answer as soon as each has learnt: the agent takes it over meanwhile."""
    school.look_again()
    out = request.out
    for taught in guests.teach(request.groups, request.epoch, school.get(request.lesson)):
        n_bytes = room_of(taught.state)
        school.grow(out + n_bytes)
        say(lessons, Learnt(school.put(out, taught.state, n_bytes), taught.reports, taught.seconds))
        out += n_bytes


def _told(describer: Describer, room: Room, request: Ask) -> Told:
    """Describe the frame of a request, and leave its rows in its slot."""
    picture = room.get(request.picture)
    frame = Frame(
        picture["grey"], picture["colour"], request.source_ns, request.t_ns, request.mono_ns, request.wall_ns,
        request.sequence, request.epoch, FrameFlag(request.flags), request.nav, request.decoded,
    )  # fmt: skip
    described = describer.describe(frame)
    rows = described.rows
    state: list[Place] = []
    if request.state_out is not None:
        state = room.put(request.state_out, state_of_parts(describer.running()), request.state_room)
    if rows is None:
        return Told(described.verdict, describer.stage_seconds, state=state)
    arrays = {
        "patches": rows.patches,
        "plain": rows.plain,
        "valid": rows.valid,
        "centres": rows.centres,
        "colours": rows.colours,
        "frame": rows.frame,
        "words": rows.words,
        "word_valid": rows.word_valid,
        "jpeg": np.frombuffer(described.jpeg, np.uint8),
    }
    if rows.lighting is not None:
        arrays |= {LIT + field.name: getattr(rows.lighting, field.name) for field in fields(Lighting)}
    return Told(
        described.verdict,
        describer.stage_seconds,
        rows.rule,
        rows.grid_shape,
        rows.word_shape,
        rows.ready,
        rows.view,
        room.put(request.out, arrays, request.room),
        state,
    )


def main(arguments: list[str]) -> int:
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, signal.SIG_IGN)
    frames, room, learners, school = map(int, arguments)
    with (
        threadpoolctl.threadpool_limits(limits=1),
        socket.socket(fileno=frames) as connection,
        socket.socket(fileno=learners) as lessons,
    ):
        cv2.setNumThreads(1)
        try:
            serve(connection, Room(room), lessons, Room(school))
        except (BrokenPipeError, ConnectionResetError):
            pass  # the agent has ended while we answered
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
