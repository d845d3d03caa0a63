"""The carriers that the outlet's sender thread owns: run folder on disk, live plane on sockets, thin link to a modem.

Made by agent/process/app.py, called by agent/outlet/outlet.py from the sender thread only. They must not stop a run:
a full disk or a deaf peer is a state that they report.
"""

import contextlib
import threading
from collections.abc import Callable

from stillwatch.base import Clock
from stillwatch.outlet import health
from stillwatch.outlet.command_box import MAX_WAITING_COMMANDS, CommandBox
from stillwatch.transport.disk import RunFolder
from stillwatch.transport.live import MAX_CONNECTIONS, Publisher
from stillwatch.transport.thin import VehicleLink
from stillwatch.transport.wire import LinkError, Message, TransportError, Unfolder

OnState = Callable[[str, str], None]  # called with (code, text) when a port is taken, and when it is ours after all
NS = 1_000_000_000
PORT_RETRY_S = 5
TRIM_EVERY = 1000  # connections after which what they left in the allocator goes back to the system


class _Port:
    """When a port that is not ours is tried again, and who is told of it."""

    def __init__(self, clock: Clock, on_state: OnState | None):
        self._clock, self._on_state = clock, on_state
        self._tried_ns = 0

    def failed(self) -> None:
        """Count from now on until it is due again."""
        self._tried_ns = self._clock.monotonic_ns()

    def is_due(self) -> bool:
        """Whether to try again now; PORT_RETRY_S later the next time."""
        is_due = self._clock.monotonic_ns() - self._tried_ns >= PORT_RETRY_S * NS
        if is_due:
            self.failed()
        return is_due

    def tell(self, code: str, text: str) -> None:
        if self._on_state is not None:
            self._on_state(code, text)


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

    def __init__(
        self,
        publisher: Publisher,
        commands: CommandBox,
        clock: Clock,
        *,
        strict: bool = False,
        on_state: OnState | None = None,
    ):
        self._publisher = publisher
        self._commands = commands
        self._strict = strict
        self._port = _Port(clock, on_state)
        self._times_closed = 0
        self._trimmed_at = 0
        self.is_open = False

    @property
    def publisher(self) -> Publisher:
        return self._publisher

    def open(self) -> None:
        """Bind the endpoints; where one is taken, watching goes on and `poll` tries again, unless `strict`."""
        try:
            self._publisher.open()
        except TransportError as error:
            if self._strict:
                raise
            self._port.failed()
            text = (
                f"nobody can listen yet: {error}. The run goes on and tries again every {PORT_RETRY_S} s; a port "
                "of its own: --set publish.endpoint=tcp://127.0.0.1:5580"
            )
            self._port.tell("port_taken", text)
            return
        self.is_open = True

    def carry(self, kind: str, payload: bytes, message: Message) -> None:
        if self.is_open:
            self._publisher.send(kind, payload)
        else:
            self._publisher.keep(kind, payload)

    def poll(self) -> None:
        if not self.is_open:
            self._try_again()
            return
        for command in self._publisher.poll(0):
            if not self._commands.put(command):
                self._publisher.reply(command, error=f"busy: {MAX_WAITING_COMMANDS} commands wait already")
        for command, result, error, attachment in self._commands.answers():
            self._publisher.reply(command, result, error, attachment)
        connections = self._publisher.connections
        if connections.accepted - self._trimmed_at >= TRIM_EVERY:
            self._trimmed_at = connections.accepted
            health.return_free_memory()
        if connections.is_crowded:
            self._turn_away()

    def close(self) -> None:
        self._publisher.close()

    def connections(self) -> dict[str, int]:
        """Return how many connected since the start, how many of them were let in, and how often all were closed."""
        counted = self._publisher.connections
        return {"accepted": counted.accepted, "let_in": counted.let_in, "ports_closed": self._times_closed}

    def _turn_away(self) -> None:
        """Close all ports for a while: connections cost memory and descriptors, which the camera's work needs more."""
        self._publisher.close(0)
        self.is_open = False
        self._times_closed += 1
        self._port.failed()
        most = f"more than {MAX_CONNECTIONS} connections, which no stations need"
        self._port.tell("ports_crowded", f"{most}: all are closed, and taken again in {PORT_RETRY_S} s")

    def _try_again(self) -> None:
        if not self._port.is_due():
            return
        try:
            self._publisher.open()
        except TransportError:
            return
        self.is_open = True
        self._port.tell("port_bound", f"listeners are served again on {self._publisher.bound_endpoint}")


class ThinCarrier:
    """The thin link. What is not acknowledged when a run ends waits in the outbox for the next one.

    `make_link` is called on the sender thread, which alone may use the link's socket and outbox.
    """

    def __init__(
        self,
        make_link: Callable[[], VehicleLink],
        clock: Clock,
        *,
        strict: bool = False,
        on_state: OnState | None = None,
    ):
        self._make_link = make_link
        self._strict = strict
        self._port = _Port(clock, on_state)
        self._unfolder = Unfolder()  # the mirror wants whole models
        self._attempt: threading.Thread | None = None  # to bind the port: a name may take many seconds to resolve
        self._is_waited_for = False
        self.tx_bytes = 0
        self.backlog = 0

    def open(self) -> None:
        """Open the outbox, bind the port; where that fails, alerts wait and `poll` tries again, unless `strict`."""
        self._link = self._make_link()
        try:
            self._link.connect()
        except LinkError as error:
            if self._strict:
                self._link.close()
                raise
            self._is_waited_for = True
            self._port.failed()
            self._port.tell(
                "link_port_taken", f"alerts wait for the link: {error}; it is tried again every {PORT_RETRY_S} s"
            )

    def carry(self, kind: str, payload: bytes, message: Message) -> None:
        for whole in self._unfolder.unfold(message):
            self._link.publish(whole)

    def poll(self) -> None:
        if self._is_waited_for:
            self._try_again()
        self._link.step()
        self.tx_bytes, self.backlog = self._link.tx_bytes, self._link.backlog

    def close(self) -> None:
        self._link.close()

    def _try_again(self) -> None:
        if self._link.is_connected:
            self._is_waited_for = False
            self._port.tell("link_port_bound", "the link's port is bound: what waited is sent")
        elif (self._attempt is None or not self._attempt.is_alive()) and self._port.is_due():
            self._attempt = threading.Thread(target=self._connect, name="link-port", daemon=True)
            self._attempt.start()

    def _connect(self) -> None:
        with contextlib.suppress(LinkError):
            self._link.connect()
