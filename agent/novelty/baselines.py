"""What surprise is usual: for each place of a fixed camera, for each component under a moving one.

Called by agent/novelty/surprise.py. A baseline must not decide whether a frame may teach it.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from stillwatch.base import (
    Array,
    Commit,
    Restorable,
    SnapshotError,
    Stage,
    State,
    check_arrays,
    prepare_record,
    record_bytes,
    record_state,
    saved,
    with_prefix,
    without_prefix,
)
from stillwatch.learn import StudentMixture
from stillwatch.novelty.rules import (
    CLIP,
    DOUBTED_SHARE,
    HIGHEST,
    KEPT_ROWS,
    KEPT_ROWS_PER_FRAME,
    LEAST_DEVIATION,
    LEAST_SHARE,
    MEMORY_FRAMES,
    NOVEL,
    POOLED_FRAMES,
    SHRINK_ROWS,
)


class Baseline(Stage, Protocol):
    """Turns surprise, in nats, into deviations above what is usual; both kinds have this door."""

    def take_grid(self, grid_shape: tuple[int, int]) -> None: ...

    def model_changed(self, model: StudentMixture) -> None: ...

    def standardise(self, surprise: np.ndarray, label: np.ndarray, valid: np.ndarray, out: np.ndarray) -> None: ...

    def learn(self, rows: np.ndarray, surprise: np.ndarray | None, valid: np.ndarray, in_event: bool) -> None: ...


@dataclass
class _Watched:
    """Rows and columns of the grid, and how many frames its places were watched."""

    grid_rows: int = saved(0, low=0)
    grid_columns: int = saved(0, low=0)
    frames: int = saved(0, low=0, high=MEMORY_FRAMES)


class PlaceBaseline(Restorable):
    """Running mean and variance of the surprise at each place of the grid, less what the whole frame shares.

    A busy path may surprise, the meadow beside it may not. Exposure and haze raise all places alike: the median
    over places is taken off each frame's deviations before they are judged. A place is judged by its own variance
    the more, the longer it was watched; and never more sharply than by the `n_dims` / 2 that the surprise of a
    normal row varies by under its own component (half a chi-square of n_dims degrees of freedom).

    Parameters
    ----------
    capacity : int
        Most places a frame can have.
    n_dims : int
        Of the rows that are scored.
    """

    def __init__(self, capacity: int, n_dims: int):
        self._least_variance = 0.5 * n_dims
        self._mean, self._variance = np.zeros(capacity), np.zeros(capacity)
        self._step, self._deviation = np.zeros(capacity), np.ones(capacity)
        self._watched = _Watched()

    @property
    def _n_places(self) -> int:
        return self._watched.grid_rows * self._watched.grid_columns

    def take_grid(self, grid_shape: tuple[int, int]) -> None:
        """Frames have this grid from now on: where it is another one, everything is forgotten."""
        watched = self._watched
        if grid_shape != (watched.grid_rows, watched.grid_columns):
            watched.grid_rows, watched.grid_columns = grid_shape
            watched.frames = 0
            self._mean[:] = self._variance[:] = 0.0

    def model_changed(self, model: StudentMixture) -> None:
        """Nothing to do: the running mean follows the models by itself.

        Tried: moving each mean by what the new model makes of the last frame without an event. One frame is too
        noisy for that: whoever stood somewhere in it spoilt the place for good (vtest fell from 0.97 to 0.83). Also
        tried: believing half as much in the past at each of the first models (car from 0.996 to 0.990).
        """

    def standardise(self, surprise: np.ndarray, label: np.ndarray, valid: np.ndarray, out: np.ndarray) -> None:
        """Write deviations above the usual of each patch, float32; 0 where not valid.

        surprise : ndarray of shape (n,), float64, nats;  label : unused;  valid : (n,) bool;  out : (n,) float32
        """
        step, deviation = self._compare(surprise, valid)
        np.divide(step, deviation, out=out)
        np.clip(out, -HIGHEST, HIGHEST, out=out)
        out[~valid] = 0.0

    def _compare(self, surprise: np.ndarray, valid: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return how far each place's surprise is above its mean, less what all share, and its deviation, nats."""
        n, frames = len(surprise), self._watched.frames
        step, deviation, variance = self._step[:n], self._deviation[:n], self._variance[:n]
        np.subtract(surprise, self._mean[:n] if frames else surprise, out=step)
        some = bool(valid.any())
        step -= np.median(step[valid]) if some else 0.0
        pooled = float(np.median(variance[valid])) if some else 0.0
        trust = frames / (frames + POOLED_FRAMES)
        np.sqrt(trust * variance + (1.0 - trust) * pooled + self._least_variance, out=deviation)
        return step, deviation

    def learn(self, rows: np.ndarray, surprise: np.ndarray | None, valid: np.ndarray, in_event: bool) -> None:
        """Fold in a frame that was judged: novel places learn little, and nothing in an event.

        A place that changed for good becomes usual all the same: the mixture learns it, and its surprise falls.

        rows : unused;  surprise : ndarray of shape (n,), float64, nats, or None where nothing was judged;
        valid : (n,) bool
        """
        if surprise is None:
            return
        n, frames = len(surprise), self._watched.frames
        step, deviation = self._compare(surprise, valid)
        mean, variance = self._mean[:n], self._variance[:n]
        if frames == 0:
            mean[:] = surprise
        share = 1.0 / (frames + 1)
        bounded = np.clip(step, -CLIP * deviation, CLIP * deviation)
        doubted = max(POOLED_FRAMES / (POOLED_FRAMES + frames), DOUBTED_SHARE)  # what is known may doubt
        pace = np.where(step < NOVEL * deviation, share, 0.0 if in_event else doubted * share)
        pace[~valid] = 0.0
        mean += pace * bounded
        variance += pace * (bounded * bounded - variance)
        self._watched.frames = min(frames + 1, MEMORY_FRAMES)

    def state(self) -> State:
        """Return the moments of the places in use, as copies, and how many frames they are of."""
        n = self._n_places
        moments = {"mean": self._mean[:n].copy(), "variance": self._variance[:n].copy()}
        return moments | with_prefix("watched", record_state(self._watched))

    def prepare(self, state: State) -> Commit:
        """Validate `state` and return its commit; SnapshotError, and no change, where it does not fit."""
        watched = _Watched()
        prepare_record(watched, without_prefix("watched", state), "place baseline")()
        n = watched.grid_rows * watched.grid_columns
        if n > len(self._mean):
            raise SnapshotError(f"place baseline: {n} places, must be at most {len(self._mean)}")
        moments = {name: array for name, array in state.items() if not name.startswith("watched.")}
        wanted = {"mean": Array(np.float64, (n,)), "variance": Array(np.float64, (n,), low=0.0)}
        check_arrays(moments, wanted, "place baseline")
        mean, variance = moments["mean"].copy(), moments["variance"].copy()

        def commit() -> None:
            self._mean[:n], self._variance[:n] = mean, variance
            self._watched = watched

        return commit

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes of all arrays at the largest frame."""
        return {"place baseline": 4 * self._mean.nbytes + record_bytes(self._watched)}


class ComponentBaseline(Restorable):
    """Mean and deviation of the surprise under each component, measured on kept rows whenever the model changes.

    Gravel spreads widely and surprises more than sand even when it is well known: how surprising a patch is can
    only be said against its own component. A reservoir of rows of the whole past is scored under each new model.
    It takes rows in events too: the models learn them, and what a new component's own rows surprise by is usual for it.

    Parameters
    ----------
    n_dims : int
    max_components : int
    seed : int
    """

    def __init__(self, n_dims: int, max_components: int, seed: int):
        self._rows = np.zeros((KEPT_ROWS, n_dims), np.float32)
        self._mean, self._deviation = np.zeros(max_components + 1), np.ones(max_components + 1)
        self._seed = seed
        self._n_kept = self._n_seen = 0

    def take_grid(self, grid_shape: tuple[int, int]) -> None:
        """Nothing to forget: components do not depend on the grid."""

    def model_changed(self, model: StudentMixture) -> None:
        """Score the kept rows under the new model."""
        kept = self._n_kept
        if kept == 0:
            return
        density, label = np.empty(kept), np.empty(kept, np.int64)
        model.score_and_label(self._rows[:kept], density, label)
        surprise = -density
        overall, _ = robust_moments(surprise)
        members = [surprise[label == k] for k in range(len(self._mean))]
        for k, own in enumerate(members):
            trust = len(own) / (len(own) + SHRINK_ROWS)
            self._mean[k] = trust * np.median(own) + (1.0 - trust) * overall if len(own) else overall
        _, spread = robust_moments(surprise - self._mean[label])  # within components, all of them together
        for k, own in enumerate(members):
            trust = len(own) / (len(own) + SHRINK_ROWS)
            deviation = robust_moments(own)[1] if len(own) > 1 else spread
            self._deviation[k] = trust * deviation + (1.0 - trust) * spread
        np.maximum(self._deviation, np.sqrt(LEAST_SHARE) * spread, out=self._deviation)

    def standardise(self, surprise: np.ndarray, label: np.ndarray, valid: np.ndarray, out: np.ndarray) -> None:
        """Write deviations above the usual of each patch's component, float32; 0 where not valid.

        surprise : ndarray of shape (n,), float64, nats;  label : (n,) int64, place of the component in the model;
        valid : (n,) bool;  out : (n,) float32
        """
        np.clip((surprise - self._mean[label]) / self._deviation[label], -HIGHEST, HIGHEST, out=out)
        out[~valid] = 0.0

    def learn(self, rows: np.ndarray, surprise: np.ndarray | None, valid: np.ndarray, in_event: bool) -> None:
        """Let some rows of this frame into the reservoir, each row of the past with the same chance (algorithm R).

        rows : ndarray of shape (n, n_dims), float32;  surprise : unused;  valid : (n,) bool
        """
        kept, seen = self._n_kept, self._n_seen
        rng = np.random.default_rng([self._seed, seen])
        candidates = np.flatnonzero(valid)
        chosen = rng.choice(candidates, min(KEPT_ROWS_PER_FRAME, len(candidates)), replace=False, shuffle=False)
        for row in chosen:
            place = kept if kept < KEPT_ROWS else int(rng.integers(seen + 1))
            if place < KEPT_ROWS:
                self._rows[place] = rows[row]
            kept, seen = min(kept + 1, KEPT_ROWS), seen + 1
        self._n_kept, self._n_seen = kept, seen

    def state(self) -> State:
        """Return the kept rows and the components' moments, as copies."""
        return {
            "rows": self._rows[: self._n_kept].copy(),
            "n_seen": np.array(self._n_seen, np.int64),
            "mean": self._mean.copy(),
            "deviation": self._deviation.copy(),
        }

    def prepare(self, state: State) -> Commit:
        """Validate `state` and return its commit; SnapshotError, and no change, where it does not fit."""
        tiny = float(np.finfo(np.float64).tiny)
        check_arrays(
            state,
            {
                "rows": Array(np.float32, (None, self._rows.shape[1])),
                "n_seen": Array(np.int64, (), low=0),
                "mean": Array(np.float64, self._mean.shape),
                "deviation": Array(np.float64, self._mean.shape, low=tiny),
            },
            "component baseline",
        )
        rows, n_seen = state["rows"].copy(), int(state["n_seen"])
        if len(rows) != min(n_seen, KEPT_ROWS):
            raise SnapshotError(f"component baseline: {len(rows)} rows of {n_seen} seen, room is for {KEPT_ROWS}")
        mean, deviation = state["mean"].copy(), state["deviation"].copy()

        def commit() -> None:
            self._rows[: len(rows)], self._n_kept, self._n_seen = rows, len(rows), n_seen
            self._mean[:], self._deviation[:] = mean, deviation

        return commit

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes of all arrays."""
        return {"component baseline": self._rows.nbytes + self._mean.nbytes + self._deviation.nbytes}


def robust_moments(values: np.ndarray) -> tuple[float, float]:
    """Return the median, and the deviation that a normal distribution with the same quartiles would have."""
    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75))
    return float(middle), max(float(high - low) / 1.349, LEAST_DEVIATION)
