"""The memory-bounded mixture against its batch run, its cold start and peers: synthetic, MNIST, patches.

Called by the command line as `experiment mixture-...`. It must not tune itself to what it measures.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from stillwatch.base import UsageError
from stillwatch.learn import MemoryBoundedMixture
from stillwatch.tools.experiments.data import measure, tell_rows
from stillwatch.tools.experiments.mixture import data as mixture_data
from stillwatch.tools.experiments.mixture.data import DataSet
from stillwatch.tools.shared import add_data_argument, find_data

NAMES = (
    "method", "order", "memory", "seed", "log_likelihood", "free_energy", "components", "ari", "accuracy", "seconds",
    "peak_rss_mb", "state_bytes",
)  # fmt: skip
# stillwatch_exact keeps clumps' correlations in float32 instead of a byte: what the rounding costs, and what it buys.
METHODS = ("stillwatch", "stillwatch_exact", "stillwatch_cold", "batch", "sklearn_bgm")
ALIASES = {"cold": "stillwatch_cold"}
SYNTHETIC_MEMORIES = (1500, 3000, 6000)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that all mixture experiments share."""
    add_data_argument(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--order", choices=("shuffled", "sorted"), help="only this order of the rows (default: both)")
    parser.add_argument(
        "--methods",
        nargs="+",
        default=["stillwatch"],
        metavar="NAME",
        help=f"of {', '.join(METHODS)} (or cold); commas or blanks between (default: stillwatch)",
    )
    parser.add_argument("--memory", nargs="+", type=int, metavar="POINTS", help="memories to try")
    parser.add_argument("--rows", type=int, default=0, metavar="N", help="only the first N training rows")
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="seeds 0..N-1: orders of the training rows")
    parser.add_argument("--prior-scale", type=float, metavar="S", help="covariance prior, in the data's own spread")
    parser.add_argument("--horizon", type=int, metavar="N", help="rows expected in all (default: the true number)")


def main(args: argparse.Namespace) -> int:
    """Run one experiment on one BLAS thread and print its rows."""
    methods = [ALIASES.get(name, name) for word in args.methods for name in word.split(",") if name]
    unknown = sorted(set(methods) - set(METHODS))
    if unknown:
        raise UsageError(f"--methods: {', '.join(unknown)} is none of {', '.join(METHODS)}")
    args.methods = methods
    with threadpool_limits(1):
        tell_rows(EXPERIMENTS[args.experiment](args), NAMES, as_json=args.json)
    return 0


def _synthetic(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """synth50 in both orders: no learner that forgets, or fits i.i.d. batches, survives the sorted one."""
    data = mixture_data.synth50()
    settings = {"covariance": "full", "max_components": 25}
    for order in [args.order] if args.order else ["shuffled", "sorted"]:
        yield from _runs(args, data.ordered(order), order, args.memory or SYNTHETIC_MEMORIES, settings)


def _mnist(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """60,000 digits in one pass: memory 6,000, epochs of 3,000; recognition by components labelled by majority."""
    data = mixture_data.mnist50(find_data(args.data))
    settings = {"covariance": "full", "max_components": 150}
    for order in [args.order or "shuffled"]:
        yield from _runs(args, data.ordered(order), order, args.memory or [6000], settings)


def _patches(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """330,000 patches of 7 x 7 pixels, diagonal covariance, memory 30,000."""
    data = mixture_data.patches49(find_data(args.data), args.rows or 330_000)
    settings = {"covariance": "diagonal", "max_components": 80}
    yield from _runs(args, data, "shuffled", args.memory or [30_000], settings)


EXPERIMENTS: dict[str, Callable[[argparse.Namespace], Iterator[dict[str, Any]]]] = {
    "mixture-synthetic": _synthetic,
    "mixture-mnist": _mnist,
    "mixture-patches": _patches,
}


def _runs(args: argparse.Namespace, data: DataSet, order: str, memories, settings) -> Iterator[dict[str, Any]]:
    """Yield a row for each method, memory and seed."""
    for seed in range(args.seeds):
        part = data.shuffled(seed) if order == "shuffled" else data
        part = part.first(args.rows)
        for method in args.methods:
            for memory in memories if method.startswith("stillwatch") else [None]:
                row = _run(args, part, method, memory, settings)
                yield {"method": method, "order": order, "memory": memory, "seed": seed} | row


def _run(args: argparse.Namespace, data: DataSet, method: str, memory: int | None, settings) -> dict[str, Any]:
    if method == "sklearn_bgm":
        return _sklearn(data)
    n, n_dims = data.train.shape
    settings = settings | {"horizon": args.horizon or n}
    if args.prior_scale is not None:
        settings |= {"prior_scale": args.prior_scale}
    if method == "batch":
        # Everything is one epoch, and the budget of clumps is never touched: nothing is ever compressed.
        settings |= {"memory": 2 * n + n_dims, "epoch_size": n, "max_iterations": 100}
    else:
        settings |= {"memory": memory, "warm_start": method != "stillwatch_cold"}
        settings |= {"clump_moments": "exact" if method == "stillwatch_exact" else "rounded"}
    learner = MemoryBoundedMixture(**settings).allocate(n_dims)
    slowest = [0.0]

    def learn() -> None:
        for first in range(0, n, learner.rows_per_epoch):
            begin = time.perf_counter()
            learner.partial_fit(data.train[first : first + learner.rows_per_epoch])
            slowest[0] = max(slowest[0], time.perf_counter() - begin)
        learner.flush()

    _, cost = measure(learn)
    row = {
        "log_likelihood": float(learner.score_samples(data.test).mean()),
        "free_energy": learner.free_energy_ / learner.n_seen_,
        "components": learner.n_components_,
    }
    row |= _agreement(data, learner.predict)
    row |= {
        "seconds": cost.seconds,
        "peak_rss_mb": cost.peak_rss_mb,
        "state_bytes": sum(learner.memory_bytes().values()),
    }
    return row | {"slowest_epoch_seconds": slowest[0], "epoch_size": learner.rows_per_epoch}


def _agreement(data: DataSet, predict: Callable[[np.ndarray], np.ndarray]) -> dict[str, Any]:
    """Return ARI, and the share of test rows recognised by components labelled by their training majority."""
    if data.train_labels is None or data.test_labels is None:
        return {"ari": None, "accuracy": None}
    from sklearn.metrics import adjusted_rand_score

    trained, tested = predict(data.train), predict(data.test)
    label_of = {who: np.bincount(data.train_labels[trained == who]).argmax() for who in np.unique(trained)}
    named = np.array([label_of.get(who, -1) for who in tested])
    return {
        "ari": float(adjusted_rand_score(data.test_labels, tested)),
        "accuracy": float((named == data.test_labels).mean()),
    }


def _sklearn(data: DataSet) -> dict[str, Any]:
    """scikit-learn's variational mixture on all rows at once: 50 components, its default prior."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import BayesianGaussianMixture

    peer = BayesianGaussianMixture(n_components=50, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        _, cost = measure(lambda: peer.fit(data.train))
    row: dict[str, Any] = {"log_likelihood": float(peer.score_samples(data.test).mean())}
    row["components"] = len(np.unique(peer.predict(data.train)))
    return row | _agreement(data, peer.predict) | {"seconds": cost.seconds, "peak_rss_mb": cost.peak_rss_mb}
