"""Writes desks into the store, several in one transaction, and posts the news after it stands.

Used by each ear of tools/station/ingest from its own thread. While the store takes nothing, everything stays on the
desks, is told as what it is, and is written by itself once the store takes it again.
"""

import logging
from collections.abc import Iterable, Sequence

from stillwatch.base import Clock
from stillwatch.tools.station.bulletin import Bulletin
from stillwatch.tools.station.ingest.desk import Desk
from stillwatch.tools.station.store import DAMAGED, FAILED, FAULTY, FULL, GONE, Store, StoreError
from stillwatch.tools.station.tell import Router

_log = logging.getLogger("stillwatch.station")
RETRY_NS = 1_000_000_000
SHOWN = 5
_WORDS = {
    FULL: "The disk is full",
    FAULTY: "The disk cannot be read or written",
    GONE: "The store does not answer",
    DAMAGED: "The store is damaged",
    FAILED: "The store took nothing",
}


class Scribe:
    """Commits desks. One thread uses it; `troubles` may be asked from any."""

    def __init__(self, store: Store, bulletin: Bulletin, router: Router, clock: Clock):
        self._store, self._bulletin, self._router, self._clock = store, bulletin, router, clock
        self._cause, self._text, self._retry_ns = "", "", 0
        self._unwritten: tuple[str, ...] = ()

    @property
    def begun(self) -> int:
        """How often the store was begun anew: what it was told before has to be told again."""
        return self._store.begun

    @property
    def is_waiting(self) -> bool:
        """Whether the store took nothing lately, so that it is not worth trying yet."""
        return bool(self._cause) and self._clock.monotonic_ns() < self._retry_ns

    def troubles(self) -> list[str]:
        """Return what people should know: why nothing is stored, and the newest alerts that are not."""
        cause = self._cause
        if not cause:
            return []
        told = f"{_WORDS[cause]}: {self._text}. What is heard stays in memory and is stored as soon as that ends."
        return [told, *self._unwritten]

    def commit(self, desks: Sequence[Desk], *, all_scores: bool = False) -> bool:
        """Write what lies on the desks; False, and it stays there, where the store does not take it."""
        if not desks:
            return True
        now_ns, begun = self._clock.wall_ns(), self._store.begun
        try:
            self._write(desks, now_ns, all_scores)
        except StoreError as error:
            if error.cause == FAILED and len(desks) > 1:
                return all([self.commit([desk], all_scores=all_scores) for desk in desks])
            if error.cause == DAMAGED and self._store.path is not None:
                self.begin_anew(str(error), begun)
            elif error.cause == FAILED:
                _log.error("what %s said cannot be stored and is dropped: %s", desks[0].agent, error)
                desks[0].clear(now_ns, all_scores=True)
                desks[0].trouble("store", "said something that cannot be stored", now_ns)
                return True
            self._note(error, desks)
            return False
        if self._cause:
            _log.warning("the store takes what is heard again")
            self._bulletin.post("station")
        self._cause, self._text, self._unwritten = "", "", ()
        return True

    def _write(self, desks: Sequence[Desk], now_ns: int, all_scores: bool) -> None:
        news = []
        with self._store.writing() as connection:
            changed = [(desk.agent, desk.write_agent(self._store, connection)) for desk in desks]
            self._store.take_agents(connection, [(agent, values) for agent, values in changed if values])
            for desk in desks:
                news += desk.write(self._store, connection, self._router, now_ns, all_scores=all_scores)
        for desk in desks:
            desk.clear(now_ns, all_scores=all_scores)
        for kind, agent, alert in news:
            self._bulletin.post(kind, agent, alert)

    def begin_anew(self, fault: str, begun: int) -> None:
        """Set the damaged file aside while the station runs; run folders are read again into the new one. `begun` is
        the store's when the fault was met."""
        try:
            self._store.begin_anew(fault, begun)
        except (StoreError, OSError) as error:
            _log.error("%s; a new store cannot be begun: %s", fault, error)
        else:
            _log.error("%s", self._store.said[-1])
            self._bulletin.post("station")

    def _note(self, error: StoreError, desks: Iterable[Desk]) -> None:
        if error.cause != self._cause:
            _log.warning("%s: %s", _WORDS[error.cause], error)
            self._bulletin.post("station")
        self._cause, self._text = error.cause, str(error)
        self._retry_ns = self._clock.monotonic_ns() + RETRY_NS
        waiting = sorted((heard for desk in desks for heard in desk.waiting_alerts), key=lambda heard: -heard.at_ns)
        shown = [f"Not stored yet: {a.agent}, event {a.event}, {a.fields.get('kind', '')}" for a in waiting[:SHOWN]]
        rest = [f"Not stored yet: {len(waiting) - SHOWN} more alerts"] if len(waiting) > SHOWN else []
        self._unwritten = (*shown, *rest)
