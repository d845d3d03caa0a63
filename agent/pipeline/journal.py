"""Changes of what the pipeline computes: tied to a frame, recorded, and made again by a replay, the same way.

Called by process/commander.py (live) and by replays with the journal of a recording.
"""

from typing import Any

from stillwatch.base import Nav, UsageError
from stillwatch.pipeline.pipeline import Pipeline

JOURNALLED = ("flush", "set_alert_budget", "set_nav", "label_component", "set_share")


def apply(pipeline: Pipeline, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Carry out one journalled command; return what to answer. UsageError says why it cannot be done."""
    match name:
        case "flush":
            return {"patches": pipeline.learners.end_epoch()}
        case "set_alert_budget":
            pipeline.events.set_budget(float(arguments["alerts_per_hour"]))
            return {}
        case "set_nav":
            known = {key: float(value) for key, value in arguments.items() if value is not None}
            pipeline.nav = Nav(**known)
            return {}
        case "label_component":
            pipeline.label(arguments["which"], int(arguments["component"]), str(arguments["label"]))
            return {}
        case "set_share":
            pipeline.learners.share = float(arguments["share"])
            return {}
    raise UsageError(f"journal: command {name!r} is not one of {', '.join(JOURNALLED)}")
