"""What people use today to find novelty in video, each as one score a frame on the frames that we scored.

Called by tools/evaluate/command.py and tools/evaluate/suite/runner.py. Baselines see every frame in order from the
first; none may see the ground truth.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

import cv2
import numpy as np

from stillwatch.base import Frame
from stillwatch.features import FeatureExtractor, RowMaker
from stillwatch.novelty import CameraMotion
from stillwatch.settings import Config
from stillwatch.tools.evaluate.run import Run, frames_of

SIMPLE = ("mog2", "knn", "difference")
BASELINES = (*SIMPLE, "reservoir_nn", "hst", "k_centre")
WIDTH = 384  # pixels, of the pictures that the background subtractors see
FOREGROUND = 255  # their masks also hold 127, for shadows
TOP_SHARE = 0.1  # of a frame's patches: the mean of the farthest makes the frame's score
K_FRAMES = 16  # kept by the k-centre summary: as many as our exemplars
SEED = 0


class Baseline(Protocol):
    """Scores the next frame, and learns from it."""

    def score(self, frame: Frame, seen: "Seen") -> float: ...


class Seen:
    """What several baselines use of a frame: its descriptors, and the rows that our mixture would learn."""

    def __init__(self, config: Config, camera: str):
        self._features = FeatureExtractor(config)
        self._rule = CameraMotion(camera).rule
        self._rows = RowMaker(self._features.capacity_patches, self._features.n_patch_dims, config.features.step_px)
        self.rows = np.zeros((0, self._rows.n_row_dims), np.float32)
        self.frame = np.zeros(self._features.n_frame_dims, np.float32)
        self.ready = False

    def look(self, frame: Frame) -> None:
        """Describe the next frame."""
        features = self._features.extract(frame)
        if not features.ready:
            self._features.observe(features)
        self.ready = features.ready
        if self.ready:
            self.rows = self._rows.rows_of(frame, features, self._rule).patches[features.valid]
            self.frame = features.frame


class Subtractor:
    """Share of foreground of one of OpenCV's background subtractors at its defaults, after a 3x3 opening."""

    def __init__(self, make: Callable):
        self._subtractor = make()
        self._element = np.ones((3, 3), np.uint8)

    def score(self, frame: Frame, seen: Seen | None = None) -> float:
        """Return the share of pixels that are foreground; learns at OpenCV's own rate."""
        height, width = frame.grey.shape
        picture = cv2.resize(frame.colour, (WIDTH, round(height * WIDTH / width)), interpolation=cv2.INTER_AREA)
        mask = (self._subtractor.apply(picture) == FOREGROUND).astype(np.uint8)
        return float(cv2.morphologyEx(mask, cv2.MORPH_OPEN, self._element).mean())


class Difference:
    """Mean absolute difference to the frame before, grey levels."""

    def __init__(self):
        self._last: np.ndarray | None = None

    def score(self, frame: Frame, seen: Seen | None = None) -> float:
        """Return the difference; 0 for the first frame and after a change of size."""
        last, self._last = self._last, frame.grey.copy()
        if last is None or last.shape != frame.grey.shape:
            return 0.0
        return float(cv2.absdiff(last, frame.grey).mean())


class ReservoirNeighbours:
    """Distance of each row to its nearest neighbour in a uniform sample of the past.

    The sample holds as many rows as our mixture's memory counts data points, which is the papers' measure of bytes.
    Rows are scaled by the deviations of the first frame's, as our mixture does by its first epoch.
    """

    def __init__(self, n_dims: int, n_rows: int, per_frame: int):
        self._rows = np.zeros((n_rows, n_dims), np.float32)
        self._kept = self._seen = 0
        self._per_frame = per_frame
        self._scale: np.ndarray | None = None
        self._rng = np.random.default_rng(SEED)

    def score(self, frame: Frame, seen: Seen) -> float:
        """Return the mean distance of the farthest tenth of the frame's rows; 0 before anything is kept."""
        if not seen.ready or not len(seen.rows):
            return 0.0
        if self._scale is None:
            self._scale = 1.0 / np.maximum(seen.rows.std(axis=0), 1e-6)
        rows = seen.rows * self._scale
        value = 0.0
        if self._kept:
            kept = self._rows[: self._kept]
            squares = (kept * kept).sum(axis=1)[None] - 2.0 * (rows @ kept.T)
            nearest = np.sqrt(np.maximum(squares.min(axis=1) + (rows * rows).sum(axis=1), 0.0))
            n_top = max(1, round(TOP_SHARE * len(nearest)))
            value = float(np.partition(nearest, len(nearest) - n_top)[-n_top:].mean())
        for row in rows[self._rng.choice(len(rows), min(self._per_frame, len(rows)), replace=False)]:
            place = self._kept if self._kept < len(self._rows) else int(self._rng.integers(self._seen + 1))
            if place < len(self._rows):
                self._rows[place] = row
            self._kept, self._seen = min(self._kept + 1, len(self._rows)), self._seen + 1
        return value


class HalfSpaceTrees:
    """River's HalfSpaceTrees at its defaults on frame descriptors, brought to [0, 1] by a running range."""

    def __init__(self):
        from river import anomaly, compose, preprocessing

        self._model = compose.Pipeline(preprocessing.MinMaxScaler(), anomaly.HalfSpaceTrees(seed=SEED))

    def score(self, frame: Frame, seen: Seen) -> float:
        """Return River's score of the frame descriptor, which it then learns."""
        if not seen.ready:
            return 0.0
        row = {number: float(value) for number, value in enumerate(seen.frame)}
        value = float(self._model.score_one(row))
        self._model.learn_one(row)
        return value


class KCentre:
    """ROST's summary rule: distance to the nearest of k kept frames; kept when above the mean among the kept.

    A full summary gives up the one of the closest pair that is nearer to the others (Girdhar and Dudek 2012).
    """

    def __init__(self, k: int = K_FRAMES):
        self._k = k
        self.kept: list[np.ndarray] = []

    def score(self, frame: Frame, seen: Seen) -> float:
        """Return the distance of the frame descriptor to the summary; may take the frame into it."""
        if not seen.ready:
            return 0.0
        row = seen.frame.astype(np.float64)
        if not self.kept:
            self.kept.append(row)
            return 0.0
        distances = [float(np.linalg.norm(row - kept)) for kept in self.kept]
        value = min(distances)
        if value > self._threshold():
            self.kept.append(row)
            if len(self.kept) > self._k:
                self._drop_one()
        return value

    def _between(self) -> np.ndarray:
        kept = np.array(self.kept)
        between = np.linalg.norm(kept[:, None] - kept[None], axis=2)
        np.fill_diagonal(between, np.inf)
        return between

    def _threshold(self) -> float:
        """Return the mean distance of the kept frames to their nearest kept neighbours; 0 for one."""
        return float(self._between().min(axis=1).mean()) if len(self.kept) > 1 else 0.0

    def _drop_one(self) -> None:
        between = self._between()
        first, second = np.unravel_index(np.argmin(between), between.shape)
        between[first, second] = between[second, first] = np.inf
        del self.kept[int(first if between[first].min() < between[second].min() else second)]


def make_baseline(name: str, config: Config, n_row_dims: int) -> Baseline:
    """Return the baseline of that name, ready for the first frame."""
    if name == "mog2":
        return Subtractor(cv2.createBackgroundSubtractorMOG2)
    if name == "knn":
        return Subtractor(cv2.createBackgroundSubtractorKNN)
    if name == "difference":
        return Difference()
    if name == "hst":
        return HalfSpaceTrees()
    if name == "k_centre":
        return KCentre()
    per_frame = max(config.patches.epoch_size // config.learning.epoch_frames, 1)
    return ReservoirNeighbours(n_row_dims, config.patches.memory, per_frame)


def baseline_scores(config: Config, run: Run, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Return each baseline's score of every frame of the config's source that our run had, (n,) float64."""
    return scores_of_frames(config, run, names, _paced(config, run.number))


def scores_of_frames(
    config: Config, run: Run, names: tuple[str, ...], frames: Iterable[Frame]
) -> dict[str, np.ndarray]:
    """Return each baseline's score of every one of the run's frames, which are given again, (n,) float64."""
    seen = Seen(config, "moving" if run.moving else "fixed")
    baselines = {name: make_baseline(name, config, seen.rows.shape[1]) for name in names}
    describes = any(name not in SIMPLE for name in names)
    scores: dict[str, list[float]] = {name: [] for name in names}
    for frame in frames:
        if describes:
            seen.look(frame)
        for name, baseline in baselines.items():
            scores[name].append(baseline.score(frame, seen))
    return {name: np.array(values) for name, values in scores.items()}


def _paced(config: Config, number: np.ndarray) -> Iterator[Frame]:
    """Yield the frames of the source that our run had: those between its first and last number, at the same rate."""
    if len(number):
        yield from frames_of(config, int(number[0]), int(number[-1]))
