"""Measure a station: a fleet's messages, alerts until an open page shows them, CPU, memory; pages of a full store.

Rows of `bench station` have a `what`: `load` (a station and its page in a process of their own, `--agents` agents in
another, readers of the alert list and of the fleet) and `page` (milliseconds of a whole request, the store at size).
"""

import argparse
import pathlib
import tempfile
from typing import Any

from stillwatch.tools.shared import print_rows
from stillwatch.tools.station.command import explained

Row = dict[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--only", choices=("load", "pages"), help="one part only")
    parser.add_argument("--agents", type=int, default=200, metavar="N", help="of the fleet (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=60.0, help="that the fleet tells (default: %(default)s)")
    parser.add_argument("--hz", type=float, default=10.0, help="scores a second of each (default: %(default)s)")
    parser.add_argument("--alerts-an-hour", type=float, default=60.0, help="of each agent (default: %(default)s)")
    parser.add_argument("--scores", type=int, default=10_000_000, help="in the full store (default: %(default)s)")
    parser.add_argument("--alerts", type=int, default=1_000_000, help="in the full store (default: %(default)s)")
    parser.add_argument("--times", type=int, default=20, help="that each page is asked for (default: %(default)s)")
    parser.add_argument(
        "--store",
        metavar="ADDRESS",
        help="of a store for the pages, a file or postgresql://, that is empty or was filled by this (default: a file)",
    )


def main(args: argparse.Namespace) -> int:
    """Run the parts and print their rows."""
    with explained():
        from stillwatch.tools.station.bench.load import load_row
        from stillwatch.tools.station.bench.size import page_rows

        rows: list[Row] = []
        if args.only != "pages":
            with tempfile.TemporaryDirectory(prefix="stillwatch-bench-") as folder:
                rows.append(load_row(pathlib.Path(folder), args.agents, args.seconds, args.hz, args.alerts_an_hour))
        if args.only != "load":
            with tempfile.TemporaryDirectory(prefix="stillwatch-bench-") as folder:
                address = args.store or str(pathlib.Path(folder) / "station.db")
                rows += page_rows(pathlib.Path(folder), address, args.agents, args.scores, args.alerts, args.times)
    print_rows(rows, as_json=args.json)
    return 0
