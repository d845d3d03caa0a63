"""Says who a visitor is and what he may do: sessions, logins, protection against other sites' forms, the audit log.

Used by access/middleware.py for every request and by the page's acts. Session tokens are stored as their SHA-256 only.
"""

import hashlib
import hmac
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from stillwatch.base import scrub
from stillwatch.tools.station.access.addresses import is_loopback
from stillwatch.tools.station.access.limits import RateLimit
from stillwatch.tools.station.access.passwords import NAME, Passwords
from stillwatch.tools.station.access.roles import Role

IDLE_S, LONGEST_S = 7 * 86_400, 30 * 86_400  # a session's life without visits, and with them
TOUCH_S = 60.0  # how exactly it is known when a session was last used
USERS_KNOWN_S = 2.0
LONGEST_TOKEN = 128
LOCAL = "local"  # what the audit log calls whoever sits at the machine of a station without users


class Keeper(Protocol):
    """What the gate asks of the store."""

    begun: int

    def user_count(self) -> int: ...
    def user(self, name: str) -> Mapping[str, Any] | None: ...
    def set_password(self, name: str, hashed: str) -> bool: ...
    def add_session(self, digest: str, user: str, kind: str, created_s: float, expires_s: float) -> None: ...
    def session(self, digest: str) -> Mapping[str, Any] | None: ...
    def touch_session(self, digest: str, used_s: float) -> None: ...
    def end_session(self, digest: str) -> None: ...
    def add_audit(self, wall_s: float, user: str, address: str, act: str, subject: str, detail: str) -> None: ...


class Refused(Exception):
    """A request that is not carried out: an HTTP status, what to tell, and when to come again."""

    def __init__(self, status: int, text: str, *, retry_after_s: float = 0.0):
        super().__init__(text)
        self.status, self.text, self.retry_after_s = status, text, retry_after_s


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who asks. `role` is None before a login; `token` is the secret that his forms are tied to."""

    name: str
    role: Role | None
    token: str
    address: str = ""
    is_new: bool = False  # the cookie has still to be set
    by_header: bool = False  # a program with an API token: no cookie, so no other site can use it

    @property
    def csrf(self) -> str:
        """What a form must carry: derived from the token, which it does not give away."""
        return hmac.new(self.token.encode(), b"stillwatch form", hashlib.sha256).hexdigest()[:40]

    def may(self, needed: Role) -> bool:
        """Whether he may do what a role allows."""
        return self.role is not None and self.role.may(needed)


ANYBODY = Visitor("", None, "")


def digest_of(token: str) -> str:
    """Return the form in which a token is stored."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


class Gate:
    """Decides about every request.

    Parameters
    ----------
    store : Keeper
    wall, monotonic : callable
        Seconds.
    allows_open : bool
        Whether the station may be used without users: it listens on loopback and no proxy stands before it.
    passwords : callable
        Makes what hashes, at the first login: a station without users never loads argon2.
    """

    def __init__(
        self,
        store: Keeper,
        *,
        wall: Callable[[], float],
        monotonic: Callable[[], float],
        allows_open: bool = True,
        passwords: Callable[[], Passwords] = Passwords,
    ):
        self._store, self._wall, self._monotonic, self._allows_open = store, wall, monotonic, allows_open
        self._make_passwords = passwords
        self._passwords: Passwords | None = None
        self._making = threading.Lock()
        self._by_address = RateLimit(6, 10, monotonic)
        self._by_name = RateLimit(4, 8, monotonic)
        self._acts = RateLimit(120, 60, monotonic)
        self._reads = RateLimit(6000, 3000, monotonic)  # a fleet's page asks for each agent's picture
        self._users_known: tuple[float, bool] | None = None
        self._guarded: int | None = None  # which of the store's files had users last

    @property
    def is_open(self) -> bool:
        """Whether whoever reaches the page is let in as the local administrator: loopback, and no user yet."""
        now = self._monotonic()
        if self._users_known is None or now - self._users_known[0] > USERS_KNOWN_S:
            n_users, begun = self._store.user_count(), self._store.begun
            self._guarded = begun if n_users else self._guarded
            is_lost = self._guarded not in (None, begun)  # users stood in a file that was set aside: nobody walks in
            self._users_known = (now, n_users > 0 or is_lost)
        return self._allows_open and not self._users_known[1]

    def visitor(self, *, cookie: str, authorization: str, address: str) -> Visitor:
        """Return who asks, by an API token or a cookie; somebody without a role where neither is known."""
        scheme, _, bearer = authorization.partition(" ")
        by_header = scheme.lower() == "bearer"
        token = bearer.strip() if by_header else cookie
        if self.is_open and not by_header:
            kept = token if 20 <= len(token) <= LONGEST_TOKEN else ""
            return Visitor(LOCAL, Role.ADMINISTER, kept or _new_token(), address, is_new=not kept)
        if 20 <= len(token) <= LONGEST_TOKEN:
            found = self._live_session(token)
            if found is not None and (found["kind"] == "token") == by_header:
                return Visitor(found["user"], Role(found["role"]), token, address, by_header=by_header)
            if not by_header:
                return Visitor("", None, token, address)
        return Visitor("", None, "" if by_header else _new_token(), address, is_new=not by_header, by_header=by_header)

    def _live_session(self, token: str) -> Mapping[str, Any] | None:
        digest = digest_of(token)
        found = self._store.session(digest)
        if found is None:
            return None
        now = self._wall()
        is_idle = found["kind"] != "token" and now > found["used_s"] + IDLE_S
        if now > found["expires_s"] or is_idle:
            self._store.end_session(digest)
            return None
        if now - found["used_s"] > TOUCH_S:
            self._store.touch_session(digest, now)
        return found

    def log_in(self, visitor: Visitor, name: str, password: str) -> str:
        """Return the token of a new session; raise Refused. The old token is worth nothing afterwards."""
        for limit, key in ((self._by_address, visitor.address), (self._by_name, name[:64])):
            wait_s = limit.wait_s(key)
            if wait_s:
                raise Refused(429, "Too many logins. Wait a little.", retry_after_s=wait_s)
        known = self._store.user(name) if NAME.fullmatch(name) else None
        passwords = self._hasher()
        if not passwords.verify(known["password"] if known else None, password):
            self.audit(visitor, "login refused", name[:64])
            raise Refused(403, "Name or password is wrong.")
        assert known is not None
        if passwords.is_outdated(known["password"]):
            self._store.set_password(name, passwords.hashed(password))
        token, now = _new_token(), self._wall()
        self._store.add_session(digest_of(token), name, "cookie", now, now + LONGEST_S)
        self.audit(Visitor(name, Role(known["role"]), token, visitor.address), "login", name)
        return token

    def _hasher(self) -> Passwords:
        with self._making:
            if self._passwords is None:
                self._passwords = self._make_passwords()
            return self._passwords

    def log_out(self, visitor: Visitor) -> None:
        """End the visitor's session."""
        self._store.end_session(digest_of(visitor.token))
        self.audit(visitor, "logout", visitor.name)

    def require(self, visitor: Visitor, needed: Role) -> None:
        """Raise Refused where the visitor may not do this, or does it too often."""
        if visitor.role is None:
            raise Refused(401, "Please log in.")
        if not visitor.may(needed):
            raise Refused(403, f"Your role is “{visitor.role}”; this needs “{needed}”.")
        limit = self._reads if needed is Role.SEE else self._acts
        wait_s = limit.wait_s(f"{visitor.name} {visitor.address}")
        if wait_s:
            raise Refused(429, "Too many requests. Wait a little.", retry_after_s=wait_s)

    def require_own_form(self, visitor: Visitor, given: str, headers: Mapping[str, str]) -> None:
        """Raise Refused where a request that changes something does not come from a page of ours."""
        if visitor.by_header:
            return
        site = headers.get("sec-fetch-site", "same-origin")
        origin = headers.get("origin", "")
        is_ours = not origin or origin.partition("://")[2] == headers.get("host", "")
        fits = hmac.compare_digest(given.encode("utf-8", "replace"), visitor.csrf.encode())
        if site not in ("same-origin", "none") or not is_ours or not visitor.token or visitor.is_new or not fits:
            raise Refused(403, "This form is not from this page, or is too old. Load the page again.")

    def is_host_known(self, host: str) -> bool:
        """Whether a request's Host may be served: without passwords only our own names, against DNS rebinding."""
        if not self.is_open:
            return True
        name = host.rpartition("]")[0].lstrip("[") if host.startswith("[") else host.rpartition(":")[0] or host
        return is_loopback(name)

    def audit(self, visitor: Visitor, act: str, subject: str = "", detail: str = "") -> None:
        """Write down who did what."""
        self._store.add_audit(self._wall(), visitor.name, visitor.address, act, subject[:200], scrub(detail)[:1000])


def new_api_token(store: Keeper, user: str, now_s: float) -> str:
    """Return a new API token of a user; it holds until the user is removed or the token revoked."""
    token = _new_token()
    store.add_session(digest_of(token), user, "token", now_s, now_s + 10 * 365 * 86_400)
    return token


def _new_token() -> str:
    return secrets.token_urlsafe(32)
