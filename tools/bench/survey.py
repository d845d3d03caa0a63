"""How long a survey's mixture takes over a big campaign: principal coordinates of many pictures, in a few dives.

Called by the command line as `bench survey`. Rows are made, from Gaussians and with heavy tails, where one cluster
becomes several; each is fitted in a process of its own, so that the peak of memory is that fit's.
"""

import argparse
import os
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np

from stillwatch.base import UsageError
from stillwatch.learn import GroupedMixture
from stillwatch.tools.shared import print_rows

N_DIMS, N_CLUSTERS = 20, 20
C_WIDTH = 0.1
GAUSSIAN, HEAVY = "gaussian", "heavy"
TAILS = {GAUSSIAN: None, HEAVY: 4.0}  # degrees of freedom of Student's t


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the bench's options."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--rows", type=int, default=100_000, metavar="N", help="pictures (default: 100000)")
    parser.add_argument("--dives", type=int, default=12, metavar="N", help="groups that they are of (default: 12)")
    parser.add_argument("--tails", nargs="+", choices=tuple(TAILS), default=list(TAILS), help="(default: both)")
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 1, metavar="N", help="threads (default: all)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], metavar="N")


def main(args: argparse.Namespace) -> int:
    """Print a row for each kind of tails and seed."""
    if min(args.rows, args.dives, args.cores) < 1:
        raise UsageError("--rows, --dives and --cores are above 0")
    rows = []
    for tails in args.tails:
        for seed in args.seeds:
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as other:
                rows.append(other.submit(measure, args.rows, args.dives, tails, args.cores, seed).result())
    print_rows(rows, as_json=args.json)
    return 0


def measure(n: int, n_dives: int, tails: str, cores: int, seed: int) -> dict[str, Any]:
    """Return a row: time, memory and what was found."""
    X, dives, truth = descriptors(n, n_dives, TAILS[tails], seed)
    began, spent = time.perf_counter(), time.process_time()
    model = GroupedMixture(c_width=C_WIDTH, n_jobs=cores).fit(X, groups=dives)
    return {
        "tails": tails,
        "rows": n,
        "dives": n_dives,
        "cores": cores,
        "seed": seed,
        "seconds": time.perf_counter() - began,
        "cpu_s": time.process_time() - spent,
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
        "clusters": model.n_clusters_,
        "made_clusters": len(np.unique(truth)),
        "rounds": len(model.free_energies_),
        "free_energy": model.free_energy_,
    }


def descriptors(n: int, n_dives: int, freedom: float | None, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (rows (n, 20) whose spectrum falls as principal coordinates' does, dive of each, cluster of each).

    freedom : degrees of freedom of Student's t in each value; None is Gaussian
    """
    rng = np.random.default_rng(seed)
    fall = np.arange(1.0, N_DIMS + 1) ** -0.5
    centres, widths = rng.normal(size=(N_CLUSTERS, N_DIMS)) * 2 * fall, rng.uniform(0.3, 1.2, (N_CLUSTERS, N_DIMS))
    mixes, dives = rng.dirichlet(np.full(N_CLUSTERS, 0.3), n_dives), rng.integers(0, n_dives, n)
    truth = np.empty(n, np.int64)
    for j in range(n_dives):
        truth[dives == j] = rng.choice(N_CLUSTERS, int((dives == j).sum()), p=mixes[j])
    noise = rng.normal(size=(n, N_DIMS)) if freedom is None else rng.standard_t(freedom, (n, N_DIMS))
    return centres[truth] + noise * widths[truth] * fall, dives, truth
