"""The full family of few dimensions, in one call each, against NumPy and the slow reference."""

import numpy as np
import pytest
import reference_kernels_mixture as reference
from narrow_cases import LOW, N_COMPONENTS, PRIOR, ROOMS, D, N, World
from scipy.special import digamma, expit

from stillwatch.kernels import mixture_narrow as narrow


@pytest.fixture(params=ROOMS, ids=["all clumps decoded at once", "each decoded where it is read"])
def world(request):
    return World(request.param)


def test_statistics_and_posteriors_are_the_references(world):
    count, mean, packed, post_mean, whiten, fits = world.maximised()
    for k in range(N_COMPONENTS):
        stat = world.statistics(world.dense[:, k])
        part = reference.FullComponent(*stat, PRIOR)
        assert count[k] == pytest.approx(stat[0], rel=1e-12)
        np.testing.assert_allclose(mean[k], stat[1], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(packed[k], stat[2][LOW], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(post_mean[k], part.mean, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(whiten[k].T @ whiten[k], part.nu * part.inverse, rtol=1e-8, atol=1e-10)
        assert fits[k, 1] == pytest.approx(reference.log_evidence(*stat, PRIOR, "full"), rel=1e-10)


def test_statistics_of_a_list_are_summed_about_any_centre_and_of_nothing_are_none(world):
    rows, weights, mean, packed = np.array([1, 7, 290]), np.array([2.0, 0.0, 0.5]), np.zeros(D), np.zeros(10)
    shares = np.zeros(N)
    shares[rows] = weights / world.counts[rows]
    stat = world.statistics(shares)
    count = narrow.collect(*world.items, rows, weights, np.full(D, 5.0), *hold_listed(world, rows), mean, packed)
    assert count == 2.5
    np.testing.assert_allclose(mean, stat[1], rtol=1e-9)
    np.testing.assert_allclose(packed, stat[2][LOW], rtol=1e-9, atol=1e-9)
    assert narrow.collect(*world.items, rows, np.zeros(3), np.zeros(D), *world.spaces, mean, packed) == 0.0
    assert not mean.any()
    assert not packed.any()


def hold_listed(world, rows):
    narrow.hold(*world.items[1:], rows, world.spaces[1], world.spaces[0])
    return world.spaces


def test_log_joints_are_the_references_by_list_by_block_and_of_some(world):
    places, log_weight = world.maximised(), np.array([-1.0, -0.5, -2.0])
    wanted = world.log_joints([world.statistics(world.dense[:, k]) for k in range(N_COMPONENTS)], log_weight)
    shares = np.zeros((N, N_COMPONENTS))
    narrow.log_joints_kept(
        *world.items, *world.listed(), N_COMPONENTS, log_weight, *places[3:], *world.spaces, np.zeros(10), np.zeros(N),
        shares,
    )  # fmt: skip
    np.testing.assert_allclose(shares, wanted, rtol=1e-8)
    held, factor, work = world.spaces
    block, raw = np.zeros((100, N_COMPONENTS + 1)), np.zeros((D, narrow.COLUMNS))
    for first in (0, 3, 150):
        narrow.log_joint_block(
            *world.items, first, 90, N_COMPONENTS, log_weight, *places[3:], held, factor, raw, work,
            np.zeros((N_COMPONENTS, 10)), block,
        )  # fmt: skip
        np.testing.assert_allclose(block[:90, :N_COMPONENTS], wanted[first : first + 90], rtol=1e-8)
    rows, out = np.array([0, 4, 200]), np.zeros(3)
    narrow.log_joint(
        *world.items, rows, places[3][1], places[4][1], places[5][1, 0] + log_weight[1], *hold_listed(world, rows),
        np.zeros(10), out,
    )  # fmt: skip
    np.testing.assert_allclose(out, wanted[rows, 1], rtol=1e-8)


def split(world, share, rule, soft, n_updates, settled=0.0, spread=None):
    """Return the children of a split of all items, and its last change."""
    children = world.room_for(2)
    change = narrow.split(
        *world.items, np.arange(N), world.counts, np.zeros(D), PRIOR, rule, 7.0, 1.0, soft, n_updates, settled,
        np.zeros(10) if spread is None else spread, *world.spaces, np.zeros(10), *children, np.zeros((4, N)), share,
    )  # fmt: skip
    return children, change


def reference_split(world, share, rule, soft, n_updates, spread):
    """Return the children's statistics after restricted updates, as the text has them."""
    for left in range(n_updates, -1, -1):
        stats = [world.statistics(share), world.statistics(1.0 - share)]
        stats = [(count, mean, scatter + count * spread) for count, mean, scatter in stats]
        if not left:
            return stats
        parts = [reference.FullComponent(*stat, PRIOR) for stat in stats]
        one, other = stats[0][0], stats[1][0]
        odds = np.log(one / other)
        if rule == narrow.STICKS:
            large, small = max(one, other), min(one, other)
            odds = digamma(1 + large) - digamma(1.0 + small + 7.0)
            odds -= digamma(1 + small) - digamma(2.0 + small + 7.0)
            odds *= 1.0 if one >= other else -1.0
        joint = world.log_joints(stats, [0.0, 0.0])
        wide = [0.5 * np.trace(part.nu * part.inverse @ spread) for part in parts]
        logit = joint[:, 0] - joint[:, 1] - wide[0] + wide[1] + odds
        share = expit(logit) if soft else (logit > 0.0).astype(float)


@pytest.mark.parametrize("rule", [narrow.STICKS, narrow.MASSES])
@pytest.mark.parametrize(("soft", "n_updates"), [(1, 0), (1, 3), (0, 2)])
def test_restricted_updates_of_a_split_are_the_references(world, rule, soft, n_updates):
    square = 0.1 * np.eye(D)
    share = (world.x[:, 0] > 0.0).astype(float)
    wanted = reference_split(world, share.copy(), rule, soft, n_updates, square)
    (count, mean, packed, _, _, fits), _ = split(world, share, rule, soft, n_updates, 0.0, square[LOW].copy())
    for side in range(2):
        assert count[side] == pytest.approx(wanted[side][0], rel=1e-8)
        np.testing.assert_allclose(mean[side], wanted[side][1], rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(packed[side], wanted[side][2][LOW], rtol=1e-7, atol=1e-7)
        assert fits[side, 1] == pytest.approx(reference.log_evidence(*wanted[side], PRIOR, "full"), rel=1e-8)


def test_updates_of_a_split_end_where_little_or_nothing_changes_or_a_side_is_empty(world):
    share = (world.x[:, 0] > 0.0).astype(float)
    _, change = split(world, share, narrow.STICKS, 1, 50, settled=0.5)
    assert 0.0 < change <= 0.5
    once = share.copy()
    _, change = split(world, share, narrow.STICKS, 1, 1)
    assert change == np.abs(share - once).max() > 0.0
    hard = (world.x[:, 0] > 0.0).astype(float)
    assert split(world, hard, narrow.STICKS, 0, 50)[1] == 0.0
    children, change = split(world, np.ones(N), narrow.MASSES, 1, 50)
    assert children[0].tolist() == [world.counts.sum(), 0.0]
    assert change == 0.0


def test_merge_gains_are_the_evidence_of_both_less_that_of_each():
    world = World(ROOMS[0])
    count, mean, packed, _, _, fits = world.maximised()
    pairs, gains = np.array([[0, 1], [0, 2], [1, 2]]), np.zeros(3)
    narrow.merge_gains(
        count, mean, packed, fits, PRIOR, pairs, 3, np.zeros((D, D)), np.zeros(10), np.zeros(D + 1), gains
    )

    def evidence(shares):
        return reference.log_evidence(*world.statistics(shares), PRIOR, "full")

    apart = [evidence(world.dense[:, k]) for k in range(N_COMPONENTS)]
    wanted = [evidence(world.dense[:, a] + world.dense[:, b]) - apart[a] - apart[b] for a, b in pairs]
    np.testing.assert_allclose(gains, wanted, rtol=1e-8)


def test_groups_become_clumps_of_their_moments_and_one_alone_stays_what_it_is(world):
    order, bounds = np.array([2, 0, 9, 10, 11, 12, 4, 200]), np.array([0, 1, 6, 8])
    groups = np.array([0, 1, 2])
    out_x, out_counts = np.zeros((3, D), np.float32), np.zeros(3)
    out_second, out_codes = np.zeros_like(world.second[:3]), np.zeros_like(world.codes[:3])
    narrow.summarise(
        *world.items, world.counts, order, bounds, groups, 3, *hold_listed(world, order), np.zeros(8), np.zeros(D),
        np.zeros(D), np.zeros(10), out_x, out_counts, out_second, out_codes,
    )  # fmt: skip
    assert out_counts[0] == world.counts[2]
    np.testing.assert_array_equal(out_x[0], world.x[2])
    np.testing.assert_array_equal(out_second[0], world.second[2])
    np.testing.assert_array_equal(out_codes[0], world.codes[2])
    for row, members in ((1, order[1:6]), (2, order[6:])):
        shares = np.zeros(N)
        shares[members] = 1.0
        count, mean, scatter = world.statistics(shares)
        assert out_counts[row] == count
        np.testing.assert_allclose(out_x[row], mean, rtol=1e-6)
        np.testing.assert_allclose(out_second[row, :D], np.diag(scatter) / count, rtol=1e-5)
        found = reference.decode_rounded(out_second[row], out_codes[row])
        assert np.abs(found - scatter / count).max() < 0.05 * np.diag(scatter).max() / count
