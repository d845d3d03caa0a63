"""Novelty under a moving camera: what is far from all that was seen, or unlikely, wherever in the view that was.

A row of agent/novelty/registry.py. What it keeps of patches is of events too; what frames are usually like is not.
"""

import math
from dataclasses import dataclass

import cv2
import numpy as np

from stillwatch.base import Composed, RecordPart, Stage, saved, saved_array
from stillwatch.epochs import PATCHES, Models
from stillwatch.features import Rows
from stillwatch.novelty.baselines import ComponentBaseline
from stillwatch.novelty.calibration import RarityCalibration, RunningSpread
from stillwatch.novelty.patch_memory import PatchMemory
from stillwatch.novelty.regions import novel_regions
from stillwatch.novelty.rules import LEAST_SPREAD, NEIGHBOURS, NS, SETTLING_FRAMES, STRIDE
from stillwatch.novelty.strategy import Judgement, Sizes
from stillwatch.novelty.visits import Kind, Over
from stillwatch.settings import Config


@dataclass
class _Frames:
    """What frames were like.

    scored: how many were. epoch: of the model that the baseline was measured under, -1 before the first. t_ns: stream
    time of the last. smoothed: their two statistics, smoothed: how far, how unlikely.
    """

    scored: int = saved(0, low=0)
    epoch: int = saved(-1, low=-1)
    t_ns: int = saved(0, low=0)
    smoothed: np.ndarray = saved_array((2,), np.float64)


class Strangeness(Composed):
    """Judges patches by two measures, in deviations above the usual, and the frame by its strangest neighbourhoods.

    One is the distance to the nearest of a sample of all patches: sure from the first minute, but new ground is strange
    to it for long. The other is the surprise under the patch mixture, against the patch's own component: it knows that
    gravel varies, but is blind to what a component covers by chance. A frame has so much of either as it is above the
    usual; one that is usual by one measure is none the less news by the other.

    Every second patch of every second row of the grid is kept and measured by distance, for itself and its neighbours:
    their windows overlap, the frame's figure is as good, and the search four times as fast.

    Parameters
    ----------
    config : Config
    sizes : Sizes
    """

    _where = "novelty"

    def __init__(self, config: Config, sizes: Sizes):
        settings, n = config.novelty, sizes.capacity_patches
        self._settings = settings
        self._memory = PatchMemory(sizes.n_row_dims, horizon_s=settings.halflife_s, seed=config.agent.seed)
        self._baseline = ComponentBaseline(config.patches.max_components)
        self._spreads = [RunningSpread(settings.halflife_s, LEAST_SPREAD, LEAST_SPREAD) for _ in range(2)]
        self._calibration = RarityCalibration(settings.halflife_s)
        self._distances, self._far, self._deviations = (np.zeros(n, np.float32) for _ in range(3))
        self._surprise, self._labels = np.zeros(n), np.zeros(n, np.int64)
        self._frames = _Frames()

    @property
    def kinds(self) -> list[Kind]:
        """None: under a camera that moves nobody comes and goes."""
        return []

    def judge(self, rows: Rows, models: Models, t_ns: int) -> Judgement:
        """Judge a frame under the active models; a new model is first measured on what was kept."""
        n, grid = len(rows.patches), rows.grid_shape
        statistics = self._smoothed((self._judge_distances(rows), self._judge_surprise(rows, models)), t_ns)
        values = (spread.standardise(value) for spread, value in zip(self._spreads, statistics, strict=True))
        value = sum(_above(value) for value in values)
        deviations, far = self._deviations[:n], self._far[:n]
        np.maximum(deviations, far, out=deviations)
        regions = novel_regions(deviations.reshape(grid), rows.centres, self._settings.least_patches)
        distances, labels = self._distances[:n], self._labels[:n]
        return Judgement(distances, deviations, labels, regions, statistics, value, self._calibration.rarity(value))

    def share_like(self, rows: Rows, patches: np.ndarray) -> tuple[float, float]:
        """NaN: places are others in each frame."""
        return np.nan, np.nan

    def _judge_distances(self, rows: Rows) -> float:
        """Write by how many deviations patches are farther than usual from what is kept; return the frame's figure."""
        n, grid = len(rows.patches), rows.grid_shape
        chosen, valid = thinned(rows.patches, grid), thinned(rows.valid, grid)
        small = (-(-grid[0] // STRIDE), -(-grid[1] // STRIDE))
        near, strange = np.zeros(len(chosen), np.float32), np.zeros(len(chosen), np.float32)
        self._memory.distances(chosen, near)
        self._memory.deviations(near, strange)
        strange[~valid] = 0.0
        far = self._far[:n]
        spread_out(near.reshape(small), self._distances[:n].reshape(grid))
        spread_out(strange.reshape(small), far.reshape(grid))
        far[~rows.valid] = 0.0
        return self._strangest(strange.reshape(small), valid.reshape(small))

    def _judge_surprise(self, rows: Rows, models: Models) -> float:
        """Write by how many deviations patches surprise more than usual, and labels; return the frame's figure."""
        n, grid = len(rows.patches), rows.grid_shape
        surprise, labels, deviations = self._surprise[:n], self._labels[:n], self._deviations[:n]
        if models.epoch != self._frames.epoch:
            self._baseline.measure(models[PATCHES], self._memory.rows)
            self._frames.epoch = models.epoch
        models[PATCHES].score_and_label(rows.patches, surprise, labels)
        np.negative(surprise, out=surprise)
        self._baseline.standardise(surprise, labels, rows.valid, deviations)
        labels[~rows.valid] = -1
        return self._strangest(deviations.reshape(grid), rows.valid.reshape(grid))

    def _strangest(self, deviations: np.ndarray, valid: np.ndarray) -> float:
        """Return the mean of a grid's most deviating neighbourhoods, 0 where all is masked."""
        told = neighbourhood_means(deviations, valid)[valid]
        if not len(told):
            return 0.0
        n_top = max(1, round(self._settings.top_share * len(told)))
        return float(np.partition(told, len(told) - n_top)[-n_top:].mean())

    def _smoothed(self, statistics: tuple[float, float], t_ns: int) -> tuple[float, ...]:
        """Return the statistics smoothed over `smoothing_s` of stream time."""
        frames, smoothing_s = self._frames, self._settings.smoothing_s
        elapsed_s = max(t_ns - frames.t_ns, 0) / NS
        keep = 0.5 ** (elapsed_s / smoothing_s) if smoothing_s > 0.0 else 0.0
        return tuple((frames.smoothed + (1.0 - keep) * (np.array(statistics) - frames.smoothed)).tolist())

    def learn(self, rows: Rows, judgement: Judgement | None, t_ns: int, *, in_event: bool) -> list[Over]:
        """Let a frame teach what is usual; events teach neither spread nor calibration.

        Before there is a model, rows are kept all the same, so that the first one has a baseline at once.
        """
        valid = thinned(rows.valid, rows.grid_shape)
        known = None if judgement is None else thinned(judgement.surprise, rows.grid_shape)[valid]
        self._memory.learn(thinned(rows.patches, rows.grid_shape)[valid], known, t_ns)
        if judgement is None:
            return []
        frames = self._frames
        frames.smoothed[:], frames.t_ns = judgement.statistics, t_ns
        if not in_event:
            if frames.scored > SETTLING_FRAMES:  # the first score has nothing to be measured against
                self._calibration.learn(judgement.value, t_ns)
            if frames.scored >= SETTLING_FRAMES:
                for spread, statistic in zip(self._spreads, judgement.statistics, strict=True):
                    spread.learn(statistic, t_ns)
        frames.scored += 1
        return []

    def _parts(self) -> dict[str, Stage]:
        return {
            "memory": self._memory,
            "baseline": self._baseline,
            "far": self._spreads[0],
            "unlikely": self._spreads[1],
            "calibration": self._calibration,
            "frames": RecordPart(self._frames, "novelty: frames"),
        }

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes of all arrays at the largest frame."""
        arrays = (self._distances, self._far, self._deviations, self._surprise, self._labels)
        return {"strangeness": sum(array.nbytes for array in arrays) + self.parts_bytes()}


def _above(deviations: float) -> float:
    """Return how far above the usual, softly: what is far above counts as it is, what is below hardly, and 0 is 0."""
    return float(np.logaddexp(0.0, deviations)) - math.log(2.0)


def neighbourhood_means(deviations: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """Return the mean over the valid ones of each patch and its neighbours, (rows, columns) float32.

    deviations : ndarray of shape (rows, columns), float32, 0 where not valid;  valid : (rows, columns) bool
    """
    size, border = (NEIGHBOURS, NEIGHBOURS), cv2.BORDER_REFLECT
    share = cv2.blur(valid.astype(np.float32), size, borderType=border)
    return cv2.blur(deviations, size, borderType=border) / np.maximum(share, 1.0 / NEIGHBOURS**2)


def thinned(values: np.ndarray, grid: tuple[int, int]) -> np.ndarray:
    """Return every STRIDE-th value of every STRIDE-th row of the grid: (n, ...) of (rows * columns, ...), C order."""
    table = values.reshape(*grid, *values.shape[1:])[::STRIDE, ::STRIDE]
    return np.ascontiguousarray(table).reshape(-1, *values.shape[1:])


def spread_out(small: np.ndarray, out: np.ndarray) -> None:
    """Write a thinned grid's values, (rows, columns), to the places that each stands for in the whole one."""
    for top in range(STRIDE):
        for left in range(STRIDE):
            part = out[top::STRIDE, left::STRIDE]
            part[:] = small[: part.shape[0], : part.shape[1]]
