"""Opens a camera as the agent would, looks at some frames, and says what is wrong with them.

Called by tools/field/doctor.py. The source is closed again, and nothing is kept of it.
"""

from dataclasses import dataclass
from typing import Any

from stillwatch.base import RealClock
from stillwatch.settings import Config
from stillwatch.sources import open_source

LEAST_FRAMES = 30
MOST_FRAMES = 600  # looked at, until two key frames were among them
LOOK_S = 12.0
FAR_KEY_S = 10.0  # a lost packet spoils the picture so long, and a clip or recording begins so much later


@dataclass(frozen=True, slots=True)
class Row:
    """One check: what was found, and what to do where it is not ok."""

    check: str
    ok: bool
    found: str
    remedy: str = ""


class _Keys:
    """Counts packets from key frame to key frame: what a decoder is fed with, as a recorder hears it."""

    def __init__(self) -> None:
        self.packets = 0
        self.keys: list[int] = []

    def stream(self, codec: Any, time_base: Any, stampless: bool) -> None:
        """A decoder begins."""

    def packet(self, packet: Any) -> None:
        if packet.size:
            self.packets += 1
            if packet.is_keyframe:
                self.keys.append(self.packets)

    def decoded(self, frame: Any) -> int:
        return self.packets


def probe(config: Config) -> list[Row]:
    """Return rows on the source, its time stamps and its key frames. Raises SourceError where it cannot be opened."""
    clock = RealClock()
    source = open_source(config.source.uri, config.source, clock)
    keys = _Keys()
    has_packets = hasattr(source, "packet_tap")
    if has_packets:
        source.packet_tap = keys  # type: ignore[attr-defined]
    limit_ns = clock.monotonic_ns() + int((config.source.open_timeout_s + LOOK_S) * 1e9)
    stamps: list[int | None] = []
    source.open()
    try:
        while clock.monotonic_ns() < limit_ns and len(stamps) < MOST_FRAMES:
            if len(stamps) >= LEAST_FRAMES and (not has_packets or len(keys.keys) > 1):
                break
            frame = source.read()
            if frame is None:
                break
            if hasattr(frame, "source_ns"):
                stamps.append(frame.source_ns)
    finally:
        source.close()
    info = source.info
    rate_hz = _rate(stamps)
    rate = f"{rate_hz:.1f} frames/s" if rate_hz else "no rate"
    found = f"{info.uri}: {info.codec or info.kind} {info.width}x{info.height}, {rate}, {len(stamps)} frames looked at"
    remedy = "look at the camera with another program, check its address and codec"
    rows = [Row("source", bool(stamps), found, remedy), stamps_row(stamps)]
    if has_packets and keys.packets:
        rows.append(keys_row(keys.keys, keys.packets, rate_hz or config.source.fallback_rate_hz))
    return rows


def stamps_row(stamps: list[int | None]) -> Row:
    """Judge the time stamps of frames in the order in which they came."""
    known = [stamp for stamp in stamps if stamp is not None]
    back = sum(after <= before for before, after in zip(known, known[1:], strict=False))
    without = len(stamps) - len(known)
    told = [f"{without} of {len(stamps)} frames have none"] * bool(without)
    told += [f"{back} of {len(known)} stand still or go back"] * bool(back)
    remedy = (
        "times are then made up from the rate: set the camera's clock and rate to fixed values, or its firmware is old"
    )
    return Row("time stamps", not told, "; ".join(told) or f"of {len(known)} frames, all rise", remedy)


def keys_row(keys: list[int], packets: int, rate_hz: float) -> Row:
    """Judge the distance of key frames; `keys` are their numbers among the packets seen."""
    remedy = "set the camera's key-frame (I-frame, GOP) distance to 2 s: damage and a clip's beginning wait for one"
    if len(keys) > 1:
        far = max(after - before for before, after in zip(keys, keys[1:], strict=False))
        return Row("key frames", far / rate_hz <= FAR_KEY_S, f"one in {far} frames ({far / rate_hz:.1f} s)", remedy)
    seen_s = packets / rate_hz
    return Row("key frames", seen_s <= FAR_KEY_S, f"{len(keys)} in {packets} frames ({seen_s:.1f} s)", remedy)


def _rate(stamps: list[int | None]) -> float:
    known = [stamp for stamp in stamps if stamp is not None]
    span_s = (known[-1] - known[0]) / 1e9 if len(known) > 1 else 0.0
    return (len(known) - 1) / span_s if span_s > 0 else 0.0
