"""Runs the agent on one source until it ends or is told to stop.

The `run` command. It turns arguments into a Config and a result into words; agent/process/app.py does the work.
"""

import argparse
import datetime
import pathlib
import sys

from stillwatch.base import UsageError, hide_command_line, register_uri, shown
from stillwatch.process import RunOptions, run_agent
from stillwatch.settings import Config, load_config
from stillwatch.tools.shared import FORMS, RunVoice, existing, existing_source, set_up_logging, stop_on_signals


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config_arguments(parser)
    parser.add_argument("--out", metavar="DIR", help="run folder (default: runs/ and the start time)")
    parser.add_argument("--record", metavar="DIR", help="also record frames and decisions, for replay")
    parser.add_argument("--fresh", action="store_true", help="start anew: ignore the run folder's checkpoints")
    parser.add_argument("--strict", action="store_true", help="end where publish.endpoint cannot be bound")
    add_voice_arguments(parser)


def add_voice_arguments(parser: argparse.ArgumentParser) -> None:
    """Add how much a run says."""
    parser.add_argument(
        "--json", action="store_true", help="one JSON object a line on stdout: alerts, notices, the end"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="say alerts and errors only")
    parser.add_argument("-v", "--verbose", action="store_true", help="more log lines on stderr")
    parser.add_argument("--log", choices=FORMS, default="text", help="form of log lines on stderr (default: text)")


def add_config_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what every command has that runs an agent on a source; `take_inputs` reads it."""
    parser.add_argument(
        "inputs",
        nargs="*",
        metavar="CONFIG|SOURCE",
        help="a TOML file (default: the embedded demo's settings), and what to watch where it is not the config's",
    )
    parser.add_argument(
        "--source",
        metavar="URI",
        help="file (clip.mp4?loop=3, ?pace=1: in real time), image, folder (DIR?live=1: one that is being filled), "
        "rtsp://…, http://…, v4l2:/dev/v4l/by-id/…, synthetic:NAME, recording:DIR",
    )
    parser.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], help="override section.key=value")


def main(args: argparse.Namespace) -> int:
    take_inputs(args)
    set_up_logging(verbose=args.verbose, form=args.log)
    config = config_from(args)
    out = pathlib.Path(args.out) if args.out else default_folder()
    record = pathlib.Path(args.record) if args.record else None
    options = RunOptions(out=out, record=record, fresh=args.fresh, strict=args.strict)
    if args.config and not sys.stderr.isatty():  # on a terminal SIGHUP says that the terminal is gone
        options.read_config = lambda: config_from(args)
    return run_watched(config, options, RunVoice(quiet=args.quiet, as_json=args.json))


def take_inputs(args: argparse.Namespace) -> None:
    """Tell a config from a source among the inputs; UsageError where there are two of one kind."""
    args.config = None
    for text in args.inputs:
        kind = "config" if text.endswith(".toml") else "source"
        before = getattr(args, kind)
        if before is not None:
            raise UsageError(f"two {kind}s, {shown(before)} and {shown(text)}: a run has one")
        setattr(args, kind, existing(text) if kind == "config" else existing_source(text))


def run_watched(config: Config, options: RunOptions, voice: RunVoice) -> int:
    """Run the agent until it ends or a signal asks; `voice` says what happens and how it ended; return the code."""
    voice.listen(options)
    stop_on_signals(options.stop, options.reload if options.read_config is not None else None)
    try:
        result = run_agent(config, options)
    finally:
        voice.clear()
    voice.result(result)
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


def default_folder() -> pathlib.Path:
    """Return runs/ and the time in UTC, with a number behind it where two runs start in one second."""
    stamp = datetime.datetime.now(tz=datetime.UTC).strftime("%Y%m%dT%H%M%SZ")
    path = pathlib.Path("runs") / stamp
    number = 2
    while path.exists():
        path = pathlib.Path("runs") / f"{stamp}-{number}"
        number += 1
    return path
