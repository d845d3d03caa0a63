"""Scores as strips, sparklines and single frames.

Used by tools/station/page. What is drawn of a day comes from the stretches' summaries alone; only a short time is
unpacked frame by frame.
"""

from typing import Any

import numpy as np
from sqlalchemy import Integer, cast, func, select

from stillwatch.tools.station.store.connection import Connected
from stillwatch.tools.station.store.packed import LEARNING, REFUSED, ScoreRows, unpack
from stillwatch.tools.station.store.tables import SCORE_DATA, SCORES

OVERLAP = 2000  # numbers asked for again: of several stations, a lower one may be entered after a higher one
MOST_STRETCHES = 400  # that are unpacked for one answer


class ScoreQueries(Connected):
    """Reads scores."""

    def stretches_since(self, from_ns: int, after: int = 0) -> list[tuple[int, str, int, float | None]]:
        """Return (id, agent, start, highest rarity or None) of each stretch that began since then, of any agent, and
        was entered after the stretch `after`."""
        c = SCORES.c
        query = select(c.id, c.agent, c.at_ns, c.rarity).where(c.at_ns >= from_ns)
        if after:  # few are new: they are found by number, not by looking through all of the time
            query = select(c.id, c.agent, c.at_ns, c.rarity).where(c.id > after)
        with self.reading() as connection:
            return [(row[0], row[1], row[2], row[3]) for row in connection.execute(query) if row[2] >= from_ns]

    def score_strip(self, agent: str, from_ns: int, to_ns: int, n: int) -> list[dict[str, Any]]:
        """Return a time in at most `n` equal parts, those with scores alone, oldest first.

        Each has at_ns, end_ns (of its first and last score), n, n_learning, n_refused, peak and rarity (highest, or
        None), typical (mean of the stretches' medians, or None).
        """
        c = SCORES.c
        width = max((to_ns - from_ns) // n, 1)
        part = (c.at_ns - from_ns) // width
        query = select(
            func.min(c.at_ns).label("at_ns"),
            func.max(c.end_ns).label("end_ns"),
            cast(func.sum(c.n), Integer).label("n"),
            cast(func.sum(c.n_learning), Integer).label("n_learning"),
            cast(func.sum(c.n_refused), Integer).label("n_refused"),
            func.max(c.peak).label("peak"),
            func.max(c.rarity).label("rarity"),
            func.avg(c.typical).label("typical"),
        ).where(c.agent == agent, c.at_ns.between(from_ns, to_ns))
        return self.rows(query.group_by(part).order_by(part))

    def scores(self, agent: str, from_ns: int, to_ns: int, *, most: int = 2000) -> list[dict[str, Any]]:
        """Return single scores of a time, oldest first: frame, at_ns, value, rarity (or None), is_learning, is_refused.

        Of more than `most`, the newest.
        """
        c = SCORES.c
        joined = SCORES.join(SCORE_DATA, SCORE_DATA.c.scores == c.id)
        query = select(SCORE_DATA.c.data).select_from(joined)
        query = query.where(
            c.agent == agent, c.at_ns <= to_ns, c.at_ns >= from_ns - 120_000_000_000, c.end_ns >= from_ns
        )
        found: list[dict[str, Any]] = []
        for row in self.rows(query.order_by(c.at_ns.desc()).limit(MOST_STRETCHES)):
            try:
                found = _plain(unpack(row["data"]), from_ns, to_ns) + found
            except ValueError:
                continue  # a stretch that is damaged hides no other
            if len(found) >= most:
                break
        return found[-most:]

    def score_days(self, agent: str) -> tuple[int, int]:
        """Return the times of an agent's first and last score, (0, 0) without one."""
        query = select(func.min(SCORES.c.at_ns), func.max(SCORES.c.at_ns)).where(SCORES.c.agent == agent)
        with self.reading() as connection:
            first, last = connection.execute(query).one()
        return (0, 0) if first is None else (int(first), int(last))


class Sparks:
    """The highest rarities of the last minutes of every agent: read once, then only what was entered since.

    One thread at a time asks.
    """

    def __init__(self, store: ScoreQueries, span_ns: int, n: int):
        self._store, self._span_ns, self._n = store, span_ns, n
        self._begun = store.begun
        self._known: dict[int, tuple[str, int, float | None]] = {}  # by number: agent, start, highest rarity
        self._newest = self._asked_ns = 0

    def lines(self, now_ns: int) -> dict[str, list[float | None]]:
        """Return for every agent with scores in the time the highest rarity in each of the parts, None where nothing
        was scored."""
        from_ns = now_ns - self._span_ns
        if self._begun != self._store.begun:  # its numbers are counted from one again
            self._begun, self._asked_ns, self._newest, self._known = self._store.begun, 0, 0, {}
        is_lately = now_ns - self._asked_ns < self._span_ns
        after = max(self._newest - OVERLAP, 0) if is_lately else 0  # else more is new than the time holds
        self._asked_ns = now_ns
        for number, agent, at_ns, rarity in self._store.stretches_since(from_ns, after):
            self._known[number] = agent, at_ns, rarity
            self._newest = max(self._newest, number)
        self._known = {number: stretch for number, stretch in self._known.items() if stretch[1] >= from_ns}
        width = max(self._span_ns // self._n, 1)
        found: dict[str, list[float | None]] = {}
        for agent, at_ns, rarity in self._known.values():
            line = found.setdefault(agent, [None] * self._n)
            part = min((at_ns - from_ns) // width, self._n - 1)
            known = line[part]
            if rarity is not None and (known is None or rarity > known):
                line[part] = rarity
        return found


def _plain(rows: ScoreRows, from_ns: int, to_ns: int) -> list[dict[str, Any]]:
    inside = np.flatnonzero((rows.times >= from_ns) & (rows.times <= to_ns))
    columns = (rows.frames, rows.times, rows.values, rows.rarities, rows.flags)
    return [
        {
            "frame": frame,
            "at_ns": at_ns,
            "value": _known(value),
            "rarity": _known(rarity),
            "is_learning": bool(flags & LEARNING),
            "is_refused": bool(flags & REFUSED),
        }
        for frame, at_ns, value, rarity, flags in zip(*(column[inside].tolist() for column in columns), strict=True)
    ]


def _known(value: float) -> float | None:
    return None if value != value else value


def summary_of(rows: ScoreRows) -> dict[str, Any]:
    """Return what SCORES keeps of a stretch, without its agent and run."""
    values, rarities = rows.values[np.isfinite(rows.values)], rows.rarities[np.isfinite(rows.rarities)]
    return {
        "at_ns": int(rows.times[0]),
        "end_ns": int(rows.times[-1]),
        "first_frame": int(rows.frames[0]),
        "last_frame": int(rows.frames[-1]),
        "n": len(rows),
        "n_learning": int(np.count_nonzero(rows.flags & LEARNING)),
        "n_refused": int(np.count_nonzero(rows.flags & REFUSED)),
        "peak": float(values.max()) if len(values) else None,
        "rarity": float(rarities.max()) if len(rarities) else None,
        "typical": float(np.median(values)) if len(values) else None,
    }
