"""What is usual at each place of a fixed camera: samples of all that was watched, and of the last seconds.

Called by agent/novelty/places/unlikeness.py. It must not decide what is an event, nor leave events out: everything that
was seen is sampled, and what was seen rarely stays rare among the samples.
"""

import math
from dataclasses import dataclass

import numpy as np

from stillwatch.base import Array as Saved
from stillwatch.base import (
    Commit,
    Restorable,
    State,
    check_arrays,
    check_room,
    prepare_record,
    record_state,
    saved,
    split_off,
    with_prefix,
)
from stillwatch.kernels import place_memory as kernels
from stillwatch.novelty.rules import (
    CHANGED_SHARE,
    EARLY_SAMPLES,
    FIXED_POINT,
    LEAST_RETURNS,
    LEAST_SAMPLES,
    LEAST_STEPS,
    LEAST_STRIPE,
    LEAST_UNIT,
    LIKE_REACH,
    LIKE_SHARE,
    MOST_UNLIKE,
    NS,
    RECENT,
    RECENT_S,
    RECENT_SHARE,
    RETURNS_PRIOR_S,
    RETURNS_S,
    SAMPLE_S,
    SAMPLES,
    SWEEP_FRAMES,
    UNLIKE,
)
from stillwatch.novelty.sampling import place_of_next

_RECENT_RANK = int(RECENT_SHARE * RECENT)
_MOST_NEAR = int(LIKE_SHARE * SAMPLES) + 1  # samples that must be near, at most


@dataclass(slots=True)
class _Counts:
    """How much is held and when the next frame is taken; stream times in nanoseconds."""

    places: int = saved(0, low=0)
    held: int = saved(0, low=0, high=SAMPLES)
    seen: int = saved(0, low=0)  # candidates, up to the horizon
    offered: int = saved(0, low=0)  # candidates, all: each has a generator of its own
    sample_ns: int = saved(0, low=0)
    changed: int = saved(0, low=0)  # samples since the last sweep over the places began
    measured: bool = saved(False)  # a first sweep has ended
    sweep: int = saved(-1, low=-1)  # place at which a sweep goes on, -1 between two
    counted: int = saved(0, low=0)  # place at which the count of returns goes on
    counted_ns: int = saved(0, low=0)
    recent: int = saved(0, low=0, high=RECENT)
    recent_next: int = saved(0, low=0, high=RECENT - 1)
    recent_ns: int = saved(0, low=0)


class PlaceMemory(Restorable):
    """Says how unlike everything seen at its place a patch is, in logarithms of what is usual there.

    A reservoir of whole frames is a uniform sample of all that was watched (forgetting once `horizon_s` are
    behind): what filled a place for a few seconds fills few of its samples, however busy the start
    was, and ever fewer. A patch is as unlike its place as the distance to the m-th nearest sample says, m being
    `LIKE_SHARE` of the samples: less than that share is not usual. What is like most of the last seconds is usual as
    well: a bottle that was taken away is news once.

    Distances are told in units of the place's own: the median over its samples of the same distance to the others.
    Foliage differs from itself all day and may; a wall may not.

    Parameters
    ----------
    capacity : int
        Most places a frame can have.
    n_dims : int
        Of a patch, without its place.
    horizon_s : float
        Stream time after which old samples begin to give way.
    usual_per_hour : float
        A place that comes to look like a sample so often does as it usually does; infinity: however often.
    seed : int
    """

    def __init__(self, capacity: int, n_dims: int, *, horizon_s: float, usual_per_hour: float, seed: int):
        self._past = np.zeros((capacity, SAMPLES, n_dims), np.int16)
        self._recent = np.zeros((capacity, RECENT, n_dims), np.int16)
        self._rows, self._relit = np.zeros((2, capacity, n_dims), np.int16)
        self._returns = np.zeros((capacity, SAMPLES), np.int16)
        self._watched_s = np.zeros(SAMPLES, np.float32)  # in which the returns of each sample were counted
        self._unit = np.ones(capacity, np.float32)
        self._distance = np.zeros(capacity, np.float32)
        self._typical = np.zeros(capacity, np.float32)
        self._likely, self._likely_relit = np.full((2, capacity, _MOST_NEAR), -1, np.int8)
        self._likely_recent = np.full((capacity, _RECENT_RANK + 1), -1, np.int8)
        self._squares = np.zeros(max(SAMPLES, RECENT), np.float32)
        self._best_of_each = np.zeros((_MOST_NEAR, SAMPLES), np.float32)
        self._turned, self._others = np.zeros((n_dims, SAMPLES), np.float32), np.zeros(SAMPLES, np.float32)
        self._horizon = max(round(horizon_s / SAMPLE_S), SAMPLES)
        self._usual_per_hour, self._seed = usual_per_hour, seed
        self._now = _Counts()

    @property
    def ready(self) -> bool:
        """Whether enough samples are held to say anything."""
        return self._now.measured

    def reset(self, n_places: int) -> None:
        """Forget everything: the grid has another shape, or the camera another view."""
        self._now = _Counts(places=n_places)
        self._look_anew()

    def _look_anew(self) -> None:
        """Forget which samples were near: they are others now."""
        self._likely[:], self._likely_relit[:], self._likely_recent[:] = -1, -1, -1

    def unlikeness(
        self, rows: np.ndarray, valid: np.ndarray, out: np.ndarray, news: np.ndarray, relit: np.ndarray | None = None
    ) -> None:
        """Write how unlike its place each row is: the logarithm of its distance over the usual one, at least 0.

        What all places of the frame share (haze, exposure, a shake) is taken off. What is like its place in `relit`,
        the rows as they would be in the usual light, is so: a cloud's shadow makes nothing new.

        rows, relit : ndarray of shape (n, n_dims), float32, C order;  valid : (n,) bool
        out : (n,) float32, 0 if not valid
        news : (n,) float32, the same, where samples that their place often comes to look like are usual as well
        """
        n, now = len(rows), self._now
        if not self.ready:
            out[:] = news[:] = 0.0
            return
        rows = self._fixed_point(rows, self._rows)
        unit, distance = self._unit[:n], self._distance[:n]
        distance[:] = np.inf
        rank = min(int(LIKE_SHARE * now.held), now.held - 1)
        likely, squares, past = self._likely[:n], self._squares, self._past[:n]
        if relit is None:
            kernels.nearest_samples(rows, past, now.held, rank, unit, likely, squares, distance)
        else:
            lit, likely_lit = self._fixed_point(relit, self._relit), self._likely_relit[:n]
            kernels.nearest_samples_of_both(
                rows, lit, past, now.held, rank, unit, likely, likely_lit, squares, distance
            )
        if now.recent == RECENT:
            likely = self._likely_recent[:n]
            kernels.nearest_samples(rows, self._recent[:n], RECENT, _RECENT_RANK, unit, likely, squares, distance)
        shared = self._tell(distance, valid, out)
        enough = self._usual_per_hour / 3600.0 * (self._watched_s + np.float32(RETURNS_PRIOR_S))
        np.maximum(enough, np.float32(LEAST_RETURNS), out=enough)
        kernels.nearest_recurring(rows, past, self._returns[:n], now.held, enough, unit, distance)
        self._tell(distance, valid, news, shared)

    def share_like(self, rows: np.ndarray, places: np.ndarray) -> tuple[float, float]:
        """Return in what shares of all that was watched, and of the last seconds, some places looked as in `rows`.

        NaN where none is asked, or nothing is known yet.

        rows : ndarray of shape (n, n_dims), float32;  places : (m,) int64
        """
        if not self.ready or not len(places):
            return np.nan, np.nan
        here = np.rint(rows[places] * FIXED_POINT)[:, None]
        reach = math.exp(UNLIKE) * self._unit[places, None]
        held = self._past[places, : self._now.held], self._recent[places, : self._now.recent]
        past, recent = (float((np.linalg.norm(kept - here, axis=2) <= reach).mean()) for kept in held)
        return past, recent

    def _tell(self, distance: np.ndarray, valid: np.ndarray, out: np.ndarray, shared: float | None = None) -> float:
        """Write what distances mean, less what the frame shares; return that."""
        np.divide(distance, self._unit[: len(out)], out=out)
        np.log(np.maximum(out, 1e-3, out=out), out=out)
        if shared is None:
            known = out[valid]
            middle = (len(known) - 1) // 2
            # Less than usual is usual, by however much: of two in the middle the lower one is taken.
            shared = max(float(np.partition(known, middle)[middle]), 0.0) if len(known) else 0.0
        out -= shared
        np.clip(out, 0.0, MOST_UNLIKE, out=out)
        out[~valid] = 0.0
        return shared

    @staticmethod
    def _fixed_point(rows: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Return rows in steps of fixed point, (n, n_dims) int16, written to the start of `out`."""
        fixed = out[: len(rows)]
        kernels.to_fixed_point(rows, np.float32(FIXED_POINT), fixed)
        return fixed

    def learn(self, rows: np.ndarray, valid: np.ndarray, t_ns: int) -> None:
        """Let the frame at stream time `t_ns` into the samples, if it is its turn and chance wants it."""
        now = self._now
        rows = self._fixed_point(rows, self._rows)
        if now.recent == 0 or t_ns >= now.recent_ns:
            self._recent[: len(rows), now.recent_next] = rows
            now.recent_next = (now.recent_next + 1) % RECENT
            now.recent = min(now.recent + 1, RECENT)
            now.recent_ns = t_ns + round(RECENT_S * NS)
        if now.seen == 0 or t_ns >= now.sample_ns:
            now.sample_ns = t_ns + round(SAMPLE_S * NS)
            self._sample(rows)
        self._count(rows, t_ns)
        self._measure(len(rows), valid)

    def _sample(self, rows: np.ndarray) -> None:
        """Offer a frame to the reservoir."""
        now = self._now
        slot = place_of_next(now.held, SAMPLES, now.seen, self._generator, self._horizon)
        now.seen, now.offered = min(now.seen + 1, self._horizon), now.offered + 1
        if slot < SAMPLES:
            self._past[: len(rows), slot] = rows
            self._returns[:, slot], self._watched_s[slot] = 0, 0.0
            now.held = max(now.held, slot + 1)
            now.changed += 1

    def _generator(self) -> np.random.Generator:
        return np.random.default_rng([self._seed, self._now.offered])

    def _count(self, rows: np.ndarray, t_ns: int) -> None:
        """Count which samples the places come to look like again, a stripe of places a frame."""
        now, n = self._now, len(rows)
        elapsed_s = min((t_ns - now.counted_ns) / NS, RETURNS_S)
        if not now.measured or elapsed_s <= 0.0:
            return
        now.counted_ns = t_ns
        self._watched_s[: now.held] += elapsed_s
        last = min(now.counted + math.ceil(n * elapsed_s / RETURNS_S), n)
        reach = self._unit[:n] * np.float32(LIKE_REACH)
        kernels.count_returns(rows, self._past[:n], now.held, reach, now.counted, last, self._returns[:n])
        now.counted = last if last < n else 0

    def _measure(self, n: int, valid: np.ndarray) -> None:
        """Find out what distance is usual at each place, a stripe of places a frame, when enough samples are others."""
        now = self._now
        if now.sweep < 0 and now.held >= LEAST_SAMPLES and now.changed > now.held * CHANGED_SHARE:
            now.sweep, now.changed = 0, 0
        if now.sweep < 0:
            return
        first, last = now.sweep, min(now.sweep + max(-(-n // SWEEP_FRAMES), LEAST_STRIPE), n)
        rank = min(int(LIKE_SHARE * now.held), now.held - 2)
        past, typical = self._past[:n], self._typical[:n]
        work = self._turned, self._others, self._best_of_each
        kernels.typical_distances(past, now.held, rank, now.held // 2, first, last, *work, typical)
        now.sweep = last if last < n else -1
        if now.sweep < 0:
            least = LEAST_UNIT * float(np.median(typical[valid])) if valid.any() else 0.0
            np.hypot(typical, max(least, LEAST_STEPS), out=self._unit[:n])
            # Neighbouring moments are more alike than moments of an hour: the first samples say too little.
            self._unit[:n] *= 1.0 + EARLY_SAMPLES / now.held
            now.measured = True

    def state(self) -> State:
        """Return the samples and what was measured on them."""
        now = self._now
        state = with_prefix("counts", record_state(now))
        state["past"] = self._past[: now.places, : now.held].copy()
        state["recent"] = self._recent[: now.places, : now.recent].copy()
        state["returns"] = self._returns[: now.places, : now.held].copy()
        state["watched_s"] = self._watched_s[: now.held].copy()
        return state | {"unit": self._unit[: now.places].copy(), "typical": self._typical[: now.places].copy()}

    def prepare(self, state: State) -> Commit:
        """Validate a saved state of the same settings; SnapshotError where it does not fit."""
        counts = _Counts()
        own, arrays = split_off("counts", state)
        prepare_record(counts, own, "places")()
        n, n_dims, where = counts.places, self._past.shape[2], "places"
        check_room(n, len(self._past), where)
        wanted = {
            "past": Saved(np.int16, (n, counts.held, n_dims)),
            "recent": Saved(np.int16, (n, counts.recent, n_dims)),
            "returns": Saved(np.int16, (n, counts.held), low=0),
            "watched_s": Saved(np.float32, (counts.held,), low=0.0),
            "unit": Saved(np.float32, (n,), low=0.0),
            "typical": Saved(np.float32, (n,), low=0.0),
        }
        check_arrays(arrays, wanted, where)
        held = {name: array.copy() for name, array in arrays.items()}

        def commit() -> None:
            self._now = counts
            self._look_anew()
            self._past[:n, : counts.held], self._recent[:n, : counts.recent] = held["past"], held["recent"]
            self._returns[:n, : counts.held], self._watched_s[: counts.held] = held["returns"], held["watched_s"]
            self._unit[:n], self._typical[:n] = held["unit"], held["typical"]

        return commit

    def memory_bytes(self) -> dict[str, int]:
        arrays = (
            self._past, self._recent, self._unit, self._distance, self._typical, self._squares, self._best_of_each,
            self._turned, self._others, self._rows, self._relit, self._returns, self._watched_s, self._likely,
            self._likely_relit, self._likely_recent,
        )  # fmt: skip
        return {"place memory": sum(array.nbytes for array in arrays)}
