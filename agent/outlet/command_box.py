"""Commands on their way from the sender thread to the pipeline thread, and answers on their way back.

Filled by outlet/carriers.py, emptied by process/commander.py. It must not grow and never blocks.
"""

import threading
from collections import deque
from typing import Any

from stillwatch.transport.live import Command

MAX_WAITING_COMMANDS = 32


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
