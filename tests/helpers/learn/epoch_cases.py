"""Learners of small frames, and the frames that they are fed: what tests of the epochs have in common."""

import numpy as np

from stillwatch.base.clock import RealClock
from stillwatch.epochs.buffer import FrameWords
from stillwatch.epochs.registry import LEARNERS
from stillwatch.epochs.schedule import Learners
from stillwatch.settings.reader import load_config

N_PATCHES, PATCH_DIMS, WORD_DIMS, FRAME_DIMS = 60, 6, 4, 5
SETTINGS = [
    "patches.memory=400", "scenes.memory=60", "learning.first_epoch_frames=4", "learning.epoch_frames=16",
    "learning.activation_delay_frames=3", "exemplars.k=3", "exemplars.block=8", "exemplars.validation=20",
]  # fmt: skip


def small_learners(*settings, clock=None, table=LEARNERS):
    """Return learners of such frames; whoever makes them closes them."""
    return Learners(
        load_config(None, [*SETTINGS, *settings]),
        clock or RealClock(),
        n_patch_dims=PATCH_DIMS,
        n_word_dims=WORD_DIMS,
        n_frame_dims=FRAME_DIMS,
        table=table,
    )


def words_of(number):
    """Twelve words of a frame, half of each of two looks."""
    rng = np.random.default_rng([6, number])
    rows = rng.normal(size=(12, WORD_DIMS)).astype(np.float32) + np.float32(6.0) * (np.arange(12)[:, None] % 2)
    return FrameWords(rows, np.ones(12, bool), lambda word: b"crop%d.%d" % (number, word))


def feed_noise(learners, start, stop):
    """Offer frames of noise; return the reports of the activations."""
    reports = []
    for i in range(start, stop):
        reports.append(learners.activate())
        rng = np.random.default_rng([5, i])
        rows = rng.normal(size=(N_PATCHES, PATCH_DIMS)).astype(np.float32)
        frame = rng.normal(size=FRAME_DIMS).astype(np.float32)
        learners.offer(i, i * 10**8, rows, np.ones(N_PATCHES, bool), words_of(i), frame, b"jpeg%d" % i)
    return [report for report in reports if report is not None]
