"""Clusters found without labels against labels: the thesis's ladder of models and two peers, by grouping.

Called by the command line as `experiment survey-...`. It must not tune itself to what it measures: constants are
the thesis's.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from stillwatch.base import UsageError
from stillwatch.learn import GroupedMixture, SimultaneousMixture
from stillwatch.tools.experiments.survey.data import N_GROUPS, Labelled, artificial_groups, caltech, scenes, transects
from stillwatch.tools.shared import ProgressLine, add_data_argument, find_data, print_json
from stillwatch.tools.survey import NONE, PATCHES, SUPERPIXELS, agreement, best_segments, n_searches

NAMES = ("method", "grouping", "groups", "nmi", "v_measure", "ari", "clusters", "free_energy", "seconds")
FLAT = ("kmeans", "sklearn_bgm", "bgmm", "vdp", "scm", "mcm")
GROUPED = ("gmc", "sgmc", "mcm")
METHODS = ("kmeans", "sklearn_bgm", "bgmm", "vdp", "gmc", "sgmc", "scm", "mcm")
DEFAULT_METHODS = ("kmeans", "sklearn_bgm", "bgmm", "vdp", "gmc", "sgmc")
WEIGHTS = {"bgmm": "dirichlet", "vdp": "stick_breaking", "gmc": "generalised_dirichlet", "sgmc": "dirichlet"}
# Thesis: chapter 4's width of outdoor pictures, chapter 6's of pictures and of whitened segments. Made dives have a
# wider one, of its sweep over Caltech: 0.04 splits their sand by its light.
C_WIDTHS = {"survey-scenes": 0.04, "survey-caltech": 0.04, "survey-transects": 0.1}
IMAGE_WIDTH, SEGMENT_WIDTH = 0.05, 6.0
MOST_COMPONENTS = 30


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that the survey experiments share."""
    parser.add_argument("folder", nargs="?", metavar="DIR", help="survey-scenes: a folder of class folders")
    add_data_argument(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--methods",
        nargs="+",
        default=list(DEFAULT_METHODS),
        metavar="NAME",
        help=f"of {', '.join(METHODS)} (default: all but scm and mcm)",
    )
    parser.add_argument("--trials", type=int, default=5, metavar="N", help="random groupings, averaged (default: 5)")
    parser.add_argument(
        "--c-width", type=float, metavar="C", help="(default: the thesis's: scenes and caltech 0.04; transects 0.1)"
    )
    parser.add_argument(
        "--segments", choices=(SUPERPIXELS, PATCHES), help="of scm and mcm (default: slic where scikit-image is there)"
    )
    parser.add_argument("--every", type=int, default=6, metavar="N", help="survey-transects: one frame in N")
    parser.add_argument("--seed", type=int, default=0)


def main(args: argparse.Namespace) -> int:
    """Describe the pictures once, run every method and grouping, print the rows."""
    unknown = sorted(set(args.methods) - set(METHODS))
    if unknown:
        raise UsageError(f"--methods: {', '.join(unknown)} is none of {', '.join(METHODS)}")
    args.c_width = C_WIDTHS[args.experiment] if args.c_width is None else args.c_width
    if min(args.trials, args.every) < 1 or not args.c_width > 0.0:
        raise UsageError("--trials, --every and --c-width are above 0")
    if (args.folder is None) == (args.experiment == "survey-scenes"):
        raise UsageError("DIR: survey-scenes, and no other, needs a folder of class folders")
    line = ProgressLine(enabled=sys.stderr.isatty())
    data = SETS[args.experiment](args, line.show)
    line.clear()
    for note in data.notes:
        print(note, file=sys.stderr)
    rows = []
    for row in runs(data, args):
        rows.append({name: row[name] for name in NAMES})
        if not args.json:
            print("  ".join(f"{name}={shown(value)}" for name, value in rows[-1].items()), flush=True)
    if args.json:
        print_json({"rows": rows})
    return 0


def shown(value: Any) -> str:
    """Return a figure as a line of text has it."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


SETS: dict[str, Callable[[argparse.Namespace, Callable[[str], None]], Labelled]] = {
    "survey-caltech": lambda args, show: caltech(find_data(args.data), _segments(args)),
    "survey-scenes": lambda args, show: scenes(args.folder, _segments(args), show),
    "survey-transects": lambda args, show: transects(args.every, args.seed, _segments(args)),
}


def _segments(args: argparse.Namespace) -> str:
    """Return the kind of segments that the methods asked for need."""
    return args.segments or best_segments() if {"scm", "mcm"} & set(args.methods) else NONE


def runs(data: Labelled, args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield a row for each method and grouping, figures averaged over trials."""
    for method in args.methods:
        if method in FLAT:
            yield _row(method, "flat", [np.zeros(len(data.labels), np.int64)], data, args)
        if method not in GROUPED:
            continue
        if data.dives is not None:
            yield _row(method, "dives", [data.dives], data, args)
            continue
        for grouping in ("proportional", "random", "subset"):
            drawn = [
                artificial_groups(data.labels, grouping, np.random.default_rng([args.seed, trial]))
                for trial in range(1 if grouping == "proportional" else args.trials)
            ]
            yield _row(method, grouping, drawn, data, args)


def _row(method: str, grouping: str, drawn: list[np.ndarray], data: Labelled, args) -> dict[str, Any]:
    figures = []
    for groups in drawn:
        began = time.perf_counter()
        with threadpool_limits(1):
            clusters, free_energy = _fit(method, groups, data, args)
        seconds = time.perf_counter() - began
        found = agreement(data.labels, clusters).figures()
        figures.append([found[name] for name in ("nmi", "v_measure", "ari")])
        figures[-1] += [float(len(np.unique(clusters))), np.nan if free_energy is None else free_energy, seconds]
    mean = np.mean(figures, axis=0).tolist()
    row = dict(zip(("nmi", "v_measure", "ari", "clusters", "free_energy", "seconds"), mean, strict=True))
    row["clusters"] = int(row["clusters"]) if row["clusters"].is_integer() else row["clusters"]
    n_groups = (
        1 if grouping == "flat" else len(np.unique(np.concatenate(drawn))) if data.dives is not None else N_GROUPS
    )
    return {"method": method, "grouping": grouping, "groups": n_groups} | row


def _fit(method: str, groups: np.ndarray, data: Labelled, args) -> tuple[np.ndarray, float | None]:
    """Return (the cluster of each picture, free energy or None)."""
    if method == "kmeans":
        from sklearn.cluster import KMeans

        n_classes = len(set(data.labels.tolist()))
        return KMeans(n_classes, n_init=10, random_state=args.seed).fit_predict(data.whole), None
    if method == "sklearn_bgm":
        return _peer(data.whole, args.seed), None
    if method in WEIGHTS:
        model = GroupedMixture(weights=WEIGHTS[method], c_width=args.c_width, n_init=n_searches(len(data.whole)))
        model.fit(data.whole, groups=groups)
        return model.labels_, model.free_energy_
    whole = data.whole if method == "mcm" else None
    both = SimultaneousMixture(c_width=SEGMENT_WIDTH, image_width=IMAGE_WIDTH, n_init=2, seed=args.seed)
    both.fit(data.segments, images=data.images, groups=groups, descriptors=whole)
    return both.labels_, both.free_energy_


def _peer(rows: np.ndarray, seed: int) -> np.ndarray:
    """Return the clusters of scikit-learn's variational mixture, at its defaults but for the number it starts with."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import BayesianGaussianMixture

    peer = BayesianGaussianMixture(n_components=min(MOST_COMPONENTS, len(rows)), max_iter=300, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return peer.fit_predict(rows)
