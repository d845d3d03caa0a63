"""Novelty as surprise: minus the log density of each patch under the patch mixture, against a baseline.

A row or more of agent/novelty/registry.py. It must not learn from events: its caller says whether one is open.
"""

from dataclasses import dataclass

import cv2
import numpy as np

from stillwatch.base import Composed, RecordPart, Stage, saved
from stillwatch.epochs import PATCHES, Models
from stillwatch.features import Rows
from stillwatch.novelty.baselines import Baseline
from stillwatch.novelty.calibration import RarityCalibration, RunningSpread
from stillwatch.novelty.regions import novel_regions
from stillwatch.novelty.rules import NEIGHBOURS, SETTLING_FRAMES
from stillwatch.novelty.strategy import Judgement
from stillwatch.novelty.visits import Kind, Over
from stillwatch.settings import NoveltyConfig


@dataclass
class _Frames:
    """What frames were like.

    scored: how many were. epoch: of the model that the baseline was measured under, -1 before the first. t_ns: stream
    time of the last. smoothed: their statistic, smoothed.
    """

    scored: int = saved(0, low=0)
    epoch: int = saved(-1, low=-1)
    t_ns: int = saved(0, low=0)
    smoothed: float = saved(0.0)


class Surprise(Composed):
    """Judges patches by their surprise against a baseline, and the frame by its most deviating neighbourhoods.

    Parameters
    ----------
    settings : NoveltyConfig
    baseline : Baseline
        What surprise is usual.
    capacity_patches : int
        Of the largest frame.
    least_spread : float
        Smallest deviation of the frames' statistic, and what it is taken for at first.
    """

    _where = "novelty"

    def __init__(self, settings: NoveltyConfig, baseline: Baseline, capacity_patches: int, least_spread: float):
        self._settings = settings
        self._baseline = baseline
        self._spread = RunningSpread(settings.halflife_s, least_spread, least_spread)
        self._calibration = RarityCalibration(settings.halflife_s)
        self._surprise, self._labels = np.zeros(capacity_patches), np.zeros(capacity_patches, np.int64)
        self._deviations = np.zeros(capacity_patches, np.float32)
        self._frames = _Frames()

    @property
    def kinds(self) -> list[Kind]:
        """None: under a camera that moves nobody comes and goes."""
        return []

    def judge(self, rows: Rows, models: Models, t_ns: int) -> Judgement:
        """Judge a frame under the active models; a new model is first measured on what the baseline kept."""
        n, grid = len(rows.patches), rows.grid_shape
        surprise, labels, deviations = self._surprise[:n], self._labels[:n], self._deviations[:n]
        self._baseline.take_grid(grid)
        if models.epoch != self._frames.epoch:
            self._baseline.model_changed(models[PATCHES])
            self._frames.epoch = models.epoch
        models[PATCHES].score_and_label(rows.patches, surprise, labels)
        np.negative(surprise, out=surprise)
        self._baseline.standardise(surprise, labels, rows.valid, deviations)
        labels[~rows.valid] = -1
        coherent = neighbourhood_means(deviations.reshape(grid), rows.valid.reshape(grid))
        statistic = self._smoothed(self._most_deviating(coherent.ravel()[rows.valid]), t_ns)
        value = self._spread.standardise(statistic)
        regions = novel_regions(deviations.reshape(grid), rows.centres, self._settings.least_patches)
        return Judgement(surprise, deviations, labels, regions, statistic, value, self._calibration.rarity(value))

    def _most_deviating(self, deviations: np.ndarray) -> float:
        """Return the mean of the frame's most deviating neighbourhoods, 0 where all is masked."""
        if not len(deviations):
            return 0.0
        n_top = max(1, round(self._settings.top_share * len(deviations)))
        return float(np.partition(deviations, len(deviations) - n_top)[-n_top:].mean())

    def _smoothed(self, statistic: float, t_ns: int) -> float:
        """Return the statistic smoothed over `smoothing_s` of stream time."""
        frames, smoothing_s = self._frames, self._settings.smoothing_s
        elapsed_s = max(t_ns - frames.t_ns, 0) / 1e9
        keep = 0.5 ** (elapsed_s / smoothing_s) if smoothing_s > 0.0 else 0.0
        return frames.smoothed + (1.0 - keep) * (statistic - frames.smoothed)

    def learn(self, rows: Rows, judgement: Judgement | None, t_ns: int, *, in_event: bool) -> list[Over]:
        """Let a frame teach what is usual; events teach neither spread nor calibration, and the baseline little.

        Before there is a model, rows are kept all the same, so that the first one has a baseline at once.
        """
        surprise = None if judgement is None else judgement.surprise
        self._baseline.learn(rows.patches, surprise, rows.valid, in_event)
        if judgement is None:
            return []
        frames = self._frames
        frames.smoothed, frames.t_ns = judgement.statistic, t_ns
        if not in_event:
            if frames.scored > SETTLING_FRAMES:  # the first score has nothing to be measured against
                self._calibration.learn(judgement.value, t_ns)
            if frames.scored >= SETTLING_FRAMES:
                self._spread.learn(judgement.statistic, t_ns)
        frames.scored += 1
        return []

    def _parts(self) -> dict[str, Stage]:
        return {
            "baseline": self._baseline,
            "spread": self._spread,
            "calibration": self._calibration,
            "frames": RecordPart(self._frames, "novelty: frames"),
        }

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes of all arrays at the largest frame."""
        own = self._surprise.nbytes + self._labels.nbytes + self._deviations.nbytes
        return {"surprise": own + self.parts_bytes()}


def neighbourhood_means(deviations: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """Return the mean over the valid ones of each patch and its neighbours, (rows, columns) float32.

    deviations : ndarray of shape (rows, columns), float32, 0 where not valid;  valid : (rows, columns) bool
    """
    size, border = (NEIGHBOURS, NEIGHBOURS), cv2.BORDER_REFLECT
    share = cv2.blur(valid.astype(np.float32), size, borderType=border)
    return cv2.blur(deviations, size, borderType=border) / np.maximum(share, 1.0 / NEIGHBOURS**2)
