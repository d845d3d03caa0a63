"""The command panel: what may be asked of an agent, and its answer.

Called by tools/station/page/app.py. Commands go by transport.live's control client, as `stillwatch control` sends them.
"""

import base64
from typing import Any

from starlette.responses import Response

from stillwatch.base import RealClock
from stillwatch.tools.station.access import Refused
from stillwatch.tools.station.ingest.pictures import safe_picture
from stillwatch.tools.station.page.asking import Ask
from stillwatch.tools.station.page.wording import cleaned
from stillwatch.transport.live import ControlClient
from stillwatch.transport.wire import MODELS, VISITS, TransportError

DEADLINE_S = 5.0
LONGEST_PICTURE_PX = 1280
NAMED = (*MODELS, VISITS)
# command, title, what it does, button, fields
PANELS: tuple[tuple[str, str, str, str, list[dict[str, Any]]], ...] = (
    ("set_alert_budget", "Alert rate",
     "How many alerts an hour a person may be called for. The agent raises or lowers its own threshold.",
     "Set the rate",
     [{"name": "alerts_per_hour", "text": "Alerts an hour", "type": "number", "value": 6, "min": 0.01, "max": 3600}]),
    ("request_exemplar", "Ask for a picture",
     "The best picture that the agent keeps of an exemplar, before any link made it smaller.",
     "Ask for it", []),
    ("flush", "End the epoch",
     "Let the agent learn now from what it has gathered, without waiting for the epoch to fill.",
     "End the epoch", []),
    ("label_component", "Name a component",
     "Your name for a part of what the agent has learnt, or for a kind of visits. It changes no model; alerts say it.",
     "Set the name",
     [{"name": "which", "text": "Of", "choices": [(name, name) for name in NAMED]},
      {"name": "component", "text": "Component", "type": "number", "value": 0, "min": 0, "max": 10**9},
      {"name": "label", "text": "Name", "type": "text", "value": ""}]),
    ("status", "Ask how it is", "Its counters and health at this moment.", "Ask how it is", []),
    ("snapshot", "Tell everything again", "Let the agent send its models, exemplars and status once more.",
     "Have it told again", []),
)  # fmt: skip


def show(ask: Ask) -> Response:
    """Show the panel."""
    return _page(ask, ask.agent(), None)


def send(ask: Ask) -> Response:
    """Send one command and show the answer."""
    agent = ask.agent()
    control = ask.services.control_of(agent)
    if control is None:
        raise Refused(409, "This agent's control endpoint is not known.")
    name, arguments = _arguments(ask)
    client = ControlClient(control.endpoint, clock=RealClock(), keys=control.keys)
    try:
        client.open()
        reply = client.request(name, arguments, timeout_s=DEADLINE_S)
    except TransportError as error:
        answer: dict[str, Any] = {"ok": False, "text": str(error), "rows": [], "picture": ""}
    else:
        answer = _answer(reply.ok, reply.error, reply.result, reply.attachment)
    finally:
        client.close()
    answer |= {"command": name.replace("_", " "), "picture_alt": f"What {agent} sent"}
    said = f"{arguments or ''} -> {'ok' if answer['ok'] else answer['text']}"
    ask.record(f"command {name}", agent, said.strip())
    return _page(ask, agent, answer)


def _page(ask: Ask, agent: str, answer: dict[str, Any] | None) -> Response:
    if ask.services.store.agent(agent) is None:
        raise Refused(404, "There is no such agent.")
    control = ask.services.control_of(agent)
    return ask.page(
        "commands.html",
        page="fleet",
        agent=agent,
        control="" if control is None else control.endpoint,
        deadline=int(DEADLINE_S),
        answer=answer,
        panels=_panels(ask, agent),
    )


def _panels(ask: Ask, agent: str) -> list[dict[str, Any]]:
    """Return PANELS, with the exemplars that this agent holds to choose from."""
    choices = [
        (row["exemplar"], f"exemplar {row['exemplar']}" + (f", {row['label']}" if row["label"] else ""))
        for row in ask.services.store.exemplars(agent)
    ]
    panels = []
    for command, title, text, button, fields in PANELS:
        panel = {"command": command, "title": title, "text": text, "button": button, "fields": fields, "is_off": ""}
        if command == "request_exemplar":
            panel["fields"] = [{"name": "id", "text": "Of", "choices": choices}] if choices else []
            panel["is_off"] = "" if choices else "No exemplar of this agent is known yet."
        panels.append(panel)
    return panels


def _arguments(ask: Ask) -> tuple[str, dict[str, Any]]:
    """Return the command and its arguments, checked; raise Refused."""
    name = ask.field("command")
    if name == "set_alert_budget":
        try:
            rate = float(ask.field("alerts_per_hour"))
        except ValueError:
            rate = 0.0
        if not 0.0 < rate <= 3600.0:
            raise Refused(400, "Alerts an hour are above 0 and at most 3,600.")
        return name, {"alerts_per_hour": rate}
    if name == "request_exemplar":
        return name, {"id": ask.field_number("id", 0, 2**62), "quality": 90, "longest_px": LONGEST_PICTURE_PX}
    if name == "label_component":
        which = ask.field("which")
        if which not in NAMED:
            raise Refused(400, f"A component is of one of: {', '.join(NAMED)}.")
        return name, {"which": which, "component": ask.field_number("component", 0, 2**62), "label": ask.field("label")}
    if name in ("flush", "status", "snapshot"):
        return name, {}
    raise Refused(400, "There is no such command on this page.")


def _answer(ok: bool, error: str, result: dict[str, Any], attachment: bytes) -> dict[str, Any]:
    rows = [(cleaned(str(k), 64).replace("_", " "), cleaned(_value(v), 300)) for k, v in sorted(result.items())]
    return {
        "ok": ok,
        "text": cleaned(error, 256) if not ok else "The agent carried it out.",
        "rows": rows,
        "picture": _safe(attachment),
    }


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k} {v}" for k, v in value.items())
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _safe(jpeg: bytes) -> str:
    """Return a peer's JPEG as an address that a page can show: decoded, bounded and encoded anew."""
    picture = safe_picture(jpeg, frame=-1, at_ns=0, boxes=[]) if jpeg else None
    return f"data:image/jpeg;base64,{base64.b64encode(picture.data).decode()}" if picture else ""
