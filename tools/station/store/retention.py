"""What goes when there is too much: scores and statuses first, then alerts, labelled and unacknowledged ones last.

Called by tools/station/ingest once a while. It deletes in small steps, so that nobody waits long for a turn to write.
"""

from typing import Any

from sqlalchemy import delete, func, select

from stillwatch.tools.station.store.connection import Connected
from stillwatch.tools.station.store.tables import ALERT_PICTURES, ALERTS, SCORE_DATA, SCORES, STATUSES

STEP = 500  # rows that go at once
ROW_BYTES, ALERT_BYTES = 400, 1500  # a row of scores or a picture, an alert, each with its place in the indexes
_CONTENTS = (
    select(func.sum(func.octet_length(SCORE_DATA.c.data) + ROW_BYTES)),
    select(func.sum(func.octet_length(ALERT_PICTURES.c.picture) + ROW_BYTES)),
    select(func.count() * ALERT_BYTES).select_from(ALERTS),
)
DAY_NS = 86_400 * 1_000_000_000


class RetentionQueries(Connected):
    """Measures the store, and deletes."""

    def bytes_used(self) -> int:
        """Return what the store's rows take: of a SQLite file without its free pages; in PostgreSQL, whose files do not
        shrink with what is deleted, what the rows' contents come to."""
        with self.reading() as connection:
            if self.is_postgresql:
                return sum(int(connection.execute(query).scalar() or 0) for query in _CONTENTS)
            pages, free, size = (
                int(connection.exec_driver_sql(f"PRAGMA {name}").scalar() or 0)
                for name in ("page_count", "freelist_count", "page_size")
            )
        return (pages - free) * size

    def forget_old(self, now_ns: int, *, score_days: float, alert_days: float) -> int:
        """Delete what is older than it may be, one step; return the rows that went.

        Labelled alerts, and those that nobody acknowledged, are kept whatever their age.
        """
        gone = self._drop_scores(SCORES.c.at_ns < now_ns - int(score_days * DAY_NS))
        gone += self._drop_statuses(now_ns - int(score_days * DAY_NS))
        gone += self._drop_alerts(ALERTS.c.at_ns < now_ns - int(alert_days * DAY_NS), *_handled())
        return gone

    def make_room(self, most_bytes: int) -> int:
        """Delete one step of the oldest where the store takes more than `most_bytes`; return the rows that went.

        Scores go first, then acknowledged alerts without a label, then what nobody acknowledged, labelled ones last.
        """
        if self.bytes_used() <= most_bytes:
            return 0
        return (
            self._drop_scores()
            or self._drop_alerts(*_handled())
            or self._drop_alerts(ALERTS.c.label == "")
            or self._drop_alerts()
        )

    def _drop_scores(self, *where: Any) -> int:
        return self._drop(SCORES, SCORES.c.id, SCORES.c.id, *where)

    def _drop_alerts(self, *where: Any) -> int:
        return self._drop(ALERTS, ALERTS.c.id, ALERTS.c.at_ns, *where)

    def _drop(self, table: Any, key: Any, order: Any, *where: Any) -> int:
        oldest = select(key).where(*where).order_by(order).limit(STEP)
        with self.writing() as connection:
            ids = list(connection.execute(oldest).scalars())
            if ids:
                connection.execute(delete(table).where(key.in_(ids)))
        return len(ids)

    def _drop_statuses(self, before_ns: int) -> int:
        with self.writing() as connection:
            return connection.execute(delete(STATUSES).where(STATUSES.c.at_ns < before_ns)).rowcount


def _handled() -> tuple[Any, ...]:
    """What somebody has seen and not named: the first alerts that go."""
    return (ALERTS.c.label == "", ALERTS.c.acknowledged_ns != 0)
