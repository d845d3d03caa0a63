"""What a person sees in a browser, and what programs read: pages, live news, the JSON interface, metrics.

Owns: routes, templates, static files, how things are drawn and worded.
In: the store, the bulletin, the gate. Out: an ASGI application.
Imports: the agent, transport, tools.shared, tools.report.
"""

from stillwatch.tools.station.page.app import build_app
from stillwatch.tools.station.page.services import Services
from stillwatch.tools.station.page.views import Control

__all__ = ["Control", "Services", "build_app"]
