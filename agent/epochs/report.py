"""What an epoch did, told once: its models with their figures, the exemplars that are new, those that are gone.

Made by agent/epochs/schedule.py when models become active; the pipeline turns it into messages. It decides nothing that
is learnt: what was told before is all it remembers.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stillwatch.base import Array, Commit, Restorable, SnapshotError, State, StateDigest, check_arrays, with_prefix
from stillwatch.epochs.buffer import note_of, unpack_payload
from stillwatch.epochs.models import Models
from stillwatch.epochs.registry import LearnerRow, ShownExamples, ShownExemplars, ShownModel
from stillwatch.learn import MemoryBoundedMixture, MemoryBoundedTopics, StudentMixture


@dataclass(frozen=True, slots=True)
class HeldClumps:
    """What a mixture keeps of its data, as its `clumps_` says it, and what of its memory (in points) that takes.

    epoch : epochs learnt; one more than that of the models in use where another one waits to become active.
    """

    clumps: Mapping[str, np.ndarray]
    epoch: int
    memory: int
    clump_points: float
    epoch_size: int


@dataclass(frozen=True, slots=True)
class EpochModel:
    """One mixture of the active models, and what its last epoch did. `seconds` (CPU) is of this machine alone."""

    name: str
    mixture: StudentMixture
    most_sent: int
    horizon: int
    free_energy: float  # nats a sample; NaN before the first
    splits: int
    merges: int
    born: list[int]
    died: list[int]
    seconds: float
    clumps: int
    singlets: int
    held: HeldClumps | None  # None of a topic model: its clumps stay with it


@dataclass(frozen=True, slots=True)
class EpochExemplar:
    """An exemplar that was chosen, or an example of a component that became a better one.

    id : unique over all learners. role : "frame", or of an example its kind, behind the prefix of its learner.
    sequence, t_ns, jpeg, note : of its frame.
    share : of what was learnt that it stands for. of, component : the mixture and the component that it is an example
    of; "" and -1 where it is none.
    """

    id: int
    role: str
    sequence: int
    t_ns: int
    jpeg: bytes
    share: float = 0.0
    removed: tuple[int, ...] | None = None  # ids that its learner holds no more; None of an example
    of: str = ""
    component: int = -1
    note: bytes = b""


@dataclass(frozen=True, slots=True)
class EpochReport:
    """What one epoch did, in the order of the table of learners. All but seconds is the same in a replay."""

    models: Models
    learner_hash: str
    t_ns: int  # stream time of the last frame learnt
    n_patches: int
    n_frames: int
    learnt: list[EpochModel]
    exemplars: list[EpochExemplar] = field(default_factory=list)


def model_report(
    row: LearnerRow,
    shown: ShownModel,
    learner: MemoryBoundedMixture | MemoryBoundedTopics,
    models: Models,
    seconds: float,
    epoch: int,
) -> EpochModel:
    """Return what a mixture's last epoch did, the one of this number."""
    done = learner.report_
    return EpochModel(
        name=row.name,
        mixture=models[row.name],
        most_sent=shown.most_sent,
        horizon=learner.horizon if isinstance(learner, MemoryBoundedMixture) else 0,
        free_energy=learner.free_energy_ / max(learner.n_seen_, 1),
        splits=done.get("splits_kept", 0),
        merges=done.get("merges_kept", 0),
        born=[who for who, _ in done.get("births", [])],
        died=[who for who, _ in done.get("deaths", [])],
        seconds=seconds,
        clumps=done.get("clumps", 0),
        singlets=done.get("singlets", 0),
        held=held_clumps(learner, epoch) if isinstance(learner, MemoryBoundedMixture) else None,
    )


def held_clumps(learner: MemoryBoundedMixture, epoch: int) -> HeldClumps:
    """Return what a mixture keeps of its data after this epoch."""
    return HeldClumps(learner.clumps_, epoch, learner.memory, learner.clump_points_, learner.rows_per_epoch)


SLOWER = 3  # times the age at which examples were told last: until they may be told again


class Told(Restorable):
    """What was told of exemplars before. A restart tells examples of components again: stations may have come since."""

    def __init__(self, table: tuple[LearnerRow, ...]):
        self._table = table
        self._exemplars: dict[str, set[int]] = {
            row.name: set() for row in table if isinstance(row.shown, ShownExemplars)
        }
        # component: epochs when it was told first and last, and its most typical row then
        self._examples: dict[str, dict[int, tuple[int, int, int]]] = {}

    def forget(self) -> None:
        """Tell everything again."""
        self._exemplars = {name: set() for name in self._exemplars}
        self._examples = {}

    def news(self, learners: Mapping[str, Any], epoch: int) -> list[EpochExemplar]:
        """Return the exemplars that were not told yet, and take them for told."""
        found: list[EpochExemplar] = []
        for row in self._table:
            match row.shown:
                case ShownExemplars():
                    found += self._new_exemplars(row.name, row.shown, learners[row.name])
                case ShownExamples():
                    found += self._better_examples(row.name, row.shown, learners[row.name], epoch)
        return found

    def _new_exemplars(self, name: str, shown: ShownExemplars, learner: Any) -> list[EpochExemplar]:
        held = [int(i) for i in learner.exemplar_ids_]
        told = self._exemplars[name]
        removed = tuple(shown.first_id + i for i in sorted(told.difference(held)))
        self._exemplars[name] = set(held)
        return [
            EpochExemplar(
                shown.first_id + i, shown.role, *unpack_payload(payload), float(share), removed, note=note_of(payload)
            )
            for i, share, payload in zip(held, learner.exemplar_weights_, learner.payloads(), strict=True)
            if i not in told
        ]

    def _better_examples(self, name: str, shown: ShownExamples, learner: Any, epoch: int) -> list[EpochExemplar]:
        """Return the examples of components that are new, or have a better typical one than was told some time ago.

        The longer a component is known, the less its next example says: it is told at four times its age.
        """
        table = learner.table()
        before, told = self._examples.get(name, {}), {}
        changed = set()
        for typical in (example for example in table if example.kind == "most_typical"):
            component, row = typical.component_id, typical.row_number
            born, since, known = before.get(component, (epoch, epoch, -1))
            is_new = component not in before
            if is_new or (row != known and epoch - since >= max(shown.patience, SLOWER * (since - born))):
                changed.add(component)
                since, known = epoch, row
            told[component] = born, since, known
        self._examples[name] = told
        return [
            EpochExemplar(
                shown.id_of(example.component_id, example.kind),
                shown.prefix + example.kind,
                *unpack_payload(example.payload),
                of=shown.of,
                component=example.component_id,
            )
            for example in table
            if example.component_id in changed and example.kind in shown.kinds
        ]

    def state(self) -> State:
        return {name: np.array(sorted(told), np.int64) for name, told in self._exemplars.items()}

    def prepare(self, state: State) -> Commit:
        check_arrays(state, {name: Array(np.int64, (None,), low=0) for name in self._exemplars}, "told exemplars")
        told = {name: set(state[name].tolist()) for name in self._exemplars}

        def commit() -> None:
            self._exemplars, self._examples = told, {}

        return commit

    def memory_bytes(self) -> dict[str, int]:
        return {}


class LearntHash:
    """The hash of what all learners have learnt, taken learner by learner: the same as of the whole state.

    Parameters
    ----------
    learners : dict of str to learner
    """

    def __init__(self, learners: dict[str, Any]):
        self._learners, self._digest = learners, StateDigest()
        self._left = sorted(learners, key=lambda name: f"{name}.")  # as the names of their arrays are sorted

    def take(self, but: set[str]) -> None:
        """Take in the learners up to the first, by name, of those that have not learnt yet."""
        while self._left and self._left[0] not in but:
            name = self._left.pop(0)
            self._digest.add(with_prefix(name, self._learners[name].state()))

    @property
    def text(self) -> str:
        """16 hex digits, once all are taken in."""
        return self._digest.text


class NearestExemplar(Restorable):
    """The exemplars of the active epoch, as alerts may name them: ids and rows of shape (n, n_dims), float32."""

    def __init__(self, n_dims: int):
        self._ids = np.zeros(0, np.int64)
        self._rows = np.zeros((0, n_dims), np.float32)

    def take(self, ids: np.ndarray, rows: np.ndarray) -> None:
        self._ids, self._rows = np.array(ids, np.int64), np.array(rows, np.float32)

    def of(self, frame: np.ndarray) -> int:
        """Return the id of the exemplar nearest to a frame descriptor; -1 before the first."""
        if not len(self._ids):
            return -1
        return int(self._ids[np.argmin(((self._rows - frame) ** 2).sum(axis=1))])

    def state(self) -> State:
        return {"ids": self._ids.copy(), "rows": self._rows.copy()}

    def prepare(self, state: State) -> Commit:
        n_dims = self._rows.shape[1]
        wanted = {"ids": Array(np.int64, (None,), low=0), "rows": Array(np.float32, (None, n_dims))}
        check_arrays(state, wanted, "shown exemplars")
        ids, rows = state["ids"], state["rows"]
        if len(ids) != len(rows):
            raise SnapshotError(f"shown exemplars: {len(ids)} ids do not fit {len(rows)} rows")
        return lambda: self.take(ids, rows)

    def memory_bytes(self) -> dict[str, int]:
        return {}
