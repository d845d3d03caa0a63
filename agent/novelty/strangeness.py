"""Novelty under a moving camera: what is far from all that was seen, wherever in the view that was.

A row of agent/novelty/registry.py. Its memory learns from events too; what frames are usually like does not.
"""

from dataclasses import dataclass

import cv2
import numpy as np

from stillwatch.base import Composed, RecordPart, Stage, saved
from stillwatch.epochs import PATCHES, Models
from stillwatch.features import Rows
from stillwatch.novelty.calibration import RarityCalibration, RunningSpread
from stillwatch.novelty.patch_memory import PatchMemory
from stillwatch.novelty.regions import novel_regions
from stillwatch.novelty.rules import LEAST_SPREAD, NEIGHBOURS, SETTLING_FRAMES, STRIDE
from stillwatch.novelty.strategy import Judgement, Sizes
from stillwatch.novelty.visits import Kind
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
    """Judges patches by their distance to what is remembered, and the frame by its strangest neighbourhoods.

    Every second patch of every second row of the grid is judged for itself and its neighbours: their windows overlap,
    the frame's figure is as good, and a memory is four times as fast. The patch mixture names what a patch is most
    like; it does not judge.

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
        self._spread = RunningSpread(settings.halflife_s, LEAST_SPREAD, LEAST_SPREAD)
        self._calibration = RarityCalibration(settings.halflife_s)
        self._distances, self._deviations = np.zeros(n, np.float32), np.zeros(n, np.float32)
        self._density, self._labels = np.zeros(n), np.zeros(n, np.int64)
        self._frames = _Frames()

    @property
    def kinds(self) -> list[Kind]:
        """None: under a camera that moves nobody comes and goes."""
        return []

    def judge(self, rows: Rows, models: Models, t_ns: int) -> Judgement:
        """Judge a frame at stream time `t_ns`; it teaches nothing."""
        n, grid = len(rows.patches), rows.grid_shape
        labels, distances, deviations = self._labels[:n], self._distances[:n], self._deviations[:n]
        models[PATCHES].score_and_label(rows.patches, self._density[:n], labels)
        labels[~rows.valid] = -1
        chosen, valid = thinned(rows.patches, grid), thinned(rows.valid, grid)
        small = (-(-grid[0] // STRIDE), -(-grid[1] // STRIDE))
        near, strange = np.zeros(len(chosen), np.float32), np.zeros(len(chosen), np.float32)
        self._memory.distances(chosen, near)
        self._memory.deviations(near, strange)
        strange[~valid] = 0.0
        coherent = neighbourhood_means(strange.reshape(small), valid.reshape(small))
        statistic = self._smoothed(self._strangest(coherent.ravel()[valid]), t_ns)
        value = self._spread.standardise(statistic)
        spread_out(near.reshape(small), distances.reshape(grid))
        spread_out(strange.reshape(small), deviations.reshape(grid))
        deviations[~rows.valid] = 0.0
        least = self._settings.least_patches * STRIDE**2  # of those judged: each stands for so many
        regions = novel_regions(deviations.reshape(grid), rows.centres, least)
        return Judgement(distances, deviations, labels, regions, statistic, value, self._calibration.rarity(value))

    def _strangest(self, deviations: np.ndarray) -> float:
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

    def learn(self, rows: Rows, judgement: Judgement | None, t_ns: int, *, in_event: bool) -> None:
        """Let a frame teach what is usual; events teach neither spread nor calibration."""
        valid = thinned(rows.valid, rows.grid_shape)
        known = None if judgement is None else thinned(judgement.surprise, rows.grid_shape)[valid]
        self._memory.learn(thinned(rows.patches, rows.grid_shape)[valid], known, t_ns)
        if judgement is None:
            return
        frames = self._frames
        frames.smoothed, frames.t_ns = judgement.statistic, t_ns
        if not in_event:
            if frames.scored > SETTLING_FRAMES:  # the first score has nothing to be measured against
                self._calibration.learn(judgement.value, t_ns)
            if frames.scored >= SETTLING_FRAMES:
                self._spread.learn(judgement.statistic, t_ns)
        frames.scored += 1

    def _parts(self) -> dict[str, Stage]:
        return {
            "memory": self._memory,
            "spread": self._spread,
            "calibration": self._calibration,
            "frames": RecordPart(self._frames, "novelty: frames"),
        }

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes of all arrays at the largest frame."""
        own = self._distances.nbytes + self._deviations.nbytes + self._density.nbytes + self._labels.nbytes
        return {"strangeness": own + self.parts_bytes()}


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
