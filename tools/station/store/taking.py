"""Enters what was heard: alerts (each once, whatever plane told it and however often), pictures, scores, agents.

Called by tools/station/ingest, within a transaction of its own. Nothing here may depend on what an agent claims of the
station's own keys: an agent changes its own rows alone.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, RowMapping, delete, func, or_, select, update

from stillwatch.tools.shared import words
from stillwatch.tools.station.store.connection import Connected
from stillwatch.tools.station.store.heard import EVENT_NUMBERS, LIVE, THIN, AlertHeard, AlertTaken, Picture
from stillwatch.tools.station.store.packed import ScoreRows, pack
from stillwatch.tools.station.store.scores import summary_of
from stillwatch.tools.station.store.tables import (
    AGENT_PICTURES,
    AGENTS,
    ALERT_PICTURES,
    ALERT_UPDATES,
    ALERTS,
    EXEMPLARS,
    FOLDERS,
    GAPS,
    KINDS,
    MODELS,
    MUTES,
    NOTICES,
    NOTIFICATIONS,
    SCORE_DATA,
    SCORES,
    STATUSES,
)

PICTURES_KEPT = 6  # of one alert: the newest
UPDATES_KEPT = 200  # of one alert: beyond, they change it and are not listed
ROWS_KEPT = 2000  # notices, and gaps, of one agent
_CANDIDATES = 16
_SLACK_NS = 1_000_000_000  # a thin link says a time to 1/32 s
_PHASES = {"new": 0, "update": 1, "end": 2, "single": 2}


class TakingQueries(Connected):
    """Writes what ingest heard. Every method works within the caller's `writing()`."""

    def take_alert(self, connection: Connection, heard: AlertHeard) -> AlertTaken:
        """Enter one phase of an alert: a new row, or more of the one that another message or plane told of."""
        row = self._find(connection, heard)
        if row is None:
            values = self._new_values(connection, heard)
            alert = self.added(connection, ALERTS, values)
            self._note_update(connection, alert, heard)
            self._take_picture(connection, alert, heard)
            return AlertTaken(alert, heard.agent, heard.phase, True, True, values["is_muted"])
        alert = int(row["id"])
        is_new = self._note_update(connection, alert, heard)
        changed = _more(row, heard) if is_new else {}
        if changed:
            connection.execute(update(ALERTS).where(ALERTS.c.id == alert).values(changed))
        has_picture = self._take_picture(connection, alert, heard)
        phase = changed.get("phase", row["phase"])
        return AlertTaken(alert, heard.agent, phase, False, is_new or has_picture, row["is_muted"])

    def add_picture(self, connection: Connection, alert: int, plane: str, phase: str, picture: Picture) -> bool:
        """Keep a picture of an alert; False where the same is there already. Of many, the newest are kept."""
        c = ALERT_PICTURES.c
        where = (c.alert == alert) & (c.plane == plane) & (c.frame == picture.frame)
        known = connection.execute(select(c.picture).where(where)).scalar()
        if known == picture.data:
            return False
        values = _picture_values(picture) | {"alert": alert, "plane": plane, "phase": phase}
        connection.execute(self.upsert(ALERT_PICTURES, values, ["alert", "plane", "frame"]))
        kept = select(c.id).where(c.alert == alert).order_by(c.id.desc()).limit(PICTURES_KEPT)
        connection.execute(delete(ALERT_PICTURES).where(c.alert == alert, c.id.not_in(kept)))
        connection.execute(update(ALERTS).where(ALERTS.c.id == alert).values(has_picture=True))
        return True

    def thin_alert(self, connection: Connection, agent: str, key: str) -> int | None:
        """Return the newest alert of a thin link's delivery, or None; `key` is what the delivery's key begins with."""
        key_begins = ALERT_UPDATES.c.key.startswith(key, autoescape=True)
        joined = ALERT_UPDATES.join(ALERTS, ALERTS.c.id == ALERT_UPDATES.c.alert)
        where = (ALERTS.c.agent == agent, ALERT_UPDATES.c.plane == THIN, key_begins)
        query = select(ALERTS.c.id).select_from(joined).where(*where).order_by(ALERTS.c.id.desc()).limit(1)
        return connection.execute(query).scalar()

    def take_agent(self, connection: Connection, agent: str, values: Mapping[str, Any]) -> None:
        """Enter an agent, or change what is known of it: AGENTS' columns."""
        self.take_agents(connection, [(agent, values)])

    def take_agents(self, connection: Connection, changed: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """Enter or change several agents, as `take_agent` does; those of the same columns with one statement."""
        alike: dict[tuple[str, ...], list[dict[str, Any]]] = {}
        for agent, values in sorted(changed, key=lambda item: item[0]):  # in order: transactions wait in no circle
            alike.setdefault(tuple(sorted(values)), []).append({"agent": agent, **values})
        for names, rows in alike.items():
            insert = self.insert(AGENTS)
            changes = {name: insert.excluded[name] for name in names}
            entered = insert.on_conflict_do_update(index_elements=["agent"], set_=changes) if changes else None
            connection.execute(insert.on_conflict_do_nothing() if entered is None else entered, rows)

    def add_plane(self, connection: Connection, agent: str, plane: str, received_ns: int) -> None:
        """Note that an agent is heard on a plane, and since when it is known."""
        row = connection.execute(select(AGENTS.c.planes).where(AGENTS.c.agent == agent)).first()
        planes = [] if row is None else row[0].split(",")
        if row is None:
            self.take_agent(connection, agent, {"added_ns": received_ns, "planes": plane})
        elif plane not in planes:
            self.take_agent(connection, agent, {"planes": ",".join([known for known in planes if known] + [plane])})

    def take_agent_picture(self, connection: Connection, agent: str, alert: int, picture: Picture) -> None:
        """Keep the newest picture of an agent; an older one than is there changes nothing."""
        newest = select(AGENT_PICTURES.c.at_ns).where(AGENT_PICTURES.c.agent == agent)
        if (connection.execute(newest).scalar() or 0) <= picture.at_ns:
            values = _picture_values(picture) | {"agent": agent, "alert": alert}
            connection.execute(self.upsert(AGENT_PICTURES, values, ["agent"]))

    def take_scores(self, connection: Connection, agent: str, run: str, rows: ScoreRows) -> bool:
        """Enter a stretch of scores; False where these frames of this run are there already."""
        summary = summary_of(rows)
        c = SCORES.c
        same = select(c.id).where(
            c.agent == agent, c.at_ns == summary["at_ns"], c.first_frame == summary["first_frame"]
        )
        if connection.execute(same.limit(1)).first() is not None:
            return False
        added = self.added(connection, SCORES, {"agent": agent, "run": run, **summary})
        connection.execute(SCORE_DATA.insert(), {"scores": added, "data": pack(rows)})
        return True

    def frames_kept(self, agent: str, run: str) -> list[tuple[int, int]]:
        """Return the frames of a run whose scores are kept, as (first, last) of stretches that touch or overlap."""
        c = SCORES.c
        query = select(c.first_frame, c.last_frame).where(c.agent == agent, c.run == run).order_by(c.first_frame)
        merged: list[tuple[int, int]] = []
        with self.reading() as connection:
            for first, last in connection.execute(query):
                if merged and first <= merged[-1][1] + 1:
                    merged[-1] = merged[-1][0], max(last, merged[-1][1])
                else:
                    merged.append((first, last))
        return merged

    def take_status(self, connection: Connection, agent: str, at_ns: int, values: Mapping[str, Any]) -> None:
        """Keep one status of a minute: STATUSES' columns."""
        connection.execute(self.upsert(STATUSES, {"agent": agent, "at_ns": at_ns, **values}, ["agent", "at_ns"]))

    def take_model(self, connection: Connection, agent: str, values: Mapping[str, Any]) -> None:
        """Keep the newest model or clumps of a name: MODELS' columns."""
        connection.execute(self.upsert(MODELS, {"agent": agent, **values}, ["agent", "kind", "which"]))

    def take_exemplar(
        self, connection: Connection, agent: str, values: Mapping[str, Any], removed: Sequence[int], most: int
    ) -> None:
        """Keep an exemplar (EXEMPLARS' columns; none: only removals), drop those removed, and of an agent's `most`."""
        c = EXEMPLARS.c
        if removed:
            connection.execute(delete(EXEMPLARS).where(c.agent == agent, c.exemplar.in_(list(removed)[:1000])))
        if values:
            values = self._of_its_run(connection, EXEMPLARS, c.exemplar, agent, values)
            connection.execute(self.upsert(EXEMPLARS, {"agent": agent, **values}, ["agent", "role", "exemplar"]))
            kept = select(c.exemplar).where(c.agent == agent).order_by(c.at_ns.desc(), c.exemplar.desc()).limit(most)
            connection.execute(delete(EXEMPLARS).where(c.agent == agent, c.exemplar.not_in(kept)))

    def take_kind(
        self, connection: Connection, agent: str, values: Mapping[str, Any], removed: Sequence[int], most: int
    ) -> None:
        """Keep a kind of visits (KINDS' columns; none: only removals), drop those removed, and of an agent's `most`.

        Its first visit and its picture stay as they were told first and last: streams begin anew, kinds go on. One of
        fewer visits than before is another kind of the same number: the agent began anew.
        """
        c = KINDS.c
        if removed:
            connection.execute(delete(KINDS).where(c.agent == agent, c.kind.in_(list(removed)[:1000])))
        if values:
            same = select(c.count, c.first_ns).where(c.agent == agent, c.kind == values["kind"])
            before = connection.execute(same).first()
            if before is not None and before[0] <= values["count"]:
                values = {**values, "first_ns": min(before[1], values["first_ns"])}
            elif before is not None:
                values = {"picture": None, **values}
            connection.execute(self.upsert(KINDS, {"agent": agent, **values}, ["agent", "kind"]))
            kept = select(c.kind).where(c.agent == agent).order_by(c.last_ns.desc(), c.kind.desc()).limit(most)
            connection.execute(delete(KINDS).where(c.agent == agent, c.kind.not_in(kept)))

    def _of_its_run(
        self, connection: Connection, table: Any, key: Any, agent: str, values: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Return values without the picture that another run gave to the same number."""
        where = (table.c.agent == agent, table.c.role == values["role"], key == values[key.name])
        run = connection.execute(select(table.c.run).where(*where)).scalar()
        return values if run in (None, values.get("run", "")) else {"picture": None, **values}

    def take_gap(self, connection: Connection, agent: str, values: Mapping[str, Any]) -> None:
        """Keep a gap: GAPS' columns."""
        connection.execute(GAPS.insert().values(agent=agent, **values))
        self._trim(connection, GAPS, agent)

    def take_notice(self, connection: Connection, agent: str, values: Mapping[str, Any]) -> bool:
        """Keep a notice (NOTICES' columns); False where it is there already."""
        c = NOTICES.c
        same = (c.agent == agent, c.at_ns == values["at_ns"], c.code == values["code"], c.text == values["text"])
        if connection.execute(select(c.id).where(*same).limit(1)).first() is not None:
            return False
        connection.execute(NOTICES.insert().values(agent=agent, **values))
        self._trim(connection, NOTICES, agent)
        return True

    def take_clips(self, connection: Connection, agent: str, run: str, clips: Mapping[int, str]) -> None:
        """Note where the clips of a run's alerts lie, by event."""
        c = ALERTS.c
        for event, path in clips.items():
            same = (
                c.agent == agent,
                c.event16 == event % EVENT_NUMBERS,
                c.event == event,
                c.run == run,
                c.clip != path,
            )
            connection.execute(update(ALERTS).where(*same).values(clip=path))

    def take_folder(self, connection: Connection, values: Mapping[str, Any]) -> None:
        """Keep what was read of a folder: FOLDERS' columns."""
        connection.execute(self.upsert(FOLDERS, dict(values), ["path"]))

    def enqueue(self, connection: Connection, values: Mapping[str, Any]) -> bool:
        """Put a notification into its channel's queue: NOTIFICATIONS' columns; False where this uid is there."""
        return self.enter(connection, NOTIFICATIONS, dict(values), ["channel", "uid"])

    def fill_scores(self, connection: Connection, run: str, stretches: Sequence[tuple[str, ScoreRows]]) -> None:
        """Enter stretches of scores of the agents named, in bulk: nothing is looked for among those that are there."""
        first = int(connection.execute(select(func.max(SCORES.c.id))).scalar() or 0) + 1
        places = enumerate(stretches, start=first)
        summaries = [{"id": place, "agent": agent, "run": run, **summary_of(rows)} for place, (agent, rows) in places]
        connection.execute(SCORES.insert(), summaries)
        data = [{"scores": place, "data": pack(rows)} for place, (_, rows) in enumerate(stretches, start=first)]
        connection.execute(SCORE_DATA.insert(), data)

    def fill_alerts(self, connection: Connection, alerts: Sequence[Mapping[str, Any]]) -> None:
        """Enter alerts in bulk: ALERTS' columns, `id` with them, the same in all."""
        connection.execute(ALERTS.insert(), list(alerts))

    def fill_pictures(self, connection: Connection, pictures: Sequence[Mapping[str, Any]]) -> None:
        """Enter pictures of alerts in bulk: ALERT_PICTURES' columns, the same in all."""
        connection.execute(ALERT_PICTURES.insert(), list(pictures))

    def _find(self, connection: Connection, heard: AlertHeard) -> RowMapping | None:
        c = ALERTS.c
        if heard.uid:
            exact = select(ALERTS).where(c.agent == heard.agent, c.uid == heard.uid)
            if (row := connection.execute(exact).mappings().first()) is not None:
                return row
        near = select(ALERTS).where(c.agent == heard.agent, c.event16 == heard.event % EVENT_NUMBERS)
        if heard.uid:
            near = near.where(c.uid.startswith(f"{THIN}:"))
        rows = connection.execute(near.order_by(c.at_ns.desc()).limit(_CANDIDATES)).mappings()
        return next((row for row in rows if self._is_same(connection, row, heard)), None)

    def _is_same(self, connection: Connection, row: RowMapping, heard: AlertHeard) -> bool:
        """Whether an alert of the same number is the one that was heard: told by one plane and by the other."""
        c = ALERT_UPDATES.c
        query = select(c.phase, c.key).where(c.alert == row["id"], c.plane == _kept_plane(heard))
        told = {(phase, key) for phase, key in connection.execute(query)}
        if any(key == heard.key for _, key in told):
            return True
        if heard.phase in ("new", "single") and any(phase in ("new", "single") for phase, _ in told):
            return False  # it began already: another event got the number again
        if not heard.own_ns or not row["own_told_ns"]:  # a vehicle that does not know the time
            return heard.phase != "new" and row["phase"] != "end" or (heard.plane != THIN) == (row["planes"] == THIN)
        first_ns, last_ns = heard.own_start_ns or heard.own_ns, heard.own_ns
        row_first_ns, row_last_ns = row["own_start_ns"] or row["own_told_ns"], row["own_told_ns"]
        if first_ns - _SLACK_NS <= row_last_ns and row_first_ns <= last_ns + _SLACK_NS:
            return True
        goes_on = row["phase"] != "end" and last_ns >= row_first_ns and heard.phase in ("update", "end")
        came_before = (
            heard.phase != "end" and last_ns <= row_first_ns and not any(p in ("new", "single") for p, _ in told)
        )
        return goes_on or (came_before and row["planes"] == THIN and row["phase"] in ("update", "end"))

    def _new_values(self, connection: Connection, heard: AlertHeard) -> dict[str, Any]:
        return {
            **heard.fields,
            "agent": heard.agent,
            "uid": heard.uid or f"{THIN}:{heard.key}",
            "event": heard.event,
            "event16": heard.event % EVENT_NUMBERS,
            "phase": "end" if heard.phase == "single" else heard.phase,
            "severity": heard.severity,
            "at_ns": heard.at_ns,
            "start_ns": heard.start_ns,
            "told_ns": heard.at_ns,
            "received_ns": heard.received_ns,
            "own_start_ns": heard.own_start_ns,
            "own_told_ns": heard.own_ns,
            "planes": heard.plane,
            "clock_is_wrong": heard.clock_is_wrong,
            "is_muted": self._is_muted(connection, heard),
        }

    def _is_muted(self, connection: Connection, heard: AlertHeard) -> bool:
        c = MUTES.c
        kind, x, y = (heard.fields.get(name) for name in ("kind", "x", "y"))
        place = "" if x is None or y is None else words.place(x, y)
        query = select(c.id).where(
            c.until_ns > heard.received_ns,
            c.from_ns <= heard.received_ns,
            or_(c.agent == "", c.agent == heard.agent),
            or_(c.kind == "", c.kind == kind),
            or_(c.place == "", c.place == place),
        )
        return connection.execute(query.limit(1)).first() is not None

    def _note_update(self, connection: Connection, alert: int, heard: AlertHeard) -> bool:
        """List the phase; False where the same message was taken before."""
        values = {
            "alert": alert,
            "plane": _kept_plane(heard),
            "key": heard.key,
            "phase": heard.phase,
            "at_ns": heard.at_ns,
            "received_ns": heard.received_ns,
            "frame": heard.fields.get("frame", -1),
            "severity": heard.severity,
            "rarity": heard.fields.get("rarity"),
        }
        if not self.enter(connection, ALERT_UPDATES, values, ["alert", "plane", "key"]):
            return False
        c = ALERT_UPDATES.c
        n = connection.execute(select(func.count()).select_from(ALERT_UPDATES).where(c.alert == alert)).scalar() or 0
        if n > UPDATES_KEPT:
            middle = select(c.id).where(c.alert == alert, c.phase == "update").order_by(c.id).limit(1)
            connection.execute(delete(ALERT_UPDATES).where(c.id.in_(middle)))
        return True

    def _take_picture(self, connection: Connection, alert: int, heard: AlertHeard) -> bool:
        if heard.picture is None:
            return False
        is_new = self.add_picture(connection, alert, _kept_plane(heard), heard.phase, heard.picture)
        if is_new:
            self.take_agent_picture(connection, heard.agent, alert, heard.picture)
        return is_new

    def _trim(self, connection: Connection, table: Any, agent: str) -> None:
        """Keep an agent's newest ROWS_KEPT rows of a table; looked after once in a while."""
        c = table.c
        last = connection.execute(select(func.max(c.id)).where(c.agent == agent)).scalar() or 0
        if last % 64 == 0:
            kept = select(c.id).where(c.agent == agent).order_by(c.id.desc()).limit(ROWS_KEPT)
            connection.execute(delete(table).where(c.agent == agent, c.id.not_in(kept)))


def _kept_plane(heard: AlertHeard) -> str:
    """Return under what a message is listed: a run folder holds the very messages of the live plane."""
    return THIN if heard.plane == THIN else LIVE


def _picture_values(picture: Picture) -> dict[str, Any]:
    return {
        "frame": picture.frame,
        "at_ns": picture.at_ns,
        "boxes": json.dumps(picture.boxes),
        "width": picture.width,
        "height": picture.height,
        "mime": picture.mime,
        "picture": picture.data,
    }


def _more(row: RowMapping, heard: AlertHeard) -> dict[str, Any]:
    """Return what a further message changes of an alert: the live plane says more than the thin link, later more than
    earlier; nothing known becomes unknown."""
    planes = row["planes"].split(",")
    changed: dict[str, Any] = {
        "severity": max(row["severity"], heard.severity),
        "at_ns": min(row["at_ns"], heard.at_ns),
        "start_ns": min(row["start_ns"], heard.start_ns),
        "told_ns": max(row["told_ns"], heard.at_ns),
        "own_told_ns": max(row["own_told_ns"], heard.own_ns),
    }
    if heard.own_start_ns:
        changed["own_start_ns"] = min(row["own_start_ns"] or heard.own_start_ns, heard.own_start_ns)
    if heard.plane not in planes:
        changed["planes"] = ",".join([*planes, heard.plane])
    if _PHASES.get(heard.phase, 1) > _PHASES.get(row["phase"], 1):
        changed["phase"] = "end" if heard.phase == "single" else heard.phase
    is_first_whole = bool(heard.uid) and row["uid"].startswith(f"{THIN}:")
    if is_first_whole:
        changed |= {"uid": heard.uid, "event": heard.event}
    if heard.uid or planes == [THIN]:
        is_latest = is_first_whole or heard.at_ns >= row["told_ns"]
        said = {
            name: value for name, value in heard.fields.items() if value is not None and value not in (-1, "", "[]")
        }
        changed |= {name: value for name, value in said.items() if is_latest or row[name] in (None, -1, "", "[]")}
    return {name: value for name, value in changed.items() if row[name] != value}
