"""The page as one ASGI application: the table of routes, what each needs, and what is answered where it may not be.

Served by the station. Every route stands in ROUTES with the role it needs: there is no other way in.
"""

import logging
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from stillwatch.base import scrub
from stillwatch.tools.station.access import Doorkeeper, Refused, Role
from stillwatch.tools.station.page import agents, alerts, api, commands, others
from stillwatch.tools.station.page.asking import Handler, as_json, endpoint, wants_json
from stillwatch.tools.station.page.services import Services
from stillwatch.tools.station.store import StoreError

_log = logging.getLogger("stillwatch.station")
SEE, ACT, ADMINISTER = Role.SEE, Role.ACT, Role.ADMINISTER
TITLES = {
    400: "That cannot be asked",
    401: "Please log in",
    403: "That is not allowed",
    404: "Not found",
    405: "That cannot be done here",
    409: "Not now",
    413: "Too long",
    415: "That is no form",
    429: "Too fast",
    500: "The station made a mistake",
    503: "The store does not answer",
}


@dataclass(frozen=True, slots=True)
class Way:
    """One route: method, path, the role it needs (None: nobody need log in), who answers."""

    method: str
    path: str
    role: Role | None
    handler: Handler


WAYS = (
    Way("GET", "/", SEE, agents.fleet),
    Way("GET", "/parts/fleet", SEE, agents.fleet_part),
    Way("GET", "/parts/alerts", SEE, alerts.part),
    Way("GET", "/parts/newest", SEE, alerts.newest),
    Way("GET", "/parts/waiting", SEE, alerts.waiting),
    Way("POST", "/agents/add", ADMINISTER, agents.add),
    Way("GET", "/agents/{agent}", SEE, agents.show),
    Way("POST", "/agents/{agent}/remove", ADMINISTER, agents.remove),
    Way("GET", "/agents/{agent}/now", SEE, agents.now),
    Way("GET", "/agents/{agent}/shot", SEE, agents.shot),
    Way("GET", "/agents/{agent}/strip", SEE, agents.strip),
    Way("GET", "/agents/{agent}/rest", SEE, agents.rest),
    Way("GET", "/agents/{agent}/day", SEE, agents.day),
    Way("GET", "/agents/{agent}/picture.jpg", SEE, others.agent_picture),
    Way("GET", "/agents/{agent}/view", SEE, others.view),
    Way("GET", "/agents/{agent}/view.jpg", SEE, others.view_picture),
    Way("GET", "/agents/{agent}/exemplars/{id}.jpg", SEE, others.exemplar_picture),
    Way("GET", "/agents/{agent}/kinds/{id}.jpg", SEE, others.kind_picture),
    Way("GET", "/agents/{agent}/commands", ACT, commands.show),
    Way("POST", "/agents/{agent}/commands", ACT, commands.send),
    Way("GET", "/alerts", SEE, alerts.index),
    Way("GET", "/alerts/{id}", SEE, alerts.show),
    Way("GET", "/alerts/{id}/part", SEE, alerts.story),
    Way("GET", "/alerts/{id}/picture.jpg", SEE, others.alert_picture),
    Way("GET", "/alerts/{id}/pictures/{picture}.jpg", SEE, others.picture),
    Way("GET", "/alerts/{id}/clip", SEE, others.clip),
    Way("POST", "/alerts/{id}/acknowledge", ACT, alerts.acknowledge),
    Way("POST", "/alerts/{id}/useful", ACT, alerts.judge),
    Way("POST", "/alerts/{id}/label", ACT, alerts.label),
    Way("POST", "/alerts/{id}/note", ACT, alerts.note),
    Way("POST", "/alerts/{id}/mute", ACT, alerts.mute),
    Way("POST", "/mutes/{id}/end", ACT, alerts.end_mute),
    Way("GET", "/map", SEE, others.map_page),
    Way("GET", "/notifications", SEE, others.notifications),
    Way("POST", "/notifications/{id}/again", ACT, others.again),
    Way("GET", "/audit", ADMINISTER, others.audit),
    Way("GET", "/api", SEE, api.page),
    Way("GET", "/api/v1/openapi.json", SEE, api.description),
    Way("GET", "/api/v1/agents", SEE, api.agents),
    Way("GET", "/api/v1/alerts", SEE, api.alerts),
    Way("GET", "/api/v1/alerts/{id}", SEE, api.alert),
    Way("GET", "/api/v1/scores", SEE, api.scores),
    Way("GET", "/api/v1/labels", SEE, api.labels),
    Way("GET", "/metrics", SEE, api.metrics),
    Way("GET", "/healthz", None, api.health),
    Way("GET", "/login", None, others.login_page),
    Way("POST", "/login", None, others.log_in),
    Way("POST", "/logout", SEE, others.log_out),
    Way("GET", "/static/{name}", None, others.static),
)


def build_app(services: Services) -> Callable[..., Any]:
    """Return the ASGI application; `services` hold the store, the bulletin and the gate."""
    routes = [Route(way.path, endpoint(services, way.handler, way.role), methods=[way.method]) for way in WAYS]
    routes.append(Route("/live", services.feed.answer, methods=["GET"]))

    def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, Refused)
        return _refusal(services, request, error.status, error.text, error.retry_after_s)

    def http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        texts = {404: "There is no such page.", 405: "This page answers to another method."}
        answer = _refusal(services, request, error.status_code, texts.get(error.status_code, str(error.detail)))
        answer.headers.update(error.headers or {})
        return answer

    def store_error(request: Request, error: Exception) -> Response:
        _log.warning("page %s: %s", request.url.path, scrub(str(error)))
        return _refusal(services, request, 503, "The store does not answer now. The station goes on trying.", 5.0)

    def fault(request: Request, error: Exception) -> Response:
        _log.error("page %s\n%s", request.url.path, scrub("".join(traceback.format_exception(error))))
        return _refusal(services, request, 500, "It is written in the station's log. The watching goes on.")

    app = Starlette(
        routes=routes,
        exception_handlers={Refused: refused, HTTPException: http_error, StoreError: store_error, Exception: fault},
    )
    return Doorkeeper(app, services.gate)


def _refusal(services: Services, request: Request, status: int, text: str, retry_after_s: float = 0.0) -> Response:
    visitor = request.state.visitor
    if wants_json(request):
        answer = as_json({"error": text}, status)
    elif status == 401 and request.method == "GET" and "x-part" not in request.headers:
        answer = RedirectResponse(f"/login?back={request.url.path}" if request.url.path != "/" else "/login", 303)
    else:
        values = {"title": TITLES.get(status, "That did not work"), "text": text}
        answer = services.render("problem.html", visitor, values, status)
    if retry_after_s:
        answer.headers["retry-after"] = str(int(retry_after_s) + 1)
    if status == 401 and wants_json(request):
        answer.headers["www-authenticate"] = "Bearer"
    return answer
