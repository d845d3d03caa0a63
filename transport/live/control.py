"""The control plane: commands to the agent on a socket of their own, typed, with ids and deadlines.

ControlServer is owned by the agent's sender thread; ControlClient by a ground tool. A command must be carried
out at most once, however often it arrives, and always gets an answer.
"""

import secrets
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import zmq
from msgspec import Meta

from stillwatch.transport.base import Clock
from stillwatch.transport.live.connections import Connections
from stillwatch.transport.live.endpoints import bind, connect, make_socket, try_receive, try_send
from stillwatch.transport.live.security import (
    ClientKeys,
    ServerKeys,
    ZapHandler,
    require_secure,
    secure_client,
    secure_server,
)
from stillwatch.transport.wire import (
    NAMED_PATTERN,
    PATCH_MODEL,
    Count,
    DecodeError,
    EncodeError,
    Name,
    Position,
    Text,
    TransportError,
    decode_struct,
    encode_struct,
)

MAX_REQUEST_BYTES = 2048
MAX_REPLY_BYTES = 256 * 1024
REMEMBERED = 256  # replies kept for requests that come again
MAX_WAITING = 16  # commands that the agent has not answered yet
_REQUESTS_A_POLL = 64
_REPLIES_IN_FLIGHT = 4

Scalar = bool | int | float | str | None
Value = Scalar | list[Scalar] | dict[str, Scalar]


class NoArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """For commands that take none."""


class AlertBudget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Alerts an hour that a person may be called for."""

    alerts_per_hour: Annotated[float, Meta(gt=0.0, le=3600.0)]


class ComponentLabel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A person's name for a component of a mixture, or for a kind of visits; it changes no model."""

    which: Annotated[str, Meta(pattern=NAMED_PATTERN)] = PATCH_MODEL
    component: Count
    label: Name


class ExemplarRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Asks for an exemplar's picture at higher quality (JPEG quality, longest side in pixels)."""

    id: Count
    quality: Annotated[int, Meta(ge=1, le=100)] = 80
    longest_px: Annotated[int, Meta(ge=16, le=4096)] = 640


class PictureRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Asks for the newest frame as a JPEG, no wider and no longer than this: who asks knows what the link bears."""

    width_px: Annotated[int, Meta(ge=16, le=1920)] = 640
    max_bytes: Annotated[int, Meta(ge=1000, le=240_000)] = 60_000


COMMANDS: dict[str, type[msgspec.Struct]] = {
    "status": NoArguments,
    "snapshot": NoArguments,
    "flush": NoArguments,
    "set_alert_budget": AlertBudget,
    "label_component": ComponentLabel,
    "request_exemplar": ExemplarRequest,
    "request_picture": PictureRequest,
    "set_nav": Position,
}


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A command on the wire. The same `id` again means the same command, not another one."""

    id: Annotated[str, Meta(min_length=8, max_length=64)]
    command: Name
    deadline_s: Annotated[float, Meta(gt=0.0, le=3600.0)] = 5.0
    arguments: Annotated[dict[Name, Scalar], Meta(max_length=32)] = {}


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """The answer. `error` is empty when `ok`; `attachment` is a picture or an encoded message, or empty."""

    id: str
    ok: bool
    error: Text = ""
    result: Annotated[dict[Name, Value], Meta(max_length=64)] = {}
    attachment: bytes = b""


@dataclass(frozen=True, slots=True)
class Command:
    """A command that the agent must answer with `reply`: its name and the struct of `COMMANDS[name]`."""

    id: str
    name: str
    arguments: Any
    expires_mono_ns: int

    def is_expired(self, now_ns: int) -> bool:
        """Return whether the sender has stopped waiting: it need not be carried out any more."""
        return now_ns > self.expires_mono_ns


@dataclass(slots=True)
class _Entry:
    """What is known of one request id: what it asked, who wants the answer, and the answer once there is one."""

    asked: tuple[str, Mapping[str, Scalar]]
    peer: bytes
    expires_ns: int
    reply: bytes | None = None
    is_final: bool = False


class ControlServer:
    """ROUTER socket that validates commands, hands each to the agent once, and remembers the answers.

    Raises SecurityError at construction for an endpoint that strangers could reach without keys.
    """

    def __init__(self, endpoint: str, *, clock: Clock, keys: ServerKeys | None = None):
        require_secure(endpoint, keys)
        self.refused: dict[str, int] = {}  # requests not handed on, by cause
        self._endpoint, self._clock, self._keys = endpoint, clock, keys
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._own_context: zmq.Context | None = None
        self._zap: ZapHandler | None = None

    def open(self, context: zmq.Context | None = None, connections: Connections | None = None) -> None:
        """Bind in the calling thread. A context that is passed in must already have its ZapHandler, served there.

        May be opened again after `close`: which commands came before is not forgotten.
        """
        if context is None:
            context = self._own_context = zmq.Context(io_threads=1)
            self._zap = ZapHandler(context, self._keys)
        self.socket = make_socket(
            context, zmq.ROUTER, queue=_REPLIES_IN_FLIGHT, max_bytes=MAX_REQUEST_BYTES, endpoint=self._endpoint
        )
        self.socket.setsockopt(zmq.RCVHWM, _REQUESTS_A_POLL)
        self.socket.setsockopt(zmq.ROUTER_MANDATORY, 1)
        secure_server(self.socket, self._keys, "control")
        if connections is not None:
            connections.watch(context, self.socket)
        try:
            self.bound_endpoint = self._endpoint = bind(self.socket, self._endpoint)
        except TransportError:
            self.close()
            raise

    def poll(self, timeout_ms: int) -> list[Command]:
        """Wait for a request until nothing comes for `timeout_ms`, then `receive`: for a server of its own context."""
        assert self._zap is not None
        poller = zmq.Poller()
        poller.register(self.socket, zmq.POLLIN)
        poller.register(self._zap.socket, zmq.POLLIN)
        while self._zap.socket in (ready := dict(poller.poll(timeout_ms))) and self.socket not in ready:
            self._zap.serve()
        return self.receive()

    def receive(self) -> list[Command]:
        """Return new commands; answer by itself what is malformed, unknown, repeated or too late."""
        commands = []
        now = self._clock.monotonic_ns()
        for _ in range(_REQUESTS_A_POLL):
            frames = try_receive(self.socket)
            if frames is None:
                break
            command = self._admit(frames, now)
            if command is not None:
                commands.append(command)
        self._expire(now)
        return commands

    def reply(
        self, command: Command, result: dict[str, Value] | None = None, error: str = "", attachment: bytes = b""
    ) -> bool:
        """Answer a command, now and whenever its id comes again; return False for one that is no longer known."""
        entry = self._entries.get(command.id)
        if entry is None or entry.is_final:
            return False
        reply = Reply(id=command.id, ok=not error, error=error[:256], result=result or {}, attachment=attachment)
        try:
            entry.reply = encode_struct(reply, MAX_REPLY_BYTES)
        except EncodeError as fault:
            entry.reply = encode_struct(Reply(id=command.id, ok=False, error=str(fault)[:256]), MAX_REPLY_BYTES)
        entry.is_final = True
        return try_send(self.socket, [entry.peer, entry.reply])

    def close(self, linger_ms: int = 200) -> None:
        """Close the socket, and the context if it is ours. Answers get a moment to leave. May be called twice."""
        if hasattr(self, "socket"):
            self.socket.close(linger_ms)
        if self._zap is not None:
            self._zap.close()
        if self._own_context is not None:
            self._own_context.term()
        self._own_context = self._zap = None

    def _admit(self, frames: list[bytes], now: int) -> Command | None:
        try:
            peer, payload = frames
            request = decode_struct(payload, Request, MAX_REQUEST_BYTES)
        except (ValueError, DecodeError):
            self._count("malformed")
            return None
        asked = request.command, request.arguments
        known = self._entries.get(request.id)
        if known is not None:
            self._repeat(known, peer, request.id, asked)
            return None
        try:
            arguments = _arguments(request)
        except DecodeError as error:
            self._refuse(peer, request.id, "invalid", str(error))
            return None
        if sum(entry.reply is None for entry in self._entries.values()) >= MAX_WAITING:
            self._refuse(peer, request.id, "busy", f"{MAX_WAITING} commands are waiting: try again")
            return None
        expires = now + int(request.deadline_s * 1e9)
        self._entries[request.id] = _Entry(asked, peer, expires)
        self._forget_oldest()
        return Command(request.id, request.command, arguments, expires)

    def _repeat(self, known: _Entry, peer: bytes, request_id: str, asked: tuple[str, Mapping[str, Scalar]]) -> None:
        if asked != known.asked:
            self._refuse(peer, request_id, "reused", "this id was used for another command")
            return
        known.peer = peer  # a client that reconnected has a new routing id
        if known.reply is not None:
            try_send(self.socket, [peer, known.reply])

    def _refuse(self, peer: bytes, request_id: str, cause: str, text: str) -> None:
        self._count(cause)
        reply = encode_struct(Reply(id=request_id, ok=False, error=text[:256]), MAX_REPLY_BYTES)
        try_send(self.socket, [peer, reply])

    def _expire(self, now: int) -> None:
        """Tell clients whose deadline has passed; the true answer still replaces this one for later repeats."""
        for request_id, entry in self._entries.items():
            if entry.reply is None and now > entry.expires_ns:
                self._count("expired")
                text = "deadline passed before the agent answered: it may still be carried out"
                entry.reply = encode_struct(Reply(id=request_id, ok=False, error=text), MAX_REPLY_BYTES)
                try_send(self.socket, [entry.peer, entry.reply])

    def _forget_oldest(self) -> None:
        for request_id in list(self._entries):
            if len(self._entries) <= REMEMBERED:
                return
            if self._entries[request_id].reply is not None:
                del self._entries[request_id]

    def _count(self, cause: str) -> None:
        self.refused[cause] = self.refused.get(cause, 0) + 1


def _arguments(request: Request) -> msgspec.Struct:
    kind = COMMANDS.get(request.command)
    if kind is None:
        raise DecodeError(f"command {ascii(request.command)} is unknown: one of {', '.join(COMMANDS)}")
    unknown = sorted(set(request.arguments) - set(kind.__struct_fields__))
    if unknown:
        raise DecodeError(f"{request.command}: argument {ascii(unknown[0])} is unknown")
    try:
        return msgspec.convert(dict(request.arguments), kind)
    except msgspec.ValidationError as error:
        raise DecodeError(f"{request.command}: {error}") from None


class ControlClient:
    """DEALER socket of a ground tool. One thread; `request` waits for its answer, never for ever."""

    def __init__(self, endpoint: str, *, clock: Clock, keys: ClientKeys | None = None):
        self._endpoint, self._clock, self._keys = endpoint, clock, keys
        self._context: zmq.Context | None = None

    def open(self) -> None:
        """Connect, in the background, from the calling thread."""
        self._context = zmq.Context(io_threads=1)
        try:
            self._connect()
        except TransportError:
            self.close()
            raise

    def request(
        self,
        command: str,
        arguments: dict[str, Scalar] | None = None,
        *,
        timeout_s: float = 5.0,
        retry_s: float = 1.0,
        request_id: str = "",
    ) -> Reply:
        """Send a command, again under the same id every `retry_s`, until an answer or the timeout.

        Raises
        ------
        TransportError
            No answer: whether the command was carried out is then unknown; the same `request_id` asks again.
        """
        request_id = request_id or secrets.token_hex(16)
        start = self._clock.monotonic_ns()
        while (left := timeout_s - (self._clock.monotonic_ns() - start) / 1e9) > 0.0:
            request = Request(id=request_id, command=command, deadline_s=left, arguments=arguments or {})
            reply = self._ask(request, min(left, retry_s))
            if reply is not None:
                return reply
            self._socket.close(0)  # a peer that went away without a word keeps a socket waiting for ever
            self._connect()
        raise TransportError(
            f"no answer to {command} from {self._endpoint} within {timeout_s:g} s (id {request_id}); "
            "is it its control endpoint, and are keys needed?"
        )

    def close(self) -> None:
        if self._context is not None:
            self._socket.close(0)
            self._context.term()
            self._context = None

    def _connect(self) -> None:
        assert self._context is not None
        self._socket = make_socket(
            self._context, zmq.DEALER, queue=_REQUESTS_A_POLL, max_bytes=MAX_REPLY_BYTES, endpoint=self._endpoint
        )
        secure_client(self._socket, self._keys)
        connect(self._socket, self._endpoint)

    def _ask(self, request: Request, wait_s: float) -> Reply | None:
        """Send as soon as somebody is there, and return the answer if it comes in time."""
        end = self._clock.monotonic_ns() + int(wait_s * 1e9)
        if self._socket.poll(max(1, int(wait_s * 1000)), zmq.POLLOUT):
            try_send(self._socket, [encode_struct(request, MAX_REQUEST_BYTES)])
        return self._await(request.id, end)

    def _await(self, request_id: str, end: int) -> Reply | None:
        while (left_ns := end - self._clock.monotonic_ns()) > 0:
            if not self._socket.poll(max(1, left_ns // 1_000_000)):
                continue
            frames = try_receive(self._socket)
            if frames is None or len(frames) != 1:
                continue
            try:
                reply = decode_struct(frames[0], Reply, MAX_REPLY_BYTES)
            except DecodeError:
                continue
            if reply.id == request_id:
                return reply
        return None
