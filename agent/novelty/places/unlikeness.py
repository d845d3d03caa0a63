"""Novelty under a fixed camera: what is unlike everything seen at its place, where little ever comes.

A row of agent/novelty/registry.py. It learns from every frame, events included: what was seen for a share of the time
has that share of the samples, so that nothing needs to be left out, and a busy start washes out by itself.
"""

from dataclasses import dataclass, replace

import cv2
import numpy as np

from stillwatch.base import Commit, Composed, RecordPart, Stage, State, saved, saved_array
from stillwatch.features import Rows
from stillwatch.novelty.places.baseline import Baseline
from stillwatch.novelty.places.coherence import Coherence
from stillwatch.novelty.places.level import FrameLevel
from stillwatch.novelty.regions import novel_regions
from stillwatch.novelty.rules import KNOWN_VIEWPOINTS, LEAST_LEVEL_DEVIATION, NEIGHBOURS, NOVEL, UNLIKE, USUAL_RATE
from stillwatch.novelty.sampling import place_of_oldest
from stillwatch.novelty.strategy import Judgement, Sizes
from stillwatch.novelty.visits import Habituation, Kind, Over, Precedents, Sighting, Visits, news_of
from stillwatch.settings import Config, EventsConfig


def usual_rate(config: EventsConfig) -> float:
    """Return how often an hour something comes that is counted, not told: 0 after its first time, infinity: never."""
    return {"first_of_kind": 0.0, "rare": USUAL_RATE * config.alerts_per_hour, "every": np.inf}[config.tell]


@dataclass
class _Views:
    """Numbers of the views that the baselines are of, -1 of a free one; place of the one in view."""

    ids: np.ndarray = saved_array((KNOWN_VIEWPOINTS,), np.int64, fill=-1, low=-1)
    now: int = saved(0, low=0, high=KNOWN_VIEWPOINTS - 1)


class Unlikeness(Composed):
    """Judges patches by what their places have shown, weighed by traffic, and the frame by their sum.

    The patch mixture does not judge here, and is not asked: what crossed the first frames is a component of its like
    any other, however seldom it came since.

    Each view that the camera had (viewpoint.py) has a baseline of its own: one that was set aside as the camera was
    knocked is found again when it is put right.

    Parameters
    ----------
    config : Config
    sizes : Sizes
    """

    _where = "novelty"

    def __init__(self, config: Config, sizes: Sizes):
        self._least_patches = config.novelty.least_patches
        halflife_s, n = config.novelty.halflife_s, sizes.capacity_patches
        usual_per_hour = usual_rate(config.events)
        self._baselines = [
            Baseline(sizes, halflife_s, usual_per_hour, config.agent.seed) for _ in range(KNOWN_VIEWPOINTS)
        ]
        self._views = _Views()
        self._coherence = Coherence(n)
        self._visits = Visits(sizes.n_patch_dims, halflife_s, usual_per_hour)
        self._habituation = Habituation(sizes.n_patch_dims, halflife_s, config.agent.seed)
        self._habituates = bool(np.isfinite(usual_per_hour))
        self._grid_shape = (0, 0)
        self._unlikeness, self._news = np.zeros(n, np.float32), np.zeros(n, np.float32)
        self._weights, self._familiar = np.zeros(n, np.float32), np.zeros(n, np.float32)
        self._stands_out = np.zeros(n, np.bool_)

    @property
    def kinds(self) -> list[Kind]:
        """Every kind of visits that is remembered, the most frequent first."""
        return self._visits.kinds

    def judge(self, rows: Rows, t_ns: int) -> Judgement:
        """Judge a frame at stream time `t_ns`; it teaches nothing. A grid of another shape makes places void."""
        baseline = self._baseline_of(rows)
        n, grid = len(rows.plain), rows.grid_shape
        unlikeness, weights, news = self._unlikeness[:n], self._weights[:n], self._news[:n]
        baseline.memory.unlikeness(rows.plain, rows.valid, unlikeness, news, baseline.light.relit(rows))
        for told in (unlikeness, news):  # things cover neighbouring patches, noise does not
            told[:] = cv2.blur(told.reshape(grid), (NEIGHBOURS, NEIGHBOURS), borderType=cv2.BORDER_REPLICATE).ravel()
            told[~rows.valid] = 0.0
        weather, unnamed = self._take_off_what_is_no_thing(baseline, unlikeness, news, rows, t_ns)
        sightings = self._look(unlikeness, rows)
        self._weigh_places(baseline, weights)
        weights *= news
        weights *= news_of(sightings, grid, self._familiar[:n])
        weights *= 1.0 - self._familiar[:n]
        level = baseline.level.level_of(weights)
        usual = baseline.level.standardise(level, baseline.traffic.emptiness, t_ns)
        value = max(usual, self._strangest(baseline, sightings, weights))
        weights *= NOVEL  # one unit of weighed unlikeness is novel: the deviations that regions and pictures show
        regions = novel_regions(weights.reshape(grid), rows.centres, self._least_patches)
        found = self._visits.precedents(sightings, regions[0].peak, grid) if regions else None
        rarity, before = baseline.level.rarity(value), found or Precedents()
        stands_out = self._stands_out[:n]
        who = (sightings, before, stands_out)
        return Judgement(unlikeness, weights, regions, (level,), value, rarity, *who, weather, unnamed)

    def _weigh_places(self, baseline: Baseline, weights: np.ndarray) -> None:
        """Write what a place's traffic leaves of who is seen there: ever less, once it is known who comes."""
        baseline.traffic.weights(weights)
        weights += (1.0 - weights) * self._habituation.settled

    def share_like(self, rows: Rows, patches: np.ndarray) -> tuple[float, float]:
        """Return in what shares of all that was watched, and of the last seconds, patches' places looked as now."""
        return self._baseline_of(rows).memory.share_like(rows.plain, patches)

    def _look(self, unlikeness: np.ndarray, rows: Rows) -> list[Sighting]:
        """Return who stands out, and note how familiar they look: nobody familiar is strange."""
        sightings = self._visits.look(unlikeness, rows)
        if not self._habituates:
            return sightings
        sightings = self._habituation.mark(sightings, rows)
        familiar = self._familiar[: len(unlikeness)]
        self._habituation.familiar(sightings, rows.grid_shape, familiar)
        return [
            replace(one, strange=one.strange * (1.0 - float(familiar[one.patches].mean()))) if one.strange else one
            for one in sightings
        ]

    def _take_off_what_is_no_thing(
        self, baseline: Baseline, unlikeness: np.ndarray, news: np.ndarray, rows: Rows, t_ns: int
    ) -> tuple[float, float]:
        """Weigh down what was elsewhere in the last frame, as drops are, and a picture that is another everywhere.

        Return how far all that stands out was left out, and what things are called, 0 to 1.
        """
        stands_out, weights = self._stands_out[: len(news)], self._weights[: len(news)]
        np.greater_equal(unlikeness, UNLIKE, out=stands_out)
        believed = self._coherence.weights(stands_out, rows.grid_shape, t_ns, weights)
        view = baseline.whole_view
        judged, named = view.weights(rows, t_ns) if stands_out.any() else (1.0, view.named)
        weights *= judged
        unlikeness *= weights
        news *= weights
        return 1.0 - believed * judged, 1.0 - believed * named

    def _strangest(self, baseline: Baseline, sightings: list[Sighting], weights: np.ndarray) -> float:
        """Return the highest value of a visit of a new kind, by itself: as if nothing else were, nor ever was, there.

        What it consists of counts fully in `weights` from then on, whatever usually passes its place.
        """
        highest = -np.inf
        for sighting in sightings:
            if sighting.strange > 0.0:
                unlikeness = self._unlikeness[sighting.patches]
                highest = max(highest, sighting.strange * baseline.level.level_of(unlikeness) / LEAST_LEVEL_DEVIATION)
                weights[sighting.patches] = np.maximum(weights[sighting.patches], unlikeness)
        return highest

    def learn(self, rows: Rows, judgement: Judgement | None, t_ns: int, *, in_event: bool) -> list[Over]:
        """Let a frame teach what is usual; its level counts little in an event, its patches as all others do."""
        baseline = self._baseline_of(rows)
        is_ready = baseline.memory.ready
        baseline.memory.learn(rows.plain, rows.valid, t_ns)
        baseline.light.learn(rows, t_ns)
        if judgement is not None and judgement.stands_out is not None:
            self._coherence.learn(judgement.stands_out, t_ns)
        was_judged = judgement is None or judgement.was_judged
        baseline.whole_view.learn(rows, t_ns, follows=in_event and was_judged)
        if judgement is not None and is_ready:
            baseline.traffic.learn(judgement.surprise, self._emptiness(baseline.level, judgement), t_ns)
            baseline.level.learn(judgement.statistics[0], t_ns, in_event)
            if self._habituates:
                self._habituation.learn(judgement.sightings, rows, t_ns)
            return self._visits.learn(judgement.sightings, rows.grid_shape, t_ns)
        return []

    def _emptiness(self, level: FrameLevel, judgement: Judgement) -> float:
        """Return how far there is nothing in a frame, 0 to 1: as far as it is known who comes, they are nothing.

        A place that never rests would be judged by the upper half of its levels for good, and those of a few busy
        minutes before anybody was known are in it for hours.
        """
        if level.is_least(level.level_of(judgement.surprise)):
            return 1.0
        return self._habituation.settled if level.is_least(judgement.statistics[0]) else 0.0

    def _baseline_of(self, rows: Rows) -> Baseline:
        """Return what is usual in the view of a frame: nothing yet, where the camera never had it."""
        views = self._views
        if rows.grid_shape != self._grid_shape:
            self._grid_shape = rows.grid_shape
            for baseline in self._baselines:
                baseline.reset(rows.grid_shape)
            views.now, views.ids[:] = 0, -1
            views.ids[0] = rows.view
            self._coherence.reset()
            self._visits.reset()
            self._habituation.reset()
        elif rows.view != views.ids[views.now]:
            self._turn_to(rows.view)
        return self._baselines[views.now]

    def _turn_to(self, view: int) -> None:
        """Set the baseline in view aside, for another that is remembered or a new one in place of the oldest."""
        views = self._views
        known = np.flatnonzero(views.ids == view)
        if len(known):
            views.now = int(known[0])
        else:
            views.now = place_of_oldest(views.ids, but=views.now)
            views.ids[views.now] = view
            self._baselines[views.now].reset(self._grid_shape)
        self._coherence.reset()

    # -- state -----------------------------------------------------------------------------------------------

    def _parts(self) -> dict[str, Stage]:
        return {
            **{f"view {place}": baseline for place, baseline in enumerate(self._baselines)},
            "views": RecordPart(self._views, "novelty: views"),
            "coherence": self._coherence,
            "visits": self._visits,
            "habituation": self._habituation,
        }

    def prepare(self, state: State) -> Commit:
        """Validate `state` and return its commit; SnapshotError, and no change, where it does not fit."""
        take_parts = super().prepare(state)

        def commit() -> None:
            take_parts()
            self._grid_shape = self._baselines[self._views.now].traffic.grid_shape

        return commit

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes of all arrays at the largest frame."""
        arrays = (self._unlikeness, self._news, self._weights, self._familiar, self._stands_out)
        own = sum(array.nbytes for array in arrays)
        return {"unlikeness": own + self.parts_bytes()}
