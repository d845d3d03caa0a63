"""Mixtures of groups as their users see them: clumps as data, monotone free energy, sparse rounds, refusals."""

import numpy as np
import pytest

from stillwatch.learn import GroupedMixture, MemoryBoundedMixture
from stillwatch.learn.groups import splitting, starting


def two_dives(n=400, seed=0):
    """Return (rows, dives, truth): three clusters in 3-D, the third in the second dive alone."""
    rng = np.random.default_rng(seed)
    truth = np.concatenate([rng.integers(0, 2, n), rng.integers(0, 3, n)])
    centres = np.array([[0.0, 0.0, 0.0], [6.0, 0.0, 0.0], [0.0, 6.0, 6.0]])
    return centres[truth] + rng.normal(size=(2 * n, 3)), np.repeat(["a", "b"], n), truth


def agreement(truth, labels):
    """Return the part of rows in each label's commonest class."""
    return sum(np.bincount(truth[labels == k]).max() for k in np.unique(labels)) / len(truth)


def test_clusters_weights_and_labels_are_those_of_the_data():
    X, dives, truth = two_dives()
    model = GroupedMixture().fit(X, groups=dives)
    assert model.n_clusters_ == 3
    assert agreement(truth, model.labels_) > 0.98
    only_in_b = model.labels_[truth == 2][0]
    assert model.weights_[0, only_in_b] < 0.01
    assert model.weights_[1, only_in_b] == pytest.approx(1 / 3, abs=0.05)
    np.testing.assert_allclose(model.counts_.sum(axis=1), 400.0)
    np.testing.assert_array_equal(model.predict(X, dives), model.labels_)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("weights", ["dirichlet", "generalised_dirichlet", "stick_breaking"])
def test_free_energy_never_rises(weights, sparse):
    rng = np.random.default_rng(3)
    X = rng.standard_t(2, size=(600, 3)).cumsum(axis=0) % 17.0
    model = GroupedMixture(weights=weights, sparse=sparse, c_width=0.02).fit(X, groups=np.arange(600) // 60)
    steps = np.diff(model.free_energies_)
    assert len(steps) > 10
    assert steps.max() <= 1e-9 * abs(model.free_energy_)


def test_sparse_rounds_find_the_same_model_where_groups_lack_clusters():
    X, dives, _ = two_dives()
    full, sparse = (GroupedMixture(sparse=sparse).fit(X, groups=dives) for sparse in (False, True))
    assert sparse.free_energy_ == pytest.approx(full.free_energy_, rel=1e-4)
    np.testing.assert_array_equal(sparse.labels_, full.labels_)


def test_a_clump_without_spread_is_its_points_with_one_label_for_all():
    X, dives, _ = two_dives(60)
    repeated = GroupedMixture().fit(np.repeat(X, 3, axis=0), groups=np.repeat(dives, 3))
    counted = GroupedMixture().fit(X, groups=dives, counts=np.full(len(X), 3.0))
    # A bound over fewer labellings is no tighter, and here hardly looser.
    assert 0.0 <= counted.free_energy_ - repeated.free_energy_ < 1e-3 * counted.free_energy_
    np.testing.assert_allclose(counted.means_, repeated.means_, atol=0.02)


@pytest.mark.parametrize("form", ["whole", "triangles", "variances"])
def test_clumps_stand_for_their_points(form):
    X, dives, truth = two_dives()
    spans = [
        np.flatnonzero((dives == dive) & (truth == k))[i::10] for dive in "ab" for k in range(3) for i in range(10)
    ]
    spans = [span for span in spans if len(span)]
    means = np.array([X[span].mean(axis=0) for span in spans])
    spreads = np.array([np.cov(X[span].T, bias=True) for span in spans])
    counts, groups = np.array([len(span) for span in spans]), np.array([dives[span[0]] for span in spans])
    low = np.tril_indices(3)
    given = {"whole": spreads, "triangles": spreads[:, low[0], low[1]], "variances": spreads[:, range(3), range(3)]}
    model = GroupedMixture().fit(means, groups=groups, counts=counts, covariances=given[form])
    points = GroupedMixture().fit(X, groups=dives)
    assert agreement(truth, model.predict(X, dives)) > 0.98
    np.testing.assert_allclose(model.means_, points.means_, atol=0.1)
    if form != "variances":  # the sums of a cluster's clumps are its points': only labels of single points differ
        np.testing.assert_allclose(model.covariances_, points.covariances_, atol=0.15)


def test_the_clumps_of_a_stream_are_data():
    X, dives, truth = two_dives(800)
    order = np.random.default_rng(1).permutation(len(X))
    parts, groups = [], []
    for dive in "ab":
        rows = X[order][dives[order] == dive]
        parts.append(MemoryBoundedMixture(covariance="full", memory=120, horizon=10_000).fit(rows).clumps_)
        groups.append(np.full(len(parts[-1]["count"]), dive))
    counts, means = (np.concatenate([part[name] for part in parts]) for name in ("count", "mean"))
    spreads = np.zeros((len(means), 6))
    starts = np.cumsum([0] + [len(part["count"]) for part in parts])
    for start, part in zip(starts, parts, strict=False):
        spreads[start : start + len(part["covariance"])] = part["covariance"]
    model = GroupedMixture().fit(means, groups=np.concatenate(groups), counts=counts, covariances=spreads)
    assert len(means) < 0.2 * len(X)
    assert agreement(truth, model.predict(X, dives)) > 0.98


def test_threads_change_no_bit():
    X, dives, _ = two_dives(4000)
    one, two = (GroupedMixture(n_jobs=n).fit(X, groups=dives) for n in (1, 2))
    assert one.free_energies_ == two.free_energies_
    np.testing.assert_array_equal(one.labels_, two.labels_)


def test_the_units_of_the_data_do_not_matter():
    X, dives, _ = two_dives(100)
    model, scaled = GroupedMixture().fit(X, groups=dives), GroupedMixture().fit(1e3 * X - 5e4, groups=dives)
    np.testing.assert_array_equal(model.labels_, scaled.labels_)
    shift = len(X) * 3 * np.log(1e3)  # the density of N rows in D dimensions, in the other unit
    assert scaled.free_energy_ - shift == pytest.approx(model.free_energy_, rel=1e-4)


def test_a_cluster_much_narrower_than_the_width_is_not_split_off():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(12, 6)), 10, axis=0) + 0.1 * rng.normal(size=(120, 6))
    wide, narrow = (GroupedMixture(c_width=width).fit(X).n_clusters_ for width in (1.0, 0.01))
    assert wide < narrow
    assert narrow in (11, 12)


def test_density_integrates_to_one_and_asks_the_groups_weights():
    X, dives, _ = two_dives()
    model = GroupedMixture().fit(X[:, :1], groups=dives)
    line = np.linspace(-15.0, 20.0, 7001)[:, None]
    for groups in (None, np.full(len(line), "a")):
        assert np.trapezoid(np.exp(model.score_samples(line, groups)), line[:, 0]) == pytest.approx(1.0, abs=0.01)
    unseen = model.score_samples(line, np.full(len(line), "never seen"))
    np.testing.assert_array_equal(unseen, model.score_samples(line))


@pytest.mark.parametrize("X", [np.zeros((1, 3)), np.ones((50, 2)), np.full((4, 1), 1e9)], ids=["one", "same", "large"])
def test_data_without_spread_is_one_cluster(X):
    model = GroupedMixture().fit(X)
    assert model.n_clusters_ == 1
    assert np.isfinite(model.free_energy_)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"groups": ["a"]}, r"groups: shape \(1,\) is not \(5,\)"),
        ({"counts": [1.0, 2.0, 0.0, 1.0, 1.0]}, "counts: row 2 is not a number above 0"),
        ({"counts": [1.0]}, r"counts: shape \(1,\) is not \(5,\)"),
        ({"covariances": np.zeros((6, 2, 2))}, r"covariances: shape \(6, 2, 2\) is not"),
        ({"covariances": np.zeros((5, 4))}, r"covariances: shape \(5, 4\) is not"),
        ({"covariances": -np.ones((5, 2))}, "a variance is below 0"),
        ({"covariances": np.full((5, 2), np.nan)}, "NaN or infinity"),
    ],
)
def test_what_does_not_fit_the_rows_is_refused_and_changes_nothing(given, message):
    model = GroupedMixture().fit(np.eye(3))
    with pytest.raises(ValueError, match=message):
        model.fit(np.arange(10.0).reshape(5, 2), **given)
    assert model.n_features_in_ == 3


@pytest.mark.parametrize("name", ["c_width", "concentration", "tolerance", "max_clusters", "n_jobs"])
def test_settings_are_above_zero(name):
    with pytest.raises(ValueError, match=f"{name}: 0 is not a number above 0"):
        GroupedMixture(**{name: 0}).fit(np.eye(3))


def test_weights_are_one_of_three_rules():
    with pytest.raises(ValueError, match="weights: 'equal' is not one of"):
        GroupedMixture(weights="equal").fit(np.eye(3))


def test_splits_that_a_cluster_alone_finds_worse_are_not_tried_on_all_points(monkeypatch):
    X, groups, _ = two_dives(4000)
    tried = []
    on_all = splitting.normalise
    monkeypatch.setattr(splitting, "normalise", lambda logs: tried.append(0) or on_all(logs))
    early = GroupedMixture(c_width=0.05).fit(X, groups=groups)
    n_early = len(tried)
    monkeypatch.setattr(splitting, "HOPELESS", np.inf)
    late = GroupedMixture(c_width=0.05).fit(X, groups=groups)
    assert n_early < len(tried) - n_early
    assert early.free_energies_ == late.free_energies_
    assert np.array_equal(early.labels_, late.labels_)


def overlapping(n, seed):
    """Return rows of eight clusters in 20 dimensions: few of each, far from spherical, near each other."""
    rng = np.random.default_rng(seed)
    fall = np.arange(1.0, 21.0) ** -0.5
    centres, widths = rng.normal(size=(8, 20)) * 0.9 * fall, rng.uniform(0.3, 1.0, (8, 20))
    truth = np.arange(n) % 8
    return centres[truth] + rng.normal(size=(n, 20)) * widths[truth] * fall


@pytest.mark.parametrize("weights", ["dirichlet", "stick_breaking"])
def test_more_searches_never_end_higher_and_go_on_where_single_splits_end(weights):
    changes = []
    for seed in range(4):
        X = overlapping(240, seed)
        one, five = (GroupedMixture(weights=weights, n_init=n).fit(X) for n in (1, 5))
        changes.append(five.free_energy_ - one.free_energy_)
        assert (np.diff(five.free_energies_) <= 1e-9 * np.abs(five.free_energies_[1:])).all()
    assert max(changes) <= 0.0
    assert min(changes) < -10.0


def test_starts_are_clusters_of_k_means_without_gaps():
    X, _, truth = two_dives()
    labels = starting.k_means(X, np.ones(len(X)), 3, np.random.default_rng(0))
    assert agreement(truth, labels) > 0.98
    same = starting.k_means(np.zeros((5, 2)), np.ones(5), 4, np.random.default_rng(0))
    assert same.tolist() == [0] * 5
    heavy = starting.k_means(np.array([[0.0], [1.0], [10.0]]), np.array([1.0, 1e9, 1.0]), 2, np.random.default_rng(0))
    assert heavy[0] == heavy[1] != heavy[2]


def test_a_coarser_search_of_many_items_ends_where_no_split_lowers_free_energy(monkeypatch):
    X, dives, truth = two_dives(4000)
    fine = GroupedMixture().fit(X, groups=dives)
    monkeypatch.setattr(splitting, "MANY_ITEMS", 1000)
    coarse = GroupedMixture().fit(X, groups=dives)
    assert len(coarse.free_energies_) != len(fine.free_energies_)
    assert coarse.free_energy_ == pytest.approx(fine.free_energy_, rel=1e-5)
    assert (np.diff(coarse.free_energies_) <= 1e-9 * np.abs(coarse.free_energies_[1:])).all()
    last = -np.diff(coarse.free_energies_)[-1]
    assert last <= coarse.tolerance * abs(coarse.free_energy_)
