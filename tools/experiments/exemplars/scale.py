"""StreamGreedy on 1.5 million vectors of 256 dimensions that exist one block at a time, against online k-means.

Called by tools/experiments/exemplars/command.py. It must not hold the stream: a generator makes blocks and forgets
them.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from stillwatch.learn import StreamGreedy
from stillwatch.tools.experiments.data import Cost, measure
from stillwatch.tools.experiments.exemplars.baselines import OnlineKMeans, mean_least_distance, nearest_rows

Row = dict[str, Any]
N_ROWS, N_DIMS, K, BLOCK, VALIDATION = 1_500_000, 256, 200, 1000, 5000
N_CLUSTERS, RANK = 400, 12
REPORTS = 10  # rows of the curve


class ImageLikeStream:
    """Rows of unit length from 400 clusters whose sizes fall off as a power law, each of rank 12 plus weak noise.

    Like Tiny Images as the paper prepares them: no gaps between clusters, many small ones. Block b is the same
    whichever blocks were made before it.
    """

    def __init__(self, seed: int = 0):
        rng = np.random.default_rng([seed, 1])
        self._seed = seed
        self._means = rng.normal(size=(N_CLUSTERS, N_DIMS)).astype(np.float32) / np.float32(np.sqrt(N_DIMS))
        self._loadings = (0.25 * rng.normal(size=(N_CLUSTERS, RANK, N_DIMS)) / np.sqrt(N_DIMS)).astype(np.float32)
        shares = 1.0 / np.arange(1, N_CLUSTERS + 1)
        self._shares = shares / shares.sum()

    def block(self, index: int, n_rows: int = BLOCK) -> np.ndarray:
        """Return block `index`, (n_rows, 256) float32. Blocks from 10^9 on are held out."""
        rng = np.random.default_rng([self._seed, 2, index])
        labels = np.sort(rng.choice(N_CLUSTERS, n_rows, p=self._shares))
        rows = self._means[labels] + np.float32(0.02) * rng.standard_normal((n_rows, N_DIMS), np.float32)
        factors = rng.standard_normal((n_rows, 1, RANK), np.float32)
        rows += np.matmul(factors, self._loadings[labels])[:, 0]
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return rng.permutation(rows)


def scale(args: argparse.Namespace) -> Iterator[Row]:
    """K = 200, blocks of 1,000, |W| = 5,000, phantom random as in the paper; ten points of each method's curve.

    Centres of online k-means are no rows; `online_kmeans_snapped` has the nearest of 10,000 rows in their place, as
    the paper's figure 1.
    """
    n_blocks = -(-(args.rows or N_ROWS) // BLOCK)
    stream = ImageLikeStream()
    held_out = np.concatenate([stream.block(10**9 + i) for i in range(10)]).astype(np.float64)
    learner = StreamGreedy(k=K, block=BLOCK, validation=VALIDATION, phantom="random").allocate(N_DIMS)
    online = OnlineKMeans(stream.block(0)[:K])
    methods: dict[str, tuple[Callable, Callable, int | None, int]] = {
        "streamgreedy": (
            learner.partial_fit,
            lambda: learner.exemplars_,
            VALIDATION,
            sum(learner.memory_bytes().values()),
        ),
        "online_kmeans": (online.partial_fit, lambda: online.centres, None, online.centres.nbytes + 8 * K),
    }
    total = 0.0
    for name, (partial_fit, centres, validation, n_bytes) in methods.items():
        if args.methods and name not in args.methods:
            continue
        start, total = 0, 0.0
        for end in np.unique(np.linspace(0, n_blocks, REPORTS + 1).astype(int)[1:]):
            seconds, cost = measure(partial(_feed, stream, partial_fit, start, end))
            total += seconds
            row = {"method": name, "order": "shuffled", "k": K, "block": BLOCK, "validation": validation}
            yield (
                row
                | _score(held_out, centres(), cost)
                | {
                    "seen": int(end) * BLOCK,
                    "seconds": total,
                    "state_bytes": n_bytes,
                    "rows_per_second": (end - start) * BLOCK / seconds,
                    "utility_on_w": _utility(name, learner),
                }
            )
            start = end
    if not args.methods or "online_kmeans_snapped" in args.methods:
        sample = np.concatenate([stream.block(i) for i in range(10)])
        snapped, cost = measure(lambda: nearest_rows(sample, online.centres))
        yield _score(held_out, snapped, cost) | {
            "method": "online_kmeans_snapped",
            "order": "shuffled",
            "k": K,
            "seen": n_blocks * BLOCK,
            "seconds": total + cost.cpu_seconds,
            "held": len(snapped),
        }


def _feed(stream: ImageLikeStream, partial_fit: Callable, first: int, end: int) -> float:
    """Feed blocks and return the processor seconds of the learner alone, without those of the generator."""
    total = 0.0
    for index in range(first, end):
        rows = stream.block(index)
        cpu = time.process_time()
        partial_fit(rows)
        total += time.process_time() - cpu
    return total


def _score(held_out: np.ndarray, centres: np.ndarray, cost: Cost) -> Row:
    """Utility on held-out rows with the phantom at the origin, so that it is the same for both methods."""
    loss = mean_least_distance(held_out, centres.astype(np.float64))
    origin = np.zeros((1, N_DIMS))
    sizes = np.bincount(_nearest(held_out, centres), minlength=len(centres))
    return {
        "test_loss": loss,
        "utility": mean_least_distance(held_out, origin) - loss,
        "peak_rss_mb": cost.peak_rss_mb,
        "empty_clusters": int((sizes == 0).sum()),
    }


def _nearest(rows: np.ndarray, centres: np.ndarray) -> np.ndarray:
    return ((centres * centres).sum(axis=1) - 2.0 * rows @ centres.T.astype(np.float64)).argmin(axis=1)


def _utility(name: str, learner: StreamGreedy) -> float | None:
    return learner.utility_ if name == "streamgreedy" else None
