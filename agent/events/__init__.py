"""The life of an alert: what begins, goes on, ends, returns and vanishes, within a budget.

Owns: the open event, the budget, the categories that were seen before, whether it may be relied on yet.
In: `Score`, `Verdict`, `Contents`, active models. Out: `EventRecord`s, `Certainty`.
Imports: base, settings, gate, novelty, contents, epochs, transport.wire.
"""

from stillwatch.events.certainty import Certainty, Unsure
from stillwatch.events.life import EventLife
from stillwatch.events.records import EventRecord

__all__ = ["Certainty", "EventLife", "EventRecord", "Unsure"]
