"""Rows a second learnt and scored by the mixture, beside scikit-learn's in the same run.

Called by the command line as `bench mixture`. It must not use a setting that the experiments would not.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from stillwatch.learn import MemoryBoundedMixture
from stillwatch.tools.shared import print_json

N_COMPONENTS = 20
WARM_ROWS = 2000  # learnt before the clock runs: the first epochs build the model, all later ones keep it
SECONDS_EACH = 1.0


class Setting(NamedTuple):
    """What one row of the table is about."""

    n_dims: int
    covariance: Literal["diagonal", "full"]
    memory: int


# 16 to 20: patch and scene descriptors of the agent; 50: learning from images, as the papers do.
SETTINGS = (
    Setting(16, "diagonal", 1500), Setting(16, "diagonal", 4000), Setting(16, "full", 1500),
    Setting(18, "diagonal", 1000), Setting(18, "diagonal", 4000),
    Setting(20, "diagonal", 1500), Setting(20, "full", 1500), Setting(20, "full", 3000),
    Setting(50, "diagonal", 3000), Setting(50, "full", 1500), Setting(50, "full", 3000), Setting(50, "full", 6000),
)  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the bench's options."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--dims", nargs="+", type=int, metavar="D", help="only these widths (default: 16 18 20 50)")
    parser.add_argument(
        "--seconds",
        type=float,
        default=SECONDS_EACH,
        metavar="S",
        help=f"for each measurement (default: {SECONDS_EACH:g})",
    )


def main(args: argparse.Namespace) -> int:
    """Measure on one BLAS thread, and print a row for each setting and for each peer of its width."""
    import sklearn.mixture  # noqa: F401  # before the limit: it does not hold for libraries loaded later

    rows: list[dict[str, Any]] = []
    with threadpool_limits(1):
        for n_dims in args.dims or sorted({setting.n_dims for setting in SETTINGS}):
            rows += bench_width(n_dims, args.seconds)
    if args.json:
        print_json({"rows": rows})
    else:
        print_table(rows)
    return 0


def bench_width(n_dims: int, seconds: float) -> list[dict[str, Any]]:
    """Return the rows of one width: peers, then ours, with their ratios to the peers."""
    data = clusters(n_dims, 60_000)
    peers = {"minibatch_kmeans": bench_kmeans(data, seconds)}
    peers |= {f"sklearn_bgm_{covariance}": bench_bgm(data, covariance, seconds) for covariance in ("diagonal", "full")}
    rows: list[dict[str, Any]] = []
    for name, found in peers.items():
        covariance = name.removeprefix("sklearn_bgm_") if name != "minibatch_kmeans" else None
        rows.append({"method": name, "dims": n_dims, "covariance": covariance, "memory": None} | found)
    floor = peers["minibatch_kmeans"]
    for setting in SETTINGS:
        if setting.n_dims == n_dims:
            found, bgm = bench_ours(data, setting, seconds), peers[f"sklearn_bgm_{setting.covariance}"]
            ratios = {
                f"{verb}_to_{name}": found[key] / peer[key]
                for verb, key in (("learnt", "learnt_per_s"), ("scored", "scored_per_s"))
                for name, peer in (("kmeans", floor), ("bgm", bgm))
            }
            what = {"dims": n_dims, "covariance": setting.covariance, "memory": setting.memory}
            rows.append({"method": "stillwatch"} | what | found | ratios)
    return rows


def clusters(n_dims: int, n_rows: int) -> np.ndarray:
    """Return rows of 20 rotated Gaussians, as synth50 has them in 50 dimensions, (n_rows, n_dims) float64."""
    rng = np.random.default_rng(7)
    means = rng.normal(scale=1.1 * np.sqrt(50.0 / n_dims), size=(N_COMPONENTS, n_dims))
    labels = rng.choice(N_COMPONENTS, n_rows, p=rng.dirichlet(np.full(N_COMPONENTS, 3.0)))
    rows = rng.normal(size=(n_rows, n_dims))
    for k in range(N_COMPONENTS):
        rotation = np.linalg.qr(rng.normal(size=(n_dims, n_dims)))[0]
        deviations = np.sqrt(np.exp(rng.uniform(np.log(0.15), np.log(3.0), n_dims)))
        rows[labels == k] = means[k] + (rows[labels == k] * deviations) @ rotation.T
    return rows


def bench_ours(data: np.ndarray, setting: Setting, seconds: float) -> dict[str, Any]:
    """Return rows a second learnt in whole epochs of a stream, and scored."""
    learner = MemoryBoundedMixture(
        covariance=setting.covariance, memory=setting.memory, horizon=1_000_000, max_components=50
    ).allocate(setting.n_dims)
    epoch = learner.rows_per_epoch
    n_warm = -(-WARM_ROWS // epoch) * epoch
    learner.partial_fit(data[:n_warm])
    learner.score_samples(data[:100])
    learnt = rate(lambda i: learner.partial_fit(part(data, n_warm + i * epoch, epoch)), epoch, seconds)
    scored = rate(lambda i: learner.score_samples(part(data, i * 2000, 2000)), 2000, seconds / 3)
    return {
        "learnt_per_s": learnt,
        "scored_per_s": scored,
        "components": learner.n_components_,
        "state_bytes": sum(learner.memory_bytes().values()),
    }


def bench_kmeans(data: np.ndarray, seconds: float) -> dict[str, Any]:
    """Return the same of MiniBatchKMeans with 20 centres: the floor, as it learns centres and nothing else."""
    from sklearn.cluster import MiniBatchKMeans

    peer = MiniBatchKMeans(N_COMPONENTS, n_init=1, random_state=0)
    peer.partial_fit(data[:WARM_ROWS])
    learnt = rate(lambda i: peer.partial_fit(part(data, i * 1000, 1000)), 1000, seconds)
    scored = rate(lambda i: peer.transform(part(data, i * 2000, 2000)), 2000, seconds / 3)
    return {"learnt_per_s": learnt, "scored_per_s": scored, "components": N_COMPONENTS, "state_bytes": None}


def bench_bgm(data: np.ndarray, covariance: str, seconds: float) -> dict[str, Any]:
    """Return the same of BayesianGaussianMixture, 50 components, default prior, all at once.

    It learns as many rows as about fit the time, and is charged for all its iterations. Of more rows each costs more,
    as more iterations are needed: `rows` says how many it had.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import BayesianGaussianMixture

    peer = BayesianGaussianMixture(
        n_components=50, covariance_type="diag" if covariance == "diagonal" else "full", random_state=0
    )
    n, spent = 1000, 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        while True:
            begin = time.process_time()
            peer.fit(data[:n])
            spent = time.process_time() - begin
            if 3.0 * spent > seconds or 2 * n > len(data):
                break
            n *= 2
    scored = rate(lambda i: peer.score_samples(part(data, i * 2000, 2000)), 2000, seconds / 3)
    return {
        "learnt_per_s": n / spent,
        "scored_per_s": scored,
        "components": 50,
        "state_bytes": None,
        "rows": n,
        "iterations": int(peer.n_iter_),
    }


def part(data: np.ndarray, start: int, n: int) -> np.ndarray:
    """Return n rows of the stream that repeats the data for ever."""
    start %= len(data) - n + 1
    return data[start : start + n]


def rate(step: Callable[[int], object], n: int, seconds: float) -> float:
    """Return rows a second of processor time over calls of n rows each: at least 3, for about `seconds`.

    Processor time of this one thread does not count the turns that other programs take.
    """
    calls, begin, wall = 0, time.process_time(), time.perf_counter()
    while calls < 3 or time.process_time() - begin < seconds and time.perf_counter() - wall < 3.0 * seconds:
        step(calls)
        calls += 1
    return calls * n / (time.process_time() - begin)


def print_table(rows: list[dict[str, Any]]) -> None:
    """Print one line a row; ratios above 1 mean that ours is faster."""
    print(
        "method                 dims  covariance  memory   rows   learnt/s  / k-means   / BGM   scored/s  "
        "/ k-means   / BGM     MB"
    )
    for row in rows:
        ratios = [
            f"{row[name]:.2f}" if name in row else "-"
            for name in ("learnt_to_kmeans", "learnt_to_bgm", "scored_to_kmeans", "scored_to_bgm")
        ]
        size = "-" if row["state_bytes"] is None else f"{row['state_bytes'] / 1e6:.2f}"
        print(
            f"{row['method']:<22} {row['dims']:4}  {row['covariance'] or '-':<10}  {row['memory'] or '-':>6}  "
            f"{row.get('rows', '-'):>5}  {row['learnt_per_s']:9.0f}  {ratios[0]:>9}  {ratios[1]:>6}  "
            f"{row['scored_per_s']:9.0f}  {ratios[2]:>9}  {ratios[3]:>6}  {size:>5}"
        )
