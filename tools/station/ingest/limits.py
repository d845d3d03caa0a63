"""How fast one agent may fill the store: a bucket that fills again.

Used by tools/station/ingest/desk.py. Time is handed in; nothing here sleeps.
"""

NS = 1_000_000_000


class Bucket:
    """Lets through `per_minute` things, `burst` of them at once."""

    def __init__(self, per_minute: float, burst: float):
        self._rate, self._burst = per_minute / 60.0, burst
        self._left, self._at_ns = burst, 0

    def takes(self, now_ns: int, count: int = 1) -> bool:
        """Whether so many may pass now; those that may not are not counted."""
        passed_s = max(now_ns - self._at_ns, 0) / NS if self._at_ns else 0.0
        self._left = min(self._burst, self._left + passed_s * self._rate)
        self._at_ns = now_ns
        if self._left < count:
            return False
        self._left -= count
        return True
