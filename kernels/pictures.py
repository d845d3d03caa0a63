"""Small pictures out of large ones, and what is read off a picture pixel by pixel.

Called by agent/gate/measures.py, agent/features/shrinking.py and agent/features/frame_descriptor.py. It must not decide
which size is wanted. `means_of_blocks` is no kernel, and allocates: the wings that ask have no owner in common.
"""

import numpy as np
from numba import types

from stillwatch.kernels._jit import kernel
from stillwatch.kernels._types import f4, f8, i4, i8, matrix, read_matrix, u1, u2, vector

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
