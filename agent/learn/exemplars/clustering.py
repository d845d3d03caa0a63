"""The clustering objective F_C (3.6) of StreamGreedy: what each candidate would gain, kept exact while W changes.

Called by agent/learn/exemplars/stream_greedy.py. It must not know of payloads, ids or the stream: it sees blocks,
slots and W.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from stillwatch.base import Array, State, check_arrays
from stillwatch.kernels import exemplars as kernels
from stillwatch.learn.exemplars.dissimilarity import Dissimilarity, PreparedRows
from stillwatch.learn.exemplars.reservoir import Reservoir

NOTHING = (-1, -1, 0.0)
# A swap must gain more than this share of the present loss: less is rounding, and could go round in circles.
ROUNDING = 1e-9


class ClusteringObjective:
    """F_C(A) = L({x0}) - L(A + {x0}), L the mean least dissimilarity over W; the phantom x0 may not be removed.

    Appendix II's increase for removing s' overstates: o_i must read min(o_i, d(x_i, x_s)). The kernels do that, in
    O(|B| |W| + |B| K) for all K |B| swaps. After a swap only the candidate in front is scored afresh, until none of
    the old scores promises a gain; then all are: when none gains after that, none of the K |B| swaps does.

    Parameters
    ----------
    n_dims, k, block, validation : int
    dissimilarity : str or numba-compiled function
        See `Dissimilarity`.
    phantom : "origin", "random" or ndarray of shape (n_dims,)
        "random" draws a point with the first block's mean and deviation in each dimension.
    """

    has_second_look = True

    def __init__(
        self,
        n_dims: int,
        k: int,
        block: int,
        validation: int,
        *,
        dissimilarity: str | Callable[..., float],
        phantom: Any,
    ):
        self._distance = Dissimilarity(dissimilarity, n_dims)
        self.name = f"clustering {self._distance.name}"
        self.phantom = np.zeros(n_dims, np.float32)
        self._draws_phantom = isinstance(phantom, str) and phantom == "random"
        if isinstance(phantom, str):
            if phantom not in ("origin", "random"):
                raise ValueError(f"phantom: {phantom!r} is none of origin, random or an array")
        else:
            given = np.asarray(phantom, np.float32)
            if given.shape != (n_dims,) or not np.isfinite(given).all():
                raise ValueError(f"phantom: shape {given.shape}, must be ({n_dims},) and finite")
            self._distance.check(given[None])
            self.phantom[:] = given
        self.n_held = 0
        self._points = PreparedRows(validation, n_dims)
        self._exemplars = PreparedRows(k, n_dims)
        self._candidates = PreparedRows(block, n_dims)
        self._e = np.zeros((validation, k), np.float32)  # dissimilarity of each point to each exemplar
        self._p = np.zeros(validation, np.float32)  # and to the phantom
        self._m = np.zeros(validation, np.float32)  # (8.3)
        self._z = np.full(validation, kernels.PHANTOM, np.int32)  # (8.4)
        self._o = np.zeros(validation, np.float32)  # (8.5)
        self._y = np.full(validation, kernels.PHANTOM, np.int32)  # the exemplar at o
        self._n = 0  # validation points in use
        self._cross = np.zeros(max(block, k) * validation, np.float32)
        self._b = 0  # candidates in the block
        self._d = self._cross[:0].reshape(0, 0)  # dissimilarity of each candidate to each point: a view of _cross
        self._removal = np.zeros(k)
        self._workspace = np.zeros(k)
        self._gain = np.zeros(block)
        self._slot = np.zeros(block, np.int64)
        self._is_excluded = np.zeros(block, bool)
        self._scored_at = np.zeros(block, np.int64)  # `_placements` when the score was true
        self._swept_at = -1  # the same, for the last score of all candidates
        self._placements = 0
        self._is_swapping = False
        self._own_point = np.full(block, -1, np.int64)  # second look: where in W each candidate is
        self._own_value = np.zeros(block, np.float32)  # and its dissimilarity to itself

    # -- the stream --------------------------------------------------------------------------------------------

    def check(self, rows: np.ndarray) -> None:
        """Raise ValueError for rows outside the dissimilarity's domain."""
        self._distance.check(rows)

    def start(self, rows: np.ndarray, rng: np.random.Generator) -> None:
        """Fix what is drawn from the first block: the shift of coordinates, and a random phantom."""
        self._distance.centre_on(rows)
        if self._draws_phantom:
            drawn = rng.normal(rows.mean(axis=0, dtype=np.float64), rows.std(axis=0, dtype=np.float64))
            self.phantom[:] = np.abs(drawn) if self._distance.not_negative else drawn

    def open_block(self, rows: np.ndarray, reservoir: Reservoir, changed: np.ndarray, rng: np.random.Generator) -> None:
        """Take a block of candidates, and the slots of W that hold other rows than before."""
        self._take_points(reservoir, changed)
        self._take_candidates(rows)
        self._compare_all()

    def open_second_look(self, reservoir: Reservoir, points: np.ndarray) -> None:
        """Take rows of W as candidates, given by their places in W."""
        self._take_candidates(reservoir.rows[points])
        self._compare_all()
        candidates = np.arange(self._b)
        self._own_point[: self._b] = points
        self._own_value[: self._b] = self._d[candidates, points]
        self._d[candidates, points] = np.inf

    def _compare_all(self) -> None:
        n, b = self._n, self._b
        self._d = self._cross[: b * n].reshape(b, n)
        self._distance.cross(self._candidates, slice(b), self._points, slice(n), self._d)

    def _take_candidates(self, rows: np.ndarray) -> None:
        self._b = len(rows)
        self._distance.prepare(rows, self._candidates, slice(self._b))
        self._is_excluded[:] = False
        self._own_point[:] = -1
        self._placements = 0
        self._swept_at = -1

    def _take_points(self, reservoir: Reservoir, changed: np.ndarray) -> None:
        """Keep p, e, m, z, o exact for the slots of W that changed."""
        self._n = reservoir.count
        if not len(changed):
            return
        taken = PreparedRows(len(changed), self.phantom.size)
        self._distance.prepare(reservoir.rows[changed], taken, slice(None))
        self._points.rows[changed], self._points.norms[changed] = taken.rows, taken.norms
        origin = PreparedRows(1, self.phantom.size)
        self._distance.prepare(self.phantom[None], origin, slice(None))
        to_phantom = np.empty((1, len(changed)), np.float32)
        self._distance.cross(origin, slice(None), taken, slice(None), to_phantom)
        self._p[changed] = to_phantom[0]
        held = slice(self.n_held)
        to_exemplars = np.empty((self.n_held, len(changed)), np.float32)
        self._distance.cross(self._exemplars, held, taken, slice(None), to_exemplars)
        self._e[changed, : self.n_held] = to_exemplars.T
        kernels.rank_points(self._e, self._p, self.n_held, changed, self._m, self._z, self._o, self._y)

    # -- choices -----------------------------------------------------------------------------------------------

    def best_addition(self, threshold: float) -> tuple[int, int, float]:
        """Return (candidate, slot, gain in utility) of the best addition (4.2), or candidate -1 if none gains."""
        return self._best(self._score_additions, max(threshold * self._n, 0.0), False)

    def best_swap(self, threshold: float) -> tuple[int, int, float]:
        """Return (candidate, slot to free, gain in utility) of the best swap (4.3), or candidate -1 if none gains."""
        n, k = self._n, self.n_held
        kernels.removal_losses(self._m[:n], self._z[:n], self._o[:n], self._removal[:k])
        return self._best(self._score_swaps, self.swap_threshold(threshold) * n, True)

    def swap_threshold(self, threshold: float) -> float:
        """Return the gain in utility that a swap must pass."""
        return max(threshold, ROUNDING * self.loss)

    def exclude(self, c: int) -> None:
        """Take no candidate equal to one held: a set has no two equal exemplars."""
        self._is_excluded[c] = True
        self._gain[c] = -np.inf

    def readmit(self, c: int) -> None:
        """The exemplar that the candidate equals has gone: it may come back."""
        self._is_excluded[c] = False
        if self._own_point[c] >= 0:
            self._d[c, self._own_point[c]] = np.inf
        self._gain[c] = np.inf
        self._scored_at[c] = -1

    def _best(self, score: Callable[[int, int], None], threshold: float, is_swap: bool) -> tuple[int, int, float]:
        b = self._b
        if self._swept_at < 0 or self._is_swapping != is_swap:
            self._is_swapping = is_swap
            self._sweep(score)
        while True:
            c = int(np.argmax(self._gain[:b]))
            if self._gain[c] <= threshold:
                if self._swept_at == self._placements:
                    return NOTHING
                self._sweep(score)
            elif self._scored_at[c] == self._placements:
                return c, int(self._slot[c]), float(self._gain[c]) / self._n
            else:
                score(c, c + 1)

    def _sweep(self, score: Callable[[int, int], None]) -> None:
        score(0, self._b)
        self._swept_at = self._placements

    def _score_additions(self, first: int, end: int) -> None:
        kernels.addition_gains(self._d[first:end], self._m[: self._n], self._gain[first:end])
        self._slot[first:end] = self.n_held
        self._note_scores(first, end)

    def _score_swaps(self, first: int, end: int) -> None:
        n, k = self._n, self.n_held
        kernels.swap_gains(
            self._d[first:end],
            self._m[:n],
            self._z[:n],
            self._o[:n],
            self._removal[:k],
            self._workspace[:k],
            self._gain[first:end],
            self._slot[first:end],
        )
        self._note_scores(first, end)

    def _note_scores(self, first: int, end: int) -> None:
        self._gain[first:end][self._is_excluded[first:end]] = -np.inf
        self._scored_at[first:end] = self._placements

    def place(self, c: int, slot: int) -> None:
        """Make candidate c the exemplar of a slot; slot == n_held adds one."""
        n = self._n
        self.n_held = max(self.n_held, slot + 1)
        self._exemplars.rows[slot] = self._candidates.rows[c]
        self._exemplars.norms[slot] = self._candidates.norms[c]
        kernels.place_exemplar(
            self._to_points(c),
            slot,
            self.n_held,
            self._p[:n],
            self._e[:n],
            self._m[:n],
            self._z[:n],
            self._o[:n],
            self._y[:n],
        )
        self._placements += 1

    def _to_points(self, c: int) -> np.ndarray:
        """Return the dissimilarity of every validation point to candidate c, which becomes an exemplar."""
        if self._own_point[c] >= 0:
            self._d[c, self._own_point[c]] = self._own_value[c]
        points: np.ndarray = self._d[c]
        return points

    # -- results -----------------------------------------------------------------------------------------------

    @property
    def loss(self) -> float:
        """L(A + {x0}) on W; 0 before the first row."""
        return float(self._m[: self._n].mean(dtype=np.float64)) if self._n else 0.0

    @property
    def utility(self) -> float:
        """F_C (3.6) on W; 0 before the first row."""
        return float(self._p[: self._n].mean(dtype=np.float64)) - self.loss if self._n else 0.0

    def weights(self) -> np.ndarray:
        """Return the share of W that is nearest to each exemplar, (n_held,); the phantom has the rest."""
        z = self._z[: self._n]
        return np.bincount(z[z >= 0], minlength=self.n_held) / max(self._n, 1)

    def nearest(self, rows: np.ndarray, step: int) -> np.ndarray:
        """Return the slot of the nearest exemplar of each row, `step` rows at a time; changes nothing."""
        slots = np.empty(len(rows), np.int64)
        points = PreparedRows(step, self.phantom.size)
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            self._distance.prepare(part, points, slice(len(part)))
            out = np.empty((self.n_held, len(part)), np.float32)
            self._distance.cross(self._exemplars, slice(self.n_held), points, slice(len(part)), out)
            slots[start : start + step] = out.argmin(axis=0)
        return slots

    # -- state -------------------------------------------------------------------------------------------------

    def state(self) -> State:
        n, held = self._n, self.n_held
        return {
            "phantom": self.phantom.copy(),
            "shift": self._distance.shift.copy(),
            "p": self._p[:n].copy(),
            "e": self._e[:n, :held].copy(),
        }

    def _arrays(self, n: int, held: int) -> dict[str, Array]:
        """What a state with n validation points and `held` exemplars holds; dissimilarities are never negative."""
        d = self.phantom.size
        return {
            "phantom": Array(np.float32, (d,)),
            "shift": Array(np.float32, (d,)),
            "p": Array(np.float32, (n,), low=0.0),
            "e": Array(np.float32, (n, held), low=0.0),
        }

    def prepare(self, state: State, n: int, held: int, where: str) -> Callable[[Reservoir, np.ndarray], None]:
        """Validate a state of n validation points and `held` exemplars; return what takes it over, given both."""
        check_arrays(state, self._arrays(n, held), where)
        kept = {name: np.array(array) for name, array in state.items()}
        return lambda reservoir, exemplars: self._take_over(kept, reservoir, exemplars)

    def _take_over(self, state: State, reservoir: Reservoir, exemplars: np.ndarray) -> None:
        """Take a state that was validated; what follows from it is made anew, to the same bits."""
        n, held = reservoir.count, len(exemplars)
        self._n, self.n_held = n, held
        self.phantom[:], self._distance.shift[:] = state["phantom"], state["shift"]
        self._p[:n], self._e[:n, :held] = state["p"], state["e"]
        self._distance.prepare(reservoir.rows[:n], self._points, slice(n))
        self._distance.prepare(exemplars, self._exemplars, slice(held))
        kernels.rank_points(self._e, self._p, held, np.arange(n), self._m, self._z, self._o, self._y)

    def memory_bytes(self) -> int:
        prepared = (self._points, self._exemplars, self._candidates)
        arrays = (value for value in vars(self).values() if isinstance(value, np.ndarray) and value.base is None)
        return sum(p.memory_bytes() for p in prepared) + sum(a.nbytes for a in arrays)
