"""Swap bookkeeping of exemplar clustering: nearest and second exemplar of each validation point, scores of candidates.

Called by agent/learn/exemplars/clustering.py. It must not choose: it scores, and applies what the owner chose.
Symbols are those of Gomes and Krause 2010, appendix II: m, z, o (8.3-8.5); y is the exemplar at distance o.
"""

import numpy as np
from numba import types

from stillwatch.kernels._jit import kernel
from stillwatch.kernels._types import f4, f8, i4, i8, matrix, read_matrix, read_vector, vector

_F4, _I4, _I8, _F8 = vector(f4), vector(i4), vector(i8), vector(f8)
_RF4, _RI4, _RI8, _RF8 = read_vector(f4), read_vector(i4), read_vector(i8), read_vector(f8)

PHANTOM = -1  # as z or y: the phantom exemplar, which may not be removed


@kernel(types.void(read_matrix(f4), _RF4, i8, i8, _F4, _I4, _F4, _I4))
def _rank_point(e, p, n_held, i, m, z, o, y):
    """Set m, z, o, y of one validation point from its row of `e` and its distance to the phantom."""
    best, second = p[i], np.float32(np.inf)
    best_slot, second_slot = PHANTOM, PHANTOM
    for j in range(n_held):
        d = e[i, j]
        if d < best:
            second, second_slot = best, best_slot
            best, best_slot = d, j
        elif d < second:
            second, second_slot = d, j
    m[i], z[i], o[i], y[i] = best, best_slot, second, second_slot


@kernel(types.void(read_matrix(f4), _RF4, i8, _RI8, _F4, _I4, _F4, _I4))
def rank_points(e, p, n_held, points, m, z, o, y):
    """Set nearest and second nearest exemplar of the given validation points afresh (8.3-8.5).

    O(len(points) * n_held). Ties go to the phantom, then to the lower slot.

    Parameters
    ----------
    e : (n, k) float32, read only
        Dissimilarity of each validation point to each exemplar; columns from `n_held` on are not read.
    p : (n,) float32, read only
        Dissimilarity to the phantom.
    n_held : int64
    points : (c,) int64, read only
        Validation points to do, each below n.
    m, o : (n,) float32, written
        Dissimilarity to the nearest and to the second nearest; o is inf where the phantom is alone.
    z, y : (n,) int32, written
        Their slots, -1 for the phantom.
    """
    for c in range(points.shape[0]):
        _rank_point(e, p, n_held, points[c], m, z, o, y)


@kernel(types.void(_RF4, i8, i8, _RF4, matrix(f4), _F4, _I4, _F4, _I4))
def place_exemplar(d, slot, n_held, p, e, m, z, o, y):
    """Put a new exemplar in a slot, taken or free, and keep m, z, o, y exact.

    Only points whose nearest or second was in that slot are ranked afresh: O(n + touched * n_held). Ties are as in
    `rank_points`, so that ranking all points afresh gives the same bits.

    Parameters
    ----------
    d : (n,) float32, read only
        Dissimilarity of each validation point to the new exemplar.
    slot : int64
        Below n_held.
    n_held : int64
        Exemplars held, the new one included.
    p : (n,) float32, read only
    e : (n, k) float32, column `slot` written
    m, z, o, y : (n,), updated
    """
    for i in range(d.shape[0]):
        value = d[i]
        e[i, slot] = value
        if z[i] == slot or y[i] == slot:
            _rank_point(e, p, n_held, i, m, z, o, y)
        elif value < m[i] or (value == m[i] and slot < z[i]):
            o[i], y[i] = m[i], z[i]
            m[i], z[i] = value, slot
        elif value < o[i] or (value == o[i] and slot < y[i]):
            o[i], y[i] = value, slot


@kernel(types.void(_RF4, _RI4, _RF4, _F8))
def removal_losses(m, z, o, out):
    """Write what removing each exemplar alone would add to the summed loss: sum of o_i - m_i over its points.

    Parameters
    ----------
    m, o : (n,) float32, read only
    z : (n,) int32, read only
    out : (k,) float64, written
    """
    for j in range(out.shape[0]):
        out[j] = 0.0
    for i in range(m.shape[0]):
        if z[i] >= 0:
            out[z[i]] += np.float64(o[i]) - np.float64(m[i])


@kernel(types.void(read_matrix(f4), _RF4, _F8))
def addition_gains(d, m, out):
    """Write the summed gain of adding each candidate: sum_i max(0, m_i - d_ci). O(b * n).

    Parameters
    ----------
    d : (b, capacity) float32, read only
        Dissimilarity of each candidate to each validation point; the first n columns are read.
    m : (n,) float32, read only
    out : (b,) float64, written
    """
    for c in range(d.shape[0]):
        total = 0.0
        for i in range(m.shape[0]):
            gain = m[i] - d[c, i]
            if gain > 0.0:
                total += np.float64(gain)
        out[c] = total


@kernel(types.void(read_matrix(f4), _RF4, _RI4, _RF4, _RF8, _F8, _F8, _I8))
def swap_gains(d, m, z, o, removal, workspace, gain, slot):
    """Write each candidate's best swap: the gain F(A without s' with s) - F(A), summed over points, and its slot s'.

    One sweep in O(b * n + b * k): a point adds to the gain shared by all swaps of a candidate, and corrects the
    removal loss of its own nearest exemplar only (the bookkeeping of FasterPAM, Schubert and Rousseeuw 2021).
    For a point of the removed exemplar the loss becomes min(o_i, d_ci). Appendix II of the paper, as printed, adds
    o_i - m_i for such points whatever d_ci is, which overstates the increase where d_ci < o_i.

    Parameters
    ----------
    d : (b, capacity) float32, read only
        The first n columns are read.
    m, o : (n,) float32, read only
    z : (n,) int32, read only
    removal : (k,) float64, read only
        From `removal_losses`, for the exemplars held: k is their number, at least 1.
    workspace : (k,) float64, overwritten
    gain : (b,) float64, written
    slot : (b,) int64, written
        The lowest slot among equals.
    """
    for c in range(d.shape[0]):
        for j in range(removal.shape[0]):
            workspace[j] = removal[j]
        shared = 0.0
        for i in range(m.shape[0]):
            value = d[c, i]
            if value < o[i]:
                if value < m[i]:
                    shared += np.float64(m[i]) - np.float64(value)
                    if z[i] >= 0:
                        workspace[z[i]] += np.float64(m[i]) - np.float64(o[i])
                elif z[i] >= 0:
                    workspace[z[i]] += np.float64(value) - np.float64(o[i])
        best = 0
        for j in range(1, removal.shape[0]):
            if workspace[j] < workspace[best]:
                best = j
        gain[c] = shared - workspace[best]
        slot[c] = best
