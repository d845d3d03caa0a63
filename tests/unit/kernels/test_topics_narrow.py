"""A topic's split refined by its documents' weights, against NumPy and the slow reference."""

import numpy as np
import pytest
import reference_kernels_mixture as mixture
import reference_kernels_topics as reference
from narrow_cases import LOW, N_CLUMPS, PRIOR, ROOMS, D, N, World
from scipy.special import digamma, expit

from stillwatch.kernels import mixture_narrow as narrow
from stillwatch.kernels import topics_narrow

N_GROUPS, SIZE, ALPHA = 3, np.array([1.0, 4.0, 2.0]), 1.5


class Documents:
    """Document groups of a world's items."""

    def __init__(self, seed=0):
        rng = np.random.default_rng(seed)
        self.group = rng.integers(N_GROUPS, size=N)
        self.spread = rng.multinomial(reference.PARTS, [0.6, 0.4, 0.0], size=N_CLUMPS).astype(np.uint16)


def refined(world, documents, share, n_updates, settled=0.0):
    """Return the children, alpha and words of each after a refinement of `share`, which changes."""
    children, alphas, words = world.room_for(2), np.zeros(2), np.zeros((2, N_GROUPS + 2))
    asked = (*world.items, np.arange(N), world.counts, np.zeros(D), PRIOR)
    tried = (*world.spaces, np.zeros(10), *children, np.zeros((4, N)), share)
    narrow.split(*asked, narrow.MASSES, 0.0, 1.0, 1, 0, 0.0, np.zeros(10), *tried)
    of_documents = (documents.group, documents.spread, SIZE, ALPHA, words, np.zeros(N_GROUPS + 2), alphas)
    topics_narrow.refine(*asked, n_updates, settled, *tried, *of_documents)
    return children, alphas, words, (asked, tried, of_documents)


@pytest.mark.parametrize("room", ROOMS)
@pytest.mark.parametrize("n_updates", [0, 1, 4])
def test_a_refinement_is_restricted_updates_with_the_documents_weights(room, n_updates):
    world, documents = World(room), Documents()
    share = (world.x[:, 0] > 0.0).astype(float)
    found = refined(world, documents, mine := share.copy(), n_updates)
    n_cs = reference.words_by_group(world.counts, documents.group, documents.spread, N_CLUMPS)
    for left in range(n_updates, -1, -1):
        sides = [share, 1.0 - share]
        stats, words = [world.statistics(side) for side in sides], [n_cs.T @ side for side in sides]
        alphas = [ALPHA * stat[0] / world.counts.sum() for stat in stats]
        if left:
            joint = world.log_joints(stats, [0.0, 0.0])
            psi = [digamma(alpha + of_group / SIZE) for alpha, of_group in zip(alphas, words, strict=True)]
            of_words = n_cs / world.counts[:, None]
            share = expit(joint[:, 0] - joint[:, 1] + of_words @ psi[0] - of_words @ psi[1])
    np.testing.assert_allclose(mine, share, atol=1e-8)
    (count, mean, packed, _, _, fits), found_alphas, found_words, _ = found
    np.testing.assert_allclose(found_alphas, alphas, rtol=1e-8)
    np.testing.assert_allclose(found_words[:, :N_GROUPS], words, rtol=1e-7, atol=1e-7)
    for side in range(2):
        assert count[side] == pytest.approx(stats[side][0], rel=1e-8)
        np.testing.assert_allclose(mean[side], stats[side][1], rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(packed[side], stats[side][2][LOW], rtol=1e-6, atol=1e-6)
        assert fits[side, 1] == pytest.approx(mixture.log_evidence(*stats[side], PRIOR, "full"), rel=1e-8)


def test_it_ends_where_shares_change_by_less_than_asked_or_a_side_is_empty():
    world, documents = World(ROOMS[0]), Documents()
    once, more = (world.x[:, 0] > 0.0).astype(float), (world.x[:, 0] > 0.0).astype(float)
    refined(world, documents, once, 1)
    refined(world, documents, more, 9, settled=1.1)
    np.testing.assert_array_equal(once, more)
    whole = np.ones(N)
    (count, *_), alphas, words, _ = refined(world, documents, whole, 9)
    assert (whole == 1.0).all()
    assert count.tolist() == [world.counts.sum(), 0.0]
    assert alphas.tolist() == [ALPHA, 1e-6]
    assert not words[1].any()


def test_a_group_without_words_of_a_child_weighs_by_alpha_alone():
    world, documents = World(ROOMS[0]), Documents()
    documents.group[:] = 1
    documents.spread[:] = [0, reference.PARTS, 0]
    share = (world.x[:, 0] > 0.0).astype(float)
    *_, words, _ = refined(world, documents, share, 3)
    assert not words[:, [0, 2]].any()
    assert words[:, 1].sum() == pytest.approx(world.counts.sum())
