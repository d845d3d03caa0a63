"""Novelty under a moving camera: what is far from all that was seen, wherever in the view that was.

A row of agent/novelty/registry.py. What it keeps of patches is of events too; what is usual is learnt outside of them.
"""

from dataclasses import dataclass

import cv2
import numpy as np

from stillwatch.base import Composed, RecordPart, Stage, saved
from stillwatch.features import CONTEXT_DIMS, Rows
from stillwatch.novelty.calibration import RarityCalibration, RunningSpread
from stillwatch.novelty.patch_memory import PatchMemory
from stillwatch.novelty.regions import novel_regions
from stillwatch.novelty.rules import (
    CALIBRATION_FRAMES,
    COLOUR_WEIGHT,
    LEAST_SPREAD,
    NEIGHBOURS,
    NS,
    SETTLING_FRAMES,
    STRIDE,
)
from stillwatch.novelty.strategy import Judgement, Sizes
from stillwatch.novelty.usual_distances import UsualDistances
from stillwatch.novelty.visits import Kind, Over
from stillwatch.settings import Config


@dataclass
class _Frames:
    """What frames were like.

    scored: how many were. t_ns: stream time of the last. smoothed: their statistic, smoothed.
    """

    scored: int = saved(0, low=0)
    t_ns: int = saved(0, low=0)
    smoothed: float = saved(0.0)


class Strangeness(Composed):
    """Judges patches by how far they are from a sample of all patches, in deviations above the usual of their place in
    the view, and the frame by its strangest neighbourhoods.

    Every second patch of every second row of the grid is kept and measured, for itself and its neighbours: their
    windows overlap, the frame's figure is as good, and the search four times as fast.

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
        self._usual = UsualDistances(n)
        self._spread = RunningSpread(settings.halflife_s, LEAST_SPREAD, LEAST_SPREAD)
        self._calibration = RarityCalibration(settings.halflife_s)
        self._distances, self._deviations = np.zeros(n, np.float32), np.zeros(n, np.float32)
        self._frames = _Frames()

    @property
    def kinds(self) -> list[Kind]:
        """None: under a camera that moves nobody comes and goes."""
        return []

    def judge(self, rows: Rows, t_ns: int) -> Judgement:
        """Judge a frame by what is remembered."""
        n, grid = len(rows.patches), rows.grid_shape
        distances, deviations = self._distances[:n], self._deviations[:n]
        valid, small = thinned(rows.valid, grid), thinned_shape(grid)
        near, strange = np.zeros(small, np.float32), np.zeros(small, np.float32)
        self._memory.distances(looks_of(rows), near.reshape(-1))
        self._usual.deviations(near, strange)
        strange.reshape(-1)[~valid] = 0.0
        spread_out(near, distances.reshape(grid))
        spread_out(strange, deviations.reshape(grid))
        deviations[~rows.valid] = 0.0
        statistic = self._smoothed(self._strangest(strange, valid.reshape(small)), t_ns)
        value = self._spread.standardise(statistic)
        regions = novel_regions(deviations.reshape(grid), rows.centres, self._settings.least_patches)
        rarity = self._calibration.rarity(value)
        return Judgement(distances, deviations, regions, (statistic,), value, rarity)

    def share_like(self, rows: Rows, patches: np.ndarray) -> tuple[float, float]:
        """NaN: places are others in each frame."""
        return np.nan, np.nan

    def _strangest(self, deviations: np.ndarray, valid: np.ndarray) -> float:
        """Return the mean of a grid's most deviating neighbourhoods, 0 where all is masked."""
        told = neighbourhood_means(deviations, valid)[valid]
        if not len(told):
            return 0.0
        n_top = max(1, round(self._settings.top_share * len(told)))
        return float(np.partition(told, len(told) - n_top)[-n_top:].mean())

    def _smoothed(self, statistic: float, t_ns: int) -> float:
        """Return the statistic smoothed over `smoothing_s` of stream time."""
        frames, smoothing_s = self._frames, self._settings.smoothing_s
        elapsed_s = max(t_ns - frames.t_ns, 0) / NS
        keep = 0.5 ** (elapsed_s / smoothing_s) if smoothing_s > 0.0 else 0.0
        return frames.smoothed + (1.0 - keep) * (statistic - frames.smoothed)

    def learn(self, rows: Rows, judgement: Judgement | None, t_ns: int, *, in_event: bool) -> list[Over]:
        """Let a frame teach what is usual; events are remembered, and teach nothing of what is usual.

        Before there is a model, rows are kept all the same, so that the first one has something to be judged by.
        Frames that were judged before anything was kept have a statistic of 0: some of them are the usual that an
        event in the first seconds is measured against, more of them would make all that follows strange.
        """
        grid = rows.grid_shape
        valid, is_known = thinned(rows.valid, grid), self._memory.knows
        self._memory.learn(looks_of(rows)[valid], t_ns)
        if judgement is None or not (is_known or self._frames.scored < CALIBRATION_FRAMES):
            return []
        if is_known and not in_event:
            small = thinned_shape(grid)
            self._usual.learn(thinned(judgement.surprise, grid).reshape(small), valid.reshape(small))
        frames, statistic = self._frames, judgement.statistics[0]
        frames.smoothed, frames.t_ns = statistic, t_ns
        if not in_event:
            if frames.scored > SETTLING_FRAMES:  # the first score has nothing to be measured against
                self._calibration.learn(judgement.value, t_ns)
            if frames.scored >= SETTLING_FRAMES:
                self._spread.learn(statistic, t_ns)
        frames.scored += 1
        return []

    def _parts(self) -> dict[str, Stage]:
        return {
            "memory": self._memory,
            "usual": self._usual,
            "spread": self._spread,
            "calibration": self._calibration,
            "frames": RecordPart(self._frames, "novelty: frames"),
        }

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes of all arrays at the largest frame."""
        return {"strangeness": self._distances.nbytes + self._deviations.nbytes + self.parts_bytes()}


def neighbourhood_means(deviations: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """Return the mean over the valid ones of each patch and its neighbours, (rows, columns) float32.

    deviations : ndarray of shape (rows, columns), float32, 0 where not valid;  valid : (rows, columns) bool
    """
    size, border = (NEIGHBOURS, NEIGHBOURS), cv2.BORDER_REFLECT
    share = cv2.blur(valid.astype(np.float32), size, borderType=border)
    return cv2.blur(deviations, size, borderType=border) / np.maximum(share, 1.0 / NEIGHBOURS**2)


def looks_of(rows: Rows) -> np.ndarray:
    """Return the thinned rows of a frame as they are compared, (n, n_row_dims) float32, C order: colours count more."""
    looks = thinned(rows.patches, rows.grid_shape).copy()
    looks[:, -CONTEXT_DIMS:] *= np.float32(COLOUR_WEIGHT)
    return looks


def thinned_shape(grid: tuple[int, int]) -> tuple[int, int]:
    """Return rows and columns of a grid that is thinned."""
    return -(-grid[0] // STRIDE), -(-grid[1] // STRIDE)


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
