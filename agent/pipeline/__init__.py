"""One frame through every stage, in the order of the data flow, and the messages that it leads to.

Owns: the stages and their order, one saved state of them all, the journal of changes.
In: `Frame`, commands. Out: `Step`, messages, `RunCounts`.
Imports: base, settings, gate, features, learn, epochs, novelty, describing, contents, events, transport.wire,
transport.mirror.
"""

from stillwatch.describing import Described, jpeg_thumbnail
from stillwatch.pipeline.counts import RunCounts
from stillwatch.pipeline.journal import JOURNALLED, apply
from stillwatch.pipeline.model_message import mixture_of
from stillwatch.pipeline.pipeline import Nowhere, Pipeline, Sink
from stillwatch.pipeline.step import Step

__all__ = [
    "JOURNALLED",
    "apply",
    "jpeg_thumbnail",
    "Described",
    "Nowhere",
    "Pipeline",
    "RunCounts",
    "Sink",
    "Step",
    "mixture_of",
]
