"""The bounded mixture on what has no clusters: a closed curve or a box in d dimensions, patches as the agent has them.

Called by the command line as `experiment mixture-continuum`. It must not tune itself to what it measures.
"""

import argparse
import functools
import itertools
import pathlib
import warnings
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from threadpoolctl import threadpool_limits

from stillwatch.base import RealClock, UsageError
from stillwatch.epochs import PATCHES
from stillwatch.learn import MemoryBoundedMixture
from stillwatch.pipeline import Nowhere, Pipeline
from stillwatch.settings import Config, SourceConfig
from stillwatch.tools.encoders import frames_of
from stillwatch.tools.experiments.data import measure, tell_rows
from stillwatch.tools.experiments.mixture.data import DataSet
from stillwatch.tools.shared import add_data_argument, find_data

METHODS = ("stillwatch", "quarters", "paper", "batch", "sklearn_bgm")
Compression = Literal["geometry", "paper"]
COMPRESSION: dict[str, Compression] = {
    "stillwatch": "geometry", "quarters": "geometry", "paper": "paper", "batch": "geometry",
}  # fmt: skip
BOUNDED = ("stillwatch", "quarters", "paper")
QUARTERS = 4  # parts that clumps are looked at as by the method of this name, which is for a diagonal covariance
ORDERS = ("shuffled", "curve")
DIMS, MEMORIES = (2, 4, 8, 18), (1000, 4000)
N_TRAIN, N_TEST = 30_000, 8_000
FREQUENCIES = np.array([1, 1, 2, 2, 3, 3])
NOISE = 0.5
SHARED_CLIPS = "shared clips"
CLIPS = (
    "surveillance/bottle_table.mp4", "surveillance/car_overhead.mp4", "surveillance/vtest_384x288.mp4",
    "underwater/habcam_transect.mp4",
)  # fmt: skip
HELD_OUT = 5  # of the clips' patches every fifth is held out


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the experiment's options."""
    add_data_argument(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--dims", nargs="+", type=int, default=list(DIMS), metavar="D", help="widths of the rows")
    parser.add_argument("--shape", nargs="+", choices=SHAPES, default=["curve"], help="a closed curve, a uniform box")
    parser.add_argument("--covariance", nargs="+", choices=("diagonal", "full"), default=["diagonal", "full"])
    parser.add_argument("--memory", nargs="+", type=int, default=list(MEMORIES), metavar="POINTS")
    parser.add_argument("--order", nargs="+", choices=ORDERS, default=list(ORDERS), help="of the rows learnt")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--rows", type=int, default=N_TRAIN, metavar="N", help=f"rows learnt (default: {N_TRAIN})")
    parser.add_argument("--seed", type=int, default=0, help="of the shape and its rows (default: 0)")
    parser.add_argument(
        "--clips",
        choices=("no", "also", "only"),
        default="also",
        help="patches of the shared clips, as the agent samples them (default: also)",
    )
    names = [pathlib.Path(clip).stem for clip in CLIPS]
    parser.add_argument("--clip", nargs="+", choices=names, default=names, help="of these clips (default: all)")


def main(args: argparse.Namespace) -> int:
    """Run the experiment on one BLAS thread and print its rows."""
    if args.rows < 2 or min(args.dims) < 1:
        raise UsageError(f"--rows {args.rows}, --dims {min(args.dims)}: at least 2 rows of 1 dimension")
    with threadpool_limits(1):
        tell_rows(_all_rows(args), (), as_json=args.json, digits=4)
    return 0


def _all_rows(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    for n_dims in args.dims if args.clips != "only" else ():
        for covariance, shape in itertools.product(args.covariance, args.shape):
            data = {order: SHAPES[shape](n_dims, order, args.rows, args.seed) for order in args.order}
            yield from _rows(args, data, {"dims": n_dims, "covariance": covariance, "data": shape})
    if args.clips == "no":
        return
    root = find_data(args.data)
    for name in (clip for clip in CLIPS if pathlib.Path(clip).stem in args.clip):
        patches, settings = clip_patches(root / name)
        held = np.arange(len(patches)) % HELD_OUT == HELD_OUT - 1
        data = {"stream": DataSet(patches[~held], patches[held])}
        where = {"dims": patches.shape[1], "covariance": "diagonal", "data": f"{SHARED_CLIPS}: {name}"}
        yield from _rows(args, data, where, settings)


def curve(n_dims: int, order: str, n_rows: int = N_TRAIN, seed: int = 0, n_test: int = N_TEST) -> DataSet:
    """Return rows about a closed curve: 3 sin(2 pi t f + phase) A / sqrt(6) + 0.5 noise, t uniform.

    f = 1 1 2 2 3 3, phase = 0.7 (0..5), A standard normal of shape (6, n_dims).

    order : "shuffled" as drawn, or "curve": the same rows in the order of t
    """
    rng = np.random.default_rng(seed)
    mixing = rng.normal(size=(6, n_dims))
    time = rng.uniform(size=n_rows + n_test)
    noise = rng.normal(size=(n_rows + n_test, n_dims))
    waves = np.sin(2.0 * np.pi * time[:, None] * FREQUENCIES + 0.7 * np.arange(6))
    rows = 3.0 * waves @ mixing / np.sqrt(6.0) + NOISE * noise
    train = rows[:n_rows]
    return DataSet(train if order == "shuffled" else train[np.argsort(time[:n_rows], kind="stable")], rows[n_rows:])


def box(n_dims: int, order: str, n_rows: int = N_TRAIN, seed: int = 0, n_test: int = N_TEST) -> DataSet:
    """Return rows uniform in the unit box; in the order "curve" they go from its one side to the other."""
    rows = np.random.default_rng(seed).uniform(size=(n_rows + n_test, n_dims))
    train = rows[:n_rows]
    return DataSet(train if order == "shuffled" else train[np.argsort(train[:, 0], kind="stable")], rows[n_rows:])


SHAPES = {"curve": curve, "box": box}


def clip_patches(path: pathlib.Path) -> tuple[np.ndarray, dict[str, Any]]:
    """Return the rows that the agent's own patch learner is given on a clip, in their order, and its settings."""
    config = Config(source=SourceConfig(uri=str(path)))
    pipeline = Pipeline(config, Nowhere(), RealClock())
    learner, taken = pipeline.learners[PATCHES], []
    learn = learner.partial_fit

    def tap(rows: np.ndarray) -> MemoryBoundedMixture:
        taken.append(rows.copy())
        return learn(rows)

    learner.partial_fit = tap
    for frame in frames_of(config.source.uri, config):
        pipeline.step(frame)
    pipeline.finish()
    pipeline.close()
    settings = {"max_components": learner.max_components, "prior_scale": learner.prior_scale}
    return np.concatenate(taken), settings


def _rows(
    args: argparse.Namespace, data: dict[str, DataSet], where: dict[str, Any], settings: dict[str, Any] | None = None
) -> Iterator[dict[str, Any]]:
    """Yield a row for each order, memory and method; gaps are to our own batch run of the same rows.

    On clips `gap` is to a batch whose prior is measured in what the learner's is, the spread of its first epoch, which
    before a camera is not that of all rows: bounds and densities under two priors differ by more than clumps cost.
    `gap_own_units` is to the batch that measures its own, as on the other data, where both are the same number; of a
    clip it is told where the method "batch" is asked for.
    """
    first, is_clip = next(iter(data.values())), settings is not None
    settings = {"covariance": where["covariance"], "horizon": len(first.train)} | (settings or {})
    # The batch has no order worth the name: it sees all rows at once.
    batch = functools.cache(lambda: _ours(first, settings | _batch_memory(first.train), COMPRESSION["batch"])[0])
    has_batch = not is_clip or bool({"batch", "sklearn_bgm"} & set(args.methods))
    limits: dict[bytes, float] = {}  # of batches by their units
    peer = functools.cache(lambda: _sklearn(first, where["covariance"]))
    for order, part in data.items():
        for method in args.methods:
            if method == "quarters" and where["covariance"] == "full":
                continue
            for memory in args.memory if method in BOUNDED else (None,):
                own_limit = batch()["log_likelihood"] if has_batch else None
                limit = own_limit
                if method == "batch":
                    found = batch()
                elif method == "sklearn_bgm":
                    found = peer()
                else:
                    own = {"memory": memory, "parts": QUARTERS if method == "quarters" else 1}
                    found, units = _ours(part, settings | own, COMPRESSION[method])
                    if is_clip:
                        key = units["scale"].tobytes()
                        if key not in limits:
                            limits[key] = batch_in(units, part, settings)
                        limit = limits[key]
                what = where | {"memory": memory, "order": order, "method": method}
                gaps = {"gap": limit, "gap_own_units": own_limit}
                reached = found["log_likelihood"]
                yield what | {name: None if log is None else log - reached for name, log in gaps.items()} | found


def _batch_memory(rows: np.ndarray) -> dict[str, int]:
    """Return the settings of a batch run: everything is one epoch, and nothing is ever compressed."""
    n, n_dims = rows.shape
    return {"memory": 2 * n + n_dims, "epoch_size": n, "max_iterations": 100}


def batch_in(units: dict[str, np.ndarray], data: DataSet, settings: dict[str, Any]) -> float:
    """Return the held-out log likelihood of a batch run whose prior is measured in these units.

    units : shift and scale, (n_dims,) each
    """
    n, n_dims = data.train.shape
    points = {"count": np.ones(n), "mean": data.train, "variance": np.zeros((0, n_dims))} | units
    batch = MemoryBoundedMixture.from_clumps(points, **settings | _batch_memory(data.train))
    return float(batch.score_samples(data.test).mean())


def _ours(
    data: DataSet, settings: dict[str, Any], compression: Compression
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return a row's part of one run of ours, and the units that its prior was measured in."""
    learner = MemoryBoundedMixture(compression=compression, **settings)
    _, cost = measure(lambda: learner.partial_fit(data.train).flush())
    row = {
        "log_likelihood": float(learner.score_samples(data.test).mean()),
        "components": learner.n_components_,
        "clumps": learner.report_["clumps"],
        "singlets": learner.report_["singlets"],
        "seconds": cost.cpu_seconds,
    }
    return row, {name: learner.clumps_[name] for name in ("shift", "scale")}


def _sklearn(data: DataSet, covariance: str) -> dict[str, Any]:
    """scikit-learn's variational mixture on all rows at once: 50 components, its default prior, plug-in density."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import BayesianGaussianMixture

    kind = "diag" if covariance == "diagonal" else "full"
    peer = BayesianGaussianMixture(n_components=50, covariance_type=kind, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        _, cost = measure(lambda: peer.fit(data.train))
    return {
        "log_likelihood": float(peer.score_samples(data.test).mean()),
        "components": len(np.unique(peer.predict(data.train))),
        "clumps": None,
        "singlets": None,
        "seconds": cost.cpu_seconds,
    }
