"""Slow, clear versions of the kernels of exemplars, dissimilarities and Gaussian processes: straight from the paper."""

import itertools
import math

import numpy as np


def sqeuclidean(a, b):
    return math.fsum((float(x) - float(y)) ** 2 for x, y in zip(a, b, strict=True))


def cosine(a, b):
    lengths = [math.sqrt(math.fsum(float(x) ** 2 for x in row)) for row in (a, b)]
    if 0.0 in lengths:
        return 0.0 if lengths == [0.0, 0.0] else 0.5
    return 1.0 - math.fsum(float(x) * float(y) for x, y in zip(a, b, strict=True)) / (lengths[0] * lengths[1])


def chi_square(a, b):
    pairs = [(float(x), float(y)) for x, y in zip(a, b, strict=True)]
    return 0.5 * math.fsum((x - y) ** 2 / (x + y) for x, y in pairs if x + y > 0.0)


def hellinger(a, b):
    squares = ((math.sqrt(x) - math.sqrt(y)) ** 2 for x, y in zip(a, b, strict=True))
    return math.sqrt(0.5 * math.fsum(squares))


DISSIMILARITIES = {"sqeuclidean": sqeuclidean, "cosine": cosine, "chi_square": chi_square, "hellinger": hellinger}


def ranked(e_row, p, n_held):
    """m, z, o, y of one validation point: the two nearest of phantom (-1) and exemplars, by distance, then slot."""
    order = sorted([(float(p), -1)] + [(float(e_row[j]), j) for j in range(n_held)])
    (m, z), (o, y) = order[0], order[1] if n_held else (math.inf, -1)
    return m, z, o, y


def summed_loss(e, p, chosen):
    """Sum over W of the least of the phantom's and the chosen columns' dissimilarities: |W| L(A + {x0})."""
    return math.fsum(min([float(p[i])] + [float(e[i, j]) for j in chosen]) for i in range(len(p)))


def swap_gain(e, p, d, slot):
    """Brute force: what the summed loss falls by when column `slot` of e is replaced by d."""
    swapped = np.array(e, np.float64)
    swapped[:, slot] = d
    everything = range(e.shape[1])
    return summed_loss(e, p, everything) - summed_loss(swapped, p, everything)


def swap_gain_as_printed(e, p, d, slot):
    """Appendix II word for word: removing s' costs o_i - m_i at points of s' whose d(x_i, s') < d(x_i, s)."""
    total = 0.0
    for i in range(len(p)):
        m, z, o, _ = ranked(e[i], p[i], e.shape[1])
        if d[i] < m:
            total += m - float(d[i])
        if z == slot and m < d[i]:
            total -= o - m
    return total


def best_subset(utility, n, k):
    """The best utility of any set of at most k of n elements, by looking at all of them."""
    return max(utility(subset) for size in range(k + 1) for subset in itertools.combinations(range(n), size))


def gaussian_covariance(a, b, lengthscales, signal_variance):
    gaps = (a[:, None, :] - b[None, :, :]) / lengthscales
    return signal_variance * np.exp(-0.5 * (gaps**2).sum(axis=2))


def explained_variance(rows, active, points, lengthscales, signal_variance, noise_variance):
    """F_V (3.4) of a set, as a mean over points, from the definition."""
    if not len(active):
        return 0.0
    a = rows[list(active)]
    sigma = gaussian_covariance(a, a, lengthscales, signal_variance) + noise_variance * np.eye(len(a))
    cross = gaussian_covariance(a, points, lengthscales, signal_variance)
    return float((cross * np.linalg.solve(sigma, cross)).sum(axis=0).mean())


def information(rows, active, lengthscales, signal_variance, noise_variance):
    """F_H (3.3) of a set: 1/2 log det(Sigma / noise variance)."""
    a = rows[list(active)]
    sigma = gaussian_covariance(a, a, lengthscales, signal_variance) + noise_variance * np.eye(len(a))
    return 0.5 * float(np.linalg.slogdet(sigma / noise_variance)[1])
