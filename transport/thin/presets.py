"""What links can carry: one table of presets, and the budget that a scheduler keeps.

Read by transport/thin/scheduler.py, transport/thin/link.py, the config check and tools. It only states numbers and
where they come from; it opens nothing.
"""

from dataclasses import dataclass, replace

from stillwatch.transport.wire import LinkError

WINDOW_S = 600.0  # no window of this length, wherever it begins, may hold more than its share
ACOUSTIC_SLOT_S = 15.0  # usual TDMA slot of Goby configurations is 10-15 s
ACOUSTIC_ROUND_TRIP_S = 2.0  # 1.5 km at 1500 m/s
MIN_FRAME_BYTES = 32


@dataclass(frozen=True, slots=True)
class Budget:
    """How much one end of a link may send.

    Attributes
    ----------
    frame_bytes : int
        Largest frame that the modem takes.
    frames_per_slot : int
        Frames in one transmission.
    slot_s : float
        Time between the starts of two transmissions.
    round_trip_s : float
        Flight there and back: an answer cannot be here earlier, and nothing is repeated before.
    """

    frame_bytes: int
    frames_per_slot: int
    slot_s: float
    round_trip_s: float = 0.0

    def __post_init__(self) -> None:
        if self.frame_bytes < MIN_FRAME_BYTES or self.frames_per_slot < 1 or not 0.0 < self.slot_s <= WINDOW_S:
            raise LinkError(
                f"link budget of {self.frames_per_slot} x {self.frame_bytes} bytes every {self.slot_s} s: frames hold "
                f"at least {MIN_FRAME_BYTES} bytes, slots are over 0 and at most {WINDOW_S:.0f} s apart"
            )

    @property
    def slot_bytes(self) -> int:
        """Most bytes in one slot."""
        return self.frame_bytes * self.frames_per_slot

    @property
    def slots_per_hour(self) -> float:
        """Slots in an hour."""
        return 3600.0 / self.slot_s

    @property
    def bytes_per_hour(self) -> float:
        """Most bytes in an hour."""
        return self.slot_bytes * self.slots_per_hour

    @property
    def window_bytes(self) -> int:
        """Most bytes in any 10 minutes."""
        return self.slot_bytes * max(1, int(WINDOW_S / self.slot_s + 1e-9))

    def shared(self, share: float) -> "Budget":
        """Return the budget of one who has only this share (above 0, at most 1) of the slots."""
        if not 0.0 < share <= 1.0:
            raise LinkError(f"link share {share} is outside (0, 1]")
        return replace(self, slot_s=min(self.slot_s / share, WINDOW_S))


@dataclass(frozen=True, slots=True)
class Preset:
    """One kind of link: what the vehicle may send (up), what the ground may send (down), and the burst's speed."""

    name: str
    up: Budget
    down: Budget
    bits_per_second: float
    source: str


def _acoustic(rate: int, n_frames: int, frame_bytes: int, bits_per_second: float, source: str) -> Preset:
    """Return a Micro-Modem preset; acknowledgements come back at rate 0, the one that arrives when any does."""
    up = Budget(frame_bytes, n_frames, ACOUSTIC_SLOT_S, ACOUSTIC_ROUND_TRIP_S)
    down = Budget(32, 1, ACOUSTIC_SLOT_S, ACOUSTIC_ROUND_TRIP_S)
    return Preset(f"micromodem-{rate}", up, down, bits_per_second, source)


_TABLE = (
    _acoustic(0, 1, 32, 80.0, "WHOI Micro-Modem rate 0, FH-FSK: pyacomms messageparams.py"),
    _acoustic(1, 3, 64, 250.0, "WHOI Micro-Modem rate 1: frames pyacomms, speed from memory"),
    _acoustic(2, 3, 64, 500.0, "WHOI Micro-Modem rate 2: frames pyacomms, speed from memory"),
    _acoustic(3, 2, 256, 1200.0, "WHOI Micro-Modem rate 3: frames pyacomms, speed from memory"),
    _acoustic(4, 2, 256, 1300.0, "WHOI Micro-Modem rate 4: frames pyacomms, speed from memory"),
    _acoustic(5, 8, 256, 5400.0, "WHOI Micro-Modem rate 5: pyacomms"),
    Preset("iridium-sbd", Budget(340, 1, 60.0, 20.0), Budget(270, 1, 60.0, 20.0), 2400.0,
           "Iridium 9602: 340 B up, 270 B down (Goby); a session a minute and 10 s of flight are our choice"),
    Preset("lte", Budget(1200, 8, 1.0, 0.3), Budget(1200, 2, 1.0, 0.3), 76_800.0,
           "one datagram under any path MTU; 9.6 kB/s leaves a metered SIM usable (our choice)"),
)  # fmt: skip
PRESETS = {preset.name: preset for preset in _TABLE}


def find_preset(name: str) -> Preset:
    """Return the preset of this name, or raise LinkError with the names that there are."""
    if name not in PRESETS:
        raise LinkError(f"link.preset: {name!r} is none of {', '.join(PRESETS)}")
    return PRESETS[name]
