"""Stream time from whatever stamps a source gives: absent, equal, going back, leaping; and decimation by time.

Called by agent/sources/capture.py once a frame, in order of arrival. Reads no clock, and divides by no claimed rate.
"""

from collections import deque

from stillwatch.base import FrameFlag

NS = 1_000_000_000
EPOCH_STEP_NS = NS  # a step back by more starts a new stream epoch (field practice: rosbag2#2173, moonfire-nvr)
LEAP_NS = 400 * 86_400 * NS  # a step forward by more is no recording's gap but a broken stamp
LONGEST_INTERVAL_NS = 10 * NS  # longer steps are gaps, not the frame interval
INTERVALS_KEPT = 15


class StampRepair:
    """Turn source stamps into stream time that always increases, and say what was done to each.

    A good stamp keeps its distance to the first one, so that gaps and variable rates stay as recorded. A stamp
    that is equal or steps back by up to a second is moved to half an interval after its predecessor (the next
    good one then still finds its own place); from the second in a row on the stamps are taken as absent and time
    advances by whole intervals. The interval is the median of the last good ones, or the fallback rate's.
    """

    def __init__(self, fallback_rate_hz: float):
        self._fallback_ns = round(NS / fallback_rate_hz)
        self._intervals: deque[int] = deque(maxlen=INTERVALS_KEPT)
        self._offset_ns = 0
        self._source_ns: int | None = None
        self._t_ns = -1
        self._bad_in_a_row = 0

    @property
    def interval_ns(self) -> int:
        """Median interval of the last good stamps; the fallback's before there are any."""
        if not self._intervals:
            return self._fallback_ns
        return sorted(self._intervals)[len(self._intervals) // 2]

    def repair(self, source_ns: int | None) -> tuple[int, FrameFlag, bool]:
        """Return (t_ns, flags, new_epoch) of the next frame; the first frame is at 0."""
        first = self._t_ns < 0
        previous_ns, self._source_ns = self._source_ns, source_ns if source_ns is not None else self._source_ns
        if source_ns is None:
            self._t_ns = 0 if first else self._t_ns + self.interval_ns
            return self._t_ns, FrameFlag.TIME_SYNTHETIC, False
        if first or previous_ns is None:
            return self._anchor(source_ns, 0 if first else self.interval_ns)
        step_ns = source_ns - previous_ns
        if step_ns < -EPOCH_STEP_NS or step_ns > LEAP_NS:
            t_ns, _, _ = self._anchor(source_ns, self.interval_ns)
            return t_ns, FrameFlag.TIME_REPAIRED, True
        if step_ns <= 0:
            return self._after_bad_stamp()
        self._bad_in_a_row = 0
        if step_ns <= LONGEST_INTERVAL_NS:
            self._intervals.append(step_ns)
        if source_ns - self._offset_ns <= self._t_ns:
            return self._anchor(source_ns, step_ns)[0], FrameFlag.TIME_REPAIRED, False
        self._t_ns = source_ns - self._offset_ns
        return self._t_ns, FrameFlag.NONE, False

    def _anchor(self, source_ns: int, step_ns: int) -> tuple[int, FrameFlag, bool]:
        """Place this stamp `step_ns` after the last frame and measure later ones from here."""
        self._t_ns = max(self._t_ns, 0) + step_ns
        self._offset_ns = source_ns - self._t_ns
        return self._t_ns, FrameFlag.NONE, False

    def _after_bad_stamp(self) -> tuple[int, FrameFlag, bool]:
        self._bad_in_a_row += 1
        if self._bad_in_a_row == 1 and self._intervals:
            self._t_ns += max(1, self.interval_ns // 2)
            return self._t_ns, FrameFlag.TIME_REPAIRED, False
        self._t_ns += self.interval_ns
        return self._t_ns, FrameFlag.TIME_REPAIRED | FrameFlag.TIME_SYNTHETIC, False


class Decimator:
    """Choose frames by their time so that about `rate_hz` of them a second are kept; 0 keeps every frame."""

    def __init__(self, rate_hz: float):
        self._period_ns = round(NS / rate_hz) if rate_hz > 0 else 0
        self._due_ns: int | None = None

    def keeps(self, t_ns: int) -> bool:
        """Say whether the frame at t_ns is kept. Late frames do not make later ones come in bursts."""
        if not self._period_ns or self._due_ns is None:
            self._due_ns = t_ns + self._period_ns
            return True
        # A frame a little early is the one that was meant: a 30 Hz stream's stamps jitter around 15 Hz's grid.
        if t_ns < self._due_ns - self._period_ns // 8:
            return False
        late = t_ns - self._due_ns
        self._due_ns = t_ns + self._period_ns if late >= self._period_ns else self._due_ns + self._period_ns
        return True
