"""Hours of weather, light and the camera's own faults in which a stranger comes by now and then.

Called by tools/evaluate/suite/cases.py. The places and spells are those of quiet.py: who stays silent there for good
shows here what it costs. A kind comes again when all others were there.
"""

import pathlib

import numpy as np

from stillwatch.tools.evaluate.suite.actors import KINDS, PICTURES, actor, paste, sized
from stillwatch.tools.evaluate.suite.quiet import HEIGHT, RATE_HZ, QuietHours
from stillwatch.tools.evaluate.suite.worlds import TOLERANCE_FRAMES, Visit, crossing
from stillwatch.tools.evaluate.truth import Truth, merged

FIRST_S = 900.0  # every nuisance has come once by then
EVERY_S = 420.0  # on the mean, from half of it to half as much again


class LongWatch(QuietHours):
    """Quiet hours with visits, each new here: people-sized or thing-sized, along a lane of their own.

    Parameters
    ----------
    seed : int
    hours : float
    data : pathlib.Path
    """

    def __init__(self, seed: int, hours: float, data: pathlib.Path):
        super().__init__(seed, hours, data)
        rng = np.random.default_rng([seed, 9])
        self.visits: list[Visit] = []
        kinds: list[str] = []
        at_s = FIRST_S
        while at_s * RATE_HZ < self.n_frames:
            kinds = kinds or [str(kind) for kind in rng.permutation(KINDS)]
            self.visits.append(self._cross(rng, data, kinds.pop(), round(at_s * RATE_HZ)))
            at_s += float(rng.uniform(0.5, 1.5) * EVERY_S)

    def _cross(self, rng: np.random.Generator, data: pathlib.Path, kind: str, at: int) -> Visit:
        """Return a visit from frame `at` on, from one side of the view to the other."""
        height_px = int(rng.integers(60, 105) if rng.random() < 0.5 else rng.integers(26, 48))
        sprite = sized(actor(data, kind, int(rng.integers(PICTURES))), height_px, bool(rng.random() < 0.5))
        lane = rng.uniform(0.35, 0.85) * HEIGHT
        return crossing(rng, kind, sprite, at, lane, usual=False, may_stop=False)

    def scene(self, i: int) -> np.ndarray:
        """Return frame i before nuisances: the place and who is there."""
        there = [visit for visit in self.visits if visit.first <= i <= visit.last]
        if not there:
            return super().scene(i)
        picture = super().scene(i).copy()
        for visit in there:
            paste(picture, visit.place(i))
        return picture

    def truth(self) -> Truth:
        """Return the events: each visit, from its first frame to its last, as far as the hours reach."""
        spans = [(visit.first, min(visit.last, self.n_frames - 1)) for visit in self.visits]
        return Truth(merged(spans), TOLERANCE_FRAMES)
