"""Cholesky factors that grow and shrink by one row, and the scores of swaps in a Gaussian process's active set.

Called by agent/learn/exemplars/active_set.py. It must not evaluate covariances: the owner does, by matrix products.
"""

import numpy as np
from numba import types

from stillwatch.kernels._jit import kernel
from stillwatch.kernels._types import f8, i8, matrix, read_matrix, read_vector, vector

_V, _RV = vector(f8), read_vector(f8)
_M, _RM = matrix(f8), read_matrix(f8)


@kernel(i8(_RV, f8, i8, _M))
def cholesky_append(column, diagonal, n, factor):
    """Extend the lower Cholesky factor of an n x n matrix by one row, in place. O(n^2).

    Parameters
    ----------
    column : (n,) float64, read only
        Covariances of the new element with the old ones, in the factor's order.
    diagonal : float64
        Its own variance.
    n : int64
    factor : (capacity, capacity) float64, row n written
        Lower triangle; what is above the diagonal is neither read nor written.

    Returns
    -------
    int64
        0, or 1 where the larger matrix is not positive definite to rounding; then row n means nothing.
    """
    left = diagonal
    for i in range(n):
        total = column[i]
        for j in range(i):
            total -= factor[i, j] * factor[n, j]
        factor[n, i] = total / factor[i, i]
        left -= factor[n, i] * factor[n, i]
    if not left > 0.0:
        return 1
    factor[n, n] = np.sqrt(left)
    return 0


@kernel(types.void(i8, i8, _M))
def cholesky_delete(k, n, factor):
    """Take row and column k out of the n x n matrix whose lower Cholesky factor this is, in place. O((n - k)^2).

    The rows below move up, and Givens rotations bring their surplus column back to zero: orthogonal, hence stable
    where a downdate by subtraction is not (Golub and Van Loan, section 6.5).

    Parameters
    ----------
    k : int64
        Below n.
    n : int64
    factor : (capacity, capacity) float64, updated
        Row n - 1 means nothing afterwards.
    """
    for i in range(k + 1, n):
        for j in range(i + 1):
            factor[i - 1, j] = factor[i, j]
    for j in range(k, n - 1):
        a, b = factor[j, j], factor[j, j + 1]
        radius = np.sqrt(a * a + b * b)
        cosine, sine = a / radius, b / radius
        for i in range(j, n - 1):
            left, right = factor[i, j], factor[i, j + 1]
            factor[i, j] = cosine * left + sine * right
            factor[i, j + 1] = cosine * right - sine * left


@kernel(types.void(_RM, i8, _M))
def triangular_inverse(factor, n, out):
    """Write the inverse of the n x n lower triangle of `factor` into out[:n, :n]. O(n^3 / 6).

    Parameters
    ----------
    factor : (capacity, capacity) float64, read only
    n : int64
    out : (at least n, at least n) float64, its [:n, :n] written, zeros above the diagonal included
    """
    for i in range(n):
        for j in range(n):
            out[i, j] = 0.0
        scale = 1.0 / factor[i, i]
        for t in range(i):
            share = factor[i, t]
            for j in range(t + 1):
                out[i, j] -= share * out[t, j]
        for j in range(i):
            out[i, j] *= scale
        out[i, i] = scale


@kernel(types.void(f8, _RV, _RV, _M))
def add_outer(scale, u, v, out):
    """Add scale * u v^T to out[:len(u), :len(v)].

    Parameters
    ----------
    u, v : (n,), (m,) float64, read only
    out : (at least n, at least m) float64, updated
    """
    for i in range(u.shape[0]):
        share = scale * u[i]
        for j in range(v.shape[0]):
            out[i, j] += share * v[j]


@kernel(types.void(f8, _RV, _RV, _RV, _RV, _M))
def add_outer_pair(scale, u, v, s, t, out):
    """Add scale * (u v^T + s t^T) to out[:len(u), :len(v)], in one pass.

    Parameters
    ----------
    u, s : (n,) float64, read only
    v, t : (m,) float64, read only
    out : (at least n, at least m) float64, updated
    """
    for i in range(u.shape[0]):
        first, second = scale * u[i], scale * s[i]
        for j in range(v.shape[0]):
            out[i, j] += first * v[j] + second * t[j]


@kernel(types.void(i8, f8, _RM, _RM, _RM, _RM, _RM, _RM, _V, vector(i8)))
def variance_swap_gains(n_held, noise, p, h, r, q, m, c, gain, slot):
    """Write each candidate's best swap by F_V (3.4): its gain, summed over W, and the slot it frees. O(b * n_held).

    With P the inverse of the active covariance, G = P k(A, W) and C = k(B, W) - k(B, A) G, taking j out of A lowers
    the explained variance by |G_j|^2 / P_jj, makes the residual of candidate b C_b + (h_bj / P_jj) G_j and its
    variance v_b + h_bj^2 / P_jj, h = k(B, A) P. So the sums over W are needed only as q = G G^T, m = C G^T, c = C C^T.

    Parameters
    ----------
    n_held : int64
        At least 1.
    noise : float64
        Noise variance, which v_b includes.
    p, q : (k, k) float64, read only
    h, m : (b, k) float64, read only
    r, c : (b, b) float64, read only
        r holds the residual covariances of the candidates without noise. The first len(gain) are scored.
    gain : (b,) float64, written
    slot : (b,) int64, written
    """
    for b in range(gain.shape[0]):
        best, best_slot = -np.inf, 0
        variance = r[b, b] + noise
        for j in range(n_held):
            ratio = h[b, j] / p[j, j]
            explained = c[b, b] + ratio * (2.0 * m[b, j] + ratio * q[j, j])
            value = explained / (variance + h[b, j] * ratio) - q[j, j] / p[j, j]
            if value > best:
                best, best_slot = value, j
        gain[b] = best
        slot[b] = best_slot


@kernel(types.void(i8, f8, _RM, _RM, _RM, _V, vector(i8)))
def entropy_swap_gains(n_held, noise, p, h, r, gain, slot):
    """Write each candidate's best swap by F_H (3.3): its gain in nats, and the slot it frees. O(b * n_held).

    Taking j out multiplies the determinant of the active covariance by P_jj; candidate b then brings in
    v_b + h_bj^2 / P_jj.

    Parameters
    ----------
    n_held, noise, p, h, r
        As in `variance_swap_gains`.
    gain : (b,) float64, written
    slot : (b,) int64, written
    """
    for b in range(gain.shape[0]):
        best, best_slot = -np.inf, 0
        variance = r[b, b] + noise
        for j in range(n_held):
            value = variance * p[j, j] + h[b, j] * h[b, j]
            if value > best:
                best, best_slot = value, j
        gain[b] = 0.5 * np.log(best)
        slot[b] = best_slot
