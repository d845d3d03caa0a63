"""Table 2.2's design on scikit-learn's digits: small memories against the batch run, a particle filter and peers.

Called by the command line as `experiment mixture-digits`. It must not choose a setting by the rows held out.
"""

import argparse
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from stillwatch.base import UsageError
from stillwatch.learn import MemoryBoundedMixture, Normaliser, prior_parameters
from stillwatch.tools.experiments.data import measure
from stillwatch.tools.experiments.mixture import data as mixture_data
from stillwatch.tools.experiments.mixture.data import DataSet
from stillwatch.tools.experiments.mixture.particle_filter import ParticleFilter, student_log_density
from stillwatch.tools.shared import print_json

NAMES = (
    "method", "order", "memory", "epoch_size", "particles", "prior_scale", "seed", "log_likelihood", "gap_to_batch",
    "free_energy", "components", "ari", "accuracy", "seconds", "cpu_seconds", "peak_rss_mb",
    "state_bytes",
)  # fmt: skip
BOUNDED = ("stillwatch", "stillwatch_exact", "stillwatch_long", "stillwatch_cold", "paper")
METHODS = (*BOUNDED, "batch", "sklearn_bgm", "streaming_vb", "particle_filter")
MEMORIES = (200, 300, 400, 600)
PARTICLES = (100, 1000)
# The prior's scale decides how many components there are: the first is the learner's default, the last is nearest to
# the ten digits.
PRIOR_SCALES = (0.05, 0.1, 0.2)
# Epochs are the learner's own default: a tenth of memories as small as these. Long ones take half, as the paper's do.
# Exact clumps take 231 values, rounded ones 90: what rounding correlations to a byte costs, and what it buys.
VARIANTS: dict[str, dict[str, Any]] = {
    "stillwatch_exact": {"clump_moments": "exact"},
    "stillwatch_cold": {"warm_start": False},
    "paper": {"compression": "paper"},
}
MAX_COMPONENTS = 50
PRIOR_STRENGTH = 0.01


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the experiment's options."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--order",
        choices=("shuffled", "sorted"),
        help="only random orders, or only the rows sorted by digit (default: both)",
    )
    parser.add_argument("--orders", type=int, default=10, metavar="N", help="random orders of the rows (default: 10)")
    parser.add_argument(
        "--methods",
        nargs="+",
        default=list(METHODS),
        metavar="NAME",
        help=f"of {', '.join(METHODS)}; commas or blanks between (default: all)",
    )
    parser.add_argument("--memory", nargs="+", type=int, default=list(MEMORIES), metavar="POINTS")
    parser.add_argument(
        "--particles",
        nargs="+",
        type=int,
        default=list(PARTICLES),
        metavar="M",
        help="default: 100 1000; 10000 takes about 15 times as long as 1000",
    )
    parser.add_argument("--prior-scale", nargs="+", type=float, default=list(PRIOR_SCALES), metavar="S")
    parser.add_argument("--rows", type=int, default=0, metavar="N", help="only the first N training rows")


def main(args: argparse.Namespace) -> int:
    """Run on one BLAS thread; print the table of means over the orders, or all rows as JSON."""
    methods = ["stillwatch_cold" if name == "cold" else name for word in args.methods for name in word.split(",")]
    unknown = sorted(set(methods) - set(METHODS))
    if unknown:
        raise UsageError(f"--methods: {', '.join(unknown)} is none of {', '.join(METHODS)}")
    if args.orders < 1:
        raise UsageError(f"--orders: {args.orders} is below 1")
    import sklearn.mixture  # noqa: F401  # before the limit: it does not hold for libraries loaded later

    with threadpool_limits(1):
        rows = with_gaps(list(all_rows(args, methods)))
    if args.json:
        print_json({"rows": rows})
    else:
        print_table(rows)
    return 0


def all_rows(args: argparse.Namespace, methods: list[str]) -> Iterator[dict[str, Any]]:
    """Yield a row for each order, method and setting: the binding names and what was set."""
    digits = mixture_data.digits20()
    orders = {("shuffled", seed): digits.shuffled(seed) for seed in range(args.orders) if args.order != "sorted"}
    if args.order != "shuffled":
        orders["sorted", 0] = digits.ordered("sorted")
    for (order, seed), data in orders.items():
        data = data.first(args.rows)
        for method in methods:
            for setting in settings_of(method, args):
                row = dict.fromkeys(NAMES) | {"method": method, "order": order, "seed": seed} | setting
                yield row | RUN[method](data, row)


def settings_of(method: str, args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield what a method is run with."""
    if method in ("sklearn_bgm", "streaming_vb"):
        yield {}
        return
    for scale in args.prior_scale:
        if method == "batch":
            yield {"prior_scale": scale}
        elif method == "particle_filter":
            yield from ({"prior_scale": scale, "particles": n} for n in args.particles)
        else:
            yield from ({"prior_scale": scale, "memory": m} for m in args.memory)


def run_ours(data: DataSet, row: dict[str, Any]) -> dict[str, Any]:
    """One pass in bounded memory, or the batch run: one epoch of everything, in which nothing is compressed."""
    n, n_dims = data.train.shape
    method = row["method"]
    room = {"memory": row["memory"], "epoch_size": row["memory"] // 2 if method == "stillwatch_long" else None}
    if method == "batch":
        room = {"memory": 2 * n + n_dims, "epoch_size": n, "max_iterations": 100}
    learner = MemoryBoundedMixture(
        covariance="full",
        horizon=n,
        prior_scale=row["prior_scale"],
        prior_strength=PRIOR_STRENGTH,
        max_components=MAX_COMPONENTS,
        **room,
        **VARIANTS.get(method, {}),
    )
    _, cost = measure(lambda: learner.partial_fit(data.train).flush())
    found: dict[str, Any] = {"free_energy": learner.free_energy_ / learner.n_seen_, "components": learner.n_components_}
    found |= agreement(data, learner.predict(data.train), learner.predict(data.test))
    found |= {"log_likelihood": float(learner.score_samples(data.test).mean())}
    found |= {"state_bytes": sum(learner.memory_bytes().values()), "epoch_size": learner.rows_per_epoch}
    return found | cost._asdict()


def run_particles(data: DataSet, row: dict[str, Any]) -> dict[str, Any]:
    """Fearnhead's particle filter under the prior of the batch run."""
    n_dims = data.train.shape[1]
    normaliser = Normaliser.measure(data.train, by_column=False)
    prior = prior_parameters("full", n_dims, PRIOR_STRENGTH, row["prior_scale"])
    learner = ParticleFilter(n_dims, n_particles=row["particles"], prior=prior, seed=row["seed"])
    _, cost = measure(lambda: learner.partial_fit(normaliser.apply(data.train)))
    train, test = normaliser.apply(data.train), normaliser.apply(data.test)
    found: dict[str, Any] = {"components": learner.n_components_, "state_bytes": learner.memory_bytes()}
    found |= {"log_likelihood": float(learner.score_samples(test).mean()) - normaliser.log_volume}
    found |= agreement(data, learner.predict(train), learner.predict(test))
    return found | cost._asdict()


def run_sklearn(data: DataSet, row: dict[str, Any]) -> dict[str, Any]:
    """scikit-learn's variational mixture on all rows at once: 50 components, its default prior."""
    peer, cost = measure(lambda: fit_sklearn(data.train, row["seed"]))
    trained = peer.predict(data.train)
    found: dict[str, Any] = {"components": len(np.unique(trained))}
    found |= {"log_likelihood": float(sklearn_scores(peer, data.test).mean())}
    found |= agreement(data, trained, peer.predict(data.test))
    return found | cost._asdict()


def fit_sklearn(rows: np.ndarray, seed: int) -> Any:
    """Return scikit-learn's BayesianGaussianMixture of 50 components with its default prior, fitted."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import BayesianGaussianMixture

    peer = BayesianGaussianMixture(n_components=MAX_COMPONENTS, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return peer.fit(rows)


def sklearn_scores(peer: Any, rows: np.ndarray) -> np.ndarray:
    """Return the log posterior predictive density of each row, (n,), as the others are scored.

    Its own `score_samples` takes the posterior mean for the truth, which costs it 8 nats on digits.
    """
    nu = peer.degrees_of_freedom_
    scatter = peer.covariances_ * nu[:, None, None]
    off = (rows - peer.means_[:, None]).transpose(0, 2, 1)
    distance = (off * np.linalg.solve(scatter, off)).sum(axis=1).T
    log_joint = student_log_density(distance, np.linalg.slogdet(scatter)[1], peer.mean_precision_, nu, rows.shape[1])
    return np.logaddexp.reduce(log_joint + np.log(np.maximum(peer.weights_, 1e-300)), axis=1)


def run_streaming(data: DataSet, row: dict[str, Any]) -> dict[str, Any]:
    """Streaming variational Bayes: the posterior of one batch is the prior of the next."""
    from stillwatch.tools.experiments.mixture.streaming_vb import StreamingMixture

    learner = StreamingMixture(data.train.shape[1], n_components=30, seed=row["seed"])
    _, cost = measure(lambda: learner.partial_fit(data.train))
    trained = learner.predict(data.train)
    found: dict[str, Any] = {"components": len(np.unique(trained)), "state_bytes": learner.memory_bytes()}
    found |= {"log_likelihood": float(learner.score_samples(data.test).mean())}
    found |= agreement(data, trained, learner.predict(data.test))
    return found | cost._asdict()


RUN: dict[str, Callable[[DataSet, dict[str, Any]], dict[str, Any]]] = {
    **dict.fromkeys((*BOUNDED, "batch"), run_ours),
    "particle_filter": run_particles,
    "sklearn_bgm": run_sklearn,
    "streaming_vb": run_streaming,
}


def agreement(data: DataSet, trained: np.ndarray, tested: np.ndarray) -> dict[str, Any]:
    """Return the test rows' ARI, and the share recognised by components labelled by their training majority."""
    from sklearn.metrics import adjusted_rand_score

    assert data.train_labels is not None
    label_of = {who: np.bincount(data.train_labels[trained == who]).argmax() for who in np.unique(trained)}
    named = np.array([label_of.get(who, -1) for who in tested])
    ari = float(adjusted_rand_score(data.test_labels, tested))
    return {"ari": ari, "accuracy": float((named == data.test_labels).mean())}


def with_gaps(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Fill `gap_to_batch`, nats a row: the batch run of the same order and prior less this row's log likelihood."""
    names = ("order", "seed", "prior_scale")
    batch = {tuple(r[name] for name in names): r["log_likelihood"] for r in rows if r["method"] == "batch"}
    for row in rows:
        same = batch.get(tuple(row[name] for name in names))
        row["gap_to_batch"] = None if same is None else same - row["log_likelihood"]
    return rows


def print_table(rows: list[dict[str, Any]]) -> None:
    """Print means over the orders, with the deviation of the log likelihood."""
    groups: dict[tuple, list[dict[str, Any]]] = {}
    for row in rows:
        key = (row["order"], row["prior_scale"], row["method"], row["memory"], row["epoch_size"], row["particles"])
        groups.setdefault(key, []).append(row)
    print(
        "order     prior  method            memory  epoch  particles  log likelihood  gap to batch     K    ARI  "
        "accuracy  CPU s"
    )
    for (order, scale, method, memory, epoch, particles), some in groups.items():
        means = {}
        for name in ("log_likelihood", "gap_to_batch", "components", "ari", "accuracy", "cpu_seconds"):
            values = [r[name] for r in some if r[name] is not None]
            means[name] = float(np.mean(values)) if values else float("nan")
        spread = float(np.std([r["log_likelihood"] for r in some]))
        print(
            f"{order:<8}  {_text(scale):>5}  {method:<16}  {_text(memory):>6}  {_text(epoch):>5}  "
            f"{_text(particles):>9}  {means['log_likelihood']:7.2f} ± {spread:4.2f}  {means['gap_to_batch']:12.2f}  "
            f"{means['components']:4.1f}  {means['ari']:5.3f}  {means['accuracy']:8.3f}  {means['cpu_seconds']:5.2f}"
        )


def _text(value: Any) -> str:
    return "-" if value is None else str(value)
