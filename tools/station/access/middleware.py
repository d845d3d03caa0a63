"""The ASGI layer before every page: who asks, whether the host is ours, how long a body may be, the security headers.

Put around the application by tools/station/page/app.py. It must pass streams through as they come.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any

from stillwatch.tools.station.access.gate import ANYBODY, Gate, Visitor

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

COOKIE = "stillwatch"
MOST_BODY_BYTES = 64 * 1024
LONGEST_URL = 4096
UNWATCHED = ("/static/", "/healthz")  # the same for everybody: nobody need be known
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "media-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


def cookie_name(scheme: str) -> str:
    """Return the cookie's name: behind TLS the browser itself holds it to this host and to TLS."""
    return f"__Host-{COOKIE}" if scheme == "https" else COOKIE


def cookie_header(token: str, scheme: str, *, max_age_s: int) -> str:
    """Return the Set-Cookie line of a session."""
    secure = "; Secure" if scheme == "https" else ""
    return f"{cookie_name(scheme)}={token}; Path=/; Max-Age={max_age_s}; HttpOnly; SameSite=Lax{secure}"


class Doorkeeper:
    """Wraps an ASGI application; the visitor is in `scope["state"]["visitor"]`."""

    def __init__(self, app: Callable[[Scope, Receive, Send], Awaitable[None]], gate: Gate):
        self._app, self._gate = app, gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return  # no websockets here
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await _plain(_with_headers(send, {}), *refusal)
            return
        visitor = ANYBODY
        if not scope["path"].startswith(UNWATCHED):
            visitor = await self._identify(scope, headers)
        scope.setdefault("state", {})["visitor"] = visitor
        extra = {"strict-transport-security": "max-age=31536000"} if scope.get("scheme") == "https" else {}
        if visitor.is_new and not visitor.by_header and not scope["path"].startswith(("/api/", "/metrics")):
            extra["set-cookie"] = cookie_header(visitor.token, scope.get("scheme", "http"), max_age_s=30 * 86_400)
        await self._app(scope, _bounded(receive), _with_headers(send, extra))

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str] | None:
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit():
            return 400, "Content-Length is no number"
        if int(length) > MOST_BODY_BYTES:
            return 413, f"the body is longer than {MOST_BODY_BYTES} bytes"
        if len(scope.get("raw_path") or b"") + len(scope.get("query_string", b"")) > LONGEST_URL:
            return 414, f"the address is longer than {LONGEST_URL} bytes"
        if not self._gate.is_host_known(headers.get("host", "")):
            return 421, "a station without users answers on loopback names only"
        return None

    async def _identify(self, scope: Scope, headers: dict[str, str]) -> Visitor:
        from starlette.concurrency import run_in_threadpool

        client = scope.get("client")

        def ask() -> Visitor:
            return self._gate.visitor(
                cookie=_cookie(headers.get("cookie", ""), cookie_name(scope.get("scheme", "http"))),
                authorization=headers.get("authorization", ""),
                address=client[0] if client else "",
            )

        return await run_in_threadpool(ask)


def _cookie(header: str, name: str) -> str:
    try:
        found = SimpleCookie(header).get(name)
    except CookieError:
        return ""
    return found.value if found is not None else ""


def _bounded(receive: Receive) -> Receive:
    """Return a `receive` that says the client is gone once a body of unknown length is too long."""
    taken = 0

    async def bounded() -> MutableMapping[str, Any]:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        return {"type": "http.disconnect"} if taken > MOST_BODY_BYTES else message

    return bounded


def _with_headers(send: Send, extra: dict[str, str]) -> Send:
    async def wrapped(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            given = {name.lower() for name, _ in message["headers"]}
            added = [(k.encode(), v.encode()) for k, v in {**HEADERS, **extra}.items() if k.encode() not in given]
            if b"cache-control" not in given:
                added.append((b"cache-control", b"no-store"))
            message = {**message, "headers": [*message["headers"], *added]}
        await send(message)

    return wrapped


async def _plain(send: Send, status: int, text: str) -> None:
    body = text.encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
