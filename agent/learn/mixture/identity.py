"""Who a component is: ids that are never used twice, births and deaths, and matching across rebuilt models.

Used by agent/learn/mixture/build.py. It must not look at data; matching works on shared mass alone.
"""

import numpy as np

# Names, epochs of birth, the next name, the epoch's events so far.
Saved = tuple[np.ndarray, np.ndarray, int, list[tuple[str, int, int]]]


class Identities:
    """Stable ids of the components in use.

    Attributes
    ----------
    id, born_epoch : ndarray of shape (capacity,), int64
        By place of the component; ids rise from 0 and are never reused.
    events : list of (kind, id, other)
        Of the last epoch: ("birth", id, parent or -1) and ("death", id, heir or -1).
    """

    def __init__(self, capacity: int):
        self.id = np.full(capacity, -1, np.int64)
        self.born_epoch = np.zeros(capacity, np.int64)
        self.next_id = 0
        self.epoch = 0
        self.events: list[tuple[str, int, int]] = []

    def begin_epoch(self) -> None:
        """Forget the last epoch's events."""
        self.epoch += 1
        self.events = []

    def born(self, place: int, parent: int) -> None:
        """Give a place a new id; `parent` is the place it was split from, or -1."""
        self.id[place] = self.next_id
        self.born_epoch[place] = self.epoch
        self.events.append(("birth", self.next_id, int(self.id[parent]) if parent >= 0 else -1))
        self.next_id += 1

    def take(self, ids: np.ndarray) -> None:
        """Take over names that were given out elsewhere, for the places from 0."""
        self.id[: len(ids)] = ids
        self.born_epoch[: len(ids)] = self.epoch
        self.next_id = max(self.next_id, int(ids.max()) + 1)

    def died(self, place: int, heir: int) -> None:
        """Record that a component is gone; `heir` is the place that took its mass, or -1."""
        self.events.append(("death", int(self.id[place]), int(self.id[heir]) if heir >= 0 else -1))

    def move(self, source: int, target: int) -> None:
        """A component moved to another place."""
        self.id[target] = self.id[source]
        self.born_epoch[target] = self.born_epoch[source]

    def save(self, n: int) -> Saved:
        """Return what `undo` needs to take back whatever happens to the first n places from here on."""
        return self.id[:n].copy(), self.born_epoch[:n].copy(), self.next_id, list(self.events)

    def undo(self, saved: Saved) -> None:
        """Become what `save` saw."""
        names, born, self.next_id, self.events = saved
        self.id[: len(names)] = names
        self.born_epoch[: len(born)] = born

    def settle_events(self) -> list[tuple[str, int, int]]:
        """Return the epoch's events without those who were born and died within it; heirs and parents are followed."""
        parents = {who: other for kind, who, other in self.events if kind == "birth"}
        heirs = {who: other for kind, who, other in self.events if kind == "death"}
        passing = {who: parent for who, parent in parents.items() if who in heirs}
        settled = []
        for kind, who, other in self.events:
            if who in passing:
                continue
            links = heirs if kind == "death" else passing
            while other in links:
                other = links[other]
            settled.append((kind, who, other))
        return settled

    def adopt(self, old_id: np.ndarray, old_born: np.ndarray, shared: np.ndarray) -> None:
        """Give places of a rebuilt model the ids of the old components they share most mass with.

        old_id, old_born : ndarray of shape (n_old,), int64
        shared : ndarray of shape (n_old, n_new), float64: mass that old and new component have in common

        Greedy, largest shared mass first, each id once; a pair must share more than half of one of the two.
        """
        n_old, n_new = shared.shape
        new_mass, old_mass = shared.sum(axis=0), shared.sum(axis=1)
        taken_old, taken_new = set(), set()
        for flat in np.argsort(-shared, axis=None, kind="stable"):
            old, new = divmod(int(flat), n_new)
            mass = shared[old, new]
            if old in taken_old or new in taken_new or not mass > 0.5 * min(new_mass[new], old_mass[old]):
                continue
            taken_old.add(old)
            taken_new.add(new)
            self.id[new], self.born_epoch[new] = old_id[old], old_born[old]
        self.events = [("death", int(old_id[old]), -1) for old in range(n_old) if old not in taken_old]
        for new in range(n_new):
            if new not in taken_new:
                self.events.append(("birth", int(self.id[new]), -1))

    def arrays(self) -> list[np.ndarray]:
        """Return every array held, for the account of memory."""
        return [self.id, self.born_epoch]
