"""A modem's doorway: one UDP datagram a frame, to and from the driver program that owns the modem.

Used by the agent's sender thread, ground stations and `stillwatch linksim`. One thread owns it. It never blocks and
knows nothing of what a frame holds.
"""

import os
import pathlib
import socket
from urllib.parse import urlsplit

from stillwatch.transport.wire import LinkError, SecurityError

MAX_FRAME_BYTES = 2048
_MAX_READ = 256  # datagrams a call, so that a flood cannot hold the caller


def parse_endpoint(endpoint: str, name: str = "link.endpoint") -> tuple[str, int]:
    """Return (host, port) of `udp://HOST:PORT`, or raise LinkError."""
    parts = urlsplit(endpoint)
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if parts.scheme != "udp" or not host or port is None or parts.path not in ("", "/"):
        raise LinkError(f"{name}: {endpoint!r} is not udp://HOST:PORT; write it so")
    return host, port


def read_link_key(key_file: str) -> bytes:
    """Return the key that both ends share: 64 hex digits in a file that only its owner may read; empty for none.

    Raises
    ------
    SecurityError
        The file cannot be read, others may read it, or it holds something else. What it holds is never shown.
    """
    if not key_file:
        return b""
    try:
        mode = os.stat(key_file).st_mode & 0o777
        text = pathlib.Path(key_file).read_text("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "no text"  # never what the file holds
        raise SecurityError(f"link.key_file {key_file}: cannot be read: {why}; it must hold 64 hex digits") from None
    if mode & 0o077:
        raise SecurityError(f"link.key_file {key_file}: mode {mode:04o} lets others read the key; expected 0600")
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if len(key) != 32:
        raise SecurityError(f"link.key_file {key_file}: must hold 64 hex digits")
    return key


class ThinPort:
    """A UDP socket that sends frames to one peer and hands over what arrives.

    Parameters
    ----------
    bind, peer : (host, port) or None
        Where to listen (port 0: any) and whom to send to. Without a peer, the last one that was heard is answered.

    Attributes
    ----------
    address : (host, port)
        As bound.
    send_errors, ignored : int
        Datagrams the system refused; those of strangers or over 2048 bytes.
    """

    def __init__(self, bind: tuple[str, int], peer: tuple[str, int] | None = None):
        self.send_errors = self.ignored = 0
        opened, end = None, bind
        try:
            family, _, _, _, address = socket.getaddrinfo(*bind, type=socket.SOCK_DGRAM)[0]
            self._peer = None
            if peer is not None:
                end = peer
                self._peer = socket.getaddrinfo(*peer, family, socket.SOCK_DGRAM)[0][4]
                end = bind
            opened = socket.socket(family, socket.SOCK_DGRAM)
            opened.setblocking(False)
            opened.bind(address)
        except OSError as error:
            if opened is not None:
                opened.close()
            raise LinkError(
                f"link endpoint {end[0]}:{end[1]}: {error.strerror or error}; give another port or host"
            ) from error
        self._socket = opened
        self._follows = peer is None
        self.address = self._socket.getsockname()[:2]

    def fileno(self) -> int:
        """Return the socket's descriptor, for select."""
        return self._socket.fileno()

    def send(self, frames: list[bytes]) -> int:
        """Send each frame as one datagram; return how many were taken. What is refused is counted, not raised."""
        if self._peer is None:
            return 0
        sent = 0
        for frame in frames:
            try:
                self._socket.sendto(frame, self._peer)
                sent += 1
            except OSError:
                self.send_errors += 1
        return sent

    def receive(self) -> list[bytes]:
        """Return the datagrams that are there, at most 256."""
        frames: list[bytes] = []
        for _ in range(_MAX_READ):
            try:
                frame, sender = self._socket.recvfrom(MAX_FRAME_BYTES + 1)
            except BlockingIOError:
                break
            except OSError:  # an ICMP answer to an earlier send: the peer is not there yet
                continue
            if self._follows:
                self._peer = sender
            if len(frame) > MAX_FRAME_BYTES or sender[:2] != (self._peer or sender)[:2]:
                self.ignored += 1
                continue
            frames.append(frame)
        return frames

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()
