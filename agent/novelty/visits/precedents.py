"""What came before a moment, in counts: by these its rarity is told, not by a law that was fitted to something.

Made by agent/novelty/score.py with what agent/novelty/visits/visits.py knows. It must not judge.
"""

from dataclasses import dataclass, fields

import numpy as np

from stillwatch.base import Array, SnapshotError, State, check_arrays

UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class Precedents:
    """Counts of what was seen before.

    Attributes
    ----------
    watched_s : float
        Seconds of stream that were judged.
    frames : int
        Frames that were.
    visits : int
        Visits that were over; UNKNOWN where nobody follows visits: under a camera that moves.
    alike : int
        Of them, those of the same kind; UNKNOWN while this visit was not seen whole, or is not told from another.
    here : int
        Of them, those that went to its place, or beside; UNKNOWN without a visit.
    kind : int
        Id of the kind that it is of; UNKNOWN where it is of none that is known.
    visit : int
        Number of the visit itself; UNKNOWN while it has just begun.
    """

    watched_s: float = 0.0
    frames: int = 0
    visits: int = UNKNOWN
    alike: int = UNKNOWN
    here: int = UNKNOWN
    kind: int = UNKNOWN
    visit: int = UNKNOWN

    def or_known(self, other: "Precedents") -> "Precedents":
        """Return these, or those of another moment of the same visit where it was seen whole then alone."""
        is_same = UNKNOWN in (self.visit, other.visit) or self.visit == other.visit
        return other if is_same and self.alike == UNKNOWN and other.alike != UNKNOWN else self

    def state(self) -> State:
        """Return the counts as arrays by name."""
        return {
            field.name: np.array(getattr(self, field.name), np.float64 if field.name == "watched_s" else np.int64)
            for field in fields(self)
        }

    @classmethod
    def from_state(cls, state: State, where: str) -> "Precedents":
        """Return what was saved; SnapshotError where the state is none."""
        wanted = {field.name: Array(np.int64, (), low=UNKNOWN) for field in fields(cls)}
        check_arrays(state, wanted | {"watched_s": Array(np.float64, (), low=0.0)}, where)
        if state["frames"] < 0:
            raise SnapshotError(f"{where}: frames is {int(state['frames'])}, must be at least 0")
        counts = {name: int(state[name]) for name in wanted if name != "watched_s"}
        return cls(watched_s=float(state["watched_s"]), **counts)
