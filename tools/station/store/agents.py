"""Agents as the page shows them: the fleet, one agent, its models, exemplars, notices, gaps and health.

Used by tools/station/page and tools/station/tell. It changes which agents
the station was told of, and removes one as a whole.
"""

from typing import Any

from sqlalchemy import Select, delete, func, literal_column, select

from stillwatch.tools.station.store.connection import Connected
from stillwatch.tools.station.store.tables import (
    AGENT_PICTURES,
    AGENTS,
    ALERTS,
    EXEMPLARS,
    FOLDERS,
    GAPS,
    KINDS,
    META,
    MODELS,
    MUTES,
    NOTICES,
    NOTIFICATIONS,
    SCORES,
    STATUSES,
)

REMOVED_A_TIME = 2000  # alerts or stretches of scores in one transaction: others write in between
_OF_AN_AGENT = (
    AGENT_PICTURES, STATUSES, MODELS, EXEMPLARS, KINDS, GAPS, NOTICES, FOLDERS, MUTES, NOTIFICATIONS, AGENTS,
)  # fmt: skip
MOST_WAITING = 1000  # beyond it nobody counts: "1000 and more"
_TOLD = "agent:"  # keys of META: agents that the station was told of in the page


class AgentQueries(Connected):
    """What is known of agents."""

    def agents(self) -> list[dict[str, Any]]:
        """Return every agent by name: AGENTS' columns, `waiting` (unacknowledged alerts, at most MOST_WAITING),
        `last_alert_ns`, and of the newest picture `picture_ns` (0: none), `picture_frame`, `picture_alert`,
        `picture_boxes`."""
        return self.rows(_overview().order_by(AGENTS.c.agent))

    def agent(self, agent: str) -> dict[str, Any] | None:
        """Return one agent as `agents` does, or None."""
        return self.first(_overview().where(AGENTS.c.agent == agent))

    def agent_picture(self, agent: str) -> dict[str, Any] | None:
        """Return the newest picture: AGENT_PICTURES' columns."""
        return self.first(select(AGENT_PICTURES).where(AGENT_PICTURES.c.agent == agent))

    def models(self, agent: str) -> list[dict[str, Any]]:
        """Return the newest model and clumps messages: MODELS' columns; `payload` is what transport.wire decodes."""
        return self.rows(select(MODELS).where(MODELS.c.agent == agent).order_by(MODELS.c.kind, MODELS.c.which))

    def exemplars(self, agent: str, *, limit: int = 200) -> list[dict[str, Any]]:
        """Return the exemplars that are held, largest share first: EXEMPLARS' columns without the picture,
        `has_picture` instead. Of each role those of the run that told it last: an agent that began anew holds no other.
        """
        columns = [column for column in EXEMPLARS.c if column.name != "picture"]
        query = select(*columns, EXEMPLARS.c.picture.is_not(None).label("has_picture"))
        query = query.where(EXEMPLARS.c.agent == agent)
        rows = self.rows(query.order_by(EXEMPLARS.c.share.desc(), EXEMPLARS.c.exemplar))
        runs = {row["role"]: row["run"] for row in sorted(rows, key=lambda row: row["at_ns"])}
        return [row for row in rows if row["run"] == runs[row["role"]]][:limit]

    def exemplar(self, agent: str, exemplar: int) -> dict[str, Any] | None:
        """Return one exemplar with its JPEG (`picture`, None where none came), or None; its own role before others."""
        c = EXEMPLARS.c
        query = select(EXEMPLARS).where(c.agent == agent, c.exemplar == exemplar)
        return self.first(query.order_by(c.picture.is_(None), c.role != "frame", c.at_ns.desc()).limit(1))

    def kinds(self, agent: str) -> list[dict[str, Any]]:
        """Return the kinds of visits, the most frequent first: KINDS' columns without the picture, `has_picture`
        instead. Those of the run that told of the newest visit: an agent that began anew knows no other."""
        columns = [column for column in KINDS.c if column.name != "picture"]
        query = select(*columns, KINDS.c.picture.is_not(None).label("has_picture")).where(KINDS.c.agent == agent)
        rows = self.rows(query.order_by(KINDS.c.count.desc(), KINDS.c.kind))
        run = max(rows, key=lambda row: row["last_ns"])["run"] if rows else ""
        return [row for row in rows if row["run"] == run]

    def kind(self, agent: str, kind: int) -> dict[str, Any] | None:
        """Return one kind of visits with its JPEG (`picture`, None where none came), or None."""
        return self.first(select(KINDS).where(KINDS.c.agent == agent, KINDS.c.kind == kind))

    def notices(self, agent: str, *, before: int = 0, limit: int = 50) -> list[dict[str, Any]]:
        """Return an agent's notices, newest first; `before` is the id that the last page ended with."""
        query = select(NOTICES).where(NOTICES.c.agent == agent).order_by(NOTICES.c.id.desc()).limit(limit)
        return self.rows(query.where(NOTICES.c.id < before) if before else query)

    def gaps(self, agent: str, *, limit: int = 50) -> list[dict[str, Any]]:
        """Return the newest gaps in an agent's messages: plane, kind, first and last sequence, when noticed."""
        return self.rows(select(GAPS).where(GAPS.c.agent == agent).order_by(GAPS.c.id.desc()).limit(limit))

    def health(self, agent: str, from_ns: int, to_ns: int, *, most: int = 1440) -> list[dict[str, Any]]:
        """Return STATUSES of a time, oldest first: the newest `most` of them."""
        inside = STATUSES.c.at_ns.between(from_ns, to_ns)
        query = select(STATUSES).where(STATUSES.c.agent == agent, inside).order_by(STATUSES.c.at_ns.desc()).limit(most)
        return self.rows(query)[::-1]

    def positions(self, from_ns: int, to_ns: int, agent: str = "", *, most: int = 2000) -> list[dict[str, Any]]:
        """Return alerts with a position, newest first: id, agent, kind, at_ns, latitude, longitude, depth_m, label."""
        names = ("id", "agent", "kind", "at_ns", "latitude", "longitude", "depth_m", "label", "severity")
        query = select(*(ALERTS.c[name] for name in names)).where(
            ALERTS.c.latitude.is_not(None), ALERTS.c.longitude.is_not(None), ALERTS.c.at_ns.between(from_ns, to_ns)
        )
        query = query.where(ALERTS.c.agent == agent) if agent else query
        return self.rows(query.order_by(ALERTS.c.at_ns.desc()).limit(most))

    def folders(self) -> list[dict[str, Any]]:
        """Return the run folders and recordings that were read: FOLDERS' columns."""
        return self.rows(select(FOLDERS).order_by(FOLDERS.c.read_ns.desc()))

    def told_agents(self) -> dict[str, str]:
        """Return the agents that the station was told of in the page: what was told (JSON), by endpoint."""
        query = select(META).where(META.c.key.startswith(_TOLD, autoescape=True))
        return {row["key"].removeprefix(_TOLD): row["value"] for row in self.rows(query)}

    def tell_agent(self, endpoint: str, value: str) -> None:
        """Keep how an agent is heard (JSON), so that the next start knows it too."""
        with self.writing() as connection:
            connection.execute(self.upsert(META, {"key": _TOLD + endpoint, "value": value}, ["key"]))

    def untell_agent(self, endpoint: str) -> None:
        """Forget that the station was told of an agent at an endpoint."""
        with self.writing() as connection:
            connection.execute(delete(META).where(META.c.key == _TOLD + endpoint))

    def remove_agent(self, agent: str) -> bool:
        """Delete everything that is kept of an agent, in small steps; False where nothing was.

        What people did stays in the audit log.
        """
        found = False
        for table in (ALERTS, SCORES):  # the agent's own row goes last: after a kill it is still there to be removed
            some = select(table.c.id).where(table.c.agent == agent).limit(REMOVED_A_TIME)
            is_done = False
            while not is_done:
                with self.writing() as connection:
                    n = connection.execute(delete(table).where(table.c.id.in_(some))).rowcount
                found, is_done = found or n > 0, n < REMOVED_A_TIME
        with self.writing() as connection:
            for table in _OF_AN_AGENT:
                found = connection.execute(delete(table).where(table.c.agent == agent)).rowcount > 0 or found
        return found


def _overview() -> Select:
    pictures = AGENT_PICTURES.c
    some_waiting = (
        select(literal_column("1").label("one"))
        .where(ALERTS.c.agent == AGENTS.c.agent, ALERTS.c.acknowledged_ns == 0, ALERTS.c.is_muted.is_(False))
        .limit(MOST_WAITING)
        .correlate(AGENTS)
        .subquery()
    )
    newest = select(func.max(ALERTS.c.at_ns)).where(ALERTS.c.agent == AGENTS.c.agent).correlate(AGENTS)
    return select(
        AGENTS,
        select(func.count()).select_from(some_waiting).scalar_subquery().label("waiting"),
        func.coalesce(newest.scalar_subquery(), 0).label("last_alert_ns"),
        func.coalesce(pictures.at_ns, 0).label("picture_ns"),
        func.coalesce(pictures.frame, -1).label("picture_frame"),
        func.coalesce(pictures.alert, -1).label("picture_alert"),
        func.coalesce(pictures.boxes, "[]").label("picture_boxes"),
    ).select_from(AGENTS.outerjoin(AGENT_PICTURES, pictures.agent == AGENTS.c.agent))
