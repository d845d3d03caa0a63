"""Gaussian-process objectives of StreamGreedy: expected variance reduction F_V (3.4) and entropy F_H (3.3).

Called by agent/learn/exemplars/stream_greedy.py. It must not know of payloads, ids or the stream: it sees blocks,
slots and W.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from stillwatch.base import Array, SnapshotError, State, check_arrays
from stillwatch.kernels import gaussian_process as kernels
from stillwatch.learn.exemplars.clustering import NOTHING
from stillwatch.learn.exemplars.reservoir import Reservoir

REFRESH_BLOCKS = 8  # the Cholesky factor is compared with a fresh one, and replaced by it, so often
CHUNK = 1024  # points of W whose covariances are in memory at a time
FAR = 1e7  # half a squared distance from the origin, in length scales, whose rounding the least noise still covers
ROUNDING = 1e-7  # a swap must gain more than this share of the loss (F_V), or this many nats (F_H)


class EntropyObjective:
    """F_H(A) = 1/2 log det(Sigma_AA / noise_variance), in nats: the entropy of the active set's observations.

    The constant makes it the information that the observations carry about the function, so that it is monotone.
    Covariance of two rows: signal_variance exp(-1/2 sum_j (x_j - x'_j)^2 / lengthscale_j^2), plus noise_variance on
    the diagonal of Sigma_AA. The factor of Sigma_AA follows swaps by a Givens downdate and an update, O(k^2) each;
    P, its inverse, and the candidates' residual covariances follow by rank-one steps within a block, and are made
    anew from the factor at the next. Memory: 8 (3 k^2 + 2 block (k + block)) bytes and what is linear in k and block.

    Parameters
    ----------
    n_dims, k, block, validation : int
    lengthscales : float, or array of shape (n_dims,)
    signal_variance, noise_variance : float
        Above 0; the noise at least 1e-6 of the signal, or equal rows make Sigma_AA singular.
    """

    has_second_look = False

    def __init__(
        self,
        n_dims: int,
        k: int,
        block: int,
        validation: int,
        *,
        lengthscales: Any,
        signal_variance: float,
        noise_variance: float,
    ):
        scales = np.asarray(lengthscales, np.float64)
        scales = np.full(n_dims, scales) if scales.ndim == 0 else scales.copy()
        if scales.shape != (n_dims,) or not np.all((scales > 0.0) & np.isfinite(scales)):
            raise ValueError(f"lengthscales: shape {scales.shape}, must be ({n_dims},) and above 0")
        if not 0.0 < signal_variance < np.inf or not 1e-6 * signal_variance <= noise_variance < np.inf:
            raise ValueError(
                f"signal_variance: {signal_variance} must be above 0, "
                f"noise_variance: {noise_variance} at least 1e-6 of it"
            )
        self._scales = scales
        self.signal_variance, self.noise_variance = float(signal_variance), float(noise_variance)
        self.name = f"{type(self).__name__} {signal_variance!r} {noise_variance!r} {scales.tolist()!r}"
        self.n_held = 0
        self.drift = 0.0  # largest difference between the factor and a fresh one that was found
        self._blocks = 0
        self._shift = np.zeros(n_dims)
        self._a = np.zeros((k, n_dims))  # exemplars and candidates, shifted and in units of the length scales
        self._b = np.zeros((block, n_dims))
        self._factor = np.zeros((k, k))  # lower Cholesky factor of Sigma_AA, its rows in the order _order
        self._order = np.zeros(k, np.int64)  # slot of each row of the factor
        self._p = np.zeros((k, k))
        self._h = np.zeros((block, k))  # k(B, A) P
        self._r = np.zeros((block, block))  # residual covariance of the candidates, without noise
        self._square = np.zeros((k, k))
        self._n_candidates = 0
        self._gain = np.zeros(block)
        self._slot = np.zeros(block, np.int64)
        self._is_excluded = np.zeros(block, bool)
        self._log_det = 0.0

    # -- covariances -------------------------------------------------------------------------------------------

    def scaled(self, rows: np.ndarray) -> np.ndarray:
        """Return rows in units of the length scales, (n, n_dims) float64."""
        return (rows - self._shift) / self._scales

    def covariance(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return k(a, b), (len(a), len(b)) float64, of scaled rows; without noise."""
        half_a, half_b = 0.5 * np.einsum("ij,ij->i", a, a), 0.5 * np.einsum("ij,ij->i", b, b)
        out: np.ndarray = a @ b.T
        out -= half_a[:, None]
        out -= half_b
        # Of rows far from the origin the three terms leave nothing but rounding: theirs are taken by differences.
        for i in np.flatnonzero(half_a > FAR):
            out[i] = -0.5 * ((b - a[i]) ** 2).sum(axis=1)
        for j in np.flatnonzero(half_b > FAR):
            out[:, j] = -0.5 * ((a - b[j]) ** 2).sum(axis=1)
        np.minimum(out, 0.0, out=out)
        np.exp(out, out=out)
        out *= self.signal_variance
        return out

    def precision(self) -> np.ndarray:
        """Return P, the inverse of Sigma_AA in the order of the slots, (n_held, n_held); a view, overwritten later."""
        n = self.n_held
        order = self._order[:n]
        inverse = np.zeros((n, n))
        kernels.triangular_inverse(self._factor, n, inverse)
        square = self._square[:n, :n]
        np.matmul(inverse.T, inverse, out=square)
        self._p[np.ix_(order, order)] = square
        return self._p[:n, :n]

    # -- the stream --------------------------------------------------------------------------------------------

    def check(self, rows: np.ndarray) -> None:
        """Every finite row is valid."""

    def start(self, rows: np.ndarray, rng: np.random.Generator) -> None:
        """Fix the origin of coordinates: covariances do not depend on it, their rounding does."""
        self._shift[:] = rows.mean(axis=0, dtype=np.float64)

    def open_block(self, rows: np.ndarray, reservoir: Reservoir, changed: np.ndarray, rng: np.random.Generator) -> None:
        """Take a block of candidates."""
        n, b = self.n_held, len(rows)
        self._n_candidates = b
        self._is_excluded[:] = False
        self._b[:b] = self.scaled(rows)
        self._blocks += 1
        if self._blocks % REFRESH_BLOCKS == 0:
            self._refresh()
        self._p[:], self._h[:] = 0.0, 0.0
        self._r[:b, :b] = self.covariance(self._b[:b], self._b[:b])
        if n:
            p = self.precision()
            cross = self.covariance(self._b[:b], self._a[:n])
            self._h[:b, :n] = cross @ p
            self._r[:b, :b] -= self._h[:b, :n] @ cross.T
        self._log_det = 2.0 * float(np.log(np.diagonal(self._factor)[:n]).sum())

    def _refresh(self) -> None:
        n = self.n_held
        if n:
            fresh = np.linalg.cholesky(self._active_covariance())
            self.drift = max(self.drift, float(np.abs(np.tril(self._factor[:n, :n]) - fresh).max()))
            self._factor[:n, :n] = fresh

    def _active_covariance(self) -> np.ndarray:
        rows = self._a[self._order[: self.n_held]]
        sigma = self.covariance(rows, rows)
        sigma[np.diag_indices_from(sigma)] = self.signal_variance + self.noise_variance
        return sigma

    # -- choices -----------------------------------------------------------------------------------------------

    def best_addition(self, threshold: float) -> tuple[int, int, float]:
        """Return (candidate, slot, gain in utility) of the best addition (4.2), or candidate -1 if none gains."""
        b = self._n_candidates
        self._addition_gains(self._residual_variances(), self._gain[:b])
        self._slot[:b] = self.n_held
        return self._best(threshold)

    def best_swap(self, threshold: float) -> tuple[int, int, float]:
        """Return (candidate, slot to free, gain in utility) of the best swap (4.3), or candidate -1 if none gains."""
        b = self._n_candidates
        self._swap_gains(self._gain[:b], self._slot[:b])
        return self._best(max(threshold, self._rounding()))

    def _best(self, threshold: float) -> tuple[int, int, float]:
        b = self._n_candidates
        c = int(np.argmax(np.where(self._is_excluded[:b], -np.inf, self._gain[:b]))) if b else -1
        if b == 0 or self._is_excluded[c] or not self._gain[c] > threshold:
            return NOTHING
        return c, int(self._slot[c]), float(self._gain[c])

    def _residual_variances(self) -> np.ndarray:
        b = self._n_candidates
        return np.maximum(np.diagonal(self._r)[:b], 0.0) + self.noise_variance

    def _addition_gains(self, variances: np.ndarray, out: np.ndarray) -> None:
        np.log(variances / self.noise_variance, out=out)
        out *= 0.5

    def _swap_gains(self, gain: np.ndarray, slot: np.ndarray) -> None:
        kernels.entropy_swap_gains(self.n_held, self.noise_variance, self._p, self._h, self._r, gain, slot)

    def _rounding(self) -> float:
        return ROUNDING

    def exclude(self, c: int) -> None:
        """Take no candidate equal to one held: a set has no two equal exemplars."""
        self._is_excluded[c] = True

    def readmit(self, c: int) -> None:
        """The exemplar that the candidate equals has gone: it may come back."""
        self._is_excluded[c] = False

    # -- placing -----------------------------------------------------------------------------------------------

    def place(self, c: int, slot: int) -> None:
        """Make candidate c the exemplar of a slot; slot == n_held adds one."""
        if slot < self.n_held:
            self._log_det += float(np.log(self._p[slot, slot]))
            self._remove(slot)
            at = int(np.flatnonzero(self._order[: self.n_held] == slot)[0])
            kernels.cholesky_delete(at, self.n_held, self._factor)
            self._order[at : self.n_held - 1] = self._order[at + 1 : self.n_held]
            n_left = self.n_held - 1
        else:
            n_left = self.n_held
            self.n_held += 1
        self._log_det += float(np.log(max(self._r[c, c], 0.0) + self.noise_variance))
        self._insert(c, slot)
        self._a[slot] = self._b[c]
        others = self._a[self._order[:n_left]]
        column = self.covariance(others, self._b[c : c + 1])[:, 0]
        diagonal = self.signal_variance + self.noise_variance
        status = kernels.cholesky_append(column, diagonal, n_left, self._factor)
        assert status == 0, "noise on the diagonal keeps the covariance positive definite"
        self._order[n_left] = slot

    def _remove(self, j: int) -> None:
        """Condition P, h and r on the active set without slot j, whose row and column become zero."""
        n, b = self.n_held, self._n_candidates
        pivot = self._p[j, j]
        gamma, beta = self._p[:n, j] / pivot, self._h[:b, j] / pivot
        kernels.add_outer(-pivot, beta, gamma, self._h)
        kernels.add_outer(pivot, beta, beta, self._r)
        kernels.add_outer(-pivot, gamma, gamma, self._p)
        self._p[j, :], self._p[:, j], self._h[:, j] = 0.0, 0.0, 0.0

    def _insert(self, c: int, j: int) -> None:
        """Condition P, h and r on candidate c as well, in the empty slot j."""
        n, b = self.n_held, self._n_candidates
        r = self._r[:b, c].copy()
        scale = 1.0 / (max(r[c], 0.0) + self.noise_variance)
        e = self._h[c, :n].copy()
        e[j] = -1.0
        kernels.add_outer(-scale, r, e, self._h)
        kernels.add_outer(-scale, r, r, self._r)
        kernels.add_outer(scale, e, e, self._p)

    # -- results -----------------------------------------------------------------------------------------------

    @property
    def loss(self) -> float:
        """F_H lowers no loss over W."""
        return 0.0

    @property
    def utility(self) -> float:
        """F_H of the active set, nats."""
        return 0.5 * (self._log_det - self.n_held * float(np.log(self.noise_variance)))

    def nearest(self, rows: np.ndarray, step: int) -> np.ndarray:
        """Return the slot of the exemplar that covaries most with each row; changes nothing."""
        active = self._a[: self.n_held]
        slots = [
            self.covariance(self.scaled(rows[i : i + step]), active).argmax(axis=1) for i in range(0, len(rows), step)
        ]
        return np.concatenate(slots)

    # -- state -------------------------------------------------------------------------------------------------

    def state(self) -> State:
        n = self.n_held
        return {
            "factor": np.tril(self._factor[:n, :n]),
            "order": self._order[:n].copy(),
            "shift": self._shift.copy(),
            "log_det": np.array(self._log_det),
            "drift": np.array(self.drift),
            "blocks": np.array(self._blocks),
        }

    def _arrays(self, held: int) -> dict[str, Array]:
        """What a state with `held` exemplars holds."""
        return {
            "factor": Array(np.float64, (held, held)),
            "order": Array(np.int64, (held,)),
            "log_det": Array(np.float64, ()),
            "shift": Array(np.float64, self._shift.shape),
            "drift": Array(np.float64, (), low=0.0),
            "blocks": Array(np.int64, (), low=0),
        }

    def prepare(self, state: State, n: int, held: int, where: str) -> Callable[[Reservoir, np.ndarray], None]:
        """Validate a state of n validation points and `held` exemplars; return what takes it over, given both."""
        check_arrays(state, self._arrays(held), where)
        if not np.array_equal(np.sort(state["order"]), np.arange(held)):
            raise SnapshotError(f"{where}: order does not name each slot once")
        if not (np.diagonal(state["factor"]) > 0.0).all():
            raise SnapshotError(f"{where}: factor has no inverse")
        kept = {name: np.array(array) for name, array in state.items()}
        return lambda reservoir, exemplars: self._take_over(kept, reservoir, exemplars)

    def _take_over(self, state: State, reservoir: Reservoir, exemplars: np.ndarray) -> None:
        n = self.n_held = len(exemplars)
        self._shift[:] = state["shift"]
        self._a[:n] = self.scaled(exemplars)
        self._factor[:n, :n], self._order[:n] = state["factor"], state["order"]
        self._log_det, self.drift, self._blocks = float(state["log_det"]), float(state["drift"]), int(state["blocks"])

    def memory_bytes(self) -> int:
        return sum(value.nbytes for value in vars(self).values() if isinstance(value, np.ndarray))


class VarianceObjective(EntropyObjective):
    """F_V(A): the mean over W of the prior less the posterior variance of the function, by (3.2).

    All k |B| swaps are scored in O(k |B| |W|) a block and O(k |B|) after each swap: the sums over W are taken once a
    block, into m = C G^T and c = C C^T (see `variance_swap_gains`), which then follow swaps by rank-two steps without
    W; so does q = G G^T, which also follows the points that enter and leave W, and is made anew every 8 blocks. As
    printed, appendix II needs O(k^2 |B| |W|). It also scores squared errors on W, where (3.4), the
    objective, needs no targets. Memory: 8 (4 k^2 + block (3 k + 2 block) + validation d + 2 chunk (k + block)) bytes.
    """

    def __init__(self, n_dims: int, k: int, block: int, validation: int, **hyper: Any):
        super().__init__(n_dims, k, block, validation, **hyper)
        self._w = np.zeros((validation, n_dims))
        self._n = 0
        self._q = np.zeros((k, k))
        self._m = np.zeros((block, k))
        self._c = np.zeros((block, block))
        self._total = 0.0  # explained variance, summed over W

    def open_block(self, rows: np.ndarray, reservoir: Reservoir, changed: np.ndarray, rng: np.random.Generator) -> None:
        super().open_block(rows, reservoir, changed, rng)
        self._add_points(self._w[changed[changed < self._n]], -1.0)
        self._w[changed] = self.scaled(reservoir.rows[changed])
        self._n = reservoir.count
        if self._blocks % REFRESH_BLOCKS == 0:
            self._q[:], self._total, changed = 0.0, 0.0, np.arange(self._n)
        self._add_points(self._w[changed], 1.0)
        self._sum_candidates(len(rows))

    def _add_points(self, points: np.ndarray, sign: float) -> None:
        """Let points of W count in q and the explained variance, or, with sign -1, count no more."""
        n = self.n_held
        for start in range(0, len(points) if n else 0, CHUNK):
            active = self.covariance(self._a[:n], points[start : start + CHUNK])
            g = self._p[:n, :n] @ active
            self._q[:n, :n] += sign * (g @ g.T)
            self._total += sign * float(np.vdot(active, g))

    def _sum_candidates(self, b: int) -> None:
        """Take the sums over W that the candidates need: m = C G^T = C k(W, A) P, and c = C C^T."""
        n = self.n_held
        self._m[:], self._c[:] = 0.0, 0.0
        with_active = np.zeros((b, n))
        for start in range(0, self._n, CHUNK):
            points = self._w[start : min(start + CHUNK, self._n)]
            residual = self.covariance(self._b[:b], points)
            if n:
                active = self.covariance(self._a[:n], points)
                residual -= self._h[:b, :n] @ active
                with_active += residual @ active.T
            self._c[:b, :b] += residual @ residual.T
        self._m[:b, :n] = with_active @ self._p[:n, :n]

    def _addition_gains(self, variances: np.ndarray, out: np.ndarray) -> None:
        np.divide(np.diagonal(self._c)[: len(out)], variances * self._n, out=out)

    def _swap_gains(self, gain: np.ndarray, slot: np.ndarray) -> None:
        kernels.variance_swap_gains(
            self.n_held, self.noise_variance, self._p, self._h, self._r, self._q, self._m, self._c, gain, slot
        )
        gain /= self._n

    def _rounding(self) -> float:
        return ROUNDING * self.loss

    def _remove(self, j: int) -> None:
        n, b = self.n_held, self._n_candidates
        pivot, weight = self._p[j, j], self._q[j, j]
        gamma, beta = self._p[:n, j] / pivot, self._h[:b, j] / pivot
        q, m = self._q[:n, j].copy(), self._m[:b, j].copy()
        self._total -= weight / pivot
        s = m + 0.5 * weight * beta
        kernels.add_outer_pair(1.0, beta, s, s, beta, self._c)
        kernels.add_outer_pair(1.0, beta, q, -m - weight * beta, gamma, self._m)
        s = q - 0.5 * weight * gamma
        kernels.add_outer_pair(-1.0, gamma, s, s, gamma, self._q)
        self._q[j, :], self._q[:, j], self._m[:, j] = 0.0, 0.0, 0.0
        super()._remove(j)

    def _insert(self, c: int, j: int) -> None:
        n, b = self.n_held, self._n_candidates
        r, e, g = self._r[:b, c].copy(), self._h[c, :n].copy(), self._m[c, :n].copy()
        e[j], g[j] = -1.0, 0.0
        own, weight = self._c[:b, c].copy(), self._c[c, c]
        scale = 1.0 / (max(r[c], 0.0) + self.noise_variance)
        self._total += weight * scale
        t = g - 0.5 * weight * scale * e
        kernels.add_outer_pair(-scale, e, t, t, e, self._q)
        kernels.add_outer_pair(-scale, r, g, own - weight * scale * r, e, self._m)
        t = own - 0.5 * weight * scale * r
        kernels.add_outer_pair(-scale, r, t, t, r, self._c)
        super()._insert(c, j)

    @property
    def loss(self) -> float:
        """Mean posterior variance of the function over W; 0 before the first row."""
        return self.signal_variance - self.utility if self._n else 0.0

    @property
    def utility(self) -> float:
        return self._total / self._n if self._n else 0.0

    def state(self) -> State:
        n = self.n_held
        return super().state() | {"total": np.array(self._total), "q": self._q[:n, :n].copy()}

    def _arrays(self, held: int) -> dict[str, Array]:
        return super()._arrays(held) | {"total": Array(np.float64, ()), "q": Array(np.float64, (held, held))}

    def _take_over(self, state: State, reservoir: Reservoir, exemplars: np.ndarray) -> None:
        super()._take_over(state, reservoir, exemplars)
        self._n, self._total = reservoir.count, float(state["total"])
        self._q[: self.n_held, : self.n_held] = state["q"]
        self._w[: self._n] = self.scaled(reservoir.rows[: self._n])
