"""One frame through every stage, in the order of the data flow, and the messages that it leads to.

In: `Frame`, commands. Out: `Step`, messages, `RunCounts`.
Imports: every stage, transport.wire.
"""

from stillwatch.pipeline.counts import RunCounts
from stillwatch.pipeline.journal import JOURNALLED, apply
from stillwatch.pipeline.pipeline import Pipeline, Sink, Step

__all__ = ["JOURNALLED", "apply", "Pipeline", "RunCounts", "Sink", "Step"]
