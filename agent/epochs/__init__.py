"""Feeds the learners an epoch at a time on a worker thread, and says when a model becomes active.

In: rows, frame descriptors, thumbnails. Out: `Models`, `EpochReport`.
Imports: base, settings, learn.
"""

from stillwatch.epochs.buffer import unpack_payload
from stillwatch.epochs.schedule import EpochReport, Learners, Models

__all__ = ["EpochReport", "Learners", "Models", "unpack_payload"]
