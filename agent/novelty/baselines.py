"""What surprise is usual for each component under a moving camera: it has no places.

Called by agent/novelty/strangeness.py. It must not decide whose rows it is measured on.
"""

import numpy as np

from stillwatch.base import Array, Commit, Restorable, State, check_arrays
from stillwatch.learn import StudentMixture
from stillwatch.novelty.rules import HIGHEST, LEAST_DEVIATION, LEAST_SHARE, SHRINK_ROWS


class ComponentBaseline(Restorable):
    """Mean and deviation of the surprise under each component, measured on rows of the past whenever the model changes.

    Gravel spreads widely and surprises more than sand even when it is well known: how surprising a patch is can
    only be said against its own component. Rows in events count too: the models learn them, and what a new component's
    own rows surprise by is usual for it.

    Parameters
    ----------
    max_components : int
    """

    def __init__(self, max_components: int):
        self._mean, self._deviation = np.zeros(max_components + 1), np.ones(max_components + 1)

    def measure(self, model: StudentMixture, rows: np.ndarray) -> None:
        """Score rows of the whole past, (n, n_dims) float32 in C order, under a new model; none change nothing."""
        if not len(rows):
            return
        density, label = np.empty(len(rows)), np.empty(len(rows), np.int64)
        model.score_and_label(rows, density, label)
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

    def state(self) -> State:
        """Return the components' moments, as copies."""
        return {"mean": self._mean.copy(), "deviation": self._deviation.copy()}

    def prepare(self, state: State) -> Commit:
        """Validate `state` and return its commit; SnapshotError, and no change, where it does not fit."""
        tiny = float(np.finfo(np.float64).tiny)
        shape = self._mean.shape
        wanted = {"mean": Array(np.float64, shape), "deviation": Array(np.float64, shape, low=tiny)}
        check_arrays(state, wanted, "component baseline")
        mean, deviation = state["mean"].copy(), state["deviation"].copy()

        def commit() -> None:
            self._mean[:], self._deviation[:] = mean, deviation

        return commit

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes of all arrays."""
        return {"component baseline": self._mean.nbytes + self._deviation.nbytes}


def robust_moments(values: np.ndarray) -> tuple[float, float]:
    """Return the median, and the deviation that a normal distribution with the same quartiles would have."""
    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75))
    return float(middle), max(float(high - low) / 1.349, LEAST_DEVIATION)
