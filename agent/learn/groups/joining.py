"""Kinds of images that are one: pairs are joined where that lowers F, which random starts alone leave apart.

Called by agent/learn/groups/simultaneous.py. The thesis leaves kinds to empty themselves (5.3); two that hold the same
images seldom do. It must not split clusters of segments.
"""

from dataclasses import replace

import numpy as np

from stillwatch.learn.groups.contexts import ImageLabels
from stillwatch.learn.groups.items import Items
from stillwatch.learn.groups.splitting import Search
from stillwatch.learn.groups.variational import Fit, converge

# Pairs that are tried in full before a fit counts as settled.
TRIED_PAIRS = 3


def join_kinds(items: Items, search: Search, fit: Fit) -> Fit:
    """Return the fit after joins of kinds, one after the other, each of which lowered F; the fit itself where none did.

    The trace of free energies goes on with the rounds of the joins that were kept.
    """
    context = search.context
    assert isinstance(context, ImageLabels)
    while True:
        better = _first_better(items, search, context, fit)
        if better is None:
            return fit
        fit = better


def _first_better(items: Items, search: Search, context: ImageLabels, fit: Fit) -> Fit | None:
    """Return the fit after the first join, of those that promise most, that lowers F."""
    sums = fit.expected.moments, fit.expected.mass
    for first, second in promising_pairs(context, fit.step.state, fit.expected.mass)[:TRIED_PAIRS]:
        joined = _joined(fit.step.state, first, second)
        tried = converge(items, search.prior, context, joined, sums, tolerance=search.tolerance)
        if fit.free_energy - tried.free_energy > search.tolerance * abs(fit.free_energy):
            return replace(tried, free_energies=fit.free_energies + tried.free_energies)
    return None


def promising_pairs(context: ImageLabels, state: np.ndarray, mass: np.ndarray) -> list[tuple[int, int]]:
    """Return pairs of kinds whose join lowers F while segments keep their clusters, what lowers it most first.

    state : ndarray of shape (n_images, T): q(y);  mass : (n_images, K), segments of each image in each cluster
    """
    second, first = np.tril_indices(state.shape[1], -1)
    # Gaussians of kinds add up: those of all pairs are made at once.
    own, both = context.kind_energies(state, first, second)
    plain = context.without_descriptors()
    rest = plain.labels_energy(state, mass)
    changes = both - own[first] - own[second] if len(own) else np.zeros(len(first))
    joins = [_joined(state, a, b) for a, b in zip(first.tolist(), second.tolist(), strict=True)]
    changes += np.array([plain.labels_energy(joined, mass) - rest for joined in joins])
    order = np.argsort(changes, kind="stable")
    return [(int(first[i]), int(second[i])) for i in order if changes[i] < 0.0]


def _joined(state: np.ndarray, first: int, second: int) -> np.ndarray:
    """Return q(y) with the second kind's images in the first."""
    joined = np.delete(state, second, axis=1)
    joined[:, first] += state[:, second]
    return joined
