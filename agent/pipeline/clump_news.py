"""Decides when the clumps of a mixture are told again: they are bulk, and mostly say what stations know already.

Called by agent/pipeline/summaries.py for each finished epoch. Counted in stream time and decided by what was learnt
alone: a replay tells the same.
"""

from dataclasses import dataclass

import numpy as np

from stillwatch.epochs import EpochModel, HeldClumps
from stillwatch.learn import StudentMixture
from stillwatch.pipeline.model_news import is_worth_telling

PATIENCE = 1200.0  # nats a sample times seconds: how long small news waits for more


@dataclass(frozen=True, slots=True)
class _Told:
    mixture: StudentMixture  # what was learnt from them
    epoch: int
    t_ns: int


class ClumpNews:
    """What was told of each mixture's clumps."""

    def __init__(self) -> None:
        self._told: dict[str, _Told] = {}

    def forget(self) -> None:
        """Tell all clumps again."""
        self._told = {}

    def tell(self, learnt: EpochModel, *, t_ns: int, at_once: bool = False) -> HeldClumps | None:
        """Return the clumps if there are some that are to be told, and take them for told then.

        at_once : bool
            Whatever they say, unless they are of the epoch told last.
        """
        held, told = learnt.held, self._told.get(learnt.name)
        if held is None:
            return None
        if told is not None and told.t_ns <= t_ns:
            if at_once:
                is_due = held.epoch != told.epoch
            else:
                is_due = is_worth_telling(_news(told.mixture, learnt.mixture, held), t_ns - told.t_ns, PATIENCE)
            if not is_due:
                return None
        self._told[learnt.name] = _Told(learnt.mixture, held.epoch, t_ns)
        return held


def _news(known: StudentMixture, mixture: StudentMixture, held: HeldClumps) -> float:
    """Return what believing an earlier mixture costs, nats a sample, at the means of what is held now."""
    clumps = held.clumps
    gain = mixture.score_samples(clumps["mean"]) - known.score_samples(clumps["mean"])
    return float(np.average(gain, weights=clumps["count"]))
