"""The memory-bounded variational Dirichlet process mixture (MB-VDP): buffers rows, learns an epoch at a time.

Used by agent/epochs/schedule.py, experiments and benches. It must not read a clock, and never holds more than its
bytes.
"""

from collections.abc import Mapping
from typing import Any, Literal, Self

import numpy as np

from stillwatch.base import Commit, State
from stillwatch.learn.mixture import views
from stillwatch.learn.mixture.build import ModelBuilder
from stillwatch.learn.mixture.compress import DEAR, SHORT, Compressor, are_few_and_dear
from stillwatch.learn.mixture.families import clump_cost, make_family
from stillwatch.learn.mixture.items import Items
from stillwatch.learn.mixture.parts import Parts
from stillwatch.learn.mixture.posterior import BuildReport
from stillwatch.learn.mixture.predictive import COVARIANCES, StudentMixture
from stillwatch.learn.mixture.priors import prior_parameters
from stillwatch.learn.mixture.remainders import Remainders
from stillwatch.learn.mixture.saved import VERSION, Room, arrays_of, check_state, take_arrays
from stillwatch.learn.mixture.streamed import StreamedModel
from stillwatch.learn.mixture.top_down import CompressReport

# The horizon is a guess: compression never acts as if less than this many times what was seen were still to come.
LEAST_MAGNIFICATION = 20.0


class MemoryBoundedMixture(StreamedModel[StudentMixture]):
    """Incremental Dirichlet process mixture of Gaussians in a fixed amount of memory.

    Parameters
    ----------
    covariance : {"diagonal", "full"}
        Normal-gamma prior per dimension, or Normal-inverse-Wishart. Diagonal on correlated rows is bad: reduce first.
    memory : int
        Data points of `n_features_in_` values that clumps, singlets and the epoch may take together (2.18).
    epoch_size : int or None
        E: rows learned at a time; clumps and singlets have the rest. By default half of the memory, and a tenth of it
        after a first epoch of half where the whole memory holds fewer than 150 clumps that cost four points or more
        (full covariance from 17 columns on): such a memory then learns far better, in about twice the time. The
        paper's compression always has half.
    horizon : int
        N: rows that are expected in all. Compression keeps apart what N rows would tell apart (2.14-2.17).
    concentration : float
        alpha. It hardly matters over ten decades: what decides the number of components is `prior_scale`.
    prior_strength : float
        kappa_0: how many points the prior mean is worth.
    prior_scale : float
        The covariance that a component is expected to have, in units of the data's own spread in the first epoch.
    max_components, max_iterations : int
        Limits on the model, and on full updates an epoch.
    warm_start : bool
        Begin each epoch from the last model and try merges too; False begins from one component, as the paper did.
    clump_moments : {"rounded", "exact"}
        What a clump of a full mixture keeps of its correlations: a byte each, or float32. Rounded, three times as many
        clumps fit into the same memory at 50 dimensions. A diagonal mixture's clumps keep exact variances either way.
    compression : {"geometry", "paper"}
        Which points become a clump: by weighted k-means over all that is held (and the paper's way only where full
        clumps are fewer for a component than one costs points), or always by the paper's top-down splits.
    scaling : {"shared", "column"}
        What a full mixture measures its prior in: one spread for all columns, so that their ratios matter and a
        rotation changes nothing, or each column's own, where columns have different units. A diagonal one always
        measures by column.
    halflife : int or None
        Rows after which what was learnt counts half, so that a slow drift is followed. The data then never weighs more
        than halflife / log 2 points, and the horizon is N of those. None forgets nothing.
    parts : {1, 2, 4}
        How many parts of its normal density a clump of a diagonal mixture is looked at as while the model is built.
        More come nearer to the batch where data has no separate clusters and a component has more than a few clumps,
        in more time (DECISIONS.md); what is kept is the same either way.
    seed : int
        Kept for the learners' common interface: this learner draws nothing at random.

    Attributes
    ----------
    n_features_in_ : int
        Width of the rows: that of the first ones, or what `allocate` was given.
    means_, covariances_, weights_, component_ids_
        The components, largest first, in the units of the data. Of a diagonal mixture they have what points said of
        them before they were folded, too (`Remainders`).
    clumps_ : dict of ndarray
        What is kept of the data.
    clump_points_ : float
        Points of the memory that the clumps take.
    free_energy_ : float
        The bound on log p(data) after the last epoch, in nats and in the units of the data (2.11).
    epoch_, n_seen_, n_components_, refused_, widened_ : int
        Epochs learned, points learned, components now, rows refused because they lay absurdly far out (beyond a
        million spreads of the first epoch), and how often such rows were most of an epoch: then the units widened.
    report_ : dict
        The last epoch: free energy, splits and merges tried and kept, clumps, singlets, iterations, events.

    References
    ----------
    .. [1] R. Gomes, M. Welling, P. Perona, Incremental learning of nonparametric Bayesian mixture models, CVPR 2008;
       R. Gomes, thesis, 2011, chapter 2: equation numbers here are the thesis's.

    Examples
    --------
    >>> import numpy as np
    >>> from stillwatch.learn import MemoryBoundedMixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(-4.0, 1.0, (300, 2)), rng.normal(4.0, 1.0, (300, 2))])
    >>> model = MemoryBoundedMixture(memory=100, horizon=10_000).fit(rng.permutation(X))
    >>> model.n_components_, model.means_.shape, model.n_seen_
    (2, (2, 2), 600)
    >>> here, nowhere = model.score_samples([[4.0, 4.0], [0.0, 30.0]])
    >>> bool(here > nowhere)
    True
    >>> bytes_before = model.memory_bytes()
    >>> model.partial_fit(X).memory_bytes() == bytes_before
    True
    """

    _estimator_kind = "density_estimator"

    def __init__(
        self,
        *,
        covariance: Literal["diagonal", "full"] = "diagonal",
        memory: int = 4000,
        epoch_size: int | None = None,
        horizon: int = 10_000_000,
        concentration: float = 1.0,
        prior_strength: float = 0.01,
        prior_scale: float = 0.05,
        max_components: int = 80,
        max_iterations: int = 30,
        warm_start: bool = True,
        clump_moments: Literal["rounded", "exact"] = "rounded",
        compression: Literal["geometry", "paper"] = "geometry",
        scaling: Literal["shared", "column"] = "shared",
        halflife: int | None = None,
        parts: int = 1,
        seed: int = 0,
    ):
        self.covariance = covariance
        self.memory = memory
        self.epoch_size = epoch_size
        self.horizon = horizon
        self.concentration = concentration
        self.prior_strength = prior_strength
        self.prior_scale = prior_scale
        self.max_components = max_components
        self.max_iterations = max_iterations
        self.warm_start = warm_start
        self.clump_moments = clump_moments
        self.compression = compression
        self.scaling = scaling
        self.halflife = halflife
        self.parts = parts
        self.seed = seed

    @property
    def _form(self) -> str:
        return "rounded" if (self.covariance, self.clump_moments) == ("full", "rounded") else self.covariance

    @property
    def _has_remainders(self) -> bool:
        """Whether the model tells more than its clumps say: the paper's form does not, nor one whose clumps are cut."""
        plain = self.warm_start and self.compression == "geometry" and self.parts == 1
        return plain and self.covariance == "diagonal"

    @property
    def _is_short(self) -> bool:
        """Whether epochs are short by default."""
        if self.epoch_size is not None or self.compression == "paper":
            return False
        self._require_memory()
        return are_few_and_dear(clump_cost(self._form, self.n_features_in_), self.n_features_in_, self.memory)

    @property
    def rows_per_epoch(self) -> int:
        """E: `epoch_size`, or half of the memory where that is None; a tenth where clumps are few and dear."""
        return max(self.memory // SHORT, 1) if self._is_short else super().rows_per_epoch

    @property
    def _rows_of_first_epoch(self) -> int:
        return self.memory // 2 if self._is_short else self.rows_per_epoch

    def _allocate(self) -> None:
        views.check_settings(self.get_params())
        d, n_epoch = self.n_features_in_, self.rows_per_epoch
        budget = (self.memory - n_epoch) * d
        cost = clump_cost(self._form, d)
        if budget < cost:
            raise ValueError(
                f"memory: {self.memory} points of {d} values less an epoch of {n_epoch} leave {budget} values, "
                f"and one clump takes {cost}"
            )
        # What is seen are most items where all that is kept is points, or where all is clumps.
        kept = max(budget // d, self.parts * (budget // cost) + cost // d)
        n_items = self.memory if self.parts == 1 else self._rows_of_first_epoch + kept
        self._parts = Parts(self.parts, d, budget // cost, n_items)
        family = make_family(self._form, d, self.max_components, n_items)
        family.prior[:] = prior_parameters(self.covariance, d, self.prior_strength, self.prior_scale)
        self._items = Items(d, family.n_second, self.memory, budget // cost, family.n_codes)
        self._builder = ModelBuilder(family, n_items, self.concentration, self.max_iterations)
        dear = 0.0 if self._is_short else DEAR
        self._compressor = Compressor(self._builder, budget, self.compression, dear=dear)
        self._remainders = Remainders(self._builder) if self._has_remainders else None
        self._begin()
        self._old_born = np.zeros(0, np.int64)  # birth epochs of the last model's components, in its order

    # Learning

    def partial_fit(self, X: np.ndarray, y: Any = None) -> Self:
        """Take rows; learn whenever an epoch is full. The result does not depend on how the calls are cut.

        X : array-like of shape (n, n_features), n >= 0; copied as float64, never changed;  y : ignored

        Raises
        ------
        ValueError
            Where the shape is wrong, a value is not finite, or its square would not be or would vanish: nothing of X is
        taken.
        """
        if not self._is_allocated:
            self._become(self._fresh(self._rows(X).shape[1]).partial_fit(X))
            return self
        rows = self._rows_to_learn(X)
        views.check_sizes(rows)
        self._take(rows)
        return self

    @property
    def _by_column(self) -> bool:
        return super()._by_column or self.scaling == "column"

    def _learn(self) -> None:
        """One round of the algorithm: model building on all items, then compression of them."""
        self._measure_again()
        normaliser, (rows,) = self._drain()
        items = self._items
        if self.halflife is not None:
            factor = 0.5 ** (len(rows) / self.halflife)
            views.fade(items, factor)
            if self._remainders is not None:
                self._remainders.fade(factor)
        items.append(normaliser.apply(rows))
        self.n_seen_ += len(rows)
        fresh = items.n_items - len(rows)
        self._finish_epoch(self._build(fresh, warm=self.warm_start, merges=self.warm_start))

    def _build(self, fresh: int, *, warm: bool, merges: bool) -> BuildReport:
        """Build the model from all that is held, whose items from `fresh` on are new, and assign it."""
        items, builder = self._items, self._builder
        metric = builder.family.metric(builder.n_components) if self.parts > 1 and builder.n_components else None
        seen = self._parts.of(items, None if metric is None else metric[builder.likeliest(items)])
        built = builder.build(seen, warm=warm, merges=merges, fresh=seen.n_items - (items.n_items - fresh))
        if seen is not items:
            builder.expect_dense(items)
        return built

    def _finish_epoch(self, built: BuildReport) -> None:
        """Compress what the model was built from, and answer by it from now on."""
        items, builder, old, normaliser = self._items, self._builder, self._predictive, self._normaliser
        assert normaliser is not None, "items have units"
        self.epoch_ += 1
        if not self.warm_start and old is not None:
            shared = views.shared_mass(old, items, builder, normaliser)
            builder.identities.adopt(old.ids, self._old_born, shared)
        if self._remainders is not None:
            self._remainders.tell(items)
        magnification = max(self.horizon / items.total, LEAST_MAGNIFICATION)
        squeezed = self._compressor.compress(items, builder.candidates, builder.n_components, magnification)
        self.free_energy_ = built.free_energy - items.total * normaliser.log_volume
        self._predictive = StudentMixture(self.summary())
        self._report(built, squeezed)

    def _report(self, built: BuildReport, squeezed: CompressReport) -> None:
        events = self._builder.identities.settle_events()
        self._old_born = self.summary()["born_epoch"]
        told = {"epoch": self.epoch_, "free_energy": self.free_energy_, "components": self.n_components_}
        told["widened"] = self.widened_
        self.report_ = told | views.report_of(self._items, built, squeezed, events)

    # What was learned

    @property
    def weights_(self) -> np.ndarray:
        """(K,) float64: E[pi_k], largest first; what is missing to one is left to components not seen yet."""
        return self.summary()["weight"]

    def predictive(self) -> StudentMixture | None:
        """Return the immutable predictive of the last finished epoch, or None before the first."""
        self._require_memory()
        return self._predictive

    def score_samples(self, X: np.ndarray) -> np.ndarray:
        """Return the log posterior predictive density of each row, nats, float64; changes nothing."""
        model, rows = self._ask(X)
        return model.score_samples(rows)

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the id of the likeliest component of each row, int64."""
        model, rows = self._ask(X)
        return model.predict(rows)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return posterior probabilities (n, n_components_), columns as in `component_ids_`, largest first.

        They are given that a row is of one of the components, and sum to one; `predictive().new_proba` says how
        likely it is of none.
        """
        model, rows = self._ask(X)
        return model.predict_proba(rows)

    def summary(self) -> dict[str, np.ndarray]:
        """Return the model as arrays, largest component first, in the units of the data: `from_summary` reads them.

        id, born_epoch (K,) int64; count, weight (K,) float64; mean (K, D); variance (K, D) or covariance
        (K, D (D + 1) / 2), lower triangle row by row, of the component's own data; and what else
        `StudentMixture.from_summary` needs: kind, prior, shift, scale, concentration; epoch.
        """
        normaliser = self._units()
        told = {"kind": np.array(COVARIANCES.index(self.covariance)), "epoch": np.array(self.epoch_)}
        return told | views.summary_of(self._builder, normaliser)

    @property
    def clumps_(self) -> dict[str, np.ndarray]:
        """What is kept of the data, in its units: clumps, then singlets; `from_clumps` takes it.

        count (n,) float64, points each stands for; mean (n, D); variance (n_clumps, D) or covariance (n_clumps,
        D (D + 1) / 2), packed, of the first n_clumps: the others are singlets; component (n,) int64, id of the
        likeliest; shift, scale (D,): the units that the prior is measured in. And the K components, as `summary` has
        them, which points that are clumps now have formed: component_id, component_count, component_mean,
        component_variance or component_covariance.
        """
        normaliser = self._units()
        return views.clumps_of(self._items, self._builder, normaliser)

    @property
    def clump_points_(self) -> float:
        """Points of the memory that the clumps take; a singlet takes one, and the epoch `rows_per_epoch`."""
        self._require_memory()
        return self._items.n_clumps * clump_cost(self._form, self.n_features_in_) / self.n_features_in_

    @classmethod
    def from_clumps(cls, clumps: Mapping[str, np.ndarray], **settings: Any) -> Self:
        """Return a mixture learnt from what another one kept of its data, all of it or the larger part.

        Parameters
        ----------
        clumps : mapping of str to ndarray
            As `clumps_` gives them, in any precision. With the components the model is the other one's, and goes on
            from there. They may be missing: then a component is what the clumps of one `component` make. This may be
            missing too: then the model is built from one. `shift` and `scale` may be: then the prior is measured in
            the spread of what is here.
        **settings
            As the constructor has them; those of the learner that the clumps come from give its model. `memory`,
            where it is not given, is the default or what the clumps need.

        Raises
        ------
        SnapshotError
            Where an array is missing, of the wrong shape, not finite or out of range.
        ValueError
            Where the settings cannot work or their memory does not hold the clumps.
        """
        model = cls(**settings)
        views.check_settings(model.get_params())
        found = views.check_clumps(clumps, model.covariance)
        n, d = found["mean"].shape
        needed = views.points_of(found, clump_cost(model._form, d))
        if "memory" not in settings:
            model.memory = max(model.memory, needed + (needed if model.epoch_size is None else model.epoch_size))
        model.allocate(d)
        room = model.memory - model.rows_per_epoch
        if needed > room:
            raise ValueError(f"memory: {n} clumps and singlets take {needed} points; {model.memory} leaves them {room}")
        model._normaliser = views.units_of(found, by_column=model._by_column)
        views.take_clumps(found, model._items, model._builder, model._normaliser)
        model.n_seen_ = round(model._items.total)
        are_told = views.take_components(found, model._items, model._builder, model._normaliser)
        if model._builder.n_components:  # as they were chosen from more than what is here
            model._finish_epoch(model._builder.keep(model._items, settle=not are_told))
        else:
            model._finish_epoch(model._build(n, warm=False, merges=True))
        return model

    # State

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes of all arrays, constants, by what they are for."""
        taken = super().memory_bytes()
        taken["items"] += sum(array.nbytes for array in self._parts.seen.arrays())
        taken["model"] += sum(array.nbytes for array in self._remainders.arrays()) if self._remainders else 0
        return taken

    def _config(self) -> np.ndarray:
        """What a state must agree with to be restored here: the settings and the width, in a fixed order."""
        settings: list[float] = [self.n_features_in_, self.memory, self.rows_per_epoch, self.horizon]
        settings += [known.index(getattr(self, name)) for name, known in views.CHOICES.items()]
        settings += [self.concentration, self.prior_strength, self.prior_scale, self.max_components]
        settings += [self.max_iterations, self.warm_start, self.halflife or 0]
        settings += [self.parts] if self.parts > 1 else []  # states of before have no such setting
        return np.array(settings, np.float64)

    def state(self) -> State:
        """Return everything learned and buffered as a flat set of arrays; a restored learner continues bit for bit."""
        self._require_memory()
        held = self._counted() | arrays_of(self._items, self._builder)
        return {"version": np.array(VERSION), "config": self._config()} | held

    def _prepare(self, state: State) -> Commit:
        clumps = len(self._items.second)
        waiting = self.rows_per_epoch if np.size(state.get("shift", ())) else len(self._pending)
        room = Room(self.n_features_in_, self.memory, clumps, self.max_components, waiting, self._has_remainders)
        check_state(state, self._config(), self._builder.family, room)
        held = {name: np.array(array) for name, array in state.items()}
        return lambda: self._take_over(held)

    def _take_over(self, state: State) -> None:
        builder = self._builder
        self._take_counted(state)
        take_arrays(state, self._items, builder)
        if builder.n_components:
            builder.update_sticks()
            summary = self.summary()
            self._predictive = StudentMixture(summary)
            self._old_born = summary["born_epoch"]
