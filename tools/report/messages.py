"""How kinds of messages that a report has no section of its own for are shown: the newest of each, field by field.

Called by tools/report/page.py. A kind that has no row here is shown all the same, under its name.
"""

from dataclasses import dataclass

import msgspec
import numpy as np

from stillwatch.tools.report import charts as c
from stillwatch.tools.report.data import ReportData
from stillwatch.transport.wire import messages as m


@dataclass(frozen=True, slots=True)
class MessageView:
    """How the newest message of a kind is shown."""

    title: str
    note: str = ""


VIEWS: dict[str, MessageView] = {}


def message_sections(data: ReportData, label: c.Label) -> str:
    """Show the newest message of every kind that the report does not fold into something else."""
    return "".join(
        _section(VIEWS.get(kind) or MessageView(kind.replace("_", " ").capitalize()), label(x), message)
        for kind, (x, message) in sorted(data.others.items())
    )


def _section(view: MessageView, when: str, message: m.Message) -> str:
    own = [name for name in message.__struct_fields__ if name not in m.Message.__struct_fields__]
    rows = "".join(
        f"<tr><td>{c.esc(name.replace('_', ' '))}</td><td>{c.esc(_text(getattr(message, name)))}</td></tr>"
        for name in own
    )
    note = f"{c.esc(view.note)} " if view.note else ""
    return (
        f"<h2>{c.esc(view.title)}</h2><p class='note'>{note}The newest, of {c.esc(when)}.</p>"
        f"<div class='scroll'><table>{rows}</table></div>"
    )


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return c.n_bytes(len(value))
    if isinstance(value, np.ndarray):
        return f"{value.dtype} of shape {value.shape}"
    if isinstance(value, float):
        return f"{value:.6g}"
    text = str(msgspec.to_builtins(value)) if isinstance(value, msgspec.Struct) else str(value)
    return text if len(text) <= 500 else text[:500] + " …"
