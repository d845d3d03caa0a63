"""What clumps lose: clusters that dives share found from all points, from clumps taken whole, and from clumps drawn.

A command of the console script. The points are drawn here, so their clusters are known.
"""

import argparse
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from stillwatch.base import UsageError
from stillwatch.learn import GroupedMixture, MemoryBoundedMixture
from stillwatch.tools.experiments.data import tell_rows
from stillwatch.tools.survey import agreement

N_DIMS, N_CLUSTERS, N_DIVES = 20, 12, 12
C_WIDTH = 0.04
NAMES = ("seed", "from", "bytes", "items", "clusters", "nmi", "ari", "seconds")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("--rows", type=int, default=120_000, metavar="N", help="points of all 12 dives")
    parser.add_argument("--memory", type=int, default=200, metavar="N", help="of each dive's mixture, in points")
    parser.add_argument(
        "--apart", type=float, default=0.7, metavar="D", help="distance of clusters; 0.7 overlap, 2 do not"
    )
    parser.add_argument(
        "--drawn", type=int, nargs="+", default=[20_000, 100_000], metavar="N", help="points drawn of clumps"
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], metavar="N")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def main(args: argparse.Namespace) -> int:
    """Print a row for the points and for each way to use the clumps, by seed."""
    if min(args.rows // N_DIVES, args.memory, *args.drawn) < 1 or not args.apart > 0.0:
        raise UsageError("--memory, --drawn and --apart are above 0, --rows at least 12")
    tell_rows(runs(args), NAMES, as_json=args.json)
    return 0


def runs(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the rows; NMI and ARI are of the points, labelled by each model, against the clusters they are of."""
    for seed in args.seeds:
        points, dives, truth = made_dives(args.rows // N_DIVES, args.apart, seed)
        means, clumps, share = compressed(points, dives, args.memory)
        tried = [("points", 1.0, points, {"groups": dives}, None), ("clumps whole", share, means, clumps, None)]
        tried += [(f"clumps drawn {n_drawn}", share, means, clumps, n_drawn) for n_drawn in args.drawn]
        for name, part, items, given, n_drawn in tried:
            began = time.perf_counter()
            model = GroupedMixture(c_width=C_WIDTH, n_drawn=n_drawn).fit(items, **given)
            seconds = time.perf_counter() - began
            found = agreement(truth, model.predict(points, dives))
            figures = (seed, name, part, len(items), model.n_clusters_, found.v_measure, found.ari, seconds)
            yield dict(zip(NAMES, figures, strict=True))


def made_dives(n: int, apart: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (points, dives, clusters) of 12 dives of n points each; their spectrum falls as that of pictures."""
    rng = np.random.default_rng(seed)
    fall = np.arange(1.0, N_DIMS + 1) ** -0.5
    centres = rng.normal(size=(N_CLUSTERS, N_DIMS)) * apart * fall
    widths = rng.uniform(0.5, 1.2, (N_CLUSTERS, N_DIMS))
    mixes = rng.dirichlet(np.full(N_CLUSTERS, 0.5), N_DIVES)
    truth = np.concatenate([rng.choice(N_CLUSTERS, n, p=mix) for mix in mixes])
    points = centres[truth] + rng.normal(size=(len(truth), N_DIMS)) * widths[truth] * fall
    return points, np.repeat(np.arange(N_DIVES), n), truth


def compressed(points: np.ndarray, dives: np.ndarray, memory: int) -> tuple[np.ndarray, dict[str, np.ndarray], float]:
    """Return (means, what else `fit` takes, part of the points' values) of what each dive's mixture keeps."""
    means, counts, variances, n_values = [], [], [], 0
    for dive in range(N_DIVES):
        kept = MemoryBoundedMixture(memory=memory, covariance="diagonal", seed=0).fit(points[dives == dive]).clumps_
        n_clumps, n_items = len(kept["variance"]), len(kept["mean"])
        n_values += n_clumps * (2 * N_DIMS + 1) + (n_items - n_clumps) * N_DIMS
        means.append(kept["mean"])
        counts.append(kept["count"])
        variances.append(np.vstack([kept["variance"], np.zeros((n_items - n_clumps, N_DIMS))]))
    groups = np.repeat(np.arange(N_DIVES), [len(part) for part in means])
    given = {"groups": groups, "counts": np.concatenate(counts), "covariances": np.concatenate(variances)}
    return np.concatenate(means), given, n_values / points.size
