"""The words for how rare something was: of visits, in what was counted, and no more than that.

Used by every command, page and notification that tells of an event. It must not extrapolate: what was never seen in
three minutes is told so, and not as one frame in 50,000.
"""

import math
from collections.abc import Mapping
from typing import Any

from stillwatch.transport.wire import EventKind

OFTEN = 3  # visits of a kind: from so many on a rate is told, fewer are told as they are
CERTAINTY = 0.95  # of the most often that something can be, by what was counted
MOST_RARE = 1e6  # one frame in so many: beyond it, it is no longer a measurement
_UNITS = ((86_400.0, "day"), (3_600.0, "hour"), (60.0, "minute"), (1.0, "second"))
_TIMES = {1: "once", 2: "twice"}


def how_rare(told: Mapping[str, Any]) -> str:
    """Return how rare an event is, in words; empty where rarity plays no part in what it is.

    Parameters
    ----------
    told : mapping
        kind, rarity, watched_s, judged, visits, alike, here, under the names of an alert's row (`alert_row`); what is
        absent or None was not told.
    """
    kind = EventKind(told.get("kind") or EventKind.NOVEL)
    watched_s, rarity = told.get("watched_s"), told.get("rarity")
    rarity = float(rarity) if rarity is not None and math.isfinite(rarity) else 0.0
    if kind not in (EventKind.NOVEL, EventKind.UNUSUAL_VIEW, EventKind.OTHER):
        return ""
    if not watched_s:  # by a sender that does not count, or a link that has no room for it
        return _one_frame_in(rarity)
    if kind is EventKind.UNUSUAL_VIEW:
        return f"never so before in {span(watched_s)}" if rarity >= watched_s else f"one look in {_digits(rarity)}"
    visits, alike, here = (_count(told, name) for name in ("visits", "alike", "here"))
    if visits < 0:
        return _of_frames(rarity, _count(told, "judged"), watched_s)
    if alike >= 0:
        return _of_kind(alike, visits, watched_s)
    if here > 0:
        return f"{here} {'visit' if here == 1 else 'visits'} to its place before, in {span(watched_s)}"
    return f"the first visit to its place in {span(watched_s)}"


def most_often(count: int, watched_s: float) -> str:
    """Return how often something can come at most that came `count` times in `watched_s`; empty where not known.

    The upper limit of a Poisson rate: of what never came, once in a third of the time (the rule of three).
    """
    if count < 0 or watched_s <= 0.0:
        return ""
    return f"once in {span(watched_s / upper_limit(count))} at most, with {CERTAINTY:.0%} certainty"


def upper_limit(count: int) -> float:
    """Return the mean under which a Poisson variable is `count` or less with a chance of 1 - CERTAINTY."""
    low, high = float(count), count + 10.0 + 5.0 * math.sqrt(count)
    for _ in range(60):
        mean = 0.5 * (low + high)
        terms = (i * math.log(mean) - mean - math.lgamma(i + 1.0) for i in range(count + 1))
        below = math.fsum(math.exp(term) for term in terms)
        low, high = (mean, high) if below > 1.0 - CERTAINTY else (low, mean)
    return 0.5 * (low + high)


def span(seconds: float) -> str:
    """Return a length of time in one unit, rounded: 3 minutes."""
    for size, name in _UNITS:
        if seconds >= 1.5 * size or name == "second":
            n = max(round(seconds / size), 1)
            return f"{n} {name}{'' if n == 1 else 's'}"
    raise AssertionError


def _count(told: Mapping[str, Any], name: str) -> int:
    value = told.get(name)
    return -1 if value is None else int(value)


def _of_kind(alike: int, visits: int, watched_s: float) -> str:
    if alike == 0:
        return f"never seen before in {span(watched_s)}"
    if alike < OFTEN:
        return f"seen {_TIMES[alike]} before in {span(watched_s)}"
    share = round((visits + 1) / (alike + 1))
    often = f"once in {span(watched_s / alike)}"
    return f"one visit in {share}, {often}" if share > 1 else often


def _of_frames(rarity: float, judged: int, watched_s: float) -> str:
    """Say how rare a frame is where nobody follows visits: no rarer than what was watched can tell."""
    if rarity <= 1.0:
        return ""
    if judged <= 0 or rarity >= judged:
        return f"never so new before in {span(watched_s)}"
    return f"so new once in {span(watched_s * rarity / judged)}"


def _one_frame_in(rarity: float) -> str:
    if rarity <= 1.0:
        return ""
    return "rarer than one frame in a million" if rarity >= MOST_RARE else f"one frame in {_digits(rarity)}"


def _digits(value: float) -> str:
    return f"{value:,.0f}".replace(",", " ")
