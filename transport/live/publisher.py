"""The agent's side of the live plane: an XPUB socket, last values for late joiners, and the control socket.

Owned by the agent's sender thread, which alone calls every method. It must never wait for a subscriber: who is
slow loses messages, which are counted here and seen there as gaps.
"""

import threading
from collections import deque

import zmq

from stillwatch.transport.base import Clock
from stillwatch.transport.live.connections import Connections
from stillwatch.transport.live.control import Command, ControlServer, Value
from stillwatch.transport.live.endpoints import bind, derived_endpoint, make_socket, split_tcp, try_receive, try_send
from stillwatch.transport.live.security import ServerKeys, ZapHandler, require_secure, secure_server
from stillwatch.transport.live.snapshot import MAX_PAGE_HEAD_BYTES, MAX_REQUEST_BYTES, Page, PageRequest, SnapshotCache
from stillwatch.transport.wire import (
    FIRST_SCHEMA,
    SCHEMA,
    TOPICS,
    Alert,
    DecodeError,
    EncodeError,
    Exemplar,
    LogNotice,
    Message,
    Status,
    TransportError,
    Unfolder,
    decode,
    decode_struct,
    encode,
    encode_struct,
    key_of,
    kind_of,
    topic_bytes,
)

STALL_BYTES = 1_900_000  # most that one stopped subscriber can hold back in our memory
BULK_BYTES = 600_000  # of these, for models and clumps: they must not take the room of alerts
_BULK_MESSAGE_BYTES = 64 * 1024  # topics with longer messages are bulk
MAX_INCOMING_BYTES = 1024  # subscriptions and page requests are short, but a CURVE handshake needs over 256
_REQUESTS_A_POLL = 64
_PORT_TRIES = 32
_PAGES_IN_FLIGHT = 2
LAST_READ_S = 0.5  # after the last message: a reader takes milliseconds, a busy one tenths of a second


class Publisher:
    """Publishes encoded messages; serves snapshots and commands on sockets of their own.

    Parameters
    ----------
    endpoint : str
        `tcp://HOST:PORT` (port 0: any) or `ipc://PATH`. Snapshots are served one port above (`.snapshot`).
    agent_id : str
    queue : int
        Messages that may wait for one slow subscriber before it loses them.
    keys : ServerKeys, optional
        Needed for every endpoint that other machines can reach, else SecurityError.
    control : str
        Endpoint for commands; `auto`: two ports above `endpoint` (`.control`); empty: none. Needs `clock`.
    """

    def __init__(
        self,
        endpoint: str,
        agent_id: str,
        *,
        queue: int = 64,
        keys: ServerKeys | None = None,
        control: str = "",
        clock: Clock | None = None,
    ):
        self.drops: dict[str, int] = {}  # messages that were not sent, or that a subscriber did not get, by kind
        self.tx_bytes: dict[str, int] = {}  # payload bytes published, by kind
        self.connections = Connections()
        self._endpoint, self._agent_id, self._queue, self._keys = endpoint, agent_id, queue, keys
        self._control_endpoint, self._clock = control, clock
        self._cache = SnapshotCache()
        self._endpoints: dict[str, str] = {}
        self._unfolder = Unfolder()
        self._last: Message | None = None  # whose header tells old stations who we are
        self._old_joined = False
        self._epoch = 0
        self._sequences: dict[str, int] = {}  # of the last message sent, or given up
        self._late: dict[tuple[str, str], tuple[int, bytes]] = {}  # held back, in order: sequence, payload
        self._window: deque[tuple[int, bool]] = deque(maxlen=max(1, queue))  # bytes, is bulk
        self._context: zmq.Context | None = None
        self._control: ControlServer | None = None
        self._zap: ZapHandler | None = None
        require_secure(endpoint, keys)
        if control not in ("", "auto"):
            require_secure(control, keys)

    def open(self) -> None:
        """Make and bind all sockets, in the thread that will use them. Raises SecurityError, TransportError.

        May be opened again after `close`, on the same ports: last values and the commands of before are kept.
        """
        self._context = zmq.Context(io_threads=1)
        self._poller = zmq.Poller()
        try:
            self._zap = ZapHandler(self._context, self._keys)  # before any bind
            self._poller.register(self._zap.socket, zmq.POLLIN)
            data, snapshot = self._bind_pair()
            self._endpoints = {"data": data, "snapshot": snapshot} | self._open_control(data)
            self._endpoint = data
        except TransportError:
            self.close()
            raise
        self._poller.register(self._data, zmq.POLLIN)
        self._poller.register(self._snapshot, zmq.POLLIN)

    @property
    def bound_endpoint(self) -> str:
        """The data endpoint as bound."""
        return self._endpoints["data"]

    @property
    def endpoints(self) -> dict[str, str]:
        """All endpoints as bound, for Status.endpoints; empty while they are not."""
        return self._endpoints if self._context is not None else {}

    def send(self, kind: str, payload: bytes) -> bool:
        """Publish one encoded message; never waits.

        Returns False where at least one subscriber lost it, or where it was held back: a model or clumps that
        would let a stopped subscriber hold more than `STALL_BYTES` go out from a later `poll`, unless a newer
        one has replaced them: then they count as dropped. Within a kind all go out in order, and a heartbeat tells
        what was sent: who hears them must not miss what is only late. Raises EncodeError if the payload is not a
        message of this kind and agent.
        """
        message = self._own_message(kind, payload)
        if isinstance(message, Status) and self._late:
            message, payload = self._of_what_was_sent(message)
        key = self._remember(message, kind, payload)
        if self._late.pop((kind, key), None) is not None:
            self._drop(kind)
        if _is_bulk(kind) and (any(late == kind for late, _ in self._late) or not self._fits(kind, len(payload))):
            self._late[kind, key] = message.sequence, payload
            return False
        self._sequences[kind] = message.sequence
        if self._fits(kind, len(payload)):
            return self._transmit(kind, payload)
        self._drop(kind)
        return False

    def keep(self, kind: str, payload: bytes) -> None:
        """Take a message while no socket is bound: last values are kept for those who join once one is."""
        message = self._own_message(kind, payload)
        self._remember(message, kind, payload)
        self._sequences[kind] = message.sequence

    def poll(self, timeout_ms: int) -> list[Command]:
        """Wait up to `timeout_ms` for requests, serve them, and return the commands that the agent must answer."""
        assert self._zap is not None
        ready = dict(self._poller.poll(timeout_ms))
        self._zap.serve()
        self.connections.count()
        if self._data in ready:
            self._serve_joiners()
        if self._snapshot in ready:
            self._serve_snapshots()
        if self._old_joined and self._last is not None:
            self._old_joined = False
            try_send(self._data, [topic_bytes(self._agent_id, "log", FIRST_SCHEMA), self._notice_to_old(self._last)])
        self._send_late()
        return self._control.receive() if self._control is not None else []

    def reply(
        self, command: Command, result: dict[str, Value] | None = None, error: str = "", attachment: bytes = b""
    ) -> bool:
        """Answer a command: with a result, or with the reason why it was not carried out."""
        return self._control is not None and self._control.reply(command, result, error, attachment)

    def memory_bytes(self) -> int:
        """Return the bytes of last values kept, and of what one stopped subscriber can hold back."""
        return self._cache.memory_bytes() + STALL_BYTES

    def close(self, linger_ms: int = 200) -> None:
        """Close everything; last messages get `linger_ms` to leave. May be called twice.

        Who is connected gets LAST_READ_S to read them: what lies unread at the other end goes with the connection
        (endpoints.py: connect).
        """
        if self._context is None:
            return
        self.connections.count()
        if self.connections.n_open > 0:
            threading.Event().wait(LAST_READ_S)
        if self._control is not None:
            self._control.close(linger_ms)
        for name in ("_data", "_snapshot"):
            if hasattr(self, name):
                getattr(self, name).close(linger_ms)
        self.connections.forget()
        if self._zap is not None:
            self._zap.close()
        self._context.term()
        self._context = self._zap = None

    def _remember(self, message: Message, kind: str, payload: bytes) -> str:
        """Keep what late joiners will ask for; return the message's key."""
        self._epoch = message.epoch
        key = key_of(message)
        self._last = message
        if TOPICS[kind].last_value:
            if isinstance(message, Alert) and not message.thumbnail:
                message, payload = self._with_picture(message, payload)
            for whole in self._unfolder.unfold(message):
                self._cache.put(kind, key, payload if whole is message else encode(whole))
        if isinstance(message, Exemplar) and message.removed is not None:
            for exemplar_id in message.removed.tolist():
                self._cache.discard(kind, str(exemplar_id))
        return key

    def _with_picture(self, alert: Alert, payload: bytes) -> tuple[Alert, bytes]:
        """Return what late joiners get of an alert whose picture was told before: the alert with that picture."""
        for kept in self._cache.of_kind("alert"):
            before = decode(kept)
            if isinstance(before, Alert) and before.id == alert.id and before.thumbnail:
                names = {name: getattr(alert, name) for name in alert.__struct_fields__}
                whole = Alert(**names | {"thumbnail": before.thumbnail})
                return whole, encode(whole)
        return alert, payload

    def _bind_pair(self) -> tuple[str, str]:
        """Bind data and snapshot to neighbouring ports, and return them; with port 0, until a free pair is found."""
        any_port = self._endpoint.startswith("tcp://") and split_tcp(self._endpoint)[1] == 0
        for attempt in range(_PORT_TRIES if any_port else 1):
            self._data = self._socket(zmq.XPUB, self._queue, MAX_INCOMING_BYTES)
            self._data.setsockopt(zmq.XPUB_VERBOSE, 1)
            self._snapshot = self._socket(zmq.ROUTER, _PAGES_IN_FLIGHT, MAX_INCOMING_BYTES)
            self._snapshot.setsockopt(zmq.RCVHWM, _REQUESTS_A_POLL)
            self._snapshot.setsockopt(zmq.ROUTER_MANDATORY, 1)
            try:
                data = bind(self._data, self._endpoint)
                return data, bind(self._snapshot, derived_endpoint(data, "snapshot"))
            except TransportError:
                self._data.close(0)
                self._snapshot.close(0)
                if attempt + 1 == (_PORT_TRIES if any_port else 1):
                    raise
        raise AssertionError("no attempt was made")

    def _socket(self, kind: int, queue: int, max_bytes: int) -> zmq.Socket:
        assert self._context is not None
        socket = make_socket(self._context, kind, queue=queue, max_bytes=max_bytes, endpoint=self._endpoint)
        secure_server(socket, self._keys, "data")
        self.connections.watch(self._context, socket)
        return socket

    def _open_control(self, data: str) -> dict[str, str]:
        if not self._control_endpoint:
            return {}
        if self._control is None:
            if self._clock is None:
                raise TransportError("a control endpoint needs a clock")
            endpoint = self._control_endpoint
            if endpoint == "auto":
                any_port = self._endpoint.startswith("tcp://") and split_tcp(self._endpoint)[1] == 0
                endpoint = derived_endpoint(self._endpoint if any_port else data, "control")
            self._control = ControlServer(endpoint, clock=self._clock, keys=self._keys)
        self._control.open(self._context, self.connections)
        self._poller.register(self._control.socket, zmq.POLLIN)
        return {"control": self._control.bound_endpoint}

    def _own_message(self, kind: str, payload: bytes) -> Message:
        try:
            message = decode(payload)
        except DecodeError as error:
            raise EncodeError(f"payload for {kind}: {error}") from None
        if kind_of(message) != kind or message.agent != self._agent_id:
            raise EncodeError(f"payload is {kind_of(message)} of {message.agent}, not {kind} of {self._agent_id}")
        return message

    def _fits(self, kind: str, size: int) -> bool:
        """Return whether any `queue` messages in a row, as a stopped subscriber may hold, stay below the limits.

        libzmq bounds a subscriber's queue by a count of messages, not by bytes.
        """
        held = list(self._window)[1:] if len(self._window) == self._window.maxlen else list(self._window)
        total = sum(held_size for held_size, _ in held) + size
        bulk = sum(held_size for held_size, is_bulk in held if is_bulk) + size
        return total <= STALL_BYTES and (bulk <= BULK_BYTES or not _is_bulk(kind))

    def _send_late(self) -> None:
        """Send what was held back and has room now, each kind in order."""
        waiting: set[str] = set()
        for (kind, key), (sequence, payload) in list(self._late.items()):
            if kind in waiting or not self._fits(kind, len(payload)):
                waiting.add(kind)
                continue
            del self._late[kind, key]
            self._sequences[kind] = sequence
            self._transmit(kind, payload)

    def _of_what_was_sent(self, status: Status) -> tuple[Status, bytes]:
        """Return a heartbeat that counts of each kind what was made before the first message held back."""
        sequences = dict(status.sequences)
        for (kind, _), (sequence, _) in self._late.items():
            sequences[kind] = min(sequence, sequences.get(kind, sequence))
        names = {name: getattr(status, name) for name in status.__struct_fields__}
        told = Status(**names | {"sequences": sequences})
        return told, encode(told)

    def _drop(self, kind: str) -> None:
        self.drops[kind] = self.drops.get(kind, 0) + 1

    def _transmit(self, kind: str, payload: bytes) -> bool:
        frames = [topic_bytes(self._agent_id, kind), payload]
        self._window.append((len(payload), _is_bulk(kind)))
        self.tx_bytes[kind] = self.tx_bytes.get(kind, 0) + len(payload)
        # With NODROP the socket refuses as soon as one subscriber's queue is full: that is the only way to learn
        # of a drop. The second try drops for that one alone and serves the others.
        self._data.setsockopt(zmq.XPUB_NODROP, 1)
        if try_send(self._data, frames):
            return True
        self._drop(kind)
        self._data.setsockopt(zmq.XPUB_NODROP, 0)
        try_send(self._data, frames)
        return False

    def _serve_joiners(self) -> None:
        """Send last values to new plain subscribers; all others know them by sequence and drop them."""
        prefixes = set()
        for _ in range(_REQUESTS_A_POLL):
            frames = try_receive(self._data)
            if frames is None:
                break
            if len(frames) == 1 and frames[0][:1] == b"\x01":
                prefixes.add(frames[0][1:])
        self._old_joined |= any(prefix.startswith(f"v{FIRST_SCHEMA}/".encode()) for prefix in prefixes)
        for kind, topic in TOPICS.items():
            name = topic_bytes(self._agent_id, kind)
            if topic.on_join and any(name.startswith(prefix) for prefix in prefixes):
                for payload in self._cache.of_kind(kind):
                    if self._fits(kind, len(payload)):
                        self._transmit(kind, payload)

    def _serve_snapshots(self) -> None:
        for _ in range(_REQUESTS_A_POLL):
            frames = try_receive(self._snapshot)
            if frames is None:
                return
            try:
                peer, payload = frames
                request = decode_struct(payload, PageRequest, MAX_REQUEST_BYTES)
            except (ValueError, DecodeError):
                continue
            after = request.stamp if request.epoch == self._epoch else 0
            if request.schema < SCHEMA:
                self._answer_old(peer, request)
                continue
            items, stamp, done = self._cache.page(after)
            page = Page(id=request.id, epoch=self._epoch, stamp=stamp, done=done, sequences=self._sequences)
            body = [part for kind, item in items for part in (topic_bytes(self._agent_id, kind), item)]
            try_send(self._snapshot, [peer, encode_struct(page, MAX_PAGE_HEAD_BYTES), *body])

    def _answer_old(self, peer: bytes, request: PageRequest) -> None:
        """Answer a station that reads schema 1 alone: one notice that it can read, and nothing that it cannot."""
        page = Page(id=request.id, epoch=self._epoch, stamp=0, done=True, sequences={})
        topic = topic_bytes(self._agent_id, "log", FIRST_SCHEMA)
        body = [topic, self._notice_to_old(self._last)] if self._last is not None else []
        try_send(self._snapshot, [peer, encode_struct(page, MAX_PAGE_HEAD_BYTES), *body])

    def _notice_to_old(self, last: Message) -> bytes:
        common = {name: getattr(last, name) for name in ("agent", "run", "boot", "epoch", "t_ns", "mono_ns", "wall_ns")}
        text = f"this agent speaks wire schema {SCHEMA}: a station that reads {FIRST_SCHEMA} alone must be updated"
        return encode(LogNotice(**common, schema=FIRST_SCHEMA, sequence=0, level="error", code="schema", text=text))


def _is_bulk(kind: str) -> bool:
    return TOPICS[kind].max_bytes > _BULK_MESSAGE_BYTES
