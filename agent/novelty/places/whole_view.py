"""What changes nearly the whole picture at once is weather, light or the camera, and no thing.

Called by agent/novelty/places/unlikeness.py. It must not know what is unlike its place, only what blocks of the picture
look like on the mean: a person among ten others changes few of them, however unlike his places he is.
"""

import math
from dataclasses import dataclass

import numpy as np

from stillwatch.base import Commit, Recorded, State, record_bytes, saved, saved_array
from stillwatch.features import Rows
from stillwatch.novelty.blocks import block_sums
from stillwatch.novelty.rules import (
    LEAST_BLOCK_UNIT,
    LEAST_VIEWS,
    NS,
    VIEW_APART_S,
    VIEW_BLOCKS,
    VIEW_CALM_QUANTILE,
    VIEW_CHANGED,
    VIEW_LIKE_SHARE,
    VIEW_SAME,
    VIEW_UNCHANGED_SHARE,
    VIEWS,
    VIEWS_S,
)
from stillwatch.novelty.sampling import place_of_next

_N_BLOCKS = VIEW_BLOCKS * VIEW_BLOCKS
_CHROMA = 2  # colour ratios that a block's look has after its mean row


@dataclass
class _Views:
    """Looks of the picture in blocks, (VIEWS, _N_BLOCKS, n_dims) float32, and how they came.

    seen: blocks that were not masked; at_ns: stream time of each look; held: looks kept; offered: candidates, up to
    the horizon; turns: all; sample_ns: stream time of the next one; first_ns: of the first. follows: an event is open
    that began in a frame that was judged. named: how far names counted at the newest candidate.
    """

    kept: np.ndarray
    seen: np.ndarray = saved_array((VIEWS, _N_BLOCKS), np.bool_)
    at_ns: np.ndarray = saved_array((VIEWS,), np.int64, low=0)
    held: int = saved(0, low=0, high=VIEWS)
    offered: int = saved(0, low=0)
    turns: int = saved(0, low=0)
    sample_ns: int = saved(0, low=0)
    first_ns: int = saved(0, low=0)
    follows: bool = saved(False)
    named: float = saved(1.0, low=0.0, high=1.0)


class WholeView(Recorded):
    """Says how far a frame is judged by its places: 1 as a rule, 0 where nearly every block looks otherwise than ever.

    A block's look is the mean of its patches' rows and colour ratios, which noise hardly moves. Looks of a uniform
    sample of all frames are kept. A frame is as far from a kept one as its blocks are, all but
    VIEW_UNCHANGED_SHARE of them, in units of how far the calmer part of the kept looks is from their median, value by
    value. What all blocks share of a change of colour is the white balance: things are judged without it, names are
    believed with it. Weather that fills VIEW_LIKE_SHARE of the time is usual, but none says so of itself while it
    begins: looks of the last VIEW_APART_S do not count. Who came into a picture that was judged is judged until he has
    gone: a car may fill all of it on its way.

    Parameters
    ----------
    n_dims : int
        Of a patch, without its place.
    halflife_s : float
        Of what is remembered.
    seed : int
    """

    _where = "whole view"

    def __init__(self, n_dims: int, halflife_s: float, seed: int):
        self._horizon, self._seed = max(round(halflife_s / VIEWS_S), VIEWS), seed
        self._n_dims = n_dims + _CHROMA
        self._views = self._empty()
        self._unit = np.ones(self._views.kept.shape[1:], np.float32)  # usual distance of each value from its median
        self._look, self._seen = np.zeros((_N_BLOCKS, self._n_dims), np.float32), np.zeros(_N_BLOCKS, np.bool_)
        self._of: Rows | None = None  # the frame that those and _told are of, until it is learnt
        self._told = (0.0, 0.0)

    def _empty(self) -> _Views:
        return _Views(kept=np.zeros((VIEWS, _N_BLOCKS, self._n_dims), np.float32))

    def reset(self) -> None:
        """Forget everything: the grid has another shape, or the camera another view."""
        self._views, self._of = self._empty(), None

    @property
    def named(self) -> float:
        """How far names counted lately, 0 to 1: where nothing is unlike its place, no frame is looked at for them."""
        return self._views.named

    def weights(self, rows: Rows, t_ns: int) -> tuple[float, float]:
        """Return how far what is unlike its place counts in the frame at stream time `t_ns`, 0 to 1; how far names do.

        Names of patches and topics have colours in them: a white balance that was set anew makes all of them others.
        """
        if self._views.follows:
            return 1.0, self._views.named
        of_things, of_names = self.changes(rows, t_ns)
        return _weight(of_things), _weight(of_names)

    def changes(self, rows: Rows, t_ns: int) -> tuple[float, float]:
        """Return how far nearly every block is from what it usually looks like, in units; zeros where that is unknown.

        The first is without what all blocks share of a change of colour, where that is less: the middle one of them may
        be of a red bus, and is no white balance then. The second has all of it.
        """
        if self._of is not rows:
            self._look_at(rows)
            self._told, self._of = self._changes(t_ns), rows
        return self._told

    def _changes(self, t_ns: int) -> tuple[float, float]:
        """Return `changes` of the frame that was looked at."""
        views = self._views
        apart_ns = min(VIEW_APART_S * NS, (t_ns - views.first_ns) / 2)
        # Blocks that are masked, now or then, say nothing: the others decide.
        both = views.seen[: views.held] & self._seen
        known = np.flatnonzero(both.any(axis=1) & (views.at_ns[: views.held] <= t_ns - apart_ns))
        if len(known) < LEAST_VIEWS:
            return 0.0, 0.0
        steps, compared = views.kept[known] - self._look, both[known]
        with_all = self._change(steps, compared)
        steps[..., -_CHROMA:] -= _middles(steps[..., -_CHROMA:], compared)
        return min(self._change(steps, compared), with_all), with_all

    def _change(self, steps: np.ndarray, compared: np.ndarray) -> float:
        """Return the change in units of the steps to looks, (n, n_blocks, n_dims), of which blocks are compared."""
        distances = np.sqrt(np.mean((steps / self._unit) ** 2, axis=2))
        distances[~compared] = np.inf
        ranks = (VIEW_UNCHANGED_SHARE * compared.sum(axis=1)).astype(int)
        far = np.sort(distances, axis=1)[np.arange(len(steps)), ranks]
        like = math.ceil(VIEW_LIKE_SHARE * len(steps)) - 1
        return float(np.partition(far, like)[like])

    def learn(self, rows: Rows, t_ns: int, *, follows: bool) -> None:
        """Let the frame at stream time `t_ns` into the sample, if it is its turn and chance wants it.

        follows : an event is open, and this frame was judged; names are believed as before it then
        """
        views = self._views
        views.follows = follows
        if not views.turns or t_ns >= views.sample_ns:
            self._sample(rows, t_ns)
        self._of = None

    def _sample(self, rows: Rows, t_ns: int) -> None:
        """Take a candidate: what it says of names, and its looks where chance wants them."""
        views = self._views
        if not views.follows:
            views.named = _weight(self.changes(rows, t_ns)[1])
        elif self._of is not rows:
            self._look_at(rows)
        views.first_ns = views.first_ns if views.turns else t_ns
        views.sample_ns = t_ns + round(VIEWS_S * NS)
        place = place_of_next(views.held, VIEWS, views.offered, self._generator, self._horizon)
        views.offered, views.turns = min(views.offered + 1, self._horizon), views.turns + 1
        if place < VIEWS:
            views.kept[place], views.seen[place], views.at_ns[place] = self._look, self._seen, t_ns
            views.held = max(views.held, place + 1)
            self._measure()

    def _generator(self) -> np.random.Generator:
        return np.random.default_rng([self._seed, self._views.turns])

    def _measure(self) -> None:
        """Find out how far each value of a block usually is from its median."""
        kept = self._views.kept[: self._views.held]
        apart = np.abs(kept - np.median(kept, axis=0))
        calm = int(VIEW_CALM_QUANTILE * (len(kept) - 1))
        unit = np.partition(apart, calm, axis=0)[calm]
        # A block without texture may be exact in some values by chance.
        self._unit[:] = np.maximum(unit, max(0.5 * float(np.median(unit)), LEAST_BLOCK_UNIT))

    def _look_at(self, rows: Rows) -> None:
        """Write what the frame's blocks look like, and which of them can be seen."""
        (height, width), n = rows.grid_shape, self._n_dims
        values = np.empty((height, width, n + 1), np.float32)
        values[..., : n - _CHROMA] = rows.plain.reshape(height, width, -1)
        values[..., n - _CHROMA : n] = rows.colours[:, 1:].reshape(height, width, _CHROMA)
        values[..., n] = 1.0
        values[~rows.valid.reshape(height, width)] = 0.0
        blocks = block_sums(values, VIEW_BLOCKS).reshape(-1, n + 1)
        self._seen[:] = self._look[:] = 0
        self._seen[: len(blocks)] = blocks[:, n] > 0.0
        self._look[: len(blocks)] = blocks[:, :n] / np.maximum(blocks[:, n:], 1.0)

    def prepare(self, state: State) -> Commit:
        """Validate `state` and return its commit; SnapshotError, and no change, where it does not fit."""
        take = super().prepare(state)

        def commit() -> None:
            take()
            self._of = None
            if self._views.held:
                self._measure()

        return commit

    def _record(self) -> _Views:
        return self._views

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes of all arrays."""
        own = self._unit.nbytes + self._look.nbytes + self._seen.nbytes
        return {"whole view": record_bytes(self._views) + own}


def _weight(change: float) -> float:
    """Return how far a frame that has changed so much counts, 0 to 1."""
    return float(np.clip((VIEW_CHANGED - change) / (VIEW_CHANGED - VIEW_SAME), 0.0, 1.0))


def _middles(steps: np.ndarray, compared: np.ndarray) -> np.ndarray:
    """Return the lower middle value of the steps of the blocks that are compared, (n, 1, n_values) float32.

    steps : ndarray of shape (n, n_blocks, n_values), float32;  compared : (n, n_blocks) bool, one in each row and more
    """
    in_order = np.sort(np.where(compared[..., None], steps, np.float32(np.inf)), axis=1)
    middles = (compared.sum(axis=1) - 1) // 2
    return np.take_along_axis(in_order, middles[:, None, None], axis=1)
