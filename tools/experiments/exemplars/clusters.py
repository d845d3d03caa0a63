"""Exemplar clustering of digits20, synth50 and MNIST: StreamGreedy, its variants and its peers, on the same rows.

Called by tools/experiments/exemplars/command.py. It must not tune: k, |B| and |W| are those of the papers and the
design.
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from stillwatch.learn import StreamGreedy
from stillwatch.tools.experiments.data import Cost, measure
from stillwatch.tools.experiments.exemplars import baselines as baselines
from stillwatch.tools.experiments.mixture.data import DataSet, digits20, mnist50, synth50
from stillwatch.tools.shared import find_data

Row = dict[str, Any]
K = 100
MAX_PASSES = 20  # of running on to convergence

PEERS: dict[str, Callable[[np.ndarray, int, int], np.ndarray]] = {
    "random": baselines.random_rows,
    "k_centre": baselines.k_centre,
    "minibatch_kmeans_snapped": baselines.minibatch_kmeans_snapped,
    "kmeans_snapped": baselines.kmeans_snapped,
}


def synthetic(args: argparse.Namespace) -> Iterator[Row]:
    """digits20 (|W| = 1,000) and synth50 (|W| = 2,000), k = 100, |B| = 500."""
    for name, data, validation, pam_rows in (
        ("digits20", digits20(), 1000, (1437,)),
        ("synth50", synth50(), 2000, (5000, 10_000)),
    ):
        for row in _compare(args, data, validation, pam_rows):
            yield {"data": name} | row


def mnist(args: argparse.Namespace) -> Iterator[Row]:
    """MNIST as the paper prepares it, K = 100, |B| = 500, |W| = 6,000; the curve of utility; other sizes of W."""
    data = mnist50(find_data(args.data), unit_deviation=False)
    yield from _compare(args, data, 6000, (10_000, 20_000))
    if _wanted(args, "streamgreedy_curve"):
        yield from _curve(_limited(data, args.rows), 6000)
    for validation in (1000, 2000, 20_000):
        if _wanted(args, f"streamgreedy_w{validation}"):
            given = _limited(data, args.rows)
            yield _stream(given, validation, 0, "shuffled") | {"method": f"streamgreedy_w{validation}"}


def _compare(args: argparse.Namespace, data: DataSet, validation: int, pam_rows: tuple[int, ...]) -> Iterator[Row]:
    for order in (args.order,) if args.order else ("shuffled", "sorted"):
        given = _limited(data.ordered(order), args.rows)
        for seed in range(args.seeds):
            if _wanted(args, "streamgreedy"):
                yield _stream(given, validation, seed, order)
            if _wanted(args, "streamgreedy_racing"):
                yield _stream(given, validation, seed, order, racing=0.05) | {"method": "streamgreedy_racing"}
            if _wanted(args, "streamgreedy_converged"):
                yield _converged(given, validation, seed, order)
            for name, peer in PEERS.items():
                if _wanted(args, name):
                    yield _peer(name, peer, given, seed, order)
            if order == "sorted":
                continue  # FasterPAM draws its rows at random: their order says nothing
            for n_rows in pam_rows:
                if _wanted(args, "fasterpam"):
                    yield _fasterpam(given, n_rows, seed)


def _wanted(args: argparse.Namespace, method: str) -> bool:
    return not args.methods or method in args.methods


def _limited(data: DataSet, n_rows: int) -> DataSet:
    return replace(data, train=data.train[:n_rows]) if n_rows else data


def _learner(data: DataSet, validation: int, seed: int, racing: float | None = None) -> StreamGreedy:
    return StreamGreedy(k=K, block=500, validation=validation, seed=seed, racing=racing)


def _stream(data: DataSet, validation: int, seed: int, order: str, racing: float | None = None) -> Row:
    learner = _learner(data, validation, seed, racing)
    _, cost = measure(lambda: learner.partial_fit(data.train).flush())
    return _learner_row("streamgreedy", learner, data, cost, order)


def _converged(data: DataSet, validation: int, seed: int, order: str) -> Row:
    """Keep W as it is after one pass, and pass over the rows until a whole pass brings no swap."""
    learner = _learner(data, validation, seed)

    def run_on() -> None:
        swaps = -1
        for _ in range(MAX_PASSES):
            if learner.n_swaps_ == swaps:
                break
            swaps = learner.n_swaps_
            learner.partial_fit(data.train).flush()
            learner.fix_validation()

    _, cost = measure(run_on)
    return _learner_row("streamgreedy_converged", learner, data, cost, order)


def _learner_row(method: str, learner: StreamGreedy, data: DataSet, cost: Cost, order: str) -> Row:
    row = _row(method, learner.exemplars_.astype(np.float64), data, cost, order)
    return row | {
        "block": learner.block,
        "validation": learner.validation,
        "seen": learner.n_seen_,
        "state_bytes": sum(learner.memory_bytes().values()),
        "swaps": learner.n_swaps_,
        "held": learner.n_held_,
        "rows_per_cpu_second": learner.n_seen_ / cost.cpu_seconds,
    }


def _peer(name: str, peer: Callable, data: DataSet, seed: int, order: str) -> Row:
    exemplars, cost = measure(lambda: peer(data.train, K, seed))
    return _row(name, exemplars, data, cost, order)


def _fasterpam(data: DataSet, n_rows: int, seed: int) -> Row:
    n_rows = min(n_rows, len(data.train))
    exemplars, cost = measure(lambda: baselines.fasterpam(data.train, K, n_rows, seed))
    return _row("fasterpam", exemplars, data, cost, "shuffled") | {"seen": n_rows}


def _row(method: str, exemplars: np.ndarray, data: DataSet, cost: Cost, order: str) -> Row:
    """Score exemplars: utility is F_C on the training rows with the phantom at the origin; losses without phantom."""
    origin = np.zeros((1, data.train.shape[1]))
    utility = baselines.mean_least_distance(data.train, origin) - baselines.mean_least_distance(
        data.train, exemplars, origin[0]
    )
    return {
        "method": method,
        "order": order,
        "k": K,
        "seen": len(data.train),
        "utility": utility,
        "train_loss": baselines.mean_least_distance(data.train, exemplars),
        "test_loss": baselines.mean_least_distance(data.test, exemplars),
        "seconds": cost.seconds,
        "cpu_seconds": cost.cpu_seconds,
        "peak_rss_mb": cost.peak_rss_mb,
    }


def _curve(data: DataSet, validation: int) -> Iterator[Row]:
    """Utility against samples seen, as figure 1 of the paper: two passes of StreamGreedy, and of online k-means."""
    learner = _learner(data, validation, 0)
    online = baselines.OnlineKMeans(baselines.random_rows(data.train, K, 0))
    stream = np.vstack([data.train, data.train])
    fits: dict[str, Callable[[np.ndarray], Any]] = {
        "streamgreedy_curve": learner.partial_fit,
        "online_kmeans": online.partial_fit,
    }
    start, costs = 0, dict.fromkeys(fits, 0.0)
    for end in np.unique(np.geomspace(500, len(stream), 25).astype(int)):
        part = stream[start:end]
        for method, partial_fit in fits.items():
            _, cost = measure(partial(partial_fit, part))
            costs[method] += cost.cpu_seconds
            centres = learner.exemplars_ if method == "streamgreedy_curve" else online.centres
            yield _row(method, centres.astype(np.float64), data, cost, "shuffled") | {
                "seen": int(end),
                "validation": validation if method == "streamgreedy_curve" else None,
                "cpu_seconds": costs[method],
            }
        start = end
