"""StreamGreedy against its peers: synthetic, MNIST, scale, Gaussian process, frames.

Called by the command line as `experiment exemplars-...`. It chooses the experiment and prints its rows, no more.
"""

import argparse
from collections.abc import Callable, Iterable
from typing import Any

from threadpoolctl import threadpool_limits

from stillwatch.tools.experiments.exemplars import clusters, frames, gaussian_process, scale
from stillwatch.tools.shared import add_data_argument, print_json

EXPERIMENTS: dict[str, Callable[[argparse.Namespace], Iterable[dict[str, Any]]]] = {
    "exemplars-synthetic": clusters.synthetic,
    "exemplars-mnist": clusters.mnist,
    "exemplars-scale": scale.scale,
    "exemplars-gp": gaussian_process.gaussian_process,
    "exemplars-frames": frames.frames,
}
# names of commands.md first; an experiment may add its own behind them
NAMES = (
    "method", "order", "k", "block", "validation", "seen", "utility", "train_loss", "test_loss", "mse", "seconds",
    "peak_rss_mb", "state_bytes",
)  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that all exemplar experiments share."""
    add_data_argument(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="seeds 0..N-1 (default: 1)")
    parser.add_argument("--methods", nargs="+", metavar="NAME", help="only these methods")
    parser.add_argument("--order", choices=("shuffled", "sorted"), help="only this order of the rows")
    parser.add_argument("--rows", type=int, default=0, metavar="N", help="only the first N rows (default: all)")


def main(args: argparse.Namespace) -> int:
    """Run one experiment on one BLAS thread and print its rows."""
    rows = []
    with threadpool_limits(1):
        for row in EXPERIMENTS[args.experiment](args):
            rows.append(dict.fromkeys(NAMES) | row)
            if not args.json:
                print(_line(row), flush=True)
    if args.json:
        print_json({"rows": rows})
    return 0


def _line(row: dict[str, Any]) -> str:
    return "  ".join(f"{name}={_text(value)}" for name, value in row.items() if value is not None)


def _text(value: Any) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(value)
