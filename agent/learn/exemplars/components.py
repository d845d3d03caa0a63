"""Exemplars of each mixture component: its most typical, its least typical and its newest row, in fixed memory.

Called by agent/epochs/schedule.py and by reports. It must not compute densities: the caller's mixture does.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

from stillwatch.base import Array, Commit, Restorable, SnapshotError, State, check_arrays, split_off, with_prefix
from stillwatch.learn.exemplars.payloads import Payloads, PayloadStore, check_payloads

Kind = Literal["most_typical", "least_typical", "newest"]
EXAMPLE_KINDS: tuple[Kind, ...] = ("most_typical", "least_typical", "newest")
FREE = -1
WHERE = "component exemplars"  # of messages about a state that is refused


class ComponentExemplar(NamedTuple):
    """One row that shows what a component is: most_typical, least_typical or newest.

    >>> from stillwatch.learn import ComponentExemplar
    >>> ComponentExemplar(3, "newest", np.zeros(2, np.float32), 41, -1.5, b"jpeg").row_number
    41
    """

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

    Examples
    --------
    >>> from stillwatch.learn import ComponentExemplars
    >>> shown = ComponentExemplars(1, max_components=4)
    >>> rows = np.array([[0.0], [0.2], [3.0]])
    >>> shown.offer(rows, np.array([7, 7, 7]), typicality=-(rows[:, 0] ** 2), row_numbers=np.arange(3))
    >>> [(exemplar.kind, exemplar.row_number) for exemplar in shown.table()]
    [('most_typical', 0), ('least_typical', 2), ('newest', 2)]
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

    def _check(
        self, rows: np.ndarray, component_ids: np.ndarray, typicality: np.ndarray, row_numbers: np.ndarray
    ) -> None:
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
        """Validate a state of the same sizes and return its commit; SnapshotError, and no change, where it is not."""
        payloads, saved = split_off("payloads", state)
        own = {name: np.array(array) for name, array in saved.items()}
        slots = 3 * self.max_components
        arrays = {
            "ids": Array(np.int64, (self.max_components,), low=FREE),
            "rows": Array(np.float32, (slots, self.n_dims)),
            "numbers": Array(np.int64, (slots,), low=-1),
            "typicality": Array(np.float64, (slots,)),
            "n_refused": Array(np.int64, (), low=0),
        }
        check_arrays(own, arrays, WHERE)
        used = own["ids"][own["ids"] != FREE]
        if len(np.unique(used)) != len(used):
            raise SnapshotError(f"{WHERE}: a component id appears twice")
        take_payloads = self._payloads.prepare(payloads, slots, f"{WHERE}: payloads")

        def take_over() -> None:
            self._ids[:], self._rows[:] = own["ids"], own["rows"]
            self._numbers[:], self._typicality[:] = own["numbers"], own["typicality"]
            self.n_refused_ = int(own["n_refused"])
            take_payloads()

        return take_over

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes of all arrays; the same from the first row to the last."""
        arrays = (self._ids, self._rows, self._numbers, self._typicality)
        return {"rows": sum(array.nbytes for array in arrays), "payloads": self._payloads.memory_bytes()}
