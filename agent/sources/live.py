"""Live video through PyAV: RTSP over TCP or UDP (and TLS), MJPEG over HTTP, and V4L2 cameras by stable path.

Called by agent/sources/capture.py through agent/sources/registry.py; capture reopens it whenever it fails. Bounds
every wait it can; what it cannot bound, capture's watchdog does.
"""

import os
import socket
import stat
from typing import Any
from urllib.parse import urlsplit

import av
import av.error

from stillwatch.base import Clock, SourceError, redact_uri
from stillwatch.settings import SourceConfig
from stillwatch.sources.base import NOTHING_YET, NothingYet, PacketTap, RawFrame, SourceInfo
from stillwatch.sources.pixels import PixelScale
from stillwatch.sources.video import Decoder, reason

PROBE_TIMEOUT_S = 2.5  # a camera on its network answers in milliseconds; a dead one must not cost a retry's time
IS_IT_ON = "is the camera on, and this its address?"
DEFAULT_PORTS = {"rtsp": 554, "rtsps": 322, "http": 80, "https": 443}
REFUSALS = {
    "HTTPUnauthorizedError": "refuses the user name or password (401)",
    "HTTPForbiddenError": "forbids access (403)",
    "HTTPNotFoundError": "has no such stream (404)",
}


class _LiveSource:
    """What network streams and cameras share: open by a subclass's `_open_container`, then decode for ever."""

    live = True

    def __init__(self, info: SourceInfo, config: SourceConfig, clock: Clock):
        self.info = info
        self._config = config
        self._clock = clock
        self._scale = PixelScale(config)
        self._container: Any = None
        self._decoder: Decoder | None = None
        self.packet_tap: PacketTap | None = None

    def _open_container(self) -> Any:
        raise NotImplementedError

    def open(self) -> None:
        """Connect and find the video stream; SourceError says in a few words what the other side did."""
        try:
            self._container = self._open_container()
            self._decoder = Decoder(self._container, self.info, self._config, self._scale, self.packet_tap)
        except (av.error.FFmpegError, OSError) as error:
            self.close()
            raise SourceError(f"{self.info.uri}: {self._explain(error)}") from None

    def _explain(self, error: BaseException) -> str:
        if isinstance(error, av.error.ExitError):
            return f"not open within source.open_timeout_s = {self._config.open_timeout_s:g}"
        return REFUSALS.get(type(error).__name__) or f"cannot be opened: {reason(error)}"

    def read(self) -> RawFrame | NothingYet | None:
        """Return the next frame, or NOTHING_YET after a packet without one; None when the stream was closed."""
        if self._decoder is None:
            return None
        try:
            found = self._decoder.step()
        except (av.error.FFmpegError, OSError) as error:
            raise SourceError(f"{self.info.uri}: lost: {self._loss(error)}") from None
        if isinstance(found, RawFrame):
            return found
        return NOTHING_YET if found else None

    def _loss(self, error: BaseException) -> str:
        if isinstance(error, av.error.ExitError):  # our own time-out interrupted the read
            return f"no data for {self._config.stall_timeout_s:g} s"
        return reason(error)

    def close(self) -> None:
        self._decoder = None
        container, self._container = self._container, None
        if container is not None:
            container.close()

    def counters(self) -> dict[str, int]:
        """Return packets flagged corrupt, and packets no frame could be decoded from, since the last open."""
        if self._decoder is None:
            return {}
        return {"damaged_packets": self._decoder.corrupt_packets, "undecodable": self._decoder.undecodable}


class NetworkSource(_LiveSource):
    """An RTSP or HTTP stream. TLS certificates are checked where `source.tls_verify` says so."""

    def __init__(self, uri: str, kind: str, config: SourceConfig, clock: Clock):
        super().__init__(SourceInfo(redact_uri(uri), kind), config, clock)
        self._uri = uri

    def _open_container(self) -> Any:
        self._probe()
        config = self._config
        wait_us = str(round(config.open_timeout_s * 1e6))
        options = {
            "max_pixels": str(config.max_pixels),
            "timeout": wait_us,
            "rw_timeout": wait_us,
            "fflags": "nobuffer",
            "fpsprobesize": "0",
            "analyzeduration": "2000000",
            "probesize": "1000000",
        }
        if self.info.kind == "rtsp":
            options |= {"rtsp_transport": config.rtsp_transport, "reorder_queue_size": "64"}
        if config.tls_verify:
            options |= {"tls_verify": "1"}
        timeouts = (config.open_timeout_s, config.stall_timeout_s)
        return av.open(self._uri, options=options, timeout=timeouts, metadata_errors="ignore")

    def _probe(self) -> None:
        """Connect, ask an RTSP server for its options, and hang up.

        A dead host, or one whose kernel still accepts connections while its server hangs, is known in seconds; a
        camera that is well but slow to start its stream may still take open_timeout_s.
        """
        parts = urlsplit(self._uri)
        scheme, host = parts.scheme.lower(), parts.hostname
        port = parts.port or DEFAULT_PORTS[scheme]
        try:
            with socket.create_connection((host, port), PROBE_TIMEOUT_S) as connection:
                if scheme == "rtsp":
                    connection.settimeout(PROBE_TIMEOUT_S)
                    place = f"[{host}]" if ":" in str(host) else host
                    connection.sendall(f"OPTIONS rtsp://{place}:{port}/ RTSP/1.0\r\nCSeq: 1\r\n\r\n".encode())
                    if not connection.recv(1):
                        raise ConnectionError(0, "hangs up without an answer")
        except TimeoutError:
            raise SourceError(
                f"{self.info.uri}: no answer from {host}:{port} in {PROBE_TIMEOUT_S:g} s; {IS_IT_ON}"
            ) from None
        except OSError as error:
            raise SourceError(
                f"{self.info.uri}: cannot connect to {host}:{port}: {error.strerror}; {IS_IT_ON}"
            ) from None


class CameraSource(_LiveSource):
    """A V4L2 camera. Use a path under /dev/v4l/by-id: /dev/videoN changes when a camera is plugged in again."""

    def __init__(self, path: str, config: SourceConfig, clock: Clock):
        super().__init__(SourceInfo(f"v4l2:{path}", "v4l2"), config, clock)
        self._path = path

    def _open_container(self) -> Any:
        try:
            mode = os.stat(self._path).st_mode
        except OSError as error:
            raise SourceError(f"v4l2:{self._path}: {error.strerror} (is the camera plugged in?)") from None
        if not stat.S_ISCHR(mode):
            raise SourceError(f"v4l2:{self._path}: not a camera device; there are: ls /dev/v4l/by-id")
        options = {"max_pixels": str(self._config.max_pixels)}
        if self._config.camera_size:
            options["video_size"] = self._config.camera_size
        if self._config.camera_format:
            options["input_format"] = self._config.camera_format
        timeouts = (self._config.open_timeout_s, self._config.stall_timeout_s)
        return av.open(self._path, format="v4l2", options=options, timeout=timeouts)

    def _explain(self, error: BaseException) -> str:
        if isinstance(error, OSError) and error.errno == 16:
            return "in use by another program"
        if isinstance(error, PermissionError):
            return "access denied (is the user in the group 'video'?)"
        return super()._explain(error)
