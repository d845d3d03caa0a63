"""What the station keeps, in SQLite or PostgreSQL: tables, migrations, queries, retention.

Owns: all SQL. In: what ingest heard, what people did. Out: rows as dicts; a `StoreError` with its cause.
Imports: the agent, transport.
"""

from stillwatch.tools.station.store.agents import MOST_WAITING
from stillwatch.tools.station.store.alerts import AlertFilter
from stillwatch.tools.station.store.claims import CLAIM_NS, Claims
from stillwatch.tools.station.store.connection import DAMAGED, FAILED, FAULTY, FULL, GONE, StoreError
from stillwatch.tools.station.store.heard import (
    FOLDER,
    LIVE,
    MOST_BOXES,
    MOST_EXEMPLARS,
    MOST_KINDS,
    PLANES,
    THIN,
    AlertHeard,
    AlertTaken,
    Picture,
)
from stillwatch.tools.station.store.packed import LEARNING, MOST_SCORES, REFUSED, ScoreRows, rows_of
from stillwatch.tools.station.store.scores import Sparks
from stillwatch.tools.station.store.store import Store, damage_of, open_store

__all__ = [
    "AlertFilter",
    "AlertHeard",
    "AlertTaken",
    "CLAIM_NS",
    "Claims",
    "DAMAGED",
    "FAILED",
    "FAULTY",
    "FOLDER",
    "FULL",
    "GONE",
    "LEARNING",
    "LIVE",
    "MOST_BOXES",
    "MOST_EXEMPLARS",
    "MOST_KINDS",
    "MOST_SCORES",
    "MOST_WAITING",
    "PLANES",
    "Picture",
    "REFUSED",
    "ScoreRows",
    "Sparks",
    "Store",
    "StoreError",
    "THIN",
    "damage_of",
    "open_store",
    "rows_of",
]
