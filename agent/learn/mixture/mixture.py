"""The memory-bounded variational Dirichlet process mixture (MB-VDP): buffers rows, learns an epoch at a time.

Used by agent/epochs/schedule.py, experiments and benches. It must not read a clock, and never holds more than its
bytes.
"""

from typing import Literal

import numpy as np

from stillwatch.base import Commit, NotFittedError, Restorable, SnapshotError, State
from stillwatch.learn.mixture.build import BuildReport, ModelBuilder
from stillwatch.learn.mixture.compress import Compressor, CompressReport
from stillwatch.learn.mixture.families import clump_cost, make_family
from stillwatch.learn.mixture.items import Items
from stillwatch.learn.mixture.predictive import COVARIANCES, StudentMixture, pack_lower
from stillwatch.learn.mixture.priors import FARTHEST, Normaliser, prior_parameters

VERSION = 2
# The horizon is a guess: compression never acts as if less than this many times what was seen were still to come.
LEAST_MAGNIFICATION = 20.0
CLUMP_MOMENTS = ("rounded", "exact")
STATE_NAMES = (
    "version", "config", "pending", "shift", "scale", "x", "counts", "second", "codes", "component_count",
    "component_mean", "component_scatter", "component_id", "component_born", "component_tried", "totals", "free_energy",
)  # fmt: skip


class MemoryBoundedMixture(Restorable):
    """Incremental Dirichlet process mixture of Gaussians in a fixed amount of memory.

    Parameters
    ----------
    n_dims : int
    covariance : {"diagonal", "full"}
        Normal-gamma prior per dimension, or Normal-inverse-Wishart. Diagonal on correlated rows is bad: reduce first.
    memory : int
        Data points of `n_dims` values that clumps, singlets and the epoch may take together (2.18).
    epoch_size : int or None
        E: rows learned at a time; half of the memory by default. Clumps and singlets have the rest.
    horizon : int
        N: rows that are expected in all. Compression keeps apart what N rows would tell apart (2.14-2.17).
    concentration : float
        alpha. It hardly matters over ten decades: what decides the number of components is `prior_scale`.
    prior_strength : float or None
        kappa_0: how many points the prior mean is worth.
    prior_scale : float or None
        The covariance that a component is expected to have, in units of the data's own spread in the first epoch.
    max_components, max_iterations : int
        Limits on the model, and on full updates an epoch.
    warm_start : bool
        Begin each epoch from the last model and try merges too; False begins from one component, as the paper did.
    clump_moments : {"rounded", "exact"}
        What a clump of a full mixture keeps of its correlations: a byte each, or float32. Rounded, three times as many
        clumps fit into the same memory at 50 dimensions. A diagonal mixture's clumps keep exact variances either way.
    seed : int
        Kept for the learners' common interface: this learner draws nothing at random.

    Attributes
    ----------
    free_energy_ : float
        The bound on log p(data) after the last epoch, in nats and in the units of the data (2.11).
    epoch_, n_seen_, n_components_, refused_ : int
        Epochs learned, points learned, components now, rows refused because they lay absurdly far out.
    report_ : dict
        The last epoch: free energy, splits and merges tried and kept, clumps, singlets, iterations, events.

    References
    ----------
    .. [1] R. Gomes, M. Welling, P. Perona, Incremental learning of nonparametric Bayesian mixture models, CVPR 2008;
       R. Gomes, thesis, 2011, chapter 2: equation numbers here are the thesis's.
    """

    def __init__(
        self,
        n_dims: int,
        *,
        covariance: Literal["diagonal", "full"] = "diagonal",
        memory: int = 4000,
        epoch_size: int | None = None,
        horizon: int = 10_000_000,
        concentration: float = 1.0,
        prior_strength: float | None = None,
        prior_scale: float | None = None,
        max_components: int = 80,
        max_iterations: int = 30,
        warm_start: bool = True,
        clump_moments: Literal["rounded", "exact"] = "rounded",
        seed: int = 0,
    ):
        if covariance not in COVARIANCES:
            raise ValueError(f"covariance: {covariance!r} is neither 'diagonal' nor 'full'")
        if clump_moments not in CLUMP_MOMENTS:
            raise ValueError(f"clump_moments: {clump_moments!r} is neither 'rounded' nor 'exact'")
        self.n_dims = n_dims
        self.covariance = covariance
        self.memory = memory
        self.epoch_size = memory // 2 if epoch_size is None else epoch_size
        self.horizon = horizon
        self.concentration = concentration
        self.prior_strength = 0.01 if prior_strength is None else prior_strength
        self.prior_scale = 0.05 if prior_scale is None else prior_scale
        self.max_components = max_components
        self.max_iterations = max_iterations
        self.warm_start = warm_start
        self.clump_moments = clump_moments
        self.seed = seed
        self._check_settings()
        budget = (memory - self.epoch_size) * n_dims
        form = "rounded" if (covariance, clump_moments) == ("full", "rounded") else covariance
        cost = clump_cost(form, n_dims)
        if budget < cost:
            raise ValueError(
                f"memory: {memory} points of {n_dims} values less an epoch of {self.epoch_size} leave {budget} values, "
                f"and one clump takes {cost}"
            )
        family = make_family(form, n_dims, max_components, memory)
        family.prior[:] = prior_parameters(covariance, n_dims, self.prior_strength, self.prior_scale)
        self._items = Items(n_dims, family.n_second, memory, budget // cost, family.n_codes)
        self._builder = ModelBuilder(family, memory, concentration, max_iterations)
        self._compressor = Compressor(family, memory, budget, concentration)
        self._pending = np.zeros((self.epoch_size, n_dims))
        self._n_pending = 0
        self._normaliser: Normaliser | None = None
        self._predictive: StudentMixture | None = None
        self.epoch_ = 0
        self.n_seen_ = 0
        self.refused_ = 0
        self.free_energy_ = float("nan")
        self.report_: dict = {}

    def _check_settings(self) -> None:
        limits = {
            "n_dims": (self.n_dims, 1),
            "epoch_size": (self.epoch_size, 1),
            "horizon": (self.horizon, 1),
            "max_components": (self.max_components, 1),
            "max_iterations": (self.max_iterations, 1),
        }
        for name, (value, least) in limits.items():
            if value < least:
                raise ValueError(f"{name}: {value} is below {least}")
        for name in ("concentration", "prior_strength", "prior_scale"):
            value = getattr(self, name)
            if not (value > 0.0 and np.isfinite(value)):
                raise ValueError(f"{name}: {value} is not a finite number above 0")

    # Learning

    def partial_fit(self, X: np.ndarray) -> "MemoryBoundedMixture":
        """Take rows; learn whenever an epoch is full. The result does not depend on how the calls are cut.

        X : ndarray of shape (n, n_dims), float32 or float64; it is copied, never changed

        Raises
        ------
        ValueError
            Where the shape is wrong, or a value is not finite: nothing of X is taken.
        """
        rows = self._checked(X)
        start = 0
        while start < len(rows):
            stop = start + self.epoch_size - self._n_pending
            self._buffer(rows[start:stop])
            start = stop
            if self._n_pending == self.epoch_size:
                self._learn()
        return self

    def flush(self) -> "MemoryBoundedMixture":
        """Learn the rows buffered so far as a smaller epoch; nothing happens where there are none."""
        if self._n_pending:
            self._learn()
        return self

    def _checked(self, X) -> np.ndarray:
        rows = np.asarray(X)
        if rows.ndim != 2 or rows.shape[1] != self.n_dims:
            raise ValueError(f"X: shape {rows.shape} is not (n, {self.n_dims})")
        if rows.dtype not in (np.float32, np.float64):
            if rows.dtype.kind not in "iuf":
                raise ValueError(f"X: dtype {rows.dtype} is not a real number")
            rows = rows.astype(np.float64)
        bad = ~np.isfinite(rows).all(axis=1)
        if bad.any():
            raise ValueError(
                f"X: {np.count_nonzero(bad)} of {len(rows)} rows hold NaN or infinity, first row {int(np.argmax(bad))}"
            )
        return rows

    def _buffer(self, rows: np.ndarray) -> None:
        rows = rows.astype(np.float64)
        if self._normaliser is not None:
            rows = self._refuse_far(rows, self._normaliser)
        self._pending[self._n_pending : self._n_pending + len(rows)] = rows
        self._n_pending += len(rows)

    def _refuse_far(self, rows: np.ndarray, normaliser: Normaliser) -> np.ndarray:
        near = (np.abs(normaliser.apply(rows)) <= FARTHEST).all(axis=1)
        self.refused_ += int(np.count_nonzero(~near))
        return rows[near]

    def _learn(self) -> None:
        """One round of the algorithm: model building on all items, then compression of them."""
        rows = self._pending[: self._n_pending]
        if self._normaliser is None:
            self._normaliser = Normaliser.measure(rows, self.covariance)
            rows = self._refuse_far(rows, self._normaliser)
        self._n_pending = 0
        items, builder = self._items, self._builder
        items.append(self._normaliser.apply(rows))
        self.n_seen_ += len(rows)
        self.epoch_ += 1
        old = self._predictive
        built = builder.build(items, warm=self.warm_start, merges=self.warm_start)
        if not self.warm_start and old is not None:
            self._match(old)
        magnification = max(self.horizon / items.total, LEAST_MAGNIFICATION)
        squeezed = self._compressor.compress(items, builder.candidates[:, 0], builder.n_components, magnification)
        self.free_energy_ = built.free_energy - items.total * self._normaliser.log_volume
        self._predictive = StudentMixture(self.components)
        self._report(built, squeezed)

    def _match(self, old: StudentMixture) -> None:
        """Give the components of a model built from scratch the ids of those they continue."""
        items, builder, normaliser = self._items, self._builder, self._normaliser
        assert normaliser is not None  # an old model implies it
        n, k = items.n_items, builder.n_components
        rows = items.x[:n] * normaliser.scale + normaliser.shift
        place = np.searchsorted(np.sort(old.ids), old.predict(rows))
        place = np.argsort(old.ids, kind="stable")[place]
        shared = np.zeros((old.n_components, k))
        for column in range(builder.candidates.shape[1]):
            used = builder.candidates[:n, column] >= 0
            np.add.at(
                shared,
                (place[used], builder.candidates[:n, column][used]),
                items.counts[:n][used] * builder.shares[:n, column][used],
            )
        builder.identities.adopt(old.ids, self._old_born, shared)

    def _report(self, built: BuildReport, squeezed: CompressReport) -> None:
        events = self._builder.identities.settle_events()
        items = self._items
        self._old_born = self.components["born_epoch"]
        self.report_ = {
            "epoch": self.epoch_,
            "free_energy": self.free_energy_,
            "components": self.n_components_,
            "clumps": items.n_clumps,
            "singlets": items.n_items - items.n_clumps,
            "iterations": built.iterations,
            "dense_passes": built.dense_passes,
            "splits_tried": built.splits_tried,
            "splits_kept": built.splits_kept,
            "merges_tried": built.merges_tried,
            "merges_kept": built.merges_kept,
            "compression_splits_tried": squeezed.splits_tried,
            "compression_splits_kept": squeezed.splits_kept,
            "forced_merges": squeezed.forced_merges,
            "births": [(who, parent) for kind, who, parent in events if kind == "birth"],
            "deaths": [(who, heir) for kind, who, heir in events if kind == "death"],
        }

    # What was learned

    @property
    def n_components_(self) -> int:
        """Components of the last finished epoch."""
        return self._builder.n_components

    def predictive(self) -> StudentMixture | None:
        """Return the immutable predictive of the last finished epoch, or None before the first."""
        return self._predictive

    def _fitted(self) -> StudentMixture:
        if self._predictive is None:
            raise NotFittedError(
                f"no model yet: {self._n_pending} of {self.epoch_size} rows of the first epoch are buffered"
            )
        return self._predictive

    def score_samples(self, X: np.ndarray) -> np.ndarray:
        """Return the log posterior predictive density of each row, float64, in nats, in the units of the data."""
        return self._fitted().score_samples(self._checked(X))

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the id of the likeliest component of each row, int64."""
        return self._fitted().predict(self._checked(X))

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return posterior probabilities (n, n_components_), columns in the order of `components`, largest first."""
        return self._fitted().predict_proba(self._checked(X))

    @property
    def components(self) -> dict[str, np.ndarray]:
        """The model as arrays, largest component first, in the units of the data.

        id, born_epoch (K,) int64; count, weight (K,) float64; mean (K, D); variance (K, D) or covariance
        (K, D (D + 1) / 2), lower triangle row by row, of the component's own data; and what else
        `StudentMixture.from_summary` needs: kind, prior, shift, scale, concentration; epoch.
        """
        if self._normaliser is None:
            raise NotFittedError("no model yet: the first epoch is not full (flush learns what is here)")
        builder = self._builder
        order = builder.order()
        moments, normaliser = builder.family.moments, self._normaliser
        count = moments.count[order]
        average = moments.scatter[order] / np.maximum(count, 1e-300)[:, None]
        diagonal = self.covariance == "diagonal"
        units = normaliser.scale**2
        if not diagonal:
            units = pack_lower(np.outer(normaliser.scale, normaliser.scale)[None])[0]
        return {
            "kind": np.array(COVARIANCES.index(self.covariance)),
            "id": builder.identities.id[order],
            "born_epoch": builder.identities.born_epoch[order],
            "count": count,
            "weight": builder.weight[order],
            "mean": moments.mean[order] * normaliser.scale + normaliser.shift,
            "variance" if diagonal else "covariance": average * units,
            "prior": builder.family.prior.copy(),
            "shift": normaliser.shift.copy(),
            "scale": normaliser.scale.copy(),
            "concentration": np.array(self.concentration),
            "epoch": np.array(self.epoch_),
        }

    @property
    def clumps(self) -> dict[str, np.ndarray]:
        """What is kept of the data, in its units: clumps, then singlets.

        count (n,) float64; mean (n, D); variance (n_clumps, D) or covariance (n_clumps, D (D + 1) / 2), packed.
        """
        items, normaliser = self._items, self._normaliser
        if normaliser is None:
            raise NotFittedError("no model yet: the first epoch is not full (flush learns what is here)")
        n = items.n_items
        diagonal = self.covariance == "diagonal"
        units = normaliser.scale**2
        if not diagonal:
            units = pack_lower(np.outer(normaliser.scale, normaliser.scale)[None])[0]
        return {
            "count": items.counts[:n].copy(),
            "mean": items.x[:n] * normaliser.scale + normaliser.shift,
            "variance" if diagonal else "covariance": self._builder.family.clump_moments(items) * units,
        }

    # State

    def memory_bytes(self) -> int:
        """Return the bytes of all arrays, a constant: the predictive at its largest; older ones are their holders'."""
        arrays = [*self._items.arrays(), *self._builder.arrays(), *self._compressor.arrays(), self._pending]
        snapshot = StudentMixture.bytes_of(self.covariance, self.n_dims, self.max_components)
        return sum(array.nbytes for array in arrays) + snapshot

    def _config(self) -> np.ndarray:
        settings: list[float] = [
            self.n_dims,
            COVARIANCES.index(self.covariance),
            self.memory,
            self.epoch_size,
            self.horizon,
        ]
        settings += [self.concentration, self.prior_strength, self.prior_scale, self.max_components]
        settings += [self.max_iterations, self.warm_start, CLUMP_MOMENTS.index(self.clump_moments)]
        return np.array(settings, np.float64)

    def state(self) -> dict[str, np.ndarray]:
        """Return everything learned and buffered as a flat set of arrays; a restored learner continues bit for bit."""
        builder, items = self._builder, self._items
        k, moments, who = builder.n_components, builder.family.moments, builder.identities
        normaliser, nothing = self._normaliser, np.zeros(0)
        return {
            "version": np.array(VERSION),
            "config": self._config(),
            "pending": self._pending[: self._n_pending].copy(),
            "shift": nothing if normaliser is None else normaliser.shift.copy(),
            "scale": nothing if normaliser is None else normaliser.scale.copy(),
            "x": items.x[: items.n_items].copy(),
            "counts": items.counts[: items.n_items].copy(),
            "second": items.second[: items.n_clumps].copy(),
            "codes": items.codes[: items.n_clumps].copy(),
            "component_count": moments.count[:k].copy(),
            "component_mean": moments.mean[:k].copy(),
            "component_scatter": moments.scatter[:k].copy(),
            "component_id": who.id[:k].copy(),
            "component_born": who.born_epoch[:k].copy(),
            "component_tried": builder.tried[:k].copy(),
            "totals": np.array([self.epoch_, self.n_seen_, self.refused_, who.next_id, who.epoch], np.int64),
            "free_energy": np.array(self.free_energy_),
        }

    def prepare(self, state: State) -> Commit:
        """Validate a state; the commit becomes the learner that it was taken from. SnapshotError where none fits."""
        self._check_state(state)
        return lambda: self._take_over(state)

    def _take_over(self, state: State) -> None:
        builder, items = self._builder, self._items
        self._n_pending = len(state["pending"])
        self._pending[: self._n_pending] = state["pending"]
        self._normaliser = None
        if len(state["shift"]):
            self._normaliser = Normaliser(np.array(state["shift"]), np.array(state["scale"]))
        items.n_items, items.n_clumps = len(state["x"]), len(state["second"])
        items.x[: items.n_items] = state["x"]
        items.counts[: items.n_items] = state["counts"]
        items.second[: items.n_clumps] = state["second"]
        items.codes[: items.n_clumps] = state["codes"]
        k = builder.n_components = len(state["component_count"])
        moments, who = builder.family.moments, builder.identities
        moments.count[:k], moments.mean[:k] = state["component_count"], state["component_mean"]
        moments.scatter[:k] = state["component_scatter"]
        who.id[:k], who.born_epoch[:k] = state["component_id"], state["component_born"]
        builder.tried[:k] = state["component_tried"]
        self.epoch_, self.n_seen_, self.refused_, who.next_id, who.epoch = (int(v) for v in state["totals"])
        who.events = []
        self.free_energy_ = float(state["free_energy"])
        self.report_ = {}
        for place in range(k):
            builder.family.fit(place)
        self._predictive = None
        if k:
            builder.update_sticks()
            self._predictive = StudentMixture(self.components)
            self._old_born = self.components["born_epoch"]

    def _check_state(self, state: dict[str, np.ndarray]) -> None:
        wrong = sorted(set(STATE_NAMES).symmetric_difference(state))
        if wrong:
            raise SnapshotError(f"mixture state: {', '.join(wrong)} missing or too many")
        if not np.array_equal(state["version"], VERSION):
            raise SnapshotError(f"mixture state: version {state['version']}, this program reads {VERSION}")
        if not np.array_equal(state["config"], self._config()):
            raise SnapshotError("mixture state: it belongs to other settings than this learner's")
        n, c, k = len(state["x"]), len(state["second"]), len(state["component_count"])
        d, family = self.n_dims, self._builder.family
        fitted = d if len(state["shift"]) else 0
        if bool(k) != bool(fitted) or k > self.max_components or c > n or n > self.memory:
            raise SnapshotError(f"mixture state: {k} components, {c} clumps and {n} items do not fit together")
        shapes = {
            "x": (n, d),
            "counts": (n,),
            "second": (c, family.n_second),
            "codes": (c, family.n_codes),
            "component_count": (k,),
            "component_mean": (k, d),
            "shift": (fitted,),
            "scale": (fitted,),
            "component_scatter": (k, family.n_packed),
            "component_id": (k,),
            "component_born": (k,),
            "component_tried": (k,),
            "totals": (5,),
            "pending": (len(state["pending"]), d),
            "free_energy": (),
        }
        for name, shape in shapes.items():
            if np.shape(state[name]) != shape:
                raise SnapshotError(f"mixture state: {name} has shape {np.shape(state[name])}, not {shape}")
            if name != "free_energy" and not np.isfinite(state[name]).all():
                raise SnapshotError(f"mixture state: {name} is not finite")
        if len(state["pending"]) >= self.epoch_size or c > len(self._items.second):
            raise SnapshotError("mixture state: more rows are buffered or summarised than this learner holds")
