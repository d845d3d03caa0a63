"""How far a descriptor is from what a place has shown before, and how far those samples are from each other.

Called by agent/novelty/place_memory.py. It must not choose what is remembered: samples are given, place by place.
Descriptors are in fixed point, 16 bits a value; distances are in its steps.
"""

import math

import numpy as np
from numba import types

from stillwatch.kernels._jit import kernel, reduction_kernel
from stillwatch.kernels._types import f4, i2, i8, matrix, read_matrix, read_vector, vector

_SAMPLES = types.Array(i2, 3, "C", readonly=True)
_FAR = np.float32(1e30)
_BITS, _AWAY = 2, 3  # of a count of returns: the lowest bits, and their highest value, hold how long it was away
_MOST = 32_000  # in 16 bits: 8000 returns
_JUST_BELOW = np.float32(1.0 - 1e-6)  # so that the root of what is enough is below, whatever is rounded


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
    for s in range(n):
        out[s] = 0.0
    for d in range(samples.shape[2]):
        value = np.float32(samples[p, r, d])
        for s in range(n):
            step = value - turned[d, s]
            out[s] += step * step
    out[r] = _FAR


@kernel(types.void(vector(f4), i8, f4))
def _keep_smallest(best, rank, value):
    """Insert a value into best[0..rank], the smallest so far in rising order, if it belongs there."""
    if value < best[rank]:
        k = rank
        while k > 0 and best[k - 1] > value:
            best[k] = best[k - 1]
            k -= 1
        best[k] = value


@kernel(types.void(read_matrix(i2), _SAMPLES, i8, i8, read_vector(f4), vector(f4), vector(f4)))
def nearest_samples(rows, samples, n, rank, near, best, out):
    """Write the distance of each row to the (rank + 1)-th nearest of its place's samples, as far as it matters.

    Where it is at most `near`, that is all that is found out: most places of most frames are as they always are, and
    a few samples say so. A place whose `out` is no more than `near` already is left alone, so that a second search
    goes on where a first one did not find enough; what is written is the smaller of the two.

    Parameters
    ----------
    rows : (n_places, n_dims) int16, read only
    samples : (n_places, capacity, n_dims) int16, read only
    n : int64
        Samples that are held, more than `rank`.
    rank : int64
    near : (n_places,) float32, read only
        Distance below which none is told from another; -1: every distance is wanted.
    best : (rank + 1,) float32 or longer, workspace
    out : (n_places,) float32, read and written
        Before: the distance found so far, or infinity. After: exact where above `near`, else at most `near`.
    """
    for p in range(out.shape[0]):
        if out[p] <= near[p]:
            continue
        for k in range(rank + 1):
            best[k] = _FAR
        enough = near[p] * abs(near[p]) * _JUST_BELOW
        r = 0
        while r < n and best[rank] > enough:
            _keep_smallest(best, rank, _squared_distance(rows, p, samples, r))
            r += 1
        out[p] = min(out[p], np.float32(math.sqrt(best[rank])))


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


@kernel(types.void(_SAMPLES, i8, i8, i8, i8, i8, matrix(f4), vector(f4), vector(f4), vector(f4), vector(f4)))
def typical_distances(samples, n, rank, place, first, last, turned, others, best, own, out):
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
    best : (rank + 1,) float32 or longer, workspace
    own : (n,) float32 or longer, workspace
    out : (n_places,) float32, written
    """
    for p in range(first, last):
        for r in range(n):
            for d in range(samples.shape[2]):
                turned[d, r] = samples[p, r, d]
        for r in range(n):
            _distances_of_sample(samples, p, n, r, turned, others)
            for k in range(rank + 1):
                best[k] = _FAR
            for s in range(n):
                _keep_smallest(best, rank, others[s])
            value = best[rank]
            k = r
            while k > 0 and own[k - 1] > value:
                own[k] = own[k - 1]
                k -= 1
            own[k] = value
        out[p] = math.sqrt(own[place])
