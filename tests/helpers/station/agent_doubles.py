"""Agents on the live plane whose messages are made by hand: what tests of the station hear."""

import threading
import time

import numpy as np

from stillwatch.base import RealClock
from stillwatch.transport.live import Publisher
from stillwatch.transport.wire import Alert, Headers, Scores, Status, encode, kind_of


def jpeg(width: int = 32, height: int = 24, grey: int = 90) -> bytes:
    """A picture of one grey."""
    import cv2

    return cv2.imencode(".jpg", np.full((height, width, 3), grey, np.uint8))[1].tobytes()


class AgentDouble:
    """One agent: makes messages under proper headers and publishes them. Used by one thread, or with `serve`."""

    def __init__(self, agent, endpoint, *, epoch=1, run="run1", wall_offset_s=0.0, keys=None):
        self.agent, self.clock = agent, RealClock()
        self.headers = Headers(agent, run, "boot1", epoch)
        self.publisher = Publisher(endpoint, agent, clock=self.clock, keys=keys)
        self.publisher.open()
        self.endpoint = self.publisher.bound_endpoint
        self.sent: dict[str, int] = {}
        self._offset_ns = int(wall_offset_s * 1e9)
        self._turn = threading.RLock()
        self._stop = threading.Event()
        self._thread = None
        self.frame = 0
        self._scored = 0

    def serve(self) -> "AgentDouble":
        """Answer joiners and snapshots from a thread of its own."""
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        return self

    def _serve(self):
        while not self._stop.is_set():
            with self._turn:
                self.publisher.poll(2)
            time.sleep(0.002)

    def send(self, kind, **fields):
        """Publish one message; returns it."""
        with self._turn:
            now_ns = self.clock.wall_ns()
            header = self.headers.next(
                kind, t_ns=now_ns, mono_ns=self.clock.monotonic_ns(), wall_ns=now_ns + self._offset_ns,
                frame=fields.pop("frame", self.frame),
            )  # fmt: skip
            message = kind(**header, **fields)
            self.publisher.send(kind_of(message), encode(message))
            self.sent[kind_of(message)] = self.sent.get(kind_of(message), 0) + 1
            return message

    def status(self, **fields):
        """Publish a heartbeat."""
        return self.send(Status, **{"state": "live", "sequences": self.headers.sequences(), **fields})

    def alert(self, number: int, phase: str = "new", **fields):
        """Publish one phase of an alert."""
        return self.send(Alert, **{"id": number, "phase": phase, "severity": 0.5, "rarity": 500.0, **fields})

    def scores(self, n: int = 10, hz: float = 10.0, value: float = 1.0):
        """Publish one batch of scores."""
        self.frame += n
        offsets = ((np.arange(n) - n + 1) * (1e4 / hz)).astype(np.int16)
        flags = np.full(n, 4 | 8, np.uint8)
        values = np.full(n, value, np.float16)
        self._scored += n
        return self.send(
            Scores, first=self._scored - n, offsets=offsets, flags=flags, values=values, rarities=values + 1
        )

    def close(self):
        """Stop serving and close."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(5)
        self.publisher.close()
