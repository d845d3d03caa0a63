"""What a frame's novelty usually is here, read off the calmer part of all that was watched.

Called by agent/novelty/places/unlikeness.py. It must not decide what is told: it says how far from the usual a frame
is, and how rare that would be.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from stillwatch.base import Recorded, record_bytes, saved, saved_array
from stillwatch.novelty.rules import (
    EARLY_S,
    HIGHEST_LEVEL,
    IN_EVENT,
    LASTING_FRAMES,
    LASTING_S,
    LEAST_LEVEL,
    LEAST_LEVEL_DEVIATION,
    LEVEL_BINS,
    LOWER,
    MAX_RARITY,
    NARROW,
    NS,
    UNLIKE,
    UPPER,
)

_NORMAL = NormalDist()


@dataclass
class _Watched:
    """How long each level was seen, and all together, in seconds.

    last, last_ns: levels and stream times of the last frames, the newest first, -1 of none.
    """

    levels_s: np.ndarray = saved_array((LEVEL_BINS,), np.float64, low=0.0)
    seconds: float = saved(0.0, low=0.0)
    last: np.ndarray = saved_array((LASTING_FRAMES,), np.float64, low=0.0)
    last_ns: np.ndarray = saved_array((LASTING_FRAMES,), np.int64, fill=-1, low=-1)


class FrameLevel(Recorded):
    """A histogram of levels, and a normal law fitted to its lower half.

    Events lift some frames far above the others, for any share of the time: the upper half of what was seen says
    little of what is usual, the lower half a lot. A quiet place has a level near none, and LEAST_LEVEL decides; a place
    that is never empty has a level and a spread, and what stands out of them is told.

    Parameters
    ----------
    halflife_s : float
        Of what is remembered, once so much was watched; an average over everything before.
    """

    _where = "level"

    def __init__(self, halflife_s: float):
        self._halflife_s = halflife_s
        self._watched = _Watched()
        self._edges = np.linspace(0.0, HIGHEST_LEVEL, LEVEL_BINS + 1)

    def reset(self) -> None:
        """Forget everything: the camera has another view."""
        self._watched = _Watched()

    @staticmethod
    def level_of(unlikeness: np.ndarray) -> float:
        """Return the root of what is unlike, summed over patches from one unit on."""
        return math.sqrt(float(unlikeness[unlikeness >= UNLIKE].sum()))

    @staticmethod
    def is_least(level: float) -> bool:
        """Whether so little is unlike that nothing would be told of it, however quiet the place."""
        return level < LEAST_LEVEL

    def usual(self, emptiness: float) -> tuple[float, float]:
        """Return mean and deviation of a normal law with quantiles of what was seen; zeros before.

        emptiness : float
            1 where often nothing is new: the lower half is believed. 0 where that is never so: the upper one is.
        """
        total = float(self._watched.levels_s.sum())
        if total <= 0.0:
            return 0.0, 0.0
        shares = np.concatenate([[0.0], np.cumsum(self._watched.levels_s) / total])
        calm, busy = (self._normal(shares, *quantiles) for quantiles in (LOWER, UPPER))
        # Where nothing is ever empty its median is the usual, whatever the fit of the upper half says of its mean.
        mean = emptiness * calm.mean + (1.0 - emptiness) * busy.mean
        return mean, emptiness * calm.stdev + (1.0 - emptiness) * busy.stdev

    def _normal(self, shares: np.ndarray, low: float, high: float) -> NormalDist:
        """Return the normal law whose two quantiles are those of what was seen."""
        z_low, z_high = _NORMAL.inv_cdf(low), _NORMAL.inv_cdf(high)
        at_low, at_high = (float(np.interp(q, shares, self._edges)) for q in (low, high))
        deviation = (at_high - at_low) / (z_high - z_low)
        return NormalDist(at_low - z_low * deviation, deviation)

    def standardise(self, level: float, emptiness: float, t_ns: int) -> float:
        """Return how many deviations above the usual a level is at stream time `t_ns`, alone or as far as it lasts.

        What all frames since one LASTING_S[0] ago reach lasts. The noise of frames, LEAST_LEVEL_DEVIATION, is another
        by then and averages out: half of its variance is left in two [1]_. What varies in a place, and what is not
        known of it yet, is the same in both.

        References
        ----------
        .. [1] S. A. Stouffer et al., The American Soldier 1, Princeton 1949, p. 45: deviations of independent tests add
           up over the root of their number.
        """
        mean, spread = self.usual(emptiness)
        early = EARLY_S / max(self._watched.seconds, 0.1 * EARLY_S)
        deviation = max(NARROW * spread, LEAST_LEVEL_DEVIATION * (1.0 + early))
        of_two = math.sqrt(deviation**2 - 0.5 * LEAST_LEVEL_DEVIATION**2)
        return max((level - mean) / deviation, (min(level, self._lasting(t_ns)) - mean) / of_two)

    def _lasting(self, t_ns: int) -> float:
        """Return the lowest level since the last frame that is long enough ago; 0 where that is too long ago."""
        watched = self._watched
        ages_s = (t_ns - watched.last_ns) / NS
        earliest = int(np.argmax(ages_s >= LASTING_S[0]))
        is_there = watched.last_ns[earliest] >= 0 and LASTING_S[0] <= ages_s[earliest] <= LASTING_S[1]
        return float(watched.last[: earliest + 1].min()) if is_there else 0.0

    @staticmethod
    def rarity(deviations: float) -> float:
        """Return N, one frame in N, by the normal law: a scale for thresholds, not a count of what was seen."""
        return min(1.0 / max(0.5 * math.erfc(deviations / math.sqrt(2.0)), 1.0 / MAX_RARITY), MAX_RARITY)

    def learn(self, level: float, t_ns: int, in_event: bool) -> None:
        """Remember the level of the frame at stream time `t_ns`."""
        watched = self._watched
        before_ns = int(watched.last_ns[0])
        elapsed_s = min(max(t_ns - before_ns, 0) / NS, 1.0) if before_ns >= 0 else 0.0
        watched.last[1:], watched.last_ns[1:] = watched.last[:-1], watched.last_ns[:-1]
        watched.last[0], watched.last_ns[0] = level, t_ns
        watched.seconds += elapsed_s
        watched.levels_s *= 0.5 ** (elapsed_s / self._halflife_s)
        place = min(int(level * LEVEL_BINS / HIGHEST_LEVEL), LEVEL_BINS - 1)
        watched.levels_s[place] += elapsed_s * (IN_EVENT if in_event else 1.0)

    def _record(self) -> Any:
        return self._watched

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes of the histogram."""
        return {"level": record_bytes(self._watched) + self._edges.nbytes}
