"""Rounded covariances of clumps: variances in float32, the Cholesky factor of the correlations in 8 bits.

Called by agent/learn/mixture/families. It must not hold more than one clump decoded but where the caller gives the
room.
"""

import math

from numba import types

from stillwatch.kernels._jit import kernel, reduction_kernel
from stillwatch.kernels._types import f4, f8, i8, matrix, read_matrix, read_vector, vector

LARGEST_CODE = 127.0
# What is added to the diagonal of a correlation matrix before it is factored, and the least conditional variance of a
# column given those before it: clumps of fewer points than dimensions have none of their own. A code is off by 1/254
# of the largest entry, its square by 2e-5: below that nothing is known anyway.
LEAST_VARIANCE = 1e-5

i1 = types.int8


@kernel(types.void(read_vector(f8), f8, matrix(f8), vector(f4), vector(i1)))
def encode(packed, count, factor, second, codes):
    """Round the covariance packed / count: its Cholesky factor, rows scaled to unit length, in 8 bits an entry.

    The factor is rounded, not the correlations: what is decoded is positive definite whatever the rounding was, has
    the same variances, and keeps its small eigenvalues.

    packed : ndarray of shape (n_dims (n_dims + 1) / 2,), float64, scatter, lower triangle row by row
    factor : ndarray of shape (n_dims, n_dims), float64, workspace
    second : ndarray of shape (n_dims + 1,), float32, written: variances, then the step of the codes
    codes : ndarray of shape (n_dims (n_dims - 1) / 2,), int8, written: factor below the diagonal, in steps
    """
    n = factor.shape[0]
    largest = 0.0
    start = 0
    for i in range(n):
        variance = packed[start + i] / count
        second[i] = variance
        length = 1.0 + LEAST_VARIANCE
        for j in range(i):
            value = 0.0
            both = variance * second[j]
            if both > 0.0:
                value = packed[start + j] / (count * math.sqrt(both))
            for m in range(j):
                value -= factor[i, m] * factor[j, m]
            factor[i, j] = value / factor[j, j]
            length -= factor[i, j] * factor[i, j]
        factor[i, i] = math.sqrt(max(length, LEAST_VARIANCE))
        start += i + 1
    for i in range(n):
        length = 0.0
        for j in range(i + 1):
            length += factor[i, j] * factor[i, j]
        for j in range(i):
            factor[i, j] /= math.sqrt(length)
            largest = max(largest, abs(factor[i, j]))
    second[n] = largest / LARGEST_CODE
    step = max(1.0 * float(second[n]), 1e-30)
    p = 0
    for i in range(n):
        for j in range(i):
            codes[p] = int(min(max(round(factor[i, j] / step), -LARGEST_CODE), LARGEST_CODE))
            p += 1


@reduction_kernel(types.void(read_matrix(f4), read_matrix(i1), i8, matrix(f8), vector(f8)))
def decode(second, codes, clump, factor, packed):
    """Write the covariance of one clump, packed.

    second, codes : as `encode` writes them, a row a clump
    factor : ndarray of shape (n_dims, n_dims), float64, workspace
    packed : ndarray of shape (n_dims (n_dims + 1) / 2,), float64, written: lower triangle row by row
    """
    n = factor.shape[0]
    step = 1.0 * float(second[clump, n])  # a float64 here and without the compiler, as all sums are
    start = 0
    code = 0
    for i in range(n):
        length = 0.0
        for j in range(i):
            value = step * codes[clump, code + j]
            factor[i, j] = value
            length += value * value
        last = max(1.0 - length, LEAST_VARIANCE)
        scale = math.sqrt(second[clump, i] / (length + last))
        for j in range(i):
            factor[i, j] *= scale
        factor[i, i] = scale * math.sqrt(last)
        for j in range(i):
            total = 0.0
            for m in range(j + 1):
                total += factor[i, m] * factor[j, m]
            packed[start + j] = total
        packed[start + i] = second[clump, i]
        start += i + 1
        code += i


@kernel(types.void(read_matrix(f4), read_matrix(i1), i8, i8, matrix(f8), vector(f8), matrix(f4)))
def decode_block(second, codes, first, n_clumps, factor, packed, out):
    """Write the covariances of `n_clumps` clumps from `first`.

    factor, packed : workspaces, as in `decode`;  out : ndarray of shape (>= n_clumps, n_packed), float32, written
    """
    for clump in range(n_clumps):
        decode(second, codes, first + clump, factor, packed)
        for p in range(packed.shape[0]):
            out[clump, p] = packed[p]


@kernel(types.void(read_matrix(f4), read_matrix(i1), read_vector(i8), i8, matrix(f8), matrix(f8)))
def decode_list(second, codes, rows, n_rows, factor, out):
    """Write the covariances of the first `n_rows` clumps of a list, packed.

    out : ndarray of shape (>= n_rows, n_packed), float64, written
    """
    for i in range(n_rows):
        decode(second, codes, rows[i], factor, out[i])


@kernel(types.void(read_matrix(f8), i8, read_vector(f8), vector(f8)))
def add_decoded(decoded, n_rows, weights, packed):
    """Add the weighted covariances that `decode_list` wrote: what `add_moments` adds for these clumps."""
    for i in range(n_rows):
        if weights[i] != 0.0:
            for p in range(packed.shape[0]):
                packed[p] += weights[i] * decoded[i, p]


@reduction_kernel(types.void(read_vector(f8), read_matrix(f8), i8, vector(f8)))
def subtract_decoded(precision, decoded, n_rows, out):
    """Subtract tr(E[Lambda] C) / 2 of covariances that `decode_list` wrote: what `subtract_traces` subtracts."""
    for i in range(n_rows):
        total = 0.0
        for p in range(precision.shape[0]):
            total += precision[p] * decoded[i, p]
        out[i] -= 0.5 * total


@kernel(
    types.void(
        read_matrix(f4), read_matrix(i1), read_vector(i8), read_vector(f8), i8, matrix(f8), vector(f8), vector(f8)
    )
)
def add_moments(second, codes, rows, weights, n_clumps, factor, decoded, packed):
    """Add the weighted covariances of the clumps in a list.

    factor, decoded : workspaces, as in `decode`;  packed : ndarray of shape (n_packed,), float64, added to
    """
    for i in range(rows.shape[0]):
        # A hard split gives most clumps no weight on one side, and decoding is the dear part.
        if rows[i] < n_clumps and weights[i] != 0.0:
            decode(second, codes, rows[i], factor, decoded)
            for p in range(packed.shape[0]):
                packed[p] += weights[i] * decoded[p]


@reduction_kernel(
    types.void(
        read_vector(f8), read_matrix(f4), read_matrix(i1), read_vector(i8), i8, matrix(f8), vector(f8), vector(f8)
    )
)
def subtract_traces(precision, second, codes, rows, n_clumps, factor, decoded, out):
    """Subtract tr(E[Lambda] C) / 2 from the log joints of the clumps in a list (the average of F(x), 2.10).

    precision : ndarray of shape (n_packed,), float64, off-diagonal entries doubled
    factor, decoded : workspaces, as in `decode`;  out : ndarray of shape (n,), float64
    """
    for i in range(rows.shape[0]):
        if rows[i] < n_clumps:
            decode(second, codes, rows[i], factor, decoded)
            total = 0.0
            for p in range(precision.shape[0]):
                total += precision[p] * decoded[p]
            out[i] -= 0.5 * total
