"""The live plane over ZeroMQ: publisher, subscriber, snapshots, commands, keys.

Owns: the sockets, last values for late joiners, who may connect.
In: messages. Out: messages elsewhere.
Imports: transport.base, transport.wire.
"""

from stillwatch.transport.live.connections import MAX_CONNECTIONS
from stillwatch.transport.live.control import (
    COMMANDS,
    MAX_REPLY_BYTES,
    MAX_REQUEST_BYTES,
    Command,
    ControlClient,
    Reply,
    Request,
)
from stillwatch.transport.live.endpoints import SharedContext, derived_endpoint, why_unreachable
from stillwatch.transport.live.many import AnyOf
from stillwatch.transport.live.publisher import Publisher
from stillwatch.transport.live.security import (
    ClientKeys,
    generate_keys,
    generate_link_key,
    load_client_keys,
    load_server_keys,
)
from stillwatch.transport.live.snapshot import PAGE_BYTES, Page, PageRequest
from stillwatch.transport.live.subscriber import Received, Subscriber
from stillwatch.transport.live.tracking import Gap

__all__ = [
    "SharedContext",
    "derived_endpoint",
    "why_unreachable",
    "AnyOf",
    "COMMANDS",
    "ClientKeys",
    "Command",
    "ControlClient",
    "Gap",
    "MAX_CONNECTIONS",
    "MAX_REPLY_BYTES",
    "MAX_REQUEST_BYTES",
    "PAGE_BYTES",
    "Page",
    "PageRequest",
    "Publisher",
    "Received",
    "Reply",
    "Request",
    "Subscriber",
    "generate_keys",
    "generate_link_key",
    "load_client_keys",
    "load_server_keys",
]
