"""Gradients of a row of pixels in polar form, and their magnitudes spread over orientations.

Called by kernels/sift.py and kernels/hog.py. It must not know where a pixel is: its neighbours are given as rows. Two
passes, as the compiler vectorises a loop over one plane of orientations at a time twice as well as one over all.
"""

import math

import numpy as np

from stillwatch.kernels._jit import reduction_kernel
from stillwatch.kernels._types import b1, f4, i8, read_vector, vector

PLACES = 32  # rows are padded to a multiple of it: a loop over one has no remainder, which would not be vectorised
ZERO, ONE, TWO, FOUR, EIGHT = np.float32(0), np.float32(1), np.float32(2), np.float32(4), np.float32(8)
TINY = np.float32(1e-12)
# Minimax fit of atan(t) * 4 / pi on [0, 1]: largest error 1.04e-4 of an orientation bin (0.005 degrees).
A1, A3, A5, A7 = np.float32(1.2722385), np.float32(-0.40893263), np.float32(0.18622959), np.float32(-0.049639098)


@reduction_kernel("float32(float32, float32)")
def octant_angle(dx, dy):
    """Return the angle of (dx, dy) in units of 45 degrees, [0, 8]; 0 for the zero vector.

    A polynomial in min/max of the sides, folded into the octant: no branch and no arctan2, so that callers
    vectorise. Error at most 1.1e-4 (0.005 degrees).
    """
    ax, ay = abs(dx), abs(dy)
    t = min(ax, ay) / (max(ax, ay) + TINY)
    s = t * t
    a = t * (A1 + s * (A3 + s * (A5 + s * A7)))
    a = TWO - a if ay > ax else a
    a = FOUR - a if dx < ZERO else a
    return EIGHT - a if dy < ZERO else a


@reduction_kernel([(read_vector(f4),) * 5 + (b1, f4, f4, vector(f4), vector(f4))])
def polar_gradients(left, right, behind, ahead, inside, is_signed, unit, shift, angle, magnitude):
    """Write each pixel's gradient as an angle in orientations, and a magnitude.

    Parameters
    ----------
    left, right, behind, ahead : ndarray of shape (n,), float32, read only
        Grey levels of the four neighbours of n pixels; angles turn from right to ahead.
    inside : ndarray of shape (n,), float32, read only
        1 where the pixel counts, else 0.
    is_signed : bool
        Opposite directions are two orientations; else half a turn is taken off those beyond it.
    unit, shift : float
        Orientations in 45 degrees, and what is taken off: the angle that orientation 0 is centred at.
    angle, magnitude : ndarray of shape (n,), float32, written
    """
    for j in range(angle.shape[0]):
        dx = right[j] - left[j]
        dy = ahead[j] - behind[j]
        magnitude[j] = math.sqrt(dx * dx + dy * dy) * inside[j]
        octants = octant_angle(dx, dy)
        octants = octants - FOUR if (not is_signed) and octants >= FOUR else octants
        angle[j] = octants * unit - shift


@reduction_kernel([(read_vector(f4), read_vector(f4), i8, i8, i8, i8, vector(f4))])
def spread_over_orientations(angle, magnitude, n, n_orientations, first, last, out):
    """Spread magnitudes linearly over the two nearest orientations, and write the orientations first to last - 1.

    Parameters
    ----------
    angle, magnitude : ndarray of shape (n_phases * n,), float32, read only
        As `polar_gradients` writes them.
    n, n_orientations : int
        Pixels of a phase; orientations of a turn.
    first, last : int
    out : ndarray of shape (n_phases * (last - first) * n,) or longer, float32
        Phase, orientation, pixel.

    Notes
    -----
    The weight of orientation k is max(0, 1 - |angle - k|) round the turn, which is linear interpolation (Lowe 2004,
    section 6.1; Dalal and Triggs 2005, section 6.3). Only the first and the last orientation have a neighbour beyond
    the turn's end.
    """
    full = np.float32(n_orientations)
    for p in range(angle.shape[0] // n):
        a, m = angle[p * n : (p + 1) * n], magnitude[p * n : (p + 1) * n]
        for k in range(first, last):
            centre = np.float32(k)
            at = (p * (last - first) + k - first) * n
            o = out[at : at + n]
            if k == 0 or k == n_orientations - 1:
                for j in range(n):
                    d = abs(a[j] - centre)
                    o[j] = m[j] * max(ZERO, ONE - min(d, full - d))
            else:
                for j in range(n):
                    o[j] = m[j] * max(ZERO, ONE - abs(a[j] - centre))
