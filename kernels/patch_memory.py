"""How far patches are from all that was kept of the past, wherever in the view that was.

Called by agent/novelty/patch_memory.py and agent/novelty/visits/habituation.py. It must not choose what is kept.
"""

import math

import numpy as np
from numba import types

from stillwatch.kernels._jit import reduction_kernel
from stillwatch.kernels._types import f4, i8, matrix, read_matrix, vector


@reduction_kernel(types.void(read_matrix(f4), i8, read_matrix(f4), i8, vector(f4)))
def _squared_distances(rows, p, columns, n, squares):
    """Write the squared distances of row p to the first n columns."""
    for s in range(n):
        squares[s] = np.float32(0.0)
    for d in range(rows.shape[1]):
        value = rows[p, d]
        for s in range(n):
            step = value - columns[d, s]
            squares[s] += step * step


@reduction_kernel(types.void(read_matrix(f4), read_matrix(f4), i8, vector(f4), vector(f4)))
def nearest_kept(rows, columns, n, squares, out):
    """Write the distance of each row to the nearest of the n kept ones.

    Parameters
    ----------
    rows : (n_rows, n_dims) float32, read only
    columns : (n_dims, capacity) float32, read only
        What is kept, a column each, so that the loop over them is one over neighbours in memory.
    n : int64
        Columns that are held, at least 1.
    squares : (capacity,) float32, workspace
    out : (n_rows,) float32, written
    """
    for p in range(out.shape[0]):
        _squared_distances(rows, p, columns, n, squares)
        least = squares[0]
        for s in range(1, n):
            least = min(least, squares[s])
        out[p] = math.sqrt(least)


@reduction_kernel(types.void(read_matrix(f4), read_matrix(f4), i8, i8, vector(f4), matrix(f4)))
def nearest_of_groups(rows, columns, n_groups, size, squares, out):
    """Write the distance of each row to the nearest of each group of what is kept.

    Parameters
    ----------
    rows : (n_rows, n_dims) float32, read only
    columns : (n_dims, capacity) float32, read only
        What is kept, a column each; a group is `size` columns next to each other.
    n_groups, size : int64
        Groups that are held, and columns of one, at least 1.
    squares : (capacity,) float32, workspace
    out : (n_rows, at least n_groups) float32, written up to n_groups
    """
    n = n_groups * size
    for p in range(rows.shape[0]):
        _squared_distances(rows, p, columns, n, squares)
        for g in range(n_groups):
            least = squares[g * size]
            for s in range(g * size + 1, (g + 1) * size):
                least = min(least, squares[s])
            out[p, g] = math.sqrt(least)
