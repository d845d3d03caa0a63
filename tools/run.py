"""Runs the agent on one source until it ends or is told to stop.

The `run` command. It turns arguments into a Config and a result into words; agent/process/app.py does the work.
"""

import argparse
import datetime
import logging
import pathlib
import sys

from stillwatch.base import hide_command_line, register_uri, scrub_handlers, shown
from stillwatch.process import RunOptions, RunResult, run_agent
from stillwatch.settings import Config, load_config
from stillwatch.tools.shared import ProgressLine, existing, stop_on_signals


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config_arguments(parser)
    parser.add_argument("--out", metavar="DIR", help="run folder (default: runs/ and the start time)")
    parser.add_argument("--record", metavar="DIR", help="also record frames and decisions, for replay")
    parser.add_argument("--fresh", action="store_true", help="start anew: ignore the run folder's checkpoints")
    parser.add_argument("--strict", action="store_true", help="end where publish.endpoint cannot be bound")
    parser.add_argument("-v", "--verbose", action="store_true", help="more log lines on stderr")


def add_config_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what every command has that runs an agent on a source."""
    parser.add_argument(
        "config", nargs="?", type=existing, metavar="CONFIG", help="TOML file (default: the embedded demo's settings)"
    )
    parser.add_argument("--source", metavar="URI", help="file, image, folder, rtsp://…, v4l2:/dev/…, synthetic:NAME")
    parser.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], help="override section.key=value")


def main(args: argparse.Namespace) -> int:
    set_up_logging(args.verbose)
    config = config_from(args)
    out = pathlib.Path(args.out) if args.out else default_folder()
    record = pathlib.Path(args.record) if args.record else None
    options = RunOptions(out=out, record=record, fresh=args.fresh, strict=args.strict)
    if args.config and not sys.stderr.isatty():  # on a terminal SIGHUP says that the terminal is gone
        options.read_config = lambda: config_from(args)
    return run_watched(config, options)


def run_watched(config: Config, options: RunOptions) -> int:
    """Run the agent with progress on a terminal until it ends or a signal asks; say how it ended; return the code."""
    line = ProgressLine(enabled=sys.stderr.isatty())
    options.on_progress = line.update
    options.on_note = tell
    stop_on_signals(options.stop, options.reload if options.read_config is not None else None)
    try:
        result = run_agent(config, options)
    finally:
        line.clear()
    tell_result(result)
    return result.exit_code


def config_from(args: argparse.Namespace) -> Config:
    """Return the config of the arguments, with every secret in it known to the scrubber before anything is said."""
    overrides = list(args.set)
    if args.source is not None:
        register_uri(args.source)
        escaped = args.source.replace("\\", "\\\\").replace('"', '\\"')
        overrides.append(f'source.uri="{escaped}"')
    config = load_config(args.config, overrides)
    register_uri(config.source.uri)
    hide_command_line()
    return config


def set_up_logging(verbose: bool) -> None:
    """Log to stderr, without secrets."""
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING,
        format="%(levelname)s %(name)s: %(message)s",
        stream=sys.stderr,
    )
    scrub_handlers()


def default_folder() -> pathlib.Path:
    """Return runs/ and the time in UTC, with a number behind it where two runs start in one second."""
    stamp = datetime.datetime.now(tz=datetime.UTC).strftime("%Y%m%dT%H%M%SZ")
    path = pathlib.Path("runs") / stamp
    number = 2
    while path.exists():
        path = pathlib.Path("runs") / f"{stamp}-{number}"
        number += 1
    return path


def tell_result(result: RunResult) -> None:
    """Say how a run ended, on stderr, and where its folder is."""
    counts = result.counts
    refused = ", ".join(f"{count} {reason}" for reason, count in sorted(counts.refused.items()))
    parts = [f"{counts.frames} frames", f"{counts.accepted} accepted"]
    if refused:
        parts.append(f"refused: {refused}")
    if counts.dropped:
        parts.append(f"{counts.dropped} dropped")
    parts.append(f"{counts.events} events, {counts.alerts} alerts")
    tell(f"{result.reason}: {'; '.join(parts)}")
    if result.waiting_alerts:
        tell(f"{result.waiting_alerts} alerts wait for the link; the next run of this agent sends them")
    if result.not_kept:
        tell(f"NOT kept in {result.folder}: {', '.join(result.not_kept)}")
    if "summary.json" not in result.not_kept:
        tell(f"run folder {result.folder}; see it with: stillwatch report {result.folder}")


def tell(text: str) -> None:
    """Say one line to the person who started the run."""
    print(shown(text), file=sys.stderr, flush=True)
