"""Groups novel patches into regions that can be outlined and pointed at.

Called by agent/novelty/score.py. It must not know frames or models: a map of deviations in, rectangles out.
"""

from dataclasses import dataclass

import cv2
import numpy as np

from stillwatch.novelty.rules import MAX_REGIONS, NOVEL


@dataclass(frozen=True, slots=True)
class Region:
    """One connected group of novel patches.

    box: x0, y0, x1, y1, shares of width and height. centre: x, y, its patches weighed by their deviations. weight:
    sum of its deviations. n_patches. peak: index of its most deviating patch, row by row of the grid.
    """

    box: tuple[float, float, float, float]
    centre: tuple[float, float]
    weight: float
    n_patches: int
    peak: int


def novel_regions(deviations: np.ndarray, centres: np.ndarray, least_patches: int) -> list[Region]:
    """Return the regions of `least_patches` and more, the heaviest first, at most MAX_REGIONS.

    Parameters
    ----------
    deviations : ndarray of shape (rows, columns), float32
    centres : ndarray of shape (rows * columns, 2), float32
        x and y of the patches in [0, 1].
    """
    mask = (deviations >= NOVEL).astype(np.uint8)
    if not mask.any():
        return []
    _, names = cv2.connectedComponents(mask, connectivity=8)
    names = names.ravel()
    weights = deviations.ravel()
    sizes = np.bincount(names)
    sums = np.bincount(names, weights=weights)
    sums[0] = 0.0
    kept = [int(name) for name in np.argsort(-sums, kind="stable") if name and sizes[name] >= least_patches]
    half_x, half_y = _half_steps(centres, deviations.shape)
    regions = []
    for name in kept[:MAX_REGIONS]:
        inside = np.flatnonzero(names == name)
        places, strength = centres[inside].astype(np.float64), weights[inside].astype(np.float64)
        low, high = places.min(axis=0), places.max(axis=0)
        x, y = strength @ places / strength.sum()
        box = (
            max(float(low[0]) - half_x, 0.0),
            max(float(low[1]) - half_y, 0.0),
            min(float(high[0]) + half_x, 1.0),
            min(float(high[1]) + half_y, 1.0),
        )
        peak = int(inside[np.argmax(strength)])
        regions.append(Region(box, (float(x), float(y)), float(sums[name]), int(sizes[name]), peak))
    return regions


def _half_steps(centres: np.ndarray, grid_shape: tuple[int, ...]) -> tuple[float, float]:
    """Return half the distance between neighbours of the grid along x and y; half the frame where there is one."""
    rows, columns = grid_shape
    grid = centres.reshape(rows, columns, 2)
    half_x = 0.5 * float(grid[0, 1, 0] - grid[0, 0, 0]) if columns > 1 else 0.5
    half_y = 0.5 * float(grid[1, 0, 1] - grid[0, 0, 1]) if rows > 1 else 0.5
    return half_x, half_y
