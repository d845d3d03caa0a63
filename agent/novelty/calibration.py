"""How rare is this score here: fixed-size running quantiles with a half-life, and a tail for what was never seen.

Called by agent/novelty/score.py. It must not decide what may be learnt: the caller leaves events out.
"""

import math

import numpy as np

from stillwatch.base import SnapshotError, State

N_BINS = 512
LINEAR = 1.0  # scores are spread by asinh: linear within one unit, logarithmic beyond
REACH = 12.0  # asinh units on each side of 0: scores to 80,000
TAIL_SHARE = 0.1  # the tail is fitted to the highest tenth
LEAST_EXCESS = 0.5  # deviations, the mean excess of a normal over its upper tenth: no tail is believed to fall faster
HEAVIEST_TAIL = 0.5  # shape of the generalised Pareto tail: finite mean and nearly finite variance
DOUBTED_RARITY = 10.0  # a frame rarer than this teaches less, by the root of it: it may be an event nobody noticed
FIRST_FRAMES = 10.0  # until so many are known, frames are doubted by what is plausible instead
PLAUSIBLE = 3.0  # deviations: a first frame above is taken to be e times rarer with each more
LONGEST_RUN = 32  # doubted frames in a row are one excursion: the k-th counts 1/k of a frame, but never less than this
CREDULOUS_FRAMES = 1000.0  # with so many remembered, rare frames are doubted half as much: they are the scene's own
PRIOR_EXCEEDANCES = 50.0  # an exponential tail is believed until this many exceedances say otherwise
MAX_RARITY = 1e9


def _bin_of(score: float) -> int:
    place = (math.asinh(score / LINEAR) + REACH) * N_BINS / (2 * REACH)
    return min(max(int(place), 0), N_BINS - 1)


class RarityCalibration:
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

    def __init__(self, halflife_s: float):
        self._halflife_s = halflife_s
        self._weights = np.zeros(N_BINS)
        edges = (np.arange(N_BINS + 1) * (2 * REACH) / N_BINS) - REACH
        self._lower = LINEAR * np.sinh(edges[:-1])
        self._middle = LINEAR * np.sinh(0.5 * (edges[:-1] + edges[1:]))
        self._t_ns = 0
        self._run = 0  # doubted frames in a row

    @property
    def weight(self) -> float:
        """Frames that are remembered, each by its decayed weight."""
        return float(self._weights.sum())

    def rarity(self, score: float) -> float:
        """Return N >= 1; 1.0 before anything was learnt. Monotone in the score. Changes nothing."""
        total = self.weight
        if total <= 0.0:
            return 1.0
        above = np.cumsum(self._weights[::-1])[::-1]
        start = int(np.searchsorted(-above, -TAIL_SHARE * total, side="left"))  # first bin with a tenth or less above
        start = min(start, N_BINS - 1)
        place = _bin_of(score)
        if place < start or above[start] <= 0.0:
            return float(min(max((total + 1.0) / (above[place] + 1.0), 1.0), MAX_RARITY))
        return self._tail_rarity(score, start, float(above[start]), total)

    def _tail_rarity(self, score: float, start: int, above: float, total: float) -> float:
        """Extrapolate from the lower edge of bin `start`, above which the weight `above` of `total` lies."""
        threshold = self._lower[start]
        weights = self._weights[start:]
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
        self._run = min(self._run + 1, LONGEST_RUN) if rarity > DOUBTED_RARITY else 0
        doubt = 0.5 * CREDULOUS_FRAMES / (CREDULOUS_FRAMES + total)
        weight = min(1.0, (DOUBTED_RARITY / rarity) ** doubt) / max(self._run, 1)
        if self._t_ns:
            elapsed_s = max(t_ns - self._t_ns, 0) / 1e9
            self._weights *= 0.5 ** (elapsed_s / self._halflife_s)
        self._t_ns = max(t_ns, 1)
        self._weights[_bin_of(score)] += weight

    def state(self) -> State:
        return {
            "weights": self._weights.copy(),
            "t_ns": np.array(self._t_ns, np.int64),
            "run": np.array(self._run, np.int64),
        }

    def restore(self, state: State) -> None:
        """Go on from `state`; SnapshotError, and no change, where it does not fit."""
        weights, t_ns, run = state.get("weights"), state.get("t_ns"), state.get("run")
        if weights is None or t_ns is None or run is None or weights.shape != (N_BINS,) or not (weights >= 0.0).all():
            raise SnapshotError("calibration: the saved state has another shape, or weights that are not positive")
        self._weights[:] = weights
        self._t_ns, self._run = int(t_ns), int(run)

    def memory_bytes(self) -> int:
        return self._weights.nbytes + self._lower.nbytes + self._middle.nbytes


class RunningSpread:
    """Running mean and deviation of one number a frame: an average at first, forgetting by half-lives later.

    Values further than CLIP deviations from the mean count as that far, and those above it teach DOUBTED_SHARE of
    what others do: an event that nobody noticed would otherwise widen the spread until the next is hidden too.

    Parameters
    ----------
    halflife_s : float
    typical : float
        Deviation that is expected before anything is known; it counts for PRIOR_FRAMES frames.
    least : float
        Smallest deviation.
    """

    CLIP = 2.5
    DOUBTED_SHARE = 0.3
    PRIOR_FRAMES = 10

    def __init__(self, halflife_s: float, typical: float, least: float):
        self._halflife_s, self._least = halflife_s, least
        self._moments = np.array([0.0, typical * typical])
        self._numbers = np.zeros(2, np.int64)  # frames, stream time of the last

    @property
    def mean(self) -> float:
        return float(self._moments[0])

    @property
    def deviation(self) -> float:
        return max(math.sqrt(self._moments[1]), self._least)

    def standardise(self, value: float) -> float:
        """Return (value - mean) / deviation; zero before the first frame."""
        return (value - self.mean) / self.deviation if self._numbers[0] else 0.0

    def learn(self, value: float, t_ns: int) -> None:
        """Fold in one frame's value at stream time `t_ns`."""
        frames, last = (int(number) for number in self._numbers)
        if frames == 0:
            self._moments[0] = value
        else:
            share = running_share(frames, self.PRIOR_FRAMES, t_ns - last, self._halflife_s)
            limit = self.CLIP * self.deviation
            if value - self.mean > limit:
                share *= max(self.PRIOR_FRAMES / (self.PRIOR_FRAMES + frames), self.DOUBTED_SHARE)
            step = min(max(value - self.mean, -limit), limit)
            self._moments[0] += share * step
            self._moments[1] += share * (step * step - self._moments[1])
        self._numbers[:] = frames + 1, t_ns

    def state(self) -> State:
        return {"moments": self._moments.copy(), "numbers": self._numbers.copy()}

    def restore(self, state: State) -> None:
        """Go on from `state`; SnapshotError, and no change, where it does not fit."""
        for name, own in (("moments", self._moments), ("numbers", self._numbers)):
            if name not in state or state[name].shape != own.shape or not np.isfinite(state[name]).all():
                raise SnapshotError(f"calibration: {name} is absent, of another shape or not finite")
        self._moments[:], self._numbers[:] = state["moments"], state["numbers"]

    def memory_bytes(self) -> int:
        return self._moments.nbytes + self._numbers.nbytes


def running_share(frames: int, prior_frames: int, elapsed_ns: int, halflife_s: float) -> float:
    """Return the weight of the next frame in a running mean: an average at first, exponential in stream time later."""
    forgetting = 1.0 - 0.5 ** (max(elapsed_ns, 0) / 1e9 / halflife_s)
    return max(1.0 / (frames + prior_frames), forgetting)
