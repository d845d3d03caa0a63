"""The ground's side of the live plane: subscribe, ask for a snapshot, drop what is old, notice what is missing.

Used by ground tools from one thread, which makes, uses and closes it. It must not trust the peer: whatever
arrives is decoded under limits, and anything wrong is counted and skipped.
"""

import secrets
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import zmq

from stillwatch.transport.base import Clock
from stillwatch.transport.live.endpoints import (
    SharedContext,
    connect,
    derived_endpoint,
    make_socket,
    try_receive,
    try_send,
)
from stillwatch.transport.live.security import ClientKeys, secure_client
from stillwatch.transport.live.snapshot import MAX_PAGE_HEAD_BYTES, MAX_REQUEST_BYTES, Page, PageRequest
from stillwatch.transport.live.tracking import AgeMeter, Gap, Tracker
from stillwatch.transport.wire import (
    FIRST_SCHEMA,
    MAX_PAYLOAD_BYTES,
    SCHEMA,
    DecodeError,
    Message,
    SchemaError,
    Score,
    Scores,
    Status,
    TransportError,
    Unfolder,
    decode,
    decode_struct,
    encode_struct,
    kind_of,
    topic_bytes,
)

ANY_AGENT = f"v{SCHEMA}/".encode()
_RETRY_NS = 500_000_000
_SILENCE_MAX_NS = 60_000_000_000


@dataclass(frozen=True, slots=True)
class Received:
    """One message, delivered once.

    `message` and `payload` are as they were sent; `says` is the same in forms that need no other message: each score,
    the whole model. `age_s` is how much later it came than the fastest so far; None for what may have waited for us as
    a last value.
    """

    kind: str
    message: Message
    payload: bytes
    age_s: float | None
    says: Sequence[Message]


class Subscriber:
    """Receives one agent's messages, whatever the network does.

    Parameters
    ----------
    endpoint : str
        The agent's data endpoint; snapshots are asked for one port above (`.snapshot`).
    agent : str, optional
        Agent id; without it, whichever agent publishes there.
    keys : ClientKeys, optional
    queue : int
        Messages that may wait here before newer ones are lost (and reported).
    silence_s : float
        After this long without a message all sockets are made anew: a half-open connection says nothing for ever.
    max_age_s : float
        A message later than this means that we cannot keep up: everything waiting is thrown away and the newest
        state asked for (Suicidal Snail pattern).
    """

    def __init__(
        self,
        endpoint: str,
        *,
        clock: Clock,
        keys: ClientKeys | None = None,
        agent: str | None = None,
        queue: int = 256,
        silence_s: float = 5.0,
        max_age_s: float = 10.0,
    ):
        self.refused: dict[str, int] = {}  # messages not understood, by cause
        self.resyncs = 0  # snapshots asked for after the first
        self.reconnects = 0  # sockets made anew after silence or for being too late
        self.is_complete = False  # a whole snapshot has arrived since the agent's last start
        self._endpoint, self._clock, self._keys, self._agent, self._queue = endpoint, clock, keys, agent, queue
        self._snapshot_endpoint = derived_endpoint(endpoint, "snapshot")
        self._prefix = topic_bytes(agent) if agent else ANY_AGENT
        self._old_prefix = topic_bytes(agent, "", FIRST_SCHEMA) if agent else f"v{FIRST_SCHEMA}/".encode()
        self._silence_ns, self._max_age_ns = int(silence_s * 1e9), int(max_age_s * 1e9)
        self._patience_ns = self._silence_ns
        self._silent_at_ns = self._asked_ns = 0
        self._suspected_ns: int | None = None  # since when last values are missing that a snapshot may bring
        self._asked_for: dict[str, int] = {}  # those that were missing when it was asked for
        self._tracker, self._age, self._unfolder = Tracker(), AgeMeter(), Unfolder()
        self._ready: deque[Received | Gap] = deque()
        self._stamp = 0
        self._page_id = ""
        self._is_asked = True  # else the request waits until somebody is there to take it
        self._context: zmq.Context | None = None
        self._is_shared = False

    def open(self, context: SharedContext | None = None) -> None:
        """Connect in the background, from the thread that will call `recv`. Raises TransportError.

        One that hears many agents hands the same context to all of them.
        """
        self._is_shared = context is not None
        self._context = zmq.Context(io_threads=1) if context is None else context.context
        self._hear()
        try:
            self._connect()
        except TransportError:
            self.close()
            raise
        self._ask()

    @property
    def gaps(self) -> dict[str, int]:
        """Messages lost by kind: what the gaps that `recv` and `settle` returned hold together."""
        return {kind: count for kind, count in self._tracker.lost.items() if count}

    @property
    def silent_s(self) -> float:
        """Seconds since anything valid arrived: what a screen shows as the age of all it shows."""
        return (self._clock.monotonic_ns() - self._heard_ns) / 1e9

    @property
    def sockets(self) -> tuple[zmq.Socket, zmq.Socket]:
        """What there is to read from, until the next `recv`: it may make them anew."""
        return self._data, self._pages

    @property
    def is_waiting(self) -> bool:
        """Whether `recv` would return something at once, without a look at the sockets."""
        return bool(self._ready)

    @property
    def wanted(self) -> int:
        """The events of its sockets for which `recv` has something to do: POLLOUT too, while a request waits."""
        return zmq.POLLIN | (0 if self._is_asked else zmq.POLLOUT)

    @property
    def timer_ns(self) -> int:
        """When `recv` has something to do even if nothing arrives, on the monotonic clock."""
        return self._next_timer_ns()

    def recv(self, timeout_ms: int) -> Received | Gap | None:
        """Return the next message or gap, or None after `timeout_ms`."""
        deadline = self._clock.monotonic_ns() + timeout_ms * 1_000_000
        while not self._ready:
            now = self._clock.monotonic_ns()
            wait_ns = min(deadline, self._next_timer_ns()) - now
            ready = dict(self._poller.poll(max(0, -(-wait_ns // 1_000_000))))
            if ready.get(self._pages, 0) & zmq.POLLOUT:
                self._ask()
            if ready.get(self._pages, 0) & zmq.POLLIN:
                self._take_page()
            if not self._ready and self._data in ready:
                self._take_message()
            if not ready:  # silence is what the peer keeps, not what we have not read yet
                self._keep_alive(self._clock.monotonic_ns())
            if not self._ready and self._clock.monotonic_ns() >= deadline:
                return None
        return self._ready.popleft()

    def settle(self) -> list[Gap]:
        """Return as gaps what is missing still: for those who stop listening before a snapshot came."""
        return self._tracker.settle()

    def close(self) -> None:
        """Close all sockets; may be called twice."""
        if self._context is None:
            return
        self._disconnect()
        if not self._is_shared:
            self._context.term()
        self._context = None

    def _connect(self) -> None:
        assert self._context is not None
        self._data = make_socket(
            self._context, zmq.SUB, queue=self._queue, max_bytes=MAX_PAYLOAD_BYTES, endpoint=self._endpoint
        )
        self._pages = make_socket(
            self._context, zmq.DEALER, queue=4, max_bytes=MAX_PAYLOAD_BYTES, endpoint=self._snapshot_endpoint
        )
        self._poller = zmq.Poller()
        for socket, endpoint in ((self._data, self._endpoint), (self._pages, self._snapshot_endpoint)):
            secure_client(socket, self._keys)
            self._poller.register(socket, zmq.POLLIN)
            connect(socket, endpoint)
        self._data.setsockopt(zmq.SUBSCRIBE, self._prefix)

    def _disconnect(self) -> None:
        for name in ("_data", "_pages"):
            if hasattr(self, name):
                getattr(self, name).close(0)

    def _reconnect(self) -> None:
        self.reconnects += 1
        self._disconnect()
        self._connect()
        self._ask()

    def _ask(self) -> None:
        """Ask for all last values that changed since the stamp of the last whole snapshot."""
        self._page_id = secrets.token_hex(8)
        self._asked_ns = self._clock.monotonic_ns()
        self._asked_for = self._tracker.suspects
        request = PageRequest(id=self._page_id, epoch=max(0, self._tracker.epoch), stamp=self._stamp, schema=SCHEMA)
        self._is_asked = try_send(self._pages, [encode_struct(request, MAX_REQUEST_BYTES)])
        self._poller.register(self._pages, self.wanted)

    def _resync(self) -> None:
        if not self._page_id:
            self.resyncs += 1
            self._ask()

    def _keep_alive(self, now: int) -> None:
        if now >= self._silent_at_ns:
            self._patience_ns = min(self._patience_ns + self._silence_ns, _SILENCE_MAX_NS)
            self._silent_at_ns = now + self._patience_ns
            self._reconnect()
        elif self._page_id and now >= self._asked_ns + _RETRY_NS:
            self._ask()

    def _next_timer_ns(self) -> int:
        return min(self._silent_at_ns, self._asked_ns + _RETRY_NS) if self._page_id else self._silent_at_ns

    def _take_message(self) -> None:
        frames = try_receive(self._data)
        if frames is None:
            return
        message = self._decode(frames)
        if message is None:
            return
        now = self._hear()
        self._note_epoch(message.epoch)
        verdict = self._tracker.live(message, self._unfolder.has_base(message))
        age_s = self._age.age_s(message, now) if verdict.is_fresh else None
        self._ready.extend(verdict.gaps)
        if verdict.deliver:
            self._deliver(message, frames[1], age_s)
        if age_s is not None and age_s * 1e9 > self._max_age_ns and isinstance(message, Status | Score | Scores):
            self._reconnect()  # only of these is an old one always a late one
        elif verdict.gaps or self._tracker.behind or self._tracker.suspects:
            self._resync()
        self._lose_patience(now)

    def _lose_patience(self, now: int) -> None:
        """Take for lost what no snapshot has brought for as long as silence is borne: none may ever come."""
        if not self._tracker.suspects:
            self._suspected_ns = None
        elif self._suspected_ns is None:
            self._suspected_ns = now
        elif now - self._suspected_ns >= self._silence_ns:
            self._ready.extend(self._tracker.settle())

    def _take_page(self) -> None:
        frames = try_receive(self._pages)
        if frames is None:
            return
        try:
            page = decode_struct(frames[0], Page, MAX_PAGE_HEAD_BYTES)
        except DecodeError:
            self._refuse("page")
            return
        if page.id != self._page_id or len(frames) % 2 == 0 or page.epoch < self._tracker.epoch:
            return
        self._hear()
        self._note_epoch(page.epoch)
        for start in range(1, len(frames), 2):
            message = self._decode(frames[start : start + 2])
            if message is not None and message.schema < SCHEMA:
                self._data.setsockopt(zmq.SUBSCRIBE, self._old_prefix)  # an agent of before: its topics are named so
            if message is not None and self._tracker.snapshot(message):
                self._deliver(message, frames[start + 1], None)
        self._stamp = page.stamp
        if not page.done or self._tracker.behind:
            self._ask()
            return
        self._page_id = ""
        self.is_complete = True
        self._ready.extend(self._tracker.baseline(page.sequences))
        self._ready.extend(self._tracker.settle(self._asked_for))
        if self._tracker.suspects:  # that it may be too old for
            self._ask()

    def _deliver(self, message: Message, payload: bytes, age_s: float | None) -> None:
        try:
            says = self._unfolder.unfold(message)
        except DecodeError:
            self._refuse("damaged")
            return
        self._ready.append(Received(kind_of(message), message, payload, age_s, says))

    def _note_epoch(self, epoch: int) -> None:
        """Begin anew where the publisher has: what is missing of its life before never comes."""
        missing = self._tracker.settle() if epoch > self._tracker.epoch else []
        if not self._tracker.is_new_epoch(epoch):
            return
        self._ready.extend(missing)
        self._stamp = 0
        self.is_complete = False
        if not self._page_id:
            self._resync()

    def _hear(self) -> int:
        self._heard_ns = self._clock.monotonic_ns()
        self._patience_ns = self._silence_ns
        self._silent_at_ns = self._heard_ns + self._patience_ns
        return self._heard_ns

    def _decode(self, frames: list[bytes]) -> Message | None:
        """Return the message of a topic and a payload frame, or None for one that is refused, and counted."""
        if len(frames) != 2:
            self._refuse("frames")
            return None
        topic, payload = frames
        try:
            message = decode(payload)
        except SchemaError:
            self._refuse("schema")
            return None
        except DecodeError:
            self._refuse("damaged")
            return None
        if topic != topic_bytes(message.agent, kind_of(message), message.schema) or not topic.startswith(
            (self._prefix, self._old_prefix)
        ):
            self._refuse("topic")
            return None
        return message

    def _refuse(self, cause: str) -> None:
        self.refused[cause] = self.refused.get(cause, 0) + 1
