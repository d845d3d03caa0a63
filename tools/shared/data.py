"""Finds the folder of real data with ground truth that experiments, evaluations and tests use.

Called by the experiment, evaluate, bench and faults commands and by tests. It never writes there.
"""

import os
import pathlib

from stillwatch.base import UsageError, shown


def find_data_or_none(given: str | None) -> pathlib.Path | None:
    """Return the data folder: the one given, else STILLWATCH_DATA, else ../shared/data beside the checkout.

    UsageError where one is given that is not there.
    """
    if given and not pathlib.Path(given).is_dir():
        raise UsageError(f"no data folder at {shown(given)}: give --data DIR or set STILLWATCH_DATA")
    beside = pathlib.Path(__file__).resolve().parents[3] / "shared" / "data"
    for candidate in (given, os.environ.get("STILLWATCH_DATA")):
        if candidate:
            path = pathlib.Path(candidate)
            return path if path.is_dir() else None
    return beside if beside.is_dir() else None


def find_data(given: str | None) -> pathlib.Path:
    """As `find_data_or_none`, but an absent folder is a UsageError in one clear line."""
    path = find_data_or_none(given)
    if path is None:
        where = given or os.environ.get("STILLWATCH_DATA") or "../shared/data"
        raise UsageError(f"no data folder at {where}: give --data DIR or set STILLWATCH_DATA")
    return path


def add_data_argument(parser) -> None:
    """Add the --data option, the same words everywhere."""
    parser.add_argument("--data", metavar="DIR", help="folder of real data (default: STILLWATCH_DATA, ../shared/data)")
