"""The carriers that the outlet's sender thread owns: run folder on disk, live plane on sockets, thin link to a modem.

Made by app.py, called by agent/outlet.py from the sender thread only. They must not stop a run: a full disk or a
deaf peer is a state that they report.
"""

import pathlib
import threading
from collections import deque
from typing import Any

from stillwatch.agent.clock import Clock
from stillwatch.agent.config import LinkConfig
from stillwatch.transport.control import Command
from stillwatch.transport.messages import Message
from stillwatch.transport.publisher import Publisher
from stillwatch.transport.run_folder import RunFolder
from stillwatch.transport.thin_vehicle import VehicleLink

MAX_WAITING_COMMANDS = 32


class RunFolderCarrier:
    """Writes every message into the run folder. app.py finishes the folder after the sender has ended."""

    def __init__(self, folder: RunFolder):
        self._folder = folder

    def open(self) -> None:
        """The folder is open since it was made."""

    def carry(self, kind: str, payload: bytes, message: Message) -> None:
        self._folder.write(kind, payload)

    def poll(self) -> None:
        """Nobody asks a folder for anything."""

    def close(self) -> None:
        """Left to app.py, which still has the summary to write."""


class CommandBox:
    """Commands on their way to the pipeline thread, and answers on their way back; fixed room, nothing waits."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._commands: deque[Command] = deque(maxlen=MAX_WAITING_COMMANDS)
        self._answers: deque[tuple[Command, dict[str, Any], str, bytes]] = deque(maxlen=MAX_WAITING_COMMANDS)

    def put(self, command: Command) -> bool:
        """Hand a command to the pipeline; false where too many wait already."""
        with self._lock:
            if len(self._commands) == MAX_WAITING_COMMANDS:
                return False
            self._commands.append(command)
            return True

    def take(self) -> list[Command]:
        """Return the commands that wait, oldest first. Called by the pipeline thread between two frames."""
        with self._lock:
            commands = list(self._commands)
            self._commands.clear()
            return commands

    def answer(self, command: Command, result: dict | None = None, error: str = "", attachment: bytes = b"") -> None:
        with self._lock:
            self._answers.append((command, result or {}, error, attachment))

    def answers(self) -> list[tuple[Command, dict[str, Any], str, bytes]]:
        with self._lock:
            answers = list(self._answers)
            self._answers.clear()
            return answers


class LiveCarrier:
    """Publishes messages, serves late joiners, and brings commands in."""

    def __init__(self, publisher: Publisher, commands: CommandBox):
        self._publisher = publisher
        self._commands = commands

    @property
    def publisher(self) -> Publisher:
        return self._publisher

    def open(self) -> None:
        self._publisher.open()

    def carry(self, kind: str, payload: bytes, message: Message) -> None:
        self._publisher.send(kind, payload)

    def poll(self) -> None:
        for command in self._publisher.poll(0):
            if not self._commands.put(command):
                self._publisher.reply(command, error=f"busy: {MAX_WAITING_COMMANDS} commands wait already")
        for command, result, error, attachment in self._commands.answers():
            self._publisher.reply(command, result, error, attachment)

    def close(self) -> None:
        self._publisher.close()


class ThinCarrier:
    """The thin link. What is not acknowledged when a run ends waits in the outbox for the next one."""

    def __init__(self, settings: LinkConfig, folder: pathlib.Path, clock: Clock):
        self._settings, self._folder, self._clock = settings, folder, clock
        self.tx_bytes = 0
        self.backlog = 0

    def open(self) -> None:
        self._link = VehicleLink(self._settings, self._folder, clock=self._clock)

    def carry(self, kind: str, payload: bytes, message: Message) -> None:
        self._link.publish(message)

    def poll(self) -> None:
        self._link.step()
        self.tx_bytes, self.backlog = self._link.tx_bytes, self._link.backlog

    def close(self) -> None:
        self._link.close()
