"""What stands out of a frame, group by group: where it is, how large, and what it looks like.

Called by agent/novelty/visits/visits.py. It must not know earlier frames.
"""

from dataclasses import dataclass, field

import cv2
import numpy as np

from stillwatch.features import Rows
from stillwatch.novelty.rules import LEAST_SIGHTING, MAX_SIGHTINGS, STANDS_OUT

SHAPE_DIMS, COLOUR_DIMS = 3, 6
Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Sighting:
    """Neighbouring patches that are unlike their places.

    Attributes
    ----------
    patches : ndarray of shape (m,), int64
        Indices, row by row of the grid, rising.
    box : tuple of float
        Top, left, bottom, right in patches.
    level : float
        Root of the sum of its unlikeness.
    tracks : tuple of int
        Rows of the visits under way that it belongs to: none for someone new, several where they cannot be told apart.
    look : ndarray of shape (n_dims,), float64, or None
        What it looks like (`look_of`); None where more than one visit is in it.
    whole : bool
        It touches no edge of the picture, and is large enough to be described.
    known : float
        0 to 1: how far its kind is usual here, so that its unlikeness is no news.
    strange : float
        0 to 1: how far its kind is new; 0 while not decided.
    visit : int
        Number of the one visit that it is of; -1 for someone new, and where more than one is in it.
    marked : ndarray of shape (m,), int64
        Some of the patches, rising.
    marks : ndarray of shape (m, n_dims), float32
        What they look like to habituation.py.
    """

    patches: np.ndarray
    box: Box
    level: float
    tracks: tuple[int, ...] = ()
    look: np.ndarray | None = None
    whole: bool = False
    known: float = 0.0
    strange: float = 0.0
    visit: int = -1
    marked: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    marks: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), np.float32))


def sightings_of(unlikeness: np.ndarray, grid_shape: tuple[int, int]) -> list[Sighting]:
    """Return the groups of at least LEAST_SIGHTING patches that stand out, the strongest first, MAX_SIGHTINGS at most.

    unlikeness : ndarray of shape (rows * columns,), float32
    """
    mask = (unlikeness >= STANDS_OUT).astype(np.uint8).reshape(grid_shape)
    if not mask.any():
        return []
    _, names, stats, _ = cv2.connectedComponentsWithStats(mask, connectivity=8)
    flat = names.ravel()
    weights = np.bincount(flat, weights=unlikeness)
    weights[0] = 0.0
    large = [
        int(name) for name in np.argsort(-weights, kind="stable") if stats[name, cv2.CC_STAT_AREA] >= LEAST_SIGHTING
    ]
    found = []
    for name in [name for name in large if name][:MAX_SIGHTINGS]:
        left, top, width, height = (float(value) for value in stats[name, : cv2.CC_STAT_AREA])
        box = (top, left, top + height, left + width)
        found.append(Sighting(np.flatnonzero(flat == name), box, float(np.sqrt(weights[name]))))
    return found


def box_of(patches: np.ndarray, columns: int) -> Box:
    """Return top, left, bottom, right of patches, in patches."""
    rows, places = np.divmod(patches, columns)
    return float(rows.min()), float(places.min()), float(rows.max() + 1), float(places.max() + 1)


def touches_edge(box: Box, grid_shape: tuple[int, int]) -> bool:
    """Whether a box reaches the edge of the picture: what is behind it nobody sees."""
    return box[0] <= 0 or box[1] <= 0 or box[2] >= grid_shape[0] or box[3] >= grid_shape[1]


def n_look_dims(n_patch_dims: int) -> int:
    """Return how many values a look has."""
    return SHAPE_DIMS + n_patch_dims + COLOUR_DIMS


def look_of(patches: np.ndarray, unlikeness: np.ndarray, rows: Rows, box: Box) -> np.ndarray:
    """Return what a group of patches looks like, (n_look_dims,) float64.

    Logarithms of patches, width and height; the mean of the rows of its more unlike half, where its edge is not; of
    the same patches mean and deviation of the colour. Ratios of colours do not move with exposure, and all three say
    little about where it stands.
    """
    own = unlikeness[patches]
    core = patches[own >= _median(own)]
    colours = rows.colours[core].astype(np.float64)
    shape = np.log([len(patches), box[3] - box[1], box[2] - box[0]])
    colour = colours.sum(axis=0) / len(core)
    deviation = np.sqrt(((colours - colour) ** 2).sum(axis=0) / len(core))
    row = rows.plain[core].sum(axis=0, dtype=np.float64) / len(core)
    return np.concatenate([shape, row, colour, deviation])


def _median(values: np.ndarray) -> np.floating:
    """Return np.median of a few values, in a tenth of its time."""
    ordered = np.sort(values)
    return (ordered[(len(values) - 1) // 2] + ordered[len(values) // 2]) / 2


def squared_distances(look: np.ndarray, others: np.ndarray, unit: np.ndarray, whole: bool = True) -> np.ndarray:
    """Return how far others look from one, (n,) float64: mean squares of shape, rows and colour in `unit`, averaged.

    others : ndarray of shape (n, n_dims);  whole : their shapes are known, not only what is seen of them
    """
    squares = ((others - look) / unit) ** 2
    parts = [squares[:, :SHAPE_DIMS], squares[:, SHAPE_DIMS:-COLOUR_DIMS], squares[:, -COLOUR_DIMS:]]
    parts = parts if whole else parts[1:]
    means = [part.sum(axis=1) / part.shape[1] for part in parts]
    return np.asarray(sum(means[1:], means[0]) / len(means))
