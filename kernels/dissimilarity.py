"""Dissimilarities between two sets of rows: the finish of the Euclidean family's matrix product, and direct loops.

Called by agent/learn/exemplars/dissimilarity.py. It must not decide what a valid row is: the owner has checked.
"""

import numpy as np
from numba import types

from stillwatch.kernels._jit import kernel, reduction_kernel
from stillwatch.kernels._types import f4, f8, i8, matrix, read_matrix, read_vector, vector


@reduction_kernel(types.void(read_matrix(f4), vector(f4)))
def squared_norms(x, out):
    """Write the squared Euclidean norm of each row.

    Parameters
    ----------
    x : (n, d) float32, finite, read only
    out : (n,) float32, written
    """
    for i in range(x.shape[0]):
        total = np.float32(0.0)
        for j in range(x.shape[1]):
            total += x[i, j] * x[i, j]
        out[i] = total


@kernel(types.void(read_vector(f4), read_vector(f4), f8, i8, matrix(f4)))
def finish_euclidean(norms_x, norms_y, scale, is_root, gram):
    """Turn a matrix of inner products into dissimilarities, in place: scale * max(0, |x|^2 + |y|^2 - 2 x.y).

    Parameters
    ----------
    norms_x, norms_y : (n,), (m,) float32, read only
        Squared norms of the rows whose inner products `gram` holds.
    scale : float64
    is_root : int64
        Nonzero: the square root of the scaled value (Hellinger).
    gram : (n, m) float32, read and written
        Clamped at zero: rounding of nearly equal rows must not give a negative dissimilarity.
    """
    factor = np.float32(scale)
    two = np.float32(2.0)
    zero = np.float32(0.0)
    for i in range(gram.shape[0]):
        row = norms_x[i]
        for j in range(gram.shape[1]):
            value = max(zero, row + norms_y[j] - two * gram[i, j]) * factor
            gram[i, j] = np.sqrt(value) if is_root else value


@kernel(types.void(read_matrix(f4), read_matrix(f4), matrix(f4)))
def chi_square(x, y, out):
    """Fill out[k, i] with the chi-square dissimilarity sum_j (x_ij - y_kj)^2 / (x_ij + y_kj) / 2 of every pair of rows.

    Bins that are empty in both rows add nothing. For histograms of mass one it lies in [0, 1].

    Parameters
    ----------
    x, y : (n, d), (m, d) float32, finite, not negative, read only
    out : (m, n) float32, written
    """
    for k in range(y.shape[0]):
        for i in range(x.shape[0]):
            total = np.float32(0.0)
            for j in range(x.shape[1]):
                mass = x[i, j] + y[k, j]
                if mass > 0.0:
                    gap = x[i, j] - y[k, j]
                    total += gap * (gap / mass)
            out[k, i] = np.float32(0.5) * total


def pairwise_kernel(function):
    """Return a kernel (x, y, out) that fills out[k, i] with `function(x_i, y_k)` for every pair of rows.

    Parameters
    ----------
    function : numba-compiled function of two (d,) float32 arrays that returns a number
        It need not be a metric, nor symmetric: it is called with the exemplar or candidate second.

    Compiled when called, once a function; not cached, as the cache key knows nothing of foreign code.
    """

    @kernel(types.void(read_matrix(f4), read_matrix(f4), matrix(f4)), cache=False)
    def pairwise(x, y, out):
        for k in range(y.shape[0]):
            for i in range(x.shape[0]):
                out[k, i] = np.float32(function(x[i], y[k]))

    return pairwise
