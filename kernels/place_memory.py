"""How far a descriptor is from what a place has shown before, and how far those samples are from each other.

Called by agent/novelty/places/place_memory.py. It must not choose what is remembered: samples are given, place by
place. Descriptors are in fixed point, 16 bits a value; distances are in its steps.
"""

import math

import numpy as np
from numba import types

from stillwatch.kernels._jit import kernel, reduction_kernel
from stillwatch.kernels._types import b1, f4, i1, i2, i8, matrix, read_cube, read_matrix, read_vector, vector

_SAMPLES = read_cube(i2)
_FAR = np.float32(1e30)
_MOST_BITS = np.int32(0x7F7FFFFF)  # of the largest float there is
_LARGEST = np.float32(32_767)
_BITS, _AWAY = 2, 3  # of a count of returns: the lowest bits, and their highest value, hold how long it was away
_MOST = 32_000  # in 16 bits: 8000 returns
_JUST_BELOW = np.float32(1.0 - 1e-6)  # so that the root of what is enough is below, whatever is rounded


@kernel(types.void(read_matrix(f4), f4, matrix(i2)))
def to_fixed_point(rows, scale, out):
    """Write rows in steps of fixed point: rounded, halves to even, within 16 bits.

    rows : (n, n_dims) float32, read only, finite;  scale : steps of one unit;  out : (n, n_dims) int16, written
    """
    for i in range(rows.shape[0]):
        for d in range(rows.shape[1]):
            out[i, d] = np.int16(min(max(np.rint(rows[i, d] * scale), -_LARGEST), _LARGEST))


@reduction_kernel(f4(read_matrix(i2), i8, _SAMPLES, i8))
def _squared_distance(rows, p, samples, r):
    """Return the squared Euclidean distance of row p to sample r of place p."""
    total = np.float32(0.0)
    for d in range(rows.shape[1]):
        step = np.float32(np.int32(rows[p, d]) - np.int32(samples[p, r, d]))
        total += step * step
    return total


@kernel(types.void(_SAMPLES, i8, i8, i8, matrix(f4), vector(f4)))
def _distances_of_sample(samples, p, n, r, turned, out):
    """Write the squared distances of sample r of place p to all of them, given the place's samples by column."""
    n_dims = samples.shape[2]
    for s in range(n):
        out[s] = 0.0
    for d in range(0, n_dims - n_dims % 4, 4):  # four at a time: one load and store of `out` for four sums
        v0, v1 = np.float32(samples[p, r, d]), np.float32(samples[p, r, d + 1])
        v2, v3 = np.float32(samples[p, r, d + 2]), np.float32(samples[p, r, d + 3])
        t0, t1, t2, t3 = turned[d], turned[d + 1], turned[d + 2], turned[d + 3]
        for s in range(n):
            a, b, c, e = v0 - t0[s], v1 - t1[s], v2 - t2[s], v3 - t3[s]
            out[s] = (((out[s] + a * a) + b * b) + c * c) + e * e
    for d in range(n_dims - n_dims % 4, n_dims):
        value = np.float32(samples[p, r, d])
        for s in range(n):
            step = value - turned[d, s]
            out[s] += step * step
    out[r] = _FAR


@kernel(types.void(matrix(f4), i8, vector(f4), i8))
def _keep_smallest_of_each(best, rank, values, n):
    """Insert n values into the columns of best[0..rank], each the smallest of its own so far; `values` is changed."""
    for k in range(rank + 1):
        row = best[k]
        for s in range(n):
            kept, value = row[s], values[s]
            row[s], values[s] = min(kept, value), max(kept, value)


@kernel(f4(read_vector(f4), i8, i8))
def _in_order(values, n, place):
    """Return the value that n values have at a place in rising order."""
    found = _FAR
    for r in range(n):
        below = not_above = 0
        for s in range(n):
            below += values[s] < values[r]
            not_above += values[s] <= values[r]
        if below <= place < not_above:
            found = values[r]
            break
    return found


@kernel(b1(read_matrix(i2), i8, _SAMPLES, i8, f4, matrix(i1)))
def _are_near(rows, p, samples, rank, enough, likely):
    """Whether the rank + 1 samples that were near to place p are so again."""
    for k in range(rank + 1):
        if likely[p, k] < 0 or _squared_distance(rows, p, samples, likely[p, k]) > enough:
            return False
    return True


@kernel(f4(vector(f4), i8, i8))
def _smallest(squares, n, rank):
    """Return the (rank + 1)-th smallest of n values, none negative; the first one is overwritten.

    Such floats are in the order of their bits as integers, of which whole vectors are compared, without a branch: the
    next larger value and how many there are of it, until there are enough.
    """
    bits = squares.view(np.int32)
    least, n_found = np.int32(-1), np.int32(0)
    while n_found <= rank:
        above, least = least, _MOST_BITS
        for r in range(n):
            value = bits[r] if bits[r] > above else _MOST_BITS
            least = value if value < least else least
        same = np.int32(0)
        for r in range(n):
            same = np.int32(same + np.int32(bits[r] == least))
        n_found = np.int32(n_found + same)
    bits[0] = least
    return squares[0]


@kernel(types.void(read_matrix(i2), i8, _SAMPLES, i8, i8, read_vector(f4), matrix(i1), vector(f4), vector(f4)))
def _search(rows, p, samples, n, rank, near, likely, squares, out):
    """Write out[p], as `nearest_samples` has it."""
    if out[p] <= near[p]:
        return
    enough = near[p] * abs(near[p]) * _JUST_BELOW
    if _are_near(rows, p, samples, rank, enough, likely):
        out[p] = near[p]
        return
    for r in range(n):
        squares[r] = _squared_distance(rows, p, samples, r)
    square = _smallest(squares, n, rank)
    out[p] = min(out[p], np.float32(math.sqrt(square)))
    r = n_near = 0
    if square <= enough:
        while r < n and n_near <= rank:
            if _squared_distance(rows, p, samples, r) <= enough:  # summed anew, so that it may round otherwise
                likely[p, n_near] = r
                n_near += 1
            r += 1
    if n_near <= rank:
        likely[p, 0] = -1


@kernel(types.void(read_matrix(i2), _SAMPLES, i8, i8, read_vector(f4), matrix(i1), vector(f4), vector(f4)))
def nearest_samples(rows, samples, n, rank, near, likely, squares, out):
    """Write the distance of each row to the (rank + 1)-th nearest of its place's samples, as far as it matters.

    Where it is at most `near`, that is all that is found out: most places of most frames are as they always are, and
    a few samples say so, the same ones again and again. A place whose `out` is no more than `near` already is left
    alone, so that a second search goes on where a first one did not find enough; what is written is the smaller of the
    two.

    Parameters
    ----------
    rows : (n_places, n_dims) int16, read only
    samples : (n_places, capacity, n_dims) int16, read only
    n : int64
        Samples that are held, more than `rank`.
    rank : int64
    near : (n_places,) float32, read only
        Distance below which none is told from another; -1: every distance is wanted.
    likely : (n_places, rank + 1) int8 or more columns, read and written
        Samples that were near when they were last looked for, different ones, looked at first; -1 in the first column
        where too few were. They change no result.
    squares : (n,) float32 or longer, workspace
    out : (n_places,) float32, read and written
        Before: the distance found so far, or infinity. After: exact where above `near`, else at most `near`.
    """
    for p in range(out.shape[0]):
        _search(rows, p, samples, n, rank, near, likely, squares, out)


@kernel(
    types.void(
        read_matrix(i2), read_matrix(i2), _SAMPLES, i8, i8, read_vector(f4), matrix(i1), matrix(i1), vector(f4),
        vector(f4),
    )
)  # fmt: skip
def nearest_samples_of_both(rows, others, samples, n, rank, near, likely, likely_others, squares, out):
    """Search for `rows`, then for `others` where those are not near: `nearest_samples` twice, place by place.

    A place's samples are read once for both.
    """
    for p in range(out.shape[0]):
        _search(rows, p, samples, n, rank, near, likely, squares, out)
        _search(others, p, samples, n, rank, near, likely_others, squares, out)


@kernel(types.void(read_matrix(i2), _SAMPLES, read_matrix(i2), i8, read_vector(f4), read_vector(f4), vector(f4)))
def nearest_recurring(rows, samples, returns, n, enough, near, out):
    """Write the distance of each row to the nearest of its place's samples that came again often enough.

    A place whose `out` is no more than `near` already is left alone; what is written is the smaller of the two.

    Parameters
    ----------
    rows : (n_places, n_dims) int16, read only
    samples : (n_places, capacity, n_dims) int16, read only
    returns : (n_places, capacity) int16, read only
        As `count_returns` writes them.
    n : int64
        Samples that are held.
    enough : (n,) float32 or longer, read only
        Returns that are enough, sample by sample.
    near : (n_places,) float32, read only
    out : (n_places,) float32, read and written
    """
    for p in range(out.shape[0]):
        if out[p] <= near[p]:
            continue
        nearest = _FAR
        for r in range(n):
            if returns[p, r] >> _BITS >= enough[r]:
                nearest = min(nearest, _squared_distance(rows, p, samples, r))
        out[p] = min(out[p], np.float32(math.sqrt(nearest)))


@kernel(types.void(read_matrix(i2), _SAMPLES, i8, read_vector(f4), i8, i8, matrix(i2)))
def count_returns(rows, samples, n, reach, first, last, returns):
    """Count for each sample of some places how often the place came to look like it again.

    It returns when a row is like it and the last `2**2 - 1` and more were not: the two lowest bits of `returns` count
    those, the others what returned.

    Parameters
    ----------
    rows : (n_places, n_dims) int16, read only
    samples : (n_places, capacity, n_dims) int16, read only
    n : int64
        Samples that are held.
    reach : (n_places,) float32, read only
        Distance up to which a row is like a sample.
    first, last : int64
        Places to do: first to last - 1.
    returns : (n_places, capacity) int16, read and written
    """
    for p in range(first, last):
        for r in range(n):
            away = returns[p, r] & _AWAY
            if _squared_distance(rows, p, samples, r) > reach[p] * reach[p]:
                returns[p, r] += away < _AWAY
            elif away == _AWAY:
                returns[p, r] = min(returns[p, r] + 1, _MOST)
            else:
                returns[p, r] -= away


@kernel(types.void(_SAMPLES, i8, i8, i8, i8, i8, matrix(f4), vector(f4), matrix(f4), vector(f4)))
def typical_distances(samples, n, rank, place, first, last, turned, others, best, out):
    """Write what `nearest_samples` says of a place's own samples, each against the others: the place-th smallest.

    Parameters
    ----------
    samples : (n_places, capacity, n_dims) int16, read only
    n : int64
        Samples that are held, more than `rank + 1`.
    rank : int64
    place : int64
        Below n; n // 2 is the median.
    first, last : int64
        Places to do: first to last - 1.
    turned : (n_dims, n) float32 or more columns, workspace
    others : (n,) float32 or longer, workspace
    best : (rank + 1, n) float32 or more rows and columns, workspace
    out : (n_places,) float32, written
    """
    for p in range(first, last):
        for r in range(n):
            for d in range(samples.shape[2]):
                turned[d, r] = samples[p, r, d]
        best[: rank + 1, :] = _FAR
        for r in range(n):  # a distance has no direction: row r is the r-th of every column as well
            _distances_of_sample(samples, p, n, r, turned, others)
            _keep_smallest_of_each(best, rank, others, n)
        out[p] = math.sqrt(_in_order(best[rank], n, place))
