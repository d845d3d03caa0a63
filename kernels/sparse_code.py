"""Sparse codes of descriptors over a dictionary by orthogonal matching pursuit, and their maxima over cells.

Called by agent/features/scspm.py. It must not multiply descriptors by the dictionary: np.matmul in the owner is faster.
"""

import math

import numpy as np
from numba import types

from stillwatch.kernels._jit import kernel, reduction_kernel
from stillwatch.kernels._types import f4, i4, i8, matrix, read_matrix, read_vector, vector


@reduction_kernel(f4(vector(f4)))
def largest_size(values):
    """Return the largest absolute value of a vector, float32."""
    most = values[0] * values[0]
    for j in range(values.shape[0]):
        most = max(most, values[j] * values[j])
    return math.sqrt(most)


@kernel(i8(vector(f4)))
def place_of_largest(values):
    """Return where the absolute value of a vector is largest, the first of equals."""
    least = largest_size(values) * (1.0 - 1e-6)
    best, place = values[0] * values[0], 0
    for j in range(values.shape[0]):
        if abs(values[j]) >= least and values[j] * values[j] > best:
            best, place = values[j] * values[j], j
    return place


@reduction_kernel(types.void(vector(f4), f4, read_vector(f4)))
def subtract(values, factor, other):
    """Take `factor` times another vector from a vector."""
    for j in range(values.shape[0]):
        values[j] -= factor * other[j]


@kernel(i8(vector(f4), read_matrix(f4), i8, f4, matrix(f4), matrix(f4), vector(i4), vector(f4)))
def pursue(alpha, gram, n_atoms, least, basis, triangle, atoms, coefficients):
    """Code one descriptor: take the atom of the largest correlation, fit all taken anew, until `n_atoms` are taken.

    The correlations with what is left of the descriptor follow from the Gram matrix alone; `basis` holds, for each
    atom taken, the correlations of its part that is orthogonal to those before it.

    alpha : ndarray of shape (K,), float32: D^T p, changed to the correlations with what is left
    gram : ndarray of shape (K, K), float32: D^T D, unit diagonal
    least : float32; stops where no correlation is larger
    basis : ndarray of shape (n_atoms, K), float32;  triangle : (n_atoms, n_atoms), float32: scratch
    atoms : ndarray of shape (n_atoms,), int32, written;  coefficients : (n_atoms,), float32, written

    Returns the number of atoms taken.
    """
    n_taken = 0
    for t in range(n_atoms):
        k = place_of_largest(alpha)
        if not abs(alpha[k]) > least:
            break
        norm = np.float32(1.0)
        for s in range(t):
            triangle[t, s] = basis[s, k]
            norm -= triangle[t, s] * triangle[t, s]
        if not norm > np.float32(1e-5):
            break  # the atom is one that was taken, or their sum
        for j in range(alpha.shape[0]):
            basis[t, j] = gram[k, j]
        for s in range(t):
            subtract(basis[t], triangle[t, s], basis[s])
        root = np.float32(math.sqrt(norm))
        for j in range(alpha.shape[0]):
            basis[t, j] /= root
        triangle[t, t] = root
        atoms[t] = k
        coefficients[t] = alpha[k] / root
        subtract(alpha, coefficients[t], basis[t])
        n_taken += 1
    for t in range(n_taken - 1, -1, -1):
        for s in range(t + 1, n_taken):
            coefficients[t] -= triangle[s, t] * coefficients[s]
        coefficients[t] /= triangle[t, t]
    return n_taken


@kernel(
    types.void(
        matrix(f4), read_matrix(f4), read_vector(i8), i8, f4, matrix(f4), matrix(f4), vector(i4), vector(f4), matrix(f4)
    )
)
def code_and_pool(alphas, gram, cells, n_atoms, least, basis, triangle, atoms, coefficients, pooled):
    """Code descriptors and keep, for each cell and atom, the largest absolute coefficient (thesis 3.1, 3.5).

    alphas : ndarray of shape (n, K), float32: D^T p of each descriptor, changed
    cells : ndarray of shape (n,), int64: the cell of each, -1 leaves it out
    pooled : ndarray of shape (n_cells, K), float32, raised
    basis, triangle, atoms, coefficients : scratch, as `pursue` has it
    """
    for i in range(alphas.shape[0]):
        if cells[i] >= 0:
            n_taken = pursue(alphas[i], gram, n_atoms, least, basis, triangle, atoms, coefficients)
            row = pooled[cells[i]]
            for t in range(n_taken):
                row[atoms[t]] = max(row[atoms[t]], abs(coefficients[t]))
