"""Hours in which nothing happens but weather, light and the camera's own faults: every alert is false.

Called by tools/evaluate/suite/cases.py. A plate of worlds.py under one nuisance after the other, each for `SPELL_S`
with calm of `CALM_S` between; a day has all of them many times, so that a part of one tells of the whole.
"""

import pathlib

import numpy as np

from stillwatch.tools.evaluate.suite import transforms
from stillwatch.tools.evaluate.suite.clips import Stream, rendered
from stillwatch.tools.evaluate.suite.plates import plate
from stillwatch.tools.evaluate.truth import Truth

HEIGHT, WIDTH = 240, 320
RATE_HZ = 5.0
CALM_S, SPELL_S = 20.0, 25.0
NOISE = 2.5  # grey levels, of the sensor, always
SPELLS = (
    "cloud_shadows", "rain", "exposure_steps", "moving_shade", "snow", "flicker", "white_balance_steps", "shake",
    "headlights", "fog", "low_bitrate", "night_noise",
)  # fmt: skip


class QuietHours:
    """A still place for `hours` of stream; `render(i)` depends on the seed and i alone.

    Parameters
    ----------
    seed : int
    hours : float
    data : pathlib.Path
    """

    rate_hz = RATE_HZ

    def __init__(self, seed: int, hours: float, data: pathlib.Path):
        rng = np.random.default_rng([seed, 7])
        self.seed, self.hours = seed, hours
        self.n_frames = max(1, round(hours * 3600.0 * RATE_HZ))
        self._plate = plate(data, rng, HEIGHT, WIDTH)
        self._order = [str(name) for name in rng.permutation(SPELLS)]

    def nuisance(self, i: int) -> str:
        """Return what troubles frame i, '' in calm."""
        turn, within = divmod(i / RATE_HZ, CALM_S + SPELL_S)
        return self._order[int(turn) % len(self._order)] if within >= CALM_S else ""

    def scene(self, i: int) -> np.ndarray:
        """Return what is there in frame i, before nuisances, (height, width, 3) uint8 BGR, not to be written to."""
        return self._plate

    def truth(self) -> Truth:
        """Return the events: none."""
        return Truth((), 0)

    def render(self, i: int) -> np.ndarray:
        """Return frame i, (height, width, 3) uint8 BGR."""
        picture, rng = self.scene(i), np.random.default_rng([self.seed, 8, i])
        name = self.nuisance(i)
        if name:
            picture = transforms.TRANSFORMS[name].rule(picture, i, rng)
        noise = rng.normal(0.0, NOISE, (HEIGHT, WIDTH, 1)).astype(np.float32)
        return np.clip(picture + noise, 0, 255).astype(np.uint8)

    def stream(self) -> Stream:
        """Return the hours as what is watched."""
        return rendered(f"quiet {self.seed}", self)
