"""Segments and images together as their users see them: kinds, mixes, descriptors, groups, refusals."""

import numpy as np
import pytest

from stillwatch.learn import GroupedMixture, SimultaneousMixture


def pictures(n=90, seed=0, n_segments=20):
    """Return (segments, image of each, kind of each image): three kinds of mixes of three clusters, 2-D."""
    rng = np.random.default_rng(seed)
    kinds = rng.integers(0, 3, n)
    mixes = np.array([[0.9, 0.1, 0.0], [0.1, 0.1, 0.8], [0.0, 0.9, 0.1]])
    labels = np.concatenate([rng.choice(3, n_segments, p=mixes[kind]) for kind in kinds])
    centres = np.array([[0.0, 0.0], [5.0, 0.0], [0.0, 5.0]])
    return centres[labels] + rng.normal(size=(len(labels), 2)), np.repeat(np.arange(n), n_segments), kinds


def purity(truth, labels):
    return sum(np.bincount(truth[labels == k]).max() for k in np.unique(labels)) / len(truth)


def test_kinds_are_mixes_of_shared_clusters():
    X, images, kinds = pictures()
    model = SimultaneousMixture().fit(X, images=images)
    assert model.n_clusters_ == 3
    assert purity(kinds, model.labels_) > 0.95
    np.testing.assert_allclose(model.mixes_.sum(axis=1), 1.0)
    np.testing.assert_allclose(model.weights_.sum(axis=1), 1.0)
    assert len(model.segment_labels_) == len(X)


def test_free_energy_never_rises_between_the_leavings_out_of_empty_kinds():
    X, images, _ = pictures()
    model = SimultaneousMixture(max_kinds=4, n_init=1).fit(X, images=images)
    steps = np.diff(model.free_energies_)
    assert (steps > 1e-9 * abs(model.free_energy_)).sum() <= 4 - model.n_kinds_


def test_descriptors_tell_kinds_that_segments_do_not():
    X, images, kinds = pictures(n_segments=1)
    descriptors = np.eye(3)[kinds] * 8.0 + np.random.default_rng(1).normal(size=(len(kinds), 3))
    alone = SimultaneousMixture().fit(X, images=images)
    helped = SimultaneousMixture().fit(X, images=images, descriptors=descriptors)
    assert purity(kinds, helped.labels_) > max(0.98, purity(kinds, alone.labels_))
    assert helped.kind_means_.shape == (helped.n_kinds_, 3)


def test_groups_have_their_own_weights_of_kinds():
    X, images, kinds = pictures()
    groups = np.where(kinds == 0, "north", "south")
    model = SimultaneousMixture().fit(X, images=images, groups=groups)
    commonest = np.bincount(model.labels_[kinds == 0]).argmax()
    assert model.groups_.tolist() == ["north", "south"]
    assert model.weights_[0, commonest] > 0.9
    assert model.weights_[1, commonest] < 0.2


def test_new_images_get_the_kinds_of_their_like():
    X, images, kinds = pictures()
    model = SimultaneousMixture().fit(X, images=images)
    there = {int(model.labels_[kinds == kind][0]) for kind in range(3)}
    more, where, truth = pictures(seed=5)
    found = model.predict(more, images=where)
    assert set(found.tolist()) <= there | {int(k) for k in range(model.n_kinds_)}
    assert purity(truth, found) > 0.9
    np.testing.assert_allclose(model.predict_proba(more, images=where).sum(axis=1), 1.0)


def test_more_starts_never_end_higher():
    X, images, _ = pictures(40)
    one, more = (SimultaneousMixture(n_init=n, seed=2).fit(X, images=images).free_energy_ for n in (1, 3))
    assert more <= one


def test_the_order_of_images_and_segments_does_not_decide_their_clusters():
    X, images, kinds = pictures()
    order = np.random.default_rng(4).permutation(len(X))
    model = SimultaneousMixture().fit(X, images=images)
    shuffled = SimultaneousMixture().fit(X[order], images=images[order])
    np.testing.assert_array_equal(shuffled.segment_labels_, model.segment_labels_[order])
    np.testing.assert_array_equal(shuffled.labels_, model.labels_)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"images": [0, 1]}, "images: not 4 whole numbers from 0"),
        ({"images": [0, 0, -1, 1]}, "images: not 4 whole numbers from 0"),
        ({"images": [0, 0, 1, 1], "groups": ["a"]}, "groups: 1 of them, images reach 1"),
        ({"images": [0, 0, 1, 1], "descriptors": np.zeros((1, 2))}, "descriptors: 1 of them, images reach 1"),
        (
            {"images": [0, 0, 1, 1], "groups": ["a", "b"], "descriptors": np.zeros((3, 2))},
            "descriptors: 3 of them, images reach 1",
        ),
    ],
)
def test_what_does_not_fit_the_images_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        SimultaneousMixture().fit(np.arange(8.0).reshape(4, 2), **given)


def test_descriptors_are_asked_for_again():
    X, images, kinds = pictures(20)
    model = SimultaneousMixture().fit(X, images=images, descriptors=np.eye(3)[kinds])
    with pytest.raises(ValueError, match="descriptors: given to one of fit and predict alone"):
        model.predict(X, images=images)


def drawn_from_the_model(seed, n_images=150, n_segments=40, n_clusters=6, n_kinds=5, n_dims=4):
    """Return (segments, image, group, kind, cluster, descriptors) drawn from MCM itself (5.1-5.6, 6.1-6.6)."""
    rng = np.random.default_rng(seed)
    centres, mixes = rng.normal(size=(n_clusters, n_dims)) * 2.0, rng.dirichlet(np.full(n_clusters, 0.4), n_kinds)
    weights, groups = rng.dirichlet(np.full(n_kinds, 2.0), 3), rng.integers(0, 3, n_images)
    kinds = np.array([rng.choice(n_kinds, p=weights[j]) for j in groups])
    clusters = np.concatenate([rng.choice(n_clusters, n_segments, p=mixes[t]) for t in kinds])
    X = centres[clusters] + rng.normal(size=(len(clusters), n_dims))
    descriptors = rng.normal(size=(n_kinds, 5))[kinds] * 1.5 + rng.normal(size=(n_images, 5))
    return X, np.repeat(np.arange(n_images), n_segments), groups, kinds, clusters, descriptors


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("has_descriptors", [False, True], ids=["SCM", "MCM"])
def test_on_data_of_its_own_model_segments_gain_by_images_and_kinds_are_whole(seed, has_descriptors):
    X, images, groups, kinds, clusters, descriptors = drawn_from_the_model(seed)
    given = {"images": images, "groups": groups, "descriptors": descriptors if has_descriptors else None}
    apart = SimultaneousMixture(n_init=2, join_kinds=False).fit(X, **given)
    joined = SimultaneousMixture(n_init=2).fit(X, **given)
    alone = GroupedMixture(c_width=1.0, is_whitened=True).fit(X)
    assert joined.free_energy_ < apart.free_energy_
    assert agreement(kinds, joined.labels_) > max(0.93, agreement(kinds, apart.labels_))
    assert joined.n_kinds_ == 5 < apart.n_kinds_
    assert agreement(clusters, joined.segment_labels_) > agreement(clusters, alone.labels_) + 0.03


def agreement(truth, labels):
    """Return the V-measure of two labellings."""
    table = np.zeros((truth.max() + 1, labels.max() + 1))
    np.add.at(table, (truth, labels), 1.0 / len(truth))

    def entropy(p):
        return -(p[p > 0] * np.log(p[p > 0])).sum()

    rows, columns = entropy(table.sum(1)), entropy(table.sum(0))
    return 2.0 * (rows + columns - entropy(table.ravel())) / (rows + columns)
