"""Enters many rows at once into a store that nobody uses yet.

Used by tools/station/bench. Each list is of rows with the same columns; nothing is looked for among the rows there.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, func, select, text

from stillwatch.tools.station.store.packed import ScoreRows, pack
from stillwatch.tools.station.store.scores import summary_of
from stillwatch.tools.station.store.tables import ALERT_PICTURES, ALERTS, SCORE_DATA, SCORES


def enter_scores(connection: Connection, stretches: Sequence[tuple[str, ScoreRows]]) -> None:
    """Enter stretches of scores of the agents named."""
    first = int(connection.execute(select(func.max(SCORES.c.id))).scalar() or 0) + 1
    places = enumerate(stretches, start=first)
    summaries = [{"id": place, "agent": agent, "run": "bench", **summary_of(rows)} for place, (agent, rows) in places]
    connection.execute(SCORES.insert(), summaries)
    data = [{"scores": place, "data": pack(rows)} for place, (_, rows) in enumerate(stretches, start=first)]
    connection.execute(SCORE_DATA.insert(), data)


def enter_alerts(connection: Connection, alerts: Sequence[Mapping[str, Any]]) -> None:
    """Enter alerts: ALERTS' columns, `id` with them."""
    connection.execute(ALERTS.insert(), list(alerts))


def enter_pictures(connection: Connection, pictures: Sequence[Mapping[str, Any]]) -> None:
    """Enter pictures of alerts: ALERT_PICTURES' columns."""
    connection.execute(ALERT_PICTURES.insert(), list(pictures))


def settle(connection: Connection) -> None:
    """Let the database count its rows, as it does by itself in time."""
    connection.execute(text("ANALYZE"))
