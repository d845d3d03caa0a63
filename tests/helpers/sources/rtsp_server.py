"""A small RTSP server for tests: one H.264 clip in a loop, RTP over TCP or UDP, with faults on request.

Used by tests of live sources. Speaks just what RFC 2326 and RFC 6184 ask of a camera: OPTIONS, DESCRIBE, SETUP,
PLAY, GET_PARAMETER, TEARDOWN; single NAL units and FU-A fragments.
"""

import base64
import hashlib
import itertools
import socket
import ssl
import struct
import threading
import time
from collections.abc import Iterable

import av
import numpy as np

MOST_PAYLOAD = 1200
REALM = "camera"


def encode_h264(frames: Iterable[np.ndarray], rate: int = 25) -> list[list[bytes]]:
    """Return access units, each a list of NAL units; every key frame carries its parameter sets."""
    units: list[list[bytes]] = []
    codec = av.CodecContext.create("libx264", "w")
    options = {"g": "10", "bf": "0", "preset": "ultrafast", "x264-params": "repeat-headers=1:annexb=1:scenecut=0"}
    packets = []
    for index, image in enumerate(frames):
        if index == 0:
            codec.height, codec.width = image.shape[:2]
            codec.pix_fmt, codec.framerate, codec.options = "yuv420p", rate, options
            codec.thread_count = 1
        frame = av.VideoFrame.from_ndarray(image, format="bgr24").reformat(format="yuv420p")
        frame.pts = index
        packets += codec.encode(frame)
    packets += codec.encode(None)
    for packet in packets:
        data = bytes(packet).replace(b"\x00\x00\x00\x01", b"\x00\x00\x01")
        units.append([nal for nal in data.split(b"\x00\x00\x01") if nal])
    return units


class RtspServer:
    """Publish `units` at `rate_hz` for ever. Faults: `kill`, `start` again, `silence`, `publish` another clip."""

    def __init__(
        self,
        units: list[list[bytes]],
        *,
        rate_hz: float = 25.0,
        user: str = "",
        password: str = "",
        digest: bool = False,
        tls: ssl.SSLContext | None = None,
        start_delay_s: float = 0.0,
    ):
        self._units = units
        self._rate_hz = rate_hz
        self._user, self._password, self._digest = user, password, digest
        self._tls = tls
        self._start_delay_s = start_delay_s
        self._listener: socket.socket | None = None
        self._clients: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._alive = threading.Event()
        self.silent = threading.Event()
        self.port = 0
        self.requests: list[str] = []
        self.plays = 0

    def url(self, *, user: str = "", password: str = "") -> str:
        scheme = "rtsps" if self._tls else "rtsp"
        login = f"{user}:{password}@" if user else ""
        return f"{scheme}://{login}127.0.0.1:{self.port}/cam"

    def start(self) -> "RtspServer":
        """Listen, at the same port as before if there was one."""
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self.port))
        listener.listen(16)
        self.port = listener.getsockname()[1]
        self._listener = listener
        self._alive.set()
        self.silent.clear()
        self._spawn(self._accept, listener)
        return self

    def publish(self, units: list[list[bytes]]) -> None:
        """Go on with another clip, from its first (key) frame, in the sessions that play."""
        self._units = units

    def kill(self) -> None:
        """Vanish as a camera that lost its power: connections are reset, the port refuses."""
        self._alive.clear()
        with self._lock:
            sockets, self._clients = [self._listener, *self._clients], []
        for each in sockets:
            if each is None:
                continue
            try:
                each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            each.close()
        for thread in self._threads:
            thread.join(2.0)
        self._threads.clear()

    def __enter__(self) -> "RtspServer":
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.kill()

    def _spawn(self, target, *args) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self, listener: socket.socket) -> None:
        while self._alive.is_set():
            try:
                client, _ = listener.accept()
                if self._tls is not None:
                    client = self._tls.wrap_socket(client, server_side=True)
            except (OSError, ValueError):
                if listener.fileno() < 0:
                    return
                continue
            with self._lock:
                self._clients.append(client)
            self._spawn(self._serve, client)

    def _serve(self, client: socket.socket) -> None:
        session = _Session(self, client)
        try:
            with client, client.makefile("rb") as stream:
                while self._alive.is_set() and session.answer(stream):
                    pass
        except (OSError, ValueError):
            pass
        session.playing.clear()
        session.close()


class _Session:
    """One connection: answers its requests, and plays once asked to."""

    def __init__(self, server: RtspServer, client: socket.socket):
        self._server = server
        self._client = client
        self._writing = threading.Lock()
        self._udp: socket.socket | None = None
        self._target: tuple[str, int] | None = None
        self._sequence = 0
        self.playing = threading.Event()

    def close(self) -> None:
        if self._udp is not None:
            self._udp.close()

    def answer(self, stream) -> bool:
        """Read and answer one request; False at the end of the connection."""
        first = stream.read(1)
        if not first:
            return False
        if first == b"$":  # the client's RTCP between requests
            _, length = struct.unpack(">BH", stream.read(3))
            stream.read(length)
            return True
        lines = [(first + stream.readline()).decode()]
        while (line := stream.readline().decode().strip()) != "":
            lines.append(line)
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
        method = lines[0].split()[0]
        self._server.requests.append(method)
        if self._server.silent.is_set():
            return True
        self._reply(method, headers)
        return method != "TEARDOWN"

    def _reply(self, method: str, headers: dict[str, str]) -> None:
        number = headers.get("cseq", "0")
        if method != "OPTIONS" and not self._is_allowed(method, headers):
            scheme = f'Digest realm="{REALM}", nonce="abc"' if self._server._digest else f'Basic realm="{REALM}"'
            self._send(f"RTSP/1.0 401 Unauthorized\r\nCSeq: {number}\r\nWWW-Authenticate: {scheme}\r\n\r\n")
            return
        extra, body = "", ""
        if method == "OPTIONS":
            extra = "Public: OPTIONS, DESCRIBE, SETUP, PLAY, GET_PARAMETER, TEARDOWN\r\n"
        elif method == "DESCRIBE":
            body = self._describe()
            extra = f"Content-Type: application/sdp\r\nContent-Length: {len(body)}\r\n"
        elif method == "SETUP":
            extra = f"Transport: {self._transport(headers['transport'])}\r\nSession: 1;timeout=60\r\n"
        elif method == "PLAY":
            extra = "Session: 1\r\nRange: npt=0.000-\r\n"
        self._send(f"RTSP/1.0 200 OK\r\nCSeq: {number}\r\n{extra}\r\n{body}")
        if method == "PLAY" and not self.playing.is_set():
            self.playing.set()
            self._server.plays += 1
            self._server._spawn(self._play)

    def _is_allowed(self, method: str, headers: dict[str, str]) -> bool:
        server = self._server
        if not server._password:
            return True
        given = headers.get("authorization", "")
        if not server._digest:
            return given == "Basic " + base64.b64encode(f"{server._user}:{server._password}".encode()).decode()
        fields = dict(part.strip().split("=", 1) for part in given.removeprefix("Digest ").split(",") if "=" in part)

        def md5(text: str) -> str:
            return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()

        uri = fields.get("uri", "").strip('"')
        expected = md5(md5(f"{server._user}:{REALM}:{server._password}") + ":abc:" + md5(f"{method}:{uri}"))
        return fields.get("response", "").strip('"') == expected

    def _describe(self) -> str:
        sets = [nal for nal in self._server._units[0] if nal[0] & 31 in (7, 8)]
        sprop = ",".join(base64.b64encode(nal).decode() for nal in sets)
        return (
            "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=test\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=video 0 RTP/AVP 96\r\n"
            "a=rtpmap:96 H264/90000\r\n"
            f"a=fmtp:96 packetization-mode=1; sprop-parameter-sets={sprop}\r\na=control:track0\r\n"
        )

    def _transport(self, asked: str) -> str:
        if "TCP" in asked:
            return "RTP/AVP/TCP;unicast;interleaved=0-1"
        ports = next(part for part in asked.split(";") if part.startswith("client_port=")).split("=")[1]
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._udp.bind(("127.0.0.1", 0))
        self._target = ("127.0.0.1", int(ports.split("-")[0]))
        mine = self._udp.getsockname()[1]
        return f"RTP/AVP;unicast;client_port={ports};server_port={mine}-{mine + 1}"

    def _send(self, text: str) -> None:
        with self._writing:
            self._client.sendall(text.encode())

    def _play(self) -> None:
        server = self._server
        time.sleep(server._start_delay_s)
        units = server._units
        position = 0
        started = time.monotonic()
        try:
            for number in itertools.count():
                if not (self.playing.is_set() and server._alive.is_set()):
                    return
                if server._units is not units:
                    units, position = server._units, 0
                if not server.silent.is_set():
                    self._send_unit(units[position % len(units)], round(number * 90_000 / server._rate_hz))
                position += 1
                time.sleep(max(0.0, started + (number + 1) / server._rate_hz - time.monotonic()))
        except (OSError, ValueError):
            self.playing.clear()

    def _send_unit(self, nals: list[bytes], stamp: int) -> None:
        for index, nal in enumerate(nals):
            last = index == len(nals) - 1
            if len(nal) <= MOST_PAYLOAD:
                self._send_rtp(nal, stamp, last)
                continue
            pieces = [nal[at : at + MOST_PAYLOAD] for at in range(1, len(nal), MOST_PAYLOAD)]
            for piece_index, piece in enumerate(pieces):
                is_end = piece_index == len(pieces) - 1
                kind = nal[0] & 31 | (0x80 if piece_index == 0 else 0) | (0x40 if is_end else 0)
                self._send_rtp(bytes([nal[0] & 0xE0 | 28, kind]) + piece, stamp, last and is_end)

    def _send_rtp(self, payload: bytes, stamp: int, marker: bool) -> None:
        header = struct.pack(
            ">BBHII", 0x80, 96 | (0x80 if marker else 0), self._sequence & 0xFFFF, stamp & 0xFFFFFFFF, 0x5717
        )
        self._sequence += 1
        if self._udp is not None and self._target is not None:
            self._udp.sendto(header + payload, self._target)
            return
        with self._writing:
            self._client.sendall(struct.pack(">BBH", 0x24, 0, len(header) + len(payload)) + header + payload)
