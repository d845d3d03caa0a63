"""Novelty on digits: does the mixture's density find classes it never saw, and midpoints between those it saw?

Called by the command line as `experiment novelty-digits`. It must not choose a setting by the rows it is judged on.
"""

import argparse
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from stillwatch.base import UsageError
from stillwatch.learn import MemoryBoundedMixture
from stillwatch.tools.experiments.data import measure
from stillwatch.tools.experiments.mixture.data import digits20
from stillwatch.tools.experiments.mixture.digits import MAX_COMPONENTS, fit_sklearn, sklearn_scores
from stillwatch.tools.shared import print_json

METHODS = (
    "stillwatch",
    "stillwatch_300",
    "batch",
    "sklearn_gmm",
    "lof",
    "half_space_trees",
    "loda",
    "isolation_forest",
)
UNSEEN_FROM = 8  # the digits 8 and 9 are never learnt
N_PAIRS = 300
PAIRS_SEED = 5
# Table 2.2's largest memory, whose clumps hold the dozen components that the seen digits need, and a small one.
MEMORY = {"stillwatch": 600, "stillwatch_300": 300}

Score = Callable[[np.ndarray], np.ndarray]  # rows -> novelty, high = new


@dataclass(frozen=True)
class Task:
    """Rows to learn (of seen classes) and three sets to score: held-out rows of seen and of unseen classes, midpoints.

    Each an ndarray of shape (n, 20), float64.
    """

    train: np.ndarray
    seen: np.ndarray
    unseen: np.ndarray
    between: np.ndarray


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the experiment's options."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--orders", type=int, default=10, metavar="N", help="random orders of the rows (default: 10)")
    parser.add_argument(
        "--methods",
        nargs="+",
        default=list(METHODS),
        metavar="NAME",
        help=f"of {', '.join(METHODS)}; commas or blanks between (default: all)",
    )
    parser.add_argument(
        "--basis",
        choices=("all", "seen"),
        default="all",
        help="principal components of all training digits, as digits20 is defined, or of the seen classes alone",
    )


def main(args: argparse.Namespace) -> int:
    """Print a row for each method: AUCs as means over the orders, and the least of them."""
    methods = [name for word in args.methods for name in word.split(",") if name]
    unknown = sorted(set(methods) - set(METHODS))
    if unknown:
        raise UsageError(f"--methods: {', '.join(unknown)} is none of {', '.join(METHODS)}")
    if args.orders < 1:
        raise UsageError(f"--orders: {args.orders} is below 1")
    import sklearn.mixture  # noqa: F401  # before the limit: it does not hold for libraries loaded later

    task = make_task(args.basis)
    with threadpool_limits(1):
        rows = [run(method, task, args.orders) for method in methods]
    if args.json:
        print_json({"rows": rows, "basis": args.basis, "orders": args.orders})
        return 0
    print("method            AUC unseen (least)  AUC between (least)  components  seconds")
    for row in rows:
        components = "-" if row["components"] is None else f"{row['components']:.1f}"
        print(
            f"{row['method']:<17} {row['auc_unseen']:10.3f} ({row['auc_unseen_least']:.3f})  "
            f"{row['auc_between']:11.3f} ({row['auc_between_least']:.3f})  {components:>10}  {row['seconds']:7.2f}"
        )
    return 0


def make_task(basis: str) -> Task:
    """Return the digits 0 to 7 to learn, and what is to be told apart from them."""
    digits = digits20()
    assert digits.train_labels is not None
    assert digits.test_labels is not None
    train, test = digits.train[digits.train_labels < UNSEEN_FROM], digits.test
    if basis == "seen":
        train, test = seen_basis(digits.train_labels, digits.test_labels)
    is_seen = digits.test_labels < UNSEEN_FROM
    seen, labels = test[is_seen], digits.test_labels[is_seen]
    return Task(train, seen, test[~is_seen], midpoints(seen, labels, N_PAIRS, PAIRS_SEED))


def seen_basis(train_labels: np.ndarray, test_labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (training rows of seen classes, all test rows) in 20 components that know the seen classes alone."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    rows = digits.data[np.random.default_rng(0).permutation(len(digits.data))]
    train = rows[: len(train_labels)][train_labels < UNSEEN_FROM]
    mean = train.mean(axis=0)
    basis = np.linalg.svd(train - mean, full_matrices=False)[2][:20].T
    return (train - mean) @ basis, (rows[len(train_labels) :] - mean) @ basis


def midpoints(rows: np.ndarray, labels: np.ndarray, n: int, seed: int) -> np.ndarray:
    """Return the midpoints of n random pairs of rows of different classes, (n, n_dims)."""
    rng = np.random.default_rng(seed)
    found = np.empty((0, rows.shape[1]))
    while len(found) < n:
        a, b = rng.integers(0, len(rows), (2, n))
        differ = labels[a] != labels[b]
        found = np.vstack([found, 0.5 * (rows[a[differ]] + rows[b[differ]])])
    return found[:n]


def auc(seen: np.ndarray, new: np.ndarray) -> float:
    """Return the chance that a new row scores above a seen one; ties count half."""
    from sklearn.metrics import roc_auc_score

    truth = np.concatenate([np.zeros(len(seen)), np.ones(len(new))])
    return float(roc_auc_score(truth, np.concatenate([seen, new])))


def run(method: str, task: Task, n_orders: int) -> dict[str, Any]:
    """Return a method's row: every order is another order of the training rows, and another seed."""
    unseen, between, seconds, components = [], [], [], []
    for seed in range(n_orders):
        train = task.train[np.random.default_rng(seed).permutation(len(task.train))]
        (score, n_components), cost = measure(functools.partial(FIT[method], method, train, seed))
        seen = score(task.seen)
        unseen.append(auc(seen, score(task.unseen)))
        between.append(auc(seen, score(task.between)))
        seconds.append(cost.seconds)
        components.append(n_components)
    return {
        "method": method,
        "auc_unseen": float(np.mean(unseen)),
        "auc_between": float(np.mean(between)),
        "auc_unseen_least": min(unseen),
        "auc_between_least": min(between),
        "components": None if components[0] is None else float(np.mean(components)),
        "memory": MEMORY.get(method),
        "seconds": float(np.mean(seconds)),
    }


Fitted = tuple[Score, int | None]  # and how many components it has


def fit_ours(method: str, train: np.ndarray, seed: int) -> Fitted:
    """One pass in bounded memory, or one epoch of everything; the learner's own defaults for all else."""
    n, n_dims = train.shape
    room: dict[str, Any] = {"memory": MEMORY.get(method)}
    if method == "batch":
        room = {"memory": 2 * n + n_dims, "epoch_size": n, "max_iterations": 100}
    learner = MemoryBoundedMixture(covariance="full", horizon=n, max_components=MAX_COMPONENTS, **room)
    learner.partial_fit(train).flush()
    return lambda rows: -learner.score_samples(rows), learner.n_components_


def fit_gmm(method: str, train: np.ndarray, seed: int) -> Fitted:
    """scikit-learn's variational mixture of 50 components, its default prior, all rows at once."""
    peer = fit_sklearn(train, seed)
    return lambda rows: -sklearn_scores(peer, rows), MAX_COMPONENTS


def fit_lof(method: str, train: np.ndarray, seed: int) -> Fitted:
    """Local outlier factor against all training rows, 20 neighbours (its default)."""
    from sklearn.neighbors import LocalOutlierFactor

    peer = LocalOutlierFactor(novelty=True).fit(train)
    return lambda rows: -peer.score_samples(rows), None


def fit_forest(method: str, train: np.ndarray, seed: int) -> Fitted:
    """Isolation forest, its defaults."""
    from sklearn.ensemble import IsolationForest

    peer = IsolationForest(random_state=seed).fit(train)
    return lambda rows: -peer.score_samples(rows), None


def fit_river(method: str, train: np.ndarray, seed: int) -> Fitted:
    """River's half-space trees (25, River's depth of 8, limits of the training rows) or LODA; one pass."""
    from river import anomaly

    low, high = train.min(axis=0), train.max(axis=0)
    peer: Any
    if method == "half_space_trees":
        limits: dict[Any, tuple[float, float]] = {j: (float(low[j]), float(high[j])) for j in range(train.shape[1])}
        peer = anomaly.HalfSpaceTrees(n_trees=25, limits=limits, seed=seed)
    else:
        peer = anomaly.LODA(seed=seed)
    for row in train:
        peer.learn_one(dict(enumerate(row.tolist())))
    return lambda rows: np.array([peer.score_one(dict(enumerate(row.tolist()))) for row in rows]), None


FIT: dict[str, Callable[[str, np.ndarray, int], Fitted]] = {
    "stillwatch": fit_ours,
    "stillwatch_300": fit_ours,
    "batch": fit_ours,
    "sklearn_gmm": fit_gmm,
    "lof": fit_lof,
    "half_space_trees": fit_river,
    "loda": fit_river,
    "isolation_forest": fit_forest,
}
