"""Notifications that wait, that failed, that nobody took: a queue for each channel, on the disk before anybody is told.

Filled with the alert itself, in the transaction of taking.py; emptied by tools/station/tell. Each is sent once or more.
"""

from typing import Any

from sqlalchemy import delete, func, select, update

from stillwatch.tools.station.store.connection import Connected
from stillwatch.tools.station.store.tables import NOTIFICATIONS

WAITING, DEAD, DONE = "waiting", "dead", "done"
DONE_KEPT_NS = 7 * 86_400 * 1_000_000_000


class QueueQueries(Connected):
    """The queues of tools/station/tell."""

    def due_notifications(self, channel: str, now_ns: int, *, limit: int = 16) -> list[dict[str, Any]]:
        """Return what is to be sent now, oldest first: NOTIFICATIONS' columns."""
        c = NOTIFICATIONS.c
        due = select(NOTIFICATIONS).where(c.state == WAITING, c.channel == channel, c.due_ns <= now_ns)
        return self.rows(due.order_by(c.due_ns, c.id).limit(limit))

    def notification_sent(self, notification: int) -> None:
        """Note that the receiver has it."""
        self._set(notification, state=DONE, fault="")

    def notification_failed(self, notification: int, fault: str, due_ns: int) -> None:
        """Note a try that failed; it is due again then."""
        self._set(notification, fault=fault[:500], due_ns=due_ns, tries=NOTIFICATIONS.c.tries + 1)

    def notification_dead(self, notification: int, fault: str) -> None:
        """Give up: it is shown on the page until somebody sends it again or drops it."""
        self._set(notification, state=DEAD, fault=fault[:500], tries=NOTIFICATIONS.c.tries + 1)

    def revive_notification(self, notification: int, now_ns: int) -> bool:
        """Try a dead one again; False where it is not dead."""
        changed = {"state": WAITING, "due_ns": now_ns, "tries": 0}
        with self.writing() as connection:
            statement = update(NOTIFICATIONS).where(NOTIFICATIONS.c.id == notification, NOTIFICATIONS.c.state == DEAD)
            return connection.execute(statement.values(**changed)).rowcount > 0

    def dead_notifications(self, *, limit: int = 100) -> list[dict[str, Any]]:
        """Return what could not be sent, newest first: NOTIFICATIONS' columns."""
        query = select(NOTIFICATIONS).where(NOTIFICATIONS.c.state == DEAD)
        return self.rows(query.order_by(NOTIFICATIONS.c.id.desc()).limit(limit))

    def channel_counts(self) -> dict[str, dict[str, int]]:
        """Return how many notifications of each channel are waiting, dead and done."""
        c = NOTIFICATIONS.c
        query = select(c.channel, c.state, func.count().label("n")).group_by(c.channel, c.state)
        counts: dict[str, dict[str, int]] = {}
        for row in self.rows(query):
            counts.setdefault(row["channel"], {WAITING: 0, DEAD: 0, DONE: 0})[row["state"]] = int(row["n"])
        return counts

    def channel_faults(self) -> dict[str, str]:
        """Return what went wrong lately, of channels where something waits for another try."""
        c = NOTIFICATIONS.c
        query = select(c.channel, func.max(c.fault).label("fault")).where(c.state == WAITING, c.fault != "")
        return {row["channel"]: row["fault"] for row in self.rows(query.group_by(c.channel))}

    def trim_notifications(self, now_ns: int) -> None:
        """Forget what was sent a week ago."""
        old = NOTIFICATIONS.c.created_ns < now_ns - DONE_KEPT_NS
        with self.writing() as connection:
            connection.execute(delete(NOTIFICATIONS).where(NOTIFICATIONS.c.state == DONE, old))

    def _set(self, notification: int, **values: Any) -> None:
        with self.writing() as connection:
            connection.execute(update(NOTIFICATIONS).where(NOTIFICATIONS.c.id == notification).values(**values))
