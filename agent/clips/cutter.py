"""Keeps the newest packets of a stream, and cuts out what belongs to an alert: some seconds before, and what follows.

Fed with packets by the reading thread (or a recording), with frames and alerts by the pipeline's. It must hold no more
bytes than it was given, however long an event or a camera's group of pictures is.
"""

import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from stillwatch.clips.mp4 import ClipPacket, PacketStream

LEAD_S = 30.0  # an event may have begun so long before it is told: kept beside what stands before it
_NUMBERS_KEPT = 512  # frames between the decoder and the pipeline


@dataclass(slots=True)
class Clip:
    """An alert's packets, the first one a key frame. `is_cut`: there was no room for the rest."""

    alert: int
    stream: PacketStream
    packets: list[ClipPacket]
    until_s: float
    n_bytes: int = 0
    is_cut: bool = False


@dataclass(slots=True)
class _Ring:
    packets: deque[ClipPacket] = field(default_factory=deque)
    n_bytes: int = 0

    def add(self, packet: ClipPacket) -> None:
        self.packets.append(packet)
        self.n_bytes += len(packet.data)

    def drop_group(self) -> None:
        """Forget the oldest key frame and all that refers to it."""
        while self.packets:
            self.n_bytes -= len(self.packets.popleft().data)
            if self.packets and self.packets[0].is_key:
                return

    def second_group_s(self) -> float:
        """Return when the second oldest key frame was; infinite where there is none."""
        packets = iter(self.packets)
        next(packets, None)
        return next((packet.time_s for packet in packets if packet.is_key), float("inf"))


class ClipCutter:
    """One stream's ring, and at most one clip that is being collected.

    Parameters
    ----------
    before_s, after_s : float
        What a clip shows before an event begins, and after it was last seen.
    max_bytes : int
        Of the ring, and of each clip.
    on_clip : callable
        Called with a Clip that is whole, on the thread that made it so.
    """

    def __init__(self, before_s: float, after_s: float, max_bytes: int, on_clip: Callable[[Clip], None]):
        self._before_s, self._after_s, self._max_bytes, self._on_clip = before_s, after_s, max_bytes, on_clip
        self._lock = threading.Lock()
        self._stream: PacketStream | None = None
        self._ring = _Ring()
        self._times: OrderedDict[int, float] = OrderedDict()
        self._clip: Clip | None = None
        self.missed = 0  # alerts of which the ring held no key frame

    def held(self) -> list[ClipPacket]:
        """Return the packets in the ring, oldest first."""
        with self._lock:
            return list(self._ring.packets)

    def begin_stream(self, stream: PacketStream) -> None:
        """Packets from here on belong to this stream: a clip of the one before ends."""
        self.finish()
        with self._lock:
            self._stream = stream
            self._ring = _Ring()
            self._times.clear()

    def add(self, packet: ClipPacket) -> None:
        """Take the next packet."""
        with self._lock:
            ring = self._ring
            if ring.packets or packet.is_key:
                ring.add(packet)
            oldest_s = packet.time_s - self._before_s - LEAD_S
            while ring.n_bytes > self._max_bytes or ring.second_group_s() <= oldest_s:
                ring.drop_group()
            whole = self._collect(packet)
        if whole is not None:
            self._on_clip(whole)

    def _collect(self, packet: ClipPacket) -> Clip | None:
        """Add to the clip that is being collected; return it once it is whole."""
        clip = self._clip
        if clip is None:
            return None
        clip.is_cut = clip.n_bytes + len(packet.data) > self._max_bytes
        if clip.is_cut or packet.time_s > clip.until_s:
            self._clip = None
            return clip
        clip.packets.append(packet)
        clip.n_bytes += len(packet.data)
        return None

    def place(self, number: int, time_s: float) -> None:
        """Note where on the stream's clock the frame of this number is."""
        with self._lock:
            self._times[number] = time_s
            while len(self._times) > _NUMBERS_KEPT:
                self._times.popitem(last=False)

    def alert(self, alert: int, number: int, lead_s: float) -> None:
        """Begin an alert's clip: it was told with the frame of this number, `lead_s` after its event began.

        A clip that is being collected ends here.
        """
        self.finish()
        with self._lock:
            clip = self._begun(alert, number, lead_s)
            self.missed += clip is None
            self._clip = clip

    def _begun(self, alert: int, number: int, lead_s: float) -> Clip | None:
        told_s = self._times.get(number)
        if told_s is None or self._stream is None:
            return None
        packets = list(self._ring.packets)
        from_s = told_s - lead_s - self._before_s
        keys = [at for at, packet in enumerate(packets) if packet.is_key]
        if not keys:
            return None
        first = max((at for at in keys if packets[at].time_s <= from_s), default=keys[0])
        held = packets[first:]
        return Clip(alert, self._stream, held, told_s + self._after_s, sum(len(packet.data) for packet in held))

    def go_on(self, alert: int, number: int) -> None:
        """The event of an alert is still there in the frame of this number."""
        with self._lock:
            seen_s = self._times.get(number)
            if self._clip is not None and self._clip.alert == alert and seen_s is not None:
                self._clip.until_s = max(self._clip.until_s, seen_s + self._after_s)

    def finish(self) -> None:
        """End the clip that is being collected."""
        with self._lock:
            clip, self._clip = self._clip, None
        if clip is not None:
            self._on_clip(clip)
