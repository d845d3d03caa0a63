"""Alerts as people see them and what people do with them: lists, one alert, acknowledge, note, useful, label, mute.

Used by tools/station/page and tools/station/tell. Alerts are entered by tools/station/store/taking.py.
"""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, func, literal_column, select, tuple_, update

from stillwatch.tools.station.store.agents import MOST_WAITING
from stillwatch.tools.station.store.connection import Connected
from stillwatch.tools.station.store.tables import ALERT_EVENTS, ALERT_PICTURES, ALERT_UPDATES, ALERTS, MUTES

MOST_TEXT = 2000
MOST_LABEL = 64


@dataclass(frozen=True, slots=True)
class AlertFilter:
    """Which alerts a list holds. Empty texts, zeros and None: no condition.

    `waiting`: neither acknowledged nor muted. `has_label`: any label.
    """

    agent: str = ""
    kind: str = ""
    label: str = ""
    useful: bool | None = None
    waiting: bool | None = None
    has_label: bool | None = None
    from_ns: int = 0
    to_ns: int = 0


class AlertQueries(Connected):
    """Reads alerts, and writes what people do with them."""

    def alerts(
        self, wanted: AlertFilter | None = None, *, before: tuple[int, int] | None = None, limit: int = 50
    ) -> list[dict[str, Any]]:
        """Return a page of alerts, newest first: ALERTS' columns.

        `before` is (at_ns, id) of the last row of the page before.
        """
        query = _filtered(select(ALERTS), wanted or AlertFilter())
        if before is not None:
            query = query.where(tuple_(ALERTS.c.at_ns, ALERTS.c.id) < tuple_(*before))
        return self.rows(query.order_by(ALERTS.c.at_ns.desc(), ALERTS.c.id.desc()).limit(limit))

    def newer_alerts(
        self, wanted: AlertFilter | None = None, *, after: tuple[int, int], limit: int = 50
    ) -> list[dict[str, Any]]:
        """Return the page of alerts that stands before (at_ns, id) in the list, newest first."""
        query = _filtered(select(ALERTS), wanted or AlertFilter())
        query = query.where(tuple_(ALERTS.c.at_ns, ALERTS.c.id) > tuple_(*after))
        return self.rows(query.order_by(ALERTS.c.at_ns, ALERTS.c.id).limit(limit))[::-1]

    def alert(self, alert: int) -> dict[str, Any] | None:
        """Return one alert, or None: ALERTS' columns and `updates`, `pictures` (without bytes), `events`: their rows,
        oldest first."""
        found = self.first(select(ALERTS).where(ALERTS.c.id == alert))
        if found is None:
            return None
        pictures = [column for column in ALERT_PICTURES.c if column.name != "picture"]
        found["updates"] = self.rows(_of(select(ALERT_UPDATES), ALERT_UPDATES, alert))
        found["pictures"] = self.rows(_of(select(*pictures), ALERT_PICTURES, alert))
        found["events"] = self.rows(_of(select(ALERT_EVENTS), ALERT_EVENTS, alert))
        return found

    def alert_picture(self, alert: int, picture: int = 0) -> dict[str, Any] | None:
        """Return a picture of an alert with its bytes: of that id, or (0) the newest, those of the live plane first."""
        query = select(ALERT_PICTURES).where(ALERT_PICTURES.c.alert == alert)
        if picture:
            return self.first(query.where(ALERT_PICTURES.c.id == picture))
        is_thin = ALERT_PICTURES.c.plane == "thin"
        return self.first(query.order_by(is_thin, ALERT_PICTURES.c.frame.desc(), ALERT_PICTURES.c.id.desc()).limit(1))

    def alerts_within(self, agent: str, from_ns: int, to_ns: int, *, most: int = 500) -> list[dict[str, Any]]:
        """Return an agent's alerts that go on in a time, oldest first: the newest `most` of them."""
        query = select(ALERTS).where(ALERTS.c.agent == agent, ALERTS.c.at_ns.between(from_ns, to_ns))
        return self.rows(query.order_by(ALERTS.c.at_ns.desc(), ALERTS.c.id.desc()).limit(most))[::-1]

    def waiting_count(self) -> int:
        """Return how many alerts are neither acknowledged nor muted, at most MOST_WAITING."""
        some = _filtered(select(literal_column("1").label("one")), AlertFilter(waiting=True)).limit(MOST_WAITING)
        return self.count(select(func.count()).select_from(some.subquery()))

    def labels(self) -> list[str]:
        """Return the labels that people gave."""
        return [label for label in self._each(ALERTS.c.label) if label]

    def acknowledge(self, alert: int, user: str, now_ns: int) -> bool:
        """Note that somebody has seen the alert; False where it was acknowledged already or is not there."""
        changed = update(ALERTS).where(ALERTS.c.id == alert, ALERTS.c.acknowledged_ns == 0)
        return self._act(
            changed.values(acknowledged_ns=now_ns, acknowledged_by=user), alert, user, now_ns, "acknowledge"
        )

    def set_useful(self, alert: int, user: str, now_ns: int, useful: bool | None) -> bool:
        """Say whether the alert was useful, or (None) take that back; False where there is no such alert."""
        text = "" if useful is None else "yes" if useful else "no"
        changed = update(ALERTS).where(ALERTS.c.id == alert).values(useful=useful)
        return self._act(changed, alert, user, now_ns, "useful", text)

    def set_label(self, alert: int, user: str, now_ns: int, label: str) -> bool:
        """Give the alert a name, or (empty) take it away; False where there is no such alert."""
        changed = update(ALERTS).where(ALERTS.c.id == alert).values(label=label[:MOST_LABEL])
        return self._act(changed, alert, user, now_ns, "label", label[:MOST_LABEL])

    def add_note(self, alert: int, user: str, now_ns: int, text: str) -> bool:
        """Write a note to an alert; False where there is none."""
        return self._act(select(ALERTS.c.id).where(ALERTS.c.id == alert), alert, user, now_ns, "note", text[:MOST_TEXT])

    def add_mute(
        self, *, agent: str, kind: str, user: str, now_ns: int, until_ns: int, place: str = "", why: str = ""
    ) -> int:
        """Let nothing of this agent, kind and place in the picture (empty: all) call anybody until then; return the
        mute's id."""
        values: dict[str, Any] = {"agent": agent, "kind": kind, "place": place, "user": user, "why": why}
        values |= {"from_ns": now_ns, "until_ns": until_ns}
        with self.writing() as connection:
            return self.added(connection, MUTES, values)

    def end_mute(self, mute: int, now_ns: int) -> bool:
        """End a mute now; False where there is none that goes on."""
        ended = update(MUTES).where(MUTES.c.id == mute, MUTES.c.until_ns > now_ns).values(until_ns=now_ns)
        with self.writing() as connection:
            return connection.execute(ended).rowcount > 0

    def mutes(self, now_ns: int) -> list[dict[str, Any]]:
        """Return the mutes that go on: MUTES' columns."""
        return self.rows(select(MUTES).where(MUTES.c.until_ns > now_ns).order_by(MUTES.c.until_ns))

    def _act(self, changed: Any, alert: int, user: str, now_ns: int, act: str, text: str = "") -> bool:
        values = {"alert": alert, "at_ns": now_ns, "user": user, "act": act, "text": text}
        with self.writing() as connection:
            done = connection.execute(changed)
            if (done.first() is None) if done.returns_rows else done.rowcount == 0:
                return False
            connection.execute(ALERT_EVENTS.insert().values(values))
        return True

    def _each(self, column: Any, most: int = 200) -> list[str]:
        """Return the distinct values of an indexed column, skipping from one to the next."""
        found: list[str] = []
        with self.reading() as connection:
            value = connection.execute(select(func.min(column))).scalar()
            while value is not None and len(found) < most:
                found.append(value)
                value = connection.execute(select(func.min(column)).where(column > value)).scalar()
        return found


def _of(query: Select, table: Any, alert: int) -> Select:
    return query.where(table.c.alert == alert).order_by(table.c.id).limit(500)


def _filtered(query: Select, wanted: AlertFilter) -> Select:
    c = ALERTS.c
    conditions = {
        "agent": lambda value: c.agent == value,
        "kind": lambda value: c.kind == value,
        "label": lambda value: c.label == value,
        "from_ns": lambda value: c.at_ns >= value,
        "to_ns": lambda value: c.at_ns <= value,
    }
    for name, condition in conditions.items():
        if value := getattr(wanted, name):
            query = query.where(condition(value))
    if wanted.useful is not None:
        query = query.where(c.useful.is_(wanted.useful))
    if wanted.has_label is not None:
        query = query.where(c.label != "" if wanted.has_label else c.label == "")
    if wanted.waiting is True:
        query = query.where(c.acknowledged_ns == 0, c.is_muted.is_(False))
    elif wanted.waiting is False:
        query = query.where((c.acknowledged_ns != 0) | c.is_muted.is_(True))
    return query
