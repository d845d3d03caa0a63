"""The visits under way: who in this frame is who was in the last one, and of what kind they are.

Called by agent/novelty/places/unlikeness.py. It must not know what is told: only how far a visit is known, and how
strange.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import cv2
import numpy as np

from stillwatch.base import (
    Commit,
    Restorable,
    Stage,
    State,
    prepare_parts,
    prepare_record,
    record_bytes,
    record_state,
    saved,
    saved_array,
    split_off,
    state_of_parts,
    with_prefix,
)
from stillwatch.features import Rows
from stillwatch.novelty.rules import (
    APART_S,
    COARSE_COLUMNS,
    COARSE_ROWS,
    CONFIRMED_FRAMES,
    DESCRIBED_FRAMES,
    GONE_S,
    LEAST_DESCRIBED,
    LEAST_LEVEL,
    LEAST_VISIT_FRAMES,
    MAX_VISITS,
    NS,
    OTHER_FRAMES,
    PACE,
    REACHED,
    SOMEBODY,
    WAIT_S,
)
from stillwatch.novelty.visits.kinds import Kind, Kinds
from stillwatch.novelty.visits.precedents import UNKNOWN, Precedents
from stillwatch.novelty.visits.sightings import (
    Sighting,
    box_of,
    look_of,
    n_look_dims,
    sightings_of,
    squared_distances,
    touches_edge,
)


@dataclass
class _Tracks:
    """One row for each visit under way, in columns of fixed size.

    number: of the visit. begun_ns: -1 in a free row. seen_ns: stream time when it was last found. apart_ns: since when
    it cannot be told from another, -1 where it can. frames: in which it was found; missed: since then. box: top, left,
    bottom, right, patches; pace: patches a frame, down and right. seen: frames in which it was seen in part and whole,
    to which mean and squares (sum of squared deviations) of its look belong. other: frames in a row that looked like
    somebody else. level: its highest. places: where it went. known, strange: 0 to 1, what its kind says of it.
    """

    mean: np.ndarray
    squares: np.ndarray
    number: np.ndarray = saved_array((MAX_VISITS,), np.int64, fill=-1, low=-1)
    begun_ns: np.ndarray = saved_array((MAX_VISITS,), np.int64, fill=-1, low=-1)
    seen_ns: np.ndarray = saved_array((MAX_VISITS,), np.int64, low=0)
    apart_ns: np.ndarray = saved_array((MAX_VISITS,), np.int64, fill=-1, low=-1)
    frames: np.ndarray = saved_array((MAX_VISITS,), np.int64, low=0)
    missed: np.ndarray = saved_array((MAX_VISITS,), np.int64, low=0)
    box: np.ndarray = saved_array((MAX_VISITS, 4), np.float64)
    pace: np.ndarray = saved_array((MAX_VISITS, 2), np.float64)
    seen: np.ndarray = saved_array((MAX_VISITS, 2), np.int64, low=0)
    other: np.ndarray = saved_array((MAX_VISITS,), np.int64, low=0)
    level: np.ndarray = saved_array((MAX_VISITS,), np.float64, low=0.0)
    places: np.ndarray = saved_array((MAX_VISITS, COARSE_ROWS, COARSE_COLUMNS), np.bool_)
    known: np.ndarray = saved_array((MAX_VISITS,), np.float64, low=0.0, high=1.0)
    strange: np.ndarray = saved_array((MAX_VISITS,), np.float64, low=0.0, high=1.0)
    next_number: int = saved(0, low=0)


@dataclass(frozen=True, slots=True)
class Over:
    """A visit that is over.

    number: of the visit. kind: id of its kind, -1 where it was not seen whole. begun_ns, seen_ns: stream time of its
    first and last sighting. level: its highest.
    """

    number: int
    kind: int
    begun_ns: int
    seen_ns: int
    level: float


class Visits(Restorable):
    """Follows what stands out from frame to frame, by its box, and counts each visit once, by its kind.

    Parameters
    ----------
    n_patch_dims : int
        Of a row without context.
    halflife_s : float
        Of how often kinds come.
    usual_per_hour : float
        Visits: a kind that comes so often is usual.
    """

    def __init__(self, n_patch_dims: int, halflife_s: float, usual_per_hour: float):
        n_dims = n_look_dims(n_patch_dims)
        self._kinds = Kinds(n_dims, halflife_s, usual_per_hour)
        self._over: list[Over] = []  # visits that the frame under way has ended
        self._tracks = _Tracks(mean=np.zeros((MAX_VISITS, 2, n_dims)), squares=np.zeros((MAX_VISITS, 2, n_dims)))

    @property
    def kinds(self) -> list[Kind]:
        """Every kind of visits that is remembered, the most frequent first."""
        return self._kinds.kinds

    def reset(self) -> None:
        """Forget everything: the grid has another shape, or the camera another view."""
        self._tracks.begun_ns[:] = -1
        self._kinds.reset()

    # -- one frame -------------------------------------------------------------------------------------------

    def look(self, unlikeness: np.ndarray, rows: Rows) -> list[Sighting]:
        """Return what stands out and whose it is; it teaches nothing.

        unlikeness : ndarray of shape (n,), float32, of `PlaceMemory.unlikeness`, averaged over neighbours
        """
        seen = sightings_of(unlikeness, rows.grid_shape)
        if not seen:
            return []
        alive = np.flatnonzero(self._tracks.begun_ns >= 0)
        boxes = (self._tracks.box[alive] + np.tile(self._steps(alive), 2)).tolist()
        owners = [
            tuple(row for row, box in zip(alive.tolist(), boxes, strict=True) if _overlap(sighting.box, box) > REACHED)
            for sighting in seen
        ]
        shared = {row for rows_of_one in owners if len(rows_of_one) > 1 for row in rows_of_one}
        parts: dict[int, list[Sighting]] = {}
        found = []
        for sighting, own in zip(seen, owners, strict=True):
            if len(own) == 1 and own[0] not in shared:
                parts.setdefault(own[0], []).append(sighting)
            else:
                found.append(self._judged(sighting, own, rows, unlikeness, is_one=not own))
        for row, pieces in parts.items():  # what is one visit's is described as one, however many pieces it is in
            patches = np.sort(np.concatenate([piece.patches for piece in pieces]))
            level = float(np.sqrt(unlikeness[patches].sum()))
            whole = Sighting(patches, box_of(patches, rows.grid_shape[1]), level)
            found.append(self._judged(whole, (row,), rows, unlikeness, is_one=True))
        return found

    def _judged(self, sighting: Sighting, own: tuple[int, ...], rows: Rows, unlikeness: np.ndarray, is_one: bool):
        """Return a sighting with whose it is, its look where it is one visit's, and what is known of them."""
        tracks = self._tracks
        if not own:
            known = self._kinds.expected(_cell(sighting.box, rows.grid_shape))
        else:
            known = float(tracks.known[list(own)].min())
        look, strange = None, 0.0
        if is_one:
            look = look_of(sighting.patches, unlikeness, rows, sighting.box)
            strange = float(tracks.strange[own[0]]) if own else 0.0
        large = len(sighting.patches) >= LEAST_DESCRIBED
        whole = large and not touches_edge(sighting.box, rows.grid_shape)
        visit = int(tracks.number[own[0]]) if own and is_one else -1
        return replace(sighting, tracks=own, look=look, whole=whole, known=known, strange=strange, visit=visit)

    def _steps(self, alive: np.ndarray) -> np.ndarray:
        """Return how far visits have gone since they were found, (n, 2), patches."""
        return self._tracks.pace[alive] * (1.0 + self._tracks.missed[alive])[:, None]

    def learn(self, sightings: list[Sighting], grid_shape: tuple[int, int], t_ns: int) -> list[Over]:
        """Let a frame's sightings go on, begin and end visits; stream time `t_ns`. Return the visits that are over."""
        tracks, over = self._tracks, self._over
        over.clear()
        self._kinds.watch(t_ns)
        found: set[int] = set()
        for sighting in sightings:
            if len(sighting.tracks) == 1 and sighting.look is not None:
                self._go_on(sighting.tracks[0], sighting, grid_shape, t_ns)
            elif sighting.tracks:
                for row in set(sighting.tracks) - found:
                    self._go_along(row, grid_shape, t_ns)
            found.update(sighting.tracks)
        alive = set(np.flatnonzero(tracks.begun_ns >= 0).tolist())
        tracks.missed[sorted(alive - found)] += 1
        for sighting in sightings:
            free = np.flatnonzero(tracks.begun_ns < 0)
            if not sighting.tracks and len(free):
                self._begin(int(free[0]), sighting, grid_shape, t_ns)
        for row in np.flatnonzero(tracks.begun_ns >= 0).tolist():
            if t_ns - tracks.seen_ns[row] > GONE_S * NS:
                self._end(int(row), t_ns)
                tracks.begun_ns[row] = -1
        return list(over)

    def _begin(self, row: int, sighting: Sighting, grid_shape: tuple[int, int], t_ns: int) -> None:
        tracks = self._tracks
        tracks.begun_ns[row], tracks.apart_ns[row], tracks.missed[row] = t_ns, -1, 0
        tracks.box[row], tracks.pace[row], tracks.level[row] = sighting.box, 0.0, 0.0
        self._anew(row, t_ns)
        self._go_on(row, sighting, grid_shape, t_ns)

    def _anew(self, row: int, t_ns: int) -> None:
        """Forget what a visit looked like: it is somebody else's from here on."""
        tracks = self._tracks
        tracks.begun_ns[row], tracks.number[row] = t_ns, tracks.next_number
        tracks.next_number += 1
        tracks.frames[row] = tracks.other[row] = tracks.seen[row] = 0
        tracks.mean[row], tracks.squares[row], tracks.places[row] = 0.0, 0.0, False
        tracks.known[row] = tracks.strange[row] = 0.0

    def _go_on(self, row: int, sighting: Sighting, grid_shape: tuple[int, int], t_ns: int) -> None:
        """Let a visit be where it was found, and look as it did there."""
        tracks = self._tracks
        if tracks.frames[row]:
            moved = _centre(sighting.box) - _centre(tracks.box[row])
            tracks.pace[row] += PACE * (moved / (1.0 + tracks.missed[row]) - tracks.pace[row])
        tracks.box[row], tracks.missed[row] = sighting.box, 0
        tracks.seen_ns[row], tracks.apart_ns[row] = t_ns, -1
        tracks.frames[row] += 1
        tracks.level[row] = max(tracks.level[row], sighting.level)
        cell = _cell(sighting.box, grid_shape)
        tracks.places[row][cell] = True
        if sighting.look is not None:
            self._describe(row, sighting.look, sighting.whole, t_ns)
        self._judge(row, cell, t_ns)

    def _describe(self, row: int, look: np.ndarray, whole: bool, t_ns: int) -> None:
        """Let a look into the mean of its visit; whole looks that differ for long are somebody else's."""
        tracks, view = self._tracks, int(whole)
        if whole and tracks.seen[row, 1] >= DESCRIBED_FRAMES:
            distance = np.sqrt(squared_distances(look, tracks.mean[row, 1][None], self._kinds.unit())[0])
            if distance > SOMEBODY:
                tracks.other[row] += 1
                if tracks.other[row] >= OTHER_FRAMES:
                    self._end(row, t_ns)
                    self._anew(row, t_ns)
                return
            tracks.other[row] = 0
        tracks.seen[row, view] += 1
        away = look - tracks.mean[row, view]
        tracks.mean[row, view] += away / tracks.seen[row, view]
        tracks.squares[row, view] += away * (look - tracks.mean[row, view])

    def _judge(self, row: int, cell: tuple[int, int], t_ns: int) -> None:
        """Say how far a visit is known, and how strange it is: by its look, and before that by who usually comes."""
        tracks = self._tracks
        n_part, n_whole = (int(n) for n in tracks.seen[row])
        if n_whole >= DESCRIBED_FRAMES:
            known, strange = self._kinds.judge(tracks.mean[row, 1], cell)
            tracks.known[row], tracks.strange[row] = known, strange if n_whole >= CONFIRMED_FRAMES else 0.0
            return
        part = tracks.mean[row, 0] if n_part >= DESCRIBED_FRAMES else None
        waits = t_ns - tracks.begun_ns[row] < WAIT_S * NS
        tracks.known[row] = self._kinds.expected(cell, part) if waits else 0.0

    def _go_along(self, row: int, grid_shape: tuple[int, int], t_ns: int) -> None:
        """Let a visit that cannot be told from another go on as it went, for some time and within the picture."""
        tracks = self._tracks
        tracks.box[row] += np.tile(self._steps(np.array([row])), 2)[0]
        tracks.missed[row] = 0
        tracks.frames[row] += 1
        if tracks.apart_ns[row] < 0:
            tracks.apart_ns[row] = t_ns
        top, left, bottom, right = tracks.box[row]
        is_inside = top < grid_shape[0] - 1 and left < grid_shape[1] - 1 and bottom > 1 and right > 1
        if is_inside and t_ns - tracks.apart_ns[row] < APART_S * NS:
            tracks.seen_ns[row] = t_ns

    def _end(self, row: int, t_ns: int) -> None:
        """Count a visit that is over."""
        tracks = self._tracks
        if tracks.frames[row] < LEAST_VISIT_FRAMES:
            return
        kind, described = -1, tracks.seen[row] >= DESCRIBED_FRAMES
        for view in np.flatnonzero(described):
            self._kinds.spread_by(tracks.squares[row, view] / (tracks.seen[row, view] - 1), whole=bool(view))
        if described[1]:
            part = tracks.mean[row, 0] if described[0] else None
            kind = self._kinds.count(tracks.mean[row, 1], part, tracks.places[row], t_ns)
        if kind >= 0 or tracks.level[row] >= LEAST_LEVEL:
            self._kinds.pass_by(tracks.places[row], kind)
            times = int(tracks.begun_ns[row]), int(tracks.seen_ns[row])
            self._over.append(Over(int(tracks.number[row]), kind, *times, float(tracks.level[row])))

    def precedents(self, sightings: list[Sighting], patch: int, grid_shape: tuple[int, int]) -> Precedents | None:
        """Return what came before the visit that a patch is part of; None where it is part of none."""
        sighting = next((one for one in sightings if _holds(one.patches, patch)), None)
        if sighting is None:
            return None
        visits, here = self._kinds.count_passed(_cell(sighting.box, grid_shape))
        number = kind = alike = UNKNOWN
        if len(sighting.tracks) == 1 and sighting.look is not None:
            tracks, row = self._tracks, sighting.tracks[0]
            number = int(tracks.number[row])
            if tracks.seen[row, 1] >= DESCRIBED_FRAMES:
                kind, alike = self._kinds.count_alike(tracks.mean[row, 1])
        return Precedents(visits=visits, here=here, kind=kind, alike=alike, visit=number)

    # -- state -----------------------------------------------------------------------------------------------

    def _parts(self) -> dict[str, Stage]:
        return {"kinds": self._kinds}

    def state(self) -> State:
        """Return the visits under way and the kinds, as copies."""
        return state_of_parts(self._parts()) | with_prefix("tracks", record_state(self._tracks))

    def prepare(self, state: State) -> Commit:
        """Validate `state` and return its commit; SnapshotError, and no change, where it does not fit."""
        tracks, parts = split_off("tracks", state)
        take_parts = prepare_parts(self._parts(), parts, "visits")
        take_tracks = prepare_record(self._tracks, tracks, "visits: tracks")

        def commit() -> None:
            take_parts()
            take_tracks()

        return commit

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes of the visits under way and the kinds."""
        return {"visits": record_bytes(self._tracks) + sum(self._kinds.memory_bytes().values())}


def news_of(sightings: list[Sighting], grid_shape: tuple[int, int], familiar: np.ndarray) -> np.ndarray:
    """Return how much of each place's unlikeness is news, (rows * columns,) float32: 0 where its kind is usual.

    The fringe of a sighting stands out too little to be part of it; what is beside one goes the way that it goes. That
    a kind is usual says little of what is less familiar than the rest of the sighting: somebody else may be in it, too
    close to be told apart.

    familiar : ndarray of shape (rows * columns,), float32, of `Habituation.familiar`
    """
    news = np.ones(grid_shape[0] * grid_shape[1], np.float32)
    inside = np.zeros(len(news), bool)
    for sighting in sightings:
        inside[sighting.patches] = True
    for sighting in sightings:
        if sighting.known <= 0.0:
            continue
        mask = np.zeros(len(news), np.uint8)
        mask[sighting.patches] = 1
        beside = cv2.dilate(mask.reshape(grid_shape), np.ones((3, 3), np.uint8)).ravel() > 0
        beside &= ~inside
        news[beside] = np.minimum(news[beside], 1.0 - sighting.known)
        own = familiar[sighting.patches]
        stranger = np.maximum(own.mean(dtype=np.float64) - own, 0.0)
        news[sighting.patches] = 1.0 - sighting.known * (1.0 - stranger)
    return news


def _holds(patches: np.ndarray, patch: int) -> bool:
    """Whether a patch is among patches in rising order."""
    place = int(np.searchsorted(patches, patch))
    return place < len(patches) and int(patches[place]) == patch


def _centre(box) -> np.ndarray:
    return np.array([box[0] + box[2], box[1] + box[3]]) / 2.0


def _cell(box, grid_shape: tuple[int, int]) -> tuple[int, int]:
    """Return row and column of the coarse grid that a box's centre is in."""
    y, x = _centre(box)
    row, column = int(y * COARSE_ROWS / grid_shape[0]), int(x * COARSE_COLUMNS / grid_shape[1])
    return min(max(row, 0), COARSE_ROWS - 1), min(max(column, 0), COARSE_COLUMNS - 1)


def _overlap(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the share of the smaller of two boxes that they share, each a patch larger for it: near is enough."""
    tall, wide = min(a[2], b[2]) - max(a[0], b[0]) + 2.0, min(a[3], b[3]) - max(a[1], b[1]) + 2.0
    if tall <= 0.0 or wide <= 0.0:
        return 0.0
    areas = [(box[2] - box[0] + 1.0) * (box[3] - box[1] + 1.0) for box in (a, b)]
    return tall * wide / min(areas)
