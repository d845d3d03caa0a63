"""What the handlers share: the store, the bulletin, the gate, how pages are rendered.

Made by tools/station/page/app.py. It must not know any page.
"""

import contextlib
import hashlib
import pathlib
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import HTMLResponse, Response

from stillwatch.tools.report import PALETTE
from stillwatch.tools.station.access import Gate, Role, Visitor
from stillwatch.tools.station.bulletin import Bulletin
from stillwatch.tools.station.page.feed import Feed
from stillwatch.tools.station.page.views import Control, Views
from stillwatch.tools.station.page.wording import FILTERS, cleaned
from stillwatch.tools.station.store import Sparks, Store, StoreError

HERE = pathlib.Path(__file__).parent
LONGEST_TEXT = 100_000
SPARK_NS, SPARK_POINTS = 600 * 10**9, 60
PAGES = (
    ("fleet", "/", "Fleet", Role.SEE),
    ("alerts", "/alerts", "Alerts", Role.SEE),
    ("map", "/map", "Map", Role.SEE),
    ("notifications", "/notifications", "Notifications", Role.SEE),
    ("api", "/api", "API", Role.SEE),
    ("audit", "/audit", "Audit log", Role.ADMINISTER),
)


class Kept:
    """A value that is asked for often and may be some seconds old."""

    def __init__(self, ask: Callable[[], Any], seconds: float):
        self._ask, self._seconds = ask, seconds
        self._lock = threading.Lock()
        self._at, self._value = -1e9, None

    def get(self) -> Any:
        """Return the value, asked for again where it is too old; an older one to all who come meanwhile."""
        now = time.monotonic()
        if now - self._at > self._seconds and self._lock.acquire(blocking=self._at < 0):
            try:
                if time.monotonic() - self._at > self._seconds:
                    self._value, self._at = self._ask(), time.monotonic()
            finally:
                self._lock.release()
        return self._value

    def forget(self) -> None:
        """Let the next who asks have it anew."""
        self._at = -1e9


class Services:
    """What every handler gets with its request.

    Parameters
    ----------
    store : Store
    bulletin : Bulletin
    gate : Gate
    wall_ns : callable
        The station's clock.
    troubles : callable
        Returns what is to be said on every page, in words: a full disk, a store that does not answer.
    control_of : callable
        Returns where an agent takes commands, a `Control`, or None.
    add_agent : callable or None
        Lets the station hear another agent, by endpoint and path of its public key; None where the settings forbid it.
    remove_agent : callable or None
        Lets the station hear an agent no more and delete what it keeps of it; None where there is no hearing.
    channels : callable
        Returns the ways out: dicts of name, how.
    """

    def __init__(
        self,
        store: Store,
        bulletin: Bulletin,
        gate: Gate,
        *,
        wall_ns: Callable[[], int] = time.time_ns,
        troubles: Callable[[], list[str]] = list,
        control_of: Callable[[str], Control | None] = lambda agent: None,
        add_agent: Callable[[str, str], None] | None = None,
        remove_agent: Callable[[str], None] | None = None,
        channels: Callable[[], list[dict[str, str]]] = list,
    ):
        self.store, self.bulletin, self.gate, self.wall_ns = store, bulletin, gate, wall_ns
        self.troubles, self.control_of, self._channels = troubles, control_of, channels
        self.add_agent, self.remove_agent = add_agent, remove_agent
        self.feed, self.views = Feed(self), Views()
        self.static = _static_files()
        self.waiting = Kept(store.waiting_count, 0.5)
        self.agents = Kept(store.agents, 0.5)
        self.labels = Kept(store.labels, 2.0)
        sparks = Sparks(store, SPARK_NS, SPARK_POINTS)
        self.sparklines = Kept(lambda: sparks.lines(self.wall_ns()), 1.0)
        digest = hashlib.sha256(b"".join(body for body, _ in self.static.values())).hexdigest()
        self._templates = Environment(
            loader=FileSystemLoader(HERE / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=_shown,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._templates.filters.update(FILTERS)
        self._templates.globals["version"] = digest[:12]

    def warm_up(self) -> None:
        """Compile the templates and read what the fleet's page shows, so that the first who looks does not wait for it.

        A store that does not answer is told when somebody asks.
        """
        for name in self._templates.list_templates(extensions=["html"]):
            self._templates.get_template(name)
        with contextlib.suppress(StoreError):
            for kept in (self.agents, self.waiting, self.labels, self.sparklines):
                kept.get()

    def tell(self, kind: str, agent: str = "", id: int = 0) -> None:
        """Tell open pages of an act; what they count is counted anew."""
        for kept in (self.waiting, self.agents, self.labels):
            kept.forget()
        self.bulletin.post(kind, agent, id)

    def channels(self) -> list[dict[str, Any]]:
        """Return the ways out with what waits in each; those that the settings no longer name, too."""
        counts, faults = self.store.channel_counts(), self.store.channel_faults()
        named = {channel["name"]: channel["how"] for channel in self._channels()}
        nothing = {"waiting": 0, "dead": 0, "done": 0}
        return [
            {"name": name, "how": named.get(name, "not in the settings"), "fault": faults.get(name, "")}
            | nothing
            | counts.get(name, {})
            for name in sorted({*named, *counts})
        ]

    def render(self, template: str, visitor: Visitor, values: Mapping[str, Any], status: int) -> Response:
        """Return a template's page; `page` of `values` is what the navigation marks."""

        def csrf() -> Markup:
            return Markup('<input type="hidden" name="csrf" value="{}">').format(visitor.csrf)

        shown = {
            "page": "",
            "visitor": visitor,
            "csrf": csrf,
            "is_open": self.gate.is_open,
            "pages": [(key, address, text) for key, address, text, role in PAGES if visitor.may(role)],
            "place": self.bulletin.number,
            "waiting": self.waiting.get() if visitor.role else 0,
            "troubles": self.troubles() if visitor.role else [],
            **values,
        }
        return HTMLResponse(self._templates.get_template(template).render(shown), status_code=status)


def _shown(value: Any) -> Any:
    """Return a value as a template may show it: texts without control characters, whoever wrote them."""
    return cleaned(value, LONGEST_TEXT, strip=False) if type(value) is str else value


def _static_files() -> dict[str, tuple[bytes, str]]:
    """Return name -> (bytes, media type) of the few files that never change while the station runs."""
    style = PALETTE.encode() + (HERE / "static" / "station.css").read_bytes()
    return {
        "station.css": (style, "text/css; charset=utf-8"),
        "station.js": ((HERE / "static" / "station.js").read_bytes(), "text/javascript; charset=utf-8"),
        "icon.svg": ((HERE / "static" / "icon.svg").read_bytes(), "image/svg+xml"),
    }
