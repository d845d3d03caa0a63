"""Figures of an evaluation: ROC areas by frame and by event, events found, false alerts, delays.

Called by tools/evaluate/figures.py and tests. Pure functions of arrays: it must not run anything.
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


def event_auc(score: np.ndarray, truth: Truth, number: np.ndarray) -> float | None:
    """Return the ROC area of events against normal stretches, each by the highest score of its frames.

    score : (n,) float64, -inf for a frame without a label;  number : (n,) int64, clip numbers of the frames that
    count, rising. Stretches without events are cut into pieces as many frames long as the median event has here;
    shorter remainders are left out.
    """
    inside = truth.labels(number)
    events = [score[(number >= a) & (number <= b)] for a, b in truth.spans]
    events = [part for part in events if len(part)]
    if not events:
        return None
    length = int(np.median([len(part) for part in events]))
    normal = np.flatnonzero(np.diff(np.concatenate([[True], inside, [True]]).astype(int)))
    pieces = [
        score[start : start + length].max()
        for begin, end in zip(normal[::2], normal[1::2], strict=True)
        for start in range(begin, end - length + 1, length)
    ]
    highest = np.array([part.max() for part in events] + pieces)
    return roc_auc(highest, np.arange(len(highest)) < len(events))


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

    An event is found where an alert starts within [start - EARLY_FRAMES, end + tolerance]; any other alert is false,
    unless it lies so within a stretch that is not judged. Numbers are the clip's own.
    """
    left = set(alerts)
    first: list[int | None] = []
    for start, end in truth.spans:
        hits = [frame for frame in sorted(alerts) if start - EARLY_FRAMES <= frame <= end + truth.tolerance_frames]
        first.append(hits[0] if hits else None)
        left.difference_update(hits)
    for start, end in truth.unjudged:
        left = {frame for frame in left if not start - EARLY_FRAMES <= frame <= end + truth.tolerance_frames}
    return Found(tuple(first), tuple(sorted(left)))


def median_delay_s(found: Found, truth: Truth, number: np.ndarray, t_ns: np.ndarray) -> float | None:
    """Return the median time from an event's start to its alert in stream time, an early alert counting 0.

    number, t_ns : (n,) int64, the frames that were seen; the time of a first frame that was left out lies between.
    """
    at_s = np.interp([start for start, _ in truth.spans], number, t_ns / 1e9) if truth.spans else np.zeros(0)
    delays = [
        max(float(np.interp(alert, number, t_ns / 1e9) - start_s), 0.0)
        for start_s, alert in zip(at_s, found.first_alert, strict=True)
        if alert is not None
    ]
    return float(np.median(delays)) if delays else None
