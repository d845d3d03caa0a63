"""What kinds of visits come, how often and where: the thirtieth car is counted, the first person is told.

Called by agent/novelty/visits/visits.py with every visit that is over. It must not know frames.
"""

from dataclasses import dataclass

import cv2
import numpy as np

from stillwatch.base import Recorded, State, record_bytes, record_state, saved, saved_array
from stillwatch.novelty.rules import (
    ALIKE,
    COARSE_COLUMNS,
    COARSE_ROWS,
    KIND_PRIOR_S,
    LEAST_KIND_VISITS,
    LEAST_LOOK_UNIT,
    LEAST_VARIANCE,
    LEAST_VISITS,
    LOOK_MEMORY,
    MAX_KINDS,
    NEWEST_VISITS,
    NS,
    OUTSTANDING,
    OUTSTANDING_SHARE,
    RECENT_VISITS,
    STRANGE_MEMORY,
    UNALIKE,
)
from stillwatch.novelty.visits.sightings import squared_distances

_COLUMNS = ("id", "count", "first_ns", "last_ns")  # of a kind, in the order of `Kind`
_RECENTLY = 1.0  # second: less was not watched


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of visits. id: stable. count: visits. first_ns, last_ns: stream time of the first and last one's end."""

    id: int
    count: int
    first_ns: int
    last_ns: int


@dataclass
class _Table:
    """One row for each kind, in columns of fixed size, and what all visits share.

    id: -1 in a free row. count: visits, all; recent: with half-lives. mean: of their looks. places: how many went
    there. newest_ns: ends of the last visits, the oldest first, -1 before there were so many. part: mean of their
    looks while they were not seen whole, of part_n visits. spread: sum of the logarithms of a look's variance within
    visits, of spread_n visits, in part and whole. lately: kinds of the last visits, -1 where nobody knows; n_lately:
    of how many. strange: distances of the last visits from the nearest kind when they came, -1 where there was none.
    passed: how many visits went where, those included whose kind nobody knows; n_passed: how many there were.
    watched_s: seconds, with half-lives.
    """

    mean: np.ndarray
    part: np.ndarray
    spread: np.ndarray
    id: np.ndarray = saved_array((MAX_KINDS,), np.int64, fill=-1, low=-1)
    count: np.ndarray = saved_array((MAX_KINDS,), np.int64, low=0)
    recent: np.ndarray = saved_array((MAX_KINDS,), np.float64, low=0.0)
    first_ns: np.ndarray = saved_array((MAX_KINDS,), np.int64, low=0)
    last_ns: np.ndarray = saved_array((MAX_KINDS,), np.int64, low=0)
    newest_ns: np.ndarray = saved_array((MAX_KINDS, NEWEST_VISITS), np.int64, fill=-1, low=-1)
    part_n: np.ndarray = saved_array((MAX_KINDS,), np.int64, low=0)
    spread_n: np.ndarray = saved_array((2,), np.float64, low=0.0)
    places: np.ndarray = saved_array((MAX_KINDS, COARSE_ROWS, COARSE_COLUMNS), np.float64, low=0.0)
    lately: np.ndarray = saved_array((RECENT_VISITS,), np.int64, fill=-1, low=-1)
    strange: np.ndarray = saved_array((STRANGE_MEMORY,), np.float64, fill=-1, low=-1)
    passed: np.ndarray = saved_array((COARSE_ROWS, COARSE_COLUMNS), np.float64, low=0.0)
    n_passed: int = saved(0, low=0)
    next_id: int = saved(0, low=0)
    n_lately: int = saved(0, low=0, high=RECENT_VISITS)
    watched_s: float = saved(0.0, low=0.0)
    t_ns: int = saved(-1, low=-1)


class Kinds(Recorded):
    """The kinds of visits to one place: running means of looks, with counts, times and places.

    Looks are compared in units learnt from the visits themselves: how much one visit's look varies from frame to
    frame. A visit is of the kind it is nearest to, if it is nearer than ALIKE such units.

    Parameters
    ----------
    n_dims : int
        Of a look.
    halflife_s : float
        Of how often a kind comes.
    usual_per_hour : float
        Visits: a kind that comes so often is usual. 0: one visit makes a kind usual; infinity: none ever is.
    """

    _where = "kinds of visits"

    def __init__(self, n_dims: int, halflife_s: float, usual_per_hour: float):
        self._halflife_s, self._usual_per_hour = halflife_s, usual_per_hour
        self._enough = LEAST_KIND_VISITS if usual_per_hour > 0.0 else 1
        self._table = self._empty(n_dims)

    @staticmethod
    def _empty(n_dims: int) -> _Table:
        means = np.zeros((2, MAX_KINDS, n_dims))
        return _Table(mean=means[0], part=means[1], spread=np.zeros((2, n_dims)))

    def reset(self) -> None:
        """Forget everything: the camera has another view. Ids are not used again."""
        next_id = self._table.next_id
        self._table = self._empty(self._table.spread.shape[1])
        self._table.next_id = next_id

    @property
    def kinds(self) -> list[Kind]:
        """Every kind that is remembered, the most frequent first."""
        return _kinds_of(record_state(self._table))

    def unit(self, whole: bool = True) -> np.ndarray:
        """How much the look of one visit, whole or in parts, varies from frame to frame, (n_dims,) float64."""
        table, view = self._table, int(whole)
        return np.sqrt(np.exp(table.spread[view] / max(table.spread_n[view], 1e-9))) + LEAST_LOOK_UNIT

    def watch(self, t_ns: int) -> None:
        """Let time pass, up to stream time `t_ns`."""
        table = self._table
        elapsed_s = min(max(t_ns - table.t_ns, 0) / NS, _RECENTLY) if table.t_ns >= 0 else 0.0
        kept = 0.5 ** (elapsed_s / self._halflife_s)
        table.t_ns = t_ns
        table.watched_s = table.watched_s * kept + elapsed_s
        table.recent *= kept

    # -- what is told of a visit -----------------------------------------------------------------------------

    def expected(self, cell: tuple[int, int], look: np.ndarray | None = None) -> float:
        """Return how likely one who was not seen whole yet is of a usual kind, 0 to 1, by who else came to the place.

        The lower of two shares, of all visits to the place and of the last visits anywhere, and doubted twice.

        look : ndarray of shape (n_dims,), of what was seen: who looks like no usual kind in part is of none
        """
        table = self._table
        often = np.maximum(self._per_hour(table.recent), self._per_hour_lately(np.arange(MAX_KINDS)))
        usual = (table.count >= self._enough) & (often >= self._usual_per_hour)
        here = float(table.places[usual, cell[0], cell[1]].sum())
        lately = table.lately[RECENT_VISITS - table.n_lately :]
        of_usual = float(np.isin(lately, table.id[usual]).sum()) / (len(lately) + 1.0)
        share = min(here / (max(float(table.passed[cell]), here) + 1.0), of_usual)
        share = 1.0 - (1.0 - share) ** 2
        compared = usual & (table.part_n > 0)
        if look is None or not compared.any() or table.spread_n[0] <= 0.0:
            return share
        nearest = squared_distances(look, table.part[compared], self.unit(whole=False), whole=False).min()
        return share * _alike(np.sqrt(nearest))

    def judge(self, look: np.ndarray, cell: tuple[int, int]) -> tuple[float, float]:
        """Return how usual and how strange a look is at a place, each 0 to 1.

        look : ndarray of shape (n_dims,), of a visit seen whole;  cell : row and column of the coarse grid
        """
        table = self._table
        rows, distances = self._distances(look)
        if not len(rows) or table.spread_n[1] <= 0.0:
            return 0.0, 0.0
        came = np.minimum(table.recent[rows], table.places[rows, cell[0], cell[1]])
        like_it = float(_alike(distances) @ came)
        enough = min(like_it / self._enough, 1.0)
        alike = rows[distances <= ALIKE]
        often = max(self._per_hour(like_it), float(self._per_hour_lately(alike).max(initial=0.0)))
        often = min(often / max(self._usual_per_hour, 1e-9), 1.0)
        usual = enough * often**2
        return usual, self._strange(float(distances.min()))

    def count_alike(self, look: np.ndarray) -> tuple[int, int]:
        """Return id and visits so far of the kind that a look, (n_dims,), is of; -1 and 0 where it is of none."""
        table = self._table
        rows, distances = self._distances(look)
        if not len(rows) or table.spread_n[1] <= 0.0 or distances.min() > ALIKE:
            return -1, 0
        row = rows[distances.argmin()]
        return int(table.id[row]), int(table.count[row])

    def _distances(self, look: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows of all kinds, and how far a look, (n_dims,), is from each in units of looks."""
        rows = np.flatnonzero(self._table.id >= 0)
        return rows, np.sqrt(squared_distances(look, self._table.mean[rows], self.unit()))

    def count_passed(self, cell: tuple[int, int]) -> tuple[int, int]:
        """Return how many visits are over, and how many of them went to a place, or beside."""
        return self._table.n_passed, int(self._table.passed[cell])

    def _per_hour(self, visits):
        return visits * 3600.0 / (self._table.watched_s + KIND_PRIOR_S)

    def _per_hour_lately(self, rows: np.ndarray) -> np.ndarray:
        """Return how often kinds have come by their last visits: what begins late is as usual as what always was."""
        first = self._table.newest_ns[rows, 0]
        elapsed_s = np.maximum(self._table.t_ns - first, 1) / NS
        return np.where(first >= 0, (NEWEST_VISITS - 1) * 3600.0 / elapsed_s, 0.0)

    def _strange(self, distance: float) -> float:
        """Return how far a distance from the nearest kind stands out of those of earlier visits, 0 to 1."""
        table = self._table
        if distance <= ALIKE or table.count.sum() < LEAST_VISITS:
            return 0.0
        earlier = table.strange[table.strange >= 0.0]
        least = OUTSTANDING * float(np.quantile(earlier, OUTSTANDING_SHARE)) if len(earlier) else 0.0
        least = max(least, ALIKE)
        return float(np.clip((distance - least) / (least * (UNALIKE / ALIKE - 1.0)), 0.0, 1.0))

    # -- what visits teach -----------------------------------------------------------------------------------

    def pass_by(self, places: np.ndarray, kind: int) -> None:
        """Take note of a visit that is over: its places, (COARSE_ROWS, COARSE_COLUMNS) bool, and kind's id or -1."""
        table = self._table
        table.passed += _around(places)
        table.n_passed += 1
        table.lately[:-1] = table.lately[1:]
        table.lately[-1] = kind
        table.n_lately = min(table.n_lately + 1, RECENT_VISITS)

    def spread_by(self, variance: np.ndarray, whole: bool) -> None:
        """Let a visit teach how much a look, whole or in part, varies from frame to frame: its variance, (n_dims,)."""
        table, view = self._table, int(whole)
        table.spread[view] *= LOOK_MEMORY
        table.spread[view] += np.log(variance + LEAST_VARIANCE)
        table.spread_n[view] = table.spread_n[view] * LOOK_MEMORY + 1.0

    def count(self, look: np.ndarray, part: np.ndarray | None, places: np.ndarray, t_ns: int) -> int:
        """Count a visit that was seen whole, to the nearest kind or a new one; return the kind's id.

        look, part : ndarrays of shape (n_dims,), whole and before and after; part is None where it never was so
        """
        table = self._table
        rows, distances = self._distances(look)
        row = -1
        if len(rows):
            nearest = int(distances.argmin())
            table.strange[:-1] = table.strange[1:]
            table.strange[-1] = distances[nearest]
            row = int(rows[nearest]) if distances[nearest] <= ALIKE else -1
        if row < 0:
            row = self._enter(look, t_ns)
        table.count[row] += 1
        table.recent[row] += 1.0
        table.mean[row] += (look - table.mean[row]) / min(table.count[row], 10)
        if part is not None:
            table.part_n[row] += 1
            table.part[row] += (part - table.part[row]) / min(table.part_n[row], 10)
        table.places[row] += _around(places)
        table.last_ns[row] = t_ns
        table.newest_ns[row, :-1] = table.newest_ns[row, 1:]
        table.newest_ns[row, -1] = t_ns
        return int(table.id[row])

    def _enter(self, look: np.ndarray, t_ns: int) -> int:
        """Give a new kind a free row, or that of the kind not seen for longest."""
        table = self._table
        free = np.flatnonzero(table.id < 0)
        row = int(free[0]) if len(free) else int(np.argmin(table.last_ns))
        table.id[row], table.next_id = table.next_id, table.next_id + 1
        table.count[row], table.recent[row], table.mean[row], table.places[row] = 0, 0.0, look, 0.0
        table.part_n[row], table.part[row], table.newest_ns[row] = 0, 0.0, -1
        table.first_ns[row] = t_ns
        return row

    # -- state -----------------------------------------------------------------------------------------------

    def _record(self) -> _Table:
        return self._table

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes of the table."""
        return {"kinds of visits": record_bytes(self._table)}


def saved_kinds(state: State) -> list[Kind]:
    """Return the kinds of visits that a saved state of the whole agent holds, the most frequent first; [] without."""
    ends = "visits.kinds.id"
    (prefix,) = [name.removesuffix("id") for name in state if name.endswith(ends)] or [""]
    return _kinds_of({column: state[prefix + column] for column in _COLUMNS}) if prefix else []


def _kinds_of(columns: State) -> list[Kind]:
    ids, counts = columns["id"], columns["count"]
    rows = [row for row in np.argsort(-counts, kind="stable").tolist() if ids[row] >= 0]
    return [Kind(*(int(columns[name][row]) for name in _COLUMNS)) for row in rows]


def _alike(distance):
    """Return how far looks so far apart are of one kind, 1 to 0."""
    return np.clip((UNALIKE - distance) / (UNALIKE - ALIKE), 0.0, 1.0)


def _around(places: np.ndarray) -> np.ndarray:
    """Return the places and their neighbours: who went here could have gone beside."""
    return cv2.dilate(places.astype(np.uint8), np.ones((3, 3), np.uint8)).astype(np.float64)
