"""Figures of an evaluation: ROC areas by frame and by event, events found, false alerts, delays.

Called by tools/evaluate/command.py and tests. Pure functions of arrays: it must not run anything.
"""

from dataclasses import dataclass

import numpy as np

from stillwatch.tools.evaluate.truth import Truth

EARLY_FRAMES = 8  # an alert may come this early: shadows lead what throws them


def roc_auc(score: np.ndarray, positive: np.ndarray) -> float | None:
    """Return the chance that a positive scores above a negative, ties counting half; None without both kinds.

    score : ndarray of shape (n,), finite;  positive : (n,) bool
    """
    n_positive = int(positive.sum())
    n_negative = len(positive) - n_positive
    if not n_positive or not n_negative:
        return None
    _, place, counts = np.unique(score, return_inverse=True, return_counts=True)
    rank = (np.cumsum(counts) - 0.5 * (counts - 1))[place]
    return float((rank[positive].sum() - 0.5 * n_positive * (n_positive + 1)) / (n_positive * n_negative))


def event_auc(score: np.ndarray, truth: Truth, first: int) -> float | None:
    """Return the ROC area of events against normal stretches, each by its highest score from frame `first` on.

    Stretches without events are cut into pieces of the median event's length; shorter remainders are left out.
    """
    spans = [(max(a, first), b) for a, b in truth.spans if b >= first and a < len(score)]
    if not spans:
        return None
    length = int(np.median([b - a + 1 for a, b in truth.spans]))
    inside = truth.labels(len(score))
    normal = np.flatnonzero(np.diff(np.concatenate([[True], inside[first:], [True]]).astype(int))) + first
    pieces = [
        score[start : start + length].max()
        for begin, end in zip(normal[::2], normal[1::2], strict=True)
        for start in range(begin, end - length + 1, length)
    ]
    events = [score[a : b + 1].max() for a, b in spans]
    positive = np.arange(len(events) + len(pieces)) < len(events)
    return roc_auc(np.array(events + pieces), positive)


@dataclass(frozen=True, slots=True)
class Found:
    """Which events were found: alert frame by event, None where missed; and the alerts that belong to none."""

    first_alert: tuple[int | None, ...]
    false_alerts: tuple[int, ...]

    @property
    def n_found(self) -> int:
        return sum(alert is not None for alert in self.first_alert)


def match(alerts: list[int], truth: Truth) -> Found:
    """Match alerts (frame numbers at which they were raised) with events.

    An event is found where an alert starts within [start - EARLY_FRAMES, end + tolerance]; any other alert is false.
    """
    left = set(alerts)
    first: list[int | None] = []
    for start, end in truth.spans:
        hits = [frame for frame in sorted(alerts) if start - EARLY_FRAMES <= frame <= end + truth.tolerance_frames]
        first.append(hits[0] if hits else None)
        left.difference_update(hits)
    return Found(tuple(first), tuple(sorted(left)))


def median_delay_s(found: Found, truth: Truth, t_ns: np.ndarray) -> float | None:
    """Return the median time from an event's start to its alert in stream time, an early alert counting 0."""
    delays = [
        max(int(t_ns[alert] - t_ns[start]), 0) / 1e9
        for (start, _), alert in zip(truth.spans, found.first_alert, strict=True)
        if alert is not None
    ]
    return float(np.median(delays)) if delays else None
