"""What the agent gives up when its board is too slow for a live camera: the share of patches that it learns from.

Called by agent/process/app.py for live sources. Its decisions are journalled, so that a replay makes them at the same
frames.
"""

LOOK_EVERY_NS = 10_000_000_000
PATIENCE = 6  # looks without a drop before a step back up: slow to take risks, quick to give way
TOO_MANY = 0.05  # share of frames dropped
LEAST_SHARE = 0.02


class SamplingLadder:
    """Halves the share while frames are dropped, doubles it back after a minute without.

    Parameters
    ----------
    share : float
        The configured share, where the ladder begins and ends.
    """

    def __init__(self, share: float):
        self._full = share
        self.share = share
        self.why = ""
        self._looked_ns: int | None = None
        self._frames = 0
        self._dropped = 0
        self._good = 0

    def step(self, now_ns: int, frames: int, dropped: int) -> float | None:
        """Return a new share, or None where nothing changes. Counters are totals since the start."""
        if self._looked_ns is None:
            self._looked_ns = now_ns
        if now_ns - self._looked_ns < LOOK_EVERY_NS:
            return None
        new_frames, new_dropped = frames - self._frames, dropped - self._dropped
        self._looked_ns, self._frames, self._dropped = now_ns, frames, dropped
        if new_dropped > TOO_MANY * max(new_frames + new_dropped, 1):
            self._good = 0
            lower = max(self.share / 2.0, min(LEAST_SHARE, self._full))
            return self._change(lower, f"dropped {new_dropped} of {new_frames + new_dropped} frames")
        self._good = self._good + 1 if new_dropped == 0 else 0
        if self._good >= PATIENCE:
            self._good = 0
            return self._change(min(self.share * 2.0, self._full), "keeps up again")
        return None

    def _change(self, share: float, why: str) -> float | None:
        if share == self.share:
            return None
        self.share, self.why = share, why
        return share
