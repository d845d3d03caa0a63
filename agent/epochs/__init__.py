"""Feeds the learners an epoch at a time on a worker thread, and says when a model becomes active.

Owns: the table of learners (registry.py), the epoch buffers, the worker, what was told of an epoch.
In: rows, frame descriptors, thumbnails. Out: `Models`, `EpochReport`.
Imports: base, settings, learn.
"""

from stillwatch.epochs.models import Models
from stillwatch.epochs.registry import LEARNERS, PATCHES, SCENES, LearnerRow, ShownModel
from stillwatch.epochs.report import EpochExemplar, EpochModel, EpochReport
from stillwatch.epochs.schedule import Learners

__all__ = [
    "LEARNERS",
    "PATCHES",
    "SCENES",
    "EpochExemplar",
    "EpochModel",
    "EpochReport",
    "LearnerRow",
    "Learners",
    "Models",
    "ShownModel",
]
