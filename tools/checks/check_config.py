"""Lists every fault of a config, then the memory it plans by stage.

The `check-config` command. The stages are built for it, so that the table is what a run will allocate.
"""

import argparse
import contextlib
import pathlib
import sys

from msgspec import structs

from stillwatch.base import ConfigError, RealClock, SourceError
from stillwatch.process import LIBRARIES_BYTES, check_memory, make_thin_carrier, planned_memory
from stillwatch.settings import Config, Problem, load_config
from stillwatch.sources import open_source
from stillwatch.tools.shared import existing, print_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("config", type=existing, metavar="CONFIG", help="TOML file")
    parser.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], help="override section.key=value")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _check_source(config: Config) -> None:
    """Raise ConfigError where nobody could make a source of source.uri; whether it is there is another question.

    One with a secret still to be filled in is left alone: its environment is that of the service.
    """
    if "${" not in config.source.uri:
        with contextlib.suppress(SourceError):
            open_source(config.source.uri, config.source, RealClock())


def _check_link(config: Config) -> None:
    """Raise ConfigError where no thin link could be made of [link]; whether its key is there is another question."""
    link = structs.replace(config.link, key_file="")
    make_thin_carrier(structs.replace(config, link=link), RealClock(), beside=pathlib.Path("runs", "run"))


def _problems_of(error: ConfigError, file: str) -> list[Problem]:
    return [p if isinstance(p, Problem) else Problem(file, "", "", str(p)) for p in error.problems]


def main(args: argparse.Namespace) -> int:
    problems, memory, config = [], [], None
    try:
        config = load_config(args.config, args.set, opens_source=False)
        memory = planned_memory(config)
    except ConfigError as error:
        problems = _problems_of(error, args.config)
    else:
        for check in (lambda config: check_memory(config, memory, str(args.config)), _check_source, _check_link):
            try:
                check(config)
            except ConfigError as error:
                problems += _problems_of(error, args.config)
    total = sum(n_bytes for _, n_bytes in memory)
    if args.json:
        errors = [{"file": p.file, "key": p.key, "value": p.value, "message": p.message} for p in problems]
        stages = [{"stage": stage, "bytes": n_bytes} for stage, n_bytes in memory]
        resident = total + LIBRARIES_BYTES if memory else None
        table = {"errors": errors, "memory": stages, "total_bytes": total if memory else None}
        print_json({**table, "resident_bytes": resident, "limit_bytes": config.limits.memory_bytes if config else None})
        return ConfigError.exit_code if problems else 0
    if memory and config is not None:
        for stage, n_bytes in memory:
            print(f"{stage:<28}{n_bytes:>14,} bytes")
        limit = config.limits.memory_bytes
        print(f"{'planned by the stages':<28}{total:>14,} bytes")
        print(f"{'interpreter and libraries':<28}{LIBRARIES_BYTES:>14,} bytes, as measured")
        resident = total + LIBRARIES_BYTES
        print(f"{'resident':<28}{resident:>14,} bytes, {100 * resident / limit:.0f} % of limits.memory_bytes {limit:,}")
    for problem in problems:
        print(problem, file=sys.stderr)
    if not problems:
        print(f"{args.config}: good")
    return ConfigError.exit_code if problems else 0
