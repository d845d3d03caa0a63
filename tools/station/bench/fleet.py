"""A fleet of agents as a station hears one: what real agents tell at their rates, from one process.

Run as a program by tools/station/bench/load.py: `fleet FOLDER N SECONDS HZ ALERTS_AN_HOUR`, one ipc endpoint an agent
in FOLDER. It prints "ready" once it listens, tells after JOIN_S, and at the end prints what it sent, as JSON.
"""

import collections
import sys
import time
from typing import Any

import numpy as np

from stillwatch.base import RealClock
from stillwatch.tools.shared import print_json
from stillwatch.transport.live import Publisher
from stillwatch.transport.wire import Alert, Exemplar, Headers, Scores, Status, encode, kind_of

JOIN_S = 12.0  # what is told before a station has joined is not lost: it was not there
REST_S = 3.0
ENDS_WITHIN = 0.2  # chance a second that an event that goes on ends
HAS_VALUE, HAS_RARITY = 4, 8


def name_of(number: int) -> str:
    """Return an agent's name."""
    return f"cam{number:03d}"


class _Agent:
    """One agent: scores a second at a time, a heartbeat, alerts with pictures."""

    def __init__(self, number: int, folder: str, pictures: list[bytes], hz: float):
        self._clock, self._pictures, self._hz = RealClock(), pictures, hz
        agent = name_of(number)
        self._headers = Headers(agent, "bench", "bench", 1)
        self.publisher = Publisher(f"ipc://{folder}/{agent}", agent, clock=self._clock)
        self.publisher.open()
        self.sent: collections.Counter[str] = collections.Counter()
        self.alerts = 0
        self._open: list[int] = []
        self._frame = 0

    def status(self) -> None:
        """Send a heartbeat."""
        self._send(
            Status,
            state="live",
            sequences=self._headers.sequences(),
            frames=self._frame,
            rate_hz=self._hz,
            learning=1.0,
            source_kind="rtsp",
            source_uri="rtsp://camera/main",
            rss_bytes=300_000_000,
        )

    def exemplar(self) -> None:
        """Send one frame that stands for what is normal."""
        self._send(Exemplar, id=0, exemplar_frame=0, share=0.4, thumbnail=self._pictures[0])

    def second(self, random: np.random.Generator, chance: float) -> None:
        """Send a second's messages."""
        n = round(self._hz)
        values = random.gamma(2.0, 0.4, n).astype(np.float16)
        self._frame += n
        self._send(
            Scores,
            first=self._frame - n,
            offsets=((np.arange(n) - n + 1) * (1e4 / self._hz)).astype(np.int16),
            flags=np.full(n, HAS_VALUE | HAS_RARITY, np.uint8),
            values=values,
            rarities=np.exp(values),
        )
        self.status()
        if random.random() < chance:
            boxes = np.array([[0.2, 0.3, 0.5, 0.6]], np.float32)
            picture = self._pictures[self.alerts % len(self._pictures)]
            more = {"picture_frame": self._frame, "boxes": boxes, "thumbnail": picture}
            self._send(Alert, id=self.alerts, phase="new", severity=0.5, rarity=5000.0, **more)
            self._open.append(self.alerts)
            self.alerts += 1
        elif self._open and random.random() < ENDS_WITHIN:
            self._send(Alert, id=self._open.pop(0), phase="end", severity=0.6, rarity=9000.0, duration_s=5.0)

    def _send(self, kind: Any, **fields: Any) -> None:
        now_ns = self._clock.wall_ns()
        mono_ns = self._clock.monotonic_ns()
        header = self._headers.next(kind, t_ns=now_ns, mono_ns=mono_ns, wall_ns=now_ns, frame=self._frame)
        message = kind(**header, **fields)
        self.publisher.send(kind_of(message), encode(message))
        self.sent[kind_of(message)] += 1


def main(folder: str, n: int, seconds: float, hz: float, alerts_an_hour: float) -> None:
    """Tell what a fleet tells, each agent at its own part of the second."""
    random = np.random.default_rng(7)
    pictures = [picture(random) for _ in range(6)]
    agents = [_Agent(number, folder, pictures, hz) for number in range(n)]
    for agent in agents:
        agent.exemplar()
    print("ready", flush=True)
    _serve(agents, JOIN_S)
    for agent in agents:
        agent.status()
    began = time.monotonic()
    due = began + random.random(n)
    while time.monotonic() < began + seconds:
        for number in np.flatnonzero(due <= time.monotonic()):
            agents[number].second(random, alerts_an_hour / 3600)
            due[number] += 1.0
        _serve(agents, 0.01)
    for agent in agents:  # a last heartbeat tells what was sent
        agent.status()
    _serve(agents, REST_S)
    sent = sum((agent.sent for agent in agents), collections.Counter())
    for agent in agents:
        agent.publisher.close()
    print_json({"sent": sent, "alerts": sum(agent.alerts for agent in agents)})


def _serve(agents: list[_Agent], seconds: float) -> None:
    """Answer joiners for some time."""
    until = time.monotonic() + seconds
    while (left_s := until - time.monotonic()) > 0:
        for agent in agents:
            agent.publisher.poll(0)
        time.sleep(min(0.02, max(left_s, 0.0)))


def picture(random: np.random.Generator) -> bytes:
    """Return a JPEG of the size of an alert's picture."""
    import cv2

    coarse = random.integers(40, 200, (12, 16, 3), dtype=np.uint8)
    image = cv2.resize(coarse, (320, 240), interpolation=cv2.INTER_CUBIC)
    return bytes(cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, 80])[1].tobytes())


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4]), float(sys.argv[5]))
