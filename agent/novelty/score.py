"""Novelty: how surprising each patch and the whole frame are under the active models, and how rare that is here.

Called by agent/pipeline/pipeline.py with every accepted frame, before the learners see it. It must not learn from
events: the pipeline tells it by `settle` whether one is open.
"""

from dataclasses import dataclass

import cv2
import numpy as np

from stillwatch.base import (
    Commit,
    Frame,
    Restorable,
    SnapshotError,
    Stage,
    State,
    prepare_parts,
    prepare_record,
    record_bytes,
    record_state,
    saved,
    state_of_parts,
    with_prefix,
    without_prefix,
)
from stillwatch.epochs import PATCHES, SCENES, Models
from stillwatch.features import Features
from stillwatch.novelty.baselines import ComponentBaseline, PlaceBaseline
from stillwatch.novelty.calibration import RarityCalibration, RunningSpread
from stillwatch.novelty.motion import CameraMotion
from stillwatch.novelty.regions import Region, novel_regions
from stillwatch.novelty.rules import (
    CALIBRATION_FRAMES,
    CONTEXT_DIMS,
    DARKEST,
    LEAST_SPREAD_FIXED,
    LEAST_SPREAD_MOVING,
    NEIGHBOURS,
    SETTLING_FRAMES,
)
from stillwatch.settings import Config


@dataclass
class _Counts:
    """How far novelty has come.

    accepted, scored: frames. epoch: of the model that the baseline was measured under, -1 before the first. t_ns:
    stream time of the frame scored last. smoothed: the frames' statistic, smoothed. grid_rows, grid_columns: of the
    patches, 0 before the first frame.
    """

    accepted: int = saved(0, low=0)
    scored: int = saved(0, low=0)
    epoch: int = saved(-1, low=-1)
    t_ns: int = saved(0, low=0)
    smoothed: float = saved(0.0)
    grid_rows: int = saved(0, low=0)
    grid_columns: int = saved(0, low=0)


@dataclass(slots=True)
class Score:
    """What one accepted frame's novelty is. Arrays are novelty's own and valid until its next call.

    Attributes
    ----------
    value : float
        Calibrated novelty: deviations above what frames of this camera usually have. 0 while learning.
    rarity : float
        One frame in this many scores so high here; 1 while learning.
    frame_surprise : float
        Of the frame descriptor under the scene mixture, nats; NaN where there is none.
    patch_map : ndarray of shape (rows, columns), float32
        Deviations above the usual of each patch; 0 where masked.
    labels : ndarray of shape (n_patches,), int64
        Place (0 = largest) of each patch's likeliest component in the ids of the active patch mixture; -1 where masked.
    learning : bool
        No model yet, or too few frames scored: no alert may be raised.
    progress : float
        Of the start-up, 0 to 1.
    regions : list of Region
        The novel places of the frame, the strongest first.
    component : int
        Id of the component nearest to the strongest region; -1 where there is none.
    """

    value: float
    rarity: float
    frame_surprise: float
    patch_map: np.ndarray
    labels: np.ndarray
    learning: bool
    progress: float
    regions: list[Region]
    component: int

    @property
    def boxes(self) -> list[tuple[float, float, float, float]]:
        """x0, y0, x1, y1 of the novel regions as shares of width and height, the strongest first."""
        return [region.box for region in self.regions]

    @property
    def position(self) -> tuple[float, float] | None:
        """Centre of the strongest region, as shares of width and height."""
        return self.regions[0].centre if self.regions else None


class Novelty(Restorable):
    """Scores frames. Everything is allocated here, for the largest frame.

    Parameters
    ----------
    config : Config
    capacity_patches, n_patch_dims, n_frame_dims : int
        Of the feature extractor.

    Attributes
    ----------
    n_row_dims : int
        Width of the rows that are scored and learnt: encoded patch, then the context.
    """

    def __init__(self, config: Config, *, capacity_patches: int, n_patch_dims: int, n_frame_dims: int):
        self._settings = config.novelty
        self._step_px = config.features.step_px
        self._warmup_frames = config.encoder.warmup_frames
        self._first_model_frames = config.learning.first_epoch_frames + config.learning.activation_delay_frames
        self.n_row_dims = n_patch_dims + CONTEXT_DIMS
        self._motion = CameraMotion(config.novelty.camera)
        halflife_s = config.novelty.halflife_s
        self._places = PlaceBaseline(capacity_patches, self.n_row_dims)
        self._components = ComponentBaseline(self.n_row_dims, config.patches.max_components, config.agent.seed)
        self._spreads = {
            moving: RunningSpread(halflife_s, least, least)
            for moving, least in ((False, LEAST_SPREAD_FIXED), (True, LEAST_SPREAD_MOVING))
        }
        self._calibration = RarityCalibration(halflife_s)
        self._rows = np.zeros((capacity_patches, self.n_row_dims), np.float32)
        self._density, self._labels = np.zeros(capacity_patches), np.zeros(capacity_patches, np.int64)
        self._deviations = np.zeros(capacity_patches, np.float32)
        self._counts = _Counts()
        self._augmented = -1  # sequence of the frame whose rows are in `_rows`
        self._last: tuple[Frame, np.ndarray, float] | None = None

    # -- the camera ------------------------------------------------------------------------------------------

    @property
    def moving(self) -> bool:
        """Whether the camera moves, as far as is known."""
        return self._motion.decided and self._motion.moving

    @property
    def decided(self) -> bool:
        """Whether it is known if the camera moves; rows mean nothing before."""
        return self._motion.decided

    @property
    def progress(self) -> float:
        """Of the start-up: 0 at the first frame, 1 once alerts may be raised."""
        needed = self._warmup_frames + self._first_model_frames
        frames, scored = self._counts.accepted, self._counts.scored
        if scored >= CALIBRATION_FRAMES:
            return 1.0
        return min((min(frames - scored, needed) + scored) / (needed + CALIBRATION_FRAMES), 0.99)

    @property
    def _baseline(self) -> PlaceBaseline | ComponentBaseline:
        return self._components if self.moving else self._places

    @property
    def _spread(self) -> RunningSpread:
        return self._spreads[self.moving]

    def observe(self, frame: Frame) -> None:
        """Take note of the next accepted frame: its number, and what it tells about the camera's motion."""
        self._counts.accepted += 1
        self._motion.observe(frame.grey)

    def reshape(self, grid_shape: tuple[int, int]) -> None:
        """Frames have another size from now on: what was usual at a place is void."""
        counts = self._counts
        if grid_shape != (counts.grid_rows, counts.grid_columns):
            counts.grid_rows, counts.grid_columns = grid_shape
            self._places.reset(grid_shape[0] * grid_shape[1])

    # -- rows ------------------------------------------------------------------------------------------------

    def augment(self, frame: Frame, features: Features) -> np.ndarray:
        """Return the frame's rows as they are scored and learnt: encoded patches and their context.

        Returns
        -------
        ndarray of shape (n_patches, n_row_dims), float32
            Novelty's own, valid until the next call. The context is the patch's place (shares of width and height)
            under a fixed camera, and the colour there under a moving one: log ratios of blue and red to green,
            which no change of exposure moves. Under a fixed camera the patch's brightness is taken out: exposure,
            clouds and shadows change it at every place and say nothing new.
        """
        n = len(features.patches)
        rows = self._rows[:n]
        if self._augmented != frame.sequence:
            rows[:, :-CONTEXT_DIMS] = features.patches
            if self.moving:
                rows[:, -CONTEXT_DIMS:] = self._chroma(frame, features)
            else:
                rows[:, -CONTEXT_DIMS:] = features.centres
                if features.brightness_axis is not None:
                    rows[:, :-CONTEXT_DIMS] -= features.raw_patches[:, -1:] * features.brightness_axis
            self._augmented = frame.sequence
        return rows

    def _chroma(self, frame: Frame, features: Features) -> np.ndarray:
        """Return the log chroma at each patch's centre, (n, 2) float32."""
        height, width = frame.grey.shape
        columns, rows = max(1, width // self._step_px), max(1, height // self._step_px)
        cells = np.log(cv2.resize(frame.colour, (columns, rows), interpolation=cv2.INTER_AREA) + np.float32(DARKEST))
        column = np.minimum((features.centres[:, 0] * columns).astype(np.int64), columns - 1)
        row = np.minimum((features.centres[:, 1] * rows).astype(np.int64), rows - 1)
        picked = cells.reshape(rows, columns, 3)[row, column]
        return picked[:, (0, 2)] - picked[:, 1:2]

    # -- scores ----------------------------------------------------------------------------------------------

    def score(self, frame: Frame, features: Features, models: Models | None) -> Score:
        """Return the frame's novelty under the active models; the frame teaches nothing before `settle`."""
        n = len(features.patches)
        self._last = None
        self.reshape(features.grid_shape)
        deviations, labels = self._deviations[:n], self._labels[:n]
        if models is None or not features.ready or not self.decided:
            if features.ready and self.decided:
                self._last = (frame, features.valid, float("nan"))
                self.augment(frame, features)
            deviations[:] = 0.0
            labels[:] = -1
            patch_map = deviations.reshape(features.grid_shape)
            return Score(0.0, 1.0, float("nan"), patch_map, labels, True, self.progress, [], -1)
        if models.epoch != self._counts.epoch:
            self._baseline.model_changed(models[PATCHES])
            self._counts.epoch = models.epoch
        models[PATCHES].score_and_label(self.augment(frame, features), self._density[:n], labels)
        self._baseline.standardise(-self._density[:n], labels, features.valid, deviations)
        labels[~features.valid] = -1
        frame_surprise = self._frame_surprise(features, models)
        grid = features.grid_shape
        coherent = neighbourhood_means(deviations.reshape(grid), features.valid.reshape(grid))
        value = self._frame_value(coherent.ravel()[features.valid], frame.t_ns)
        rarity = self._calibration.rarity(value)
        regions = novel_regions(deviations.reshape(features.grid_shape), features.centres, self._settings.least_patches)
        component = self._nearest(regions, labels, models)
        self._last = (frame, features.valid, value)
        learning = self._counts.scored < CALIBRATION_FRAMES
        patch_map = deviations.reshape(features.grid_shape)
        return Score(
            value,
            1.0 if learning else rarity,
            frame_surprise,
            patch_map,
            labels,
            learning,
            self.progress,
            regions,
            component,
        )

    def _frame_surprise(self, features: Features, models: Models) -> float:
        """Return the surprise of the frame descriptor, nats; NaN before there is a scene mixture."""
        if SCENES not in models:
            return float("nan")
        return -float(models[SCENES].score_samples(features.frame[None])[0])

    def _frame_value(self, deviations: np.ndarray, t_ns: int) -> float:
        """Return the frame's score: the mean of its most deviating neighbourhoods, against what frames usually have.

        Smoothed over `smoothing_s` of stream time before it is judged.
        """
        if not len(deviations):
            return 0.0
        n_top = max(1, round(self._settings.top_share * len(deviations)))
        statistic = float(np.partition(deviations, len(deviations) - n_top)[-n_top:].mean())
        elapsed_s = max(t_ns - self._counts.t_ns, 0) / 1e9
        keep = 0.5 ** (elapsed_s / self._settings.smoothing_s) if self._settings.smoothing_s > 0.0 else 0.0
        self._counts.smoothed += (1.0 - keep) * (statistic - self._counts.smoothed)
        self._counts.t_ns = t_ns
        return self._spread.standardise(self._counts.smoothed)

    def _nearest(self, regions: list[Region], labels: np.ndarray, models: Models) -> int:
        """Return the id of the component that the strongest region's peak is nearest to; -1 where none is."""
        if not regions or not models[PATCHES].n_components:
            return -1
        return int(models[PATCHES].ids[labels[regions[0].peak]])

    def settle(self, *, in_event: bool) -> None:
        """Let the frame scored last teach what is usual here; events teach neither baselines nor calibration."""
        if self._last is None:
            return
        frame, valid, value = self._last
        self._last = None
        if np.isnan(value):  # no model yet: rows are kept, so that the first model has a baseline at once
            self._components.learn(self._rows[: len(valid)], valid, in_event)
            return
        self._baseline.learn(self._rows[: len(valid)], valid, in_event)
        if not in_event:
            if self._counts.scored > SETTLING_FRAMES:  # the first score has nothing to be measured against
                self._calibration.learn(value, frame.t_ns)
            if self._counts.scored >= SETTLING_FRAMES:
                self._spread.learn(self._counts.smoothed, frame.t_ns)
        self._counts.scored += 1

    # -- state -----------------------------------------------------------------------------------------------

    def _parts(self) -> dict[str, Stage]:
        return {
            "motion": self._motion,
            "places": self._places,
            "components": self._components,
            "spread_fixed": self._spreads[False],
            "spread_moving": self._spreads[True],
            "calibration": self._calibration,
        }

    def state(self) -> State:
        """Return everything that later scores depend on, as copies."""
        state = state_of_parts(self._parts())
        state.update(with_prefix("counts", record_state(self._counts)))
        return state

    def prepare(self, state: State) -> Commit:
        """Validate `state` and return its commit; SnapshotError, and no change, where it does not fit."""
        parts = {name: array for name, array in state.items() if not name.startswith("counts.")}
        own = without_prefix("counts", state)
        take_parts = prepare_parts(self._parts(), parts, "novelty")
        take_counts = prepare_record(self._counts, own, "novelty: counts")
        n_patches, n_places = int(own["grid_rows"]) * int(own["grid_columns"]), len(state["places.mean"])
        if n_patches > len(self._rows) or n_places not in (0, n_patches):
            raise SnapshotError(f"novelty: {n_patches} patches of {n_places} places, room is for {len(self._rows)}")

        def commit() -> None:
            take_parts()
            take_counts()
            self._augmented, self._last = -1, None

        return commit

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes of all arrays of this stage at the largest frame."""
        own = (self._rows, self._density, self._labels, self._deviations)
        parts = sum(sum(part.memory_bytes().values()) for part in self._parts().values())
        return {"novelty": sum(array.nbytes for array in own) + record_bytes(self._counts) + parts}


def neighbourhood_means(deviations: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """Return the mean over the valid ones of each patch and its neighbours, (rows, columns) float32.

    deviations : ndarray of shape (rows, columns), float32, 0 where not valid;  valid : (rows, columns) bool
    """
    size, border = (NEIGHBOURS, NEIGHBOURS), cv2.BORDER_REFLECT
    share = cv2.blur(valid.astype(np.float32), size, borderType=border)
    return cv2.blur(deviations, size, borderType=border) / np.maximum(share, 1.0 / NEIGHBOURS**2)
