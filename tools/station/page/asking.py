"""One request as a handler sees it: who asks, what for, checked values; and the one way in which handlers are called.

Used by tools/station/page/app.py for every route. Nothing that a visitor sends reaches a handler unchecked.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from stillwatch.tools.station.access import Refused, Role, Visitor
from stillwatch.tools.station.page.services import Services
from stillwatch.tools.station.page.wording import cleaned
from stillwatch.transport.wire import AGENT_PATTERN

AGENT = re.compile(AGENT_PATTERN)
LARGEST = 2**63 - 1
MOST_FIELDS = 40


@dataclass(slots=True)
class Ask:
    """A request that was let in.

    Attributes
    ----------
    services : Services
    visitor : Visitor
    form : mapping of str to str
        Empty for requests that change nothing.
    place : int
        The newest news when the request came: what is told later, the page does not know.
    """

    request: Request
    services: Services
    visitor: Visitor
    form: Mapping[str, str]
    place: int = 0

    def text(self, name: str, longest: int = 64) -> str:
        """Return a text of the query."""
        return cleaned(self.request.query_params.get(name, ""), longest)

    def number(self, name: str, default: int, low: int = 0, high: int = LARGEST) -> int:
        """Return a whole number of the query; raise Refused (400) for anything else."""
        return _number(name, self.request.query_params.get(name, ""), default, low, high)

    def field(self, name: str, longest: int = 64) -> str:
        """Return a text of the form."""
        return cleaned(self.form.get(name, ""), longest)

    def field_number(self, name: str, low: int, high: int) -> int:
        """Return a whole number of the form; raise Refused (400) for anything else."""
        return _number(name, self.form.get(name, ""), None, low, high)

    def agent(self) -> str:
        """Return the agent of the path; raise Refused (404) for what can be none."""
        found = self.request.path_params["agent"]
        if not AGENT.fullmatch(found):
            raise Refused(404, "There is no such agent.")
        return found

    def id(self, name: str = "id") -> int:
        """Return a row's number of the path; raise Refused (404) for what can be none."""
        found = self.request.path_params[name]
        if not (found.isascii() and found.isdigit() and len(found) < 19):
            raise Refused(404, "There is no such thing.")
        return int(found)

    def query(self, **changed: Any) -> str:
        """Return the query with some values changed, those that are empty left out; with its question mark."""
        kept = {k: cleaned(v, 200) for k, v in self.request.query_params.items()}
        pairs = {k: v for k, v in {**kept, **changed}.items() if v not in ("", None)}
        return f"?{urlencode(pairs)}" if pairs else ""

    def back(self, default: str) -> Response:
        """Return the way back to a page of ours that the form names."""
        wanted = self.form.get("back", "")
        is_ours = wanted.startswith("/") and not wanted.startswith("//") and "\\" not in wanted
        return RedirectResponse(cleaned(wanted, 500) if is_ours else default, status_code=303)

    def record(self, act: str, subject: str, detail: str = "") -> None:
        """Write the act into the audit log."""
        self.services.gate.audit(self.visitor, act, subject, detail)

    def page(self, template: str, *, status: int = 200, **values: Any) -> Response:
        """Return a rendered template."""
        return self.services.render(template, self.visitor, {"place": self.place, **values}, status)


Handler = Callable[[Ask], Response]


def _number(name: str, given: str, default: int | None, low: int, high: int) -> int:
    if given == "" and default is not None:
        return default
    digits = given.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20) or not low <= int(given) <= high:
        raise Refused(400, f"{name} is a whole number from {low} to {high}.")
    return int(given)


def endpoint(services: Services, handler: Handler, role: Role | None):
    """Return the ASGI endpoint of a handler: role, own form, then the handler on a thread.

    `role` None: for everybody, logged in or not.
    """

    async def answer(request: Request) -> Response:
        visitor: Visitor = request.state.visitor
        gate = services.gate
        if role is not None:
            gate.require(visitor, role)
        form: dict[str, str] = {}
        if request.method == "POST":
            form = await _form(request)
            given = form.get("csrf", request.headers.get("x-csrf", ""))
            gate.require_own_form(visitor, given, request.headers)
        ask = Ask(request, services, visitor, form, services.bulletin.number)
        return await run_in_threadpool(handler, ask)

    return answer


async def _form(request: Request) -> dict[str, str]:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise Refused(415, "A form is sent as application/x-www-form-urlencoded.")
    found: FormData = await request.form(max_files=0, max_fields=MOST_FIELDS)
    return {name: value for name, value in found.items() if isinstance(value, str)}


def wants_json(request: Request) -> bool:
    """Whether a refusal is for a program."""
    return request.url.path.startswith(("/api/", "/metrics", "/healthz", "/live"))


def as_json(value: Any, status: int = 200) -> Response:
    """Return JSON; no number in it is NaN or infinite."""
    return JSONResponse(value, status_code=status)
