"""Pictures made smaller by averaging areas, as OpenCV does it, by kernels of our own.

Called by agent/features, agent/novelty and agent/describing. It must not choose a size.
"""

import functools
import math

import cv2
import numpy as np

from stillwatch.kernels.pictures import AreaPlan, means_of_blocks, shrink_areas, takes_blocks

LEAST_PERIODS = 16  # of a row of the smaller picture: with fewer, sums by phase are too short to be fast
_LEAST_SHARE = 1e-3  # of a pixel: what an area covers less of is left out, as OpenCV does


def shrunk(image: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """Return a picture, (height, width) or (height, width, 3) uint8, at (rows, columns): the mean of what each covers.

    The bits are those of OpenCV's INTER_AREA, which takes about twice as long.
    """
    height, width = image.shape[:2]
    down, across = height // rows, width // columns
    if (rows * down, columns * across) == (height, width):
        if takes_blocks(down, across):
            return means_of_blocks(image, (rows, columns), (down, across))
    elif rows <= height and columns <= width:
        plan = area_plan((height, width), (rows, columns), 1 if image.ndim == 2 else image.shape[2])
        if plan is not None:
            return _by_plan(image, plan).reshape(rows, columns, *image.shape[2:])
    return np.asarray(cv2.resize(image, (columns, rows), interpolation=cv2.INTER_AREA))


def _by_plan(image: np.ndarray, plan: AreaPlan) -> np.ndarray:
    n_sums = plan.weights.shape[1]
    work = np.empty(len(plan.values), np.float32), np.empty(n_sums, np.float32), np.empty(n_sums, np.float32)
    out = np.empty((len(plan.rows), len(plan.places)), np.uint8)
    shrink_areas(np.ascontiguousarray(image).reshape(len(image), -1), plan, *work, out)
    return out


@functools.lru_cache(maxsize=4)  # 50 kB each; a stream has two
def area_plan(size: tuple[int, int], smaller: tuple[int, int], channels: int) -> AreaPlan | None:
    """Return the tables by which a picture is shrunk; None where rows of the smaller one have too few periods.

    size, smaller : rows and columns;  channels : int, values of a pixel
    """
    (height, width), (rows, columns) = size, smaller
    periods = math.gcd(width, columns)
    if periods < LEAST_PERIODS:
        return None
    wide, phases = width // periods, columns // periods  # columns of a period, of either picture
    taps, shares = _taps(width, columns)
    offsets = taps.reshape(periods, phases, -1) - wide * np.arange(periods)[:, None, None]
    if not (offsets == offsets[0]).all():  # rounding: a period covers other pixels than the first
        return None
    channel = np.arange(channels)
    # One period more than there are: a phase's last tap may begin in the next.
    column = np.minimum(wide * np.arange(periods + 1) + np.arange(wide)[:, None], width - 1)
    starts = (offsets[0] % wide * (periods + 1) + offsets[0] // wide) * channels
    weights = shares.reshape(periods, phases, -1).transpose(2, 1, 0)
    place = np.arange(columns) % phases * periods + np.arange(columns) // phases
    plan = AreaPlan(
        (column[..., None] * channels + channel).ravel().astype(np.uint32),
        np.ascontiguousarray(starts.T),
        np.repeat(weights.reshape(len(weights), -1), channels, axis=1),
        (place[:, None] * channels + channel).ravel().astype(np.uint32),
        *_taps(height, rows),
    )
    for table in plan:
        table.setflags(write=False)
    return plan


def _taps(n_from: int, n_to: int) -> tuple[np.ndarray, np.ndarray]:
    """Return which pixels of a line each of a shorter line covers, and what share of it each is.

    Both (n_to, n_taps), int64 and float32: pixels in a row from the first on, those behind the last with a share of 0.
    """
    scale = 1.0 / (n_to / n_from)  # as OpenCV reckons it, to the last bit
    covered: list[dict[int, float]] = []
    for i in range(n_to):
        low, high = i * scale, i * scale + scale
        length = min(scale, n_from - low)
        last = min(math.floor(high), n_from - 1)
        first = min(math.ceil(low), last)
        shares = {pixel: 1.0 / length for pixel in range(first, last)}
        if first - low > _LEAST_SHARE:
            shares[first - 1] = (first - low) / length
        if high - last > _LEAST_SHARE:
            shares[last] = min(high - last, 1.0, length) / length
        covered.append(shares)
    n_taps = max(map(len, covered))
    pixels = np.array([min(shares) + np.arange(n_taps) for shares in covered])
    found = [[shares.get(int(pixel), 0.0) for pixel in line] for line, shares in zip(pixels, covered, strict=True)]
    return pixels, np.array(found, np.float32)
