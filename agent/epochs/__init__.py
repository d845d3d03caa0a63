"""Feeds the learners an epoch at a time on a worker thread, and says when a model becomes active.

Owns: the table of learners (registry.py), the epoch buffers, the worker, what another process teaches (away.py), what
was told of an epoch.
In: rows, words, frame descriptors, pictures. Out: `Models`, `EpochReport`.
Imports: base, settings, learn.
"""

from stillwatch.epochs.away import Guests, Taught, Tutor
from stillwatch.epochs.buffer import FrameWords
from stillwatch.epochs.models import Models
from stillwatch.epochs.registry import CROP_BYTES, LEARNERS, PATCHES, SCENES, TOPICS, LearnerRow, ShownModel, Widths
from stillwatch.epochs.report import EpochExemplar, EpochModel, EpochReport, HeldClumps
from stillwatch.epochs.schedule import Learners

__all__ = [
    "CROP_BYTES",
    "LEARNERS",
    "PATCHES",
    "SCENES",
    "EpochExemplar",
    "EpochModel",
    "EpochReport",
    "FrameWords",
    "Guests",
    "HeldClumps",
    "LearnerRow",
    "Learners",
    "Models",
    "ShownModel",
    "TOPICS",
    "Taught",
    "Tutor",
    "Widths",
]
