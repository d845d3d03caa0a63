"""A simulated link: loss by range, duplicates, reordering, delay, outages, byte limits; the same for the same seed.

Used by tests, benches and `stillwatch linksim` in front of both ends of a thin link. It runs on the time that the
caller gives, real or virtual, and never looks into a frame.
"""

import heapq
import itertools
import math
from collections import Counter
from dataclasses import dataclass

import numpy as np

from stillwatch.transport.wire import LinkError


@dataclass(frozen=True, slots=True)
class LinkModel:
    """What the link does to each frame.

    Attributes
    ----------
    loss, duplicate, reorder, damage : float
        Shares of frames lost, delivered twice, held back behind later ones, delivered with one bit flipped.
    delay_s, jitter_s : float
        Time of flight, and how much is added at most.
    range_m, half_range_m : float
        With `half_range_m` above 0, frames also get lost by range: half of them there, by a logistic curve whose
        slope is that of a link that is good at half of it and dead at twice it.
    outage_every_s, outage_s : float
        The link is dead for `outage_s` at the end of each period; 0: never.
    bytes_per_s, buffer_bytes : float, int
        With `bytes_per_s` above 0 frames wait for each other, and those over the buffer are lost.
    """

    loss: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0
    damage: float = 0.0
    delay_s: float = 0.0
    jitter_s: float = 0.0
    range_m: float = 0.0
    half_range_m: float = 0.0
    outage_every_s: float = 0.0
    outage_s: float = 0.0
    bytes_per_s: float = 0.0
    buffer_bytes: int = 65536

    def __post_init__(self) -> None:
        for name in ("loss", "duplicate", "reorder", "damage"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise LinkError(f"linksim {name}: {getattr(self, name)} is outside [0, 1]")
        for name in ("delay_s", "jitter_s", "range_m", "half_range_m", "outage_every_s", "outage_s", "bytes_per_s"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0.0):
                raise LinkError(f"linksim {name}: {value} is negative or not finite; it must be 0 or more")
        if self.outage_s and self.outage_s >= self.outage_every_s:
            raise LinkError(
                f"linksim outage of {self.outage_s} s every {self.outage_every_s} s leaves no link; it must be shorter"
            )

    def is_out(self, now_ns: int) -> bool:
        """Tell whether the link is in an outage."""
        if not self.outage_s:
            return False
        return now_ns / 1e9 % self.outage_every_s >= self.outage_every_s - self.outage_s

    @property
    def range_loss(self) -> float:
        """Share of frames lost at this range."""
        if not self.half_range_m:
            return 0.0
        return 1.0 / (1.0 + math.exp(-6.0 * (self.range_m / self.half_range_m - 1.0)))


class LinkSimulator:
    """Both directions of a link, each with its own random stream.

    Attributes
    ----------
    counters : Counter
        sent, delivered, lost, outage, overrun, duplicated, reordered, damaged: frames of both directions.
    """

    def __init__(self, seed: int, model: LinkModel):
        self.model = model
        self.counters: Counter[str] = Counter()
        self._random = [np.random.default_rng([seed, direction]) for direction in (0, 1)]
        self._flying: list[list[tuple[int, int, bytes]]] = [[], []]
        self._busy_until_ns = [0, 0]
        self._order = itertools.count()

    def send(self, frame: bytes, now_ns: int, direction: int = 0) -> None:
        """Put a frame on the way: 0 to the ground, 1 to the vehicle."""
        self.counters["sent"] += 1
        model, random = self.model, self._random[direction]
        # All draws are made for every frame, so that one setting does not shift the luck of the others.
        lost, late, flip, twice, held = random.random(5)
        second_late = random.random()
        flip_at = int(random.integers(max(8 * len(frame), 1)))
        start_ns = self._transmit(len(frame), now_ns, direction)
        if start_ns is None:
            self.counters["overrun"] += 1
        elif model.is_out(now_ns):
            self.counters["outage"] += 1
        elif lost < 1.0 - (1.0 - model.loss) * (1.0 - model.range_loss):
            self.counters["lost"] += 1
        else:
            if flip < model.damage and frame:
                frame = _flip(frame, flip_at)
                self.counters["damaged"] += 1
            delay_s = model.delay_s + late * model.jitter_s
            if held < model.reorder:
                delay_s += 0.5 + 2.0 * model.delay_s
                self.counters["reordered"] += 1
            self._fly(frame, start_ns + int(delay_s * 1e9), direction)
            if twice < model.duplicate:
                self.counters["duplicated"] += 1
                self._fly(frame, start_ns + int((delay_s + second_late * (0.1 + model.delay_s)) * 1e9), direction)

    def receive(self, now_ns: int, direction: int = 0) -> list[bytes]:
        """Return the frames that have arrived by now."""
        flying = self._flying[direction]
        arrived = []
        while flying and flying[0][0] <= now_ns:
            arrived.append(heapq.heappop(flying)[2])
        self.counters["delivered"] += len(arrived)
        return arrived

    def next_ns(self) -> int | None:
        """Return when the next frame arrives, in either direction."""
        return min((flying[0][0] for flying in self._flying if flying), default=None)

    def _transmit(self, n_bytes: int, now_ns: int, direction: int) -> int | None:
        """Return when the frame has left, or None where the buffer is full."""
        if not self.model.bytes_per_s:
            return now_ns
        begin_ns = max(now_ns, self._busy_until_ns[direction])
        waiting = (begin_ns - now_ns) / 1e9 * self.model.bytes_per_s
        if waiting + n_bytes > self.model.buffer_bytes:
            return None
        self._busy_until_ns[direction] = begin_ns + int(n_bytes / self.model.bytes_per_s * 1e9)
        return self._busy_until_ns[direction]

    def _fly(self, frame: bytes, arrival_ns: int, direction: int) -> None:
        heapq.heappush(self._flying[direction], (arrival_ns, next(self._order), frame))


def _flip(frame: bytes, bit: int) -> bytes:
    damaged = bytearray(frame)
    damaged[bit // 8] ^= 1 << bit % 8
    return bytes(damaged)
