"""Every table of the station's store, for SQLite and PostgreSQL alike; the queries are in the modules beside it.

Read by tools/station/store/store.py and the modules of queries. Times are UTC in nanoseconds (`…_ns`), on which the
station placed what it heard; `received_ns` is always of its own clock. What a column means changes by a migration only.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    false,
    text,
)

METADATA = MetaData()
_SERIAL = BigInteger().with_variant(Integer, "sqlite")  # SQLite counts by itself in INTEGER keys alone


def _id() -> Column:
    return Column("id", _SERIAL, primary_key=True, autoincrement=True)


def _ns(name: str, *, default: int | None = 0) -> Column:
    if default is None:
        return Column(name, BigInteger, nullable=True)
    return Column(name, BigInteger, nullable=False, server_default=text(str(default)))


def _text(name: str, default: str = "") -> Column:
    return Column(name, Text, nullable=False, server_default=default)


def _count(name: str, default: int = 0) -> Column:
    return Column(name, BigInteger, nullable=False, server_default=text(str(default)))


def _flag(name: str) -> Column:
    return Column(name, Boolean, nullable=False, server_default=false())


def _of_alert() -> Column:
    return Column("alert", _SERIAL, ForeignKey("alerts.id", ondelete="CASCADE"), nullable=False)


META = Table("meta", METADATA, Column("key", Text, primary_key=True), _text("value"))

AGENTS = Table(
    "agents",
    METADATA,
    Column("agent", Text, primary_key=True),
    _ns("added_ns"),
    _text("endpoint"),  # of its live plane, as it is known to this station
    _text("control"),
    _text("planes"),  # live, thin, folder: on which it was heard, with commas
    _text("link"),  # connecting, live, silent, thin, folder
    _text("link_detail"),
    _ns("heard_ns"),  # received: its newest message
    _text("state"),  # the source's, from its status
    _text("state_detail"),
    Column("learning", Float, nullable=False, server_default=text("0")),
    _count("frames"),
    Column("rate_hz", Float, nullable=False, server_default=text("0")),
    _text("source_kind"),
    _text("source_uri"),
    _text("run"),
    _count("epoch", -1),
    Column("novelty", Float),  # of the newest score
    Column("rarity", Float),
    _count("frame", -1),
    _ns("score_ns"),
    Column("latitude", Float),
    Column("longitude", Float),
    Column("depth_m", Float),
    Column("altitude_m", Float),
    Column("heading_deg", Float),
    _ns("position_ns"),
    Column("clock_off_s", Float),  # its wall clock less ours; null: not known
    _count("withheld"),  # alerts of it that came faster than the station takes
    _count("lost"),  # messages that did not arrive, less those that came after all
    _text("trouble"),  # what the station has to say about it, in words; empty: nothing
    _text("status", "{}"),  # the newest status message, JSON
)

AGENT_PICTURES = Table(  # the newest picture of each agent
    "agent_pictures",
    METADATA,
    Column("agent", Text, primary_key=True),
    _count("alert", -1),  # that it is of, or -1: an exemplar's
    _count("frame", -1),
    _ns("at_ns"),
    _text("boxes", "[]"),
    _count("width"),
    _count("height"),
    _text("mime", "image/jpeg"),
    Column("picture", LargeBinary, nullable=False),
)

ALERTS = Table(
    "alerts",
    METADATA,
    _id(),
    Column("agent", Text, nullable=False),
    Column("uid", Text, nullable=False),  # run:epoch:event of the live plane, thin:… while only a thin link told
    _count("event"),
    _count("event16"),  # modulo 65,536: all that a thin link says of it
    _text("run"),
    _count("epoch", -1),
    _text("kind", "novelty"),
    _text("phase", "new"),  # told last
    Column("severity", Float, nullable=False, server_default=text("0")),  # the highest told
    _ns("at_ns"),  # when it was first told, as placed: the order of every list
    _ns("start_ns"),
    _ns("told_ns"),  # when it was last told
    _ns("received_ns"),
    _ns("own_start_ns"),  # start and last telling by the agent's own clock, believed or not: both planes say the same
    _ns("own_told_ns"),
    Column("duration_s", Float, nullable=False, server_default=text("0")),
    _count("frame", -1),
    _count("start_frame", -1),
    Column("peak", Float),
    Column("rarity", Float),
    Column("watched_s", Float),  # what came before it, in counts: -1 where not told
    _count("judged", -1),
    _count("visits", -1),
    _count("alike", -1),
    _count("here", -1),
    Column("x", Float),
    Column("y", Float),
    _text("boxes", "[]"),  # JSON [[x0, y0, x1, y1], …], shares; of picture_frame
    _count("picture_frame", -1),
    _count("component", -1),
    _count("exemplar", -1),
    _text("history", "[]"),  # JSON, scores of the last frames
    Column("latitude", Float),
    Column("longitude", Float),
    Column("depth_m", Float),
    Column("altitude_m", Float),
    Column("heading_deg", Float),
    _text("planes"),
    _flag("clock_is_wrong"),  # the agent's clock could not be believed: placed by ours
    _flag("has_picture"),
    _flag("is_muted"),
    _text("clip"),  # path of a clip, where there is one
    _ns("acknowledged_ns"),
    _text("acknowledged_by"),
    Column("useful", Boolean),
    _text("label"),
    UniqueConstraint("agent", "uid", name="alerts_uid"),
    # Lists are in order of time, and what they are filtered by stands in the index: what does not fit is passed over
    # without a look at its row, so that a filter that nothing fits takes 0.2 s of a million alerts, not a second.
    Index("alerts_at", "at_ns", "id", "label", "useful"),
    Index("alerts_agent_at", "agent", "at_ns", "id", "kind", "label", "useful", "acknowledged_ns", "is_muted"),
    Index("alerts_agent_event", "agent", "event16", "at_ns"),
    Index("alerts_agent_waiting", "agent", "acknowledged_ns", "is_muted", "at_ns", "id"),
    Index("alerts_kind_at", "kind", "at_ns", "id", "agent", "label", "useful", "acknowledged_ns", "is_muted"),
    Index("alerts_kind_waiting", "kind", "acknowledged_ns", "is_muted", "at_ns", "id"),
    Index("alerts_waiting", "acknowledged_ns", "is_muted", "at_ns", "id", "agent", "kind", "label", "useful"),
    Index("alerts_label", "label", "at_ns", "id", "agent", "kind", "useful", "acknowledged_ns", "is_muted"),
    Index("alerts_useful", "useful", "at_ns", "id", "agent", "kind", "label", "acknowledged_ns", "is_muted"),
)

_HAS_PLACE = ALERTS.c.latitude.is_not(None)  # few alerts have one: the map looks at those alone
Index("alerts_place", ALERTS.c.at_ns, sqlite_where=_HAS_PLACE, postgresql_where=_HAS_PLACE)

ALERT_UPDATES = Table(  # every phase of every plane, each once
    "alert_updates",
    METADATA,
    _id(),
    _of_alert(),
    Column("plane", Text, nullable=False),
    Column("key", Text, nullable=False),  # what makes it the same message again: its sequence, or delivery number
    _text("phase"),
    _ns("at_ns"),
    _ns("received_ns"),
    _count("frame", -1),
    Column("severity", Float, nullable=False, server_default=text("0")),
    Column("rarity", Float),
    UniqueConstraint("alert", "plane", "key", name="alert_updates_key"),
)

ALERT_PICTURES = Table(
    "alert_pictures",
    METADATA,
    _id(),
    _of_alert(),
    _count("frame", -1),
    _ns("at_ns"),
    _text("phase"),
    _text("plane"),
    _text("boxes", "[]"),
    _count("width"),
    _count("height"),
    _text("mime", "image/jpeg"),
    Column("picture", LargeBinary, nullable=False),
    UniqueConstraint("alert", "plane", "frame", name="alert_pictures_frame"),
)

ALERT_EVENTS = Table(  # what people did with an alert
    "alert_events",
    METADATA,
    _id(),
    _of_alert(),
    _ns("at_ns"),
    _text("user"),
    _text("act"),  # acknowledge, note, useful, label, mute
    _text("text"),
    Index("alert_events_alert", "alert", "id"),
)

MUTES = Table(
    "mutes",
    METADATA,
    _id(),
    _text("agent"),  # empty: every one
    _text("kind"),
    _text("place"),  # a ninth of the picture, in words; empty: anywhere
    _ns("from_ns"),
    _ns("until_ns"),
    _text("user"),
    _text("why"),
    Index("mutes_until", "until_ns"),
)

SCORES = Table(  # a stretch of one agent's scores: what a day's strip needs is here, the scores are in score_data
    "scores",
    METADATA,
    _id(),
    Column("agent", Text, nullable=False),
    _ns("at_ns"),  # of the first
    _ns("end_ns"),
    _count("first_frame", -1),
    _count("last_frame", -1),
    _text("run"),
    _count("n"),
    _count("n_learning"),
    _count("n_refused"),
    Column("peak", Float),  # highest score
    Column("rarity", Float),  # at the peak, highest
    Column("typical", Float),  # median score
    Index("scores_strip", "agent", "at_ns", "end_ns", "n", "n_learning", "n_refused", "peak", "rarity", "typical"),
    Index("scores_at", "at_ns", "agent", "rarity"),
)

SCORE_DATA = Table(
    "score_data",
    METADATA,
    Column("scores", _SERIAL, ForeignKey("scores.id", ondelete="CASCADE"), primary_key=True),
    Column("data", LargeBinary, nullable=False),  # tools/station/store/packed.py
)

STATUSES = Table(  # one a minute
    "statuses",
    METADATA,
    Column("agent", Text, primary_key=True),
    Column("at_ns", BigInteger, primary_key=True),
    Column("rate_hz", Float),
    Column("temperature_c", Float),
    Column("frame_age_s", Float),
    _count("rss_bytes"),
    Column("cpu_seconds", Float),
    Column("disk_free_bytes", BigInteger),
    _count("frames"),
    _text("state"),
)

MODELS = Table(
    "models",
    METADATA,
    Column("agent", Text, primary_key=True),
    Column("kind", Text, primary_key=True),  # model, clumps
    Column("which", Text, primary_key=True),
    _ns("at_ns"),
    _ns("received_ns"),
    _count("n_components"),
    Column("payload", LargeBinary, nullable=False),  # the whole message, as transport.wire encodes it
)

EXEMPLARS = Table(
    "exemplars",
    METADATA,
    Column("agent", Text, primary_key=True),
    Column("role", Text, primary_key=True),
    Column("exemplar", BigInteger, primary_key=True),
    _count("component", -1),
    _count("frame", -1),
    _ns("at_ns"),
    Column("share", Float, nullable=False, server_default=text("0")),
    _text("label"),
    _text("run"),  # that told it last
    _count("width"),
    _count("height"),
    Column("picture", LargeBinary),
    Index("exemplars_id", "agent", "exemplar"),
)

KINDS = Table(  # of visits under a fixed camera
    "kinds",
    METADATA,
    Column("agent", Text, primary_key=True),
    Column("kind", BigInteger, primary_key=True),
    _count("count"),
    _ns("first_ns"),
    _ns("last_ns"),
    Column("watched_s", Float, nullable=False, server_default=text("0")),
    _text("label"),
    _text("run"),  # that told it last
    _count("frame", -1),
    Column("picture", LargeBinary),
)

GAPS = Table(
    "gaps",
    METADATA,
    _id(),
    Column("agent", Text, nullable=False),
    _text("plane"),
    _text("kind"),
    _ns("received_ns"),
    _count("first"),
    _count("last"),
    Index("gaps_agent", "agent", "id"),
)

NOTICES = Table(  # an agent's notices and changes of state, and what the station says of it
    "notices",
    METADATA,
    _id(),
    Column("agent", Text, nullable=False),
    _ns("at_ns"),
    _ns("received_ns"),
    _text("level", "info"),
    _text("code"),
    _text("text"),
    _count("count", 1),
    Index("notices_agent", "agent", "id"),
    Index("notices_at", "agent", "at_ns"),
)

FOLDERS = Table(  # run folders and recordings that were read
    "folders",
    METADATA,
    Column("path", Text, primary_key=True),
    _text("agent"),
    _text("run"),
    _ns("read_ns"),
    _count("messages"),
    _count("unreadable"),
    _text("signature"),  # of the files, to see that they grew
    _text("trouble"),
)

USERS = Table(
    "users",
    METADATA,
    Column("name", Text, primary_key=True),
    _text("password"),
    _text("role"),
    Column("created_s", Float, nullable=False, server_default=text("0")),
)

SESSIONS = Table(
    "sessions",
    METADATA,
    Column("digest", Text, primary_key=True),
    Column("user", Text, nullable=False),
    _text("kind", "cookie"),
    Column("created_s", Float, nullable=False),
    Column("used_s", Float, nullable=False),
    Column("expires_s", Float, nullable=False),
    Index("sessions_user", "user"),
)

AUDIT = Table(
    "audit",
    METADATA,
    _id(),
    Column("wall_s", Float, nullable=False),
    _text("user"),
    _text("address"),
    _text("act"),
    _text("subject"),
    _text("detail"),
)

NOTIFICATIONS = Table(
    "notifications",
    METADATA,
    _id(),
    Column("uid", Text, nullable=False),  # what the receiver tells doubles by
    Column("channel", Text, nullable=False),
    _count("alert"),
    _text("agent"),
    _text("phase"),
    _text("body", "{}"),  # JSON
    _ns("created_ns"),
    _ns("due_ns"),
    _count("tries"),
    _text("state", "waiting"),  # waiting, dead, done
    _text("fault"),
    UniqueConstraint("channel", "uid", name="notifications_uid"),
    Index("notifications_due", "state", "channel", "due_ns"),
)
