"""How rare is this score here: fixed-size running quantiles with a half-life, and a tail for what was never seen.

Called by agent/novelty/strangeness.py and agent/contents/contents.py. It must not decide what may be learnt: the
caller leaves events out.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from stillwatch.base import Recorded, record_bytes, saved, saved_array
from stillwatch.novelty.rules import (
    CREDULOUS_FRAMES,
    DOUBTED_RARITY,
    FIRST_FRAMES,
    HEAVIEST_TAIL,
    LEAST_EXCESS,
    LINEAR,
    LONGEST_RUN,
    MAX_RARITY,
    N_BINS,
    PLAUSIBLE,
    PRIOR_EXCEEDANCES,
    REACH,
    SPREAD_CLIP,
    SPREAD_DOUBTED_SHARE,
    SPREAD_PRIOR_FRAMES,
    TAIL_SHARE,
)


@dataclass
class _Past:
    """Frames by score, decayed; stream time of the last, 0 before the first; doubted frames in a row."""

    weights: np.ndarray = saved_array((N_BINS,), np.float64, low=0.0)
    t_ns: int = saved(0, low=0)
    run: int = saved(0, low=0, high=LONGEST_RUN)


@dataclass
class _Moments:
    """Mean and variance of the frames so far, how many they were, and stream time of the last."""

    mean: float = saved(0.0)
    variance: float = saved(1.0, low=0.0)
    frames: int = saved(0, low=0)
    t_ns: int = saved(0, low=0)


def _bin_of(score: float) -> int:
    place = (math.asinh(score / LINEAR) + REACH) * N_BINS / (2 * REACH)
    return min(max(int(place), 0), N_BINS - 1)


class RarityCalibration(Recorded):
    """Turns a frame's score into "one frame in N scores as high as this here".

    A histogram over asinh-spaced bins, whose weights halve every `halflife_s` of stream time. Up to the upper
    tenth the answer is read off it; beyond, a generalised Pareto tail is fitted to the exceedances by the
    method of moments [1]_, so that a score above all seen has a finite, growing rarity. That is an extrapolation:
    a tail is never believed to be thinner than an exponential one of scale LEAST_EXCESS,
    and N is capped at MAX_RARITY. Scores are expected in deviations of what is usual.

    Exceedances that follow each other are one excursion, not many observations [2]_: somebody who crosses the view
    just below the threshold for fifty frames must not hide the next one. In a run of doubted frames the k-th
    therefore weighs 1/k, at least 1/LONGEST_RUN, so that what became ordinary for good is still believed.

    Parameters
    ----------
    halflife_s : float

    References
    ----------
    .. [1] J. R. M. Hosking and J. R. Wallis, Technometrics 29(3), 1987, 339-349, equation 5.
    .. [2] R. L. Smith and I. Weissman, Journal of the Royal Statistical Society B 56(3), 1994, 515-528: runs.
    """

    _where = "calibration"

    def __init__(self, halflife_s: float):
        self._halflife_s = halflife_s
        self._past = _Past()
        edges = (np.arange(N_BINS + 1) * (2 * REACH) / N_BINS) - REACH
        self._lower = LINEAR * np.sinh(edges[:-1])
        self._middle = LINEAR * np.sinh(0.5 * (edges[:-1] + edges[1:]))

    @property
    def weight(self) -> float:
        """Frames that are remembered, each by its decayed weight."""
        return float(self._past.weights.sum())

    def rarity(self, score: float) -> float:
        """Return N >= 1; 1.0 before anything was learnt. Monotone in the score. Changes nothing."""
        total = self.weight
        if total <= 0.0:
            return 1.0
        above = np.cumsum(self._past.weights[::-1])[::-1]
        start = int(np.searchsorted(-above, -TAIL_SHARE * total, side="left"))  # first bin with a tenth or less above
        start = min(start, N_BINS - 1)
        place = _bin_of(score)
        if place < start or above[start] <= 0.0:
            return float(min(max((total + 1.0) / (above[place] + 1.0), 1.0), MAX_RARITY))
        return self._tail_rarity(score, start, float(above[start]), total)

    def _tail_rarity(self, score: float, start: int, above: float, total: float) -> float:
        """Extrapolate from the lower edge of bin `start`, above which the weight `above` of `total` lies."""
        threshold = self._lower[start]
        weights = self._past.weights[start:]
        excess = np.maximum(self._middle[start:] - threshold, 0.0)
        mean = float(weights @ excess) / above
        variance = float(weights @ (excess - mean) ** 2) / above
        ratio = mean * mean / variance if variance > 0.0 else 1.0
        trust = above / (above + PRIOR_EXCEEDANCES)
        shape = trust * min(max(0.5 * (1.0 - ratio), 0.0), HEAVIEST_TAIL)
        scale = max(mean * (1.0 - shape), LEAST_EXCESS)
        beyond = max(score - threshold, 0.0) / scale
        log_share = -beyond if shape < 1e-6 else -math.log1p(shape * beyond) / shape
        log_rarity = math.log((total + 1.0) / (above + 1.0)) - log_share
        return math.exp(min(log_rarity, math.log(MAX_RARITY)))

    def learn(self, score: float, t_ns: int) -> None:
        """Remember the score of a frame at stream time `t_ns`; the rarer it is by what is known, the less it counts."""
        total = self.weight
        if total >= FIRST_FRAMES:
            rarity = self.rarity(score)
        else:  # an event among the first frames would pass for usual until the half-life is over
            rarity = DOUBTED_RARITY * math.exp(min(max(score - PLAUSIBLE, 0.0), 100.0))
        self._past.run = min(self._past.run + 1, LONGEST_RUN) if rarity > DOUBTED_RARITY else 0
        doubt = 0.5 * CREDULOUS_FRAMES / (CREDULOUS_FRAMES + total)
        weight = min(1.0, (DOUBTED_RARITY / rarity) ** doubt) / max(self._past.run, 1)
        if self._past.t_ns:
            elapsed_s = max(t_ns - self._past.t_ns, 0) / 1e9
            self._past.weights *= 0.5 ** (elapsed_s / self._halflife_s)
        self._past.t_ns = max(t_ns, 1)
        self._past.weights[_bin_of(score)] += weight

    def _record(self) -> Any:
        return self._past

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes of the histogram and its edges."""
        return {"calibration": record_bytes(self._past) + self._lower.nbytes + self._middle.nbytes}


class RunningSpread(Recorded):
    """Running mean and deviation of one number a frame: an average at first, forgetting by half-lives later.

    Values further than SPREAD_CLIP deviations from the mean count as that far, and those above it teach
    SPREAD_DOUBTED_SHARE of what others do: an event that nobody noticed would otherwise widen the spread until the
    next is hidden too.

    Parameters
    ----------
    halflife_s : float
    typical : float
        Deviation that is expected before anything is known; it counts for SPREAD_PRIOR_FRAMES frames.
    least : float
        Smallest deviation.
    """

    _where = "spread"

    def __init__(self, halflife_s: float, typical: float, least: float):
        self._halflife_s, self._least = halflife_s, least
        self._moments = _Moments(variance=typical * typical)

    @property
    def mean(self) -> float:
        return self._moments.mean

    @property
    def deviation(self) -> float:
        return max(math.sqrt(self._moments.variance), self._least)

    def standardise(self, value: float) -> float:
        """Return (value - mean) / deviation; zero before the first frame."""
        return (value - self.mean) / self.deviation if self._moments.frames else 0.0

    def learn(self, value: float, t_ns: int) -> None:
        """Fold in one frame's value at stream time `t_ns`."""
        moments = self._moments
        if moments.frames == 0:
            moments.mean = value
        else:
            share = running_share(moments.frames, SPREAD_PRIOR_FRAMES, t_ns - moments.t_ns, self._halflife_s)
            limit = SPREAD_CLIP * self.deviation
            if value - self.mean > limit:
                share *= max(SPREAD_PRIOR_FRAMES / (SPREAD_PRIOR_FRAMES + moments.frames), SPREAD_DOUBTED_SHARE)
            step = min(max(value - self.mean, -limit), limit)
            moments.mean += share * step
            moments.variance += share * (step * step - moments.variance)
        moments.frames, moments.t_ns = moments.frames + 1, t_ns

    def _record(self) -> Any:
        return self._moments

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes of its numbers."""
        return {"spread": record_bytes(self._moments)}


def running_share(frames: int, prior_frames: int, elapsed_ns: int, halflife_s: float) -> float:
    """Return the weight of the next frame in a running mean: an average at first, exponential in stream time later."""
    forgetting = 1.0 - 0.5 ** (max(elapsed_ns, 0) / 1e9 / halflife_s)
    return max(1.0 / (frames + prior_frames), forgetting)
