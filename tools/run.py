"""Runs the agent on one source until it ends or is told to stop.

The `run` command. All it does is turn arguments into a Config and exit codes into words; agent/app.py does the work.
"""

import argparse
import logging
import pathlib
import sys

from stillwatch.agent.app import run_agent
from stillwatch.agent.config_reader import load_config
from stillwatch.agent.secrets import hide_command_line, register_uri, scrub_handlers


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("config", nargs="?", metavar="CONFIG", help="TOML file (default: the embedded demo settings)")
    parser.add_argument("--source", metavar="URI", help="file, image, folder, rtsp://…, v4l2:/dev/…, synthetic:NAME")
    parser.add_argument("--out", metavar="DIR", help="run folder (default: runs/ and the start time)")
    parser.add_argument("--record", metavar="DIR", help="also record frames and decisions, for replay")
    parser.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], help="override section.key=value")
    parser.add_argument("--fresh", action="store_true", help="start anew: ignore the run folder's checkpoints")
    parser.add_argument("--progress", action="store_true", help="show progress even where output is no terminal")
    parser.add_argument("-v", "--verbose", action="store_true", help="more log lines on stderr")


def main(args: argparse.Namespace) -> int:
    if args.source is not None:
        register_uri(args.source)
    logging.basicConfig(
        level=logging.INFO if args.verbose else logging.WARNING, format="%(levelname)s %(name)s: %(message)s",
        stream=sys.stderr,
    )  # fmt: skip
    scrub_handlers()
    overrides = list(args.set)
    if args.source is not None:
        overrides.append(f"source.uri={_quoted(args.source)}")
    config = load_config(args.config, overrides)
    register_uri(config.source.uri)
    hide_command_line()
    return run_agent(
        config, out=pathlib.Path(args.out) if args.out else None,
        record=pathlib.Path(args.record) if args.record else None, fresh=args.fresh,
        show_progress=args.progress or sys.stderr.isatty(),
    )  # fmt: skip


def _quoted(text: str) -> str:
    """Return text as a TOML string, so that a URI is never read as a number or a table."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
