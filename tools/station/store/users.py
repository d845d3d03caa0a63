"""Users, sessions and the audit log.

Called by tools/station/access. Passwords come as hashes, session tokens as digests: neither is ever here itself.
"""

from typing import Any

from sqlalchemy import delete, func, select, update

from stillwatch.tools.station.store.connection import Connected
from stillwatch.tools.station.store.tables import AUDIT, SESSIONS, USERS

AUDIT_KEPT = 100_000


class UserQueries(Connected):
    """What is kept of people."""

    def user_count(self) -> int:
        """Return how many users there are."""
        return self.count(select(func.count()).select_from(USERS))

    def users(self) -> list[dict[str, Any]]:
        """Return every user: name, role, created_s."""
        return self.rows(select(USERS.c.name, USERS.c.role, USERS.c.created_s).order_by(USERS.c.name))

    def user(self, name: str) -> dict[str, Any] | None:
        """Return one user with the password's hash, or None."""
        return self.first(select(USERS).where(USERS.c.name == name))

    def add_user(self, name: str, hashed: str, role: str, created_s: float) -> bool:
        """Enter a user; False where the name is taken."""
        values = {"name": name, "password": hashed, "role": role, "created_s": created_s}
        with self.writing() as connection:
            return self.enter(connection, USERS, values, ["name"])

    def set_password(self, name: str, hashed: str) -> bool:
        """Change a password; False where there is no such user."""
        return self._changed(update(USERS).where(USERS.c.name == name).values(password=hashed))

    def set_role(self, name: str, role: str) -> bool:
        """Change a role; False where there is no such user."""
        return self._changed(update(USERS).where(USERS.c.name == name).values(role=role))

    def remove_user(self, name: str) -> bool:
        """Remove a user with all sessions; False where there is none."""
        with self.writing() as connection:
            connection.execute(delete(SESSIONS).where(SESSIONS.c.user == name))
            return connection.execute(delete(USERS).where(USERS.c.name == name)).rowcount > 0

    def add_session(self, digest: str, user: str, kind: str, created_s: float, expires_s: float) -> None:
        """Enter a session, and drop those that have ended."""
        values = {"digest": digest, "user": user, "kind": kind, "created_s": created_s, "used_s": created_s}
        with self.writing() as connection:
            connection.execute(delete(SESSIONS).where(SESSIONS.c.expires_s < created_s))
            connection.execute(self.upsert(SESSIONS, {**values, "expires_s": expires_s}, ["digest"]))

    def session(self, digest: str) -> dict[str, Any] | None:
        """Return a session with its user's role, or None."""
        joined = SESSIONS.join(USERS, USERS.c.name == SESSIONS.c.user)
        return self.first(select(SESSIONS, USERS.c.role).select_from(joined).where(SESSIONS.c.digest == digest))

    def touch_session(self, digest: str, used_s: float) -> None:
        """Note when a session was last used."""
        self._changed(update(SESSIONS).where(SESSIONS.c.digest == digest).values(used_s=used_s))

    def end_session(self, digest: str) -> None:
        """Forget a session."""
        self._changed(delete(SESSIONS).where(SESSIONS.c.digest == digest))

    def end_sessions_of(self, user: str) -> None:
        """Forget all sessions of a user."""
        self._changed(delete(SESSIONS).where(SESSIONS.c.user == user))

    def add_audit(self, wall_s: float, user: str, address: str, act: str, subject: str, detail: str) -> None:
        """Write down an act."""
        values = {"wall_s": wall_s, "user": user, "address": address, "act": act, "subject": subject, "detail": detail}
        with self.writing() as connection:
            connection.execute(self.insert(AUDIT).values(values))

    def audit(self, *, before: int = 0, limit: int = 100) -> list[dict[str, Any]]:
        """Return acts, newest first; `before` is the id that the last page ended with."""
        query = select(AUDIT).order_by(AUDIT.c.id.desc()).limit(limit)
        return self.rows(query.where(AUDIT.c.id < before) if before else query)

    def trim_audit(self) -> None:
        """Forget the oldest acts beyond AUDIT_KEPT."""
        newest = select(func.max(AUDIT.c.id)).scalar_subquery()
        self._changed(delete(AUDIT).where(AUDIT.c.id <= newest - AUDIT_KEPT))

    def _changed(self, statement: Any) -> bool:
        with self.writing() as connection:
            return connection.execute(statement).rowcount > 0
