"""The one table of topics: message type, rate, size limit, queue, priority and time to live.

Read by codec, publisher, subscriber, the agent's sender and the thin link's scheduler. A new kind of message
starts here. It must not hold behaviour of any of them.
"""

from dataclasses import dataclass

from stillwatch.transport.wire import messages as m
from stillwatch.transport.wire.errors import EncodeError
from stillwatch.transport.wire.names import MODELS

KIB = 1024


@dataclass(frozen=True, slots=True)
class Topic:
    """One kind of message.

    Attributes
    ----------
    kind : str
    message : type of Message
    rate_hz : float
        Highest planned rate; 0 where messages come on change only.
    max_bytes : int
        Longest encoded payload; longer ones are neither sent nor decoded.
    queue : int
        Messages of this kind that may wait in the agent for the sender; the oldest is dropped.
    priority : int
        0 goes first on a thin link; alerts before all else.
    ttl_s : float
        Age at which an unsent message is worth nothing; 0: never.
    keep : int
        Last values kept for late joiners, one a key (`key_of`); 0: none.
    on_join : bool
        Also sent on the data socket to a new subscriber that does not ask for a snapshot.
    """

    kind: str
    message: type[m.Message]
    rate_hz: float
    max_bytes: int
    queue: int
    priority: int
    ttl_s: float
    keep: int = 0
    on_join: bool = False

    @property
    def last_value(self) -> bool:
        """Whether late joiners get this topic's last values."""
        return self.keep > 0


def _topic(
    message: type[m.Message],
    rate_hz: float,
    max_bytes: int,
    queue: int,
    priority: int,
    ttl_s: float,
    keep: int = 0,
    on_join: bool = False,
) -> tuple[str, Topic]:
    kind = m.kind_of(message)
    return kind, Topic(kind, message, rate_hz, max_bytes, queue, priority, ttl_s, keep, on_join)


TOPICS: dict[str, Topic] = dict([
    #      message          rate   max_bytes  queue prio   ttl_s  keep on_join
    _topic(m.Alert,          1.0,  20 * KIB,    32,   0,      0.0,  16),
    _topic(m.SourceChange,   0.0,   2 * KIB,    16,   1,   3600.0,   1, True),
    _topic(m.GateChange,     0.0,   2 * KIB,    16,   2,   3600.0,   1, True),
    _topic(m.LogNotice,      0.0,   2 * KIB,    16,   2,   3600.0,   8),
    _topic(m.Status,         1.0,   8 * KIB,     2,   3,     10.0,   1, True),
    _topic(m.Summary,        0.0,   4 * KIB,     2,   3,      0.0,   1),
    _topic(m.Model,          1.0, 512 * KIB,     4,   4,      0.0, len(MODELS), True),
    _topic(m.Exemplar,       1.0,  16 * KIB,    64,   5,      0.0, 256),
    _topic(m.Score,         30.0,   1 * KIB,    64,   6,      5.0),
    _topic(m.Scores,         2.0,   8 * KIB,    64,   6,      5.0),
    _topic(m.Clumps,         1.0, 256 * KIB,     2,   7,     60.0, len(MODELS)),
    _topic(m.VisitKind,      0.1,  16 * KIB,    48,   5,      0.0,  48),
    _topic(m.Encoder,        0.0, 256 * KIB,     2,   7,      0.0,   1, True),
])  # fmt: skip

MAX_PAYLOAD_BYTES = max(topic.max_bytes for topic in TOPICS.values())


def topic_bytes(agent_id: str, kind: str = "", schema: int = m.SCHEMA) -> bytes:
    """Return `v2/<agent>/<kind>/`, or the prefix of all of an agent's topics; the slash ends each name.

    Subscriptions match by prefix: without the terminator `cam1` would also get `cam10`. Raises EncodeError for an
    unknown kind.
    """
    if not kind:
        return f"v{schema}/{agent_id}/".encode()
    if kind not in TOPICS:
        raise EncodeError(f"topic kind {kind!r} is not one of {sorted(TOPICS)}")
    return f"v{schema}/{agent_id}/{kind}/".encode()


def key_of(message: m.Message) -> str:
    """Return what tells a topic's last values apart: the mixture, or the id of an alert, exemplar or kind of visits."""
    match message:
        case m.Model() | m.Clumps():
            return message.which
        case m.Alert() | m.Exemplar() | m.VisitKind():
            return str(message.id)
        case m.LogNotice():
            return message.code
    return ""
