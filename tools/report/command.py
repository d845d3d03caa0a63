"""Writes one self-contained HTML report of a run folder, a ground station's folder or a recording.

The `report` command; tools/demo.py calls `write_report`. It must not need the agent, its source or a network.
"""

import argparse
import pathlib

from stillwatch.tools.report.data import read_report
from stillwatch.tools.report.page import render
from stillwatch.tools.shared import existing, write_result


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=existing, metavar="DIR", help="run folder, ground station's folder or recording")
    parser.add_argument("--out", metavar="FILE", help="where to write (default: DIR/report.html)")


def main(args: argparse.Namespace) -> int:
    print(write_report(args.folder, args.out))
    return 0


def write_report(folder: pathlib.Path | str, out: pathlib.Path | str | None = None) -> pathlib.Path:
    """Write the report and return its path.

    Raises
    ------
    LogError
        The folder holds no messages.
    UsageError
        The report cannot be written there.
    """
    target = pathlib.Path(out) if out else pathlib.Path(folder) / "report.html"
    text = render(read_report(folder))
    write_result(target, text)
    return target
