"""Transport's error tree: ZeroMQ, msgpack and disk errors are translated into these at the edge.

Raised by every module of transport/; nothing above it needs to know zmq or msgpack.
"""


class TransportError(Exception):
    """Base of all transport errors."""


class EncodeError(TransportError):
    """A message breaks its own schema or its topic's size limit."""


class DecodeError(TransportError):
    """Bytes that are not a message: too long, malformed, of an unknown type or schema."""


class SchemaError(DecodeError):
    """A message of another major schema version: whole, but not for this version to read."""


class LogError(TransportError):
    """A record log cannot be opened, written or understood."""


class SecurityError(TransportError):
    """An endpoint or key would leave the agent open to strangers."""


class LinkError(TransportError):
    """A thin-link frame, preset or budget that cannot be used."""
