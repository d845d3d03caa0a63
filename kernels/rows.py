"""Rows of a frame put together: encoded patches, their context, their colours.

Called by agent/features/rows.py. It must not know what a context is for. Plain kernels: the bits are those of the same
sums written in NumPy.
"""

import numpy as np
from numba import types

from stillwatch.kernels._jit import kernel
from stillwatch.kernels._types import f4, i8, matrix, read_matrix, read_vector


@kernel(types.void(read_matrix(f4), read_matrix(f4), i8, i8, matrix(f4)))
def pick_colours(cells, centres, n_rows, n_columns, out):
    """Write the colours of the cells that patches' centres are in: green, blue less green, red less green.

    Parameters
    ----------
    cells : (n_rows * n_columns, 3) float32, read only
        Logarithms of blue, green and red.
    centres : (n, 2) float32, read only
        x and y in [0, 1].
    n_rows, n_columns : int64
    out : (n, 3) float32, written
    """
    for i in range(centres.shape[0]):
        column = min(np.int64(centres[i, 0] * np.float32(n_columns)), n_columns - 1)
        row = min(np.int64(centres[i, 1] * np.float32(n_rows)), n_rows - 1)
        cell = cells[row * n_columns + column]
        out[i, 0], out[i, 1], out[i, 2] = cell[1], cell[0] - cell[1], cell[2] - cell[1]


@kernel(types.void(read_matrix(f4), read_matrix(f4), read_vector(f4), read_matrix(f4), i8, matrix(f4), matrix(f4)))
def join_rows(encoded, raw, axis, context, first, plain, patches):
    """Write encoded patches without their brightness, and behind them two values of context.

    Parameters
    ----------
    encoded : (n, n_dims) float32, read only
    raw : (n, n_raw_dims) float32, read only
        Brightness is its last column.
    axis : (n_dims,) or (0,) float32, read only
        What one unit of brightness adds; empty where it stays.
    context : (n, first + 2) float32 or more columns, read only
    first : int64
        The column of the context's first value.
    plain : (n, n_dims) float32, written;  patches : (n, n_dims + 2) float32, written
    """
    n, n_dims = encoded.shape
    last = raw.shape[1] - 1
    for i in range(n):
        if axis.shape[0]:
            for d in range(n_dims):
                plain[i, d] = encoded[i, d] - raw[i, last] * axis[d]
        else:
            for d in range(n_dims):
                plain[i, d] = encoded[i, d]
        for d in range(n_dims):
            patches[i, d] = plain[i, d]
        patches[i, n_dims], patches[i, n_dims + 1] = context[i, first], context[i, first + 1]


@kernel(types.void(read_matrix(f4), read_vector(f4), read_vector(f4), read_vector(f4), read_vector(f4), matrix(f4)))
def relight(plain, contrast, axis, origin, gain, out):
    """Write encoded patches as they would be in other light: contrast is multiplied, and a gated descriptor with it.

    A descriptor's length is its contrast, at most 1 (`gate_descriptors`); contrast itself stands behind it.

    Parameters
    ----------
    plain : (n, n_dims) float32, read only
        As `join_rows` writes them, without brightness.
    contrast : (n,) float32, read only
    axis, origin : (n_dims,) float32, read only
        What one unit of contrast adds to an encoded patch; what a patch of nothing is encoded as.
    gain : (n,) float32, read only
        Of the other light over the one there was, above 0.
    out : (n, n_dims) float32, written
    """
    one = np.float32(1.0)
    for i in range(plain.shape[0]):
        brighter = gain[i] * contrast[i]
        length = min(contrast[i], one)
        factor = min(brighter, one) / length if length > np.float32(0.0) else one
        for d in range(plain.shape[1]):
            descriptor = plain[i, d] - origin[d] - contrast[i] * axis[d]
            out[i, d] = origin[d] + factor * descriptor + brighter * axis[d]


@kernel(types.void(read_matrix(f4), read_matrix(f4), f4, matrix(f4)))
def join_words(plain, colours, chroma, out):
    """Write what words are means of: the first values of each patch, then its two colour ratios times `chroma`.

    plain : (n, n_dims) float32, read only, n_dims at least as many as `out` has before the ratios
    colours : (n, 3) float32, read only, as `pick_colours` writes them;  out : (n, n_word_dims) float32, written
    """
    n_axes = out.shape[1] - 2
    for i in range(out.shape[0]):
        for d in range(n_axes):
            out[i, d] = plain[i, d]
        out[i, n_axes], out[i, n_axes + 1] = chroma * colours[i, 1], chroma * colours[i, 2]
