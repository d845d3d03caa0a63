"""Small pictures out of large ones, and what is read off a picture pixel by pixel.

Called by agent/gate/measures.py, agent/features/shrinking.py and agent/features/frame_descriptor.py. It must not decide
which size is wanted. `means_of_blocks` is no kernel, and allocates: the wings that ask have no owner in common.
"""

from collections import namedtuple

import numpy as np
from numba import types

from stillwatch.kernels._jit import kernel
from stillwatch.kernels._types import f4, f8, i4, i8, matrix, read_matrix, read_vector, u1, u2, u4, vector

LEAST_BLOCK, MOST_BLOCK = 3, 256  # pixels along a side: below, OpenCV rounds otherwise; above, sums are not exact
_CHANNELS = 3


@kernel(types.void(read_matrix(u1), i8, i8, i8, i8, vector(u2), vector(i4), vector(i4)))
def _sum_blocks(image, first, down, across, channels, columns, sums, out):
    """Write the sums over a row of blocks whose first pixels are in row `first`, (n_blocks * channels,).

    Notes
    -----
    Each pixel's sum with those to its right is taken, not each block's alone: whole vectors, in two thirds of the time.
    """
    n = out.shape[0] * across
    total = columns[:n]
    for j in range(n):
        total[j] = 0
    for y in range(first, first + down):
        row = image[y]
        for j in range(n):
            total[j] += row[j]
    last = n - (across - 1) * channels
    runs = sums[:last]
    for j in range(last):
        runs[j] = total[j]
    for x in range(1, across):
        shifted = columns[x * channels : x * channels + last]
        for j in range(last):
            runs[j] += shifted[j]
    if channels == _CHANNELS:
        for b in range(out.shape[0] // _CHANNELS):
            at = b * across * _CHANNELS
            out[b * _CHANNELS], out[b * _CHANNELS + 1], out[b * _CHANNELS + 2] = runs[at], runs[at + 1], runs[at + 2]
    else:
        for b in range(out.shape[0]):
            out[b] = runs[b * across]


@kernel(types.void(read_matrix(u1), i8, i8, i8, vector(u2), vector(i4), vector(i4), matrix(u1)))
def round_means(image, down, across, channels, columns, sums, totals, out):
    """Write the mean of each block of pixels, rounded, halves to even.

    image : (height, width * channels) uint8, read only, `channels` 1 or 3
    down, across : int64
        Pixels of a block, at most MOST_BLOCK; blocks beyond those that `out` asks for are left out.
    columns, sums : (width * channels,) uint16 and int32;  totals : (n_columns * channels,) int32; workspaces
    out : (n_rows, n_columns * channels) uint8, written
    """
    scale = np.float32(1.0 / (down * across))
    for r in range(out.shape[0]):
        _sum_blocks(image, r * down, down, across, channels, columns, sums, totals)
        row = out[r]
        for j in range(out.shape[1]):
            row[j] = np.uint8(np.rint(np.float32(totals[j]) * scale))


@kernel(types.void(read_matrix(u1), i8, i8, vector(u2), vector(i4), vector(i4), matrix(f4)))
def exact_means(image, down, across, columns, sums, totals, out):
    """Write the mean of each block of pixels of a grey picture, (n_rows, n_columns) float32; else as `round_means`."""
    scale = np.float32(1.0 / (down * across))
    for r in range(out.shape[0]):
        _sum_blocks(image, r * down, down, across, 1, columns, sums, totals)
        row = out[r]
        for j in range(out.shape[1]):
            row[j] = np.float32(totals[j]) * scale


def takes_blocks(down: int, across: int) -> bool:
    """Whether `means_of_blocks` takes blocks of this size."""
    return LEAST_BLOCK <= min(down, across) and max(down, across) <= MOST_BLOCK


def means_of_blocks(
    image: np.ndarray, shape: tuple[int, int], block: tuple[int, int], *, rounded: bool = True
) -> np.ndarray:
    """Return a picture's means over whole blocks of pixels: to the last bit as OpenCV's INTER_AREA, in half the time.

    Parameters
    ----------
    image : ndarray of shape (height, width) or (height, width, 3), uint8
    shape : tuple of int
        Rows and columns of blocks, from the top left; what is beyond them is left out.
    block : tuple of int
        Pixels of a block down and across, as `takes_blocks` allows.
    rounded : bool
        Whole grey levels; else float32, of a grey picture alone.

    Returns
    -------
    ndarray of shape (rows, columns) or (rows, columns, 3), uint8, or float32 where not `rounded`
    """
    (rows, columns), (down, across) = shape, block
    channels = 1 if image.ndim == 2 else _CHANNELS
    flat = np.ascontiguousarray(image).reshape(len(image), -1)
    wide = flat.shape[1]
    work = np.empty(wide, np.uint16), np.empty(wide, np.int32), np.empty(columns * channels, np.int32)
    if rounded:
        out = np.empty((rows, columns * channels), np.uint8)
        round_means(flat, down, across, channels, *work, out)
        return out.reshape(rows, columns, *image.shape[2:])
    exact = np.empty((rows, columns), np.float32)
    exact_means(flat, down, across, *work, exact)
    return exact


# Read-only tables for one size of picture and one smaller; made by agent/features/shrinking.py. Values of a row of the
# picture are sorted by phase (column modulo those of a period), those of a smaller row likewise: sums are contiguous.
# Indices of single values are unsigned: none can count from the end, which would have to be asked of each.
AreaPlan = namedtuple(
    "AreaPlan",
    (
        "values",  # (n_sorted,) uint32: value of a row of the picture at each place of the sorted row
        "starts",  # (n_taps, n_phases) int64: first place of each tap of a phase
        "weights",  # (n_taps, n_phases * length) float32: of each tap, phase by phase
        "places",  # (n_columns * channels,) uint32: where each value of a smaller row stands among the phases
        "rows",  # (n_rows, n_row_taps) int64: rows of the picture that each smaller row covers
        "row_weights",  # (n_rows, n_row_taps) float32; 0 behind the last
    ),
)
area_plan_type = types.NamedTuple(
    (read_vector(u4), read_matrix(i8), read_matrix(f4), read_vector(u4), read_matrix(i8), read_matrix(f4)), AreaPlan
)


@kernel(types.void(read_matrix(u1), i8, area_plan_type, vector(f4), vector(f4)))
def _shrink_row(image, y, plan, line, across):
    """Write the weighted sums over row y of a picture, phase by phase, (n_phases * length,)."""
    n_taps, n_phases = plan.starts.shape
    length = across.shape[0] // n_phases
    row = image[y]
    for j in range(line.shape[0]):
        line[j] = np.float32(row[plan.values[j]])
    for phase in range(n_phases):
        own = slice(phase * length, (phase + 1) * length)
        out = across[own]
        for tap in range(n_taps):
            first = plan.starts[tap, phase]
            source, weights = line[first : first + length], plan.weights[tap, own]
            if tap == 0:
                for j in range(length):
                    out[j] = source[j] * weights[j]
            else:
                for j in range(length):
                    out[j] += source[j] * weights[j]


@kernel(types.void(read_matrix(u1), area_plan_type, vector(f4), vector(f4), vector(f4), matrix(u1)))
def shrink_areas(image, plan, line, across, total, out):
    """Write the mean of the area that each pixel of a smaller picture covers, parts of pixels by their share, rounded.

    Sums are taken in OpenCV's order (INTER_AREA, float32): along a row, then over rows, from the top left.

    image : (height, width * channels) uint8, read only
    line : (n_sorted,);  across, total : (n_phases * length,), float32, workspaces
    out : (n_rows, n_columns * channels) uint8, written
    """
    held = -1  # row of the picture whose sums stand in `across`: two smaller rows may share it
    for r in range(out.shape[0]):
        for tap in range(plan.rows.shape[1]):
            weight = plan.row_weights[r, tap]
            if not weight > 0.0:
                break
            if plan.rows[r, tap] != held:
                held = plan.rows[r, tap]
                _shrink_row(image, held, plan, line, across)
            if tap == 0:
                for j in range(total.shape[0]):
                    total[j] = weight * across[j]
            else:
                for j in range(total.shape[0]):
                    total[j] += weight * across[j]
        row = out[r]
        for j in range(row.shape[0]):
            row[j] = np.uint8(np.rint(total[plan.places[j]]))


@kernel(types.void(read_matrix(f4), f8, matrix(f8)))
def powers_of_colours(lab, scale, out):
    """Write each pixel's three values times `scale`, their squares and their cubes.

    lab : (n, 3) float32, read only;  out : (n, 9) float64, written
    """
    for i in range(lab.shape[0]):
        for c in range(_CHANNELS):
            value = np.float64(lab[i, c]) * scale
            square = value * value
            out[i, c], out[i, c + _CHANNELS], out[i, c + 2 * _CHANNELS] = value, square, square * value
