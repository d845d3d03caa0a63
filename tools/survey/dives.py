"""What tasks make of each dive's descriptors: coordinates, and clumps where pictures are more than a fit takes.

Called by tools/survey/command.py. Tasks read parts and give back what is small; sums of dives add up.
"""

import functools
import pathlib
from collections.abc import Iterator

import numpy as np

from stillwatch.learn import GroupedMixture, MemoryBoundedMixture
from stillwatch.tools.survey.analysis import Found
from stillwatch.tools.survey.describe import PICTURES_A_PART
from stillwatch.tools.survey.machines import Machines
from stillwatch.tools.survey.reduce import Axes, principal_axes

# Principal axes are those of at most so many pictures, every so many of all.
AXES_FROM = 20_000
# More pictures than this are clumped dive by dive, and drawn again as so many points.
MOST_POINTS = 100_000
# Searches of a mixture, and of how many pictures at most: single splits end early where there are few (DECISIONS.md).
SEARCHES, FEW_PICTURES = 5, 10_000
CLUMP_MEMORY = 2_000


def whole_blocks(parts: list[pathlib.Path]) -> Iterator[np.ndarray]:
    """Yield the whole-picture descriptors of parts that have any."""
    for path in parts:
        with np.load(path) as part:
            whole = part["whole"]
        if len(whole):
            yield whole


def coordinates(parts: list[pathlib.Path], machines: Machines) -> np.ndarray:
    """Return all pictures in principal coordinates, (n, at most 20) float64, part by part."""
    step = max(1, -(-len(parts) * PICTURES_A_PART // AXES_FROM))
    axes = principal_axes(lambda: whole_blocks(parts[::step]))
    found: list[np.ndarray] = [np.empty(0)] * len(parts)
    for place, rows in machines.run(functools.partial(project_part, axes=axes), parts):
        found[place] = rows
    return np.concatenate(found)


def project_part(path: pathlib.Path, axes: Axes) -> np.ndarray:
    """Return a part's pictures in principal coordinates."""
    with np.load(path) as part:
        whole = part["whole"]
    return axes.project(whole) if len(whole) else np.empty((0, axes.basis.shape[1]))


def segments_of(parts: list[pathlib.Path]) -> tuple[np.ndarray, np.ndarray]:
    """Return (descriptors of all segments, how many each picture has), part by part."""
    segments, counts = [], []
    for path in parts:
        with np.load(path) as part:
            segments.append(part["segments"])
            counts.append(part["n_segments"])
    return np.concatenate(segments), np.concatenate(counts)


def clump(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a dive's clumps: (means, counts, variances, 0 for single points)."""
    kept = MemoryBoundedMixture(memory=CLUMP_MEMORY, covariance="diagonal", seed=0).fit(rows).clumps_
    variances = np.zeros_like(kept["mean"])
    variances[: len(kept["variance"])] = kept["variance"]
    return kept["mean"], kept["count"], variances


def n_searches(n_pictures: int) -> int:
    """Return how many searches a survey's mixture makes of pictures: several where they are few."""
    return SEARCHES if n_pictures <= FEW_PICTURES else 1


def cluster_dives(
    rows: np.ndarray, dives: np.ndarray, names: list[str], machines: Machines, *, c_width: float, n_jobs: int
) -> Found:
    """Return the survey of pictures, S-GMC, a group for each dive: of the points, or of clumps where they are many.

    rows : (n, n_dims) float64;  dives : (n,) int64, places in `names`
    """
    model = GroupedMixture(c_width=c_width, n_drawn=MOST_POINTS, n_init=n_searches(len(rows)), n_jobs=n_jobs)
    if len(rows) <= MOST_POINTS:
        model.fit(rows, groups=dives)
    else:
        own = [rows[dives == j] for j in range(len(names))]
        done = dict(machines.run(clump, own))
        means, counts, variances = (np.concatenate([done[j][i] for j in range(len(own))]) for i in range(3))
        groups = np.repeat(np.arange(len(own)), [len(done[j][0]) for j in range(len(own))])
        model.fit(means, groups=groups, counts=counts, covariances=variances)
    proba = model.predict_proba(rows, dives)
    # The density of a picture among all of them: what is usual in one dive is not odd in another.
    surprise = -model.score_samples(rows)
    return Found(names, model.counts_, model.free_energy_, proba.argmax(axis=1), proba.max(axis=1), surprise)
