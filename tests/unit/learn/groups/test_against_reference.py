"""The mixtures of groups against the slow program of the thesis's notes: the same free energies, the same models."""

import numpy as np
import pytest
from reference_groups import Dir, GDir, gmc, mcm, prior

from stillwatch.learn import GroupedMixture, SimultaneousMixture

RULES = {"dirichlet": Dir, "generalised_dirichlet": GDir, "stick_breaking": lambda: GDir(dp=True)}


def dives(seed, n_groups):
    """Return rows of five clusters by group, each group with its own mix."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(5, 3)) * 4.0
    mixes = rng.dirichlet(np.full(5, 0.5), n_groups)
    return [
        centres[rng.choice(5, size, p=mix)] + rng.normal(size=(size, 3))
        for mix, size in zip(mixes, rng.integers(25, 90, n_groups), strict=True)
    ]


@pytest.mark.parametrize("weights", RULES)
@pytest.mark.parametrize(("seed", "n_groups"), [(0, 1), (1, 4), (2, 6)])
def test_groups_reach_the_references_free_energy(weights, seed, n_groups):
    by_group = dives(seed, n_groups)
    X = np.vstack(by_group)
    energy, _, _, clusters = gmc(by_group, RULES[weights], prior(X, 0.04))
    groups = np.repeat(np.arange(n_groups), [len(rows) for rows in by_group])
    model = GroupedMixture(weights=weights, c_width=0.04).fit(X, groups=groups)
    assert model.free_energy_ == pytest.approx(energy, rel=1e-9)
    assert model.n_clusters_ == len(clusters)


def albums(seed):
    """Return (segments by image by group, descriptors by group): four kinds of images, some without segments."""
    rng = np.random.default_rng(seed)
    centres, mixes, kinds = rng.normal(size=(5, 3)) * 3.0, rng.dirichlet(np.full(5, 0.4), 4), rng.normal(size=(4, 2))
    segments, descriptors = [], []
    for _ in range(3):
        weights = rng.dirichlet(np.full(4, 0.5))
        labels = rng.choice(4, rng.integers(8, 15), p=weights)
        segments.append(
            [centres[rng.choice(5, n, p=mixes[t])] + rng.normal(size=(n, 3)) for t in labels for n in [rng.integers(9)]]
        )
        descriptors.append(2.0 * kinds[labels] + 0.7 * rng.normal(size=(len(labels), 2)))
    return segments, descriptors


@pytest.mark.parametrize("has_descriptors", [False, True], ids=["SCM", "MCM"])
@pytest.mark.parametrize("seed", [0, 1])
def test_segments_and_images_reach_the_references_free_energy(has_descriptors, seed):
    segments, by_group = albums(seed)
    X, W = np.vstack([x for group in segments for x in group]), np.vstack(by_group)
    images = np.repeat(np.arange(len(W)), [len(x) for group in segments for x in group])
    groups = np.repeat(np.arange(3), [len(group) for group in segments])
    energy, kinds, _, _, mixes, _, clusters = mcm(
        by_group if has_descriptors else None,
        segments,
        GDir,
        1.0,
        prior(W, 0.05) if has_descriptors else None,
        prior(X, 1.0, False),
        8,
        np.random.default_rng(7),
    )
    model = SimultaneousMixture(n_init=1, join_kinds=False, max_kinds=8, c_width=1.0, image_width=0.05, seed=7).fit(
        X, images=images, groups=groups, descriptors=W if has_descriptors else None
    )
    assert model.free_energy_ == pytest.approx(energy, rel=1e-9)
    assert (model.n_clusters_, model.n_kinds_) == (len(clusters), len(mixes))
    theirs = np.concatenate([q.argmax(axis=1) for q in kinds])
    pairs = set(zip(theirs.tolist(), model.labels_.tolist(), strict=True))
    assert len(pairs) == len(set(theirs)) == len(set(model.labels_))
