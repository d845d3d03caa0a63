"""Tells others: webhook, MQTT, e-mail, a command; each with filters and a durable queue of its own.

Owns: what goes where, when it is tried again, when it is given up.
In: alerts as they are entered. Out: messages, at least once each, with an id to tell doubles by.
Imports: the agent, transport, tools.shared.
"""

from stillwatch.tools.station.tell.routing import Router
from stillwatch.tools.station.tell.teller import Teller, make_way
from stillwatch.tools.station.tell.ways import NotSent, Outgoing

__all__ = ["NotSent", "Outgoing", "Router", "Teller", "make_way"]
