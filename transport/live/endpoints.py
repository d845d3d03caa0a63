"""Endpoints and the options that every socket gets before it binds or connects.

Called by publisher, subscriber and control. The only place where a ZeroMQ error becomes a TransportError at
socket creation; it must not decide who may connect (transport/live/security.py does).
"""

import errno
import ipaddress
import socket as socket_module

import zmq

from stillwatch.transport.wire import TransportError

HEARTBEAT_MS = 2000
HEARTBEAT_TIMEOUT_MS = 6000
HEARTBEAT_TTL_MS = 10_000
HANDSHAKE_MS = 5000
RECONNECT_MS = 100
MOST_SOCKETS = 4096  # of one shared context
RECONNECT_MAX_MS = 10_000
SEND_BUFFER_BYTES = 128 * 1024
_OFFSETS = {"snapshot": 1, "control": 2}


def derived_endpoint(endpoint: str, role: str) -> str:
    """Return where an agent serves `snapshot` or `control`: one or two ports above, or the ipc path with a suffix."""
    if endpoint.startswith("tcp://"):
        host, port = split_tcp(endpoint)
        return f"tcp://{host}:{port + _OFFSETS[role] if port else 0}"
    if endpoint.startswith("ipc://") and len(endpoint) > len("ipc://"):
        return f"{endpoint}.{role}"
    raise TransportError(f"endpoint {endpoint!r} is neither tcp://HOST:PORT nor ipc://PATH: write it as one of them")


def split_tcp(endpoint: str) -> tuple[str, int]:
    """Return host (brackets kept) and port of `tcp://HOST:PORT`; raise TransportError for anything else."""
    host, _, port = endpoint.removeprefix("tcp://").rpartition(":")
    if not endpoint.startswith("tcp://") or not host or not port.isdecimal() or int(port) > 65_533:
        raise TransportError(f"endpoint {endpoint!r} is not tcp://HOST:PORT with a port of 0 to 65533")
    return host, int(port)


def is_private(endpoint: str) -> bool:
    """Return whether only processes of this machine can reach the endpoint: ipc, or a loopback address."""
    if endpoint.startswith(("ipc://", "inproc://")):
        return True
    host, _ = split_tcp(endpoint)
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:  # a name or an interface: it may be anything
        return False


def why_unreachable(endpoint: str, timeout_s: float = 1.0) -> str:
    """Try once to connect to an endpoint; return what is in the way, in words, or "" where somebody listens.

    ZeroMQ itself connects in the background and never says why it cannot.
    """
    try:
        if endpoint.startswith("ipc://"):
            with socket_module.socket(socket_module.AF_UNIX) as probe:
                probe.settimeout(timeout_s)
                probe.connect(endpoint.removeprefix("ipc://"))
            return ""
        host, port = split_tcp(endpoint)
        with socket_module.create_connection((host.strip("[]"), port), timeout_s):
            return ""
    except socket_module.gaierror:
        return f"the name {split_tcp(endpoint)[0]} is not known"
    except TimeoutError:
        return f"no answer in {timeout_s:g} s"
    except OSError as error:
        return (error.strerror or str(error)).lower()


class SharedContext:
    """The ZeroMQ context of many subscribers. All of them are closed before it is."""

    def __init__(self) -> None:
        self.context = zmq.Context(io_threads=1)
        self.context.set(zmq.MAX_SOCKETS, MOST_SOCKETS)

    def close(self) -> None:
        """End the context; waits for sockets that are still open."""
        self.context.term()


def make_socket(context: zmq.Context, kind: int, *, queue: int, max_bytes: int, endpoint: str) -> zmq.Socket:
    """Return a socket with bounded queues in both directions, heartbeats, no linger and a limit on what comes in."""
    socket = context.socket(kind)
    socket.setsockopt(zmq.SNDHWM, queue)
    socket.setsockopt(zmq.RCVHWM, queue)
    socket.setsockopt(zmq.LINGER, 0)
    socket.setsockopt(zmq.MAXMSGSIZE, max_bytes)
    socket.setsockopt(zmq.HEARTBEAT_IVL, HEARTBEAT_MS)
    socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, HEARTBEAT_TIMEOUT_MS)
    socket.setsockopt(zmq.HEARTBEAT_TTL, HEARTBEAT_TTL_MS)
    socket.setsockopt(zmq.HANDSHAKE_IVL, HANDSHAKE_MS)
    socket.setsockopt(zmq.RECONNECT_IVL, RECONNECT_MS)
    socket.setsockopt(zmq.RECONNECT_IVL_MAX, RECONNECT_MAX_MS)
    socket.setsockopt(zmq.TCP_KEEPALIVE, 1)
    # The buffer for sending alone: where the size of the other is fixed, the kernel drops what has no room in it,
    # and the sender repeats it after 0.2, 0.4, 0.8 ... s, through which nothing else arrives.
    socket.setsockopt(zmq.SNDBUF, SEND_BUFFER_BYTES)
    if "[" in endpoint:
        socket.setsockopt(zmq.IPV6, 1)
    return socket


def bind(socket: zmq.Socket, endpoint: str) -> str:
    """Bind and return the endpoint as bound, with the real port where 0 was asked for."""
    try:
        socket.bind(endpoint)
    except zmq.ZMQError as error:
        raise TransportError(
            f"cannot bind {endpoint}: {_reason(error)}; is another one running there? Take another port or host"
        ) from error
    bound = socket.getsockopt(zmq.LAST_ENDPOINT)
    assert isinstance(bound, bytes)
    return bound.decode().rstrip("\0")


def connect(socket: zmq.Socket, endpoint: str) -> None:
    """Connect; ZeroMQ does so in the background and tries for ever, so only a malformed endpoint raises.

    Nothing can be sent until the connection stands (POLLOUT): each connection gets a queue of its own. Where one queue
    outlives its connection, as by default, libzmq 4.3 ends the whole process (`Assertion failed: _input_stopped`): the
    queue was full, the peer was given up as silent since nothing of it was read, and a read wakes the connection after.
    """
    try:
        socket.setsockopt(zmq.IMMEDIATE, 1)
        socket.connect(endpoint)
    except zmq.ZMQError as error:
        raise TransportError(
            f"cannot connect to {endpoint}: {_reason(error)}; write it as tcp://HOST:PORT or ipc://PATH"
        ) from error


def _reason(error: zmq.ZMQError) -> str:
    """Return why an endpoint was refused, without the address that ZeroMQ repeats in its own notation."""
    if error.errno == errno.EINVAL:
        return "it is neither tcp://HOST:PORT nor ipc://PATH"
    return zmq.strerror(error.errno or 0)


def try_send(socket: zmq.Socket, frames: list[bytes]) -> bool:
    """Send without waiting; return False where the peer's queue is full or the peer is gone.

    Frames are copied: the caller may reuse its buffers at once.
    """
    try:
        socket.send_multipart(frames, flags=zmq.DONTWAIT, copy=True)
    except zmq.ZMQError as error:
        if error.errno in (zmq.EAGAIN, zmq.EHOSTUNREACH, errno.EINTR):
            return False
        raise TransportError(f"cannot send: {error.strerror}; start it anew") from error
    return True


def try_receive(socket: zmq.Socket) -> list[bytes] | None:
    """Return the frames of one waiting message, or None."""
    try:
        return socket.recv_multipart(flags=zmq.DONTWAIT)
    except zmq.ZMQError as error:
        if error.errno in (zmq.EAGAIN, errno.EINTR):
            return None
        raise TransportError(f"cannot receive: {error.strerror}; start it anew") from error
