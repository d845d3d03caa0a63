"""What was in view over time, in bounded memory: shares of topics by stretch, when each was seen, where the camera was.

Filled by tools/report/data.py, read by tools/report/in_view.py. It must not know how anything is drawn.
"""

from dataclasses import dataclass, field

import numpy as np

from stillwatch.transport.wire import SHARES_STAND_NS
from stillwatch.transport.wire import messages as m

MAX_STRETCHES = 400
MAX_PLACES = 1000
SEEN = 0.01  # of a frame: less of a topic is not seen


@dataclass
class Stretch:
    """Sums of shares times seconds for which they stood."""

    seconds: float = 0.0
    sums: dict[int, float] = field(default_factory=dict)

    def merge(self, other: "Stretch") -> None:
        """Fold a neighbour into this one."""
        self.seconds += other.seconds
        for topic, total in other.sums.items():
            self.sums[topic] = self.sums.get(topic, 0.0) + total


class Shares:
    """Shares by stretches of equal length over an unknown span: when they run out, neighbours are merged.

    Attributes
    ----------
    first, last : dict of int to int
        When each topic was first and last seen, ns.
    places : list of (latitude, longitude, shares)
        Where the camera was, and the shares of the topics seen there, the largest first.
    """

    def __init__(self, width_ns: int = 100_000_000):
        self.first: dict[int, int] = {}
        self.last: dict[int, int] = {}
        self.places: list[tuple[float, float, dict[int, float]]] = []
        self._width_ns = width_ns
        self._stretches: dict[int, Stretch] = {}
        self._every = 1
        self._placed = 0
        self._last: tuple[int, dict[int, float]] | None = None  # told last, and when
        self._stood_s = 1.0  # that those before it stood for

    def add(self, x_ns: int, score: m.Score) -> None:
        """Take the shares of a frame; one without is nothing.

        Those told before stood until now: shares that stay nearly the same are not told each time.
        """
        if score.topic_ids is None or score.topic_shares is None or not len(score.topic_ids):
            return
        shares = dict(zip(score.topic_ids.tolist(), score.topic_shares.astype(float).tolist(), strict=True))
        self._hold(x_ns)
        self._last = x_ns, shares
        for topic in (topic for topic, share in shares.items() if share >= SEEN):
            self.first.setdefault(topic, x_ns)
            self.last[topic] = x_ns
        nav = score.nav
        if nav is not None and nav.latitude is not None and nav.longitude is not None:
            self._place(nav.latitude, nav.longitude, shares)

    def _hold(self, until_ns: int) -> None:
        """Let the shares told last stand until then, in each stretch for as long as they stood there."""
        if self._last is None:
            return
        since, shares = self._last
        until_ns = min(until_ns, since + SHARES_STAND_NS)
        self._stood_s = max(until_ns - since, 0) / 1e9
        while since < until_ns:
            stretch = self._at(since)
            end = min((since // self._width_ns + 1) * self._width_ns, until_ns)
            stretch.merge(_standing(shares, (end - since) / 1e9))
            since = end

    def _all(self) -> dict[int, Stretch]:
        """Return all stretches by their place; the newest shares stand for as long as those before them."""
        found = dict(self._stretches)
        if self._last is not None:
            x_ns, shares = self._last
            newest = _standing(shares, self._stood_s)
            if (known := found.get(x_ns // self._width_ns)) is not None:
                newest.merge(known)
            found[x_ns // self._width_ns] = newest
        return found

    def _at(self, x_ns: int) -> Stretch:
        while x_ns // self._width_ns >= MAX_STRETCHES:
            self._width_ns *= 2
            merged: dict[int, Stretch] = {}
            for index in sorted(self._stretches):
                merged.setdefault(index // 2, Stretch()).merge(self._stretches[index])
            self._stretches = merged
        return self._stretches.setdefault(x_ns // self._width_ns, Stretch())

    def _place(self, latitude: float, longitude: float, shares: dict[int, float]) -> None:
        if self._placed % self._every == 0:
            seen = sorted(((topic, share) for topic, share in shares.items() if share >= SEEN), key=lambda s: -s[1])
            self.places.append((latitude, longitude, dict(seen)))
            if len(self.places) >= MAX_PLACES:
                self.places, self._every = self.places[::2], 2 * self._every
        self._placed += 1

    def points(self) -> list[tuple[int, np.ndarray, np.ndarray]]:
        """Return (beginning in ns, ids, shares) of every stretch, in order of time."""
        return [
            (index * self._width_ns, np.array(list(stretch.sums), np.int64), np.array(list(stretch.sums.values())))
            for index, stretch in sorted(self._all().items())
        ]

    def mean(self) -> dict[int, float]:
        """Return the mean share of each topic over the time in which shares are known, the largest first."""
        whole = Stretch()
        for stretch in self._all().values():
            whole.merge(stretch)
        seconds = max(whole.seconds, 1e-9)
        return {topic: total / seconds for topic, total in sorted(whole.sums.items(), key=lambda item: -item[1])}


def _standing(shares: dict[int, float], seconds: float) -> Stretch:
    return Stretch(seconds, {topic: share * seconds for topic, share in shares.items()})
