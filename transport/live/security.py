"""Who may connect: CURVE keys on disk, an allow-list for readers and one for commanders, and the ZAP handler.

Called by publisher, subscriber, control and tools/keygen.py. Keys must never be logged or printed: only their
fingerprints are. An endpoint that other machines can reach is refused without keys.
"""

import hashlib
import os
import pathlib
import re
import tomllib
from dataclasses import dataclass

import zmq
import zmq.utils.z85

from stillwatch.transport.live.endpoints import is_private, try_receive, try_send
from stillwatch.transport.wire import SecurityError

_NAME = re.compile(r"^[A-Za-z0-9_-]{1,64}$")
_ZAP_ENDPOINT = "inproc://zeromq.zap.01"
ROLES = ("data", "control")  # also the ZAP domains of the sockets


@dataclass(frozen=True, slots=True, repr=False)
class ServerKeys:
    """The agent's key pair, and the public keys (Z85) of those who may read, and of those who may command."""

    public: bytes
    secret: bytes
    allowed: dict[str, frozenset[bytes]]  # by role


@dataclass(frozen=True, slots=True, repr=False)
class ClientKeys:
    """A ground station's key pair and the public key (Z85) of the agent that it will talk to."""

    public: bytes
    secret: bytes
    server: bytes


def fingerprint(public: bytes) -> str:
    """Return 16 hex digits that people can compare; nothing can be derived from them."""
    return hashlib.sha256(public).hexdigest()[:16]


def generate_keys(folder: pathlib.Path, name: str) -> str:
    """Write `NAME.key` (secret) and `NAME.pub` into `folder`, both mode 0600; return the fingerprint.

    Raises SecurityError for a name that is no bare TOML key, and rather than replace a file.
    """
    public, secret = zmq.curve_keypair()
    head = f"# Stillwatch, fingerprint {fingerprint(public)}\n"
    _write_keys(
        folder,
        name,
        {
            ".key": f'{head}public = "{public.decode()}"\nsecret = "{secret.decode()}"\n',
            ".pub": f'{head}{name} = "{public.decode()}"\n',
        },
    )
    return fingerprint(public)


def generate_link_key(folder: pathlib.Path, name: str) -> str:
    """Write `NAME.link`, mode 0600: the 32 secret bytes that both ends of a thin link share; return its fingerprint.

    Raises SecurityError as `generate_keys` does.
    """
    secret = os.urandom(32)
    _write_keys(folder, name, {".link": f"{secret.hex()}\n"})
    return fingerprint(secret)


def _write_keys(folder: pathlib.Path, name: str, texts: dict[str, str]) -> None:
    if not _NAME.match(name):
        raise SecurityError(f"key name {name!r} is not 1 to 64 of A-Z a-z 0-9 _ -")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for suffix, text in texts.items():
            _write_private(folder / f"{name}{suffix}", text)
    except FileExistsError as error:
        raise SecurityError(f"{error.filename} exists: keys are never replaced; give another name or folder") from None
    except OSError as error:
        raise SecurityError(f"cannot write keys into {folder}: {error.strerror}; name another folder") from None


def load_server_keys(key_file: str, allow_file: str) -> ServerKeys:
    """Read an agent's key and its allow-list.

    The allow-list is TOML: lines `name = "public key"` (as NAME.pub holds) before any heading or under `[data]`
    may read; those under `[control]` may send commands and no more. Raises SecurityError.
    """
    public, secret = _load_pair(key_file)
    if not allow_file:
        raise SecurityError("publish.key_file is set and publish.allow_file is not: nobody could connect")
    table = _load_toml(allow_file)
    allowed: dict[str, set[bytes]] = {role: set() for role in ROLES}
    for name, entry in table.items():
        if not isinstance(entry, dict):
            allowed["data"].add(_public_key(allow_file, name, entry))
        elif name in ROLES:
            allowed[name].update(_public_key(allow_file, f"{name}.{key}", value) for key, value in entry.items())
        else:
            raise SecurityError(f"{allow_file}: heading [{name}] is not known; it must be [data] or [control]")
    if not allowed["data"] and not allowed["control"]:
        raise SecurityError(f"{allow_file}: lists no key, so nobody could connect; it needs a line of a NAME.pub")
    return ServerKeys(public, secret, {role: frozenset(keys) for role, keys in allowed.items()})


def load_client_keys(key_file: str, server_file: str) -> ClientKeys:
    """Read a ground station's key and the agent's `NAME.pub`, which must hold exactly one key. Raises SecurityError."""
    public, secret = _load_pair(key_file)
    table = _load_toml(server_file)
    if len(table) != 1:
        raise SecurityError(f"{server_file}: {len(table)} entries, expected the agent's public key alone")
    (name, value), *_ = table.items()
    return ClientKeys(public, secret, _public_key(server_file, name, value))


def require_secure(endpoint: str, keys: ServerKeys | None) -> None:
    """Raise SecurityError where strangers could reach an endpoint that has no keys."""
    if keys is None and not is_private(endpoint):
        raise SecurityError(
            f"endpoint {endpoint} can be reached from other machines: set publish.key_file and publish.allow_file"
            " (see stillwatch keygen), or bind 127.0.0.1 or ipc://"
        )


def secure_server(socket: zmq.Socket, keys: ServerKeys | None, role: str) -> None:
    """Make a socket a server of `role` that asks the ZapHandler, before it binds: a CURVE server where there are keys.

    Without keys it asks too: libzmq then refuses peers of ZMTP 1, for which it takes any bytes, and keeps nothing.
    """
    socket.setsockopt(zmq.ZAP_DOMAIN, role.encode())
    if keys is None:
        return
    socket.setsockopt(zmq.CURVE_SERVER, 1)
    socket.setsockopt(zmq.CURVE_PUBLICKEY, keys.public)
    socket.setsockopt(zmq.CURVE_SECRETKEY, keys.secret)


def secure_client(socket: zmq.Socket, keys: ClientKeys | None) -> None:
    """Make a socket a CURVE client, before it connects."""
    if keys is None:
        return
    socket.setsockopt(zmq.CURVE_SERVERKEY, keys.server)
    socket.setsockopt(zmq.CURVE_PUBLICKEY, keys.public)
    socket.setsockopt(zmq.CURVE_SECRETKEY, keys.secret)


class ZapHandler:
    """Answers libzmq's question "may this key connect", from the thread that owns the sockets.

    Made before any socket of the same context binds, and closed after them: libzmq lets everybody in who knows
    the server's key where no handler is there to ask. Without keys, whoever speaks ZMTP 3 is let in: only this
    machine can reach such sockets (`require_secure`). `accepted` and `refused` count handshakes.
    """

    def __init__(self, context: zmq.Context, keys: ServerKeys | None):
        self.accepted = 0
        self.refused = 0
        self._allowed = keys.allowed if keys is not None else None
        self.socket = context.socket(zmq.ROUTER)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.bind(_ZAP_ENDPOINT)

    def serve(self) -> None:
        """Answer all waiting questions (ZeroMQ RFC 27)."""
        while (frames := try_receive(self.socket)) is not None:
            if b"" not in frames:
                continue
            split = frames.index(b"") + 1
            reply = self._judge(frames[split:])
            if reply:
                try_send(self.socket, frames[:split] + reply)

    def close(self) -> None:
        self.socket.close(0)

    def _judge(self, question: list[bytes]) -> list[bytes]:
        if len(question) < 6:
            return []
        version, request, domain, _address, _identity, mechanism, *credentials = question
        known = False
        if self._allowed is None:
            known = version == b"1.0" and mechanism == b"NULL"
        elif version == b"1.0" and mechanism == b"CURVE" and len(credentials) == 1 and len(credentials[0]) == 32:
            allowed = self._allowed.get(domain.decode("ascii", "replace"), frozenset())
            known = zmq.utils.z85.encode(credentials[0]) in allowed
        self.accepted += known
        self.refused += not known
        if known:
            return [b"1.0", request, b"200", b"OK", b"", b""]
        return [b"1.0", request, b"400", b"not on the allow-list", b"", b""]


def _write_private(path: pathlib.Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w", encoding="ascii") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _load_pair(key_file: str) -> tuple[bytes, bytes]:
    table = _load_toml(key_file)
    mode = os.stat(key_file).st_mode & 0o777
    if mode & 0o077:
        raise SecurityError(f"{key_file}: mode {mode:04o} lets others read the secret key; expected 0600")
    public = _public_key(key_file, "public", table.get("public"))
    secret = _public_key(key_file, "secret", table.get("secret"))
    if zmq.curve_public(secret) != public:
        raise SecurityError(
            f"{key_file}: public and secret key do not belong together; "
            "make a pair with: stillwatch keygen, or take the whole file"
        )
    return public, secret


def _load_toml(file: str) -> dict:
    try:
        return tomllib.loads(pathlib.Path(file).read_text(encoding="utf-8"))
    except OSError as error:
        raise SecurityError(
            f"cannot read {file}: {error.strerror}; it needs to be a file of stillwatch keygen"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):  # the cause may quote the key
        raise SecurityError(f"{file}: not a key file in TOML; it needs to be one of stillwatch keygen") from None


def _public_key(file: str, name: str, value: object) -> bytes:
    """Return a Z85 key as bytes; the error text never shows the value."""
    if isinstance(value, str) and len(value) == 40:
        try:
            if len(zmq.utils.z85.decode(value.encode("ascii"))) == 32:
                return value.encode("ascii")
        except (ValueError, KeyError, UnicodeEncodeError):
            pass
    raise SecurityError(f"{file}: {name} is not a key of 40 Z85 characters; take it from a file of stillwatch keygen")
