"""What the 2010 paper proves: proposition 2 on separated clusters, theorem 4 against the best set there is."""

import numpy as np
import pytest
from reference_kernels_exemplars import best_subset, explained_variance, information, sqeuclidean

from stillwatch.learn.exemplars.stream_greedy import StreamGreedy


def clustering_utility(X, phantom):
    """F_C of a set of rows of X, W = all rows, from the definition (3.5), (3.6)."""
    d = np.array([[sqeuclidean(x, c) for c in X] for x in X])
    p = np.array([sqeuclidean(x, phantom) for x in X])

    def utility(chosen):
        return (p - np.minimum(p, d[:, list(chosen)].min(axis=1, initial=np.inf))).mean()

    return utility


def pass_until_converged(learner, X, order_seed=None):
    """W = all rows (one pass, then fixed), then passes until one brings no swap."""
    learner.partial_fit(X).flush()
    learner.fix_validation()
    for i in range(50):
        swaps = learner.n_swaps_
        order = np.arange(len(X)) if order_seed is None else np.random.default_rng([order_seed, i]).permutation(len(X))
        learner.partial_fit(X[order]).flush()
        if learner.n_swaps_ == swaps and learner.n_held_ == learner.k:
            return
    pytest.fail("it did not converge in 50 passes")


def clusters(n_clusters, n_rows, seed):
    """Far corners at one distance from the origin, nearer to it than to each other; tight, and equal in size."""
    rng = np.random.default_rng(seed)
    centres = 10.0 * np.eye(n_clusters)
    X = np.repeat(centres, n_rows, axis=0) + 0.05 * rng.normal(size=(n_clusters * n_rows, n_clusters))
    return X.astype(np.float32)


@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize("block", [1, 3, 24])
@pytest.mark.parametrize("order", ["sorted", "shuffled", "reversed"])
def test_separated_clusters_are_solved_in_two_passes(k, block, order):
    X = clusters(4, 6, seed=k)
    if order == "shuffled":
        X = X[np.random.default_rng(k).permutation(len(X))]
    elif order == "reversed":
        X = np.ascontiguousarray(X[::-1])
    # W = all rows throughout, as the proposition has it: a first pass that only samples
    learner = StreamGreedy(k=k, block=block, validation=24).allocate(4)
    sampled = StreamGreedy(k=k, block=block, validation=24).allocate(4).partial_fit(X).flush().state()
    kept = {name: sampled[name] for name in sampled if name.startswith(("reservoir.", "validation.", "objective."))}
    nothing = {"objective.e": np.zeros((24, 0), np.float32), "n_blocks": np.array(1), "is_fixed": np.array(1)}
    learner.restore(learner.state() | kept | nothing)
    assert (learner.reservoir_.count, learner.n_held_) == (24, 0)
    learner.partial_fit(X).partial_fit(X).flush()
    utility = clustering_utility(X, np.zeros(4))
    best = best_subset(utility, 24, k) if k < 4 else best_of_each(X)
    assert utility(rows_of(learner, X)) == pytest.approx(best, rel=1e-5)


def rows_of(learner, X):
    return [int(np.flatnonzero((row == X).all(axis=1))[0]) for row in learner.exemplars_]


def best_of_each(X):
    """The best utility of one row from each of the four corners: they do not interact, by proposition 3."""
    utility = clustering_utility(X, np.zeros(4))
    corner = X.argmax(axis=1)
    chosen = [max(np.flatnonzero(corner == c), key=lambda i: utility([i])) for c in range(4)]
    return utility(chosen)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("eta", [0.0, 0.05])
@pytest.mark.parametrize("phantom", ["origin", "far"])
def test_at_convergence_clustering_has_half_the_best_utility(seed, eta, phantom):
    X = np.random.default_rng(seed).normal(size=(14, 2)).astype(np.float32)
    x0 = np.full(2, 3.0 if phantom == "far" else 0.0)
    learner = StreamGreedy(k=3, block=4, validation=14, phantom=x0, minimum_gain=eta)
    pass_until_converged(learner, X, seed)
    utility = clustering_utility(X, x0)
    assert learner.utility_ == pytest.approx(utility(rows_of(learner, X)), rel=1e-5)
    assert learner.utility_ >= 0.5 * best_subset(utility, 14, 3) - 3 * eta


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("objective", ["variance", "entropy"])
def test_at_convergence_an_active_set_has_half_the_best_utility(seed, objective):
    X = np.random.default_rng(seed).normal(size=(11, 2)).astype(np.float32)
    hyper = {"lengthscales": np.array([1.0, 0.6]), "signal_variance": 1.2, "noise_variance": 0.1}
    learner = StreamGreedy(k=3, block=4, validation=11, objective=objective, **hyper)
    pass_until_converged(learner, X, seed)

    def utility(chosen):
        rows = X.astype(np.float64)
        if objective == "entropy":
            return information(rows, chosen, *hyper.values())
        return explained_variance(rows, chosen, rows, *hyper.values())

    assert learner.utility_ == pytest.approx(utility(rows_of(learner, X)), rel=1e-9)
    assert learner.utility_ >= 0.5 * best_subset(utility, 11, 3)


@pytest.mark.parametrize("seed", range(3))
def test_at_convergence_no_swap_at_all_gains(seed):
    X = np.random.default_rng(seed).normal(size=(30, 3)).astype(np.float32)
    learner = StreamGreedy(k=5, block=7, validation=30)
    pass_until_converged(learner, X)
    utility = clustering_utility(X, np.zeros(3))
    chosen = rows_of(learner, X)
    swapped = [utility(chosen[:j] + [i] + chosen[j + 1 :]) for j in range(5) for i in range(30)]
    assert max(swapped) <= utility(chosen) + 1e-6


@pytest.mark.parametrize("seed", range(3))
def test_the_first_block_is_filled_greedily(seed):
    X = np.random.default_rng(seed).normal(size=(12, 2)).astype(np.float32)
    learner = StreamGreedy(k=12, block=12, validation=12, phantom=np.full(2, 4.0))
    learner.partial_fit(X)
    utility = clustering_utility(X, np.full(2, 4.0))
    chosen = []
    for row in learner.exemplar_rows_[:-1]:
        gains = [utility([*chosen, i]) for i in range(12)]
        assert gains[row] == pytest.approx(max(gains), rel=1e-5)
        chosen.append(int(row))
