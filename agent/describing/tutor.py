"""Learners taught in the process that describes frames: the agent's end of it, on the learner's thread.

Made by agent/describing/apart.py. It has a socket and a memory of its own, so that no two threads share one.
"""

import socket
import threading

from stillwatch.base import State
from stillwatch.describing.room import Room, room_of
from stillwatch.describing.talk import Learnt, Teach, hear_answer, say
from stillwatch.epochs import Taught


class ApartTutor:
    """A `Tutor` of agent/epochs/away.py: once the process is lost, nobody is there."""

    def __init__(self) -> None:
        self._room = Room()
        self._connection, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._is_lost = False
        self._in_use = threading.Lock()  # so that it is closed between two calls

    @property
    def descriptor(self) -> int:
        """Of the memory, for the other process."""
        return self._room.descriptor

    def answer_within(self, seconds: float) -> None:
        """Take the process for lost where a group takes longer."""
        self._connection.settimeout(seconds)

    def ask(self, groups: list[list[str]], epoch: int, arrays: State) -> bool:
        with self._in_use:
            if self._is_lost:
                return False
            n_bytes = room_of(arrays)
            try:
                self._room.grow(n_bytes)
                say(self._connection, Teach(groups, epoch, self._room.put(0, arrays, n_bytes), n_bytes))
            except OSError:
                self._is_lost = True
            return not self._is_lost

    def hear(self) -> Taught | None:
        with self._in_use:
            if self._is_lost:
                return None
            try:
                answer = hear_answer(self._connection)
                self._room.look_again()  # it may have grown
            except OSError:
                answer = None
            if not isinstance(answer, Learnt):
                self._is_lost = True
                return None
            return Taught(self._room.get(answer.state), answer.reports, answer.seconds)

    def close(self) -> None:
        """Let go of socket and memory; the process has ended, so that who waits for it is answered at once."""
        with self._in_use:
            self._is_lost = True
            self._connection.close()
            self._room.close()
