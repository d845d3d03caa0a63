"""Who is connected: counts connections to the agent's sockets, and those it turned away, by libzmq's own events.

Owned by the publisher, on the sender thread. Strangers must not grow an agent: a connection that is open costs memory
and a descriptor whoever it is, and libzmq knows no limit, so the publisher closes its ports while `is_crowded`.
"""

import struct

import zmq

from stillwatch.transport.live.endpoints import try_receive

# Of all sockets together. A station needs three; a process may often have 1,024 descriptors and needs some of them.
MAX_CONNECTIONS = 128
_EVENTS = zmq.EVENT_ACCEPTED | zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED


class Connections:
    """Counts over the life of an agent; `open` and `forget` bracket each set of sockets."""

    def __init__(self) -> None:
        self.accepted = 0  # connections that reached a socket
        self.let_in = 0  # of these: spoke our protocol, and had a key where one is needed
        self.n_open = 0
        self._monitors: list[zmq.Socket] = []

    @property
    def is_crowded(self) -> bool:
        return self.n_open > MAX_CONNECTIONS

    def watch(self, context: zmq.Context, socket: zmq.Socket) -> None:
        """Count who connects to a socket, from before it binds."""
        address = f"inproc://connections-{len(self._monitors)}"
        socket.monitor(address, _EVENTS)
        monitor = context.socket(zmq.PAIR)
        monitor.setsockopt(zmq.LINGER, 0)
        # No limit: a full queue would hold up libzmq's own thread, and with it the closing of the socket.
        monitor.setsockopt(zmq.RCVHWM, 0)
        monitor.connect(address)
        self._monitors.append(monitor)

    def count(self) -> None:
        """Take in what has happened since the last call."""
        for monitor in self._monitors:
            while (frames := try_receive(monitor)) is not None:
                (event,) = struct.unpack("=H", frames[0][:2])
                self.accepted += event == zmq.EVENT_ACCEPTED
                self.let_in += event == zmq.EVENT_HANDSHAKE_SUCCEEDED
                self.n_open += (event == zmq.EVENT_ACCEPTED) - (event == zmq.EVENT_DISCONNECTED)

    def forget(self) -> None:
        """Let go of the sockets, which are closed: nobody is connected any more."""
        self.count()
        for monitor in self._monitors:
            monitor.close(0)
        self._monitors.clear()
        self.n_open = 0
