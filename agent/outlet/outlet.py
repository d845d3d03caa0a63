"""Carries the pipeline's messages to everything that takes them, on the sender thread: run folder, sockets, links.

Called by agent/pipeline/pipeline.py (`send`) and agent/process/app.py (start, close). The sender thread alone owns
sockets and the run folder; the pipeline never waits for a peer, and for a disk only where the source is a file.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from stillwatch.base import Clock
from stillwatch.transport.wire import TOPICS, EncodeError, Message, TransportError, encode, kind_of

logger = logging.getLogger(__name__)


class Carrier(Protocol):
    """Something that takes messages away. All calls come from the sender thread."""

    def open(self) -> None:
        """Acquire sockets or files."""

    def carry(self, kind: str, payload: bytes, message: Message) -> None:
        """Take one message; must not block longer than a disk write."""

    def poll(self) -> None:
        """Serve peers, called at least every `poll_s`."""

    def close(self) -> None:
        """Send what can still be sent and let go."""


class Outlet:
    """Fixed queues, one a topic, and the thread that empties them in the order they were filled.

    Parameters
    ----------
    carriers : sequence of Carrier
    clock : Clock
    lossless : bool
        True for files: a full queue makes the pipeline wait. False for live sources: the oldest message of that
        topic is dropped and counted in `drops`.
    heartbeat : callable or None
        Called on the sender thread every `heartbeat_s`, with whether anything was carried since the last call; returns
        the status message to send, or None where that says enough.
    poll_s : float
        Longest time between two polls of the carriers.
    """

    def __init__(
        self,
        carriers: Sequence[Carrier],
        clock: Clock,
        *,
        lossless: bool,
        heartbeat: Callable[[bool], Message | None] | None = None,
        heartbeat_s: float = 1.0,
        poll_s: float = 0.02,
    ):
        self._carriers = list(carriers)
        self._clock = clock
        self._lossless = lossless
        self._heartbeat = heartbeat
        self._heartbeat_ns = int(heartbeat_s * 1e9)
        self._poll_s = poll_s
        self._queues: dict[str, deque[tuple[int, bytes, Message]]] = {kind: deque() for kind in TOPICS}
        self._n_sent = 0
        self._handed: dict[str, int] = {}  # to the carriers: the next sequence of each kind
        self._changed = threading.Condition()
        self._closing = False
        self._failure: TransportError | None = None
        self._opened = threading.Event()
        self.drops: dict[str, int] = {}
        self.refused: dict[str, int] = {}
        self._thread = threading.Thread(target=self._run, name="sender", daemon=True)

    def start(self) -> None:
        """Open the carriers on the sender thread; an endpoint that cannot be bound is raised here."""
        self._thread.start()
        self._opened.wait()
        if self._failure is not None:
            raise self._failure

    def send(self, message: Message) -> None:
        """Queue one message. A message that breaks its own schema is our fault: counted, logged, not sent."""
        kind = kind_of(message)
        try:
            payload = encode(message)
        except EncodeError as error:
            self._refuse(kind, str(error))
            return
        waiting = self._queues[kind]
        with self._changed:
            while len(waiting) >= TOPICS[kind].queue:
                if self._lossless and self._thread.is_alive():
                    self._changed.wait(timeout=1.0)
                else:
                    waiting.popleft()
                    self.drops[kind] = self.drops.get(kind, 0) + 1
            waiting.append((self._n_sent, payload, message))
            self._n_sent += 1
            self._changed.notify_all()

    def close(self, timeout_s: float = 3.0) -> bool:
        """Send what is queued, close the carriers; false if that took longer than `timeout_s`."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _refuse(self, kind: str, why: str) -> None:
        self.refused[kind] = self.refused.get(kind, 0) + 1
        if self.refused[kind] & (self.refused[kind] - 1) == 0:  # at 1, 2, 4, 8 … : never a flood of lines
            logger.error("message not sent (%d so far): %s", self.refused[kind], why)

    def waiting(self) -> dict[str, int]:
        """Return how many messages wait, by kind."""
        return {kind: len(queued) for kind, queued in self._queues.items()}

    @property
    def sequences(self) -> dict[str, int]:
        """The next sequence of each kind after what the carriers were handed, heartbeats apart.

        What a heartbeat may tell: who hears of a message that still waits here would miss it.
        """
        return dict(self._handed)

    # -- sender thread ---------------------------------------------------------------------------------------

    def _run(self) -> None:
        opened: list[Carrier] = []
        try:
            for carrier in self._carriers:
                carrier.open()
                opened.append(carrier)
        except TransportError as error:
            self._failure = error
            for carrier in opened:
                carrier.close()
            return
        finally:
            self._opened.set()
        next_beat_ns, was_heard = self._clock.monotonic_ns(), False
        while True:
            batch, closing = self._take()
            for kind, payload, message in batch:
                self._carry(kind, payload, message)
                self._handed[kind] = message.sequence + 1
            was_heard |= bool(batch)
            if self._heartbeat is not None and self._clock.monotonic_ns() >= next_beat_ns:
                next_beat_ns = self._clock.monotonic_ns() + self._heartbeat_ns
                self._beat(self._heartbeat(was_heard))
                was_heard = False
            for carrier in self._carriers:
                carrier.poll()
            if closing and not batch:
                break
        for carrier in self._carriers:
            carrier.close()

    def _beat(self, status: Message | None) -> None:
        if status is None:
            return
        try:
            self._carry(kind_of(status), encode(status), status)
        except EncodeError as error:
            self._refuse(kind_of(status), str(error))

    def _carry(self, kind: str, payload: bytes, message: Message) -> None:
        for carrier in self._carriers:
            carrier.carry(kind, payload, message)

    def _take(self) -> tuple[list[tuple[str, bytes, Message]], bool]:
        """Return all that waits, in the order it was sent, and whether the end has been asked for."""
        with self._changed:
            if not self._closing and not any(self._queues.values()):
                self._changed.wait(self._poll_s)
            waiting = sorted(
                (number, kind, payload, message)
                for kind, queued in self._queues.items()
                for number, payload, message in queued
            )
            for queued in self._queues.values():
                queued.clear()
            self._changed.notify_all()
            return [(kind, payload, message) for _, kind, payload, message in waiting], self._closing
