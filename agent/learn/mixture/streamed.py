"""What the mixture and the topic model share as learners of a stream: rows wait for an epoch, far ones apart.

Called by agent/learn/mixture/mixture.py and agent/learn/topics/topics.py. It must not know what is learnt of an epoch.
"""

from typing import Any, Generic, Self, TypeVar

import numpy as np

from stillwatch.base import NotFittedError, State
from stillwatch.learn.base import Estimator, not_fitted
from stillwatch.learn.mixture import views
from stillwatch.learn.mixture.build import ModelBuilder
from stillwatch.learn.mixture.compress import Compressor
from stillwatch.learn.mixture.items import Items
from stillwatch.learn.mixture.predictive import StudentMixture
from stillwatch.learn.mixture.priors import Normaliser
from stillwatch.learn.mixture.saved import Totals, width_of

# Rows that measure the units well: where an epoch was flushed with fewer, the next one measures them again.
ENOUGH = 400

Predictive = TypeVar("Predictive")


class StreamedModel(Estimator, Generic[Predictive]):
    """A learner of clumps: buffers rows, learns an epoch at a time, answers by an immutable predictive.

    A subclass gives `_learn`, `summary`, `score_samples`, and in `_allocate` the items, builder and compressor.
    """

    _rows_are = "rows"  # what messages call them
    _items_are = "items"  # and the account of memory
    covariance: str
    memory: int
    epoch_size: int | None
    max_components: int
    _items: Items
    _builder: ModelBuilder
    _compressor: Compressor

    @property
    def rows_per_epoch(self) -> int:
        """E: `epoch_size`, or half of the memory where that is None."""
        return self.memory // 2 if self.epoch_size is None else self.epoch_size

    @property
    def _rows_of_first_epoch(self) -> int:
        """Rows that the units are measured in; where it is flushed before, see `_measure_again`."""
        return self.rows_per_epoch

    @property
    def _rows_due(self) -> int:
        """Rows that make the epoch that is being buffered."""
        return self._rows_of_first_epoch if self._normaliser is None else self.rows_per_epoch

    def _begin(self) -> None:
        """Make the buffer of an epoch, and be a learner that has seen nothing."""
        self._pending = np.zeros((self._rows_of_first_epoch, self.n_features_in_))
        self._n_pending = 0
        self._n_far = 0
        self._normaliser: Normaliser | None = None
        self._predictive: Predictive | None = None
        self.epoch_ = 0
        self.n_seen_ = 0
        self.refused_ = 0
        self.widened_ = 0
        self.free_energy_ = float("nan")
        self.report_: dict[str, Any] = {}

    # Rows that wait

    def _waiting(self) -> list[np.ndarray]:
        """Return the arrays that have a place for each row that waits, the rows first."""
        return [self._pending]

    def _keep(self, first: int, rows: np.ndarray) -> None:
        """Write rows to the places from `first`, and what goes with them."""
        self._pending[first : first + len(rows)] = rows

    def _take(self, rows: np.ndarray) -> None:
        """Buffer rows, and learn whenever an epoch is full."""
        start = 0
        while start < len(rows):
            stop = start + self._rows_due - self._n_pending - self._n_far
            self._buffer(rows[start:stop])
            start = stop
            if self._n_pending + self._n_far == self._rows_due:
                self.flush()

    def flush(self) -> Self:
        """Learn the rows buffered so far as a smaller epoch; nothing happens where there are none."""
        if self._is_allocated:
            self._settle_far()
            if self._n_pending:
                self._learn()
        return self

    def _learn(self) -> None:
        """Learn the rows that wait: one round of the algorithm."""
        raise NotImplementedError

    def _buffer(self, rows: np.ndarray) -> None:
        rows = rows.astype(np.float64)
        if self._normaliser is not None:
            far = self._normaliser.is_far(rows)
            # They wait at the other end, the last one first: should most rows be like them, it is us who are wrong.
            self._n_far += int(np.count_nonzero(far))
            self._keep(len(self._pending) - self._n_far, rows[far][::-1])
            self.refused_ += int(np.count_nonzero(far))
            rows = rows[~far]
        self._keep(self._n_pending, rows)
        self._n_pending += len(rows)

    def _settle_far(self) -> None:
        """Forget the rows that lay absurdly far out, or widen the units where they are most of what came."""
        n_far, self._n_far = self._n_far, 0
        if self._normaliser is None or n_far <= self._n_pending:
            return
        end = self._n_pending + n_far
        for held in self._waiting():
            held[self._n_pending : end] = held[len(held) - n_far :][::-1].copy()
        self._n_pending = end
        self.refused_ -= n_far
        self.widened_ += 1
        old = self._normaliser
        self._normaliser = old.widened(self._pending[:end], by_column=self._by_column)
        views.rescale(self._builder, self._items, old, self._normaliser)

    def _measure_again(self) -> None:
        """Let units that were measured in too few rows become those of all that is held and waits.

        A flush that comes early, for a first model after a few frames, must not decide the units of a life: what is
        alike for a second differs by far more in a minute, and a prior of that second makes too many components.
        """
        old = self._normaliser
        if old is None or self.n_seen_ >= min(self._rows_of_first_epoch, ENOUGH):
            return
        rows = self._pending[: self._n_pending]
        rows = old.apply(rows[~old.is_far(rows)])
        self._normaliser = views.units_of_all(self._items, self._builder, rows, old, by_column=self._by_column)
        views.rescale(self._builder, self._items, old, self._normaliser)

    @property
    def _by_column(self) -> bool:
        return self.covariance == "diagonal"

    def _drain(self) -> tuple[Normaliser, list[np.ndarray]]:
        """Return the units, measured at the first epoch, and of all that waits what is not absurdly far out."""
        taken = [held[: self._n_pending] for held in self._waiting()]
        if self._normaliser is None:
            self._normaliser = Normaliser.measure(taken[0], by_column=self._by_column)
        far = self._normaliser.is_far(taken[0])
        self.refused_ += int(np.count_nonzero(far))
        self._n_pending = 0
        return self._normaliser, [held[~far] for held in taken]

    # What was learned

    @property
    def n_components_(self) -> int:
        """Components of the last finished epoch."""
        self._require_memory()
        return self._builder.n_components

    @property
    def component_ids_(self) -> np.ndarray:
        """(K,) int64: what `predict` calls the components, largest first; no id is used twice."""
        return self.summary()["id"]

    @property
    def means_(self) -> np.ndarray:
        """(K, D) float64: the components' means, in the units of the data."""
        return self.summary()["mean"]

    @property
    def covariances_(self) -> np.ndarray:
        """(K, D) variances or (K, D, D) covariances of the components' own data, float64, in its units squared."""
        return views.covariances_of(self.summary(), self.n_features_in_)

    def summary(self) -> dict[str, np.ndarray]:
        """Return the model as arrays."""
        raise NotImplementedError

    def score_samples(self, X: np.ndarray) -> np.ndarray:
        """Return the log predictive density of each row, nats."""
        raise NotImplementedError

    def score(self, X: np.ndarray, y: Any = None) -> float:
        """Return the mean log posterior predictive density of the rows, nats; y is ignored."""
        return float(self.score_samples(X).mean())

    def __sklearn_is_fitted__(self) -> bool:
        return self._is_allocated and self._predictive is not None

    def _no_model(self) -> NotFittedError:
        self._require_memory()
        return not_fitted(
            f"no model yet: {self._n_pending} of {len(self._pending)} {self._rows_are} of the first epoch are "
            "buffered (flush learns what is here)"
        )

    def _units(self) -> Normaliser:
        """Return the units of what was learnt, or raise NotFittedError."""
        self._require_memory()
        if self._normaliser is None:
            raise self._no_model()
        return self._normaliser

    def _ask(self, X: np.ndarray) -> tuple[Predictive, np.ndarray]:
        rows = self._rows(X)
        self._require_memory()
        if self._predictive is None:
            raise self._no_model()
        return self._predictive, rows

    # State

    def _predictive_bytes(self) -> int:
        """Return the bytes of the predictive at its largest."""
        return StudentMixture.bytes_of(self.covariance, self.n_features_in_, self.max_components)

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes of all arrays, constants; the predictive at its largest, older ones are their holders'."""
        self._require_memory()
        arrays = {
            self._items_are: self._items.arrays(),
            "model": self._builder.arrays(),
            "compression": self._compressor.arrays(),
            "buffer": self._waiting(),
        }
        taken = {name: sum(array.nbytes for array in held) for name, held in arrays.items()}
        return taken | {"predictive": self._predictive_bytes()}

    def _counted(self) -> State:
        """Return what waits, the units and the counters, by their names in a state, as copies."""
        who = self._builder.identities
        totals = Totals(self.epoch_, self.n_seen_, self.refused_, who.next_id, who.epoch, self.widened_)
        normaliser, nothing = self._normaliser, np.zeros(0)
        return {
            "pending": self._pending[: self._n_pending].copy(),
            "far": self._pending[len(self._pending) - self._n_far :].copy(),
            "shift": nothing if normaliser is None else normaliser.shift.copy(),
            "scale": nothing if normaliser is None else normaliser.scale.copy(),
            "totals": np.array(totals, np.int64),
            "free_energy": np.array(self.free_energy_),
        }

    def _take_counted(self, state: State) -> None:
        """Become what `_counted` told of a learner; there is no model before the items are taken over too."""
        self._n_pending, self._n_far = len(state["pending"]), len(state["far"])
        self._pending[: self._n_pending] = state["pending"]
        self._pending[len(self._pending) - self._n_far :] = state["far"]
        self._normaliser = Normaliser(state["shift"], state["scale"]) if len(state["shift"]) else None
        totals = Totals.of(state["totals"])
        self.epoch_, self.n_seen_, self.refused_ = totals.epoch, totals.n_seen, totals.refused
        self.widened_ = totals.widened
        who = self._builder.identities
        who.next_id, who.epoch, who.events = totals.next_id, totals.identity_epoch, []
        self.free_energy_ = float(state["free_energy"])
        self.report_ = {}
        self._predictive = None

    def _width_of(self, state: State) -> int:
        return width_of(state)
