"""What points said of their components and clumps do not: the model that is told has it, not the one that is built."""

import numpy as np
import pytest
from mixture_cases import clumped, clusters, items_of

from stillwatch.base import SnapshotError
from stillwatch.learn import Normaliser
from stillwatch.learn.mixture import views
from stillwatch.learn.mixture.build import ModelBuilder
from stillwatch.learn.mixture.families import make_family
from stillwatch.learn.mixture.mixture import MemoryBoundedMixture
from stillwatch.learn.mixture.priors import prior_parameters
from stillwatch.learn.mixture.remainders import Remainders
from stillwatch.tools.experiments.mixture.continuum import curve

TOLD = ("told_count", "told_mean", "told_scatter")


def learnt(rows, **settings):
    return MemoryBoundedMixture(**{"memory": 300, "horizon": 10_000} | settings).partial_fit(rows).flush()


class Folded:
    """A model of 900 points in three dimensions, told, and the same points as clumps of ten neighbours each."""

    def __init__(self):
        data = curve(3, "curve", 900)
        rows = (data.train - data.train.mean(axis=0)) / data.train.std(axis=0)
        family = make_family("diagonal", 3, 40, 900)
        family.prior[:] = prior_parameters("diagonal", 3, 0.01, 0.05)
        self.builder = ModelBuilder(family, 900, 1.0, 60)
        self.remainders = Remainders(self.builder)
        points = items_of(rows, "diagonal")
        self.builder.build(points, warm=False, merges=True)
        self.remainders.tell(points)
        self.n = self.builder.n_components
        self.clumps = clumped(rows, np.arange(900) // 10, "diagonal")

    def find(self):
        self.builder.identities.begin_epoch()
        self.builder.expect_dense(self.clumps)
        self.remainders.find(self.clumps, self.clumps.n_items)

    def statistics(self):
        """Return what clumps say of each component by their responsibilities, in sums about the origin."""
        items, builder = self.clumps, self.builder
        x, second = (array[: items.n_items].astype(float) for array in (items.x, items.second))
        found = np.zeros((self.n, 7))
        for column in range(builder.candidates.shape[1]):
            for item, k in enumerate(builder.candidates[: items.n_items, column]):
                if k >= 0:
                    weight = items.counts[item] * builder.shares[item, column]
                    found[k] += weight * np.concatenate([[1.0], x[item], second[item] + x[item] ** 2])
        return found

    def told(self):
        """Return what is told of each component, likewise."""
        told = self.builder.told
        count, mean = told.count[: self.n, None], told.mean[: self.n]
        return np.concatenate([count, count * mean, told.scatter[: self.n] + count * mean**2], axis=1)


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)  # means of clumps are float32


def test_what_clumps_say_and_the_remainders_are_what_the_points_said():
    folded = Folded()
    points = folded.told()
    built = [array.copy() for array in folded.builder.family.moments.arrays()]
    folded.find()
    lost = points - folded.statistics()
    assert np.abs(lost).max() > 1.0
    close(lost.sum(axis=0), 0.0)  # one has what another has not
    rest, centre = folded.remainders, folded.remainders.centre[: folded.n]
    count, first = rest.count[: folded.n, None], rest.first[: folded.n]
    second = rest.second[: folded.n] + 2.0 * centre * first + count * centre**2
    close(np.concatenate([count, first + count * centre, second], axis=1), lost)
    folded.remainders.tell(folded.clumps)
    close(folded.told(), points)
    for array, was in zip(folded.builder.family.moments.arrays(), built, strict=True):
        np.testing.assert_array_equal(array[: folded.n], was[: folded.n])


def test_heirs_have_the_remainders_of_the_dead_and_who_was_split_has_none():
    folded = Folded()
    points = folded.told()
    folded.find()
    clumps, who = folded.statistics(), folded.builder.identities
    mean = points[:, 1:4] / points[:, :1]
    dead, heir, split = 1, *np.argsort(((mean - mean[1]) ** 2).sum(axis=1))[[1, -1]]  # the nearest inherits
    who.died(dead, int(heir))
    who.born(dead, int(split))
    folded.remainders.tell(folded.clumps)
    expected = points.copy()
    expected[heir] += points[dead] - clumps[dead]
    expected[[dead, split]] = clumps[[dead, split]]
    close(folded.told(), expected)


def test_a_remainder_of_another_component_is_left_out_and_no_variance_is_taken_away():
    folded = Folded()
    folded.find()
    clumps = folded.statistics()
    mean = clumps[:, 1:4] / clumps[:, :1]
    scatter = clumps[:, 4:] - clumps[:, :1] * mean**2
    folded.remainders.count[0] = -0.9 * clumps[0, 0]
    folded.remainders.second[1] = -2.0 * clumps[1, :1]
    folded.remainders.tell(folded.clumps)
    close(folded.told()[0], clumps[0])
    told = folded.builder.told
    close(told.scatter[1], 0.3 * scatter[1])
    assert told.scatter[: folded.n].min() >= 0.0


def test_other_units_tell_the_same_model():
    folded = Folded()
    told, old = folded.builder.told, Normaliser(np.zeros(3), np.ones(3))
    mean, scatter = told.mean[: folded.n].copy(), told.scatter[: folded.n].copy()
    new = Normaliser(np.array([3.0, -1.0, 0.0]), np.array([2.0, 0.5, 7.0]))
    views.rescale(folded.builder, folded.clumps, old, new)
    np.testing.assert_allclose(told.mean[: folded.n] * new.scale + new.shift, mean)
    np.testing.assert_allclose(told.scatter[: folded.n] * new.scale**2, scatter)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_it_tells_more_than_what_it_builds_and_builds_the_same_whatever_it_tells(seed):
    data = curve(4, "shuffled", 8000, seed, 3000)
    model = learnt(data.train[:6000], memory=400)
    built = MemoryBoundedMixture(memory=400, horizon=10_000).allocate(4)
    state = model.state()
    built.restore(state | {name: state[name.replace("told", "component")] for name in TOLD})
    assert model.score(data.test) > built.score(data.test) + 0.001
    for learner in (model, built):
        learner.partial_fit(data.train[6000:])
    ours, theirs = model.state(), built.state()
    assert {name for name in ours if not np.array_equal(ours[name], theirs[name])} == set(TOLD)


@pytest.mark.parametrize(
    "rows",
    [
        np.ones((900, 3)),
        np.repeat(np.random.default_rng(0).normal(size=(9, 3)), 100, axis=0),
        np.random.default_rng(1).normal(size=(900, 3)) * [1.0, 0.0, 1e-6] + 1e4,
        clusters(1, n_rows=900)[0] * 1e6,
    ],
    ids=["identical", "duplicated", "far", "clusters"],
)
def test_what_is_told_can_be(rows):
    model = learnt(rows, memory=100)
    assert model.covariances_.min() >= 0.0
    assert np.isfinite(model.score_samples(rows)).all()
    assert 0.99 < model.weights_.sum() < 1.0
    told = model.summary()["count"]
    assert told.sum() == pytest.approx(900, rel=1e-2)
    assert (np.diff(told) <= 0.0).all()


def test_what_is_told_fades_with_what_is_held():
    model = learnt(curve(3, "shuffled", 6000).train, halflife=500)
    held = model.clumps_["count"].sum()
    assert held < 1000.0
    # Where a component was split its remainder is gone: what is told sums to about what is held.
    assert model.summary()["count"].sum() == pytest.approx(held, rel=1e-2)


@pytest.mark.parametrize(
    "settings", [{"covariance": "full"}, {"compression": "paper"}, {"parts": 2}, {"warm_start": False}]
)
def test_other_forms_tell_what_they_build(settings):
    model = learnt(curve(3, "shuffled", 1000).train, **settings)
    state = model.state()
    assert not set(TOLD) & set(state)
    np.testing.assert_array_equal(model.summary()["count"], -np.sort(-state["component_count"]))


def test_a_state_without_what_was_told_is_refused():
    model = learnt(curve(3, "shuffled", 1000).train)
    state = model.state()
    for name in TOLD:
        with pytest.raises(SnapshotError, match=name):
            model.restore({other: array for other, array in state.items() if other != name})
    with pytest.raises(SnapshotError, match="told_count"):
        model.restore(state | {"told_count": -state["told_count"]})
