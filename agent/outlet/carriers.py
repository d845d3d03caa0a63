"""The carriers that the outlet's sender thread owns: run folder on disk, live plane on sockets, thin link to a modem.

Made by agent/process/app.py, called by agent/outlet/outlet.py from the sender thread only. They must not stop a run:
a full disk or a deaf peer is a state that they report.
"""

from collections.abc import Callable

from stillwatch.outlet.command_box import MAX_WAITING_COMMANDS, CommandBox
from stillwatch.transport.disk import RunFolder
from stillwatch.transport.live import Publisher
from stillwatch.transport.thin import VehicleLink
from stillwatch.transport.wire import Message


class RunFolderCarrier:
    """Writes every message into the run folder. agent/process/app.py finishes the folder after the sender has ended."""

    def __init__(self, folder: RunFolder):
        self._folder = folder

    def open(self) -> None:
        """The folder is open since it was made."""

    def carry(self, kind: str, payload: bytes, message: Message) -> None:
        self._folder.write(kind, payload)

    def poll(self) -> None:
        """Nobody asks a folder for anything."""

    def close(self) -> None:
        """Left to agent/process/app.py, which still has the summary to write."""


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

    def __init__(self, make_link: Callable[[], VehicleLink]):
        self._make_link = make_link  # on the sender thread, which alone may use the link's socket and outbox
        self.tx_bytes = 0
        self.backlog = 0

    def open(self) -> None:
        self._link = self._make_link()

    def carry(self, kind: str, payload: bytes, message: Message) -> None:
        self._link.publish(message)

    def poll(self) -> None:
        self._link.step()
        self.tx_bytes, self.backlog = self._link.tx_bytes, self._link.backlog

    def close(self) -> None:
        self._link.close()
