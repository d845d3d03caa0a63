"""The full family: a Normal-inverse-Wishart posterior, over points and clumps with exact or rounded covariances.

Made by agent/learn/mixture/families/__init__.py. It must not decide which split or merge is kept.
"""

import numpy as np

from stillwatch.kernels import mixture_common, mixture_full, mixture_rounded
from stillwatch.kernels.mixture_common import CONSTANT, SCALE, SHAPE, STRENGTH
from stillwatch.learn.mixture.families.places import BLOCK, HELD, SETTLED, Moments, Places, SplitTask
from stillwatch.learn.mixture.items import Items


class FullFamily(Places):
    """Normal-inverse-Wishart prior. A clump is (d^2 + 3 d) / 2 + 1 values: it pays above (d + 3) / 2 points (2.18)."""

    covariance = "full"

    def __init__(self, n_dims: int, capacity: int, n_items: int):
        super().__init__(n_dims, n_dims * (n_dims + 1) // 2, capacity, n_items)
        self.whiten = np.zeros((capacity + 3, n_dims, n_dims))
        self._factor = np.zeros((n_dims, n_dims))
        self._square = np.zeros((n_dims, n_dims))
        self._rows = np.zeros((BLOCK, n_dims))
        self._whitened = np.zeros((BLOCK, n_dims))
        self._first = np.zeros(n_dims)
        self._packed = np.zeros(self.n_packed)
        self._log_det = np.zeros(1)
        self._diagonal = np.cumsum(np.arange(1, n_dims + 1)) - 1

    @staticmethod
    def clump_cost(n_dims: int) -> int:
        """Values of one clump: count, mean, packed second moment (2.18)."""
        return (n_dims * n_dims + 3 * n_dims) // 2 + 1

    def isotropic(self, times: float) -> np.ndarray:
        """Return `times` the covariance that the prior expects of a component, packed."""
        packed = np.zeros(self.n_packed)
        packed[self._diagonal] = times * self.prior[SCALE] / self.prior[SHAPE]
        return packed

    def spread_cost(self, place: int, spread: np.ndarray) -> float:
        """Return tr(E[Lambda] spread) / 2: what the width of a point takes from its expected log density."""
        return 0.5 * float(self._pack_precision(place) @ spread)

    def collect(
        self,
        items: Items,
        rows: np.ndarray,
        weights: np.ndarray,
        centre: np.ndarray,
        moments: Moments,
        place: int,
        spread: np.ndarray | None = None,
    ) -> None:
        """Write the statistics of weighted items to a place; sums are taken about `centre`."""
        first, square, packed = self._first, self._square, moments.scatter[place]
        first[:] = 0.0
        packed[:] = 0.0
        count = 0.0
        for start in range(0, len(rows), BLOCK):
            part = rows[start : start + BLOCK]
            count += mixture_full.gather_weighted(
                items.x, part, weights[start : start + BLOCK], centre, first, self._rows
            )
            used = self._rows[: len(part)]
            np.matmul(used.T, used, out=square)
            mixture_full.add_packed_square(square, 0.0, first, packed)
        self._add_clumps(items, rows, weights, packed)
        if count > 0.0:
            first /= count
            square[:] = 0.0
            mixture_full.add_packed_square(square, count, first, packed)
        if spread is not None:
            packed += count * spread
        moments.count[place] = count
        np.add(first, centre, out=moments.mean[place])

    def _add_clumps(self, items: Items, rows: np.ndarray, weights: np.ndarray, packed: np.ndarray) -> None:
        mixture_full.add_packed_moments(items.second, rows, weights, items.n_clumps, packed)

    def _subtract_clumps(self, items: Items, rows: np.ndarray, place: int, out: np.ndarray) -> None:
        mixture_full.subtract_traces(self._pack_precision(place), items.second, rows, items.n_clumps, out)

    def _subtract_clump_block(self, items: Items, first: int, n_rows: int, n_components: int, out: np.ndarray) -> None:
        for k in range(n_components):
            precision = self._pack_precision(k)
            mixture_full.subtract_traces_block(precision, items.second, first, n_rows, items.n_clumps, k, out)

    def _factor_scale(self, moments: Moments, place: int) -> float:
        count = moments.count[place]
        pull = self.prior[STRENGTH] * count / (self.prior[STRENGTH] + count)
        mixture_full.factor_scale(
            moments.scatter[place], pull, moments.mean[place], self.prior[SCALE], self._factor, self._log_det
        )
        return float(self._log_det[0])

    def rescale(self, items: Items, n_components: int, ratio: np.ndarray) -> None:
        """Bring second moments and statistics to units that are `ratio` of the present ones, per column."""
        low = np.tril_indices(self.n_dims)
        self._packed[:] = np.outer(ratio, ratio)[low]
        self._rescale_clumps(items.second[: items.n_clumps], ratio)
        self.moments.scatter[:n_components] *= self._packed

    def _rescale_clumps(self, second: np.ndarray, ratio: np.ndarray) -> None:
        second *= self._packed

    def fit(self, place: int) -> None:
        """Write the posterior and the fits of a place from its statistics."""
        log_det = self._factor_scale(self.moments, place)
        mixture_full.posterior(
            self.moments.count[place],
            self.moments.mean[place],
            self.prior,
            log_det,
            self._factor,
            self.whiten[place],
            self.post_mean[place],
            self.fits[place],
        )

    def evidence(self, moments: Moments, place: int) -> float:
        """Return the log evidence of statistics: one Cholesky factor, no inverse."""
        log_det = self._factor_scale(moments, place)
        return mixture_full.evidence(moments.count[place], self.n_dims, self.prior, log_det)

    def combine(self, moments: Moments, a: int, b: int, out: Moments, place: int) -> None:
        """Write the statistics of two components together."""
        na, nb = moments.count[a], moments.count[b]
        total = na + nb
        part = nb / total if total > 0.0 else 0.0
        np.subtract(moments.mean[b], moments.mean[a], out=self._first)
        np.add(moments.scatter[a], moments.scatter[b], out=self._packed)
        self._square[:] = 0.0
        mixture_full.add_packed_square(self._square, -na * part, self._first, self._packed)
        out.mean[place] = moments.mean[a] + part * self._first
        out.scatter[place] = self._packed
        out.count[place] = total

    def copy(self, source: int, target: int) -> None:
        """Copy statistics and posterior of a place."""
        self.moments.copy(source, target)
        self.post_mean[target] = self.post_mean[source]
        self.whiten[target] = self.whiten[source]
        self.fits[target] = self.fits[source]

    def _pack_precision(self, place: int) -> np.ndarray:
        np.matmul(self.whiten[place].T, self.whiten[place], out=self._square)
        mixture_full.pack_doubled(self._square, self._packed)
        return self._packed

    def log_joint(self, items: Items, rows: np.ndarray, place: int, log_weight: float, out: np.ndarray) -> None:
        """Write S_sk (2.9) of one place for some items."""
        constant = self.fits[place, CONSTANT] + log_weight
        for start in range(0, len(rows), BLOCK):
            part = rows[start : start + BLOCK]
            n = len(part)
            mixture_full.gather_centred(items.x, part, self.post_mean[place], self._rows)
            np.matmul(self._rows[:n], self.whiten[place].T, out=self._whitened[:n])
            mixture_full.log_joint_rows(self._whitened, n, constant, out[start : start + n])
        if len(rows) and rows.min() < items.n_clumps:
            self._subtract_clumps(items, rows, place, out)

    def log_joint_block(
        self, items: Items, first: int, n_rows: int, n_components: int, log_weight: np.ndarray, out: np.ndarray
    ) -> None:
        """Write S_sk (2.9) of all components for a block of items."""
        rows = self._rows[:n_rows]
        rows[:] = items.x[first : first + n_rows]
        for k in range(n_components):
            np.matmul(rows, self.whiten[k].T, out=self._whitened[:n_rows])
            np.matmul(self.whiten[k], self.post_mean[k], out=self._first)
            mixture_full.log_joint_column(
                self._whitened, self._first, n_rows, self.fits[k, CONSTANT] + log_weight[k], k, out
            )
        if first < items.n_clumps:
            self._subtract_clump_block(items, first, n_rows, n_components, out)

    def split(
        self, items: Items, rows: np.ndarray, weights: np.ndarray, parent: tuple[Moments, int], task: SplitTask
    ) -> float:
        """Split weighted items in two; `parent` is (moments, place). Return evidence + entropy of the children."""
        n, share, centre = len(rows), self._cut(items, rows, parent, task), parent[0].mean[parent[1]]
        a, b = self.child_a, self.child_b
        left = task.n_updates
        while True:
            np.multiply(weights, share, out=self.sides[0, :n])
            np.subtract(weights, self.sides[0, :n], out=self.sides[1, :n])
            self.collect(items, rows, self.sides[0, :n], centre, self.moments, a, task.spread)
            self.collect(items, rows, self.sides[1, :n], centre, self.moments, b, task.spread)
            count_a, count_b = self.moments.count[a], self.moments.count[b]
            if not left or not (count_a > 0.0 and count_b > 0.0):
                break
            self.fit(a)
            self.fit(b)
            for child, out in ((a, self.sides[2]), (b, self.sides[3])):
                wide = 0.0 if task.spread is None else self.spread_cost(child, task.spread)
                self.log_joint(items, rows, child, -wide, out)
            odds = mixture_common.split_log_odds(count_a, count_b, task.after, task.alpha)
            change = mixture_common.update_share(self.sides[2, :n], self.sides[3, :n], odds, task.soft, share)
            if change == 0.0:
                break
            left = left - 1 if change > SETTLED else 0
        self.fit(a)
        self.fit(b)
        return self.split_score(mixture_common.split_entropy(share, weights))

    def _cut(self, items: Items, rows: np.ndarray, parent: tuple[Moments, int], task: SplitTask) -> np.ndarray:
        """Return the shares that a split begins with: items on one side of a plane are the first child's."""
        moments, place = parent
        share = self.share[: len(rows)]
        self._place_plane(items, moments, place, task)
        point, direction = self.plane
        if not direction.any():
            point = moments.mean[place]
            direction[np.argmax(moments.scatter[place][self._diagonal])] = 1.0
            mixture_full.packed_direction(moments.scatter[place], direction, self._first)
        mixture_common.side_of_plane(items.x, rows, point, direction, share)
        return share

    def _normal(self, place: int, step: np.ndarray) -> np.ndarray:
        return self.whiten[place].T @ (self.whiten[place] @ step)

    def distances(self, place: int, others: np.ndarray) -> np.ndarray:
        """Return the expected squared distance of other components' means from this one's."""
        step = (self.post_mean[others] - self.post_mean[place]) @ self.whiten[place].T
        return np.einsum("ij,ij->i", step, step)

    def arrays(self) -> list[np.ndarray]:
        workspaces = [self._factor, self._square, self._rows, self._whitened, self._first]
        return [*super().arrays(), self.whiten, *workspaces, self._packed, self._log_det, self._diagonal]


class RoundedFamily(FullFamily):
    """The full family over clumps whose correlations are rounded to a byte: what a clump must keep.

    A clump is count, mean, variances, the step of the codes, and a byte for each of d (d - 1) / 2 entries of the
    Cholesky factor of its correlations, four to a float32 value: 409 values at d = 50, where exact moments take 1,326.
    Such a clump pays above d / 8 + 15 / 8 + 2 / d points.
    """

    def __init__(self, n_dims: int, capacity: int, n_items: int):
        super().__init__(n_dims, capacity, n_items)
        self.n_second = n_dims + 1
        self.n_codes = n_dims * (n_dims - 1) // 2
        self._unpacked = np.zeros(self.n_packed)
        self._held = np.zeros((HELD, self.n_packed))
        self._decoded = self._held.view(np.float32).reshape(2 * HELD, -1)  # of a dense pass: no split runs meanwhile
        self._held_rows: np.ndarray | None = None  # the list whose clumps, its first ones, are held
        self._n_held = 0

    @staticmethod
    def clump_cost(n_dims: int) -> int:
        """Values of one clump, in the space of a float32 each: count, mean, variances, step, codes."""
        return 2 * n_dims + 2 + -(-n_dims * (n_dims - 1) // 8)

    def summarise(self, kept: Items, row: int, moments: Moments, place: int) -> None:
        """Write statistics as a clump, rounded."""
        kept.counts[row] = moments.count[place]
        kept.x[row] = moments.mean[place]
        mixture_rounded.encode(
            moments.scatter[place], moments.count[place], self._factor, kept.second[row], kept.codes[row]
        )

    def clump_moments(self, items: Items) -> np.ndarray:
        """Return the second moments of all clumps, (n_clumps, n_packed)."""
        out = np.zeros((items.n_clumps, self.n_packed), np.float32)
        self._decode(items, 0, items.n_clumps, out)
        return out

    def _rescale_clumps(self, second: np.ndarray, ratio: np.ndarray) -> None:
        second[:, : self.n_dims] *= ratio**2  # correlations have no units

    def _decode(self, items: Items, first: int, n_clumps: int, out: np.ndarray) -> None:
        mixture_rounded.decode_block(items.second, items.codes, first, n_clumps, self._factor, self._unpacked, out)

    def split(
        self, items: Items, rows: np.ndarray, weights: np.ndarray, parent: tuple[Moments, int], task: SplitTask
    ) -> float:
        """Split weighted items in two; `parent` is (moments, place). Return evidence + entropy of the children.

        Every update reads all clumps of the list four times: they are decoded once where there is room for them.
        """
        n = int(np.count_nonzero(rows < items.n_clumps))
        if n <= HELD and (rows[:n] < items.n_clumps).all():
            self._n_held = n
            mixture_rounded.decode_list(items.second, items.codes, rows, n, self._factor, self._held)
            self._held_rows = rows
        try:
            return super().split(items, rows, weights, parent, task)
        finally:
            self._held_rows = None

    def _add_clumps(self, items: Items, rows: np.ndarray, weights: np.ndarray, packed: np.ndarray) -> None:
        if rows is self._held_rows:
            mixture_rounded.add_decoded(self._held, self._n_held, weights, packed)
            return
        mixture_rounded.add_moments(
            items.second, items.codes, rows, weights, items.n_clumps, self._factor, self._unpacked, packed
        )

    def _subtract_clumps(self, items: Items, rows: np.ndarray, place: int, out: np.ndarray) -> None:
        if rows is self._held_rows:
            mixture_rounded.subtract_decoded(self._pack_precision(place), self._held, self._n_held, out)
            return
        mixture_rounded.subtract_traces(
            self._pack_precision(place),
            items.second,
            items.codes,
            rows,
            items.n_clumps,
            self._factor,
            self._unpacked,
            out,
        )

    def _subtract_clump_block(self, items: Items, first: int, n_rows: int, n_components: int, out: np.ndarray) -> None:
        end = min(n_rows, items.n_clumps - first)
        for low in range(0, end, len(self._decoded)):
            n = min(len(self._decoded), end - low)
            self._decode(items, first + low, n, self._decoded)
            for k in range(n_components):
                precision = self._pack_precision(k)
                mixture_full.subtract_traces_block(precision, self._decoded, 0, n, n, k, out[low : low + n])

    def arrays(self) -> list[np.ndarray]:
        return [*super().arrays(), self._unpacked, self._held]
