"""Exemplars of each mixture component: its most typical, its least typical and its newest row, in fixed memory.

Called by agent/epochs/schedule.py and by reports. It must not compute densities: the caller's mixture does.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

from stillwatch.base import Commit, Restorable, SnapshotError, State, with_prefix, without_prefix
from stillwatch.learn.exemplars.payloads import Payloads, PayloadStore, check_payloads

Kind = Literal["most_typical", "least_typical", "newest"]
EXAMPLE_KINDS: tuple[Kind, ...] = ("most_typical", "least_typical", "newest")
FREE = -1


class ComponentExemplar(NamedTuple):
    """One row that shows what a component is."""

    component_id: int
    kind: Kind
    row: np.ndarray  # (n_dims,) float32
    row_number: int
    typicality: float
    payload: bytes


class ComponentExemplars(Restorable):
    """Three rows a component, with payloads: where its density is highest, where lowest, and the last one.

    A row is judged when it is offered, by the model of that time; `rescore` judges the rows held by a new model, and
    drops the components that it has no more. Components beyond `max_components` are refused and counted.
    Memory: 3 max_components (4 n_dims + payload_bytes + 24) + 8 max_components bytes.

    Parameters
    ----------
    n_dims, max_components : int
    payload_bytes : int
        Most bytes of a payload.

    Attributes
    ----------
    n_refused_ : int
        Rows of components that found no place.
    """

    def __init__(self, n_dims: int, *, max_components: int, payload_bytes: int = 0):
        for name, value, least in (("n_dims", n_dims, 1), ("max_components", max_components, 1)):
            if value < least:
                raise ValueError(f"{name}: {value} is less than {least}")
        self.n_dims, self.max_components, self.payload_bytes = n_dims, max_components, payload_bytes
        n = 3 * max_components  # slot of a component's kind: 3 * place + index of the kind
        self._ids = np.full(max_components, FREE, np.int64)
        self._rows = np.zeros((n, n_dims), np.float32)
        self._numbers = np.full(n, -1, np.int64)
        self._typicality = np.zeros(n)
        self._payloads = PayloadStore(n, payload_bytes)
        self.n_refused_ = 0

    def offer(
        self,
        rows: np.ndarray,
        component_ids: np.ndarray,
        typicality: np.ndarray,
        row_numbers: np.ndarray,
        payload: Payloads | None = None,
    ) -> None:
        """Let rows take the places that they deserve.

        Parameters
        ----------
        rows : array of shape (n, n_dims), finite
        component_ids : array of shape (n,), int, >= 0
            The component that each row belongs to most.
        typicality : array of shape (n,), float, finite
            Log density of each row; higher is more typical. Ties keep the row that was there.
        row_numbers : array of shape (n,), int, >= 0
            Order in the stream; the highest of a component is its newest.
        payload : as for `StreamGreedy.partial_fit`

        Raises ValueError for bad shapes or values; nothing changes then.
        """
        rows = np.asarray(rows, np.float32)
        self._check(rows, component_ids, typicality, row_numbers)
        check_payloads(payload, len(rows), self.payload_bytes)
        for i, (component, value, number) in enumerate(zip(component_ids, typicality, row_numbers, strict=True)):
            place = self._place_of(int(component))
            if place < 0:
                self.n_refused_ += 1
                continue
            for slot in self._deserved(place, float(value), int(number)):
                self._rows[slot] = rows[i]
                self._numbers[slot], self._typicality[slot] = number, value
                self._payloads.put(slot, None if payload is None else payload[i])

    def _check(self, rows: np.ndarray, component_ids, typicality, row_numbers) -> None:
        if rows.ndim != 2 or rows.shape[1] != self.n_dims or not np.isfinite(rows).all():
            raise ValueError(f"rows: shape {rows.shape}, must be (n, {self.n_dims}) and finite")
        for name, value in (("component_ids", component_ids), ("typicality", typicality), ("row_numbers", row_numbers)):
            if np.shape(value) != (len(rows),) or not np.isfinite(value).all():
                raise ValueError(f"{name}: shape {np.shape(value)}, must be ({len(rows)},) and finite")
        for name, value in (("component_ids", component_ids), ("row_numbers", row_numbers)):
            if len(rows) and np.min(value) < 0:
                raise ValueError(f"{name}: {np.min(value)} is negative")

    def _place_of(self, component: int) -> int:
        """Return the component's place, a free one made its own, or -1 where all are taken."""
        found = np.flatnonzero(self._ids == component)
        if len(found):
            return int(found[0])
        free = np.flatnonzero(self._ids == FREE)
        if not len(free):
            return -1
        place = int(free[0])
        self._ids[place] = component
        self._numbers[3 * place : 3 * place + 3] = -1
        return place

    def _deserved(self, place: int, value: float, number: int) -> list[int]:
        most, least, newest = range(3 * place, 3 * place + 3)
        slots = []
        if self._numbers[most] < 0 or value > self._typicality[most]:
            slots.append(most)
        if self._numbers[least] < 0 or value < self._typicality[least]:
            slots.append(least)
        if number > self._numbers[newest]:
            slots.append(newest)
        return slots

    def rescore(self, judge: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]) -> None:
        """Judge the rows held by a new model, so that no row of an old component or an old density stays.

        Parameters
        ----------
        judge : function of rows (n, n_dims) that returns (component_ids, typicality), each (n,)
        """
        held = [slot for slot in self._in_use() if self._is_first(slot)]
        if not held:
            return
        held.sort(key=lambda slot: self._numbers[slot])
        rows, numbers = self._rows[held].copy(), self._numbers[held].copy()
        payloads = [self._payloads.get(slot) for slot in held]
        component_ids, typicality = judge(rows)
        self._check(rows, component_ids, typicality, numbers)
        self._ids[:] = FREE
        self.offer(rows, component_ids, typicality, numbers, payloads if self.payload_bytes else None)

    def _in_use(self) -> list[int]:
        return [3 * int(place) + kind for place in np.flatnonzero(self._ids != FREE) for kind in range(3)]

    def _is_first(self, slot: int) -> bool:
        """Whether no earlier kind of the component holds the same row."""
        return bool((self._numbers[slot - slot % 3 : slot] != self._numbers[slot]).all())

    def table(self) -> list[ComponentExemplar]:
        """Return what is held, by component id and then in the order of EXAMPLE_KINDS."""
        found = [
            ComponentExemplar(
                int(self._ids[slot // 3]),
                EXAMPLE_KINDS[slot % 3],
                self._rows[slot].copy(),
                int(self._numbers[slot]),
                float(self._typicality[slot]),
                self._payloads.get(slot),
            )
            for slot in self._in_use()
        ]
        return sorted(found, key=lambda exemplar: exemplar.component_id)  # stable: kinds stay in order

    def state(self) -> State:
        """Return everything held, as flat arrays."""
        own: State = {
            "ids": self._ids.copy(),
            "rows": self._rows.copy(),
            "numbers": self._numbers.copy(),
            "typicality": self._typicality.copy(),
            "n_refused": np.array(self.n_refused_, np.int64),
        }
        return own | with_prefix("payloads", self._payloads.state(len(self._numbers)))

    def prepare(self, state: State) -> Commit:
        """Validate a state of the same sizes; the commit takes it over. Raises SnapshotError if it is not one."""
        own = self.state()
        extra = sorted(set(state) - set(own))
        if extra:
            raise SnapshotError(f"component exemplars: {', '.join(extra)} too many")
        for name, array in own.items():
            given = state.get(name)
            if given is None or given.dtype != array.dtype:
                raise SnapshotError(f"component exemplars: {name} is missing or of another type")
            if not name.startswith("payloads") and given.shape != array.shape:
                raise SnapshotError(f"component exemplars: {name} has shape {given.shape}, must be {array.shape}")
        if not self._payloads.fits(without_prefix("payloads", state), len(self._numbers)):
            raise SnapshotError(f"component exemplars: payloads do not fit slots of {self.payload_bytes} bytes")
        if not (np.isfinite(state["rows"]).all() and np.isfinite(state["typicality"]).all()):
            raise SnapshotError("component exemplars: rows or typicality are not finite")
        used = state["ids"][state["ids"] != FREE]
        if len(np.unique(used)) != len(used) or (len(used) and used.min() < 0):
            raise SnapshotError("component exemplars: a component id appears twice or is negative")
        return lambda: self._take_over(state)

    def _take_over(self, state: State) -> None:
        self._ids[:], self._rows[:] = state["ids"], state["rows"]
        self._numbers[:], self._typicality[:] = state["numbers"], state["typicality"]
        self._payloads.restore(without_prefix("payloads", state))
        self.n_refused_ = int(state["n_refused"])

    def memory_bytes(self) -> int:
        arrays = (self._ids, self._rows, self._numbers, self._typicality)
        return sum(a.nbytes for a in arrays) + self._payloads.memory_bytes()
