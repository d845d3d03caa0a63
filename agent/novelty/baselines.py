"""What surprise is usual for each component under a moving camera: it has no places.

Called by agent/novelty/surprise.py. A baseline must not decide whether a frame may teach it.
"""

from typing import Protocol

import numpy as np

from stillwatch.base import Array, Commit, Restorable, SnapshotError, Stage, State, check_arrays
from stillwatch.learn import StudentMixture
from stillwatch.novelty.rules import HIGHEST, KEPT_ROWS, KEPT_ROWS_PER_FRAME, LEAST_DEVIATION, LEAST_SHARE, SHRINK_ROWS


class Baseline(Stage, Protocol):
    """Turns surprise, in nats, into deviations above what is usual; every kind has this door."""

    def take_grid(self, grid_shape: tuple[int, int]) -> None: ...

    def model_changed(self, model: StudentMixture) -> None: ...

    def standardise(self, surprise: np.ndarray, label: np.ndarray, valid: np.ndarray, out: np.ndarray) -> None: ...

    def learn(self, rows: np.ndarray, surprise: np.ndarray | None, valid: np.ndarray, in_event: bool) -> None: ...


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
