"""The newest frame of an agent, asked for while somebody looks: once a second at most, however many look.

Used by the page's handlers. Frames go by the control socket, so that an agent nobody looks at sends none; one
that does not answer is left alone for a while. What comes is decoded and encoded again before a browser sees it.
"""

import threading
import time
from dataclasses import dataclass, field
from typing import Any

from stillwatch.base import RealClock
from stillwatch.tools.station.ingest.pictures import safe_picture
from stillwatch.transport.live import ClientKeys, ControlClient
from stillwatch.transport.wire import TransportError

FRESH_S, DEADLINE_S = 0.9, 2.0
LEFT_ALONE_S = 20.0
WIDTH_PX, MOST_BYTES = 960, 90_000
AT_ONCE = 8  # agents that are asked at the same time
MOST_AGENTS = 256


@dataclass(frozen=True, slots=True)
class Control:
    """Where an agent takes commands, and the keys for it."""

    endpoint: str
    keys: ClientKeys | None = None


@dataclass(slots=True)
class Seen:
    """What an agent showed last."""

    turn: threading.Lock = field(default_factory=threading.Lock)
    at: float = -1e9
    left_alone_until: float = 0.0
    frame: int = -1
    wall_ns: int = 0
    jpeg: bytes = b""


class Views:
    """The newest frames, by agent. Any thread may ask; the others get what the one who asks brings."""

    def __init__(self) -> None:
        self._seen: dict[str, Seen] = {}
        self._lock = threading.Lock()
        self._asking = threading.Semaphore(AT_ONCE)

    def newest(self, agent: str, control: Control) -> Seen | None:
        """Return what the agent shows now, or None: it does not answer, or not with a picture."""
        with self._lock:
            if agent not in self._seen and len(self._seen) >= MOST_AGENTS:
                return None
            seen = self._seen.setdefault(agent, Seen())
        with seen.turn:
            now = time.monotonic()
            if now - seen.at > FRESH_S and now >= seen.left_alone_until:
                if not self._asking.acquire(timeout=DEADLINE_S):
                    return None
                try:
                    self._ask(seen, control)
                finally:
                    self._asking.release()
            return seen if time.monotonic() - seen.at < FRESH_S + DEADLINE_S and seen.jpeg else None

    def _ask(self, seen: Seen, control: Control) -> None:
        client = ControlClient(control.endpoint, clock=RealClock(), keys=control.keys)
        wanted: dict[str, Any] = {"width_px": WIDTH_PX, "max_bytes": MOST_BYTES}
        try:
            client.open()
            reply = client.request("request_picture", wanted, timeout_s=DEADLINE_S)
        except TransportError:
            seen.left_alone_until = time.monotonic() + LEFT_ALONE_S
            return
        finally:
            client.close()
        frame, wall_ns = reply.result.get("frame"), reply.result.get("wall_ns")
        frame = frame if isinstance(frame, int) and -1 <= frame < 2**62 else -1
        wall_ns = wall_ns if isinstance(wall_ns, int) and 0 <= wall_ns < 2**62 else 0
        picture = safe_picture(reply.attachment, frame=frame, at_ns=wall_ns, boxes=[]) if reply.ok else None
        if picture is None:
            seen.left_alone_until = time.monotonic() + LEFT_ALONE_S
            return
        seen.at, seen.frame, seen.wall_ns, seen.jpeg = time.monotonic(), frame, wall_ns, picture.data

    def shown(self, agent: str) -> bytes:
        """Return the bytes of what was shown last; empty where nothing was."""
        seen = self._seen.get(agent)
        return seen.jpeg if seen is not None else b""
