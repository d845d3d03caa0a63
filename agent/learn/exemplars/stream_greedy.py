"""StreamGreedy: k exemplars of a stream, for any dissimilarity or for a Gaussian process, in fixed memory.

Called by agent/epochs/schedule.py and the experiments. It must not hold anything that grows with the stream.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

from stillwatch.base import Commit, NotFittedError, Restorable, SnapshotError, State, with_prefix, without_prefix
from stillwatch.learn.exemplars.active_set import EntropyObjective, VarianceObjective
from stillwatch.learn.exemplars.clustering import ClusteringObjective
from stillwatch.learn.exemplars.payloads import Payloads, PayloadStore, check_payloads
from stillwatch.learn.exemplars.racing import RacingObjective
from stillwatch.learn.exemplars.reservoir import Reservoir

LARGEST = 1e15  # of a value: squares of differences, summed over the dimensions, must stay finite in float32
LOOK_AGAIN_BLOCKS = 4  # every row of W is a candidate again once in so many blocks
SWAPS_PER_EXEMPLAR = 20  # bounds the work on one block; never reached but by hostile streams


class Candidates(NamedTuple):
    """Rows that may become exemplars: their numbers in the stream, and where their payloads are."""

    rows: np.ndarray
    numbers: np.ndarray
    payloads: PayloadStore
    places: np.ndarray


class StreamGreedy(Restorable):
    """Keep the k rows of a stream that represent it best (Gomes and Krause 2010, algorithm 1).

    Every block of rows is offered to W, a uniform sample of the stream, and to the set A of exemplars. The first
    block fills A greedily (4.2), where algorithm 1 adds one exemplar a block; then swaps (4.3) repeat on the block
    until none gains more than `minimum_gain`, where algorithm 1 makes one swap a block: one a block leaves quality
    behind. A later block goes on filling if A is not full. For clustering a quarter of W is offered
    after each block: the stream shows a row once, and it may have come before its time.

    Memory, in bytes, all of it allocated here, for clustering (d = n_dims, p = payload_bytes): about validation
    (8 d + 4 k + p + 40) + block (8 d + p + 50) + 4 validation max(block, k) + k (8 d + p + 60); for the others see
    `active_set`.

    Parameters
    ----------
    n_dims : int
        Width of the rows.
    k : int
        Exemplars, at most. Fewer are held while fewer different rows were seen, or where no further one gains.
    objective : "clustering", "variance" or "entropy"
        F_C (3.6), F_V (3.4) or F_H (3.3); the last two need `lengthscales`.
    dissimilarity : str or numba-compiled function of two float32 rows (point, exemplar)
        For clustering; see `exemplars_dissimilarity.Dissimilarity`.
    block, validation : int
        |B| and |W|, rows.
    phantom : "origin", "random" or ndarray of shape (n_dims,)
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
    lengthscales, signal_variance, noise_variance : ndarray of shape (n_dims,), float, float
        Hyper-parameters of the squared-exponential ARD kernel.
    seed : int
    """

    def __init__(
        self,
        n_dims: int,
        *,
        k: int,
        objective: Literal["clustering", "variance", "entropy"] = "clustering",
        dissimilarity: str | Callable = "sqeuclidean",
        block: int = 500,
        validation: int = 2000,
        phantom: Any = "origin",
        minimum_gain: float = 0.0,
        stop_after: int | None = None,
        racing: float | None = None,
        payload_bytes: int = 0,
        lengthscales: np.ndarray | None = None,
        signal_variance: float = 1.0,
        noise_variance: float = 0.01,
        seed: int = 0,
    ):
        limits = {"n_dims": (n_dims, 1), "k": (k, 1), "block": (block, 1), "validation": (validation, 2)}
        limits |= {"payload_bytes": (payload_bytes, 0), "stop_after": (stop_after or 1, 1), "seed": (seed, 0)}
        for name, (value, least) in limits.items():
            if value < least:
                raise ValueError(f"{name}: {value} is less than {least}")
        if not 0.0 <= minimum_gain < np.inf:
            raise ValueError(f"minimum_gain: {minimum_gain} is not in [0, inf)")
        self.n_dims, self.k, self.block, self.validation = n_dims, k, block, validation
        self.objective, self.minimum_gain, self.stop_after, self.seed = objective, minimum_gain, stop_after, seed
        self.payload_bytes = payload_bytes
        room = (n_dims, k, block, validation)
        if objective == "clustering":
            given: dict[str, Any] = {"dissimilarity": dissimilarity, "phantom": phantom}
            self._objective: Any = (
                ClusteringObjective(*room, **given) if racing is None else RacingObjective(*room, delta=racing, **given)
            )
        elif objective in ("variance", "entropy"):
            if lengthscales is None or racing is not None:
                raise ValueError(f"objective {objective!r} needs lengthscales, and knows no racing")
            made = VarianceObjective if objective == "variance" else EntropyObjective
            self._objective = made(
                *room, lengthscales=lengthscales, signal_variance=signal_variance, noise_variance=noise_variance
            )
        else:
            raise ValueError(f"objective: {objective!r} is none of clustering, variance, entropy")
        self._allocate()

    def _allocate(self) -> None:
        self.reservoir = Reservoir(self.validation if self.objective != "entropy" else 0, self.n_dims)
        self._buffer = np.zeros((self.block, self.n_dims), np.float32)
        self._buffer_payloads = PayloadStore(self.block, self.payload_bytes)
        self._n_buffered = 0
        self._exemplars = np.zeros((self.k, self.n_dims), np.float32)
        self._payloads = PayloadStore(self.k, self.payload_bytes)
        n_again = self.validation if self._objective.has_second_look else 0
        self._validation_payloads = PayloadStore(n_again, self.payload_bytes)
        self._ids = np.full(self.k, -1, np.int64)
        self._rows = np.full(self.k, -1, np.int64)
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

    def partial_fit(self, X: np.ndarray, payload: Payloads | None = None) -> "StreamGreedy":
        """Take rows from the stream; learn whenever a block is full, however the calls are cut.

        Parameters
        ----------
        X : array of shape (n, n_dims), n >= 1
            Finite, at most 1e15 in size; not changed. Rounded to float32.
        payload : sequence of n bytes objects or None, or uint8 array of shape (n, n_bytes)
            Copied; travels with the row while it is an exemplar.

        Raises
        ------
        ValueError
            Bad shape, value or payload; nothing is learnt from any row of the call.
        """
        X = self.check(X)
        check_payloads(payload, len(X), self.payload_bytes)
        self._version_before = self.version_
        for start in range(0, len(X), self.block):
            self._buffer_rows(X, payload, start, min(start + self.block, len(X)))
        return self

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

    def flush(self) -> "StreamGreedy":
        """Learn the rows that wait for a full block."""
        self._version_before = self.version_
        if self._n_buffered:
            self._learn_block()
        return self

    def fix_validation(self) -> None:
        """Leave W as it is from here on: for further passes over rows that it has sampled already.

        A second pass would else draw rows into W that it holds, and leave fewer different ones.
        """
        self._is_fixed = 1

    def check(self, X: np.ndarray) -> np.ndarray:
        """Return X as float32 rows; raise ValueError for a bad shape, type or value."""
        X = np.asarray(X)
        if X.ndim != 2 or X.shape[1] != self.n_dims or len(X) == 0:
            raise ValueError(f"X: shape {X.shape}, must be (n, {self.n_dims}) with n >= 1")
        if X.dtype.kind not in "fiub":
            raise ValueError(f"X: dtype {X.dtype}, must be real numbers")
        largest = np.abs(X).max()
        if not largest <= LARGEST:
            bad = np.argwhere(~(np.abs(X) <= LARGEST))[0]
            value = X[tuple(bad)]
            raise ValueError(f"X: row {bad[0]}, column {bad[1]} is {value}, must be finite, within +-{LARGEST:g}")
        X = X.astype(np.float32, copy=False)
        self._objective.check(X)
        return X

    def _learn_block(self) -> None:
        rows = self._buffer[: self._n_buffered]
        self._n_buffered = 0
        if self.converged_:
            return
        rng = np.random.default_rng([self.seed, self.n_blocks_])  # of the block alone: a restart needs no rng state
        if self.n_blocks_ == 0:
            self._objective.start(rows, rng)
        changed = self._sample(rows, rng)
        self._objective.open_block(rows, self.reservoir, changed, rng)
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
        changed = self.reservoir.offer(rows, self.n_learnt_, rng)
        if self.payload_bytes and self._objective.has_second_look:
            for slot in changed:
                row = int(self.reservoir.row_numbers[slot]) - self.n_learnt_
                self._validation_payloads.copy_from(self._buffer_payloads, row, int(slot))
        return changed

    def _look_again(self) -> int:
        """Offer the next quarter of W as candidates, a block at a time; return how many became exemplars."""
        count = self.reservoir.count
        n_slices = -(-count // (LOOK_AGAIN_BLOCKS * self.block))
        n_placed = 0
        for i in range(self.n_blocks_ * n_slices, (self.n_blocks_ + 1) * n_slices):
            points = (i * self.block + np.arange(min(self.block, count))) % count
            self._objective.open_second_look(self.reservoir, points)
            rows, numbers = self.reservoir.rows[points], self.reservoir.row_numbers[points]
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
        self._rows[slot] = candidates.numbers[c]
        self._adopted[slot] = self.version_ + 1
        self._next_id += 1
        return evicted

    # -- results -----------------------------------------------------------------------------------------------

    @property
    def n_held_(self) -> int:
        """Exemplars really held, at most k."""
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
        return self._rows[: self.n_held_].copy()

    @property
    def exemplar_weights_(self) -> np.ndarray:
        """(n_held,) float64: the share of W nearest to each exemplar; the phantom has the rest. Clustering only."""
        if self.objective != "clustering":
            raise ValueError(f"objective {self.objective!r} has no weights")
        return self._objective.weights()

    @property
    def changed_ids_(self) -> np.ndarray:
        """Ids of the exemplars held that the last `partial_fit` or `flush` brought in."""
        return self._ids[: self.n_held_][self._adopted[: self.n_held_] > self._version_before]

    def payloads(self) -> list[bytes]:
        """The exemplars' payloads, in their order; b"" where none was given."""
        return [self._payloads.get(slot) for slot in range(self.n_held_)]

    @property
    def utility_(self) -> float:
        """The objective of the exemplars: F_C and F_V as means over W, F_H in nats. 0 before the first block."""
        return self._objective.utility

    @property
    def loss_(self) -> float:
        """What the objective lowers, phantom included, as a mean over W (clustering and variance)."""
        return self._objective.loss

    @property
    def process(self) -> EntropyObjective:
        """The Gaussian process of the active set: covariances and precision (variance and entropy only)."""
        if self.objective == "clustering":
            raise ValueError("objective 'clustering' has no Gaussian process")
        return self._objective

    @property
    def converged_(self) -> bool:
        """Whether `stop_after` blocks in a row brought no gain: then nothing more is learnt."""
        return self.stop_after is not None and self._idle_blocks >= self.stop_after

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the index (into `exemplars_`) of each row's nearest exemplar, (n,) int64. Changes nothing.

        Raises NotFittedError before the first exemplar, ValueError for bad rows.
        """
        X = self.check(X)
        if self.n_held_ == 0:
            raise NotFittedError("StreamGreedy holds no exemplar yet: give it rows first")
        return self._objective.nearest(X, self.block)

    # -- state -------------------------------------------------------------------------------------------------

    _COUNTERS = (
        "n_seen_",
        "n_learnt_",
        "n_blocks_",
        "n_swaps_",
        "version_",
        "_next_id",
        "_version_before",
        "_idle_blocks",
        "_is_fixed",
    )

    def _identity(self) -> np.ndarray:
        """What a state must agree with to be restored here."""
        words = f"{self._objective.name} d{self.n_dims} k{self.k} b{self.block} w{self.validation} {self.payload_bytes}"
        return np.frombuffer(words.encode(), np.uint8).copy()

    def state(self) -> State:
        """Return everything learnt and buffered, as flat arrays; `restore` goes on from it bit for bit."""
        held, waiting = self.n_held_, self._n_buffered
        state: State = {name.strip("_"): np.array(getattr(self, name), np.int64) for name in self._COUNTERS}
        state |= {"identity": self._identity(), "buffer": self._buffer[:waiting].copy()}
        state |= {"exemplars": self.exemplars_, "ids": self.exemplar_ids_, "rows": self.exemplar_rows_}
        state |= {"adopted": self._adopted[:held].copy()}
        state |= with_prefix("reservoir", self.reservoir.state()) | with_prefix("objective", self._objective.state())
        state |= with_prefix("payloads", self._payloads.state(held))
        n_again = self.reservoir.count if self._objective.has_second_look else 0
        state |= with_prefix("validation", self._validation_payloads.state(n_again))
        return state | with_prefix("waiting", self._buffer_payloads.state(waiting))

    def prepare(self, state: State) -> Commit:
        """Validate a state of the same settings; the commit takes it over. Raises SnapshotError if it is not one."""
        held, waiting = self._check_state(state)
        return lambda: self._take_over(state, held, waiting)

    def _take_over(self, state: State, held: int, waiting: int) -> None:
        self._allocate()
        for name in self._COUNTERS:
            setattr(self, name, int(state[name.strip("_")]))
        self._n_buffered = waiting
        self._buffer[:waiting] = state["buffer"]
        self._exemplars[:held], self._ids[:held] = state["exemplars"], state["ids"]
        self._rows[:held], self._adopted[:held] = state["rows"], state["adopted"]
        self._held = {row.tobytes(): slot for slot, row in enumerate(self._exemplars[:held])}
        self._payloads.restore(without_prefix("payloads", state))
        self._buffer_payloads.restore(without_prefix("waiting", state))
        self._validation_payloads.restore(without_prefix("validation", state))
        self.reservoir.restore(without_prefix("reservoir", state))
        self._objective.restore(without_prefix("objective", state), self.reservoir, self._exemplars[:held])

    def _check_state(self, state: State) -> tuple[int, int]:
        """Return the numbers of exemplars and of rows waiting; raise SnapshotError unless all arrays fit."""
        if not np.array_equal(state.get("identity", np.empty(0)), self._identity()):
            raise SnapshotError("exemplars: the state belongs to other settings of StreamGreedy")
        held, waiting, n = (len(state.get(name, ())) for name in ("exemplars", "buffer", "reservoir.rows"))
        d = self.n_dims
        wanted: dict[str, tuple[type, tuple[int, ...]]] = {name.strip("_"): (np.int64, ()) for name in self._COUNTERS}
        wanted |= {"exemplars": (np.float32, (held, d)), "buffer": (np.float32, (waiting, d))}
        wanted |= {name: (np.int64, (held,)) for name in ("ids", "rows", "adopted")}
        wanted |= {"reservoir.rows": (np.float32, (n, d)), "reservoir.row_numbers": (np.int64, (n,))}
        wanted |= {f"objective.{name}": value for name, value in self._objective.shapes(n, held).items()}
        for name, (dtype, shape) in wanted.items():
            array = state.get(name)
            if array is None or array.dtype != dtype or array.shape != shape:
                raise SnapshotError(f"exemplars: {name} is missing or has the wrong shape, must be {shape}")
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise SnapshotError(f"exemplars: {name} is not finite")
        if held > self.k or waiting >= self.block or n > len(self.reservoir.rows):
            raise SnapshotError(f"exemplars: {held} exemplars, {waiting} waiting, {n} validation rows do not fit")
        if len({row.tobytes() for row in state["exemplars"]}) != held:
            raise SnapshotError("exemplars: two exemplars are equal")
        if any(state[name.strip("_")] < 0 for name in self._COUNTERS) or len(set(state["ids"].tolist())) != held:
            raise SnapshotError("exemplars: a counter is negative or an id appears twice")
        if not self._objective.is_sound(without_prefix("objective", state)):
            raise SnapshotError("exemplars: the objective's values cannot be")
        stores = {"payloads": (self._payloads, held), "waiting": (self._buffer_payloads, waiting)}
        stores["validation"] = (self._validation_payloads, n if self._objective.has_second_look else 0)
        known = set(wanted) | {f"{name}.{array}" for name in stores for array in ("payload", "payload_lengths")}
        if set(state) - known - {"identity"}:
            raise SnapshotError(f"exemplars: {', '.join(sorted(set(state) - known - {'identity'}))} too many")
        for name, (store, count) in stores.items():
            if not store.fits(without_prefix(name, state), count):
                raise SnapshotError(f"exemplars: {name} do not fit {count} slots of {self.payload_bytes} bytes")
        return held, waiting

    def memory_bytes(self) -> int:
        """Bytes of all arrays; the same from the first row to the last."""
        own = (self._buffer, self._exemplars, self._ids, self._rows, self._adopted)
        parts = (self.reservoir, self._objective, self._payloads, self._buffer_payloads, self._validation_payloads)
        return sum(a.nbytes for a in own) + sum(part.memory_bytes() for part in parts)
