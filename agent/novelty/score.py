"""Novelty: how far each patch and the whole frame are from what was seen here, and how rare that is.

Called by agent/pipeline/pipeline.py with every accepted frame: `score` before the learners see it, `settle` once it
is known whether an event is open. How novelty is told is the business of the strategy that the camera's rule names.
"""

from dataclasses import dataclass, replace

import numpy as np

from stillwatch.base import Composed, Frame, RecordPart, Stage, saved
from stillwatch.epochs import PATCHES, SCENES, Models
from stillwatch.features import Rows
from stillwatch.novelty.regions import Region
from stillwatch.novelty.registry import STRATEGIES
from stillwatch.novelty.rules import CALIBRATION_FRAMES, LABEL_FRAMES, LONGEST_STEP_S, NS
from stillwatch.novelty.strategy import Judgement, Sizes
from stillwatch.novelty.visits import Kind, Over, Precedents
from stillwatch.settings import Config


@dataclass
class _Counts:
    """How far novelty has come, in frames; seconds of stream that were judged, and the last judged frame's time, ns.

    view: highest number of a camera's view so far; of_view: frames scored since that was new.
    """

    accepted: int = saved(0, low=0)
    scored: int = saved(0, low=0)
    view: int = saved(0, low=0)
    of_view: int = saved(0, low=0)
    watched_s: float = saved(0.0, low=0.0)
    t_ns: int = saved(-1, low=-1)


@dataclass(frozen=True, slots=True)
class Score:
    """What one accepted frame's novelty is, and what `settle` needs; arrays are valid until the next frame's.

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
    labels : ndarray of shape (n_patches,), int64, or None
        Place (0 = largest) of each patch's likeliest component in the ids of the active patch mixture; -1 where masked.
        None but in one of LABEL_FRAMES scored frames.
    learning : bool
        No model yet, or too few frames scored: no alert may be raised.
    progress : float
        Of the start-up, 0 to 1.
    regions : list of Region
        The novel places of the frame, the strongest first.
    component : int
        Id of the component nearest to the strongest region; -1 where there is none.
    t_ns : int
        Stream time of the frame.
    rows : Rows or None
        What may be learnt from the frame; None while rows mean nothing.
    judgement : Judgement or None
        What the strategy said; None where there was no model.
    precedents : Precedents
        What came before it, in counts.
    """

    value: float
    rarity: float
    frame_surprise: float
    patch_map: np.ndarray
    labels: np.ndarray | None
    learning: bool
    progress: float
    regions: list[Region]
    component: int
    t_ns: int
    rows: Rows | None = None
    judgement: Judgement | None = None
    precedents: Precedents = Precedents()

    @property
    def was_judged(self) -> bool:
        """Whether what the frame shows is believed: no weather fills nearly all of it."""
        return self.judgement is None or self.judgement.was_judged

    @property
    def was_named(self) -> bool:
        """Whether what is in view may be told by its name: neither weather nor another colour fills the picture."""
        return self.judgement is None or self.judgement.was_named

    @property
    def view_stays(self) -> bool:
        """Whether the camera is known to stand still: what is there now, stays there."""
        return self.rows is not None and self.rows.rule.view_stays

    @property
    def boxes(self) -> list[tuple[float, float, float, float]]:
        """x0, y0, x1, y1 of the novel regions as shares of width and height, the strongest first."""
        return [region.box for region in self.regions]


class Novelty(Composed):
    """Scores frames. Everything is allocated here, for the largest frame.

    Parameters
    ----------
    config : Config
    sizes : Sizes
        Of the rows that will come.
    """

    _where = "novelty"

    def __init__(self, config: Config, sizes: Sizes):
        first = config.learning.first_epoch_frames
        self._start_frames = config.encoder.warmup_frames + first + config.learning.delay_of(first)
        self._strategies = {name: make(config, sizes) for name, make in STRATEGIES.items()}
        self._calm = np.zeros(sizes.capacity_patches, np.float32)  # what is said of a frame that nothing is known of
        self._labels = np.zeros(sizes.capacity_patches, np.int64)
        self._counts = _Counts()

    @property
    def progress(self) -> float:
        """Of the start-up: 0 at the first frame, 1 once alerts may be raised."""
        return self._progress(self._counts.accepted)

    @property
    def watched_s(self) -> float:
        """Seconds of stream that were judged."""
        return self._counts.watched_s

    @property
    def kinds(self) -> list[Kind]:
        """Every kind of visits that is remembered, the most frequent first."""
        return [kind for strategy in self._strategies.values() for kind in strategy.kinds]

    def _progress(self, accepted: int) -> float:
        needed, scored = self._start_frames, self._counts.scored
        if scored >= CALIBRATION_FRAMES:
            return 1.0
        return min((min(accepted - scored, needed) + scored) / (needed + CALIBRATION_FRAMES), 0.99)

    def score(self, frame: Frame, rows: Rows, models: Models | None) -> Score:
        """Return the frame's novelty, its patches named by the active models; it teaches nothing before `settle`."""
        progress = self._progress(self._counts.accepted + 1)
        if models is None or not rows.ready:
            return self._unscored(frame, rows, progress)
        judgement = self._strategies[rows.rule.novelty].judge(rows, frame.t_ns)
        is_new_view = rows.view > self._counts.view
        learning = is_new_view or self._counts.of_view < CALIBRATION_FRAMES
        return Score(
            value=judgement.value,
            rarity=1.0 if learning else judgement.rarity,
            frame_surprise=_frame_surprise(rows.frame, models),
            patch_map=judgement.deviations.reshape(rows.grid_shape),
            labels=self._labels_of(rows, models) if self._counts.scored % LABEL_FRAMES == 0 else None,
            learning=learning,
            progress=progress,
            regions=judgement.regions,
            component=self._nearest(rows, judgement, models),
            t_ns=frame.t_ns,
            rows=rows,
            judgement=judgement,
            precedents=replace(judgement.precedents, watched_s=self._counts.watched_s, frames=self._counts.scored),
        )

    def share_like(self, rows: Rows, patches: np.ndarray) -> tuple[float, float]:
        """Return in what shares of all that was watched, and of the last seconds, some patches' places looked as now.

        NaN where nobody knows.
        """
        return self._strategies[rows.rule.novelty].share_like(rows, patches)

    def _labels_of(self, rows: Rows, models: Models) -> np.ndarray:
        """Return the place of each patch's likeliest component, (n,) int64, -1 where masked."""
        n = len(rows.patches)
        labels = self._labels[:n]
        models[PATCHES].label_samples(rows.patches, labels)
        labels[~rows.valid] = -1
        return labels

    def _nearest(self, rows: Rows, judgement: Judgement, models: Models) -> int:
        """Return the id of the component that the strongest region's peak is nearest to; -1 where none is."""
        if not judgement.regions or not models[PATCHES].n_components:
            return -1
        peak = judgement.regions[0].peak
        label = np.empty(1, np.int64)
        models[PATCHES].label_samples(rows.patches[peak : peak + 1], label)
        return int(models[PATCHES].ids[label[0]])

    def _unscored(self, frame: Frame, rows: Rows, progress: float) -> Score:
        """Return the score of a frame that there is nothing to judge by yet."""
        n = len(rows.valid)
        return Score(
            value=0.0,
            rarity=1.0,
            frame_surprise=float("nan"),
            patch_map=self._calm[:n].reshape(rows.grid_shape),
            labels=None,
            learning=True,
            progress=progress,
            regions=[],
            component=-1,
            t_ns=frame.t_ns,
            rows=rows if rows.ready else None,
        )

    def settle(self, score: Score, *, in_event: bool) -> list[Over]:
        """Let the frame of `score` teach what is usual here, as far as an event allows; once a frame, in order.

        Return the visits that are over.
        """
        over: list[Over] = []
        self._counts.accepted += 1
        if score.rows is not None:
            strategy = self._strategies[score.rows.rule.novelty]
            over = strategy.learn(score.rows, score.judgement, score.t_ns, in_event=in_event)
        if score.judgement is not None:
            counts = self._counts
            elapsed_s = max(score.t_ns - counts.t_ns, 0) / NS if counts.t_ns >= 0 else 0.0
            counts.watched_s += min(elapsed_s, LONGEST_STEP_S)
            counts.scored, counts.t_ns = counts.scored + 1, score.t_ns
            assert score.rows is not None
            counts.of_view = counts.of_view + 1 if score.rows.view <= counts.view else 1
            counts.view = max(counts.view, score.rows.view)
        return over

    # -- state -----------------------------------------------------------------------------------------------

    def _parts(self) -> dict[str, Stage]:
        return {**self._strategies, "counts": RecordPart(self._counts, "novelty: counts")}

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes of all arrays of this stage at the largest frame."""
        own = self._calm.nbytes + self._labels.nbytes
        return {"novelty": own + self.parts_bytes()}


def _frame_surprise(frame: np.ndarray, models: Models) -> float:
    """Return the surprise of a frame descriptor, nats; NaN before there is a scene mixture."""
    if SCENES not in models:
        return float("nan")
    return -float(models[SCENES].score_samples(frame[None])[0])
