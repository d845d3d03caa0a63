"""The adaptive stopping rule of StreamGreedy: Hoeffding racing of swaps over a growing part of W.

Called by agent/learn/exemplars/stream_greedy.py. It must not change what a swap is worth: only how many points are
asked first.
"""

from typing import Any

import numpy as np

from stillwatch.base import Array, State
from stillwatch.kernels import exemplars as kernels
from stillwatch.learn.exemplars.clustering import NOTHING, ClusteringObjective
from stillwatch.learn.exemplars.dissimilarity import PreparedRows
from stillwatch.learn.exemplars.reservoir import Reservoir

FIRST_POINTS = 256  # asked before the first decision; the number doubles from there


class RacingObjective(ClusteringObjective):
    """F_C with swaps raced as in appendix II ("Adaptive Stopping Rule", after Hoeffding races, Maron and Moore 1994).

    W is put in random order for each block, and the dissimilarities of the candidates are computed for a growing
    prefix of it. A swap is taken as soon as its gain less its band passes the threshold; a candidate is dropped as
    soon as its best gain plus the band does not; with all of W asked, the decision is exact. With probability at
    least 1 - delta, no swap that does not pass the threshold on W is taken, and no candidate whose best swap passes
    it is dropped.

    The band: the terms of the gain of a swap that frees s' lie in a range R = max m over W + max (o - m) over the
    points of s', as m and o are known for all of W. For n of N points without replacement (Serfling 1974) it is
    R sqrt((1 - (n - 1) / N) ln(2 / delta') / (2 n)). delta' = 6 delta / (pi^2 r^2) / (K |B| checkpoints) for the r-th
    race, so that all bands ever used (A of the paper, which must know their number beforehand) fail with probability
    delta at most. A dropped candidate stays out for its block, and W's rows get no second look.

    The bound is pessimistic, as the paper says: it saves points where a swap must gain a good part of the spread.
    """

    has_second_look = False  # it would cost what the race saves

    def __init__(self, n_dims: int, k: int, block: int, validation: int, *, delta: float, **clustering: Any):
        if not 0.0 < delta < 1.0:
            raise ValueError(f"racing: failure probability {delta} is not in (0, 1)")
        super().__init__(n_dims, k, block, validation, **clustering)
        self.delta = delta
        self.name += f" racing {delta}"
        self._alive = np.zeros(block, np.int64)  # candidates in the race; row i of _d belongs to _alive[i]
        self._n_alive = 0
        self._asked = 0  # points of W whose dissimilarities are known
        self._is_racing = False
        self._n_races = 0
        self._row = np.zeros(validation, np.float32)
        self.n_asked = 0  # dissimilarities computed for candidates, over the whole stream
        self.n_possible = 0  # and what scoring on all of W would have computed

    def open_block(self, rows: np.ndarray, reservoir: Reservoir, changed: np.ndarray, rng: np.random.Generator) -> None:
        self._is_racing = self.n_held == len(self._removal)
        self.n_possible += len(rows) * reservoir.count
        if not self._is_racing:
            super().open_block(rows, reservoir, changed, rng)
            self.n_asked += len(rows) * reservoir.count
            return
        self._take_points(reservoir, changed)
        self._shuffle(reservoir, rng)
        self._take_candidates(rows)
        self._n_alive, self._asked = self._b, 0
        self._alive[: self._b] = np.arange(self._b)
        self._d = self._cross[: self._b * self._n].reshape(self._b, self._n)
        self._ask(FIRST_POINTS)

    def _shuffle(self, reservoir: Reservoir, rng: np.random.Generator) -> None:
        n = self._n
        order = rng.permutation(n)
        reservoir.permute(order)
        for array in (self._points.rows, self._points.norms, self._e, self._p, self._m, self._z, self._o, self._y):
            array[:n] = array[order]

    def _ask(self, n_points: int) -> None:
        """Extend the dissimilarities of the candidates alive to the first n_points of W."""
        first, end = self._asked, min(n_points, self._n)
        part = np.empty((self._n_alive, end - first), np.float32)
        self._distance.cross(self._selected(), slice(None), self._points, slice(first, end), part)
        self._d[: self._n_alive, first:end] = part
        self._asked = end
        self.n_asked += part.size

    def _selected(self) -> PreparedRows:
        chosen = PreparedRows(self._n_alive, self.phantom.size)
        alive = self._alive[: self._n_alive]
        chosen.rows[:], chosen.norms[:] = self._candidates.rows[alive], self._candidates.norms[alive]
        return chosen

    def best_swap(self, threshold: float) -> tuple[int, int, float]:
        if not self._is_racing:
            return super().best_swap(threshold)
        threshold = self.swap_threshold(threshold)
        self._n_races += 1
        while self._n_alive:
            bands = self._bands()
            gain, slot = self._prefix_gains(-bands)
            may_enter = ~self._is_excluded[self._alive[: self._n_alive]]
            best = int(np.argmax(np.where(may_enter, gain, -np.inf)))
            if may_enter[best] and gain[best] > threshold:
                return int(self._alive[best]), int(slot[best]), float(gain[best] + bands[slot[best]])
            if self._asked == self._n:
                return NOTHING
            is_open = self._prefix_gains(bands)[0] > threshold
            self._keep(is_open | ~may_enter)  # an excluded one may be readmitted: it stays
            if not np.any(is_open & may_enter):
                return NOTHING
            self._ask(2 * self._asked)
        return NOTHING

    def _prefix_gains(self, bands: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Score the candidates alive on the points asked: the best of mean gain + band over the slots, and its slot."""
        n, k, alive = self._asked, self.n_held, self._n_alive
        kernels.removal_losses(self._m[:n], self._z[:n], self._o[:n], self._removal[:k])
        self._removal[:k] -= n * bands
        kernels.swap_gains(
            self._d[:alive],
            self._m[:n],
            self._z[:n],
            self._o[:n],
            self._removal[:k],
            self._workspace[:k],
            self._gain[:alive],
            self._slot[:alive],
        )
        return self._gain[:alive] / n, self._slot[:alive]

    def _bands(self) -> np.ndarray:
        """Return the half width of the confidence band of a swap's mean gain, by the slot that it frees."""
        n, total = self._asked, self._n
        if n == total:
            return np.zeros(self.n_held)
        m, z = self._m[:total], self._z[:total]
        held = z >= 0
        spread = np.zeros(self.n_held)
        np.maximum.at(spread, z[held], (self._o[:total] - m)[held])
        spread += m.max()
        checkpoints = int(np.ceil(np.log2(total / FIRST_POINTS))) + 1
        share = 6.0 * self.delta / (np.pi * self._n_races) ** 2 / (self.n_held * self._b * checkpoints)
        radius: np.ndarray = spread * np.sqrt((1.0 - (n - 1) / total) * np.log(2.0 / share) / (2.0 * n))
        return radius

    def _keep(self, mask: np.ndarray) -> None:
        """Drop the candidates out of the race, and close up the rows of those that stay."""
        n_kept = int(mask.sum())
        self._d[:n_kept, : self._asked] = self._d[: self._n_alive, : self._asked][mask]
        self._alive[:n_kept] = self._alive[: self._n_alive][mask]
        self._n_alive = n_kept

    def exclude(self, c: int) -> None:
        self._is_excluded[c] = True
        if not self._is_racing:
            super().exclude(c)

    def readmit(self, c: int) -> None:
        self._is_excluded[c] = False
        if not self._is_racing:
            super().readmit(c)

    def _to_points(self, c: int) -> np.ndarray:
        if not self._is_racing:
            return super()._to_points(c)
        n, asked = self._n, self._asked
        row = int(np.flatnonzero(self._alive[: self._n_alive] == c)[0])
        self._row[:asked] = self._d[row, :asked]
        if asked < n:
            rest = np.empty((1, n - asked), np.float32)
            self._distance.cross(self._candidates, slice(c, c + 1), self._points, slice(asked, n), rest)
            self._row[asked:n] = rest[0]
            self.n_asked += n - asked
        return self._row[:n]

    def state(self) -> State:
        counters = {"n_races": self._n_races, "n_asked": self.n_asked, "n_possible": self.n_possible}
        return super().state() | {name: np.array(value, np.int64) for name, value in counters.items()}

    def _arrays(self, n: int, held: int) -> dict[str, Array]:
        return super()._arrays(n, held) | dict.fromkeys(
            ("n_races", "n_asked", "n_possible"), Array(np.int64, (), low=0)
        )

    def _take_over(self, state: State, reservoir: Reservoir, exemplars: np.ndarray) -> None:
        super()._take_over(state, reservoir, exemplars)
        self._n_races = int(state["n_races"])
        self.n_asked, self.n_possible = int(state["n_asked"]), int(state["n_possible"])
