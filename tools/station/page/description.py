"""What the JSON interface offers, said once: the OpenAPI description and the page for people are made of it.

Used by tools/station/page/api.py; tests hold it equal to the routes.
"""

from dataclasses import dataclass
from typing import Any

from stillwatch.base import __version__


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a request. `kind`: string, integer or boolean."""

    name: str
    text: str
    kind: str = "string"
    is_needed: bool = False
    is_path: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing that may be asked: its address, what it returns, what an item holds."""

    path: str
    text: str
    parameters: tuple[Parameter, ...]
    item: dict[str, str]
    is_paged: bool = True
    example: str = ""


_AGENT = Parameter("agent", "of this agent alone")
_LIMIT = Parameter("limit", "items a page, 1 to 500; 100 where it is left out", "integer")
_AFTER = Parameter("after", "the place that “next” of an earlier page names")
_SINCE = Parameter("since_ns", "from this time on, UTC in nanoseconds", "integer")
_UNTIL = Parameter("until_ns", "before this time, UTC in nanoseconds", "integer")

ALERT_ITEM = {
    "id": "integer", "agent": "string", "event": "integer", "run": "string", "kind": "string", "phase": "string",
    "severity": "number", "duration_s": "number", "start_frame": "integer", "picture_frame": "integer",
    "peak": "number?", "rarity": "number?", "how_rare": "string", "watched_s": "number?",
    "judged": "integer", "visits": "integer", "alike": "integer", "here": "integer",
    "x": "number?", "y": "number?", "component": "integer",
    "exemplar": "integer", "latitude": "number?", "longitude": "number?", "depth_m": "number?",
    "clock_is_wrong": "boolean", "is_muted": "boolean", "acknowledged_by": "string", "useful": "boolean?",
    "label": "string", "at": "string", "start": "string", "at_ns": "integer", "boxes": "array", "picture": "string?",
    "acknowledged": "string?", "page": "string",
}  # fmt: skip
OPERATIONS = (
    Operation(
        "/api/v1/agents",
        "The agents, by name.",
        (_LIMIT, _AFTER),
        {
            "agent": "string", "state": "string", "link": "string", "planes": "string", "learning": "number",
            "frames": "integer", "rate_hz": "number", "source_kind": "string", "source_uri": "string", "run": "string",
            "novelty": "number?", "rarity": "number?", "frame": "integer", "latitude": "number?",
            "longitude": "number?", "depth_m": "number?", "lost": "integer", "withheld": "integer",
            "trouble": "string", "heard": "string?",
        },
        example="/api/v1/agents",
    ),
    Operation(
        "/api/v1/alerts",
        "Alerts, newest first.",
        (
            _AGENT,
            Parameter("kind", "novel, new_category, returned, vanished, scene_change, or a later version's"),
            _SINCE,
            _UNTIL,
            Parameter("label", "with this label"),
            Parameter("useful", "judged useful (1) or not useful (0)", "boolean"),
            Parameter("waiting", "1: that nobody has acknowledged", "boolean"),
            _LIMIT,
            _AFTER,
        ),
        ALERT_ITEM,
        example="/api/v1/alerts?waiting=1&limit=10",
    ),
    Operation(
        "/api/v1/alerts/{id}",
        "One alert, with what people did about it.",
        (Parameter("id", "its number", "integer", is_needed=True, is_path=True),),
        {**ALERT_ITEM, "acts": "array"},
        is_paged=False,
    ),
    Operation(
        "/api/v1/scores",
        "One agent's scores, newest first.",
        (Parameter("agent", "the agent", is_needed=True), _SINCE, _UNTIL, _LIMIT, _AFTER),
        {
            "at_ns": "integer", "frame": "integer", "value": "number?", "rarity": "number?", "is_learning": "boolean",
            "is_refused": "boolean",
        },
    ),
    Operation(
        "/api/v1/labels",
        "Alerts that people labelled, newest first.",
        (_AGENT, _LIMIT, _AFTER),
        {
            "alert": "integer", "agent": "string", "event": "integer", "run": "string", "frame": "integer",
            "start": "string", "kind": "string", "label": "string", "useful": "boolean?",
        },
        example="/api/v1/labels",
    ),
)  # fmt: skip


def _schema(kind: str) -> dict[str, Any]:
    plain = kind.removesuffix("?")
    base: dict[str, Any] = {"type": [plain, "null"] if kind.endswith("?") else plain}
    return base | ({"items": {}} if plain == "array" else {})


def _response(operation: Operation) -> dict[str, Any]:
    item = {"type": "object", "properties": {name: _schema(kind) for name, kind in operation.item.items()}}
    if not operation.is_paged:
        return item
    paged = {"items": {"type": "array", "items": item}, "next": {"type": ["string", "null"]}}
    return {"type": "object", "properties": paged, "required": ["items", "next"]}


def openapi() -> dict[str, Any]:
    """Return the OpenAPI 3.1 description."""
    refusal = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
    refused = {"description": "refused: why", "content": {"application/json": {"schema": refusal}}}
    paths = {}
    for operation in OPERATIONS:
        content = {"application/json": {"schema": _response(operation)}}
        paths[operation.path] = {
            "get": {
                "summary": operation.text,
                "parameters": [
                    {
                        "name": p.name,
                        "in": "path" if p.is_path else "query",
                        "required": p.is_needed,
                        "description": p.text,
                        "schema": {"type": p.kind},
                    }
                    for p in operation.parameters
                ],
                "responses": {
                    "200": {"description": operation.text, "content": content},
                    **{str(status): refused for status in (400, 401, 403, 404, 429)},
                },
            }
        }
    return {
        "openapi": "3.1.0",
        "info": {"title": "Stillwatch station", "version": __version__},
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": "stillwatch"},
            }
        },
        "security": [{"token": []}, {"cookie": []}, {}],
    }
