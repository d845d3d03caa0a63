"""What surprise is usual: for each place of a fixed camera, for each component under a moving one.

Called by agent/novelty/score.py. A baseline must not decide whether a frame may teach it.
"""

from typing import Protocol

import numpy as np

from stillwatch.base import SnapshotError, State
from stillwatch.learn import StudentMixture

CLIP = 3.0  # deviations: how far one surprise may pull a baseline
LEAST_SHARE = 0.05  # of the typical variance: the least that a place or component may have
HIGHEST = 30.0  # deviations: one absurd patch must not be a frame's score
NOVEL = 3.0  # deviations above the usual: from here a patch is doubted as a teacher
DOUBTED_SHARE = 0.1  # of what other places learn: novelty that no event was raised for must not become usual


class Baseline(Protocol):
    """Turns surprise, in nats, into deviations above what is usual; both kinds have this door."""

    def model_changed(self, model: StudentMixture) -> None: ...

    def standardise(self, surprise: np.ndarray, label: np.ndarray, valid: np.ndarray, out: np.ndarray) -> None: ...

    def learn(self, rows: np.ndarray, valid: np.ndarray, in_event: bool) -> None: ...

    def state(self) -> State: ...

    def restore(self, state: State) -> None: ...

    def memory_bytes(self) -> int: ...


class PlaceBaseline:
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

    POOLED_FRAMES = 10  # a place watched this long is judged half by itself, half by the typical place
    MEMORY_FRAMES = 100  # about three models: what a place's surprise was under older ones means little

    def __init__(self, capacity: int, n_dims: int):
        self._least_variance = 0.5 * n_dims
        self._mean, self._variance = np.zeros(capacity), np.zeros(capacity)
        self._step, self._deviation = np.zeros(capacity), np.ones(capacity)
        self._numbers = np.zeros(2, np.int64)  # frames, places

    def reset(self, n_places: int) -> None:
        """Forget everything: the grid has another shape."""
        self._numbers[:] = 0, n_places

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
        n, frames = len(surprise), int(self._numbers[0])
        step, deviation = self._step[:n], self._deviation[:n]
        if frames == 0:
            self._mean[:n], self._variance[:n] = surprise, 0.0
        np.subtract(surprise, self._mean[:n], out=step)
        some = bool(valid.any())
        step -= np.median(step[valid]) if some else 0.0
        pooled = float(np.median(self._variance[:n][valid])) if some else 0.0
        trust = frames / (frames + self.POOLED_FRAMES)
        np.sqrt(trust * self._variance[:n] + (1.0 - trust) * pooled + self._least_variance, out=deviation)
        np.divide(step, deviation, out=out)
        np.clip(out, -HIGHEST, HIGHEST, out=out)
        out[~valid] = 0.0

    def learn(self, rows: np.ndarray, valid: np.ndarray, in_event: bool) -> None:
        """Fold in the frame that `standardise` saw last: novel places learn little, and nothing in an event.

        A place that changed for good becomes usual all the same: the mixture learns it, and its surprise falls.
        """
        frames, n = int(self._numbers[0]), len(valid)
        share = 1.0 / (frames + 1)
        step, deviation, variance = self._step[:n], self._deviation[:n], self._variance[:n]
        bounded = np.clip(step, -CLIP * deviation, CLIP * deviation)
        doubted = max(self.POOLED_FRAMES / (self.POOLED_FRAMES + frames), DOUBTED_SHARE)  # what is known may doubt
        pace = np.where(step < NOVEL * deviation, share, 0.0 if in_event else doubted * share)
        pace[~valid] = 0.0
        self._mean[:n] += pace * bounded
        variance += pace * (bounded * bounded - variance)
        self._numbers[:] = min(frames + 1, self.MEMORY_FRAMES), n

    def state(self) -> State:
        n = int(self._numbers[1])
        return {"mean": self._mean[:n].copy(), "variance": self._variance[:n].copy(), "numbers": self._numbers.copy()}

    def restore(self, state: State) -> None:
        """Go on from `state`; SnapshotError, and no change, where it does not fit."""
        mean, variance, numbers = state.get("mean"), state.get("variance"), state.get("numbers")
        if mean is None or variance is None or numbers is None or numbers.shape != (2,) or mean.ndim != 1:
            raise SnapshotError("place baseline: the saved state is incomplete, or of other settings")
        n = int(numbers[1])
        if not len(mean) == len(variance) == n <= len(self._mean) or not (variance >= 0.0).all():
            raise SnapshotError(f"place baseline: {len(mean)} places do not fit {len(self._mean)}, or are damaged")
        self._mean[:n], self._variance[:n], self._numbers[:] = mean, variance, numbers

    def memory_bytes(self) -> int:
        return 4 * self._mean.nbytes + self._numbers.nbytes


class ComponentBaseline:
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

    CAPACITY = 2048
    PER_FRAME = 64
    SHRINK_ROWS = 20  # a component with this many kept rows is judged half by them, half by all

    def __init__(self, n_dims: int, max_components: int, seed: int):
        self._rows = np.zeros((self.CAPACITY, n_dims), np.float32)
        self._mean, self._deviation = np.zeros(max_components + 1), np.ones(max_components + 1)
        self._seed = seed
        self._numbers = np.zeros(2, np.int64)  # rows kept, rows seen

    def reset(self, n_places: int) -> None:
        """Nothing to forget: components do not depend on the grid."""

    def model_changed(self, model: StudentMixture) -> None:
        """Score the kept rows under the new model."""
        kept = int(self._numbers[0])
        if kept == 0:
            return
        density, label = np.empty(kept), np.empty(kept, np.int64)
        model.score_and_label(self._rows[:kept], density, label)
        surprise = -density
        overall, _ = robust_moments(surprise)
        members = [surprise[label == k] for k in range(len(self._mean))]
        for k, own in enumerate(members):
            trust = len(own) / (len(own) + self.SHRINK_ROWS)
            self._mean[k] = trust * np.median(own) + (1.0 - trust) * overall if len(own) else overall
        _, spread = robust_moments(surprise - self._mean[label])  # within components, all of them together
        for k, own in enumerate(members):
            trust = len(own) / (len(own) + self.SHRINK_ROWS)
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

    def learn(self, rows: np.ndarray, valid: np.ndarray, in_event: bool) -> None:
        """Let some rows of this frame into the reservoir, each row of the past with the same chance (algorithm R)."""
        kept, seen = (int(number) for number in self._numbers)
        rng = np.random.default_rng([self._seed, seen])
        candidates = np.flatnonzero(valid)
        chosen = rng.choice(candidates, min(self.PER_FRAME, len(candidates)), replace=False, shuffle=False)
        for row in chosen:
            place = kept if kept < self.CAPACITY else int(rng.integers(seen + 1))
            if place < self.CAPACITY:
                self._rows[place] = rows[row]
            kept, seen = min(kept + 1, self.CAPACITY), seen + 1
        self._numbers[:] = kept, seen

    def state(self) -> State:
        return {
            "rows": self._rows[: self._numbers[0]].copy(),
            "mean": self._mean.copy(),
            "deviation": self._deviation.copy(),
            "numbers": self._numbers.copy(),
        }

    def restore(self, state: State) -> None:
        """Go on from `state`; SnapshotError, and no change, where it does not fit."""
        rows, mean, deviation = state.get("rows"), state.get("mean"), state.get("deviation")
        numbers = state.get("numbers")
        if rows is None or mean is None or deviation is None or numbers is None or numbers.shape != (2,):
            raise SnapshotError("component baseline: the saved state is incomplete")
        n = int(numbers[0])
        if rows.shape != (n, self._rows.shape[1]) or n > self.CAPACITY or mean.shape != self._mean.shape:
            raise SnapshotError(f"component baseline: rows {rows.shape} or components {mean.shape} do not fit")
        if deviation.shape != mean.shape or not (deviation > 0.0).all():
            raise SnapshotError("component baseline: deviations are damaged")
        self._rows[:n], self._mean[:], self._deviation[:], self._numbers[:] = rows, mean, deviation, numbers

    def memory_bytes(self) -> int:
        return self._rows.nbytes + self._mean.nbytes + self._deviation.nbytes + self._numbers.nbytes


def robust_moments(values: np.ndarray) -> tuple[float, float]:
    """Return the median, and the deviation that a normal distribution with the same quartiles would have."""
    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75))
    return float(middle), max(float(high - low) / 1.349, 1e-3)
