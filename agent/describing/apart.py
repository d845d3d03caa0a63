"""Frames described in a process of their own: the agent's end of it.

Made by agent/process/lookahead.py for files on several cores. Two threads of one interpreter hand its lock to each
other at every kernel, which costs what a second core gives; two processes do not.
"""

import socket
import subprocess
import sys
from collections import deque

import numpy as np

from stillwatch.base import Frame, State, state_of_parts
from stillwatch.describing.describer import Described, Describer
from stillwatch.describing.room import Room, room_of
from stillwatch.describing.talk import LIT, Ask, Begin, Learnt, Ready, Request, Setup, Told, hear_answer, say
from stillwatch.describing.tutor import ApartTutor
from stillwatch.features import Lighting, Rows
from stillwatch.settings import Config

ANSWER_WITHIN_S = 30.0  # a frame takes milliseconds: who takes so long is stopped, swapped out or dead
END_WITHIN_S = 2.0
SLACK = 4096  # bytes of a slot beside its arrays: what aligns them
STATE_EVERY = 8  # frames: the state behind every eighth comes back with it
SLOTS_MORE = 2  # than frames may wait: the one that is handed over, and the one whose rows are in use
SMALL_BYTES = 40  # a patch, at most, of what rows hold beside the patches: colours, centres, words, masks, light


class Lost(Exception):
    """The process has ended, or does not answer: its frames must be described by somebody else."""


class Apart:
    """Hands frames to a process beside this one, and takes them back described, in order.

    Every call but `close` raises Lost where the process has ended, or does not answer.

    Parameters
    ----------
    config : Config
    most : int
        Frames that may wait to be taken back when one more is handed over.

    Attributes
    ----------
    tutor : ApartTutor
        Teaches learners there, between two frames.
    """

    def __init__(self, config: Config, most: int):
        self._config, self._most = config, most
        self._room = Room()
        self._connection, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.tutor = ApartTutor()
        self.answer_within(ANSWER_WITHIN_S)
        with theirs, self.tutor.theirs:
            handles = theirs.fileno(), self._room.descriptor, self.tutor.theirs.fileno(), self.tutor.descriptor
            # -P: a file in the folder that we were started in must not stand for a module that it is called like.
            call = [sys.executable, "-P", "-m", "stillwatch.describing.child", *map(str, handles)]
            self._process = subprocess.Popen(call, pass_fds=handles, stdin=subprocess.DEVNULL)
        self._is_ready = False
        self._asked: deque[tuple[Frame, int, int | None]] = deque()  # with its slot, and where the state behind it goes
        self._n_asked = 0
        self._slots: deque[int] = deque()  # that are free, as offsets in the room
        self._states: deque[int] = deque()  # likewise: each is taken before another frame's is put there
        self._held: int | None = None  # the slot whose rows are in use
        self._picture_bytes = self._rows_bytes = self._state_bytes = 0
        try:
            self._say(Setup(config))
        except Lost:
            self.close()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    def answer_within(self, seconds: float) -> None:
        """Take it for lost where it answers later than that; ANSWER_WITHIN_S without this."""
        self._patience_s = seconds
        self._connection.settimeout(seconds)
        self.tutor.answer_within(seconds)

    def is_ready(self) -> bool:
        """Whether it can take frames by now; it takes a second to start."""
        if not self._is_ready:
            self._connection.setblocking(False)
            try:
                self._is_ready = isinstance(self._hear(), Ready)
            except BlockingIOError:
                pass
            finally:
                self._connection.settimeout(self._patience_s)
        return self._is_ready

    def begin(self, describer: Describer) -> None:
        """Let it go on where `describer` is, whose encoder is frozen, with frames of its shape; all are taken back."""
        state = state_of_parts(describer.stages())
        height, width = describer.shape
        self._picture_bytes = 4 * height * width + SLACK
        slot = slot_bytes(describer, self._config)
        self._rows_bytes, self._state_bytes = slot - self._picture_bytes, state_bytes(describer)
        slots = range(room_of(state), room_of(state) + (self._most + SLOTS_MORE) * slot, slot)
        states = range(slots.stop, slots.stop + states_at_once(self._most) * self._state_bytes, self._state_bytes)
        try:
            self._room.grow(states.stop)
        except OSError as error:
            raise Lost(f"no memory to share with it: {error}") from error
        self._slots, self._states = deque(slots), deque(states)
        self._held, self._n_asked = None, 0
        self._say(Begin(describer.shape, self._room.put(0, state, room_of(state))))

    def ask(self, frame: Frame) -> None:
        """Hand over the next frame, of the shape that was begun with."""
        slot = self._slots.popleft()
        picture = self._room.put(slot, {"grey": frame.grey, "colour": frame.colour}, self._picture_bytes)
        self._n_asked += 1
        state = self._states.popleft() if self._n_asked % STATE_EVERY == 0 else None
        self._asked.append((frame, slot, state))
        self._say(
            Ask(
                picture, slot + self._picture_bytes, self._rows_bytes, state, self._state_bytes, frame.source_ns,
                frame.t_ns, frame.mono_ns, frame.wall_ns, frame.sequence, frame.epoch, int(frame.flags), frame.nav,
                frame.decoded,
            )
        )  # fmt: skip

    def take(self) -> tuple[Described, State | None]:
        """Return the oldest frame handed over, described, and of every STATE_EVERY-th the state behind it.

        The rows are valid until the next call.
        """
        told = self._hear()
        assert isinstance(told, Told)
        frame, slot, state_at = self._asked.popleft()
        if self._held is not None:
            self._slots.append(self._held)
        self._held = slot
        state = {name: array.copy() for name, array in self._room.get(told.state).items()}
        if state_at is not None:
            self._states.append(state_at)
        return _described(frame, told, self._room.get(told.arrays)), state or None

    def close(self) -> None:
        """End the process, whatever it is doing."""
        self._connection.close()
        try:
            self._process.wait(END_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._room.close()
        self.tutor.close()

    def _say(self, request: Request) -> None:
        try:
            say(self._connection, request)
        except OSError as error:
            raise Lost(str(error)) from error

    def _hear(self) -> Ready | Told:
        try:
            answer = hear_answer(self._connection)
        except BlockingIOError:
            raise
        except TimeoutError as error:
            raise Lost(f"no answer within {self._patience_s:g} s") from error
        except OSError as error:
            raise Lost(str(error)) from error
        if answer is None:
            raise Lost("it ended")
        assert not isinstance(answer, Learnt)
        return answer


def slot_bytes(describer: Describer, config: Config) -> int:
    """Return what one frame takes of the shared memory at the largest frame: its picture, its rows, its thumbnail."""
    features = describer.features
    rows = describer.rows.memory_bytes()["rows"] + SMALL_BYTES * features.capacity_patches + 4 * features.n_frame_dims
    return 4 * config.source.height * config.source.width + rows + config.exemplars.thumbnail_bytes + 2 * SLACK


def states_at_once(most: int) -> int:
    """Return how many of the frames that wait, and of the one that is handed over, the state is asked behind."""
    return most // STATE_EVERY + 1


def state_bytes(describer: Describer) -> int:
    """Return what the state behind a frame takes of the shared memory at most: it grows as more of a view is known."""
    held = sum(sum(stage.memory_bytes().values()) for stage in describer.running().values())
    return room_of({"held": np.empty(held, np.uint8)}) + SLACK


def _described(frame: Frame, told: Told, arrays: dict[str, np.ndarray]) -> Described:
    """Return a frame as it was told, its rows in the room's memory."""
    if told.rule is None:
        return Described(frame, told.verdict)
    jpeg = arrays.pop("jpeg").tobytes()
    lit = {name.removeprefix(LIT): arrays.pop(name) for name in [*arrays] if name.startswith(LIT)}
    rows = Rows(
        **arrays, lighting=Lighting(**lit) if lit else None, grid_shape=told.grid_shape, word_shape=told.word_shape,
        rule=told.rule, ready=told.ready, view=told.view,
    )  # fmt: skip
    return Described(frame, told.verdict, rows, None, jpeg)
