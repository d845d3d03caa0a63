"""Scores rows under a mixture of Student t densities: the posterior predictive, many times a frame.

Called by agent/learn/mixture/predictive.py. It must stay pure: no learner's state is touched by a score.
"""

import math

import numpy as np
from numba import types

from stillwatch.kernels._jit import kernel, reduction_kernel
from stillwatch.kernels._types import f4, f8, i8, matrix, read_matrix, read_vector, vector

# A factor 1 + z^2 / nu is held below 1e15 and twenty of them make one product: no overflow (1e300), one logarithm.
FACTORS = 20
LARGEST_FACTOR = 1e15
LOG_2 = 0.6931471805599  # rounded down: a bound stays one
MANTISSA_BITS, EXPONENT_OF_ONE = 52, 1023  # of a float64
LEAST_LOG_SHARE = 40.0  # a density below exp(-40) of the largest changes no bit of the sum


@kernel([(read_matrix(x), i8, i8, read_vector(f8), f8, matrix(f8)) for x in (f4, f8)])
def centre_rows(x, first, n_rows, shift, farthest, out):
    """Write rows from `first` on, less `shift`, no value beyond `farthest`.

    x : ndarray of shape (>= first + n_rows, n_dims), float32 or float64;  shift : (n_dims,), float64
    out : ndarray of shape (>= n_rows, n_dims), float64, written
    """
    for i in range(n_rows):
        for d in range(x.shape[1]):
            out[i, d] = min(max(x[first + i, d] - shift[d], -farthest), farthest)


@reduction_kernel(types.void(read_matrix(f8), i8, i8, i8, read_matrix(f8), read_matrix(f8), i8, vector(f8)))
def _multiply(x, i, first, last, means, scales, n, product):
    """Write the product of row i's factors 1 + z^2 / nu in dimensions first to last - 1, for n components."""
    for k in range(n):
        product[k] = 1.0
    for d in range(first, last):
        value = x[i, d]
        for k in range(n):
            difference = value - means[d, k]
            product[k] *= min(1.0 + difference * difference * scales[d, k], LARGEST_FACTOR)


@reduction_kernel(
    types.void(
        read_matrix(f8), i8, read_matrix(f8), read_matrix(f8), read_vector(f8), read_vector(f8), vector(f8), matrix(f8)
    )
)
def log_joint_diagonal(x, n_rows, means, scales, constants, powers, product, out):
    """Write log w_k + log Student t of each row under each component, dimensions independent given the component.

    x : ndarray of shape (>= n_rows, n_dims), float64
    means, scales : ndarray of shape (n_dims, n_components), float64: location; 1 / (nu scale^2)
    constants, powers : ndarray of shape (n_components,), float64: log weight and normaliser; (nu + 1) / 2
    product : ndarray of shape (n_components,), float64, workspace
    out : ndarray of shape (>= n_rows, n_components), float64, written

    A density is a product over dimensions, so its logarithm is taken once for FACTORS dimensions, not for each.
    """
    n_dims, n_components = means.shape
    for i in range(n_rows):
        for k in range(n_components):
            out[i, k] = constants[k]
        for first in range(0, n_dims, FACTORS):
            _multiply(x, i, first, min(first + FACTORS, n_dims), means, scales, n_components, product)
            for k in range(n_components):
                out[i, k] -= powers[k] * math.log(product[k])


@reduction_kernel(
    types.void(read_matrix(f8), read_matrix(f8), i8, read_vector(f8), read_vector(f8), read_vector(f8), matrix(f8))
)
def log_joint_full(whitened, offsets, n_rows, constants, powers, dofs, out):
    """Write log w_k + log Student t of a block of rows from their whitened coordinates W_k x, all components.

    whitened : ndarray of shape (>= n_rows, n_components * n_dims), float64
    offsets : ndarray of shape (n_components, n_dims), float64: W_k m_k
    constants, powers, dofs : ndarray of shape (n_components,), float64; powers = (nu + n_dims) / 2
    out : ndarray of shape (>= n_rows, n_components), float64, written
    """
    n_components, n_dims = offsets.shape
    for i in range(n_rows):
        for k in range(n_components):
            distance = 0.0
            base = k * n_dims
            for d in range(n_dims):
                difference = whitened[i, base + d] - offsets[k, d]
                distance += difference * difference
            out[i, k] = constants[k] - powers[k] * math.log1p(distance / dofs[k])


@kernel(types.void(read_matrix(f8), i8, vector(f8)))
def log_total(log_joint, n_rows, score):
    """Write the log of the summed densities of each row.

    log_joint : ndarray of shape (>= n_rows, n_components), float64;  score : ndarray of shape (>= n_rows,), float64,
    written
    """
    n_components = log_joint.shape[1]
    for i in range(n_rows):
        best = -np.inf
        for k in range(n_components):
            best = max(best, log_joint[i, k])
        total = 0.0
        for k in range(n_components):
            if log_joint[i, k] > best - LEAST_LOG_SHARE:
                total += math.exp(log_joint[i, k] - best)
        score[i] = best + math.log(total)


@kernel(types.void(read_matrix(f8), i8, i8, vector(i8)))
def likeliest(log_joint, n_rows, n_named, label):
    """Write the likeliest component of each row among the first `n_named`, the first of equals.

    log_joint : ndarray of shape (>= n_rows, n_components), float64; later columns are the mass left to the prior
    label : ndarray of shape (>= n_rows,), int64, written
    """
    for i in range(n_rows):
        top = 0
        for k in range(n_named):
            if log_joint[i, k] > log_joint[i, top]:
                top = k
        label[i] = top


@kernel(
    types.void(
        read_matrix(f8), i8, read_matrix(f8), read_matrix(f8), read_vector(f8), read_vector(f8), i8, vector(f8),
        vector(i8),
    )
)  # fmt: skip
def likeliest_diagonal(x, n_rows, means, scales, constants, powers, n_named, product, label):
    """Write what `log_joint_diagonal` and `likeliest` would, of at most FACTORS dimensions, with few logarithms.

    A product of factors is at least two to the power of its exponent, which says of most components that they are not
    the likeliest.

    product : ndarray of shape (>= n_named,), float64, workspace;  label : (>= n_rows,), int64, written
    """
    bits = product.view(np.int64)
    for i in range(n_rows):
        _multiply(x, i, 0, means.shape[0], means, scales, n_named, product)
        best, top = -np.inf, 0
        for k in range(n_named):
            exponent = (bits[k] >> MANTISSA_BITS) - EXPONENT_OF_ONE
            if constants[k] - powers[k] * (LOG_2 * exponent) > best:
                log_joint = constants[k] - powers[k] * math.log(product[k])
                if log_joint > best:
                    best, top = log_joint, k
        label[i] = top
