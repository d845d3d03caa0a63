"""StreamGreedy: k exemplars of a stream, for any dissimilarity or for a Gaussian process, in fixed memory.

Called by agent/epochs/schedule.py and the experiments. It must not hold anything that grows with the stream.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from stillwatch.base import Commit, SnapshotError, State, with_prefix
from stillwatch.learn.base import Estimator, not_fitted
from stillwatch.learn.exemplars.active_set import EntropyObjective
from stillwatch.learn.exemplars.clustering import ClusteringObjective
from stillwatch.learn.exemplars.objectives import make_objective
from stillwatch.learn.exemplars.payloads import Payloads, PayloadStore, check_payloads
from stillwatch.learn.exemplars.reservoir import Reservoir
from stillwatch.learn.exemplars.saved import COUNTERS, WHERE, check_own, count_of, split_state, width_of

LARGEST = 1e15  # of a value: squares of differences, summed over the dimensions, must stay finite in float32
LOOK_AGAIN_BLOCKS = 4  # every row of W is a candidate again once in so many blocks
SWAPS_PER_EXEMPLAR = 20  # bounds the work on one block; never reached but by hostile streams


class Candidates(NamedTuple):
    """Rows that may become exemplars: their numbers in the stream, and where their payloads are."""

    rows: np.ndarray
    numbers: np.ndarray
    payloads: PayloadStore
    places: np.ndarray


class StreamGreedy(Estimator):
    """Keep the k rows of a stream that represent it best (Gomes and Krause 2010, algorithm 1).

    Every block of rows is offered to W, a uniform sample of the stream, and to the set A of exemplars. The first
    block fills A greedily (4.2), where algorithm 1 adds one exemplar a block; then swaps (4.3) repeat on the block
    until none gains more than `minimum_gain`, where algorithm 1 makes one swap a block: one a block leaves quality
    behind. A later block goes on filling if A is not full. For clustering a quarter of W is offered
    after each block: the stream shows a row once, and it may have come before its time.

    Memory, in bytes, all of it taken by `allocate` or the first rows, for clustering (d = n_features_in_,
    p = payload_bytes): about validation (8 d + 4 k + p + 40) + block (8 d + p + 50) + 4 validation max(block, k)
    + k (8 d + p + 60); for the others see `active_set`.

    Parameters
    ----------
    k : int
        Exemplars, at most. Fewer are held while fewer different rows were seen, or where no further one gains.
    objective : "clustering", "variance" or "entropy"
        F_C (3.6), F_V (3.4) or F_H (3.3); the last two need `lengthscales`.
    dissimilarity : str or numba-compiled function of two float32 rows (point, exemplar)
        For clustering; see exemplars/dissimilarity.py.
    block, validation : int
        |B| and |W|, rows.
    phantom : "origin", "random" or ndarray of shape (n_features,)
        The phantom exemplar x0 of F_C.
    minimum_gain : float
        eta, in units of `utility_`.
    stop_after : int or None
        rho, blocks: after so many in a row without a swap nothing more is learnt. None: never stop.
    racing : float or None
        Failure probability of the adaptive stopping rule (clustering only); see `RacingObjective`. None: score
        every swap on all of W.
    payload_bytes : int
        Most bytes of a payload; 0: no payloads.
    lengthscales, signal_variance, noise_variance : float or ndarray of shape (n_features,), float, float
        Hyper-parameters of the squared-exponential ARD kernel.
    seed : int

    Attributes
    ----------
    n_features_in_ : int
        Width of the rows: that of the first ones, or what `allocate` was given.
    exemplars_, exemplar_ids_, exemplar_rows_, exemplar_weights_
        The exemplars, what they are called, where in the stream they were, and their shares of W.
    labels_ : ndarray of shape (n,), int64
        After `fit` alone: the exemplar of each row, as `predict` gives it; all -1 where none is held.
    reservoir_ : Reservoir
        W: its rows and their numbers in the stream.
    n_seen_, n_learnt_, n_blocks_, n_swaps_, version_ : int
        Rows given, and those that went through a block; blocks; swaps; how often the exemplars have changed.

    Examples
    --------
    >>> import numpy as np
    >>> from stillwatch.learn import StreamGreedy
    >>> rng = np.random.default_rng(0)
    >>> X = rng.permutation(np.concatenate([rng.normal(c, 0.5, (200, 2)) for c in (-6.0, 3.0, 9.0)]))
    >>> learner = StreamGreedy(k=3, block=50, validation=200)
    >>> for part in np.split(X, 6):
    ...     _ = learner.partial_fit(part)
    >>> np.sort(np.round(learner.exemplars_[:, 0])).tolist()
    [-6.0, 3.0, 9.0]
    >>> bool((learner.exemplars_ == X[learner.exemplar_rows_].astype(np.float32)).all())
    True
    >>> learner.predict(learner.exemplars_).tolist()
    [0, 1, 2]
    """

    _estimator_kind = "clusterer"

    def __init__(
        self,
        *,
        k: int = 100,
        objective: Literal["clustering", "variance", "entropy"] = "clustering",
        dissimilarity: str | Callable[..., float] = "sqeuclidean",
        block: int = 500,
        validation: int = 2000,
        phantom: Any = "origin",
        minimum_gain: float = 0.0,
        stop_after: int | None = None,
        racing: float | None = None,
        payload_bytes: int = 0,
        lengthscales: Any = None,
        signal_variance: float = 1.0,
        noise_variance: float = 0.01,
        seed: int = 0,
    ):
        self.k = k
        self.objective = objective
        self.dissimilarity = dissimilarity
        self.block = block
        self.validation = validation
        self.phantom = phantom
        self.minimum_gain = minimum_gain
        self.stop_after = stop_after
        self.racing = racing
        self.payload_bytes = payload_bytes
        self.lengthscales = lengthscales
        self.signal_variance = signal_variance
        self.noise_variance = noise_variance
        self.seed = seed

    def _allocate(self) -> None:
        limits = {"k": (self.k, 1), "block": (self.block, 1), "validation": (self.validation, 2)}
        limits |= {"payload_bytes": (self.payload_bytes, 0), "seed": (self.seed, 0)}
        limits |= {"stop_after": (1 if self.stop_after is None else self.stop_after, 1)}
        for name, (value, least) in limits.items():
            if value < least:
                raise ValueError(f"{name}: {value} is less than {least}")
        if not 0.0 <= self.minimum_gain < np.inf:
            raise ValueError(f"minimum_gain: {self.minimum_gain} is not in [0, inf)")
        self._objective = make_objective(self.get_params(), self.n_features_in_)
        d = self.n_features_in_
        self.reservoir_ = Reservoir(self.validation if self.objective != "entropy" else 0, d)
        self._buffer = np.zeros((self.block, d), np.float32)
        self._buffer_payloads = PayloadStore(self.block, self.payload_bytes)
        self._n_buffered = 0
        self._exemplars = np.zeros((self.k, d), np.float32)
        self._payloads = PayloadStore(self.k, self.payload_bytes)
        n_again = self.validation if self._objective.has_second_look else 0
        self._validation_payloads = PayloadStore(n_again, self.payload_bytes)
        self._ids = np.full(self.k, -1, np.int64)
        self._rows_held = np.full(self.k, -1, np.int64)
        self._adopted = np.zeros(self.k, np.int64)  # version_ in which each became an exemplar
        self._held: dict[bytes, int] = {}  # bytes of each exemplar -> slot; never more than k
        self.n_seen_ = 0
        self.n_learnt_ = 0  # rows of n_seen_ that went through a block
        self.n_blocks_ = 0
        self.n_swaps_ = 0
        self.version_ = 0
        self._next_id = 0
        self._version_before = 0  # version_ when the last partial_fit or flush began
        self._idle_blocks = 0
        self._is_fixed = 0  # whether W takes no more rows

    # -- learning ----------------------------------------------------------------------------------------------

    def partial_fit(self, X: np.ndarray, y: Any = None, payload: Payloads | None = None) -> Self:
        """Take rows from the stream; learn whenever a block is full, however the calls are cut.

        Parameters
        ----------
        X : array-like of shape (n, n_features), n >= 1
            Finite, at most 1e15 in size; not changed. Rounded to float32.
        y : ignored
        payload : sequence of n bytes objects or None, or uint8 array of shape (n, n_bytes)
            Copied; travels with the row while it is an exemplar.

        Raises
        ------
        ValueError
            Bad shape, value or payload; nothing is learnt from any row of the call.
        """
        if not self._is_allocated:
            self._become(self._fresh(self._rows(X).shape[1]).partial_fit(X, payload=payload))
            return self
        X = self.check(self._rows_to_learn(X))
        check_payloads(payload, len(X), self.payload_bytes)
        vars(self).pop("labels_", None)  # they were of `fit`
        self._version_before = self.version_
        for start in range(0, len(X), self.block):
            self._buffer_rows(X, payload, start, min(start + self.block, len(X)))
        return self

    def fit(self, X: np.ndarray, y: Any = None) -> Self:
        """Forget everything and learn these rows; `labels_` are their exemplars. y is ignored."""
        super().fit(X)
        self.labels_ = self.predict(X) if self.n_held_ else np.full(len(X), -1, np.int64)
        return self

    def fit_predict(self, X: np.ndarray, y: Any = None) -> np.ndarray:
        """Return `labels_` after `fit`."""
        return self.fit(X).labels_

    def _buffer_rows(self, X: np.ndarray, payload: Payloads | None, start: int, end: int) -> None:
        while start < end:
            at = self._n_buffered
            n = min(self.block - at, end - start)
            # + 0.0 makes -0.0 a 0.0, so that equal rows have equal bytes
            np.add(X[start : start + n], np.float32(0.0), out=self._buffer[at : at + n])
            for i in range(n) if self.payload_bytes else ():
                self._buffer_payloads.put(at + i, None if payload is None else payload[start + i])
            self._n_buffered += n
            self.n_seen_ += n
            start += n
            if self._n_buffered == self.block:
                self._learn_block()

    def flush(self) -> Self:
        """Learn the rows that wait for a full block."""
        if self._is_allocated:
            self._version_before = self.version_
            if self._n_buffered:
                self._learn_block()
        return self

    def fix_validation(self) -> None:
        """Leave W as it is from here on: for further passes over rows that it has sampled already.

        A second pass would else draw rows into W that it holds, and leave fewer different ones.
        """
        self._require_memory()
        self._is_fixed = 1

    def check(self, X: np.ndarray) -> np.ndarray:
        """Return X as float32 rows; raise ValueError for a bad shape, type or value, or no row."""
        rows = self._rows(X)
        if not len(rows):
            raise ValueError(f"X: 0 sample(s) (shape={rows.shape}) while a minimum of 1 is required.")
        if np.abs(rows).max() > LARGEST:
            bad = np.argwhere(np.abs(rows) > LARGEST)[0]
            raise ValueError(f"X: row {bad[0]}, column {bad[1]} is {rows[tuple(bad)]}, must be within +-{LARGEST:g}")
        rows = rows.astype(np.float32, copy=False)
        self._require_memory()
        self._objective.check(rows)
        return rows

    def _learn_block(self) -> None:
        rows = self._buffer[: self._n_buffered]
        self._n_buffered = 0
        if self.converged_:
            return
        rng = np.random.default_rng([self.seed, self.n_blocks_])  # of the block alone: a restart needs no rng state
        if self.n_blocks_ == 0:
            self._objective.start(rows, rng)
        changed = self._sample(rows, rng)
        self._objective.open_block(rows, self.reservoir_, changed, rng)
        numbers = self.n_learnt_ + np.arange(len(rows))
        n_placed = self._fill_and_swap(Candidates(rows, numbers, self._buffer_payloads, np.arange(len(rows))))
        if self._objective.has_second_look and self.n_held_ == self.k:
            n_placed += self._look_again()
        self.n_learnt_ += len(rows)
        self.n_blocks_ += 1
        self.version_ += n_placed > 0
        self._idle_blocks = 0 if n_placed else self._idle_blocks + 1

    def _sample(self, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Offer the block to W; return the slots of W that hold another row."""
        if self.objective == "entropy" or self._is_fixed:
            return np.empty(0, np.int64)
        changed = self.reservoir_.offer(rows, self.n_learnt_, rng)
        if self.payload_bytes and self._objective.has_second_look:
            for slot in changed:
                row = int(self.reservoir_.row_numbers[slot]) - self.n_learnt_
                self._validation_payloads.copy_from(self._buffer_payloads, row, int(slot))
        return changed

    def _look_again(self) -> int:
        """Offer the next quarter of W as candidates, a block at a time; return how many became exemplars."""
        count = self.reservoir_.count
        n_slices = -(-count // (LOOK_AGAIN_BLOCKS * self.block))
        n_placed = 0
        assert isinstance(self._objective, ClusteringObjective)  # no other has a second look
        for i in range(self.n_blocks_ * n_slices, (self.n_blocks_ + 1) * n_slices):
            points = (i * self.block + np.arange(min(self.block, count))) % count
            self._objective.open_second_look(self.reservoir_, points)
            rows, numbers = self.reservoir_.rows[points], self.reservoir_.row_numbers[points]
            n_placed += self._fill_and_swap(Candidates(rows, numbers, self._validation_payloads, points))
        return n_placed

    def _fill_and_swap(self, candidates: "Candidates") -> int:
        """Place what gains; return how many rows became exemplars."""
        spent: dict[bytes, list[int]] = {}  # rows equal to an exemplar -> candidates, to be readmitted when it goes
        n_placed = 0
        for _ in range((SWAPS_PER_EXEMPLAR + 1) * self.k + 2 * len(candidates.rows)):
            is_full = self.n_held_ == self.k
            choose = self._objective.best_swap if is_full else self._objective.best_addition
            c, slot, _gain = choose(self.minimum_gain if is_full else 0.0)
            if c < 0:
                break
            key = candidates.rows[c].tobytes()
            spent.setdefault(key, []).append(c)
            self._objective.exclude(c)
            if key not in self._held:
                evicted = self._place(candidates, c, slot, key)
                for other in spent.pop(evicted, ()):
                    self._objective.readmit(other)
                n_placed += 1
        return n_placed

    def _place(self, candidates: "Candidates", c: int, slot: int, key: bytes) -> bytes:
        """Make a candidate an exemplar; return the bytes of the row that had its slot, b"" if none."""
        evicted = b""
        if slot < self.n_held_:
            evicted = self._exemplars[slot].tobytes()
            del self._held[evicted]
            self.n_swaps_ += 1
        self._objective.place(c, slot)
        self._held[key] = slot
        self._exemplars[slot] = candidates.rows[c]
        self._payloads.copy_from(candidates.payloads, int(candidates.places[c]), slot)
        self._ids[slot] = self._next_id
        self._rows_held[slot] = candidates.numbers[c]
        self._adopted[slot] = self.version_ + 1
        self._next_id += 1
        return evicted

    # -- results -----------------------------------------------------------------------------------------------

    @property
    def n_held_(self) -> int:
        """Exemplars really held, at most k."""
        self._require_memory()
        return len(self._held)

    @property
    def exemplars_(self) -> np.ndarray:
        """The exemplars, (n_held, n_dims) float32: rows of the stream, no two equal. A copy."""
        return self._exemplars[: self.n_held_].copy()

    @property
    def exemplar_ids_(self) -> np.ndarray:
        """(n_held,) int64. A row gets a new id when it becomes an exemplar; no id is used again."""
        return self._ids[: self.n_held_].copy()

    @property
    def exemplar_rows_(self) -> np.ndarray:
        """(n_held,) int64: where in the stream each exemplar was, counting from 0."""
        return self._rows_held[: self.n_held_].copy()

    @property
    def exemplar_weights_(self) -> np.ndarray:
        """(n_held,) float64: the share of W nearest to each exemplar; the phantom has the rest. Clustering only."""
        self._require_memory()
        if not isinstance(self._objective, ClusteringObjective):
            raise ValueError(f"objective {self.objective!r} has no weights")
        return self._objective.weights()

    @property
    def changed_ids_(self) -> np.ndarray:
        """Ids of the exemplars held that the last `partial_fit` or `flush` brought in."""
        self._require_memory()
        return self._ids[: self.n_held_][self._adopted[: self.n_held_] > self._version_before]

    def payloads(self) -> list[bytes]:
        """The exemplars' payloads, in their order; b"" where none was given."""
        return [self._payloads.get(slot) for slot in range(self.n_held_)]

    @property
    def utility_(self) -> float:
        """The objective of the exemplars: F_C and F_V as means over W, F_H in nats. 0 before the first block."""
        self._require_memory()
        return self._objective.utility

    @property
    def loss_(self) -> float:
        """What the objective lowers, phantom included, as a mean over W (clustering and variance)."""
        self._require_memory()
        return self._objective.loss

    @property
    def process_(self) -> EntropyObjective:
        """The Gaussian process of the active set: covariances and precision (variance and entropy only)."""
        self._require_memory()
        if not isinstance(self._objective, EntropyObjective):
            raise ValueError("objective 'clustering' has no Gaussian process")
        return self._objective

    @property
    def converged_(self) -> bool:
        """Whether `stop_after` blocks in a row brought no gain: then nothing more is learnt."""
        self._require_memory()
        return self.stop_after is not None and self._idle_blocks >= self.stop_after

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the index (into `exemplars_`) of each row's nearest exemplar, (n,) int64. Changes nothing.

        Raises NotFittedError before the first exemplar, ValueError for bad rows.
        """
        X = self.check(X)
        if self.n_held_ == 0:
            raise not_fitted("StreamGreedy holds no exemplar yet: give it rows first")
        return self._objective.nearest(X, self.block)

    def summary(self) -> dict[str, np.ndarray]:
        """Return what is held as arrays: id (n_held,), row (n_held,) int64, exemplar (n_held, n_features) float32,
        and for clustering weight (n_held,) float64."""
        self._require_memory()
        own = {"id": self.exemplar_ids_, "row": self.exemplar_rows_, "exemplar": self.exemplars_}
        return own | {"weight": self.exemplar_weights_} if self.objective == "clustering" else own

    def __sklearn_is_fitted__(self) -> bool:
        return self._is_allocated and self.n_blocks_ > 0

    # -- state -------------------------------------------------------------------------------------------------

    # by the name in a state; what is asked for in public ends with _, the rest begins with it
    _COUNTERS = {
        name: f"{name}_" if name in ("n_seen", "n_learnt", "n_blocks", "n_swaps", "version") else f"_{name}"
        for name in COUNTERS
    }

    def _identity(self) -> np.ndarray:
        """What a state must agree with to be restored here."""
        sizes = f"d{self.n_features_in_} k{self.k} b{self.block} w{self.validation} {self.payload_bytes}"
        words = f"{self._objective.name} {sizes}"
        return np.frombuffer(words.encode(), np.uint8).copy()

    def state(self) -> State:
        """Return everything learnt and buffered, as flat arrays; `restore` goes on from it bit for bit."""
        self._require_memory()
        held, waiting = self.n_held_, self._n_buffered
        state: State = {
            name: np.array(getattr(self, attribute), np.int64) for name, attribute in self._COUNTERS.items()
        }
        state |= {"identity": self._identity(), "buffer": self._buffer[:waiting].copy()}
        state |= {"exemplars": self.exemplars_, "ids": self.exemplar_ids_, "rows": self.exemplar_rows_}
        state |= {"adopted": self._adopted[:held].copy()}
        state |= with_prefix("reservoir", self.reservoir_.state()) | with_prefix("objective", self._objective.state())
        state |= with_prefix("payloads", self._payloads.state(held))
        n_again = self.reservoir_.count if self._objective.has_second_look else 0
        state |= with_prefix("validation", self._validation_payloads.state(n_again))
        return state | with_prefix("waiting", self._buffer_payloads.state(waiting))

    def _width_of(self, state: State) -> int:
        return width_of(state)

    def _prepare(self, state: State) -> Commit:
        own, parts = split_state(state)
        check_own(own, self._identity(), self.n_features_in_)
        held, waiting, n = len(own["exemplars"]), len(own["buffer"]), count_of(parts["reservoir"], "rows")
        if held > self.k or waiting >= self.block:
            raise SnapshotError(f"{WHERE}: {held} exemplars and {waiting} rows waiting do not fit")
        n_again = n if self._objective.has_second_look else 0
        commits = [
            self.reservoir_.prepare(parts["reservoir"], f"{WHERE}: reservoir"),
            self._payloads.prepare(parts["payloads"], held, f"{WHERE}: payloads"),
            self._buffer_payloads.prepare(parts["waiting"], waiting, f"{WHERE}: waiting"),
            self._validation_payloads.prepare(parts["validation"], n_again, f"{WHERE}: validation"),
        ]
        take_objective = self._objective.prepare(parts["objective"], n, held, f"{WHERE}: objective")

        def take_over() -> None:
            self._take_own(own)
            for commit in commits:
                commit()
            take_objective(self.reservoir_, self._exemplars[:held])

        return take_over

    def _take_own(self, own: State) -> None:
        held, waiting = len(own["exemplars"]), len(own["buffer"])
        for name, attribute in self._COUNTERS.items():
            setattr(self, attribute, int(own[name]))
        self._n_buffered = waiting
        self._buffer[:waiting] = own["buffer"]
        self._exemplars[:held], self._ids[:held] = own["exemplars"], own["ids"]
        self._rows_held[:held], self._adopted[:held] = own["rows"], own["adopted"]
        self._held = {row.tobytes(): slot for slot, row in enumerate(self._exemplars[:held])}

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes of all arrays by part; the same from the first row to the last. `labels_` do not count."""
        self._require_memory()
        held, waiting = self._payloads.memory_bytes(), self._buffer_payloads.memory_bytes()
        exemplars = (self._exemplars, self._ids, self._rows_held, self._adopted)
        return {
            "exemplars": sum(array.nbytes for array in exemplars) + held,
            "buffer": self._buffer.nbytes + waiting,
            "reservoir": self.reservoir_.memory_bytes() + self._validation_payloads.memory_bytes(),
            "objective": self._objective.memory_bytes(),
        }
